//! What would happen, without sending anything.

use crate::classify::classify;
use crate::denied::{Denied, quote};
use crate::headers::is_token;
use crate::rule::Rules;
use crate::target::{Host, Target};
use serde::Serialize;

#[derive(Clone, Debug, PartialEq, Eq, Serialize)]
pub struct Decision {
    pub allowed: bool,
    pub rule: Option<String>,
    pub reason: String,
}

impl Decision {
    pub(crate) fn denied(denied: &Denied, rule: Option<String>) -> Decision {
        Decision { allowed: false, rule, reason: denied.message.clone() }
    }
}

/// Decides by the rules alone. An address that is written out is classified; what a name leads to only
/// [`crate::Door::explain`] can tell.
pub fn explain(rules: &Rules, url: &str, method: &str) -> Decision {
    let decided = decide(rules, url, method).and_then(|(target, rule)| match literal(&target.origin.host) {
        Some(Err(denied)) => Err(denied),
        _ => Ok((target, rule)),
    });
    match decided {
        Ok((target, rule)) => {
            let later = match target.origin.host {
                Host::Name(_) => "; every address of the name is checked when it is connected to",
                Host::Address(_) => "",
            };
            Decision { allowed: true, reason: format!("allowed by `{rule}`{later}"), rule: Some(rule) }
        }
        Err(denied) => Decision::denied(&denied, None),
    }
}

pub(crate) fn decide(rules: &Rules, url: &str, method: &str) -> Result<(Target, String), Denied> {
    let target = Target::parse(url)?;
    permit(rules, &target, &normal(method)).map(|rule| (target, rule))
}

/// Servers tell `Get` from `GET`; fetch does not, for these.
pub(crate) fn normal(method: &str) -> String {
    let known = ["DELETE", "GET", "HEAD", "OPTIONS", "POST", "PUT"];
    known.iter().find(|known| known.eq_ignore_ascii_case(method)).map_or(method, |known| known).to_owned()
}

/// The check that every hop passes. It says nothing about addresses of names.
pub(crate) fn permit(rules: &Rules, target: &Target, method: &str) -> Result<String, Denied> {
    if !is_token(method) || method.len() > 32 {
        return Err(Denied::invalid(format!("{} is no method", quote(method))));
    }
    rules.find(target, method).map(|rule| rule.to_string())
}

/// Refuses what is known without a lookup; `None` for other names.
pub(crate) fn literal(host: &Host) -> Option<Result<(), Denied>> {
    match host {
        Host::Name(name) if is_local(name) => {
            Some(Err(refused(host, "it is a name for the machine itself (RFC 6761)")))
        }
        Host::Name(_) => None,
        Host::Address(address) => Some(classify(*address).map_err(|forbidden| refused(host, &forbidden.to_string()))),
    }
}

/// Whatever a resolver says to it.
pub(crate) fn is_local(name: &str) -> bool {
    name == "localhost" || name.ends_with(".localhost")
}

pub(crate) fn refused(host: &Host, why: &str) -> Denied {
    Denied::refuse(format!("{host} is never reached: {why}"))
}
