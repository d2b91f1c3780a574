//! Refusals, in words for the person who has to act.

use std::fmt;

/// Why a request did not happen or did not end. The code is for programs, the message for people.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Denied {
    pub code: Code,
    pub message: String,
}

#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Code {
    /// Rules, addresses or methods forbid it.
    Denied,
    /// The request itself is malformed, or its headers are.
    Invalid,
    /// More than the limits let through: sizes, rates, places, budget.
    Limit,
    Timeout,
    /// The other side, or the way to it, failed.
    Network,
    /// The name is not who it says it is.
    Tls,
    Cancelled,
    /// A secret that the request needs is not there.
    Secret,
}

impl Code {
    pub fn as_str(self) -> &'static str {
        match self {
            Code::Denied => "egress_denied",
            Code::Invalid => "egress_invalid",
            Code::Limit => "egress_limit",
            Code::Timeout => "egress_timeout",
            Code::Network => "egress_network",
            Code::Tls => "egress_tls",
            Code::Cancelled => "egress_cancelled",
            Code::Secret => "egress_secret",
        }
    }
}

macro_rules! makers {
    ($($name:ident $code:ident)*) => {
        $(pub(crate) fn $name(message: impl Into<String>) -> Denied {
            Denied { code: Code::$code, message: message.into() }
        })*
    };
}

impl Denied {
    makers! { invalid Invalid limit Limit timeout Timeout network Network tls Tls cancelled Cancelled }

    /// For [`crate::Secrets`] too: there is none, or none any more.
    pub fn secret(message: impl Into<String>) -> Denied {
        Denied { code: Code::Secret, message: message.into() }
    }

    /// For [`crate::Credentials`] too, which may refuse.
    pub fn refuse(message: impl Into<String>) -> Denied {
        Denied { code: Code::Denied, message: message.into() }
    }
}

impl fmt::Display for Denied {
    fn fmt(&self, f: &mut fmt::Formatter) -> fmt::Result {
        f.write_str(&self.message)
    }
}

impl std::error::Error for Denied {}

/// Text from outside, to repeat in a message: short and without anything that hides.
pub(crate) fn quote(text: &str) -> String {
    const MOST: usize = 80;
    let cut: String = text.chars().take(MOST).flat_map(char::escape_debug).collect();
    if text.chars().nth(MOST).is_some() { format!("`{cut}…`") } else { format!("`{cut}`") }
}
