#![forbid(unsafe_code)]
//! The client's side of OAuth 2.0, for providers that a tenant's servers call.
//!
//! - [`Provider`]: what a tenant says about one. [`Provider::check`] stands before everything else.
//! - [`begin`] and [`finish`]: a person connects in a browser (RFC 6749, 7636, 9207).
//! - [`TokenRequest`]: what is asked of the token endpoint, and what its answer may be. [`Tokens`]: what is kept.
//! - [`Keeper`]: a token for a call, renewed in time, and never somebody else's.
//!
//! It has no network, disk or clock of its own: those are [`Http`], [`Store`] and [`Clock`].

mod answer;
mod error;
mod flow;
mod http;
mod keeper;
mod pending;
mod provider;
mod request;
mod text;
mod tokens;

pub use error::{Error, Invalid, Refusal, StoreError};
pub use flow::{begin, finish, handle};
pub use http::{BoxFuture, Http, HttpError, MOST_ANSWER_BYTES};
pub use keeper::{Clock, Connection, Keeper, Revoked, Store, SystemClock};
pub use pending::{PENDING_SECONDS, Pending};
pub use provider::{ClientAuth, Grant, Per, Provider};
pub use request::TokenRequest;
pub use tokens::Tokens;
