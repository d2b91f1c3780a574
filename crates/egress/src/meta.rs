//! How host calls describe themselves. All of it is the attacker's.

use crate::denied::Denied;
use crate::exchange::Redirect;
use serde::Deserialize;

/// Longer descriptions are refused before they are parsed.
const LONGEST_META: usize = 256 << 10;

#[derive(Deserialize)]
#[serde(rename_all = "camelCase")]
pub(crate) struct FetchMeta {
    pub(crate) id: u64,
    pub(crate) method: String,
    pub(crate) url: String,
    pub(crate) headers: Vec<(String, String)>,
    pub(crate) redirect: Redirect,
    pub(crate) body_length: Option<u64>,
    pub(crate) stream: bool,
}

#[derive(Deserialize)]
pub(crate) struct WriteMeta {
    pub(crate) id: u64,
    pub(crate) done: bool,
}

#[derive(Deserialize)]
pub(crate) struct ReadMeta {
    pub(crate) id: u64,
}

#[derive(Deserialize)]
pub(crate) struct CancelMeta {
    pub(crate) id: u64,
    pub(crate) of: Of,
}

#[derive(Deserialize)]
#[serde(rename_all = "lowercase")]
pub(crate) enum Of {
    Body,
    Request,
}

pub(crate) fn read<'a, T: Deserialize<'a>>(meta: &'a str) -> Result<T, Denied> {
    if meta.len() > LONGEST_META {
        return Err(Denied::invalid(format!("the request's description has more than {LONGEST_META} bytes")));
    }
    serde_json::from_str(meta).map_err(|error| Denied::invalid(format!("the request's description is wrong: {error}")))
}
