//! What a URL means. There is one parser: the one that the code inside uses too.

use crate::denied::{Denied, quote};
use ada_url::Url;
pub(crate) use policy::egress::{Host, Origin, Scheme};
use std::fmt;
use std::net::{IpAddr, Ipv4Addr, Ipv6Addr};

/// Longer ones are refused before they are parsed.
pub const LONGEST_URL: usize = 16 << 10;

/// A URL that could be sent: http or https, no user name, no fragment.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Target {
    pub origin: Origin,
    /// Begins with a slash.
    pub path: String,
    /// Empty, or begins with a question mark.
    pub query: String,
}

impl fmt::Display for Target {
    fn fmt(&self, f: &mut fmt::Formatter) -> fmt::Result {
        write!(f, "{}{}{}", self.origin, self.path, self.query)
    }
}

impl Target {
    pub fn parse(text: &str) -> Result<Target, Denied> {
        Target::read(text, None)
    }

    /// Where a `Location` leads from here.
    pub fn join(&self, location: &str) -> Result<Target, Denied> {
        Target::read(location, Some(&self.to_string()))
    }

    fn read(text: &str, base: Option<&str>) -> Result<Target, Denied> {
        if text.len() > LONGEST_URL {
            return Err(Denied::invalid(format!("the URL has more than {LONGEST_URL} bytes")));
        }
        let wrong = |what: &str| Denied::invalid(format!("{} {what}", quote(text)));
        let url = Url::parse(text, base).map_err(|_| wrong("is no URL"))?;
        let scheme = match url.protocol() {
            "http:" => Scheme::Http,
            "https:" => Scheme::Https,
            _ => return Err(Denied::refuse(format!("{} is neither http nor https", quote(text)))),
        };
        if url.has_credentials() {
            return Err(wrong("has a user name or password in it; send an `authorization` header instead"));
        }
        let port = match url.port() {
            "" => scheme.default_port(),
            port => port.parse().ok().filter(|port| *port > 0).ok_or_else(|| wrong("has no port that can be used"))?,
        };
        let host = host(url.hostname()).map_err(wrong)?;
        let (path, query) = (url.pathname().to_owned(), url.search().to_owned());
        let target = Target { origin: Origin { scheme, host, port }, path, query };
        // A relative URL has a base, and letters may be written as several: it may have grown beyond what was measured above.
        if target.to_string().len() > LONGEST_URL {
            return Err(Denied::invalid(format!("the URL has more than {LONGEST_URL} bytes")));
        }
        Ok(target)
    }
}

/// A host as the parser wrote it.
pub(crate) fn host(text: &str) -> Result<Host, &'static str> {
    if let Some(inner) = text.strip_prefix('[').and_then(|text| text.strip_suffix(']')) {
        let address = inner.parse::<Ipv6Addr>().map_err(|_| "has no IPv6 address between its brackets")?;
        return Ok(Host::Address(IpAddr::V6(address)));
    }
    if let Ok(address) = text.parse::<Ipv4Addr>() {
        return Ok(Host::Address(IpAddr::V4(address)));
    }
    if text.ends_with('.') {
        return Err("has a host that ends with a dot; write it without");
    }
    // A resolver reads what ends in a number as an address, in many ways. The parser has done so already, once.
    let last = text.rsplit('.').next().unwrap_or_default();
    let hex = last.strip_prefix("0x").is_some_and(|rest| rest.bytes().all(|b| b.is_ascii_hexdigit()));
    if hex || last.bytes().all(|b| b.is_ascii_digit()) {
        return Err("has a host that ends like a number and is no address");
    }
    let label = |label: &str| {
        let letter = |b: u8| b.is_ascii_lowercase() || b.is_ascii_digit() || b == b'-' || b == b'_';
        (1..=63).contains(&label.len()) && label.bytes().all(letter) && !label.starts_with('-') && !label.ends_with('-')
    };
    if text.len() > 253 || !text.split('.').all(label) {
        return Err("has no host name that can be looked up");
    }
    Ok(Host::Name(text.to_owned()))
}
