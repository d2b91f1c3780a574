//! Secrets, providers and connections: what is sealed is there for its tenant, at once and after a restart.

use crate::common::{actor, audit_lines, fresh};
use crate::vault::{code, get, master, set, tokens, unlocked, value};
use registry::{MasterKey, Registry};
use secrecy::ExposeSecret;
use serde_json::json;

const TOKENS: &str = r#"{"access_token":"at-0123456789","refresh_token":"rt-0123456789"}"#;

fn connect(registry: &Registry, tenant: &str, provider: &str, subject: &str, text: &str) {
    registry.set_connection(&actor(), tenant, provider, subject, value(text), Some(5000)).unwrap();
}

fn provider(registry: &Registry, tenant: &str, name: &str) {
    let settings = json!({ "token_url": "https://id.example/token", "client_id": "bulkhead" });
    registry.set_provider(&actor(), tenant, name, settings, Some(value("client-secret"))).unwrap();
}

#[test]
fn a_secret_is_its_tenants_alone_and_outlives_the_host() {
    let host = unlocked();
    let registry = &host.registry;
    assert_eq!(get(registry, "acme", "API_TOKEN"), Ok(None));
    let first = registry.set_secret(&actor(), "acme", "API_TOKEN", value("tok-one-long")).unwrap();
    assert_eq!((first.name.as_str(), first.version), ("API_TOKEN", 1));
    let second = registry.set_secret(&actor(), "acme", "API_TOKEN", value("tok-two ü long")).unwrap();
    assert_eq!((second.version, second.created_at), (2, first.created_at));
    set(registry, "other", "API_TOKEN", "tok-other-long");
    set(registry, "acme", "B", "tok-b-1-long");
    assert_eq!(get(registry, "acme", "API_TOKEN"), Ok(Some("tok-two ü long".to_owned())));

    let host = host.reopen();
    let registry = &host.registry;
    assert_eq!(get(registry, "acme", "API_TOKEN"), Err("no_master_key"));
    registry.unlock(master(1)).unwrap();
    assert_eq!(get(registry, "acme", "API_TOKEN"), Ok(Some("tok-two ü long".to_owned())));
    assert_eq!(get(registry, "other", "API_TOKEN"), Ok(Some("tok-other-long".to_owned())));
    assert_eq!(get(registry, "other", "B"), Ok(None));
    assert_eq!(get(registry, "nobody", "B"), Err("not_found"));
    let names: Vec<_> = registry.secrets("acme").unwrap().into_iter().map(|info| (info.name, info.version)).collect();
    assert_eq!(names, [("API_TOKEN".to_owned(), 2), ("B".to_owned(), 1)]);

    registry.remove_secret(&actor(), "acme", "API_TOKEN").unwrap();
    assert_eq!(code(registry.remove_secret(&actor(), "acme", "API_TOKEN")), "not_found");
    assert_eq!(get(registry, "acme", "API_TOKEN"), Ok(None));
    let host = host.reopen();
    host.registry.unlock(master(1)).unwrap();
    assert_eq!(get(&host.registry, "acme", "API_TOKEN"), Ok(None));
    assert_eq!(host.registry.secrets("acme").unwrap().len(), 1);
}

#[test]
fn without_a_master_key_everything_is_refused() {
    let host = fresh();
    let registry = &host.registry;
    registry.create_tenant(&actor(), "acme").unwrap();
    let a = &actor();
    for refused in [
        code(registry.set_secret(a, "acme", "API_TOKEN", value("tok-one-long"))),
        code(registry.secrets("acme")),
        code(registry.secret("acme", "API_TOKEN")),
        code(registry.remove_secret(a, "acme", "API_TOKEN")),
        code(registry.rotate_tenant_key(a, "acme")),
        code(registry.rotate_master_key(a, master(2))),
        code(registry.set_provider(a, "acme", "github", json!({}), None)),
        code(registry.provider("acme", "github")),
        code(registry.providers("acme")),
        code(registry.remove_provider(a, "acme", "github")),
        code(registry.set_connection(a, "acme", "github", "ann", value("{}"), None)),
        code(registry.connection("acme", "github", "ann")),
        code(registry.connections("acme")),
        code(registry.remove_connection(a, "acme", "github", "ann")),
    ] {
        assert_eq!(refused, "no_master_key");
    }
    let error = registry.secret("acme", "API_TOKEN").unwrap_err();
    assert_eq!(error.to_string(), "this host has no master key");
    assert!(error.hint().is_some());
    let actions: Vec<_> = audit_lines(host.dir.path()).into_iter().map(|line| line["action"].clone()).collect();
    assert!(!actions.iter().any(|action| action.as_str().is_some_and(|action| action.starts_with("secret"))));
}

#[test]
fn another_master_key_is_refused_by_name() {
    let host = unlocked();
    host.registry.unlock(master(2)).unwrap(); // nothing is sealed yet
    set(&host.registry, "acme", "API_TOKEN", "tok-one-long");
    let host = host.reopen();
    let error = host.registry.unlock(master(1)).unwrap_err();
    assert_eq!(error.code(), "wrong_master_key");
    let text = error.to_string();
    assert!(text.starts_with("the secrets were sealed with another master key ("), "{text}");
    assert!(text.contains(master(2).id()) && text.contains(master(1).id()), "{text}");
    assert_eq!(get(&host.registry, "acme", "API_TOKEN"), Err("no_master_key"));
    host.registry.unlock(master(2)).unwrap();
    assert_eq!(code(host.registry.unlock(master(1))), "wrong_master_key");
    assert_eq!(get(&host.registry, "acme", "API_TOKEN"), Ok(Some("tok-one-long".to_owned())), "the good one stays");
}

#[test]
fn names_and_values_have_their_bounds() {
    let host = unlocked();
    let registry = &host.registry;
    let try_set = |name: &str, text: &str| registry.set_secret(&actor(), "acme", name, value(text));
    for name in ["", "a", "api_token", "1A", "_A", "A-B", "A B", "Ä", "A\n", &"A".repeat(65), "sk-live-0123456789"] {
        let error = try_set(name, "a good value").unwrap_err();
        assert_eq!(error.code(), "bad_value", "{name}");
        assert!(name.len() < 2 || !error.to_string().contains(name), "a name may be a secret by mistake: {error}");
        assert_eq!(code(registry.remove_secret(&actor(), "acme", name)), "bad_value");
    }
    for text in ["", "short", "eleven byte", "with a zero\0", &"x".repeat((16 << 10) + 1)] {
        let error = try_set("API_TOKEN", text).unwrap_err();
        assert_eq!(error.code(), "bad_value");
        assert!(text.is_empty() || !error.to_string().contains(text));
    }
    assert_eq!(registry.secrets("acme").unwrap(), []);
    let longest = "y".repeat(16 << 10);
    try_set(&"A".repeat(64), &longest).unwrap();
    try_set("TWELVE", "twelve bytes").unwrap();
    assert_eq!(get(registry, "acme", &"A".repeat(64)), Ok(Some(longest)));
    assert_eq!(code(registry.set_secret(&actor(), "nobody", "API_TOKEN", value("tok-one-long"))), "not_found");
}

#[test]
fn a_tenant_has_so_many_secrets_and_no_more() {
    let host = unlocked();
    for number in 0..256 {
        set(&host.registry, "acme", &format!("S{number}"), "some long value");
    }
    let error = host.registry.set_secret(&actor(), "acme", "ONE_MORE", value("some long value")).unwrap_err();
    assert_eq!(error.code(), "conflict");
    assert!(error.to_string().contains("256 secrets"), "{error}");
    set(&host.registry, "acme", "S7", "another value");
    set(&host.registry, "other", "S7", "another value");
    host.registry.remove_secret(&actor(), "acme", "S8").unwrap();
    set(&host.registry, "acme", "ONE_MORE", "some long value");
}

#[test]
fn providers_and_connections_belong_together() {
    let host = unlocked();
    let registry = &host.registry;
    let try_connect = || registry.set_connection(&actor(), "acme", "github", "ann", value(TOKENS), None);
    assert_eq!(code(try_connect()), "not_found", "no such provider");
    for tenant in ["acme", "other"] {
        provider(registry, tenant, "github");
        provider(registry, tenant, "linear");
        connect(registry, tenant, "github", "ann", &TOKENS.replace("at-", tenant));
    }
    connect(registry, "acme", "github", "bob", &TOKENS.replace("at-", "bobs-"));
    connect(registry, "acme", "linear", "ann", &TOKENS.replace("at-", "linear-"));

    // Changing a provider keeps who is connected, and forgets the secret that it had.
    let info = registry.set_provider(&actor(), "acme", "github", json!({ "client_id": "new" }), None).unwrap();
    assert!(!info.confidential);
    let host = host.reopen();
    let registry = &host.registry;
    registry.unlock(master(1)).unwrap();
    let github = registry.provider("acme", "github").unwrap().unwrap();
    assert_eq!((github.settings, github.client_secret.is_none()), (json!({ "client_id": "new" }), true));
    let linear = registry.provider("acme", "linear").unwrap().unwrap();
    assert_eq!(linear.client_secret.unwrap().expose_secret(), "client-secret");
    let names: Vec<_> =
        registry.providers("acme").unwrap().into_iter().map(|info| (info.name, info.confidential)).collect();
    assert_eq!(names, [("github".to_owned(), false), ("linear".to_owned(), true)]);

    assert_eq!(tokens(registry, "acme", "github", "ann"), Ok(Some(TOKENS.replace("at-", "acme"))));
    assert_eq!(tokens(registry, "acme", "github", "bob"), Ok(Some(TOKENS.replace("at-", "bobs-"))));
    assert_eq!(tokens(registry, "acme", "linear", "bob"), Ok(None));
    assert_eq!(tokens(registry, "other", "github", "bob"), Ok(None));
    assert_eq!(registry.connection("acme", "github", "ann").unwrap().unwrap().1, Some(5000));
    let who: Vec<_> = registry.connections("acme").unwrap().into_iter().map(|c| (c.provider, c.subject)).collect();
    assert_eq!(who, [("github", "ann"), ("github", "bob"), ("linear", "ann")].map(|(p, s)| (p.into(), s.into())));

    registry.remove_connection(&actor(), "acme", "github", "bob").unwrap();
    assert_eq!(code(registry.remove_connection(&actor(), "acme", "github", "bob")), "not_found");
    registry.remove_provider(&actor(), "acme", "github").unwrap();
    assert_eq!(code(registry.remove_provider(&actor(), "acme", "github")), "not_found");
    let host = host.reopen();
    host.registry.unlock(master(1)).unwrap();
    assert_eq!(tokens(&host.registry, "acme", "github", "ann"), Ok(None));
    assert_eq!(host.registry.connections("acme").unwrap().len(), 1);
    assert_eq!(host.registry.connections("other").unwrap().len(), 1);
}

#[test]
fn bad_providers_and_connections_are_refused() {
    let host = unlocked();
    let registry = &host.registry;
    let put = |name: &str, settings| registry.set_provider(&actor(), "acme", name, settings, None);
    for (name, settings, expected) in [
        ("Git Hub", json!({}), "bad_name"),
        ("", json!({}), "bad_name"),
        ("github", json!([]), "bad_value"),
        ("github", json!({ "a": "x".repeat(16 << 10) }), "bad_value"),
    ] {
        assert_eq!(code(put(name, settings)), expected, "{name}");
    }
    let short = registry.set_provider(&actor(), "acme", "github", json!({}), Some(value("short")));
    assert_eq!(code(short), "bad_value");
    provider(registry, "acme", "github");
    let connect = |subject: &str, text: &str, expires_at| {
        code(registry.set_connection(&actor(), "acme", "github", subject, value(text), expires_at))
    };
    for (subject, text, expires_at) in [
        ("", "{}", None),
        ("a\nb", "{}", None),
        (&*"s".repeat(1025), "{}", None),
        ("ann", "no JSON", None),
        ("ann", "[]", None),
        ("ann", "{", None),
        ("ann", &*format!(r#"{{"a":"{}"}}"#, "x".repeat(32 << 10)), None),
        ("ann", "{}", Some(u64::MAX)),
    ] {
        assert_eq!(connect(subject, text, expires_at), "bad_value", "{subject:.10} {text:.10}");
    }
    assert_eq!(connect("ann", "{}", None), "ok");
    for number in 1..64 {
        put(&format!("p{number}"), json!({})).unwrap();
    }
    assert_eq!(code(put("one-more", json!({}))), "conflict");
}

#[test]
fn what_a_tenant_has_sealed_goes_with_it() {
    let host = unlocked();
    let registry = &host.registry;
    set(registry, "acme", "API_TOKEN", "tok-one-long");
    provider(registry, "acme", "github");
    connect(registry, "acme", "github", "ann", TOKENS);
    registry.delete_tenant(&actor(), "acme").unwrap();
    assert_eq!(get(registry, "acme", "API_TOKEN"), Err("not_found"));
    registry.create_tenant(&actor(), "acme").unwrap();
    assert_eq!(get(registry, "acme", "API_TOKEN"), Ok(None));
    assert!(registry.providers("acme").unwrap().is_empty());
    for table in ["tenant_keys", "secrets", "providers", "connections"] {
        let count = format!("SELECT count(*) FROM {table}");
        let rows: i64 = crate::vault::database(host.dir.path()).query_row(&count, [], |row| row.get(0)).unwrap();
        assert_eq!(rows, 0, "{table}");
    }
}

#[test]
fn the_audit_log_says_what_was_done_and_nothing_of_the_values() {
    let host = unlocked();
    let registry = &host.registry;
    set(registry, "acme", "API_TOKEN", "tok-one-0123456789");
    provider(registry, "acme", "github");
    connect(registry, "acme", "github", "ann", TOKENS);
    registry.rotate_tenant_key(&actor(), "acme").unwrap();
    registry.rotate_master_key(&actor(), master(2)).unwrap();
    registry.remove_connection(&actor(), "acme", "github", "ann").unwrap();
    registry.remove_provider(&actor(), "acme", "github").unwrap();
    registry.remove_secret(&actor(), "acme", "API_TOKEN").unwrap();
    registry.close().unwrap();
    let lines: Vec<_> = audit_lines(host.dir.path())
        .into_iter()
        .filter(|line| line["kind"] == "change")
        .skip_while(|line| line["action"] != "secret.set")
        .map(|line| json!([line["tenant"], line["action"], line["subject"], line["detail"]]))
        .collect();
    assert_eq!(
        serde_json::Value::from(lines),
        json!([
            ["acme", "secret.set", "API_TOKEN", { "version": 1, "policy": {} }],
            ["acme", "provider.set", "github", { "version": 1, "confidential": true, "policy": {} }],
            ["acme", "connection.set", "github", { "subject": "ann", "expires_at": 5000 }],
            ["acme", "secret.rotate", "acme", { "key_version": 2 }],
            [null, "master_key.rotate", master(2).id(), { "instead_of": master(1).id(), "tenants": 1 }],
            ["acme", "connection.remove", "github", { "subject": "ann" }],
            ["acme", "provider.remove", "github", { "connections": 0 }],
            ["acme", "secret.remove", "API_TOKEN", null],
        ])
    );
}

#[test]
fn nothing_that_can_be_printed_shows_a_value() {
    let host = unlocked();
    let registry = &host.registry;
    let info = registry.set_secret(&actor(), "acme", "API_TOKEN", value("tok-one-0123456789")).unwrap();
    provider(registry, "acme", "github");
    connect(registry, "acme", "github", "ann", TOKENS);
    let key = MasterKey::parse(b"000102030405060708090a0b0c0d0e0f101112131415161718191a1b1c1d1e1f").unwrap();
    let printed = [
        format!("{info:?}"),
        format!("{:#?}", registry.directory()),
        format!("{:?}", registry.secret("acme", "API_TOKEN")),
        format!("{:?}", registry.secrets("acme")),
        format!("{:?}", registry.provider("acme", "github")),
        format!("{:?}", registry.providers("acme")),
        format!("{:?}", registry.connection("acme", "github", "ann")),
        format!("{:?}", registry.connections("acme")),
        format!("{key:?}"),
        format!("{:?}", MasterKey::parse(b"0001020304050607")),
    ]
    .join("\n");
    assert!(printed.contains("API_TOKEN") && printed.contains("github"), "something was printed");
    for hidden in ["tok-one-long", "client-secret", "at-0123", "rt-0123", "00010203", "[0, 1, 2, 3"] {
        assert!(!printed.contains(hidden), "{hidden} in {printed}");
    }
    let sealed = crate::vault::blob(host.dir.path(), "SELECT sealed FROM secrets");
    let start: Vec<_> = sealed[..4].iter().map(|byte| byte.to_string()).collect();
    assert!(!printed.contains(&start.join(", ")), "not even what is sealed");
}
