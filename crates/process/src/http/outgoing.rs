//! What a message of ours says, as far as it is repeated in headers.

use base64::Engine;
use base64::engine::general_purpose::STANDARD;
use http::HeaderValue;
use serde::Deserialize;
use serde_json::value::RawValue;
use std::borrow::Cow;

/// One message on its way to the server.
#[derive(Debug, Default, PartialEq, Eq)]
pub(super) struct Outgoing {
    /// Of a request.
    pub(super) id: Option<u64>,
    pub(super) method: String,
    /// The revision of the protocol that it names, which only the newest does.
    pub(super) version: Option<String>,
    /// What it is about: a tool, a prompt, a resource.
    pub(super) name: Option<String>,
    /// The request that it cancels.
    pub(super) cancels: Option<u64>,
}

#[derive(Deserialize)]
struct Wire<'a> {
    #[serde(borrow, default)]
    id: Option<&'a RawValue>,
    #[serde(borrow, default)]
    method: Option<Cow<'a, str>>,
    #[serde(default)]
    params: Params,
}

#[derive(Default, Deserialize)]
#[serde(rename_all = "camelCase", default)]
struct Params {
    name: Option<String>,
    uri: Option<String>,
    request_id: Option<u64>,
    #[serde(rename = "_meta")]
    meta: Meta,
}

#[derive(Default, Deserialize)]
#[serde(default)]
struct Meta {
    #[serde(rename = "io.modelcontextprotocol/protocolVersion")]
    version: Option<String>,
}

impl Outgoing {
    pub(super) fn read(line: &[u8]) -> Outgoing {
        // All that is sent is our own; an answer to the server has no method, and nothing is said of it.
        let Ok(wire) = serde_json::from_slice::<Wire<'_>>(line) else { return Outgoing::default() };
        let Some(method) = wire.method else { return Outgoing::default() };
        let Params { name, uri, request_id, meta } = wire.params;
        let name = match &*method {
            "tools/call" | "prompts/get" => name,
            "resources/read" => uri,
            _ => None,
        };
        Outgoing {
            id: wire.id.and_then(|id| id.get().parse().ok()),
            cancels: request_id.filter(|_| method == "notifications/cancelled"),
            method: method.into_owned(),
            version: meta.version,
            name,
        }
    }
}

/// What cannot stand in a header as it is goes as Base64.
pub(super) fn value(text: &str) -> Option<HeaderValue> {
    let plain = text.bytes().all(|byte| matches!(byte, b'!'..=b'~' | b' '))
        && text.trim_ascii() == text
        && !(text.starts_with("=?base64?") && text.ends_with("?="));
    if plain && !text.is_empty() {
        return HeaderValue::from_str(text).ok();
    }
    HeaderValue::from_str(&format!("=?base64?{}?=", STANDARD.encode(text))).ok()
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn headers_repeat_what_the_message_says() {
        let line = br#"{"jsonrpc":"2.0","id":7,"method":"tools/call","params":{"name":"run","arguments":{"name":1},
            "_meta":{"progressToken":7,"io.modelcontextprotocol/protocolVersion":"2026-07-28"}}}"#;
        let read = Outgoing::read(line);
        assert_eq!((read.id, read.method.as_str(), read.name.as_deref()), (Some(7), "tools/call", Some("run")));
        assert_eq!(read.version.as_deref(), Some("2026-07-28"));
        let read = Outgoing::read(br#"{"jsonrpc":"2.0","method":"notifications/cancelled","params":{"requestId":3}}"#);
        assert_eq!((read.id, read.cancels), (None, Some(3)));
        let answer = Outgoing::read(br#"{"jsonrpc":"2.0","id":"ask-1","result":{"name":"x"}}"#);
        assert_eq!(answer, Outgoing::default());
    }

    #[test]
    fn what_is_no_header_is_written_otherwise() {
        assert_eq!(value("file:///a b").unwrap(), "file:///a b");
        assert_eq!(value("ä").unwrap(), "=?base64?w6Q=?=");
        assert_eq!(value(" a").unwrap(), "=?base64?IGE=?=");
        assert_eq!(value("a\r\nb: c").unwrap(), "=?base64?YQ0KYjogYw==?=");
        assert_eq!(value("=?base64?w6Q=?=").unwrap(), "=?base64?PT9iYXNlNjQ/dzZRPT89?=");
    }
}
