-- Deployments are signed from here on. Those from before are not, and nothing could verify them: their servers stay, but
-- have no code until they are deployed again.

UPDATE servers SET current = NULL;
DROP TABLE deployments;
DROP TABLE sources;

-- Counts the changes of what a server runs; a lock is made for one of them.
ALTER TABLE servers ADD COLUMN step INTEGER NOT NULL DEFAULT 0;
-- Why nobody may call it, if so.
ALTER TABLE servers ADD COLUMN quarantine TEXT;
-- No server that was removed came further than this, so a lock of an earlier life of a server is good for nothing.
ALTER TABLE tenants ADD COLUMN step INTEGER NOT NULL DEFAULT 0;
-- Whether a change of what a server shows or may use needs the agreement of a second key.
ALTER TABLE tenants ADD COLUMN approval INTEGER NOT NULL DEFAULT 0;

-- Kept per tenant, so that nobody learns from the time a deployment takes what others have deployed.
CREATE TABLE files (
    tenant TEXT NOT NULL REFERENCES tenants (name) ON DELETE CASCADE,
    -- SHA-256 of the bytes, as hex.
    digest TEXT NOT NULL,
    bytes  BLOB NOT NULL,
    UNIQUE (tenant, digest)
) STRICT;

CREATE TABLE deployments (
    -- In order of making.
    number     INTEGER PRIMARY KEY AUTOINCREMENT,
    tenant     TEXT NOT NULL,
    server     TEXT NOT NULL,
    id         TEXT NOT NULL,
    created_at INTEGER NOT NULL,
    created_by TEXT NOT NULL,
    -- SHA-256 of the code, as hex.
    digest     TEXT NOT NULL,
    -- Bytes of all files.
    size       INTEGER NOT NULL,
    -- Canonical JSON, with the seal of whoever deployed it and, where that was needed, of whoever agreed.
    lock       TEXT NOT NULL,
    seal       TEXT NOT NULL,
    approval   TEXT,
    -- As the code showed it, in its own order.
    surface    TEXT NOT NULL,
    -- 1 while it waits for somebody to agree.
    pending    INTEGER NOT NULL,
    UNIQUE (tenant, server, id),
    FOREIGN KEY (tenant, server) REFERENCES servers (tenant, name) ON DELETE CASCADE
) STRICT;

CREATE TABLE deployment_files (
    deployment INTEGER NOT NULL REFERENCES deployments (number) ON DELETE CASCADE,
    tenant     TEXT NOT NULL,
    digest     TEXT NOT NULL,
    PRIMARY KEY (deployment, digest),
    FOREIGN KEY (tenant, digest) REFERENCES files (tenant, digest) DEFERRABLE INITIALLY DEFERRED
) STRICT, WITHOUT ROWID;
CREATE INDEX deployment_files_by_file ON deployment_files (tenant, digest);
