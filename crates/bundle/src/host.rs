//! Hosts that a server may reach.

use crate::Wrong;
use crate::text::quote;
use crate::word::word;
use policy::egress::{BareStar, Rule};
use serde::{Deserialize, Serialize};
use std::borrow::Borrow;
use std::fmt;

word! {
    /// What may be reached: a host name, exact, `*.example.com` or `*`, or an address (`192.0.2.1`, `[2001:db8::1]`), with or
    /// without a port, by https; or a base URL, `http://example.com/v1/`; and before either the only methods, `GET,POST `.
    /// There is one way to write each.
    Host, reach
}

fn reach(text: &str) -> Result<(), Wrong> {
    rule(text).map(drop)
}

/// The grammar is that of the door: what is signed here is what is enforced there. Whether `*` is allowed is for the host's operator
/// to say.
pub(crate) fn rule(text: &str) -> Result<Rule, Wrong> {
    Rule::parse(text, BareStar::Allowed)
        .map_err(|bad| Wrong { message: format!("{} {}", quote(text), bad.message), hint: bad.hint })
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_host_is_a_rule_of_the_door() {
        for good in
            ["api.example.com", "*.example.com:443", "GET,POST https://a.b/v1/", "*", "http://[2001:db8::1]:8080"]
        {
            assert!(good.parse::<Host>().is_ok(), "{good}: {:?}", good.parse::<Host>());
        }
        for (bad, told) in [
            ("A.b", "`A.b` has capital letters; write `a.b`"),
            ("TRACE a.b", "`TRACE a.b` names TRACE, which is never sent"),
            (
                "https://a.b/",
                "`https://a.b/` has a slash for a path; leave it out: without a path a rule is for all paths",
            ),
        ] {
            assert_eq!(bad.parse::<Host>().unwrap_err().to_string(), told);
        }
    }
}
