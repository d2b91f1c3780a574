//! The way to a provider. Whoever implements it decides which addresses may be reached at all.

use crate::text::shown;
use secrecy::SecretString;
use std::pin::Pin;

pub type BoxFuture<'a, T> = Pin<Box<dyn Future<Output = T> + Send + 'a>>;

/// No answer of a token endpoint is longer.
pub const MOST_ANSWER_BYTES: usize = 64 << 10;

pub trait Http: Send + Sync + 'static {
    /// Posts `fields` as `application/x-www-form-urlencoded`, asking for `application/json`, and gives status and body.
    ///
    /// `basic` is user and password of HTTP Basic as they are (RFC 6749's form encoding is done), to be joined by a colon
    /// and written in base64. Redirects are not followed: their status is the answer. A body of more than
    /// [`MOST_ANSWER_BYTES`] is an error, and is not read further.
    fn post_form<'a>(
        &'a self,
        url: &'a str,
        fields: Vec<(String, SecretString)>,
        basic: Option<(String, SecretString)>,
    ) -> BoxFuture<'a, Result<(u16, Vec<u8>), HttpError>>;
}

/// Why there is no answer. The message must not repeat what was sent.
#[derive(Clone, Debug, PartialEq, Eq, thiserror::Error)]
#[error("{0}")]
pub struct HttpError(String);

impl HttpError {
    pub fn new(message: &str) -> HttpError {
        HttpError(shown(message, 200))
    }
}
