//! One rule: a base URL, with or without methods.

use super::origin::{Host, Origin, Scheme};
use super::path;
use std::fmt;
use std::net::{IpAddr, Ipv4Addr, Ipv6Addr};

const LONGEST_RULE: usize = 2048;
const LONGEST_METHOD: usize = 20;
const SUCH: &str = "such as `api.example.com`, `*.example.com:8443`, `https://api.example.com/v1/` or `GET,POST https://api.example.com`";

/// Whether `*`, every host, may be written. That is the operator's to say, never the author's.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum BareStar {
    Refused,
    Allowed,
}

/// Why a text is no rule. The message goes on where the text was quoted: `is …`, `has …`.
#[derive(Clone, Debug, PartialEq, Eq, thiserror::Error)]
#[error("{message}{}", .hint.as_ref().map(|hint| format!("; {hint}")).unwrap_or_default())]
pub struct BadRule {
    pub message: String,
    pub hint: Option<String>,
}

fn wrong(message: impl Into<String>) -> BadRule {
    BadRule { message: message.into(), hint: None }
}

impl BadRule {
    fn hint(self, hint: impl Into<String>) -> BadRule {
        BadRule { hint: Some(hint.into()), ..self }
    }
}

#[derive(Clone, Debug, PartialEq, Eq)]
enum Hosts {
    One(Host),
    /// One or more labels below, never the name itself.
    Below(String),
    Any,
}

/// One base URL: scheme, host and port are equal, the path begins with it, the method is one of them.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Rule {
    scheme: Scheme,
    hosts: Hosts,
    port: u16,
    prefix: String,
    /// Empty: every method that is not forbidden anyway.
    methods: Vec<String>,
}

/// Never sent: they make tunnels or reflect what the host has added.
pub fn is_forbidden_method(method: &str) -> bool {
    ["CONNECT", "TRACE", "TRACK"].iter().any(|forbidden| method.eq_ignore_ascii_case(forbidden))
}

/// One label or more below the parent.
fn below(name: &str, parent: &str) -> bool {
    name.strip_suffix(parent).is_some_and(|below| below.len() > 1 && below.ends_with('.'))
}

impl Rule {
    /// A host (`api.example.com`, `*.example.com:8443`: https), or a base URL, with or without methods before it. There is one way to
    /// write each, but for a port that goes without saying; a text that is written otherwise is refused with the right form.
    pub fn parse(text: &str, star: BareStar) -> Result<Rule, BadRule> {
        if text.len() > LONGEST_RULE {
            return Err(wrong(format!("has more than {LONGEST_RULE} bytes")));
        }
        let (methods, base) = match text.split_once(' ') {
            Some((list, base)) => (methods(list)?, base),
            None => (Vec::new(), text),
        };
        let (scheme, rest) = match base.split_once("://") {
            Some(("https", rest)) => (Scheme::Https, rest),
            Some(("http", rest)) => (Scheme::Http, rest),
            Some(_) => return Err(wrong("has a scheme that is neither https nor http")),
            None if base.contains('/') => return Err(wrong("has a path and no scheme before it").hint(SUCH)),
            None => (Scheme::Https, base),
        };
        let (authority, prefix) = rest.split_at(rest.find('/').unwrap_or(rest.len()));
        let (hosts, port) = hosts(authority)?;
        let port = port.unwrap_or(scheme.default_port());
        if hosts == Hosts::Any {
            if star == BareStar::Refused {
                return Err(
                    wrong("opens every host, which only the host's operator may").hint("name those that are needed")
                );
            }
            if !prefix.is_empty() {
                return Err(wrong("has a path for every host").hint("name the host that the path belongs to"));
            }
        }
        let prefix = prefix_of(prefix)?;
        Ok(Rule { scheme, hosts, port, prefix, methods })
    }

    /// Whether it says nothing about paths and methods.
    pub fn is_whole_origin(&self) -> bool {
        self.prefix == "/" && self.methods.is_empty()
    }

    /// Whether it says nothing about hosts.
    pub fn is_any_host(&self) -> bool {
        self.hosts == Hosts::Any
    }

    /// Whether it names methods.
    pub fn has_methods(&self) -> bool {
        !self.methods.is_empty()
    }

    /// The host that is named, or the name that all its hosts are below. Nothing for every host.
    pub fn named(&self) -> Option<(Host, u16)> {
        match &self.hosts {
            Hosts::One(host) => Some((host.clone(), self.port)),
            Hosts::Below(parent) => Some((Host::Name(parent.clone()), self.port)),
            Hosts::Any => None,
        }
    }

    /// Whether there is an origin that both cover.
    pub fn meets(&self, other: &Rule) -> bool {
        let hosts = match (&self.hosts, &other.hosts) {
            (Hosts::Any, _) | (_, Hosts::Any) => true,
            (Hosts::One(one), Hosts::One(two)) => one == two,
            (Hosts::Below(one), Hosts::Below(two)) => one == two || below(one, two) || below(two, one),
            (Hosts::One(Host::Name(name)), Hosts::Below(parent))
            | (Hosts::Below(parent), Hosts::One(Host::Name(name))) => below(name, parent),
            _ => false,
        };
        hosts && self.scheme == other.scheme && self.port == other.port
    }

    /// Whether everything that the other allows is allowed by this one: scheme, hosts, port, paths and methods.
    pub fn covers(&self, other: &Rule) -> bool {
        let hosts = match (&self.hosts, &other.hosts) {
            (Hosts::Any, _) => true,
            (Hosts::One(one), Hosts::One(two)) => one == two,
            (Hosts::Below(one), Hosts::Below(two)) => one == two || below(two, one),
            (Hosts::Below(parent), Hosts::One(Host::Name(name))) => below(name, parent),
            _ => false,
        };
        let methods = self.methods.is_empty()
            || !other.methods.is_empty() && other.methods.iter().all(|method| self.methods.contains(method));
        hosts
            && methods
            && self.scheme == other.scheme
            && self.port == other.port
            && path::is_under(&other.prefix, &self.prefix)
    }

    pub fn covers_origin(&self, origin: &Origin) -> bool {
        let host = match (&self.hosts, &origin.host) {
            (Hosts::One(host), other) => host == other,
            (Hosts::Below(parent), Host::Name(name)) => below(name, parent),
            (Hosts::Below(_), Host::Address(_)) => false,
            (Hosts::Any, _) => true,
        };
        host && self.scheme == origin.scheme && self.port == origin.port
    }

    /// The path is as the URL parser writes it, without the query.
    pub fn allows_path(&self, path: &str) -> bool {
        path::is_under(path, &self.prefix)
    }

    pub fn allows_method(&self, method: &str) -> bool {
        !is_forbidden_method(method)
            && (self.methods.is_empty() || self.methods.iter().any(|allowed| allowed == method))
    }
}

fn methods(list: &str) -> Result<Vec<String>, BadRule> {
    let method =
        |text: &str| (1..=LONGEST_METHOD).contains(&text.len()) && text.bytes().all(|b| b.is_ascii_uppercase());
    if !list.split(',').all(method) {
        return Err(wrong("has something before its host that is no list of methods").hint("write them as `GET,POST`"));
    }
    match list.split(',').find(|method| is_forbidden_method(method)) {
        Some(never) => Err(wrong(format!("names {never}, which is never sent"))),
        None => Ok(list.split(',').map(str::to_owned).collect()),
    }
}

fn prefix_of(path: &str) -> Result<String, BadRule> {
    let plain = |b: u8| b.is_ascii_alphanumeric() || b"/-._~!$&'()+,;=:@".contains(&b);
    if path == "/" {
        return Err(wrong("has a slash for a path").hint("leave it out: without a path a rule is for all paths"));
    }
    if !path.bytes().all(plain) || path::unambiguous(path).is_err() {
        return Err(wrong("has a path that cannot be the beginning of others").hint("such as `https://a.example/v1/`"));
    }
    Ok(if path.is_empty() { "/" } else { path }.to_owned())
}

/// The port is what follows the last colon, outside of brackets.
fn split(text: &str) -> (&str, Option<&str>) {
    match text.rsplit_once(':') {
        Some((name, port)) if !port.contains(']') => (name, Some(port)),
        _ => (text, None),
    }
}

fn hosts(text: &str) -> Result<(Hosts, Option<u16>), BadRule> {
    if text.contains(['?', '#', '@', '\\']) {
        return Err(wrong("is more than a base URL").hint(SUCH));
    }
    let (bare, port) = split(text);
    if port.is_some() && bare.contains(':') && !bare.starts_with('[') {
        return Err(wrong("is no host name").hint("an IPv6 address stands in brackets, such as `[2001:db8::1]`"));
    }
    let number = |text: &str| text.parse::<u16>().ok().filter(|port| *port > 0 && port.to_string() == text);
    let number = port
        .map(|port| number(port).ok_or_else(|| wrong("has no port between 1 and 65535 after its colon")))
        .transpose()?;
    let hosts = match bare {
        "*" => Hosts::Any,
        _ if bare.starts_with('[') => Hosts::One(Host::Address(IpAddr::V6(v6(bare)?))),
        _ if ends_in_a_number(bare) => {
            let address: Result<Ipv4Addr, _> = bare.parse();
            let told = |_| wrong("is a number and no IPv4 address").hint("such as `192.0.2.1`");
            Hosts::One(Host::Address(IpAddr::V4(address.map_err(told)?)))
        }
        _ => names(bare, text)?,
    };
    Ok((hosts, number))
}

fn v6(bare: &str) -> Result<Ipv6Addr, BadRule> {
    let inner = bare.strip_prefix('[').and_then(|rest| rest.strip_suffix(']'));
    let address: Ipv6Addr = inner.and_then(|inner| inner.parse().ok()).ok_or_else(|| wrong("is no IPv6 address"))?;
    if let Some(inner) = address.to_ipv4_mapped() {
        return Err(wrong("is an IPv4 address in disguise").hint(format!("write `{inner}`")));
    }
    let plain = format!("[{address}]");
    if plain == bare { Ok(address) } else { Err(wrong("is not in its short form").hint(format!("write `{plain}`"))) }
}

/// What resolvers read as a number they read in many ways: `127.1`, `0x7f.0.0.1`, `2130706433`.
fn ends_in_a_number(bare: &str) -> bool {
    let last = bare.rsplit('.').next().unwrap_or_default();
    let hex = last.strip_prefix("0x").is_some_and(|rest| rest.bytes().all(|b| b.is_ascii_hexdigit()));
    !last.is_empty() && (hex || last.bytes().all(|b| b.is_ascii_digit()))
}

fn names(bare: &str, text: &str) -> Result<Hosts, BadRule> {
    let lower = bare.to_ascii_lowercase();
    if bare != lower && is_name(lower.strip_prefix("*.").unwrap_or(&lower)) {
        return Err(wrong("has capital letters").hint(format!("write `{}`", text.to_ascii_lowercase())));
    }
    if !bare.is_ascii() {
        return Err(wrong("is not ASCII").hint("write such a name in its form that begins with `xn--`"));
    }
    let none = || wrong("is no host name").hint(SUCH);
    match bare.strip_prefix("*.") {
        Some(rest) if !is_name(rest) => Err(none()),
        Some(rest) if !rest.contains('.') => Err(wrong("leaves too much open").hint("two parts are needed after `*.`")),
        Some(rest) => Ok(Hosts::Below(rest.to_owned())),
        None if is_name(bare) => Ok(Hosts::One(Host::Name(bare.to_owned()))),
        None => Err(none()),
    }
}

fn is_name(name: &str) -> bool {
    let label = |label: &str| {
        (1..=63).contains(&label.len())
            && !label.starts_with('-')
            && !label.ends_with('-')
            && label.bytes().all(|b| b.is_ascii_lowercase() || b.is_ascii_digit() || b == b'-')
    };
    name.len() <= 253 && name.split('.').all(label)
}

impl fmt::Display for Rule {
    fn fmt(&self, f: &mut fmt::Formatter) -> fmt::Result {
        if !self.methods.is_empty() {
            write!(f, "{} ", self.methods.join(","))?;
        }
        let host = match &self.hosts {
            Hosts::One(host) => host.to_string(),
            Hosts::Below(parent) => format!("*.{parent}"),
            Hosts::Any => "*".to_owned(),
        };
        write!(f, "{}://{host}", self.scheme.as_str())?;
        if self.port != self.scheme.default_port() {
            write!(f, ":{}", self.port)?;
        }
        f.write_str(if self.prefix == "/" { "" } else { &self.prefix })
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use proptest::prelude::*;

    fn rule(text: &str) -> Rule {
        Rule::parse(text, BareStar::Allowed).unwrap_or_else(|bad| panic!("{text}: {bad}"))
    }

    #[test]
    fn as_they_must_be_written() {
        let good = [
            "localhost",
            "api.example.com",
            "api.example.com:8443",
            "*.example.com",
            "*.example.com:443",
            "xn--bcher-kva.de",
            "192.0.2.1",
            "192.0.2.1:80",
            "[2001:db8::1]",
            "[::1]:8080",
            "1.example.com",
            "0x.example",
            "https://a.b",
            "http://a.b:8080",
            "https://a.b/v1/",
            "https://*.example.com/v1",
            "GET https://a.b",
            "GET,POST a.b",
            "*",
            "*:8443",
            "http://*",
        ];
        for text in good {
            let rule = rule(text);
            assert_eq!(Rule::parse(&rule.to_string(), BareStar::Allowed), Ok(rule), "{text}");
        }
        let bad = [
            "",
            ".",
            "*.",
            "*.com",
            "*.*.com",
            "a.*.com",
            "*example.com",
            "**.example.com",
            "a..b",
            "a.",
            ".a",
            "-a.b",
            "a-.b",
            "A.b",
            "bücher.de",
            "a b",
            "a_b.c",
            "a\n",
            "a\0",
            "ftp://a.b",
            "https://",
            "https://a.b/",
            "https://a.b/../c",
            "https://a.b/%2e/",
            "https://a.b/?c",
            "https://a.b/#c",
            "https://u@a.b",
            "https://a.b//c d",
            "get https://a.b",
            "GET, https://a.b",
            " https://a.b",
            "GET  https://a.b",
            "HTTPS://a.b",
            "a.b/",
            "a.b/c",
            "a.b?c",
            "u@a.b",
            "a.b:",
            "a.b:0",
            "a.b:080",
            "a.b:+80",
            "a.b:65536",
            "a.b:80:80",
            "::1",
            "2001:db8::1",
            "[::1",
            "[::1]x",
            "[::1]:",
            "[0:0::1]",
            "[::ffff:127.0.0.1]",
            "[fe80::1%eth0]",
            "127.1",
            "2130706433",
            "0x7f.0.0.1",
            "0x7f000001",
            "127.0.0.01",
            "1.2.3.4.5",
            "*.1.2.3",
            "%31.example",
            "a.b\u{200b}",
            "a\u{3002}b",
        ];
        for text in bad {
            assert!(Rule::parse(text, BareStar::Allowed).is_err(), "{text}");
        }
        let more = [
            "https://*/v1",
            "TRACE a.b",
            "GET,CONNECT a.b",
            "https://a.b/..;/c",
            "https://a.b/x%20y",
            "https://a.b/c\\d",
            "https://a.b\\c",
            "ABCDEFGHIJKLMNOPQRSTU a.b",
            "https:a.b",
            "://a.b",
            "file:///x",
            "https:///a",
            "*.[::1]",
            "*.8.8.8.8",
            "https://a.b:443x",
        ];
        for text in more {
            assert!(Rule::parse(text, BareStar::Allowed).is_err(), "{text}");
        }
        for text in [format!("{}.b", "a".repeat(64)), "a.".repeat(200), format!("https://a.b/{}", "a".repeat(4000))] {
            assert!(Rule::parse(&text, BareStar::Allowed).is_err(), "{text}");
        }
        for star in ["*", "*:8443", "http://*", "GET *"] {
            let bad = Rule::parse(star, BareStar::Refused).unwrap_err().to_string();
            assert!(bad.contains("only the host's operator may"), "{bad}");
        }
    }

    #[test]
    fn one_covers_another() {
        for (wide, narrow) in [
            ("a.b", "a.b"),
            ("a.b", "https://a.b:443/v1/"),
            ("a.b", "GET a.b"),
            ("GET,POST a.b", "POST https://a.b/x"),
            ("*.example.com", "a.example.com"),
            ("*.example.com", "*.a.example.com"),
            ("*", "*.example.com"),
            ("*", "8.8.8.8"),
            ("https://a.b/v1", "https://a.b/v1/"),
            ("https://a.b/v1/", "https://a.b/v1/x"),
            ("http://a.b:8080", "http://a.b:8080/x"),
        ] {
            assert!(rule(wide).covers(&rule(narrow)), "{wide} {narrow}");
            assert!(rule(narrow) == rule(wide) || !rule(narrow).covers(&rule(wide)), "{narrow} {wide}");
        }
        for (one, two) in [
            ("a.b", "http://a.b"),
            ("a.b", "a.b:8443"),
            ("a.b", "x.a.b"),
            ("*.example.com", "example.com"),
            ("*.example.com", "badexample.com"),
            ("*.example.com", "8.8.8.8"),
            ("GET a.b", "a.b"),
            ("GET a.b", "GET,POST a.b"),
            ("https://a.b/v1/", "https://a.b/v1"),
            ("https://a.b/v1", "https://a.b/v10"),
            ("*:8443", "a.b"),
        ] {
            assert!(!rule(one).covers(&rule(two)), "{one} {two}");
        }
    }

    fn rules() -> impl Strategy<Value = Rule> {
        let text = "((GET|POST|PUT|GET,PUT) )?(https?://)(\\*\\.x\\.y|\\*\\.a\\.x\\.y|a\\.x\\.y|b\\.a\\.x\\.y|8\\.8\\.8\\.8)(:81)?(/v1|/v1/|/v1/x|/v)?";
        text.prop_map(|text| rule(&text))
    }

    fn origins() -> impl Strategy<Value = Origin> {
        "(https?) (x.y|a.x.y|b.a.x.y|c.b.a.x.y|8.8.8.8) (81|80|443)".prop_map(|text| {
            let mut parts = text.split(' ');
            let scheme = if parts.next() == Some("http") { Scheme::Http } else { Scheme::Https };
            let host = parts.next().unwrap_or_default();
            let host = host.parse().map_or_else(|_| Host::Name(host.to_owned()), Host::Address);
            Origin { scheme, host, port: parts.next().and_then(|port| port.parse().ok()).unwrap_or(1) }
        })
    }

    fn allows(rule: &Rule, origin: &Origin, path: &str, method: &str) -> bool {
        rule.covers_origin(origin) && rule.allows_path(path) && rule.allows_method(method)
    }

    proptest! {
        #![proptest_config(ProptestConfig { cases: 4000, failure_persistence: None, ..ProptestConfig::default() })]

        #[test]
        fn whatever_is_written(text in prop_oneof![
            "(?s).{0,40}",
            "((GET|POST|x),?){0,2} ?(https?://)?(\\*\\.)?[a-z0-9.\\[\\]:%*-]{0,12}(:[0-9]{0,6})?(/[a-z%2e./;]{0,8})?",
        ]) {
            if let Ok(rule) = Rule::parse(&text, BareStar::Allowed) {
                prop_assert!(text.is_ascii());
                prop_assert_eq!(Rule::parse(&rule.to_string(), BareStar::Allowed), Ok(rule));
            }
        }

        /// Whatever the narrower one allows, the wider one does; and if it does not cover it, there may be a difference.
        #[test]
        fn covering_is_about_what_is_allowed(
            wide in rules(), narrow in rules(), origin in origins(),
            path in "(/v1|/v1/|/v1/x|/v1/x/y|/v|/v/z|/|/v10|/v1/%2e%2e)", method in "(GET|POST|PUT|DELETE|TRACE)",
        ) {
            prop_assert!(wide.covers(&wide));
            if wide.covers(&narrow) {
                prop_assert!(!allows(&narrow, &origin, &path, &method) || allows(&wide, &origin, &path, &method));
                prop_assert!(wide.meets(&narrow));
            }
        }
    }
}
