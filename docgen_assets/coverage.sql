-- Every rule of the boxes that the exported tables break, one row each; none is what is wanted.
-- Reads documents, field_boxes, and the views that coverage.py makes: `cells` (every golden value), `printed` (those
-- that every layout prints) and `page_sizes` (of some documents, in points); $run_id is the run.
WITH
box AS (
    SELECT document_id, table_name, row_key, column_name, occurrence, part, page, value,
           least(x0, x1, x2, x3) AS leftmost, greatest(x0, x1, x2, x3) AS rightmost,
           least(y0, y1, y2, y3) AS lowest, greatest(y0, y1, y2, y3) AS highest
    FROM field_boxes WHERE run_id = $run_id
),
cell AS (SELECT * FROM cells WHERE run_id = $run_id),
named AS (SELECT *, table_name || '/' || row_key || '/' || column_name AS place FROM box),
rules AS (
    SELECT document_id, 'a printed golden value has its box' AS rule,
           p.table_name || '/' || p.row_key || '/' || p.column_name AS place, 'a box' AS expected, 'none' AS found
    FROM printed p ANTI JOIN box b USING (document_id, table_name, row_key, column_name)
    WHERE p.run_id = $run_id
    UNION ALL
    SELECT document_id, 'a box belongs to a golden value', n.place, 'a value', 'none'
    FROM named n ANTI JOIN cell c USING (document_id, table_name, row_key, column_name)
    UNION ALL
    SELECT document_id, 'a box says its golden value', n.place, c.cell, n.value
    FROM named n JOIN cell c USING (document_id, table_name, row_key, column_name)
    WHERE n.value <> c.cell AND (c.amount IS NULL OR TRY_CAST(n.value AS DECIMAL(38, 9)) IS DISTINCT FROM c.amount)
    UNION ALL
    SELECT document_id, 'a value that wraps has each of its parts once', place,
           CAST(max(part) + 1 AS VARCHAR), CAST(count(DISTINCT part) AS VARCHAR) || ' of ' || count(*)
    FROM named GROUP BY document_id, place, occurrence
    HAVING max(part) + 1 <> count(*) OR count(DISTINCT part) <> count(*)
    UNION ALL
    SELECT document_id, 'a box stands on a page of its document', n.place,
           '1 to ' || coalesce(CAST(d.pages AS VARCHAR), 'none'), CAST(n.page AS VARCHAR)
    FROM named n LEFT JOIN (SELECT document_id, pages FROM documents WHERE run_id = $run_id) d USING (document_id)
    WHERE n.page NOT BETWEEN 1 AND coalesce(d.pages, 0)
    UNION ALL
    SELECT document_id, 'a box is inside its page', n.place,
           coalesce(round(s.w, 2) || ' by ' || round(s.h, 2) || ' points', 'corners from 0 on'),
           round(n.leftmost, 2) || ' to ' || round(n.rightmost, 2) || ', '
           || round(n.lowest, 2) || ' to ' || round(n.highest, 2)
    FROM named n LEFT JOIN page_sizes s USING (document_id, page)
    WHERE NOT (n.leftmost >= 0 AND n.lowest >= 0 AND n.leftmost < n.rightmost AND n.lowest < n.highest
               AND n.rightmost <= coalesce(s.w, 'inf'::DOUBLE) AND n.highest <= coalesce(s.h, 'inf'::DOUBLE))
)
SELECT * FROM rules ORDER BY ALL
