//! Rules that allow some paths or methods of a host need somebody who sees what is asked. For those hosts the proxy speaks
//! TLS itself, with an authority that only this one jail trusts and whose key is nowhere but in this process.

use crate::error::Error;
use crate::plan::Plan;
use egress::proxy::Authority;
use jail::program::{Content, Mount};
use std::fs;
use std::sync::Arc;

const OWN: &str = "/run/bulkhead/authority.pem";
const ALL: &str = "/run/bulkhead/certificates.pem";

/// Where systems have the authorities that they trust.
const SYSTEM: [&str; 4] = [
    "/etc/ssl/certs/ca-certificates.crt",
    "/etc/pki/tls/certs/ca-bundle.crt",
    "/etc/ssl/ca-bundle.pem",
    "/etc/ssl/cert.pem",
];

/// What programs look for their authorities by. Node adds to its own; the others know no more than the file.
const VARIABLES: [(&str, &str); 5] = [
    ("NODE_EXTRA_CA_CERTS", OWN),
    ("SSL_CERT_FILE", ALL),
    ("REQUESTS_CA_BUNDLE", ALL),
    ("CURL_CA_BUNDLE", ALL),
    ("GIT_SSL_CAINFO", ALL),
];

/// The authority of one jail.
pub(crate) struct Trust {
    pub(crate) authority: Arc<Authority>,
}

impl Trust {
    /// None where all rules are about whole hosts: then nobody reads along.
    pub(crate) fn needed(plan: &Plan) -> Result<Option<Trust>, Error> {
        if plan.offline || !plan.allow.iter().any(|rule| is_partial(rule)) {
            return Ok(None);
        }
        let authority = Arc::new(Authority::new().map_err(Error::Door)?);
        Ok(Some(Trust { authority }))
    }

    pub(crate) fn mounts(&self) -> [Mount; 2] {
        let own = self.authority.certificate_pem();
        let system = SYSTEM.iter().find_map(|path| fs::read_to_string(path).ok()).unwrap_or_default();
        let all = format!("{system}\n{own}");
        [(OWN, own), (ALL, all)]
            .map(|(target, text)| Mount { target: target.into(), content: Content::Text { bytes: text.into_bytes() } })
    }

    pub(crate) fn variables(&self) -> impl Iterator<Item = (String, String)> {
        VARIABLES.iter().map(|(name, value)| ((*name).to_owned(), (*value).to_owned()))
    }
}

/// Whether a rule, which is known to be sound, is about a part of a host that speaks TLS.
pub(crate) fn is_partial(rule: &str) -> bool {
    let (methods, base) = rule.rsplit_once(' ').map_or((false, rule), |(_, base)| (true, base));
    let path = |rest: &str| rest.split_once('/').is_some_and(|(_, path)| !path.is_empty());
    match base.split_once("://") {
        Some(("https", rest)) => methods || path(rest),
        Some(_) => false,
        None => methods,
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn only_parts_of_secure_hosts_need_it() {
        for rule in ["GET a.example", "https://a.example/v1/", "GET,POST https://a.example", "https://*.a.example/x"] {
            assert!(is_partial(rule), "{rule}");
        }
        for rule in
            ["a.example", "*.a.example:8443", "https://a.example", "https://a.example/", "GET http://a.example/x"]
        {
            assert!(!is_partial(rule), "{rule}");
        }
    }
}
