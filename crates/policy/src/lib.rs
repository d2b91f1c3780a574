#![forbid(unsafe_code)]
//! What may run, and with what. Pure functions from what a server asks and what the host allows to a [`Permit`].
//!
//! A permit has no public constructor: only [`permit`] makes one, and nothing starts behind a wall without one.

mod arguments;
pub mod egress;
mod limits;

pub use arguments::{ArgumentError, check_arguments};
pub use limits::{LimitName, Limits, UnknownLimit};

use serde::{Deserialize, Serialize};

/// How much shares one compartment.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Hash, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
pub enum Boundary {
    /// Every call has a compartment of its own.
    #[default]
    Call,
    /// The calls of one session share one.
    Session,
    /// All calls of a server share one.
    Server,
    /// All servers of a tenant share one.
    Tenant,
}

impl Boundary {
    pub const fn as_str(self) -> &'static str {
        match self {
            Boundary::Call => "call",
            Boundary::Session => "session",
            Boundary::Server => "server",
            Boundary::Tenant => "tenant",
        }
    }
}

impl std::str::FromStr for Boundary {
    type Err = String;

    fn from_str(text: &str) -> Result<Boundary, String> {
        match text {
            "call" => Ok(Boundary::Call),
            "session" => Ok(Boundary::Session),
            "server" => Ok(Boundary::Server),
            "tenant" => Ok(Boundary::Tenant),
            _ => Err(format!("`{text}` is no boundary; there are call, session, server and tenant")),
        }
    }
}

/// What a server asks for.
#[derive(Clone, Debug, Default)]
pub struct Ask {
    pub limits: Limits,
    pub boundary: Boundary,
    /// Run with V8's compilers: faster loops, at the price of writable and executable memory in the compartment.
    pub jit: bool,
}

/// What this host allows at most.
#[derive(Clone, Debug)]
pub struct Allowance {
    pub most: Limits,
    pub jit: bool,
}

impl Default for Allowance {
    fn default() -> Allowance {
        Allowance { most: Limits::MOST, jit: true }
    }
}

/// The right to run with these limits. Held by whoever starts or serves a compartment.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Permit {
    limits: Limits,
    boundary: Boundary,
    jit: bool,
}

impl Permit {
    pub fn limits(&self) -> &Limits {
        &self.limits
    }

    pub fn boundary(&self) -> Boundary {
        self.boundary
    }

    pub fn jit(&self) -> bool {
        self.jit
    }
}

/// Why there is no permit.
#[derive(Clone, Debug, PartialEq, Eq, thiserror::Error)]
pub enum Refusal {
    #[error("`{name}` of {asked} is above this host's maximum of {most}")]
    AboveMaximum { name: LimitName, asked: u64, most: u64 },
    #[error("`{name}` of {asked} is below the least that works, {least}")]
    BelowMinimum { name: LimitName, asked: u64, least: u64 },
    #[error("this host does not allow `jit`")]
    JitNotAllowed,
}

/// The only maker of permits.
pub fn permit(ask: &Ask, allowance: &Allowance) -> Result<Permit, Refusal> {
    for name in LimitName::ALL.iter().copied() {
        let (asked, most, least) = (ask.limits.get(name), allowance.most.get(name), Limits::LEAST.get(name));
        if asked > most {
            return Err(Refusal::AboveMaximum { name, asked, most });
        }
        if asked < least {
            return Err(Refusal::BelowMinimum { name, asked, least });
        }
    }
    if ask.jit && !allowance.jit {
        return Err(Refusal::JitNotAllowed);
    }
    Ok(Permit { limits: ask.limits.clone(), boundary: ask.boundary, jit: ask.jit })
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_defaults_are_permitted() {
        let permit = permit(&Ask::default(), &Allowance::default()).unwrap();
        assert_eq!(permit.boundary(), Boundary::Call);
        assert!(!permit.jit());
        assert_eq!(permit.limits().cpu_ms, 50);
    }

    #[test]
    fn every_limit_is_checked_on_both_sides() {
        for name in LimitName::ALL.iter().copied() {
            let mut ask = Ask::default();
            ask.limits.set(name, Limits::MOST.get(name) + 1);
            assert!(
                matches!(permit(&ask, &Allowance::default()), Err(Refusal::AboveMaximum { name: n, .. }) if n == name)
            );
            ask.limits.set(name, Limits::LEAST.get(name).wrapping_sub(1));
            assert!(permit(&ask, &Allowance::default()).is_err(), "{name}");
        }
    }

    #[test]
    fn jit_needs_the_hosts_consent() {
        let ask = Ask { jit: true, ..Ask::default() };
        assert_eq!(permit(&ask, &Allowance { jit: false, ..Allowance::default() }), Err(Refusal::JitNotAllowed));
    }
}
