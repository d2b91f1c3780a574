-- A token's subject is `oauth:ISSUER#SUB` from here on: two issuers may give the same `sub` to two people. Nobody knows which
-- issuer the rows from before belong to, so their owners connect again.
INSERT INTO outbox (id, event)
    SELECT lower(hex(randomblob(12))), json_object('tenant', tenant, 'actor', 'host', 'action', 'connection.remove',
        'subject', provider, 'detail', json_object('subject', subject, 'reason', 'its issuer is not known'))
    FROM connections WHERE subject LIKE 'user:oauth:%';
DELETE FROM connections WHERE subject LIKE 'user:oauth:%';
DELETE FROM sessions WHERE owner LIKE 'oauth:%';
