//! The host as an MCP client of a program: both eras, newline-delimited JSON.
//!
//! The conversation itself is the driver's (`crate::driver`); here is how it begins, what is read from it, and what
//! its messages look like.

pub(crate) mod greet;
pub(crate) mod lines;
pub(crate) mod message;
pub(crate) mod offer;
pub(crate) mod result;

use serde::Serialize;
use serde_json::value::RawValue;

/// The members of a request's `params`, in their order.
pub(crate) type Params = Vec<(&'static str, Box<RawValue>)>;

/// Any value of ours as JSON text.
pub(crate) fn raw<T: Serialize + ?Sized>(value: &T) -> Box<RawValue> {
    serde_json::value::to_raw_value(value).unwrap_or_else(|_| RawValue::NULL.to_owned())
}
