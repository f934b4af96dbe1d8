-- Every rule of an invoice's arithmetic that the exported tables break, one row each; none is what is wanted.
-- Written against the columns' descriptions alone, in whole minor units, so that it shares nothing with the code
-- that computed them. `ties` go away from zero; a discount is shared by largest remainder, ties to the first.
-- Reads the views or tables invoices, line_items and tax_lines; $run_id is the run.
WITH
head AS (
    SELECT document_id, rounding_policy, minor_units, document_discount_percent,
           whole(lines_total, minor_units) AS lines_total, whole(document_discount, minor_units) AS discount,
           whole(net_total, minor_units) AS net, whole(tax_total, minor_units) AS tax,
           whole(gross_total, minor_units) AS gross, whole(prepaid, minor_units) AS prepaid,
           whole(amount_due, minor_units) AS due
    FROM invoices WHERE run_id = $run_id
),
line AS (
    SELECT document_id, line_number, kind, parent, counted, quantity, unit_price, discount_percent, tax_category,
           tax_rate, minor_units, whole(line_total, minor_units) AS line_total,
           whole(discount_amount, minor_units) AS discount, whole(net_amount, minor_units) AS net,
           whole(tax_amount, minor_units) AS tax, whole(document_discount_share, minor_units) AS share
    FROM line_items WHERE run_id = $run_id
),
bucket AS (
    SELECT document_id, CAST(row_key AS INTEGER) AS number, category, rate, minor_units,
           whole(line_total, minor_units) AS line_total, whole(discount_share, minor_units) AS share,
           whole(base, minor_units) AS base, whole(tax, minor_units) AS tax
    FROM tax_lines WHERE run_id = $run_id
),
bands AS (
    SELECT document_id, parent, sum(line_total)::HUGEINT AS line_total, sum(nano(quantity))::HUGEINT AS quantity
    FROM line WHERE kind = 'tier_band' GROUP BY ALL
),
counted AS (
    SELECT document_id, tax_category AS category, tax_rate AS rate,
           sum(net)::HUGEINT AS net, sum(tax)::HUGEINT AS tax, sum(share)::HUGEINT AS share
    FROM line WHERE counted GROUP BY ALL
),
bucket_floor AS (
    SELECT b.document_id, b.number AS member, b.share,
           share_floor(h.discount, b.line_total, h.lines_total) AS part,
           share_rest(h.discount, b.line_total, h.lines_total) AS rest,
           h.discount AS amount
    FROM bucket b JOIN head h USING (document_id)
),
bucket_share AS (
    SELECT document_id, member, share, part + CASE WHEN place <= left_over THEN 1 ELSE 0 END AS expected
    FROM (SELECT *, row_number() OVER (PARTITION BY document_id ORDER BY rest DESC, member) AS place,
                 amount - sum(part) OVER (PARTITION BY document_id) AS left_over FROM bucket_floor)
),
line_floor AS (
    SELECT l.document_id, b.number, l.line_number AS member, l.share, b.share AS amount,
           share_floor(b.share, l.net, b.line_total) AS part, share_rest(b.share, l.net, b.line_total) AS rest
    FROM line l
    JOIN head h USING (document_id)
    JOIN bucket b ON b.document_id = l.document_id AND b.category = l.tax_category AND b.rate = l.tax_rate
    WHERE l.counted AND h.rounding_policy = 'per_line'
),
line_share AS (
    SELECT document_id, member, share, part + CASE WHEN place <= left_over THEN 1 ELSE 0 END AS expected
    FROM (SELECT *, row_number() OVER (PARTITION BY document_id, number ORDER BY rest DESC, member) AS place,
                 amount - sum(part) OVER (PARTITION BY document_id, number) AS left_over FROM line_floor)
),
rules AS (
    SELECT document_id, 'line_total = quantity × unit_price' AS rule, 'line ' || line_number AS place,
           half_up(nano(quantity) * nano(unit_price), 18 - minor_units) AS expected, line_total AS found
    FROM line WHERE unit_price IS NOT NULL
    UNION ALL
    SELECT l.document_id, 'line_total of a graduated line = sum of its bands', 'line ' || line_number,
           b.line_total, l.line_total
    FROM line l LEFT JOIN bands b ON b.document_id = l.document_id AND b.parent = l.line_number
    WHERE l.kind = 'tier_parent'
    UNION ALL
    SELECT l.document_id, 'quantity of a graduated line = sum of its bands', 'line ' || l.line_number,
           b.quantity, nano(l.quantity)
    FROM line l LEFT JOIN bands b ON b.document_id = l.document_id AND b.parent = l.line_number
    WHERE l.kind = 'tier_parent'
    UNION ALL
    SELECT document_id, 'a line has a price or bands', 'line ' || line_number, 1, 0
    FROM line WHERE unit_price IS NULL AND kind <> 'tier_parent'
    UNION ALL
    SELECT document_id, 'bands are not counted, other lines are', 'line ' || line_number, 0, 1
    FROM line WHERE counted = (kind = 'tier_band')
    UNION ALL
    SELECT document_id, 'discount_amount = line_total × discount_percent', 'line ' || line_number,
           percent_of(line_total, coalesce(discount_percent, 0)), discount FROM line
    UNION ALL
    SELECT document_id, 'net_amount = line_total − discount_amount', 'line ' || line_number, line_total - discount, net
    FROM line
    UNION ALL
    SELECT h.document_id, 'lines_total = sum of the counted net amounts', 'invoice',
           (SELECT sum(net)::HUGEINT FROM counted c WHERE c.document_id = h.document_id), h.lines_total FROM head h
    UNION ALL
    SELECT document_id, 'document_discount = lines_total × document_discount_percent', 'invoice',
           percent_of(lines_total, document_discount_percent), discount
    FROM head WHERE document_discount_percent IS NOT NULL
    UNION ALL
    SELECT coalesce(b.document_id, c.document_id), 'a bucket for each category and rate, with its lines'' sum',
           'bucket ' || coalesce(b.category, c.category) || ' ' || coalesce(b.rate, c.rate), c.net, b.line_total
    FROM bucket b FULL JOIN counted c
      ON c.document_id = b.document_id AND c.category = b.category AND c.rate = b.rate
    UNION ALL
    SELECT document_id, 'discount_share by size, left-over units to the largest remainders', 'bucket ' || member,
           expected, share FROM bucket_share
    UNION ALL
    SELECT document_id, 'document_discount_share by size within the bucket', 'line ' || member, expected, share
    FROM line_share
    UNION ALL
    SELECT document_id, 'base = line_total − discount_share', 'bucket ' || number, line_total - share, base FROM bucket
    UNION ALL
    SELECT b.document_id, 'tax = base × rate, rounded once (per_bucket)', 'bucket ' || number,
           percent_of(b.base, b.rate), b.tax
    FROM bucket b JOIN head h USING (document_id) WHERE h.rounding_policy = 'per_bucket'
    UNION ALL
    SELECT l.document_id, 'tax_amount = (net_amount − share) × tax_rate (per_line)', 'line ' || line_number,
           percent_of(l.net - l.share, l.tax_rate), l.tax
    FROM line l JOIN head h USING (document_id) WHERE h.rounding_policy = 'per_line' AND l.counted
    UNION ALL
    SELECT b.document_id, 'tax = sum of its lines'' taxes (per_line)', 'bucket ' || number, c.tax, b.tax
    FROM bucket b
    JOIN head h USING (document_id)
    LEFT JOIN counted c ON c.document_id = b.document_id AND c.category = b.category AND c.rate = b.rate
    WHERE h.rounding_policy = 'per_line'
    UNION ALL
    SELECT document_id, 'rounding_policy is a known one', 'invoice', 1, 0
    FROM head WHERE rounding_policy NOT IN ('per_line', 'per_bucket')
    UNION ALL
    SELECT document_id, 'net_total = lines_total − document_discount', 'invoice', lines_total - discount, net FROM head
    UNION ALL
    SELECT h.document_id, 'tax_total = sum of the buckets'' taxes', 'invoice',
           (SELECT sum(b.tax)::HUGEINT FROM bucket b WHERE b.document_id = h.document_id), h.tax FROM head h
    UNION ALL
    SELECT document_id, 'gross_total = net_total + tax_total', 'invoice', net + tax, gross FROM head
    UNION ALL
    SELECT document_id, 'amount_due = gross_total − prepaid', 'invoice', gross - prepaid, due FROM head
    UNION ALL
    SELECT document_id, 'prepaid is in whole minor units', 'invoice', 1, CAST(prepaid IS NOT NULL AS INTEGER) FROM head
    UNION ALL
    SELECT coalesce(h.document_id, d.document_id), 'one invoice for each document', 'invoice', 1, count(h.document_id)
    FROM head h FULL JOIN (SELECT document_id FROM documents WHERE run_id = $run_id) d USING (document_id)
    GROUP BY ALL
)
SELECT document_id, rule, place, expected, found
FROM rules WHERE expected IS DISTINCT FROM found
ORDER BY document_id, rule, place
