//! `host:port` as it stands in a request, taken apart.

use std::net::{IpAddr, Ipv6Addr};

#[derive(Clone, Debug, PartialEq, Eq)]
pub(super) enum Host {
    Ip(IpAddr),
    /// In lower case.
    Name(String),
}

#[derive(Clone, Debug, PartialEq, Eq)]
pub(super) struct Authority {
    pub host: Host,
    pub port: Option<u16>,
}

#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum Scheme {
    Http,
    Https,
}

/// A page's address without the path.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(super) struct Origin {
    pub scheme: Scheme,
    pub host: Host,
    /// The scheme's own where none is given.
    pub port: u16,
}

impl Host {
    pub fn is_loopback(&self) -> bool {
        match self {
            Host::Ip(ip) => ip.to_canonical().is_loopback(),
            Host::Name(name) => name == "localhost",
        }
    }
}

impl Authority {
    /// None for everything that is not plainly a host and perhaps a port: no user, no empty port, no zone of IPv6, no
    /// address in octal or as one number, which some resolvers would take.
    pub fn parse(text: &str) -> Option<Authority> {
        if let Some(rest) = text.strip_prefix('[') {
            let (ip, rest) = rest.split_once(']')?;
            let port = if rest.is_empty() { None } else { Some(port(rest.strip_prefix(':')?)?) };
            return Some(Authority { host: Host::Ip(IpAddr::V6(ip.parse::<Ipv6Addr>().ok()?)), port });
        }
        let (host, port) = match text.split_once(':') {
            Some((host, rest)) => (host, Some(port(rest)?)),
            None => (text, None),
        };
        let host = match host.parse::<IpAddr>() {
            Ok(ip) => Host::Ip(ip),
            Err(_) => Host::Name(name(host)?),
        };
        Some(Authority { host, port })
    }
}

impl Origin {
    pub fn parse(text: &str) -> Option<Origin> {
        let (scheme, rest) = text.split_once("://")?;
        let (scheme, default) = match scheme {
            _ if scheme.eq_ignore_ascii_case("http") => (Scheme::Http, 80),
            _ if scheme.eq_ignore_ascii_case("https") => (Scheme::Https, 443),
            _ => return None,
        };
        let Authority { host, port } = Authority::parse(rest)?;
        Some(Origin { scheme, host, port: port.unwrap_or(default) })
    }

    pub fn is_default_port(&self) -> bool {
        self.port == if self.scheme == Scheme::Http { 80 } else { 443 }
    }
}

fn port(text: &str) -> Option<u16> {
    let digits = !text.is_empty() && text.len() <= 5 && text.bytes().all(|b| b.is_ascii_digit());
    text.parse().ok().filter(|port| digits && *port != 0)
}

/// A name of the DNS. The last label of one is never a number, so that no odd spelling of an address passes as a name.
fn name(text: &str) -> Option<String> {
    let label = |label: &str| {
        let inside = label.bytes().all(|b| b.is_ascii_alphanumeric() || b == b'-' || b == b'_');
        !label.is_empty() && label.len() <= 63 && inside && !label.starts_with('-') && !label.ends_with('-')
    };
    let last = text.rsplit('.').next()?;
    let number = last.starts_with(|c: char| c.is_ascii_digit())
        && (last.bytes().all(|b| b.is_ascii_digit()) || last.starts_with("0x") || last.starts_with("0X"));
    (text.len() <= 253 && !number && text.split('.').all(label)).then(|| text.to_ascii_lowercase())
}

#[cfg(test)]
mod tests {
    use super::*;

    fn name(name: &str, port: Option<u16>) -> Option<Authority> {
        Some(Authority { host: Host::Name(name.to_owned()), port })
    }

    fn ip(ip: &str, port: Option<u16>) -> Option<Authority> {
        Some(Authority { host: Host::Ip(ip.parse().unwrap()), port })
    }

    #[test]
    fn hosts_with_and_without_ports() {
        assert_eq!(Authority::parse("LocalHost"), name("localhost", None));
        assert_eq!(Authority::parse("mcp.Example.com:8470"), name("mcp.example.com", Some(8470)));
        assert_eq!(Authority::parse("127.0.0.1:80"), ip("127.0.0.1", Some(80)));
        assert_eq!(Authority::parse("[::1]"), ip("::1", None));
        assert_eq!(Authority::parse("[::1]:65535"), ip("::1", Some(65535)));
    }

    #[test]
    fn odd_ones() {
        for text in [
            "",
            ":",
            ":80",
            "a:",
            "a:b",
            "a:0",
            "a:65536",
            "a:+1",
            "a: 1",
            "a:1:2",
            "::1",
            "[::1",
            "[::1]x",
            "[::1]:",
            "[]",
            "[127.0.0.1]",
            "[fe80::1%25eth0]",
            "user@a",
            "a/b",
            "a b",
            " a",
            "a ",
            "a,b",
            "a\t",
            "a..b",
            ".a",
            "a.",
            "-a",
            "a-",
            "127.1",
            "2130706433",
            "0x7f000001",
            "0177.0.0.1",
            "127.0.0.0x1",
            "127.0.0.1.",
            "256.0.0.1",
            "\u{e4}.de",
            "a\0",
        ] {
            assert_eq!(Authority::parse(text), None, "{text:?}");
        }
        assert_eq!(Authority::parse(&"a".repeat(64)), None);
        assert_eq!(Authority::parse(&"a.".repeat(127)), None);
    }

    #[test]
    fn loopback() {
        for text in ["localhost", "127.0.0.1", "127.255.0.9:1", "[::1]:5", "[::ffff:127.0.0.1]"] {
            assert!(Authority::parse(text).unwrap().host.is_loopback(), "{text}");
        }
        for text in ["localhost.evil.com", "128.0.0.1", "[::2]", "0.0.0.0", "127-0-0-1.evil.com"] {
            assert!(!Authority::parse(text).unwrap().host.is_loopback(), "{text}");
        }
    }

    #[test]
    fn origins() {
        let origin = Origin::parse("HTTPS://App.example.com").unwrap();
        assert_eq!((origin.scheme, origin.port), (Scheme::Https, 443));
        assert!(origin.is_default_port());
        assert_eq!(Origin::parse("http://localhost:80"), Origin::parse("http://localhost"));
        for text in [
            "",
            "null",
            "*",
            "localhost",
            "http:",
            "http://",
            "http://a/",
            "http://a?b",
            "file://",
            "ftp://a",
            "http://a@b",
            "chrome-extension://abc",
        ] {
            assert_eq!(Origin::parse(text), None, "{text}");
        }
    }
}
