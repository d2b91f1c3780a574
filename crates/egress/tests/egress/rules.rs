//! What rules say, and how they must be written.

use egress::{BareStar, Door, Rule, Rules, Settings, explain};
use proptest::prelude::*;

fn rules(entries: &[&str]) -> Rules {
    Rules::parse(entries.iter().copied(), BareStar::Refused).unwrap()
}

fn allowed(rule: &str, url: &str, method: &str) -> bool {
    explain(&rules(&[rule]), url, method).allowed
}

#[test]
fn nothing_is_allowed_by_itself() {
    let decision = explain(&Rules::default(), "https://api.example.com/", "GET");
    assert!(!decision.allowed && decision.rule.is_none());
    assert!(decision.reason.contains("no rule allows https://api.example.com"), "{}", decision.reason);
}

#[test]
fn as_they_must_be_written() {
    let good = [
        ("api.example.com", "https://api.example.com"),
        ("api.example.com:443", "https://api.example.com"),
        ("api.example.com:8443", "https://api.example.com:8443"),
        ("*.example.com", "https://*.example.com"),
        ("*.example.com:8443", "https://*.example.com:8443"),
        ("xn--bcher-kva.de", "https://xn--bcher-kva.de"),
        ("8.8.8.8", "https://8.8.8.8"),
        ("[2606:4700::1111]:8443", "https://[2606:4700::1111]:8443"),
        ("https://api.example.com", "https://api.example.com"),
        ("http://api.example.com:80/v1", "http://api.example.com/v1"),
        ("https://api.example.com/v1", "https://api.example.com/v1"),
        ("https://*.example.com/v1/", "https://*.example.com/v1/"),
        ("http://api.example.com:8080/v1/", "http://api.example.com:8080/v1/"),
        ("GET https://api.example.com", "GET https://api.example.com"),
        ("GET,POST,PROPFIND api.example.com", "GET,POST,PROPFIND https://api.example.com"),
    ];
    for (text, shown) in good {
        assert_eq!(Rule::parse(text, BareStar::Refused).unwrap().to_string(), shown, "{text}");
    }
    let bad = [
        "",
        " ",
        "*",
        "*:443",
        "https://*",
        "http://*:80",
        "*.",
        "*.com",
        "*.*.com",
        "a.*.com",
        "*example.com",
        "**.example.com",
        "*.8.8.8.8",
        "*.[::1]",
        "https://*.8.8.8.8",
        "a..b",
        "a.",
        ".a",
        "-a.b",
        "A.b",
        "https://A.b",
        "bücher.de",
        "a b",
        "a\n",
        "a\0",
        "ftp://a.b",
        "file:///x",
        "://a.b",
        "https:a.b",
        "https://",
        "https:///a",
        "a.b/",
        "a.b/c",
        "a.b?c",
        "https://a.b?c",
        "https://a.b/#c",
        "u@a.b",
        "https://u:p@a.b",
        "a.b:",
        "a.b:0",
        "a.b:080",
        "a.b:+80",
        "a.b:65536",
        "::1",
        "[::1",
        "[0:0::1]",
        "[fe80::1%25eth0]",
        "127.1",
        "2130706433",
        "0x7f.0.0.1",
        "https://127.0.0.01",
        "%61.example",
        "https://a.b/",
        "https://a.b/%61",
        "https://[::ffff:127.0.0.1]",
        "a_b.c",
        "M-SEARCH a.b",
        "https://a.b/../c",
        "https://a.b/c/./d",
        "https://a.b/%2e%2e/c",
        "https://a.b/c%2fd",
        "https://a.b/c%5cd",
        "https://a.b/%252e%252e/",
        "https://a.b\\c",
        "https://a.b/c\\d",
        "https://a.b/..;/c",
        "get https://a.b",
        "GET, https://a.b",
        ",GET https://a.b",
        "CONNECT https://a.b",
        "TRACE a.b",
        "GET,TRACK a.b",
        "GET  a.b",
        "GET a.b c",
        "GET\ta.b",
        "a.b\u{200b}",
        "a\u{3002}b",
        "https://a.b:443x",
    ];
    for bad in bad {
        assert!(Rule::parse(bad, BareStar::Refused).is_err(), "{bad:?}");
    }
    assert!(Rule::parse(&format!("https://a.b/{}", "a".repeat(4000)), BareStar::Refused).is_err());
    for (star, shown) in
        [("*", "https://*"), ("http://*", "http://*"), ("*:8443", "https://*:8443"), ("GET *", "GET https://*")]
    {
        assert!(Rule::parse(star, BareStar::Refused).is_err());
        assert_eq!(Rule::parse(star, BareStar::Allowed).unwrap().to_string(), shown);
    }
    assert!(Rules::parse(std::iter::repeat_n("a.b", 257), BareStar::Refused).is_err());
}

#[test]
fn hosts() {
    for (rule, url, want) in [
        ("api.example.com", "https://api.example.com/x", true),
        ("api.example.com", "https://API.EXAMPLE.COM/x", true),
        ("api.example.com", "https://api.example.com:443/", true),
        ("api.example.com", "http://api.example.com/", false),
        ("api.example.com", "https://api.example.com:8443/", false),
        ("api.example.com", "https://api.example.com./", false),
        ("api.example.com", "https://example.com/", false),
        ("api.example.com", "https://x.api.example.com/", false),
        ("api.example.com", "https://api.example.com.evil.example/", false),
        ("api.example.com", "https://api.example.com@evil.example/", false),
        ("api.example.com", "https://evil.example/api.example.com", false),
        ("api.example.com", "https://evil.example#api.example.com", false),
        ("api.example.com", "https://evil.example\\.api.example.com/", false),
        ("api.example.com", "https://apiXexample.com/", false),
        ("*.example.com", "https://a.example.com/", true),
        ("*.example.com", "https://a.b.c.example.com/", true),
        ("*.example.com", "https://example.com/", false),
        ("*.example.com", "https://.example.com/", false),
        ("*.example.com", "https://evilexample.com/", false),
        ("*.example.com", "https://a.example.com.evil/", false),
        ("*.example.com", "https://a.example.com:444/", false),
        ("*.example.com:444", "https://a.example.com:444/", true),
        ("http://api.example.com", "http://api.example.com/", true),
        ("http://api.example.com", "https://api.example.com/", false),
        ("8.8.8.8", "https://8.8.8.8/", true),
        ("8.8.8.8", "https://0x8.0x8.0x8.0x8/", true),
        ("8.8.8.8", "https://8.8.8.9/", false),
    ] {
        assert_eq!(allowed(rule, url, "GET"), want, "{rule} and {url}");
    }
}

#[test]
fn paths() {
    for (rule, path, want) in [
        ("https://a.b/v1", "/v1", true),
        ("https://a.b/v1", "/v1/", true),
        ("https://a.b/v1", "/v1/x?y", true),
        ("https://a.b/v1", "/v1?x", true),
        ("https://a.b/v1", "/v10", false),
        ("https://a.b/v1", "/v1.evil", false),
        ("https://a.b/v1/", "/v1", false),
        ("https://a.b/v1/", "/v1/x", true),
        ("https://a.b/v1/", "/V1/x", false),
        ("https://a.b/v1/", "/", false),
        ("https://a.b/v1/", "/v1/../admin", false),
        ("https://a.b/v1/", "/v1/%2e%2e/admin", false),
        ("https://a.b/v1/", "/v1/.%2E/admin", false),
        ("https://a.b/v1/", "/v1/..%2fadmin", false),
        ("https://a.b/v1/", "/v1/..%5cadmin", false),
        ("https://a.b/v1/", "/v1/..\\admin", false),
        ("https://a.b/v1/", "/v1/%252e%252e%252fadmin", false),
        ("https://a.b/v1/", "/v1/%25252e%25252e%25252fadmin", false),
        ("https://a.b/v1/", "/v1/..;/admin", false),
        ("https://a.b/v1/", "/v1/%2e%2e;x=y/admin", false),
        ("https://a.b/v1/", "/v1/x%00", false),
        ("https://a.b/v1/", "/v1/%c0%ae%c0%ae/admin", false),
        ("https://a.b/v1/", "/v1/%u002e%u002e/admin", false),
        ("https://a.b/v1/", "/v1/..%20/admin", false),
        ("https://a.b/v1/", "/v1/..%09/admin", false),
        ("https://a.b/v1/", "/v1/%20../admin", false),
        ("https://a.b/v1/", "/v1/..%3fx", false),
        ("https://a.b/v1/", "/v1/..%23x", false),
        ("https://a.b/v1/", "/v1/%ef%bc%8e%ef%bc%8e/admin", false),
        ("https://a.b/v1/", "/v1/a%20b", true),
        ("https://a.b/v1/", "/v1/a..b/...", true),
        ("https://a.b/v1/", "//v1/x", false),
        ("https://a.b", "/anything%2fgoes/..%2f", true),
    ] {
        assert_eq!(allowed(rule, &format!("https://a.b{path}"), "GET"), want, "{rule} and {path}");
    }
}

#[test]
fn methods() {
    for (rule, method, want) in [
        ("GET,POST a.b", "GET", true),
        ("GET,POST a.b", "POST", true),
        ("GET,POST a.b", "PUT", false),
        ("GET a.b", "get", true),
        ("PATCH a.b", "patch", false),
        ("a.b", "PATCH", true),
        ("a.b", "PROPFIND", true),
        ("a.b", "CONNECT", false),
        ("a.b", "trace", false),
        ("a.b", "", false),
        ("a.b", "GET x", false),
    ] {
        assert_eq!(allowed(rule, "https://a.b/", method), want, "{rule} and {method}");
    }
    // The first rule that fits is named.
    let both = rules(&["GET https://a.b", "POST https://a.b/v1/", "*.a.b"]);
    assert_eq!(explain(&both, "https://a.b/v1/x", "POST").rule.as_deref(), Some("POST https://a.b/v1/"));
    assert_eq!(explain(&both, "https://a.b/v2", "GET").rule.as_deref(), Some("GET https://a.b"));
}

proptest! {
    #![proptest_config(ProptestConfig { cases: 2000, failure_persistence: None, ..ProptestConfig::default() })]

    #[test]
    fn whatever_is_written(text in prop_oneof![
        "(?s).{0,40}",
        "((GET|POST|x),?){0,2} ?(https?://)?(\\*\\.)?[a-z0-9.\\[\\]:%*-]{0,12}(:[0-9]{0,6})?(/[a-z%2e./;]{0,8})?",
    ]) {
        if let Ok(rule) = Rule::parse(&text, BareStar::Refused) {
            let again = Rule::parse(&rule.to_string(), BareStar::Refused);
            prop_assert_eq!(again.as_ref(), Ok(&rule), "{}", rule);
            prop_assert!(text.is_ascii());
        }
    }

    /// Whatever the path, what is let through stays under the prefix however often it is decoded.
    #[test]
    fn nothing_leaves_the_prefix(tail in "([a.;/\\\\]|%2e|%2f|%5c|%25|%00){0,10}") {
        let url = format!("https://a.b/v1/{tail}");
        if allowed("https://a.b/v1/", &url, "GET") {
            let mut path = ada_url::Url::parse(url.as_str(), None).unwrap().pathname().to_owned();
            for _ in 0..6 {
                prop_assert!(path.starts_with("/v1/"), "{}", path);
                let steps = path.split(['/', '\\']).any(|step| matches!(step.split(';').next(), Some("." | "..")));
                prop_assert!(!steps, "{}", path);
                path = percent_encoding::percent_decode_str(&path).decode_utf8_lossy().into_owned();
            }
        }
    }

    #[test]
    fn only_below_a_star(name in "[a-z]{1,3}(\\.[a-z]{1,3}){0,3}", host in "[a-z]{1,3}(\\.[a-z]{1,3}){1,2}") {
        let rule = format!("*.{host}");
        prop_assert_eq!(allowed(&rule, &format!("https://{name}/"), "GET"), name.ends_with(&format!(".{host}")));
    }
}

/// Said to who writes the rule, with the rule's name, and before anything is sent.
#[test]
fn rules_for_what_is_never_reached() {
    let check = |rule: &str, ports: &[u16]| rules(&["api.example.com", rule]).check(ports);
    for (rule, why) in [
        ("http://169.254.169.254", "cloud metadata"),
        ("GET https://10.0.0.7:8443/v1/", "10.0.0.0/8"),
        ("https://[fd00::1]", "fc00::/7"),
        ("http://127.0.0.1:3000", "127.0.0.0/8"),
        ("http://localhost:3000", "a name for the machine itself"),
        ("http://a.localhost:3000", "a name for the machine itself"),
        ("http://*.a.localhost:3000", "a name for the machine itself"),
    ] {
        let denied = check(rule, &[]).unwrap_err().message;
        assert!(denied.starts_with(&format!("rule `{rule}`: ")) && denied.contains(why), "{denied}");
        assert_eq!(check(rule, &[3000, 80, 443, 8443]).is_ok(), rule.ends_with(":3000"), "{rule}");
    }
    for rule in ["8.8.8.8", "*.example.com", "localhost.example.com", "https://[2606:4700::1111]:8443"] {
        assert_eq!(check(rule, &[]), Ok(()), "{rule}");
    }
}

#[tokio::test]
async fn a_door_knows_more_of_them() {
    let settings = || Settings { deny: vec![("93.184.216.0".parse().unwrap(), 24)], ..Settings::default() };
    let (serve, dev) = (Door::serve(settings()).unwrap(), Door::dev(vec![3000], settings()).unwrap());
    assert_eq!((serve.loopback(), dev.loopback()), (&[][..], &[3000][..]));
    for (rule, at_serve, at_dev) in [
        ("https://93.184.216.34", false, false),
        ("https://93.184.217.34", true, true),
        ("http://127.0.0.1:3000", false, true),
        ("http://127.0.0.1:3001", false, false),
    ] {
        let rules = rules(&[rule]);
        assert_eq!((serve.check(&rules).is_ok(), dev.check(&rules).is_ok()), (at_serve, at_dev), "{rule}");
    }
}

#[test]
fn a_rule_covers_what_allows_no_more() {
    let covers = |one: &str, other: &str| {
        let rule = |text| Rule::parse(text, BareStar::Allowed).unwrap();
        rule(one).covers(&rule(other))
    };
    for (wide, narrow) in [
        ("api.example.com", "api.example.com"),
        ("api.example.com", "https://api.example.com:443/v1/"),
        ("api.example.com", "GET https://api.example.com"),
        ("GET,POST api.example.com", "POST api.example.com"),
        ("https://api.example.com/v1", "https://api.example.com/v1/prices"),
        ("*.example.com", "a.b.example.com"),
        ("*.example.com", "*.b.example.com"),
        ("*.example.com", "*.example.com"),
        ("*", "*.example.com"),
        ("*", "192.0.2.1"),
    ] {
        assert!(covers(wide, narrow), "{wide} covers {narrow}");
    }
    for (one, other) in [
        ("api.example.com", "http://api.example.com"),
        ("api.example.com", "api.example.com:8443"),
        ("api.example.com", "*.api.example.com"),
        ("*.example.com", "example.com"),
        ("*.example.com", "badexample.com"),
        ("*.example.com", "*"),
        ("*.b.example.com", "*.example.com"),
        ("GET api.example.com", "api.example.com"),
        ("GET api.example.com", "GET,POST api.example.com"),
        ("https://api.example.com/v1", "https://api.example.com/v10"),
        ("https://api.example.com/v1", "api.example.com"),
    ] {
        assert!(!covers(one, other), "{one} does not cover {other}");
    }
}
