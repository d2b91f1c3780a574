-- Layers: the files of programs. They lie beside this file, as plain files; a layer is there when its row is.
CREATE TABLE layers (
    tenant     TEXT NOT NULL REFERENCES tenants (name) ON DELETE CASCADE,
    -- SHA-256 of the index, as hex.
    digest     TEXT NOT NULL,
    -- Bytes of all its files.
    size       INTEGER NOT NULL,
    -- Bytes that it takes of the disk, in whole blocks.
    disk       INTEGER NOT NULL,
    -- When it was last uploaded.
    created_at INTEGER NOT NULL,
    PRIMARY KEY (tenant, digest)
) STRICT;

-- NULL for what runs no program.
ALTER TABLE deployments ADD COLUMN layer TEXT;
CREATE INDEX deployments_by_layer ON deployments (tenant, layer) WHERE layer IS NOT NULL;
