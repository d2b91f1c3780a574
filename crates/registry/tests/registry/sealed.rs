//! Somebody who can read and write the files of the data directory learns no value, and cannot make one of another.

use crate::common::{Fresh, actor};
use crate::vault::{blob, database, files_with, get, master, set, tokens, unlocked, value};
use rusqlite::types::Value;
use serde_json::json;
use std::path::Path;

const SECRET: &str = "tok-8f2c1d7e9b";
const CLIENT_SECRET: &str = "cls-4b1a0d9c3e";
const TOKENS: &str = r#"{"access_token":"act-6e5d4c3b2a"}"#;

/// Two tenants, each with two secrets, two providers and two connections; every value is another.
fn furnished() -> Fresh {
    let host = unlocked();
    let registry = &host.registry;
    for (tenant, mark) in [("acme", "1"), ("other", "2")] {
        for name in ["API_TOKEN", "SECOND"] {
            set(registry, tenant, name, &format!("{SECRET}-{mark}-{name}"));
        }
        for name in ["github", "linear"] {
            let settings = json!({ "token_url": format!("https://{name}.example/token") });
            let secret = value(&format!("{CLIENT_SECRET}-{mark}-{name}"));
            registry.set_provider(&actor(), tenant, name, settings, Some(secret)).unwrap();
        }
        for subject in ["ann", "bob"] {
            let text = TOKENS.replace("act-", &format!("act-{mark}-{subject}-"));
            registry.set_connection(&actor(), tenant, "github", subject, value(&text), Some(5000)).unwrap();
        }
    }
    host
}

/// Does something to the database of a host that is down, and starts the host again.
fn tampered(host: Fresh, sql: &str) -> Fresh {
    let Fresh { registry, dir } = host;
    drop(registry);
    let database = database(dir.path());
    assert!(database.execute(sql, []).unwrap() > 0, "{sql}");
    drop(database);
    let registry = registry::Registry::open(dir.path()).unwrap();
    registry.unlock(master(1)).unwrap();
    Fresh { registry, dir }
}

/// What each place of the first tenant gives: its name, and a code if that is not its value.
fn faults(host: &Fresh) -> Vec<(String, &'static str)> {
    let registry = &host.registry;
    let mut faults = Vec::new();
    for name in ["API_TOKEN", "SECOND"] {
        match get(registry, "acme", name) {
            Ok(found) => assert_eq!(found, Some(format!("{SECRET}-1-{name}"))),
            Err(code) => faults.push((name.to_owned(), code)),
        }
    }
    for name in ["github", "linear"] {
        match registry.provider("acme", name) {
            Ok(found) => assert_eq!(
                found.unwrap().settings,
                json!({ "token_url": format!("https://{name}.example/token") }),
                "nobody else's"
            ),
            Err(error) => faults.push((name.to_owned(), error.code())),
        }
    }
    for subject in ["ann", "bob"] {
        match tokens(registry, "acme", "github", subject) {
            Ok(found) => assert_eq!(found, Some(TOKENS.replace("act-", &format!("act-1-{subject}-")))),
            Err(code) => faults.push((subject.to_owned(), code)),
        }
    }
    faults
}

fn corrupt(names: &[&str]) -> Vec<(String, &'static str)> {
    names.iter().map(|name| ((*name).to_owned(), "corrupt")).collect()
}

/// Flips one bit in each byte of a column, one at a time. Works on the open host's database file while the host is down.
fn every_byte(column: &str, table: &str, condition: &str, expected: &[&str]) {
    let mut host = furnished();
    let query = format!("SELECT {column} FROM {table} WHERE {condition}");
    let good = blob(host.dir.path(), &query);
    for place in 0..good.len() {
        let mut bad = good.clone();
        bad[place] ^= 1 << (place % 8);
        let update = format!("UPDATE {table} SET {column} = x'{}' WHERE {condition}", hex::encode(bad));
        host = tampered(host, &update);
        assert_eq!(faults(&host), corrupt(expected), "byte {place}");
    }
    for length in [0, 1, 24, 39, 40, good.len() - 1] {
        let update = format!("UPDATE {table} SET {column} = x'{}' WHERE {condition}", hex::encode(&good[..length]));
        host = tampered(host, &update);
        assert_eq!(faults(&host), corrupt(expected), "the first {length} bytes");
    }
    host = tampered(host, &format!("UPDATE {table} SET {column} = x'{}' WHERE {condition}", hex::encode(good)));
    assert_eq!(faults(&host), [], "as it was");
}

#[test]
fn every_byte_of_a_sealed_secret_counts() {
    every_byte("sealed", "secrets", "tenant = 'acme' AND name = 'API_TOKEN'", &["API_TOKEN"]);
}

#[test]
fn every_byte_of_a_client_secret_counts() {
    every_byte("sealed", "providers", "tenant = 'acme' AND name = 'linear'", &["linear"]);
}

#[test]
fn every_byte_of_sealed_tokens_counts() {
    every_byte("sealed", "connections", "tenant = 'acme' AND subject = 'ann'", &["ann"]);
}

#[test]
fn every_byte_of_a_tenants_key_counts() {
    let all = ["API_TOKEN", "SECOND", "github", "linear", "ann", "bob"];
    every_byte("wrapped", "tenant_keys", "tenant = 'acme'", &all);
}

/// Each takes something sealed to where it does not belong, or changes what it is bound to.
#[test]
fn what_was_moved_or_relabelled_does_not_open() {
    let take = |table: &str, from: &str, to: &str| {
        format!("UPDATE {table} SET sealed = (SELECT sealed FROM {table} WHERE {from}) WHERE {to}")
    };
    let both = ["API_TOKEN", "SECOND"];
    let rows: Vec<(String, &[&str])> = vec![
        (take("secrets", "tenant = 'acme' AND name = 'SECOND'", "tenant = 'acme' AND name = 'API_TOKEN'"), &both[..1]),
        (
            take("secrets", "tenant = 'other' AND name = 'API_TOKEN'", "tenant = 'acme' AND name = 'API_TOKEN'"),
            &both[..1],
        ),
        (
            "UPDATE secrets SET name = CASE name WHEN 'SECOND' THEN 'API_TOKEN' ELSE 'SECOND' END || '_'
             WHERE tenant = 'acme'"
                .to_owned(),
            &[],
        ),
        ("UPDATE secrets SET version = 2 WHERE tenant = 'acme' AND name = 'SECOND'".to_owned(), &both[1..]),
        ("UPDATE secrets SET key_version = 2 WHERE tenant = 'acme'".to_owned(), &both),
        (
            "UPDATE providers SET settings = replace(settings, 'github', 'elsewhere')
             WHERE tenant = 'acme' AND name = 'github'"
                .to_owned(),
            &["github"],
        ),
        (take("providers", "tenant = 'acme' AND name = 'linear'", "tenant = 'acme' AND name = 'github'"), &["github"]),
        (take("connections", "tenant = 'acme' AND subject = 'bob'", "tenant = 'acme' AND subject = 'ann'"), &["ann"]),
        (take("connections", "tenant = 'other' AND subject = 'ann'", "tenant = 'acme' AND subject = 'ann'"), &["ann"]),
        ("UPDATE connections SET expires_at = 9000 WHERE tenant = 'acme' AND subject = 'ann'".to_owned(), &["ann"]),
        ("UPDATE connections SET expires_at = NULL WHERE tenant = 'acme' AND subject = 'bob'".to_owned(), &["bob"]),
    ];
    for (sql, expected) in rows {
        let host = tampered(furnished(), &sql);
        if expected.is_empty() {
            for name in both {
                assert_eq!(get(&host.registry, "acme", &format!("{name}_")), Err("corrupt"), "{sql}");
                assert_eq!(get(&host.registry, "acme", name), Ok(None), "{sql}");
            }
            continue;
        }
        assert_eq!(faults(&host), corrupt(expected), "{sql}");
        let rotated = host.registry.rotate_tenant_key(&actor(), "acme");
        assert_eq!(rotated.unwrap_err().code(), "corrupt", "what cannot be opened is not sealed anew");
        assert_eq!(faults(&host), corrupt(expected), "{sql}: and nothing was changed");
    }
}

#[test]
fn a_tenants_key_opens_nothing_for_another() {
    let all = ["API_TOKEN", "SECOND", "github", "linear", "ann", "bob"];
    for sql in [
        "UPDATE tenant_keys SET wrapped = (SELECT wrapped FROM tenant_keys WHERE tenant = 'other') WHERE tenant = 'acme'",
        "UPDATE tenant_keys SET version = 2 WHERE tenant = 'acme'",
        // The attacker is `other`, whose secrets now are those of `acme`.
        "UPDATE tenants SET uid = (SELECT uid FROM tenants WHERE name = 'other') WHERE name = 'acme'",
    ] {
        let host = tampered(furnished(), sql);
        assert_eq!(faults(&host), corrupt(&all), "{sql}");
        assert_eq!(host.registry.rotate_master_key(&actor(), master(2)).unwrap_err().code(), "corrupt");
        assert_eq!(get(&host.registry, "other", "SECOND"), Ok(Some(format!("{SECRET}-2-SECOND"))), "no harm to others");
    }
}

/// Even with the key and the uid that belong to them.
#[test]
fn a_whole_vault_does_not_open_under_another_name() {
    let dir = furnished().stop();
    let database = database(dir.path());
    database
        .execute_batch(
            "PRAGMA foreign_keys = OFF;
             DELETE FROM tenant_keys WHERE tenant = 'other'; DELETE FROM secrets WHERE tenant = 'other';
             UPDATE tenants SET uid = (SELECT uid FROM tenants WHERE name = 'acme') WHERE name = 'other';
             UPDATE tenant_keys SET tenant = 'other'; UPDATE secrets SET tenant = 'other';",
        )
        .unwrap();
    drop(database);
    let registry = registry::Registry::open(dir.path()).unwrap();
    registry.unlock(master(1)).unwrap();
    assert_eq!(registry.secrets("other").unwrap().len(), 2);
    assert_eq!(get(&registry, "other", "API_TOKEN"), Err("corrupt"));
}

/// The value that a secret had before, put back with everything that belongs to it, is bound to a key that is gone.
#[test]
fn an_older_value_does_not_come_back_after_a_rotation() {
    let host = furnished();
    let row = |dir: &Path| -> Vec<Value> {
        let query = "SELECT version, key_version, sealed FROM secrets WHERE tenant = 'acme' AND name = 'API_TOKEN'";
        database(dir).query_row(query, [], |row| Ok(vec![row.get(0)?, row.get(1)?, row.get(2)?])).unwrap()
    };
    let old = row(host.dir.path());
    set(&host.registry, "acme", "API_TOKEN", "a wholly new value");
    host.registry.rotate_tenant_key(&actor(), "acme").unwrap();
    let dir = host.stop();
    let update = "UPDATE secrets SET version = ?1, key_version = ?2, sealed = ?3
         WHERE tenant = 'acme' AND name = 'API_TOKEN'";
    database(dir.path()).execute(update, rusqlite::params_from_iter(old)).unwrap();
    let registry = registry::Registry::open(dir.path()).unwrap();
    registry.unlock(master(1)).unwrap();
    assert_eq!(get(&registry, "acme", "API_TOKEN"), Err("corrupt"));
    set(&registry, "acme", "API_TOKEN", "repaired anew");
    assert_eq!(get(&registry, "acme", "API_TOKEN"), Ok(Some("repaired anew".to_owned())));
}

#[test]
fn no_file_ever_has_a_value_in_it() {
    let host = furnished();
    host.registry.close().unwrap();
    let key: [u8; 8] = std::array::from_fn(|place| place as u8 + 16); // part of the master key
    let look = |moment: &str| {
        for settled in [false, true] {
            for hidden in [SECRET.as_bytes(), CLIENT_SECRET.as_bytes(), b"6e5d4c3b2a", &key] {
                assert_eq!(files_with(host.dir.path(), hidden), [""; 0], "{moment}, settled: {settled}");
            }
            host.registry.close().unwrap();
        }
    };
    assert_ne!(files_with(host.dir.path(), b"API_TOKEN"), [""; 0], "names are found");
    let registry = &host.registry;
    look("after setting");
    registry.rotate_tenant_key(&actor(), "acme").unwrap();
    look("after rotating a tenant's key");
    registry.rotate_master_key(&actor(), master(2)).unwrap();
    look("after rotating the master key");
    faults(&host);
    registry.remove_secret(&actor(), "acme", "API_TOKEN").unwrap();
    registry.remove_provider(&actor(), "acme", "github").unwrap();
    look("after removing");
    let host = host.reopen();
    assert_eq!(files_with(host.dir.path(), SECRET.as_bytes()), [""; 0], "after a restart");
}

/// Ciphertext that nobody needs any more is gone too, while the host runs: whoever gets hold of a key later finds nothing.
#[test]
fn what_was_removed_or_replaced_leaves_no_trace() {
    let host = furnished();
    let (registry, dir) = (&host.registry, host.dir.path());
    for number in 0..100 {
        set(registry, "acme", &format!("S{number}"), &"v".repeat(12 + number * 50));
    }
    // The host is asked to settle before each look: while it moves pages between files, one could miss them in both.
    let found = |query: String| {
        let bytes = blob(dir, &query);
        registry.close().unwrap();
        assert_ne!(files_with(dir, &bytes[..24]), [""; 0], "it is there before");
        bytes
    };
    let sealed = |tenant: &str, name: &str| {
        found(format!("SELECT sealed FROM secrets WHERE tenant = '{tenant}' AND name = '{name}'"))
    };
    let wrapped = |tenant: &str| found(format!("SELECT wrapped FROM tenant_keys WHERE tenant = '{tenant}'"));
    let gone = |what: &str, old: &[u8]| {
        registry.close().unwrap();
        let (start, end) = (&old[..24], &old[old.len() - 16..]);
        assert_eq!(files_with(dir, start), [""; 0], "{what}");
        assert_eq!(files_with(dir, end), [""; 0], "{what}");
    };
    let first = sealed("acme", "S99");
    set(registry, "acme", "S99", "another value");
    gone("replaced", &first);
    for name in ["S98", "S50", "S7"] {
        let old = sealed("acme", name);
        registry.remove_secret(&actor(), "acme", name).unwrap();
        gone("removed", &old);
    }
    let (old, old_key) = (sealed("acme", "S97"), wrapped("acme"));
    registry.rotate_tenant_key(&actor(), "acme").unwrap();
    gone("rotated", &old);
    gone("the key before", &old_key);
    let (old_key, others) = (wrapped("acme"), wrapped("other"));
    registry.rotate_master_key(&actor(), master(2)).unwrap();
    gone("the key under the old master key", &old_key);
    gone("everybody's", &others);
    let (old, old_key) = (sealed("acme", "S96"), wrapped("acme"));
    registry.delete_tenant(&actor(), "acme").unwrap();
    gone("deleted", &old);
    gone("its key", &old_key);
}
