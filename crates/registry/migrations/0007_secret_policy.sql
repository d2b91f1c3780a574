-- Which servers may use a secret or a provider, and to which hosts it may go: JSON, `{"server": ["host"]}`. It is sealed with
-- the value. NULL in rows from before; the host gives those a policy, once, when it has its master key.
ALTER TABLE secrets ADD COLUMN policy TEXT;
ALTER TABLE providers ADD COLUMN policy TEXT;
