-- Every rule of an invoice's arithmetic that the exported tables break, one row each; none is what is wanted.
-- Written against the columns' descriptions alone, in whole minor units, so that it shares nothing with the code
-- that computed them. `ties` go away from zero; a discount is shared by largest remainder, ties to the first.
-- A bucket is a category and a rate of lines; each tax on it is a row, of which the first is counted.
-- Reads the views or tables invoices, line_items, tax_lines and instalments; $run_id is the run.
WITH
head AS (
    SELECT document_id, rounding_policy, minor_units, document_discount_percent,
           whole(lines_total, minor_units) AS lines_total, whole(document_discount, minor_units) AS discount,
           whole(net_total, minor_units) AS net, whole(tax_total, minor_units) AS tax,
           whole(gross_total, minor_units) AS gross, whole(prepaid, minor_units) AS prepaid,
           whole(amount_due, minor_units) AS due, document_charge_percent, withholding_percent,
           whole(document_charge, minor_units) AS charge, whole(shipping, minor_units) AS shipping,
           whole(withholding, minor_units) AS withheld, whole(tip, minor_units) AS tip,
           whole(rounding, minor_units) AS coins, whole(credit_used, minor_units) AS used,
           whole(credit_before, minor_units) AS credit, whole(credit_left, minor_units) AS credit_left
    FROM invoices WHERE run_id = $run_id
),
line AS (
    SELECT document_id, line_number, kind, parent, counted, quantity, unit_price, discount_percent, tax_category,
           tax_rate, minor_units, whole(line_total, minor_units) AS line_total,
           whole(discount_amount, minor_units) AS discount, whole(net_amount, minor_units) AS net,
           whole(tax_amount, minor_units) AS tax, whole(document_discount_share, minor_units) AS share,
           whole(document_charge_share, minor_units) AS charge_share, coalesce(factor, 1) AS factor,
           coalesce(days, 1) AS days, coalesce(days_of, 1) AS days_of, meter_from, meter_to, included,
           whole(contract_total, minor_units) AS contract, progress_percent, previous_percent,
           whole(principal, minor_units) AS principal, interest_rate
    FROM line_items WHERE run_id = $run_id
),
tax_line AS (
    SELECT document_id, CAST(row_key AS INTEGER) AS number, category, rate, line_rate, counted, minor_units,
           whole(line_total, minor_units) AS line_total, whole(discount_share, minor_units) AS share,
           whole(charge_share, minor_units) AS charge_share,
           whole(base, minor_units) AS base, whole(tax, minor_units) AS tax
    FROM tax_lines WHERE run_id = $run_id
),
bucket AS (SELECT * REPLACE (line_rate AS rate) FROM tax_line WHERE counted),
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
           h.discount AS amount, 'discount' AS what
    FROM bucket b JOIN head h USING (document_id)
    UNION ALL
    SELECT b.document_id, b.number, b.charge_share,
           share_floor(h.charge + h.shipping, b.line_total, h.lines_total),
           share_rest(h.charge + h.shipping, b.line_total, h.lines_total),
           h.charge + h.shipping, 'charge'
    FROM bucket b JOIN head h USING (document_id)
),
bucket_share AS (
    SELECT document_id, what, member, share, part + CASE WHEN place <= left_over THEN 1 ELSE 0 END AS expected
    FROM (SELECT *, row_number() OVER (PARTITION BY document_id, what ORDER BY rest DESC, member) AS place,
                 amount - sum(part) OVER (PARTITION BY document_id, what) AS left_over FROM bucket_floor)
),
line_floor AS (
    SELECT l.document_id, b.number, l.line_number AS member, l.share, b.share AS amount, 'discount' AS what,
           share_floor(b.share, l.net, b.line_total) AS part, share_rest(b.share, l.net, b.line_total) AS rest
    FROM line l
    JOIN head h USING (document_id)
    JOIN bucket b ON b.document_id = l.document_id AND b.category = l.tax_category AND b.rate = l.tax_rate
    WHERE l.counted AND h.rounding_policy = 'per_line'
    UNION ALL
    SELECT l.document_id, b.number, l.line_number, l.charge_share, b.charge_share, 'charge',
           share_floor(b.charge_share, l.net, b.line_total), share_rest(b.charge_share, l.net, b.line_total)
    FROM line l
    JOIN head h USING (document_id)
    JOIN bucket b ON b.document_id = l.document_id AND b.category = l.tax_category AND b.rate = l.tax_rate
    WHERE l.counted AND h.rounding_policy = 'per_line'
),
line_share AS (
    SELECT document_id, what, member, share, part + CASE WHEN place <= left_over THEN 1 ELSE 0 END AS expected
    FROM (SELECT *, row_number() OVER (PARTITION BY document_id, what, number ORDER BY rest DESC, member) AS place,
                 amount - sum(part) OVER (PARTITION BY document_id, what, number) AS left_over FROM line_floor)
),
line_tax AS (
    SELECT l.document_id, l.line_number, t.number, percent_of(l.net - l.share + l.charge_share, t.rate) AS tax
    FROM line l
    JOIN head h USING (document_id)
    JOIN tax_line t ON t.document_id = l.document_id AND t.category = l.tax_category AND t.line_rate = l.tax_rate
    WHERE l.counted AND h.rounding_policy = 'per_line'
),
rules AS (
    SELECT document_id, 'line_total = quantity × unit_price × factor × days ÷ days_of' AS rule,
           'line ' || line_number AS place,
           ratio(nano(quantity) * nano(unit_price) * hundredths(factor) * days, 20 - minor_units, days_of) AS expected,
           line_total AS found
    FROM line WHERE unit_price IS NOT NULL
    UNION ALL
    SELECT document_id, 'a factor has two decimal places', 'line ' || line_number, nano(factor),
           hundredths(factor) * 10000000 FROM line
    UNION ALL
    SELECT document_id, 'line_total = contract_total × progress_percent − contract_total × previous_percent',
           'line ' || line_number,
           percent_of(contract, progress_percent) - percent_of(contract, previous_percent), line_total
    FROM line WHERE contract IS NOT NULL
    UNION ALL
    SELECT document_id, 'line_total = principal × interest_rate × days ÷ days_of', 'line ' || line_number,
           ratio(principal * nano(interest_rate) * days, 11, days_of), line_total
    FROM line WHERE principal IS NOT NULL
    UNION ALL
    SELECT document_id, 'quantity = meter_to − meter_from', 'line ' || line_number,
           nano(meter_to) - nano(meter_from), nano(quantity)
    FROM line WHERE meter_to IS NOT NULL OR meter_from IS NOT NULL
    UNION ALL
    SELECT l.document_id, 'included = quantity of the item above', 'line ' || l.line_number,
           nano(p.quantity), nano(l.included)
    FROM line l LEFT JOIN line p ON p.document_id = l.document_id AND p.line_number = l.parent
    WHERE l.included IS NOT NULL OR l.kind = 'overage'
    UNION ALL
    SELECT l.document_id, 'a deposit or overage belongs to an item', 'line ' || l.line_number, 1,
           CAST(p.kind = 'item' AS INTEGER)
    FROM line l LEFT JOIN line p ON p.document_id = l.document_id AND p.line_number = l.parent
    WHERE l.kind IN ('deposit', 'overage')
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
    SELECT document_id, 'a line has a price, bands, a contract or a principal', 'line ' || line_number, 1, 0
    FROM line WHERE unit_price IS NULL AND contract IS NULL AND principal IS NULL AND kind <> 'tier_parent'
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
    SELECT document_id, 'document_charge = lines_total × document_charge_percent', 'invoice',
           percent_of(lines_total, document_charge_percent), charge
    FROM head WHERE document_charge_percent IS NOT NULL
    UNION ALL
    SELECT document_id, 'withholding = net_total × withholding_percent', 'invoice',
           percent_of(net, coalesce(withholding_percent, 0)), withheld FROM head
    UNION ALL
    SELECT document_id, 'credit_left = credit_before − credit_used', 'invoice', credit - used, credit_left
    FROM head WHERE credit IS NOT NULL OR credit_left IS NOT NULL
    UNION ALL
    SELECT h.document_id, 'amount_due = sum of the instalments', 'invoice', sum(whole(i.amount, i.minor_units)), h.due
    FROM head h JOIN instalments i ON i.document_id = h.document_id AND i.run_id = $run_id
    GROUP BY h.document_id, h.due
    UNION ALL
    SELECT coalesce(b.document_id, c.document_id), 'a bucket for each category and rate, with its lines'' sum',
           'bucket ' || coalesce(b.category, c.category) || ' ' || coalesce(b.rate, c.rate), c.net, b.line_total
    FROM bucket b FULL JOIN counted c
      ON c.document_id = b.document_id AND c.category = b.category AND c.rate = b.rate
    UNION ALL
    SELECT document_id, what || ' share by size, left-over units to the largest remainders', 'bucket ' || member,
           expected, share FROM bucket_share
    UNION ALL
    SELECT document_id, what || ' share by size within the bucket', 'line ' || member, expected, share
    FROM line_share
    UNION ALL
    SELECT document_id, 'base = line_total − discount_share + charge_share', 'bucket ' || number,
           line_total - share + charge_share, base FROM bucket
    UNION ALL
    SELECT t.document_id, 'a second tax has the base of the first', 'tax ' || t.number, 1, CAST(
           (t.line_total, t.share, t.charge_share, t.base) = (b.line_total, b.share, b.charge_share, b.base) AS INTEGER)
    FROM tax_line t LEFT JOIN bucket b
      ON b.document_id = t.document_id AND b.category = t.category AND b.rate = t.line_rate
    WHERE NOT t.counted
    UNION ALL
    SELECT document_id, 'the rates on a bucket add up to its lines'' rate', 'bucket ' || category || ' ' || line_rate,
           nano(line_rate), sum(nano(rate))::HUGEINT
    FROM tax_line GROUP BY document_id, category, line_rate
    UNION ALL
    SELECT t.document_id, 'tax = base × rate, rounded once (per_bucket)', 'tax ' || number,
           percent_of(t.base, t.rate), t.tax
    FROM tax_line t JOIN head h USING (document_id) WHERE h.rounding_policy = 'per_bucket'
    UNION ALL
    SELECT l.document_id, 'tax_amount = (net_amount − share + charge share) × rates (per_line)',
           'line ' || l.line_number, t.tax, l.tax
    FROM line l
    JOIN head h USING (document_id)
    LEFT JOIN (SELECT document_id, line_number, sum(tax)::HUGEINT AS tax FROM line_tax GROUP BY ALL) t
      ON t.document_id = l.document_id AND t.line_number = l.line_number
    WHERE h.rounding_policy = 'per_line' AND l.counted
    UNION ALL
    SELECT t.document_id, 'tax = sum of its lines'' taxes (per_line)', 'tax ' || t.number, l.tax, t.tax
    FROM tax_line t
    JOIN head h USING (document_id)
    LEFT JOIN (SELECT document_id, number, sum(tax)::HUGEINT AS tax FROM line_tax GROUP BY ALL) l
      ON l.document_id = t.document_id AND l.number = t.number
    WHERE h.rounding_policy = 'per_line'
    UNION ALL
    SELECT document_id, 'rounding_policy is a known one', 'invoice', 1, 0
    FROM head WHERE rounding_policy NOT IN ('per_line', 'per_bucket')
    UNION ALL
    SELECT document_id, 'net_total = lines_total − document_discount + document_charge + shipping', 'invoice',
           lines_total - discount + charge + shipping, net FROM head
    UNION ALL
    SELECT h.document_id, 'tax_total = sum of the buckets'' taxes', 'invoice',
           (SELECT sum(t.tax)::HUGEINT FROM tax_line t WHERE t.document_id = h.document_id), h.tax FROM head h
    UNION ALL
    SELECT document_id, 'gross_total = net_total + tax_total', 'invoice', net + tax, gross FROM head
    UNION ALL
    SELECT document_id, 'amount_due = gross_total − withholding + tip + rounding − credit_used − prepaid', 'invoice',
           gross - withheld + tip + coins - used - prepaid, due FROM head
    UNION ALL
    SELECT document_id, 'prepaid is in whole minor units', 'invoice', 1, CAST(prepaid IS NOT NULL AS INTEGER) FROM head
    UNION ALL
    SELECT document_id, 'rounding to coins moves less than one unit of the currency', 'invoice', 1,
           CAST(abs(coins) < power_of_ten(minor_units) OR coins = 0 AS INTEGER) FROM head
    UNION ALL
    SELECT coalesce(h.document_id, d.document_id), 'one invoice for each document', 'invoice', 1, count(h.document_id)
    FROM head h FULL JOIN (SELECT document_id FROM documents WHERE run_id = $run_id) d USING (document_id)
    GROUP BY ALL
)
SELECT document_id, rule, place, expected, found
FROM rules WHERE expected IS DISTINCT FROM found
ORDER BY document_id, rule, place
