//! Rules that allow some paths or methods of a host need somebody who sees what is asked. For those hosts the proxy speaks
//! TLS itself, with an authority that only this one jail trusts and whose key is nowhere but in this process.

use crate::error::Error;
use crate::plan::Plan;
use egress::proxy::{Authority, Outfit};
use install::PROXY_PORT;
use std::sync::Arc;

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

    pub(crate) fn variables(&self) -> impl Iterator<Item = (String, String)> {
        Outfit::new(PROXY_PORT, Some(&self.authority)).variables.into_iter()
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
