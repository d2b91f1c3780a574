-- When a deployment was proposed, and who agreed when. Kept after it became current.
ALTER TABLE deployments ADD COLUMN proposed_at INTEGER;
ALTER TABLE deployments ADD COLUMN approved_by TEXT;
ALTER TABLE deployments ADD COLUMN approved_at INTEGER;
-- When callers last began to reach it; null for one that they never reached.
ALTER TABLE deployments ADD COLUMN activated_at INTEGER;
-- 1 when another deployment became current while this one waited: its proposal is void.
ALTER TABLE deployments ADD COLUMN stale INTEGER NOT NULL DEFAULT 0;

-- Of deployments from before, it is known that they ran, and not since when.
UPDATE deployments SET activated_at = created_at WHERE NOT pending OR id = (
    SELECT current FROM servers WHERE servers.tenant = deployments.tenant AND servers.name = deployments.server);
UPDATE deployments SET approved_by = json_extract(approval, '$.hmac.key') WHERE approval IS NOT NULL;
UPDATE deployments SET proposed_by = NULL, proposed_step = NULL WHERE NOT pending AND approval IS NULL;
UPDATE deployments SET pending = 0, stale = 1 WHERE pending AND proposed_step <= (
    SELECT step FROM servers WHERE servers.tenant = deployments.tenant AND servers.name = deployments.server);
