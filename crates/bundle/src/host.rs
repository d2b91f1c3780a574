//! Hosts that a server may reach.

use crate::Wrong;
use crate::text::quote;
use crate::word::word;
use serde::{Deserialize, Serialize};
use std::borrow::Borrow;
use std::fmt;
use std::net::{Ipv4Addr, Ipv6Addr};

word! {
    /// What may be reached: a host name, exact, `*.example.com` or `*`, or an address (`192.0.2.1`, `[2001:db8::1]`), with or
    /// without a port, by https; or a base URL, `http://example.com/v1/`; and before either the only methods, `GET,POST `.
    /// There is one way to write each.
    Host, reach
}

/// Methods, scheme and path around a host.
fn reach(text: &str) -> Result<(), Wrong> {
    let wrong = |what: &str| Wrong::new(format!("{} {what}", quote(text)));
    let (methods, base) = text.split_once(' ').map_or((None, text), |(methods, base)| (Some(methods), base));
    let method = |text: &str| (1..=20).contains(&text.len()) && text.bytes().all(|b| b.is_ascii_uppercase());
    if methods.is_some_and(|methods| !methods.split(',').all(method)) {
        return Err(wrong("has something before its host that is no list of methods")
            .hint("such as `GET,POST https://a.example`"));
    }
    let Some((scheme, rest)) = base.split_once("://") else { return host(base) };
    if !matches!(scheme, "https" | "http") {
        return Err(wrong("has a scheme that is neither https nor http"));
    }
    let (authority, path) = rest.split_at(rest.find('/').unwrap_or(rest.len()));
    let plain = |b: u8| b.is_ascii_alphanumeric() || b"/-._~!$&'()+,;=:@".contains(&b);
    if path == "/" || !path.bytes().all(plain) || path.split('/').any(|part| matches!(part, "." | "..")) {
        return Err(wrong("has a path that cannot be the beginning of others").hint("such as `https://a.example/v1/`"));
    }
    host(authority)
}

/// The port is what follows the last colon, outside of brackets.
fn split(text: &str) -> (&str, Option<&str>) {
    match text.rsplit_once(':') {
        Some((name, port)) if !port.contains(']') => (name, Some(port)),
        _ => (text, None),
    }
}

fn host(text: &str) -> Result<(), Wrong> {
    const SUCH: &str = "such as `api.example.com`, `*.example.com` or `api.example.com:8443`";
    let wrong = |what: &str| Wrong::new(format!("{} {what}", quote(text)));
    if text.contains(['/', '?', '#', '@']) {
        return Err(wrong("is more than a host name").hint(SUCH));
    }
    let (bare, port) = split(text);
    if let Some(port) = port {
        let number = port.parse::<u16>().ok().filter(|number| *number > 0 && number.to_string() == port);
        if bare.contains(':') && !bare.starts_with('[') {
            return Err(wrong("is no host name").hint("an IPv6 address stands in brackets, such as `[2001:db8::1]`"));
        }
        number.ok_or_else(|| wrong("has no port between 1 and 65535 after its colon"))?;
    }
    // Every host. Whether that is allowed is for the host's operator to say.
    if bare == "*" {
        return Ok(());
    }
    if let Some(address) = bare.strip_prefix('[') {
        let address = address.strip_suffix(']').and_then(|address| address.parse::<Ipv6Addr>().ok());
        let address = address.ok_or_else(|| wrong("is no IPv6 address"))?;
        if let Some(inner) = address.to_ipv4_mapped() {
            return Err(wrong("is an IPv4 address in disguise").hint(format!("write `{inner}`")));
        }
        let plain = format!("[{address}]");
        return if plain == bare {
            Ok(())
        } else {
            Err(wrong("is not in its short form").hint(format!("write `{plain}`")))
        };
    }
    let last = bare.rsplit('.').next().unwrap_or_default();
    // What resolvers read as a number they read in many ways: `127.1`, `0x7f.0.0.1`, `2130706433`.
    let numeric = last.bytes().all(|b| b.is_ascii_digit())
        || last.strip_prefix("0x").is_some_and(|rest| rest.bytes().all(|b| b.is_ascii_hexdigit()));
    if numeric && !last.is_empty() {
        let plain = bare.parse::<Ipv4Addr>().is_ok();
        return if plain { Ok(()) } else { Err(wrong("is a number and no IPv4 address").hint("such as `192.0.2.1`")) };
    }
    let lower = bare.to_ascii_lowercase();
    if bare != lower && name(lower.strip_prefix("*.").unwrap_or(&lower)) {
        return Err(wrong("has capital letters").hint(format!("write `{}`", text.to_ascii_lowercase())));
    }
    if !bare.is_ascii() {
        return Err(wrong("is not ASCII").hint("write such a name in its form that begins with `xn--`"));
    }
    let good = match bare.strip_prefix("*.") {
        Some(rest) if name(rest) && !rest.contains('.') => {
            return Err(wrong("leaves too much open").hint("two parts are needed after `*.`"));
        }
        Some(rest) => name(rest),
        None => name(bare),
    };
    if good { Ok(()) } else { Err(wrong("is no host name").hint(SUCH)) }
}

fn name(name: &str) -> bool {
    let label = |label: &str| {
        (1..=63).contains(&label.len())
            && !label.starts_with('-')
            && !label.ends_with('-')
            && label.bytes().all(|b| b.is_ascii_lowercase() || b.is_ascii_digit() || b == b'-')
    };
    name.len() <= 253 && name.split('.').all(label)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn hosts() {
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
        for good in good {
            assert!(good.parse::<Host>().is_ok(), "{good}: {:?}", good.parse::<Host>());
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
        for bad in bad {
            assert!(bad.parse::<Host>().is_err(), "{bad}");
        }
        assert!(format!("{}.b", "a".repeat(64)).parse::<Host>().is_err());
        assert!("a.".repeat(200).parse::<Host>().is_err());
    }
}
