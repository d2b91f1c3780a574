-- A data directory as version 6 of the schema has it, with the master key 1 of the tests. `acme` has two servers that are
-- bound to `API_TOKEN` and one of them to the provider `github`; nothing is bound to `UNUSED` and `unused`.
PRAGMA foreign_keys = OFF;
BEGIN TRANSACTION;
CREATE TABLE audit_announced (
    segment      INTEGER PRIMARY KEY,
    seq          INTEGER NOT NULL,
    hash         BLOB NOT NULL,
    announced_at INTEGER NOT NULL
) STRICT;
CREATE TABLE audit_begin (
    only_one INTEGER PRIMARY KEY CHECK (only_one = 1),
    segment  INTEGER NOT NULL,
    seq      INTEGER NOT NULL,
    hash     BLOB NOT NULL
) STRICT;
INSERT INTO "audit_begin" VALUES(1,1,0,X'0000000000000000000000000000000000000000000000000000000000000000');
CREATE TABLE audit_head (
    only_one INTEGER PRIMARY KEY CHECK (only_one = 1),
    seq      INTEGER NOT NULL,
    hash     BLOB NOT NULL
) STRICT;
INSERT INTO "audit_head" VALUES(1,0,X'0000000000000000000000000000000000000000000000000000000000000000');
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
INSERT INTO "connections" VALUES('acme','github','user:key-f468ee0caaed669e',1,1,X'96C14C8B7865C3B5B1435BC198F60C1E9E0A998B5B620A3F2AF5696697B369079DE877FD224D016F9D6785E2921F797C3EAD0D7C1C02021C636E',NULL,1794962407,1794962407);
INSERT INTO "connections" VALUES('acme','github','user:oauth:ann',1,1,X'A80F9C3B231501ABB170205D3AC8C8C23E3B18034E22A76955BBB0264638D53CF8C8899770EFBE7DCE17DFB3C5DAE7875697EDE4C318F802A3EC',NULL,1794962407,1794962407);
INSERT INTO "connections" VALUES('acme','github','tenant',1,1,X'EEE34A7EB5DCD927EC69DED98022A8A5A8FB1AAD59C8ED2CDDFF88D3750621BC0DCBA6EC2F98A473923142E0DE8FB06D4DF74BAB205CBA48AB6F',NULL,1794962407,1794962407);
CREATE TABLE deployment_files (
    deployment INTEGER NOT NULL REFERENCES deployments (number) ON DELETE CASCADE,
    tenant     TEXT NOT NULL,
    digest     TEXT NOT NULL,
    PRIMARY KEY (deployment, digest),
    FOREIGN KEY (tenant, digest) REFERENCES files (tenant, digest) DEFERRABLE INITIALLY DEFERRED
) STRICT, WITHOUT ROWID;
INSERT INTO "deployment_files" VALUES(1,'acme','280f04157c397f661f731d007d6a2a5de843146c3c20bcb61b612765d313ecda');
INSERT INTO "deployment_files" VALUES(3,'acme','280f04157c397f661f731d007d6a2a5de843146c3c20bcb61b612765d313ecda');
INSERT INTO "deployment_files" VALUES(2,'acme','5bd61667d33a3b808d64c5ea6b9d4dded9c87db9d24f6f3fd59be4029b47aadc');
INSERT INTO "deployment_files" VALUES(1,'acme','9aeb8d59b4d483ca6298e9a450fbf37dfd2b4c63990135ab1d040d76314087ec');
INSERT INTO "deployment_files" VALUES(2,'acme','9aeb8d59b4d483ca6298e9a450fbf37dfd2b4c63990135ab1d040d76314087ec');
INSERT INTO "deployment_files" VALUES(3,'acme','e8925dc0cb03fb5277e176636e6bccbfb595d6ac7c92f3eb31620ae1a8b47f78');
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
    pending    INTEGER NOT NULL, layer TEXT,
    UNIQUE (tenant, server, id),
    FOREIGN KEY (tenant, server) REFERENCES servers (tenant, name) ON DELETE CASCADE
) STRICT;
INSERT INTO "deployments" VALUES(1,'acme','prices','b82be1c642ea48b155732237da12b1c5',1794962407,'key-of-the-test','9aeb8d59b4d483ca6298e9a450fbf37dfd2b4c63990135ab1d040d76314087ec',413,'{"boundary":"call","egress":["*.example.org","api.example.com","api.github.com"],"endpoints":[],"entry":"server.js","files":{"bulkhead.toml":{"sha256":"280f04157c397f661f731d007d6a2a5de843146c3c20bcb61b612765d313ecda","size":396},"server.js":{"sha256":"9aeb8d59b4d483ca6298e9a450fbf37dfd2b4c63990135ab1d040d76314087ec","size":17}},"jit":false,"limits":{"argument_depth":64,"argument_kb":1024,"cpu_ms":50,"cpu_percent":50,"host_calls":64,"init_cpu_ms":500,"init_time_ms":10000,"log_kb":64,"memory_mb":128,"processes":50,"result_kb":1024,"scratch_mb":32,"source_kb":4096,"time_ms":30000},"secrets":[{"asked":false,"format":"Bearer {}","hosts":["*.example.org","api.example.com"],"name":"API_TOKEN","place":{"header":"authorization"}},{"asked":false,"format":"{}","hosts":["api.github.com"],"name":"API_TOKEN","place":{"query":"key"}},{"asked":false,"connection":"github","format":"{}","hosts":["api.github.com"],"name":"GITHUB","place":{"header":"authorization"}}],"server":"prices","step":{"accepts":null,"number":1,"previous":null},"surface":{"prompts":[],"resources":[],"templates":[],"tools":[]},"version":1,"wall":"isolate"}','{"hmac":{"key":"key-f468ee0caaed669e","mac":"22f71e170abeb4df87b132d9f2ad439f82317454a396e622f7a3bc28fe5574cc"},"lock":"b9e60b754c6e15555f9b562c032f2902e8142cee4df00eeef50e03b847d7c3cb","publishers":[]}',NULL,'{"tools":[]}',0,NULL);
INSERT INTO "deployments" VALUES(2,'acme','bills','d9481ff96f31786bcba66c51c80b0ce9',1794962407,'key-of-the-test','9aeb8d59b4d483ca6298e9a450fbf37dfd2b4c63990135ab1d040d76314087ec',162,'{"boundary":"call","egress":["bills.example.com"],"endpoints":[],"entry":"server.js","files":{"bulkhead.toml":{"sha256":"5bd61667d33a3b808d64c5ea6b9d4dded9c87db9d24f6f3fd59be4029b47aadc","size":145},"server.js":{"sha256":"9aeb8d59b4d483ca6298e9a450fbf37dfd2b4c63990135ab1d040d76314087ec","size":17}},"jit":false,"limits":{"argument_depth":64,"argument_kb":1024,"cpu_ms":50,"cpu_percent":50,"host_calls":64,"init_cpu_ms":500,"init_time_ms":10000,"log_kb":64,"memory_mb":128,"processes":50,"result_kb":1024,"scratch_mb":32,"source_kb":4096,"time_ms":30000},"secrets":[{"asked":false,"format":"{}","hosts":["bills.example.com"],"name":"API_TOKEN","place":{"header":"x-key"}}],"server":"bills","step":{"accepts":null,"number":1,"previous":null},"surface":{"prompts":[],"resources":[],"templates":[],"tools":[]},"version":1,"wall":"isolate"}','{"hmac":{"key":"key-f468ee0caaed669e","mac":"ff6f25c19b3b031fb0d3f1e27accf5cab6ebb9cce5da9ff25603a0d32be61c01"},"lock":"3783d57c416d1f5f1f78ee5207e503ee6a1a7fd27e9c740633037e2c65835cd8","publishers":[]}',NULL,'{"tools":[]}',0,NULL);
INSERT INTO "deployments" VALUES(3,'acme','prices','51d7f017a3a449f2f2fb2592ea6feec2',1794962407,'key-of-the-test','e8925dc0cb03fb5277e176636e6bccbfb595d6ac7c92f3eb31620ae1a8b47f78',414,'{"boundary":"call","egress":["*.example.org","api.example.com","api.github.com"],"endpoints":[],"entry":"server.js","files":{"bulkhead.toml":{"sha256":"280f04157c397f661f731d007d6a2a5de843146c3c20bcb61b612765d313ecda","size":396},"server.js":{"sha256":"e8925dc0cb03fb5277e176636e6bccbfb595d6ac7c92f3eb31620ae1a8b47f78","size":18}},"jit":false,"limits":{"argument_depth":64,"argument_kb":1024,"cpu_ms":50,"cpu_percent":50,"host_calls":64,"init_cpu_ms":500,"init_time_ms":10000,"log_kb":64,"memory_mb":128,"processes":50,"result_kb":1024,"scratch_mb":32,"source_kb":4096,"time_ms":30000},"secrets":[{"asked":false,"format":"Bearer {}","hosts":["*.example.org","api.example.com"],"name":"API_TOKEN","place":{"header":"authorization"}},{"asked":false,"format":"{}","hosts":["api.github.com"],"name":"API_TOKEN","place":{"query":"key"}},{"asked":false,"connection":"github","format":"{}","hosts":["api.github.com"],"name":"GITHUB","place":{"header":"authorization"}}],"server":"prices","step":{"accepts":null,"number":2,"previous":"b9e60b754c6e15555f9b562c032f2902e8142cee4df00eeef50e03b847d7c3cb"},"surface":{"prompts":[],"resources":[],"templates":[],"tools":[]},"version":1,"wall":"isolate"}','{"hmac":{"key":"key-f468ee0caaed669e","mac":"4b13cf390ad926f31b60568b494fa6e27747330a8b4d47f941e268cc45a5b126"},"lock":"56b0a250fa7ca2385b710845d12412d5c0dd15c108f44af5e6119ed4e360dcf8","publishers":[]}',NULL,'{"tools":[]}',1,NULL);
CREATE TABLE files (
    tenant TEXT NOT NULL REFERENCES tenants (name) ON DELETE CASCADE,
    -- SHA-256 of the bytes, as hex.
    digest TEXT NOT NULL,
    bytes  BLOB NOT NULL,
    UNIQUE (tenant, digest)
) STRICT;
INSERT INTO "files" VALUES('acme','280f04157c397f661f731d007d6a2a5de843146c3c20bcb61b612765d313ecda',X'6E616D65203D2022707269636573220A656E747279203D20227365727665722E6A73220A656772657373203D205B226170692E6578616D706C652E636F6D222C20222A2E6578616D706C652E6F7267222C20226170692E6769746875622E636F6D225D0A5B5B736563726574735D5D0A6E616D65203D20224150495F544F4B454E220A686F737473203D205B226170692E6578616D706C652E636F6D222C20222A2E6578616D706C652E6F7267225D0A686561646572203D2022617574686F72697A6174696F6E220A666F726D6174203D2022426561726572207B7D220A5B5B736563726574735D5D0A6E616D65203D20224150495F544F4B454E220A686F737473203D205B226170692E6769746875622E636F6D225D0A7175657279203D20226B6579220A5B5B736563726574735D5D0A6E616D65203D2022474954485542220A686F737473203D205B226170692E6769746875622E636F6D225D0A686561646572203D2022617574686F72697A6174696F6E220A636F6E6E656374696F6E203D2022676974687562220A');
INSERT INTO "files" VALUES('acme','9aeb8d59b4d483ca6298e9a450fbf37dfd2b4c63990135ab1d040d76314087ec',X'6578706F72742064656661756C74207B7D');
INSERT INTO "files" VALUES('acme','5bd61667d33a3b808d64c5ea6b9d4dded9c87db9d24f6f3fd59be4029b47aadc',X'6E616D65203D2022707269636573220A656E747279203D20227365727665722E6A73220A656772657373203D205B2262696C6C732E6578616D706C652E636F6D225D0A5B5B736563726574735D5D0A6E616D65203D20224150495F544F4B454E220A686F737473203D205B2262696C6C732E6578616D706C652E636F6D225D0A686561646572203D2022782D6B6579220A');
INSERT INTO "files" VALUES('acme','e8925dc0cb03fb5277e176636e6bccbfb595d6ac7c92f3eb31620ae1a8b47f78',X'6578706F72742064656661756C74207B207D');
CREATE TABLE host_keys (
    purpose TEXT PRIMARY KEY,
    bytes   BLOB NOT NULL
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
INSERT INTO "keys" VALUES(1,'key-00904bf9cf084115',X'D4146CAD9AAE60C60747F033A1C4D499C79E06C2EEF0996B11D5194BCE6961B6',NULL,'operator','operator','{"servers":null,"tools":null}','{"requests_per_s":null,"burst":null,"concurrent":null,"cpu_s_per_min":null,"egress_bytes_per_min":null}',1794962407,NULL,NULL);
INSERT INTO "keys" VALUES(2,'key-883bee82734ae232',X'CEC452855E10ADCCD0AF2AD38321B6E16709D9634CEDD203606281DE192F43BE','acme','admin','admin','{"servers":null,"tools":null}','{"requests_per_s":null,"burst":null,"concurrent":null,"cpu_s_per_min":null,"egress_bytes_per_min":null}',1794962407,NULL,NULL);
INSERT INTO "keys" VALUES(3,'key-e97e983bbca2ac8f',X'C295E8AB8AA8E4E7E2DA24B96369C006920AB814BD83351FC4593950DF0ACB10','acme','deploy','deploy','{"servers":null,"tools":null}','{"requests_per_s":null,"burst":null,"concurrent":null,"cpu_s_per_min":null,"egress_bytes_per_min":null}',1794962407,NULL,NULL);
INSERT INTO "keys" VALUES(4,'key-38892280c06eb1fe',X'518C5A1B3F252740E751047ABCE3A465F994FA43528D1DB0E00BCF2D06D283AD','acme','call','call','{"servers":null,"tools":null}','{"requests_per_s":null,"burst":null,"concurrent":null,"cpu_s_per_min":null,"egress_bytes_per_min":null}',1794962407,NULL,NULL);
INSERT INTO "keys" VALUES(5,'key-fb4c24dbd1aa9284',X'C33DCCA59AFC7FB52FB0C08CB634C390B3B6098A4CFAAD359B0A0BD952372AC9','other','admin','admin','{"servers":null,"tools":null}','{"requests_per_s":null,"burst":null,"concurrent":null,"cpu_s_per_min":null,"egress_bytes_per_min":null}',1794962407,NULL,NULL);
INSERT INTO "keys" VALUES(6,'key-9a655664c9d453f7',X'2591CD7507939364775AAA3290D03336E4E84612A7C7AD263E3F9170C7F0E1D0','other','deploy','deploy','{"servers":null,"tools":null}','{"requests_per_s":null,"burst":null,"concurrent":null,"cpu_s_per_min":null,"egress_bytes_per_min":null}',1794962407,NULL,NULL);
INSERT INTO "keys" VALUES(7,'key-d8b5237003a907ea',X'50E9B5220C8684077DC06C073A71F3A1A06AE1992C532055E6A9C72FD5498CE3','other','call','call','{"servers":null,"tools":null}','{"requests_per_s":null,"burst":null,"concurrent":null,"cpu_s_per_min":null,"egress_bytes_per_min":null}',1794962407,NULL,NULL);
INSERT INTO "keys" VALUES(8,'key-f468ee0caaed669e',X'893D3E6F55AC6B8D4F972CAB1A6F4006B40B0EFFA7E5A3F2106E6EAAE7271532','acme','deploy','ci','{"servers":null,"tools":null}','{"requests_per_s":null,"burst":null,"concurrent":null,"cpu_s_per_min":null,"egress_bytes_per_min":null}',1794962407,NULL,NULL);
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
CREATE TABLE outbox (
    number INTEGER PRIMARY KEY AUTOINCREMENT,
    id     TEXT NOT NULL UNIQUE,
    event  TEXT NOT NULL
) STRICT;
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
INSERT INTO "providers" VALUES('acme','github',1,1,'{"client_id":"one"}',X'8B70E7C43CB2896AA0F0A3A2273D1CC8F1B5BC02F8499AC76BBD6EBED7B3DC7153BE8E3AE20987FD3FD23158B9AD95C633F96FC80404',1794962407,1794962407);
INSERT INTO "providers" VALUES('acme','unused',1,1,'{"client_id":"two"}',X'F7F187311AD9668D762FC57801C86028B1489984131B309CF49ECC8568BCBB431BBE21A12808D253D3',1794962407,1794962407);
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
INSERT INTO "secrets" VALUES('acme','API_TOKEN',1,1,X'34B7C19A92DF6EF581A5624E07F3E113EBCBC18C63F3960F3C2AF62FA1E4CC2B08E3C13C104F68196B774FED1B56884F71D45447579C92A38CC0A186AFC8',1794962407,1794962407);
INSERT INTO "secrets" VALUES('acme','UNUSED',1,1,X'F8019F01E2BD33B8A3775B8991507E33E10E72DA4E49F06005BB850CB57908ABAD9FE4112820C8728F3F3D6DE7D59C7DDC821FE78D7FEF13C1D3E9',1794962407,1794962407);
INSERT INTO "secrets" VALUES('other','API_TOKEN',1,1,X'8A2B7FE8042509759FCF036AAC39775E07FC38BD7ADD712C0CF7D250AD50082BB2285E1017F75C2B078DB2BCE1CE9AC9FBA8F912BB4A63CDC3F497E8DAFC',1794962407,1794962407);
CREATE TABLE servers (
    tenant     TEXT NOT NULL REFERENCES tenants (name) ON DELETE CASCADE,
    name       TEXT NOT NULL,
    created_at INTEGER NOT NULL,
    current    TEXT, step INTEGER NOT NULL DEFAULT 0, quarantine TEXT,
    PRIMARY KEY (tenant, name),
    FOREIGN KEY (tenant, name, current) REFERENCES deployments (tenant, server, id) DEFERRABLE INITIALLY DEFERRED
) STRICT;
INSERT INTO "servers" VALUES('acme','prices',1794962407,'b82be1c642ea48b155732237da12b1c5',1,NULL);
INSERT INTO "servers" VALUES('acme','bills',1794962407,'d9481ff96f31786bcba66c51c80b0ce9',1,NULL);
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
INSERT INTO "sessions" VALUES('one','acme',NULL,'oauth:ann','2025-06-18','{}',1,1);
INSERT INTO "sessions" VALUES('two','acme',NULL,'key-f468ee0caaed669e','2025-06-18','{}',1,1);
CREATE TABLE tenant_keys (
    tenant  TEXT PRIMARY KEY REFERENCES tenants (name) ON DELETE CASCADE,
    -- Counts its rotations.
    version INTEGER NOT NULL,
    -- Id of the master key that opens it.
    master  TEXT NOT NULL,
    wrapped BLOB NOT NULL
) STRICT;
INSERT INTO "tenant_keys" VALUES('acme',1,'e46410b1eb574495',X'EDA2A1E250595712162C1976EF0EE2FB93D8DA12E2C0C1FEB2B1C78F2CC09D87F6DB1BE01AFFD83490BC77CBB741C39CCC86E5A6DFCA362764ECD591441CCC9BD7706698C33544EA');
INSERT INTO "tenant_keys" VALUES('other',1,'e46410b1eb574495',X'02C1C8A1E592C4FFAAC9BDF5431DD94FE189C64AA97CA41D9389F21D5A29EC939B3E62B61C3FACE4B631BBA463A2F533EA4BE2A5EE4FE64C62E2CBD19BE9622074374AF969C6A335');
CREATE TABLE tenants (
    name       TEXT PRIMARY KEY,
    -- Random: a tenant that is deleted and made anew under its old name is another one.
    uid        BLOB NOT NULL,
    created_at INTEGER NOT NULL,
    weight     INTEGER NOT NULL,
    quota      TEXT NOT NULL,
    recording  INTEGER NOT NULL
, step INTEGER NOT NULL DEFAULT 0, approval INTEGER NOT NULL DEFAULT 0) STRICT;
INSERT INTO "tenants" VALUES('acme',X'0F66E6665F2B3061C46ED347FD09B745',1794962407,1,'{"requests_per_s":null,"burst":null,"concurrent":null,"cpu_s_per_min":null,"egress_bytes_per_min":null}',0,0,0);
INSERT INTO "tenants" VALUES('other',X'F5B6BD9BE29AD8927D5E95465F39F2F5',1794962407,1,'{"requests_per_s":null,"burst":null,"concurrent":null,"cpu_s_per_min":null,"egress_bytes_per_min":null}',0,0,0);
CREATE INDEX keys_by_tenant ON keys (tenant);
CREATE INDEX sessions_by_server ON sessions (tenant, server);
CREATE INDEX deployment_files_by_file ON deployment_files (tenant, digest);
CREATE INDEX deployments_by_layer ON deployments (tenant, layer) WHERE layer IS NOT NULL;
CREATE INDEX living_keys_by_tenant ON keys (tenant) WHERE revoked_at IS NULL;
DELETE FROM "sqlite_sequence";
INSERT INTO "sqlite_sequence" VALUES('outbox',15);
INSERT INTO "sqlite_sequence" VALUES('deployments',3);
COMMIT;
PRAGMA user_version = 6;
