//! What can go wrong, in words that may be shown to whoever wanted to connect. No token, code or secret is in any of them.

use crate::http::HttpError;
use crate::text::shown;

/// A setting that cannot be used.
#[derive(Clone, Debug, PartialEq, Eq, thiserror::Error)]
#[error("`{field}` {problem}")]
pub struct Invalid {
    pub field: &'static str,
    pub problem: String,
}

impl Invalid {
    pub(crate) fn new(field: &'static str, problem: impl Into<String>) -> Invalid {
        Invalid { field, problem: problem.into() }
    }
}

/// A provider's no, by RFC 6749 sections 4.1.2.1 and 5.2. Its texts are short and hide nothing.
#[derive(Clone, Debug, PartialEq, Eq, thiserror::Error)]
#[error("{code}{}", .description.as_ref().map(|text| format!(" ({text})")).unwrap_or_default())]
pub struct Refusal {
    pub code: String,
    pub description: Option<String>,
}

impl Refusal {
    pub(crate) fn new(code: &str, description: Option<&str>) -> Refusal {
        let description = description.map(|text| shown(text.trim(), 200)).filter(|text| !text.is_empty());
        Refusal { code: shown(code, 64), description }
    }

    /// What was granted once is granted no more. The second word is one that a large provider uses instead.
    pub(crate) fn ends_the_grant(&self) -> bool {
        matches!(self.code.as_str(), "invalid_grant" | "bad_refresh_token")
    }
}

/// The store failed. The message is for people who may see that something failed, not where.
#[derive(Clone, Debug, PartialEq, Eq, thiserror::Error)]
#[error("{0}")]
pub struct StoreError(pub String);

#[derive(Clone, Debug, PartialEq, Eq, thiserror::Error)]
pub enum Error {
    #[error("the provider's settings cannot be used")]
    Invalid(#[from] Invalid),
    #[error("the provider has no client secret, and its settings ask for one")]
    NoClientSecret,
    #[error("the operating system gives no random numbers")]
    Random,
    #[error("what was kept of this cannot be read")]
    Kept,
    #[error("this attempt to connect is over; start again")]
    Late,
    #[error("the provider's settings changed since this attempt to connect began; start again")]
    Changed,
    #[error("the browser came back to another address than the one it was sent away with")]
    Redirect,
    #[error("the browser came back with an answer that belongs to no attempt of ours to connect")]
    State,
    #[error("the answer names another issuer than the provider's, or none")]
    Issuer,
    #[error("the browser came back with an answer that cannot be read: {0}")]
    Callback(&'static str),
    #[error("the provider refuses: {0}")]
    Refused(Refusal),
    #[error("the provider's answer cannot be used: {0}")]
    Answer(String),
    #[error("the provider cannot be reached")]
    Http(#[from] HttpError),
    #[error("others are still waiting for the provider's answer")]
    Busy,
    #[error("the host is ending")]
    Stopped,
    #[error("a call without a user has no connection to a provider whose connections are users' own")]
    NoSubject,
    #[error("not connected")]
    NotConnected,
    #[error("the connection is no longer valid; connect again")]
    Expired,
    #[error("the connection cannot be read or kept")]
    Store(#[from] StoreError),
}

impl Error {
    /// Whether the same request may well succeed later, with nobody changing anything.
    pub fn is_passing(&self) -> bool {
        match self {
            Error::Http(_) | Error::Busy | Error::Answer(_) => true,
            Error::Refused(refusal) => matches!(refusal.code.as_str(), "temporarily_unavailable" | "server_error"),
            _ => false,
        }
    }

    /// Whether a person has to connect in a browser before it can go on.
    pub fn wants_connection(&self) -> bool {
        matches!(self, Error::NotConnected | Error::Expired)
    }
}
