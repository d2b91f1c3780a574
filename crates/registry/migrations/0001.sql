-- Times are seconds since 1970. Structured values that nobody searches by are JSON.

CREATE TABLE tenants (
    name       TEXT PRIMARY KEY,
    -- Random: a tenant that is deleted and made anew under its old name is another one.
    uid        BLOB NOT NULL,
    created_at INTEGER NOT NULL,
    weight     INTEGER NOT NULL,
    quota      TEXT NOT NULL,
    recording  INTEGER NOT NULL
) STRICT;

CREATE TABLE keys (
    number     INTEGER PRIMARY KEY,
    id         TEXT NOT NULL UNIQUE,
    -- SHA-256 of the token; the token itself is nowhere.
    hash       BLOB NOT NULL UNIQUE,
    -- NULL for an operator's.
    tenant     TEXT REFERENCES tenants (name) ON DELETE CASCADE,
    role       TEXT NOT NULL,
    name       TEXT NOT NULL,
    scope      TEXT NOT NULL,
    quota      TEXT NOT NULL,
    created_at INTEGER NOT NULL,
    expires_at INTEGER,
    revoked_at INTEGER
) STRICT;
CREATE INDEX keys_by_tenant ON keys (tenant);

-- Kept per tenant, so that nobody learns from the time a deployment takes what others have deployed.
CREATE TABLE sources (
    tenant TEXT NOT NULL REFERENCES tenants (name) ON DELETE CASCADE,
    -- SHA-256 of the bytes, as hex.
    digest TEXT NOT NULL,
    bytes  BLOB NOT NULL,
    UNIQUE (tenant, digest)
) STRICT;

CREATE TABLE servers (
    tenant     TEXT NOT NULL REFERENCES tenants (name) ON DELETE CASCADE,
    name       TEXT NOT NULL,
    created_at INTEGER NOT NULL,
    current    TEXT,
    PRIMARY KEY (tenant, name),
    FOREIGN KEY (tenant, name, current) REFERENCES deployments (tenant, server, id) DEFERRABLE INITIALLY DEFERRED
) STRICT;

CREATE TABLE deployments (
    -- In order of making.
    number     INTEGER PRIMARY KEY AUTOINCREMENT,
    tenant     TEXT NOT NULL,
    server     TEXT NOT NULL,
    id         TEXT NOT NULL,
    created_at INTEGER NOT NULL,
    created_by TEXT NOT NULL,
    digest     TEXT NOT NULL,
    size       INTEGER NOT NULL,
    manifest   TEXT NOT NULL,
    surface    TEXT NOT NULL,
    UNIQUE (tenant, server, id),
    FOREIGN KEY (tenant, server) REFERENCES servers (tenant, name) ON DELETE CASCADE,
    FOREIGN KEY (tenant, digest) REFERENCES sources (tenant, digest) DEFERRABLE INITIALLY DEFERRED
) STRICT;
CREATE INDEX deployments_by_source ON deployments (tenant, digest);

CREATE TABLE sessions (
    id               TEXT PRIMARY KEY,
    tenant           TEXT NOT NULL REFERENCES tenants (name) ON DELETE CASCADE,
    server           TEXT,
    owner            TEXT NOT NULL,
    protocol_version TEXT NOT NULL,
    capabilities     TEXT NOT NULL,
    created_at       INTEGER NOT NULL,
    used_at          INTEGER NOT NULL,
    FOREIGN KEY (tenant, server) REFERENCES servers (tenant, name) ON DELETE CASCADE
) STRICT, WITHOUT ROWID;
CREATE INDEX sessions_by_server ON sessions (tenant, server);

-- Random keys of the host itself, by what they are for.
CREATE TABLE host_keys (
    purpose TEXT PRIMARY KEY,
    bytes   BLOB NOT NULL
) STRICT;

-- Changes that are committed, but perhaps not in the audit log yet.
CREATE TABLE outbox (
    number INTEGER PRIMARY KEY AUTOINCREMENT,
    id     TEXT NOT NULL UNIQUE,
    event  TEXT NOT NULL
) STRICT;

-- The last line of the audit log that is known to be on the disk.
CREATE TABLE audit_head (
    only_one INTEGER PRIMARY KEY CHECK (only_one = 1),
    seq      INTEGER NOT NULL,
    hash     BLOB NOT NULL
) STRICT;
INSERT INTO audit_head VALUES (1, 0, zeroblob(32));
