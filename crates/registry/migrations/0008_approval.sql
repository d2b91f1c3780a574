-- Id of the key that made a key, or the subject of a token; `host` for those that came with the data directory or the tenant.
ALTER TABLE keys ADD COLUMN made_by TEXT NOT NULL DEFAULT 'host';
-- Of keys from before, only the first three of a tenant are known to come with it. The tenant's first admin could have made
-- all others, so they count as made by that key; so do operators' keys for the first operator.
UPDATE keys SET made_by = coalesce(
    (SELECT id FROM keys AS first WHERE first.tenant IS keys.tenant AND first.role IN ('admin', 'operator')
        ORDER BY number LIMIT 1),
    'host');
UPDATE keys SET made_by = 'host' WHERE made_by = id OR tenant IS NOT NULL AND number IN (
    SELECT number FROM (SELECT number, row_number() OVER (PARTITION BY tenant ORDER BY number) AS place FROM keys)
    WHERE place <= 3);

-- Who proposed what waits for a second key, and for which step of its server.
ALTER TABLE deployments ADD COLUMN proposed_by TEXT;
ALTER TABLE deployments ADD COLUMN proposed_step INTEGER;
UPDATE deployments SET proposed_by = created_by, proposed_step = json_extract(lock, '$.step.number') WHERE pending;
