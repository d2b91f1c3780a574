-- Where the audit log begins: in which file, and behind which line, when older ones were let go of.
CREATE TABLE audit_begin (
    only_one INTEGER PRIMARY KEY CHECK (only_one = 1),
    segment  INTEGER NOT NULL,
    seq      INTEGER NOT NULL,
    hash     BLOB NOT NULL
) STRICT;
INSERT INTO audit_begin VALUES (1, 1, 0, zeroblob(32));

-- Where it will begin: the log has announced that. In the order of the files.
CREATE TABLE audit_announced (
    segment      INTEGER PRIMARY KEY,
    seq          INTEGER NOT NULL,
    hash         BLOB NOT NULL,
    announced_at INTEGER NOT NULL
) STRICT;
