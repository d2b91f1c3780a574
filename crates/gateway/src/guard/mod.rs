//! Requests that are refused before anybody asks who sent them.
//!
//! A web page that somebody opens can send requests to every address its reader can reach, this host included. It cannot
//! choose what its browser writes into `Host` and `Origin`, so these two are checked: `Host` against DNS rebinding, where
//! a stranger's name resolves to this host's address, and `Origin` against pages of strangers as such.

mod authority;
mod connections;

pub use connections::{ConnectionPlace, Connections};

use authority::{Authority, Host, Origin, Scheme};
use http::{HeaderMap, StatusCode, Uri, header};
use percent_encoding::percent_decode_str;
use std::borrow::Cow;
use thiserror::Error;

/// Longer than any name of the DNS with a port.
const MAX_HOST_BYTES: usize = 512;

#[derive(Clone, Debug, Default, PartialEq)]
pub struct GuardSettings {
    /// Names that clients may call this host by, beside `localhost` and every IP address. The host of the public URL
    /// belongs here. With a port, that port only.
    pub allowed_hosts: Vec<String>,
    /// Pages of other hosts that may reach this one: `https://app.example.com`.
    pub allowed_origins: Vec<String>,
}

impl GuardSettings {
    /// An entry that cannot be understood would never match, and its author would look for the reason elsewhere.
    pub fn check(&self) -> Result<(), GuardSettingsError> {
        if let Some(bad) = self.allowed_hosts.iter().find(|text| Authority::parse(text).is_none()) {
            return Err(GuardSettingsError::BadHost(bad.clone()));
        }
        match self.allowed_origins.iter().find(|text| Origin::parse(text).is_none()) {
            Some(bad) => Err(GuardSettingsError::BadOrigin(bad.clone())),
            None => Ok(()),
        }
    }
}

#[derive(Debug, Error, PartialEq, Eq)]
pub enum GuardSettingsError {
    #[error("`{0}` is no host name")]
    BadHost(String),
    #[error("`{0}` is no origin")]
    BadOrigin(String),
}

impl GuardSettingsError {
    pub fn hint(&self) -> &'static str {
        match self {
            GuardSettingsError::BadHost(_) => {
                "such as `mcp.example.com` or `mcp.example.com:8470`; there are no wildcards"
            }
            GuardSettingsError::BadOrigin(_) => {
                "such as `https://app.example.com`, without a path; there are no wildcards"
            }
        }
    }
}

pub struct Guard {
    hosts: Vec<Authority>,
    origins: Vec<Origin>,
}

#[derive(Clone, Copy, Debug, PartialEq, Eq, Error)]
pub enum GuardRefusal {
    #[error("the request must name one host, in `Host` or in its target")]
    NoHost,
    #[error("this host goes by another name than the request's `Host`")]
    UnknownHost,
    #[error("pages of the request's `Origin` may not reach this host")]
    UnknownOrigin,
    #[error("a key must not stand in a URL, where logs and histories keep it")]
    KeyInUrl,
}

impl GuardRefusal {
    pub fn status(&self) -> StatusCode {
        match self {
            GuardRefusal::NoHost | GuardRefusal::UnknownHost | GuardRefusal::UnknownOrigin => StatusCode::FORBIDDEN,
            GuardRefusal::KeyInUrl => StatusCode::BAD_REQUEST,
        }
    }

    pub fn code(&self) -> &'static str {
        match self {
            GuardRefusal::NoHost | GuardRefusal::UnknownHost => "bad_host",
            GuardRefusal::UnknownOrigin => "bad_origin",
            GuardRefusal::KeyInUrl => "key_in_url",
        }
    }

    pub fn hint(&self) -> Option<&'static str> {
        match self {
            GuardRefusal::NoHost => None,
            GuardRefusal::UnknownHost => Some("the operator adds names to `allowed_hosts`"),
            GuardRefusal::UnknownOrigin => Some("the operator adds origins to `allowed_origins`"),
            GuardRefusal::KeyInUrl => Some("send it as `Authorization: Bearer`, and revoke this one if it was real"),
        }
    }
}

impl Guard {
    /// Entries that [`GuardSettings::check`] would complain about match nothing.
    pub fn new(settings: GuardSettings) -> Guard {
        if let Err(error) = settings.check() {
            tracing::error!(%error, hint = error.hint(), "a setting of hosts and origins is ignored");
        }
        let GuardSettings { allowed_hosts, allowed_origins } = settings;
        Guard {
            hosts: allowed_hosts.iter().filter_map(|text| Authority::parse(text)).collect(),
            origins: allowed_origins.iter().filter_map(|text| Origin::parse(text)).collect(),
        }
    }

    pub fn check(&self, headers: &HeaderMap, uri: &Uri) -> Result<(), GuardRefusal> {
        let host = host(headers, uri)?;
        if !self.is_ours(&host) {
            return Err(GuardRefusal::UnknownHost);
        }
        let mut origins = headers.get_all(header::ORIGIN).iter();
        if let Some(value) = origins.next() {
            let origin = value.to_str().ok().filter(|text| text.len() <= MAX_HOST_BYTES).and_then(Origin::parse);
            if !origin.is_some_and(|origin| self.is_welcome(&origin, &host)) || origins.next().is_some() {
                return Err(GuardRefusal::UnknownOrigin);
            }
        }
        if uri.path_and_query().is_some_and(|target| has_key(target.as_str())) {
            return Err(GuardRefusal::KeyInUrl);
        }
        Ok(())
    }

    /// An address cannot be rebound, only a name can.
    fn is_ours(&self, host: &Authority) -> bool {
        match &host.host {
            Host::Ip(_) => true,
            name if name.is_loopback() => true,
            name => self.hosts.iter().any(|own| own.host == *name && own.port.is_none_or(|p| host.port == Some(p))),
        }
    }

    /// Listed pages, and this host's own: from the very address that was asked, over plain HTTP only where it goes by a
    /// number. On loopback every port is as close.
    fn is_welcome(&self, origin: &Origin, host: &Authority) -> bool {
        if self.origins.contains(origin) || origin.host.is_loopback() && host.host.is_loopback() {
            return true;
        }
        let same_port = host.port.map_or(origin.is_default_port(), |port| port == origin.port);
        let trusted = origin.scheme == Scheme::Https || matches!(origin.host, Host::Ip(_));
        origin.host == host.host && same_port && trusted
    }
}

/// HTTP/1 names the host in `Host`, HTTP/2 in the target. Where both do, they must agree, for a proxy may have looked at
/// the one and somebody after us may look at the other.
fn host(headers: &HeaderMap, uri: &Uri) -> Result<Authority, GuardRefusal> {
    let mut values = headers.get_all(header::HOST).iter();
    let field = match (values.next(), values.next()) {
        (None, _) => None,
        (Some(value), None) => Some(value.to_str().map_err(|_| GuardRefusal::NoHost)?),
        (Some(_), Some(_)) => return Err(GuardRefusal::NoHost),
    };
    let parse = |text: &str| {
        Some(text).filter(|text| text.len() <= MAX_HOST_BYTES).and_then(Authority::parse).ok_or(GuardRefusal::NoHost)
    };
    match (uri.authority().map(|authority| authority.as_str()), field) {
        (Some(text), None) | (None, Some(text)) => parse(text),
        (Some(target), Some(field)) => {
            let (target, field) = (parse(target)?, parse(field)?);
            if target == field { Ok(target) } else { Err(GuardRefusal::NoHost) }
        }
        (None, None) => Err(GuardRefusal::NoHost),
    }
}

/// As often a URL is decoded. What is still encoded then was wrapped up on purpose.
const MOST_DECODING: usize = 4;

/// RFC 6750 knows tokens in the query, and advises against them; keys of this host are known by their form. Both count
/// however they are percent-encoded: whoever keeps the URL may decode it.
fn has_key(target: &str) -> bool {
    let is_key = |text: &str| registry::Role::ALL.iter().any(|role| text.contains(&format!("bh_{role}_")));
    let mut target = Cow::Borrowed(target);
    for _ in 0..MOST_DECODING {
        let query = target.split_once('?').map(|(_, query)| query).unwrap_or_default();
        if query.split('&').any(|pair| pair.split('=').next() == Some("access_token"))
            || target.contains("bh_") && is_key(&target)
        {
            return true;
        }
        if !target.contains('%') {
            return false;
        }
        let decoded = percent_decode_str(&target).decode_utf8_lossy().into_owned();
        if decoded == target {
            return false;
        }
        target = Cow::Owned(decoded);
    }
    true
}

#[cfg(test)]
mod tests;
