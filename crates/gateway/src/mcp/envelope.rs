//! JSON-RPC as it arrives: borrowed, and parsed no further than somebody needs.

use super::error::RpcError;
use serde::Deserialize;
use serde_json::value::RawValue;
use std::borrow::Cow;

/// One message of a client.
#[derive(Debug)]
pub enum Message<'a> {
    Request(Request<'a>),
    Notification {
        method: Cow<'a, str>,
        params: Option<&'a RawValue>,
    },
    /// An answer to something the gateway asked.
    Response {
        id: &'a RawValue,
        outcome: Result<&'a RawValue, &'a RawValue>,
    },
}

#[derive(Debug)]
pub struct Request<'a> {
    /// A string or a number, as the client wrote it.
    pub id: &'a RawValue,
    pub method: Cow<'a, str>,
    pub params: Option<&'a RawValue>,
}

/// A string that is copied only where it has escapes; in an `Option`, a bare `Cow` always is.
#[derive(Debug, Deserialize)]
pub struct Text<'a>(#[serde(borrow)] pub Cow<'a, str>);

#[derive(Deserialize)]
struct Wire<'a> {
    #[serde(borrow)]
    jsonrpc: Option<Text<'a>>,
    #[serde(borrow, default, deserialize_with = "present")]
    id: Option<&'a RawValue>,
    #[serde(borrow)]
    method: Option<Text<'a>>,
    #[serde(borrow)]
    params: Option<&'a RawValue>,
    #[serde(borrow, default, deserialize_with = "present")]
    result: Option<&'a RawValue>,
    #[serde(borrow)]
    error: Option<&'a RawValue>,
}

/// Keeps `null` apart from nothing at all.
pub fn present<'de, D: serde::Deserializer<'de>>(deserializer: D) -> Result<Option<&'de RawValue>, D::Error> {
    <&RawValue>::deserialize(deserializer).map(Some)
}

/// Reads one message. The error has the request's id where one could be made out.
pub fn parse(body: &[u8]) -> Result<Message<'_>, RpcError> {
    let wire: Wire<'_> = match serde_json::from_slice(body) {
        Ok(wire) => wire,
        Err(error) if error.is_data() => {
            return Err(RpcError::invalid_request(format!("the body is not a JSON-RPC message: {error}")));
        }
        Err(error) => return Err(RpcError::parse(format!("the body is not JSON: {error}"))),
    };
    read(wire)
}

fn read(wire: Wire<'_>) -> Result<Message<'_>, RpcError> {
    if wire.jsonrpc.is_none_or(|Text(version)| version != "2.0") {
        return Err(RpcError::invalid_request("`jsonrpc` must be \"2.0\""));
    }
    if let Some(params) = wire.params
        && !params.get().starts_with('{')
    {
        return Err(RpcError::invalid_request("`params` must be an object"));
    }
    match (wire.method, wire.id) {
        (Some(Text(method)), Some(id)) => {
            if !is_id(id) {
                return Err(RpcError::invalid_request("`id` must be a string or a whole number"));
            }
            Ok(Message::Request(Request { id, method, params: wire.params }))
        }
        (Some(Text(method)), None) => Ok(Message::Notification { method, params: wire.params }),
        (None, Some(id)) => match (wire.result, wire.error) {
            (Some(result), None) => Ok(Message::Response { id, outcome: Ok(result) }),
            (None, Some(error)) => Ok(Message::Response { id, outcome: Err(error) }),
            _ => Err(RpcError::invalid_request("a message without `method` must have `result` or `error`")),
        },
        (None, None) => Err(RpcError::invalid_request("`method` is missing")),
    }
}

/// A string or a whole number, and short: it is kept, and repeated with whatever is said of what it stands for.
pub fn is_id(id: &RawValue) -> bool {
    let text = id.get();
    if text.len() > 256 {
        return false;
    }
    let digits = text.strip_prefix('-').unwrap_or(text);
    text.starts_with('"') || (!digits.is_empty() && digits.bytes().all(|b| b.is_ascii_digit()))
}

/// `params` as a type of ours, or the protocol's error.
pub fn params<'a, T: Deserialize<'a>>(params: Option<&'a RawValue>) -> Result<T, RpcError> {
    let text = params.map_or("{}", RawValue::get);
    serde_json::from_str(text).map_err(|error| RpcError::invalid_params(format!("bad `params`: {error}")))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn requests_notifications_and_responses_are_told_apart() {
        assert!(matches!(parse(br#"{"jsonrpc":"2.0","id":1,"method":"a"}"#), Ok(Message::Request(_))));
        assert!(matches!(parse(br#"{"jsonrpc":"2.0","method":"a"}"#), Ok(Message::Notification { .. })));
        assert!(matches!(
            parse(br#"{"jsonrpc":"2.0","id":"x","result":null}"#),
            Ok(Message::Response { outcome: Ok(_), .. })
        ));
    }

    #[test]
    fn what_is_no_message_is_refused_with_the_right_code() {
        for (body, code) in [
            (&b"{"[..], -32700),
            (b"\xff", -32700),
            (b"[]", -32600),
            (br#"{"jsonrpc":"1.0","id":1,"method":"a"}"#, -32600),
            (br#"{"jsonrpc":"2.0","id":null,"method":"a"}"#, -32600),
            (br#"{"jsonrpc":"2.0","id":1.5,"method":"a"}"#, -32600),
            (br#"{"jsonrpc":"2.0","id":1,"method":"a","params":[1]}"#, -32600),
            (br#"{"jsonrpc":"2.0","id":1}"#, -32600),
            (br#"{"jsonrpc":"2.0","id":1,"id":2,"method":"a"}"#, -32600),
        ] {
            assert_eq!(parse(body).unwrap_err().code, code, "{}", String::from_utf8_lossy(body));
        }
    }
}
