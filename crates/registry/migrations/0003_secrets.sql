-- Sealed values: XChaCha20-Poly1305, as nonce, ciphertext and tag. Each is bound to its place: what it is, the tenant and
-- its uid, its names and its versions. Somebody who writes to this file can destroy values, not move them.

-- One key for each tenant that has anything sealed, wrapped by the host's master key.
CREATE TABLE tenant_keys (
    tenant  TEXT PRIMARY KEY REFERENCES tenants (name) ON DELETE CASCADE,
    -- Counts its rotations.
    version INTEGER NOT NULL,
    -- Id of the master key that opens it.
    master  TEXT NOT NULL,
    wrapped BLOB NOT NULL
) STRICT;

CREATE TABLE secrets (
    tenant      TEXT NOT NULL REFERENCES tenant_keys (tenant) ON DELETE CASCADE,
    name        TEXT NOT NULL,
    -- Counts its values.
    version     INTEGER NOT NULL,
    key_version INTEGER NOT NULL,
    sealed      BLOB NOT NULL,
    created_at  INTEGER NOT NULL,
    updated_at  INTEGER NOT NULL,
    PRIMARY KEY (tenant, name)
) STRICT;

-- Where the tenant's users get tokens for upstreams.
CREATE TABLE providers (
    tenant      TEXT NOT NULL REFERENCES tenant_keys (tenant) ON DELETE CASCADE,
    name        TEXT NOT NULL,
    version     INTEGER NOT NULL,
    key_version INTEGER NOT NULL,
    -- JSON. It says where tokens are sent, so the client secret is bound to it.
    settings    TEXT NOT NULL,
    -- The client secret, or that there is none.
    sealed      BLOB NOT NULL,
    created_at  INTEGER NOT NULL,
    updated_at  INTEGER NOT NULL,
    PRIMARY KEY (tenant, name)
) STRICT;

CREATE TABLE connections (
    tenant      TEXT NOT NULL,
    provider    TEXT NOT NULL,
    -- Whose tokens they are.
    subject     TEXT NOT NULL,
    version     INTEGER NOT NULL,
    key_version INTEGER NOT NULL,
    -- The tokens, JSON.
    sealed      BLOB NOT NULL,
    expires_at  INTEGER,
    created_at  INTEGER NOT NULL,
    updated_at  INTEGER NOT NULL,
    PRIMARY KEY (tenant, provider, subject),
    FOREIGN KEY (tenant, provider) REFERENCES providers (tenant, name) ON DELETE CASCADE
) STRICT;
