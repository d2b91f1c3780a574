use super::command::text;
use super::file::{Problem, parse};
use super::{Config, full_name};
use insta::assert_snapshot;
use proptest::prelude::*;

fn problems(text: &str) -> String {
    let line = |p: &Problem| {
        let hint = p.hint.as_ref().map(|hint| format!("\n    {hint}")).unwrap_or_default();
        format!("{}:{} {}: {}{hint}", p.line, p.column, p.key, p.message)
    };
    parse(text.as_bytes()).unwrap_err().iter().map(line).collect::<Vec<_>>().join("\n")
}

#[test]
fn nothing_is_the_defaults() {
    assert_eq!(parse(b"").unwrap(), Config::default());
    assert_eq!(parse(b"# only words\n[pool]\n").unwrap(), Config::default());
}

#[test]
fn unknown_keys_and_tables_are_told_what_was_meant() {
    assert_snapshot!(problems("lisen = '127.0.0.1:1'\nrunning = 4\nzzz = 1\n[quotas]\nburst = 1\n[pool]\nidle = 1\nBurst = 1\n[yyy]\n"), @r#"
    1:1 lisen: there is no such key
        did you mean `listen`?
    2:1 running: there is no such key
        `running` belongs to `[pool]`
    3:1 zzz: there is no such key
        there are listen, data, threads, public_url, allowed_hosts, allowed_origins
    4:2 quotas: there is no such table
        did you mean `quota`?
    7:1 pool.idle: there is no such key
        did you mean `idle_s`?
    8:1 pool.Burst: there is no such key
        there are running, running_per_tenant, running_per_deployment, waiting, waiting_per_tenant, waiting_per_deployment, patience_ms, turns, turns_per_tenant, plants, plants_per_tenant, spares, idle_s, deployments, sessions, session_idle_s
    9:2 yyy: there is no such table
        there are limits, jail, isolate, process, pool, quota, sessions, http, oauth, secrets, egress, audit_log, disk, log, trace, metrics, shutdown
    "#);
}

#[test]
fn values_of_the_wrong_kind_or_out_of_range_say_what_is_needed() {
    assert_snapshot!(problems(
        "listen = 'localhost'\ndata = ''\npublic_url = 'mcp.example.com'\nallowed_hosts = ['a/b']\n\
         allowed_origins = ['https://a.example/x']\npool = 3\n[limits]\ncpu_ms = 0\nmemory_mb = 4096\njit = 'yes'\n\
         [http]\nmax_body_kb = -1\nmax_connections = 99999999999999999999\nheader_timeout_s = 1.5\n\
         [quota]\nrequests_per_s = nan\nburst = '5'\n[oauth]\nalgorithms = ['HS256']\n[log]\nformat = 'jsn'\n\
         [trace]\nsample_ratio = 2\nheaders = { 'bad name' = 'x' }\n"
    ), @r"
    1:10 listen: `localhost` is no address with a port
        such as `127.0.0.1:8470` or `[::]:8470`
    2:8 data: this path is empty
    3:14 public_url: `mcp.example.com` is no URL: relative URL without a base
        such as `https://mcp.example.com`
    4:17 allowed_hosts: `a/b` is no host name
        such as `mcp.example.com` or `[::1]:8470`
    5:19 allowed_origins: `https://a.example/x` has more than scheme, host and port
        an origin is `https://a.example`
    6:8 pool: `pool` is a table
        write `[pool]` on a line of its own
    8:10 limits.cpu_ms: 0 is not between 1 and 60000
    9:13 limits.memory_mb: 4096 is not between 8 and 1024
    10:7 limits.jit: true or false is needed, this is a string
    12:15 http.max_body_kb: `-1` is too small
    13:19 http.max_connections: `99999999999999999999` is too large
    14:20 http.header_timeout_s: a whole number is needed, this is a float
    16:18 quota.requests_per_s: this is no finite number
    17:9 quota.burst: a whole number is needed, this is a string
    19:14 oauth.algorithms: `HS256` is none of `RS256`, `RS384`, `RS512`, `PS256`, `PS384`, `PS512`, `ES256`, `ES384`, `EdDSA`
        did you mean `RS256`?
    21:10 log.format: `jsn` is none of `text`, `json`
        did you mean `json`?
    23:16 trace.sample_ratio: 2 is not between 0 and 1
    24:11 trace.headers: `bad name` is no name of a header field
    ");
}

#[test]
fn values_that_do_not_go_together_are_found() {
    assert_snapshot!(problems("[oauth]\njwks_url = 'https://idp.example/keys'\n[log]\nfilter = 'lod'\n[trace]\nheaders = { a = 'b' }\n"), @r"
    2:12 oauth.jwks_url: `oauth.issuer` is needed as well
    4:10 log.filter: `lod` is no level; there are off, error, warn, info, debug, trace
    6:11 trace.headers: `trace.otlp_endpoint` is not set, so nothing is sent
    ");
    assert_snapshot!(problems("[oauth]\nissuer = 'https://idp.example'\n"), @r"
    2:10 oauth.issuer: oauth needs `public_url`
        tokens are made out to it, as `https://mcp.example.com`
    ");
}

#[test]
fn what_is_no_toml_has_a_place() {
    assert_snapshot!(problems("a = [1\nb = 2"), @"2:1 : missing comma between array elements, expected `,`");
    assert_snapshot!(problems("listen = '127.0.0.1:1'\nlisten = '127.0.0.1:2'"), @"2:1 : duplicate key");
    let error = parse(b"# \xc3\xa4\nx = '\xff'").unwrap_err();
    assert_eq!((error[0].line, error[0].column, error[0].message.as_str()), (2, 6, "this is not UTF-8"));
}

/// A mistake must not lead to a list without end.
#[test]
fn problems_are_bounded() {
    let many: String = (0..10_000).map(|n| format!("key{n} = 1\n")).collect();
    assert_eq!(parse(many.as_bytes()).unwrap_err().len(), 50);
}

#[test]
fn a_running_host_keeps_what_it_cannot_change() {
    let running = parse(b"[pool]\nspares = 3").unwrap();
    let mut new = parse(
        b"listen = '127.0.0.1:9'\n[limits]\nmemory_mb = 64\ncpu_ms = 100\n[pool]\nspares = 4\n[quota]\nburst = 9\n\
          [trace]\notlp_endpoint = 'http://127.0.0.1:4318'\nheaders = { key = 'secret' }",
    )
    .unwrap();
    let kept = new.keep_fixed(&running);
    assert_eq!(kept, ["listen", "limits.memory_mb", "pool.spares", "trace.otlp_endpoint", "trace.headers"]);
    assert_eq!((new.pool.spares, new.limits.0.most.memory_mb), (3, 1024));
    assert_eq!((new.quota.burst, new.limits.0.most.cpu_ms), (9, 100));
    assert!(new.keep_fixed(&running).is_empty());
}

#[test]
fn secrets_are_not_shown() {
    let file = "[trace]\notlp_endpoint = 'http://127.0.0.1:4318'\nheaders = { authorization = 'very secret' }";
    let config = parse(file.as_bytes()).unwrap();
    for shown in [text(&config), format!("{config:?}")] {
        assert!(shown.contains("authorization") && !shown.contains("very secret"), "{shown}");
    }
}

#[test]
fn every_key_is_described_once() {
    let mut names = Vec::new();
    for table in Config::tables() {
        assert!(!table.about.is_empty(), "{}", table.name);
        for key in table.keys {
            let name = full_name(table.name, key.name);
            assert!(key.about.ends_with('.') && key.about.len() > 10, "`{name}` is not described: {}", key.about);
            names.push(name);
        }
    }
    let all = names.len();
    names.sort();
    names.dedup();
    assert_eq!(names.len(), all);
}

/// What is shown as the configuration is a file that says the same.
#[test]
fn what_is_shown_can_be_read() {
    let file = "public_url = 'https://mcp.example.com'\nallowed_hosts = ['a.example:1']\n[limits]\ncpu_ms = 7\n\
        [quota]\nrequests_per_s = 0.5\n[oauth]\nissuer = 'https://idp.example'\nalgorithms = ['EdDSA']\n[pool]\nturns = 3";
    for config in [Config::default(), parse(file.as_bytes()).unwrap()] {
        let shown = text(&config);
        let again = parse(shown.as_bytes()).unwrap_or_else(|problems| panic!("{problems:#?}\n{shown}"));
        assert_eq!(again, config);
    }
}

/// Text that looks like a configuration, so that it gets beyond the parser of TOML.
fn likely() -> impl Strategy<Value = String> {
    let keys: Vec<String> = Config::tables()
        .iter()
        .flat_map(|table| table.keys.iter().map(|key| key.name.to_owned()).chain([format!("[{}]", table.name)]))
        .collect();
    let value = prop_oneof![
        any::<i64>().prop_map(|n| n.to_string()),
        any::<f64>().prop_map(|n| n.to_string()),
        any::<bool>().prop_map(|b| b.to_string()),
        "\"[ -~]{0,30}\"",
        "'\\PC{0,20}'",
        "\\[('[a-z:/.*]{0,12}',? ?){0,3}\\]",
        "\\{ ?[a-z-]{1,8} = '[ -~&&[^']]{0,8}' ?\\}",
        Just("[[[[{}]]]]".to_owned()),
        Just("1979-05-27T07:32:00Z".to_owned()),
        Just("0xffffffffffffffffff".to_owned()),
    ];
    let line = (proptest::sample::select(keys), value).prop_map(|(key, value)| match key.starts_with('[') {
        true => key,
        false => format!("{key} = {value}"),
    });
    proptest::collection::vec(line, 0..12).prop_map(|lines| lines.join("\n"))
}

proptest! {
    #![proptest_config(ProptestConfig { cases: 2000, ..ProptestConfig::default() })]

    #[test]
    fn arbitrary_bytes_never_panic(bytes in proptest::collection::vec(any::<u8>(), 0..400)) {
        let _ = parse(&bytes);
    }

    #[test]
    fn likely_text_never_panics_and_has_places(text in likely()) {
        if let Err(problems) = parse(text.as_bytes()) {
            prop_assert!(!problems.is_empty());
            let lines = text.lines().count().max(1) + 1;
            prop_assert!(problems.iter().all(|p| p.column >= 1 && (1..=lines).contains(&p.line)), "{problems:?}");
        }
    }

    #[test]
    fn unknown_keys_are_always_refused(key in "[a-zA-Z_][a-zA-Z0-9_-]{0,20}", table in 0..20usize) {
        let tables = Config::tables();
        let table = &tables[table % tables.len()];
        let known = table.keys.iter().any(|known| known.name == key);
        let is_table = table.name.is_empty() && tables.iter().any(|table| table.name == key);
        prop_assume!(!known && !is_table);
        let head = if table.name.is_empty() { String::new() } else { format!("[{}]\n", table.name) };
        let problems = parse(format!("{head}{key} = 1\n").as_bytes()).unwrap_err();
        prop_assert_eq!(&problems[0].key, &full_name(table.name, &key));
        prop_assert!(problems[0].hint.is_some());
    }
}
