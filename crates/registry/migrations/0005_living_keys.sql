-- Revoked keys stay, as who signed what must be known, and may be many: those that count are counted without them.
CREATE INDEX living_keys_by_tenant ON keys (tenant) WHERE revoked_at IS NULL;
