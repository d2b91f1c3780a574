use super::*;
use http::HeaderValue;
use http::header::HeaderName;
use proptest::prelude::*;

fn guard() -> Guard {
    let own = |list: &[&str]| list.iter().map(|s| (*s).to_owned()).collect();
    Guard::new(GuardSettings {
        allowed_hosts: own(&["mcp.example.com", "inside.example:8470"]),
        allowed_origins: own(&["https://app.example.com", "http://dev.example:3000"]),
    })
}

fn headers(fields: &[(HeaderName, &[u8])]) -> HeaderMap {
    let mut headers = HeaderMap::new();
    for (name, value) in fields {
        headers.append(name, HeaderValue::from_bytes(value).unwrap());
    }
    headers
}

fn host(host: &str) -> Result<(), GuardRefusal> {
    guard().check(&headers(&[(header::HOST, host.as_bytes())]), &Uri::from_static("/acme/mcp"))
}

fn origin(host: &str, origin: &str) -> Result<(), GuardRefusal> {
    let headers = headers(&[(header::HOST, host.as_bytes()), (header::ORIGIN, origin.as_bytes())]);
    guard().check(&headers, &Uri::from_static("/acme/mcp"))
}

#[test]
fn addresses_localhost_and_allowed_names() {
    for good in [
        "127.0.0.1",
        "127.0.0.1:8470",
        "192.168.1.5:1",
        "[::1]:8470",
        "[2001:db8::1]",
        "localhost",
        "LOCALHOST:5",
        "mcp.example.com",
        "MCP.Example.com:443",
        "mcp.example.com:9",
        "inside.example:8470",
    ] {
        assert_eq!(host(good), Ok(()), "{good}");
    }
    for bad in [
        "evil.example.com",
        "mcp.example.com.evil.com",
        "xmcp.example.com",
        "inside.example",
        "inside.example:8471",
        "localhost.evil.com",
        "127.0.0.1.nip.io",
        "127.0.0.1.evil.com:8470",
    ] {
        assert_eq!(host(bad), Err(GuardRefusal::UnknownHost), "{bad}");
    }
    for odd in [
        "",
        " ",
        "localhost:",
        "localhost:x",
        "127.1",
        "0x7f.1",
        "2130706433",
        "localhost.",
        "a@localhost",
        "localhost, evil",
    ] {
        assert_eq!(host(odd), Err(GuardRefusal::NoHost), "{odd}");
    }
    assert_eq!(host(&"a".repeat(MAX_HOST_BYTES + 1)), Err(GuardRefusal::NoHost));
}

#[test]
fn one_host_and_not_none_or_two() {
    let check =
        |fields: &[(HeaderName, &[u8])], uri: &'static str| guard().check(&headers(fields), &Uri::from_static(uri));
    assert_eq!(check(&[], "/x"), Err(GuardRefusal::NoHost));
    assert_eq!(check(&[(header::HOST, b"localhost"), (header::HOST, b"localhost")], "/x"), Err(GuardRefusal::NoHost));
    assert_eq!(check(&[(header::HOST, b"\xff")], "/x"), Err(GuardRefusal::NoHost));
    // HTTP/2, and HTTP/1 through a proxy.
    assert_eq!(check(&[], "http://localhost:1/x"), Ok(()));
    assert_eq!(check(&[], "http://evil.com/x"), Err(GuardRefusal::UnknownHost));
    assert_eq!(check(&[], "http://a@localhost/x"), Err(GuardRefusal::NoHost));
    assert_eq!(check(&[(header::HOST, b"LOCALHOST:1")], "http://localhost:1/x"), Ok(()));
    assert_eq!(check(&[(header::HOST, b"localhost:2")], "http://localhost:1/x"), Err(GuardRefusal::NoHost));
    assert_eq!(check(&[(header::HOST, b"evil.com")], "http://localhost/x"), Err(GuardRefusal::NoHost));
    assert_eq!(check(&[(header::HOST, b"localhost")], "http://evil.com/x"), Err(GuardRefusal::NoHost));
}

#[test]
fn pages_that_may() {
    for (host, page) in [
        ("localhost:8470", "http://localhost:8470"),
        ("localhost:8470", "http://localhost:6274"),
        ("127.0.0.1:8470", "http://localhost:6274"),
        ("[::1]:8470", "https://127.0.0.1"),
        ("127.0.0.1:8470", "https://app.example.com"),
        ("mcp.example.com", "https://APP.example.com:443"),
        ("mcp.example.com", "http://dev.example:3000"),
        ("mcp.example.com", "https://mcp.example.com"),
        ("mcp.example.com:8443", "https://mcp.example.com:8443"),
        ("mcp.example.com:443", "https://mcp.example.com"),
        ("192.168.1.5:8470", "http://192.168.1.5:8470"),
    ] {
        assert_eq!(origin(host, page), Ok(()), "{page} to {host}");
    }
}

#[test]
fn pages_that_may_not() {
    for (host, page) in [
        ("localhost:8470", "null"),
        ("localhost:8470", ""),
        ("localhost:8470", "http://evil.example.com"),
        ("localhost:8470", "http://localhost.evil.com"),
        ("localhost:8470", "file://"),
        ("localhost:8470", "http://localhost/"),
        ("localhost:8470", "http://192.168.1.5:8470"),
        ("localhost:8470", "http://app.example.com"),
        ("localhost:8470", "https://app.example.com:8443"),
        ("localhost:8470", "http://dev.example"),
        ("localhost:8470", "https://app.example.com https://localhost"),
        ("mcp.example.com", "http://mcp.example.com"),
        ("mcp.example.com", "https://mcp.example.com:8443"),
        ("mcp.example.com:8470", "https://mcp.example.com"),
        ("mcp.example.com", "http://localhost"),
        ("192.168.1.5:8470", "http://192.168.1.5:80"),
        ("192.168.1.5:8470", "http://192.168.1.6:8470"),
        ("192.168.1.5:8470", "http://localhost:8470"),
    ] {
        assert_eq!(origin(host, page), Err(GuardRefusal::UnknownOrigin), "{page} to {host}");
    }
    let two = headers(&[
        (header::HOST, b"localhost"),
        (header::ORIGIN, b"http://localhost"),
        (header::ORIGIN, b"http://localhost"),
    ]);
    assert_eq!(guard().check(&two, &Uri::from_static("/")), Err(GuardRefusal::UnknownOrigin));
    assert_eq!(origin("evil.example.com", "http://evil.example.com"), Err(GuardRefusal::UnknownHost));
}

#[test]
fn a_key_in_a_url_is_refused() {
    let check = |uri: &'static str| guard().check(&headers(&[(header::HOST, b"localhost")]), &Uri::from_static(uri));
    for uri in [
        "/acme/mcp?access_token=x",
        "/x?a=1&access_token=y",
        "/x?access_token",
        "/x?key=bh_call_abc",
        "/x?bh_operator_abc",
        "/x/bh_call_abc/mcp",
        "/x?key=%62h_call_abc",
        "/x?key=bh%5Fcall%5Fabc",
        "/x?key=%2562%68_call_abc",
        "/x/bh%5fadmin%5fabc",
        "/x?access%5Ftoken=y",
        "/x?a=%25252525252562h_call_abc",
    ] {
        assert_eq!(check(uri), Err(GuardRefusal::KeyInUrl), "{uri}");
    }
    for uri in [
        "/acme/mcp",
        "/x?tail=5&follow=true",
        "/x?no_access_token=1",
        "/x?q=bh_x",
        "/x?",
        "/x?q=100%25",
        "/x?q=%zz%",
        "/x?q=%2525",
    ] {
        assert_eq!(check(uri), Ok(()), "{uri}");
    }
}

#[test]
fn settings_that_match() {
    let own = |text: &str| vec![text.to_owned()];
    for host in ["mcp.example.com", "mcp.example.com:8470", "10.0.0.1", "[::1]:5"] {
        assert_eq!(
            GuardSettings { allowed_hosts: own(host), allowed_origins: own("https://a.example") }.check(),
            Ok(())
        );
    }
}

#[test]
fn settings_that_would_never_match_are_found() {
    for bad in ["", "*", "*.example.com", "https://mcp.example.com", "mcp.example.com/", "mcp.example.com:x"] {
        let settings = GuardSettings { allowed_hosts: vec![bad.to_owned()], ..GuardSettings::default() };
        assert_eq!(settings.check(), Err(GuardSettingsError::BadHost(bad.to_owned())));
    }
    for bad in ["", "*", "null", "app.example.com", "https://app.example.com/", "https://*.example.com"] {
        let settings = GuardSettings { allowed_origins: vec![bad.to_owned()], ..GuardSettings::default() };
        assert_eq!(settings.check(), Err(GuardSettingsError::BadOrigin(bad.to_owned())));
        let page = headers(&[(header::HOST, b"localhost"), (header::ORIGIN, b"https://app.example.com")]);
        assert!(Guard::new(settings).check(&page, &Uri::from_static("/")).is_err());
    }
}

/// Any bytes that a header may hold, and what looks nearly right.
fn garbage() -> impl Strategy<Value = Vec<u8>> {
    let bytes = prop::collection::vec(prop_oneof![32..=126u8, 128..=255u8], 0..80);
    let nearly = "(https?://)?[a-z0-9.:\\[\\]@%/-]{0,40}".prop_map(String::into_bytes);
    let close = "(localhost|127\\.0\\.0\\.1|\\[::1\\]|mcp\\.example\\.com)[ -~]{1,6}".prop_map(String::into_bytes);
    prop_oneof![bytes, nearly, close]
}

/// Said another way than in the code: the host up to the port, by the URL parser.
fn may_be_ours(host: &[u8]) -> bool {
    let Ok(text) = std::str::from_utf8(host) else { return false };
    let Ok(url) = reqwest::Url::parse(&format!("http://{text}")) else { return false };
    let host = url.host_str().unwrap_or_default();
    let ip = host.trim_matches(['[', ']']).parse::<std::net::IpAddr>().is_ok();
    ip || ["localhost", "mcp.example.com", "inside.example"].contains(&host)
}

proptest! {
    #[test]
    fn garbage_is_refused(host in garbage(), page in prop::option::of(garbage())) {
        let mut fields = vec![(header::HOST, host.as_slice())];
        if let Some(page) = &page {
            fields.push((header::ORIGIN, page.as_slice()));
        }
        if guard().check(&headers(&fields), &Uri::from_static("/")).is_ok() {
            prop_assert!(may_be_ours(&host), "{:?}", String::from_utf8_lossy(&host));
            if let Some(page) = page {
                let page = String::from_utf8(page).unwrap();
                let url = reqwest::Url::parse(&page).unwrap();
                prop_assert!(url.path() == "/" && matches!(url.scheme(), "http" | "https"), "{}", page);
            }
        }
    }

    #[test]
    fn no_name_but_the_allowed_ones(name in "[a-z][a-z0-9-]{0,20}(\\.[a-z][a-z0-9-]{0,10}){0,4}(:[0-9]{1,5})?") {
        let bare = name.split(':').next().unwrap();
        prop_assume!(!["localhost", "mcp.example.com", "inside.example"].contains(&bare));
        prop_assert!(host(&name).is_err());
    }

    #[test]
    fn no_page_but_the_allowed_ones(page in "https?://[a-z][a-z0-9]{0,10}(\\.[a-z]{2,8}){1,3}(:[1-9][0-9]{0,3})?") {
        prop_assert_eq!(origin("localhost:8470", &page), Err(GuardRefusal::UnknownOrigin));
    }

    #[test]
    fn any_target_is_survived(target in "[ -~]{0,60}", value in garbage()) {
        if let Ok(uri) = target.parse::<Uri>() {
            let _ = guard().check(&headers(&[(header::HOST, &value)]), &uri);
            let _ = guard().check(&HeaderMap::new(), &uri);
        }
    }
}
