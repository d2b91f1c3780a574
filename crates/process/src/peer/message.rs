//! What a server says, one message to a line. All of it is whatever the server likes.

use serde::Deserialize;
use serde_json::value::RawValue;
use std::borrow::Cow;

/// One message of the server's.
#[derive(Debug)]
pub(crate) enum Message {
    /// `id` is none of ours when it is no number.
    Answer {
        id: Option<u64>,
        outcome: Result<Box<RawValue>, RpcError>,
    },
    Request {
        id: Box<RawValue>,
        method: String,
        params: Option<Box<RawValue>>,
    },
    Notice {
        method: String,
        params: Option<Box<RawValue>>,
    },
}

/// An error of the server's, as the protocol has it.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(crate) struct RpcError {
    pub(crate) code: i64,
    pub(crate) message: String,
}

pub(crate) const METHOD_NOT_FOUND: i64 = -32601;
pub(crate) const INVALID_PARAMS: i64 = -32602;
pub(crate) const RESOURCE_NOT_FOUND: i64 = -32002;
pub(crate) const INTERNAL_ERROR: i64 = -32603;

/// The longest text of an error that is passed on, in bytes.
const LONGEST_ERROR: usize = 8 << 10;

#[derive(Deserialize)]
struct Wire<'a> {
    #[serde(borrow)]
    jsonrpc: Cow<'a, str>,
    #[serde(borrow, default)]
    id: Option<&'a RawValue>,
    #[serde(borrow, default)]
    method: Option<Cow<'a, str>>,
    #[serde(borrow, default)]
    params: Option<&'a RawValue>,
    #[serde(borrow, default)]
    result: Option<&'a RawValue>,
    #[serde(borrow, default)]
    error: Option<&'a RawValue>,
}

/// The messages of a line: one, or several in a batch. `None`: it is no line of the protocol.
pub(crate) fn read(line: &[u8]) -> Option<Vec<Message>> {
    let text = std::str::from_utf8(line).ok()?.trim_ascii();
    if text.starts_with('[') {
        // One with nothing in it would cost nothing.
        let all = serde_json::from_str::<Vec<&RawValue>>(text).ok().filter(|all| !all.is_empty())?;
        return all.into_iter().map(|one| read_one(one.get())).collect();
    }
    read_one(text).map(|message| vec![message])
}

fn read_one(text: &str) -> Option<Message> {
    let wire: Wire<'_> = serde_json::from_str(text).ok()?;
    if wire.jsonrpc != "2.0" {
        return None;
    }
    let owned = |raw: Option<&RawValue>| raw.map(ToOwned::to_owned);
    let id = wire.id.filter(|id| id.get() != "null");
    Some(match (wire.method, id) {
        (Some(method), Some(id)) => {
            Message::Request { id: id.to_owned(), method: method.into_owned(), params: owned(wire.params) }
        }
        (Some(method), None) => Message::Notice { method: method.into_owned(), params: owned(wire.params) },
        (None, id) => {
            let outcome = match (wire.error, wire.result) {
                (Some(error), _) => Err(RpcError::read(error)),
                (None, Some(result)) => Ok(result.to_owned()),
                (None, None) => return None,
            };
            Message::Answer { id: id.and_then(|id| id.get().parse().ok()), outcome }
        }
    })
}

impl RpcError {
    fn read(raw: &RawValue) -> RpcError {
        #[derive(Deserialize)]
        struct Wire {
            code: i64,
            message: String,
        }
        let read = serde_json::from_str::<Wire>(raw.get());
        let Wire { code, message } =
            read.unwrap_or_else(|_| Wire { code: INTERNAL_ERROR, message: "the server gave no reason".to_owned() });
        let message = shortened(message, LONGEST_ERROR);
        let said = if message.starts_with("MCP error ") { message } else { format!("MCP error {code}: {message}") };
        RpcError { code, message: said }
    }
}

/// At most this many bytes of it.
pub(crate) fn shortened(mut text: String, most: usize) -> String {
    if text.len() > most {
        text.truncate(text.floor_char_boundary(most));
        text.push('…');
    }
    text
}

#[cfg(test)]
mod tests {
    use super::*;
    use proptest::prelude::*;

    proptest! {
        #[test]
        fn whatever_comes_is_read_or_not(line in prop_oneof![
            proptest::collection::vec(any::<u8>(), 0..200),
            r#"[\[\]{}:,"a-z0-9. -]{0,80}"#.prop_map(String::into_bytes),
            r#"\{"jsonrpc":"2.0"(,"(id|method|params|result|error)":("[a-z]*"|[0-9-]{1,25}|null|\{\}|\[\])){0,5}\}"#
                .prop_map(String::into_bytes),
        ]) {
            for message in read(&line).into_iter().flatten() {
                if let Message::Answer { outcome: Err(error), .. } = message {
                    prop_assert!(error.message.starts_with("MCP error "));
                }
            }
        }
    }

    fn one(line: &str) -> Option<Message> {
        read(line.as_bytes()).map(|mut all| all.remove(0))
    }

    #[test]
    fn each_form_is_told_from_the_others() {
        assert!(matches!(
            one(r#"{"jsonrpc":"2.0","id":7,"result":{}}"#),
            Some(Message::Answer { id: Some(7), outcome: Ok(_) })
        ));
        assert!(matches!(
            one(r#"{"jsonrpc":"2.0","id":"x","method":"ping"}"#),
            Some(Message::Request { method, params: None, .. }) if method == "ping"
        ));
        assert!(matches!(one(r#"{"jsonrpc":"2.0","method":"a","params":{}}"#), Some(Message::Notice { .. })));
        let batch = read(br#" [{"jsonrpc":"2.0","method":"a"},{"jsonrpc":"2.0","id":1,"result":1}] "#);
        assert_eq!(batch.map(|all| all.len()), Some(2));
    }

    #[test]
    fn an_answer_to_nobody_is_one() {
        for id in ["null", "-1", "1.5", "\"1\"", "99999999999999999999"] {
            let line = format!(r#"{{"jsonrpc":"2.0","id":{id},"result":1}}"#);
            assert!(matches!(one(&line), Some(Message::Answer { id: None, .. })), "{id}");
        }
    }

    #[test]
    fn what_is_no_message_is_none() {
        let deep = "[".repeat(100_000);
        for line in
            ["", "hello", "{}", "[1]", "null", r#"{"jsonrpc":"1.0","id":1,"result":1}"#, r#"{"jsonrpc":"2.0""#, &deep]
        {
            assert!(one(line).is_none(), "{}", &line[..line.len().min(40)]);
        }
        assert!(read(b"\xff\xfe").is_none());
    }

    #[test]
    fn errors_are_named_and_bounded() {
        let error = |text: &str| RpcError::read(&RawValue::from_string(text.to_owned()).unwrap());
        assert_eq!(error(r#"{"code":-32000,"message":"no"}"#).message, "MCP error -32000: no");
        assert_eq!(error(r#"{"code":1,"message":"MCP error 1: no"}"#).message, "MCP error 1: no");
        assert_eq!(
            error("7"),
            RpcError { code: INTERNAL_ERROR, message: "MCP error -32603: the server gave no reason".to_owned() }
        );
        let long = error(&format!(r#"{{"code":1,"message":"{}"}}"#, "ä".repeat(1 << 20)));
        assert!(long.message.len() < LONGEST_ERROR + 64);
    }
}
