//! What a handler gave, as the protocol has it.

use super::call::{Done, Job};
use super::error::RpcError;
use super::offer::Offer;
use super::schema::{self, Price, Schema, TooMuch, Violation};
use super::surface::Tool;
use super::version::Era;
use crate::app::App;
use crate::workers::QUICK_BYTES;
use http::StatusCode;
use sandbox::{Code, Failure, Receipt};
use serde::de::{MapAccess, Visitor};
use serde::ser::SerializeMap;
use serde::{Deserialize, Deserializer, Serialize, Serializer};
use serde_json::value::RawValue;
use serde_json::{Value, json};
use std::borrow::Cow;
use std::collections::BTreeMap;

/// Lists and resources may be kept this long. A change is announced, so this only bounds what a lost announcement costs.
pub const TTL_MS: u64 = 60_000;

/// Beside every answer: what was used, and which server it was.
pub struct Meta<'a> {
    pub offer: Option<&'a Offer>,
    pub era: Era,
    pub done: Option<&'a Done>,
    pub error: Option<&'a Failure>,
    /// The author's own.
    pub own: BTreeMap<Cow<'a, str>, &'a RawValue>,
}

#[derive(Serialize)]
struct ReceiptView<'a> {
    call: &'a str,
    deployment: &'a str,
    #[serde(flatten)]
    receipt: &'a Receipt,
}

impl Serialize for Meta<'_> {
    fn serialize<S: Serializer>(&self, serializer: S) -> Result<S::Ok, S::Error> {
        let mut map = serializer.serialize_map(None)?;
        for (key, value) in &self.own {
            if !is_hosts_own(key) {
                map.serialize_entry(key, value)?;
            }
        }
        if let (Era::Modern, Some(offer)) = (self.era, self.offer) {
            map.serialize_entry("io.modelcontextprotocol/serverInfo", &offer.server_info)?;
        }
        if let Some(failure) = self.error {
            map.serialize_entry("bulkhead/error", failure)?;
        }
        if let (Some(Done { receipt: Some(receipt), call, .. }), Some(offer)) = (self.done, self.offer) {
            let view = ReceiptView { call, deployment: &offer.record.id, receipt };
            map.serialize_entry("bulkhead/receipt", &view)?;
        }
        map.end()
    }
}

/// Whether a key of `_meta` is one by which the host speaks of a call, or looks like one to people or to careless programs.
fn is_hosts_own(key: &str) -> bool {
    let plain = |c: &char| !bundle::is_hidden(*c) && !c.is_whitespace();
    let seen: String = key.chars().filter(plain).flat_map(char::to_lowercase).collect();
    let prefix = seen.split(['/', '\\', '\u{2044}', '\u{2215}', '\u{29f8}', '\u{ff0f}']).next().unwrap_or_default();
    matches!(prefix.trim_matches(|c: char| !c.is_alphanumeric()), "bulkhead" | "io.modelcontextprotocol")
}

#[derive(Serialize)]
#[serde(rename_all = "camelCase")]
struct ToolResult<'a> {
    #[serde(skip_serializing_if = "Option::is_none")]
    result_type: Option<&'static str>,
    content: Content<'a>,
    #[serde(skip_serializing_if = "Option::is_none")]
    structured_content: Option<&'a RawValue>,
    #[serde(skip_serializing_if = "std::ops::Not::not")]
    is_error: bool,
    #[serde(rename = "_meta")]
    meta: Meta<'a>,
}

#[derive(Serialize)]
#[serde(untagged)]
enum Content<'a> {
    Given(&'a RawValue),
    Text([Text<'a>; 1]),
}

#[derive(Serialize)]
struct Text<'a> {
    r#type: &'static str,
    text: TextValue<'a>,
}

#[derive(Serialize)]
#[serde(untagged)]
enum TextValue<'a> {
    /// A JSON string as it stands.
    Raw(&'a RawValue),
    Plain(&'a str),
}

fn text(value: TextValue<'_>) -> Content<'_> {
    Content::Text([Text { r#type: "text", text: value }])
}

fn complete(era: Era) -> Option<&'static str> {
    (era == Era::Modern).then_some("complete")
}

/// The result of `tools/call` for a value the tool gave.
pub fn tool(era: Era, offer: &Offer, tool: &Tool, done: &Done, value: &[u8]) -> Result<Vec<u8>, RpcError> {
    let raw = match serde_json::from_slice::<&RawValue>(value) {
        Ok(raw) => raw,
        Err(error) => {
            let failure = Failure::new(Code::ProtocolViolation, format!("the result is not JSON: {error}"));
            return tool_failure(era, Some(offer), Some(done), &failure);
        }
    };
    let given = Given::read(raw);
    let structured = match &given {
        Some(given) => given.structured,
        None => (tool.output.is_some() || raw.get().starts_with('{')).then_some(raw),
    };
    let is_error = given.as_ref().is_some_and(|given| given.is_error);
    let allowed = |raw: &&RawValue| era == Era::Modern || (era.is_structured() && raw.get().starts_with('{'));
    let (content, own) = match given {
        Some(given) => (Content::Given(given.content), given.meta),
        None if raw.get().starts_with('"') => (text(TextValue::Raw(raw)), BTreeMap::new()),
        None => (text(TextValue::Plain(raw.get())), BTreeMap::new()),
    };
    Ok(super::to_json(&ToolResult {
        result_type: complete(era),
        content,
        structured_content: structured.filter(allowed),
        is_error,
        meta: Meta { offer: Some(offer), era, done: Some(done), error: None, own },
    }))
}

/// Why what a tool gave does not fit what it promised.
pub async fn misfit(app: &App, job: &Job, tool: &Tool, value: &[u8]) -> Option<Failure> {
    let schema = tool.output.as_ref()?;
    let aside = |price| app.aside(&job.tenant, &job.caller, move || compare(schema, value, price));
    if value.len() > QUICK_BYTES {
        return aside(None).await;
    }
    match schema.price(value) {
        Ok(price) if !price.is_quick() => aside(Some(price)).await,
        Ok(price) => compare(schema, value, Some(price)),
        Err(too_much) => Some(too_costly(too_much)),
    }
}

fn too_costly(too_much: TooMuch) -> Failure {
    Failure::new(Code::ResultLimit, format!("the result is not checked against the tool's output schema: {too_much}"))
}

fn compare(schema: &Schema, value: &[u8], price: Option<Price>) -> Option<Failure> {
    let failure = |message: String| Failure::new(Code::ToolError, message);
    let price = match price.map_or_else(|| schema.price(value), Ok) {
        Ok(price) => price,
        Err(too_much) => return Some(too_costly(too_much)),
    };
    // What is no JSON is told of when the answer is written.
    let raw = serde_json::from_slice::<&RawValue>(value).ok()?;
    let raw = match Given::read(raw) {
        None => raw,
        Some(Given { structured: Some(structured), .. }) => structured,
        Some(Given { is_error: true, .. }) => return None,
        Some(_) => {
            let message = "the result has no `structuredContent`, and the tool has an output schema";
            return Some(failure(message.to_owned()));
        }
    };
    let violations = match serde_json::from_str::<Value>(raw.get()) {
        Ok(value) => schema.check(&value, price).err()?,
        Err(error) => vec![Violation { path: String::new(), message: error.to_string() }],
    };
    Some(failure(format!("the result does not fit the tool's output schema: {}", schema::describe(&violations))))
}

/// A tool result that tells of a failure.
pub fn tool_failure(
    era: Era,
    offer: Option<&Offer>,
    done: Option<&Done>,
    failure: &Failure,
) -> Result<Vec<u8>, RpcError> {
    match failure.code {
        Code::Busy => {
            let error = RpcError::unavailable(failure.message.clone());
            return Err(error.with_data(json!({ "code": failure.code })));
        }
        Code::UnknownTool => {
            let code = json!({ "code": failure.code.as_str() });
            return Err(RpcError::invalid_params(failure.message.clone()).with_data(code));
        }
        _ => {}
    }
    let said = format!("{}: {}", failure.code, failure.message);
    Ok(super::to_json(&ToolResult {
        result_type: complete(era),
        content: text(TextValue::Plain(&said)),
        structured_content: None,
        is_error: true,
        meta: Meta { offer, era, done, error: Some(failure), own: BTreeMap::new() },
    }))
}

/// A failure of something that is not a tool.
pub fn failure(failure: &Failure) -> RpcError {
    let status = match failure.code {
        Code::Busy | Code::WallUnavailable => StatusCode::SERVICE_UNAVAILABLE,
        _ => StatusCode::OK,
    };
    let error = RpcError::new(status, -32603, format!("{}: {}", failure.code, failure.message));
    let retry_after = (failure.code == Code::Busy).then_some(1);
    RpcError { retry_after, ..error.with_data(json!({ "code": failure.code })) }
}

/// A result in the protocol's own form.
struct Given<'a> {
    content: &'a RawValue,
    structured: Option<&'a RawValue>,
    is_error: bool,
    meta: BTreeMap<Cow<'a, str>, &'a RawValue>,
}

impl<'a> Given<'a> {
    /// None when the value is just a value: it has other keys, or its content is not MCP's.
    fn read(raw: &'a RawValue) -> Option<Given<'a>> {
        #[derive(Deserialize)]
        struct Typed<'a> {
            #[serde(borrow, rename = "type")]
            _type: Cow<'a, str>,
        }
        let keys = keys(raw)?;
        if keys.keys().any(|key| !matches!(&**key, "content" | "structuredContent" | "isError" | "_meta")) {
            return None;
        }
        let content = *keys.get("content")?;
        serde_json::from_str::<Vec<Typed<'_>>>(content.get()).ok()?;
        Some(Given {
            content,
            structured: keys.get("structuredContent").copied().filter(|raw| raw.get() != "null"),
            is_error: keys.get("isError").is_some_and(|raw| raw.get() == "true"),
            meta: keys.get("_meta").and_then(|raw| self::keys(raw)).unwrap_or_default(),
        })
    }
}

type Keys<'a> = BTreeMap<Cow<'a, str>, &'a RawValue>;

/// The keys of an object, whose values stay unread. None for anything else, and for keys that are there twice.
fn keys(raw: &RawValue) -> Option<Keys<'_>> {
    struct Unique;
    impl<'de> Visitor<'de> for Unique {
        type Value = Option<Keys<'de>>;

        fn expecting(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
            f.write_str("an object")
        }

        fn visit_map<A: MapAccess<'de>>(self, mut map: A) -> Result<Self::Value, A::Error> {
            let mut keys = Some(Keys::new());
            while let Some((Key(key), value)) = map.next_entry::<Key<'de>, &RawValue>()? {
                if keys.as_mut().is_some_and(|keys| keys.insert(key, value).is_some()) {
                    keys = None;
                }
            }
            Ok(keys)
        }
    }
    if !raw.get().starts_with('{') {
        return None;
    }
    serde_json::Deserializer::from_str(raw.get()).deserialize_map(Unique).ok().flatten()
}

#[derive(Deserialize, PartialEq, Eq, PartialOrd, Ord)]
struct Key<'a>(#[serde(borrow)] Cow<'a, str>);

#[derive(Serialize)]
#[serde(rename_all = "camelCase")]
struct Other<'a> {
    #[serde(skip_serializing_if = "Option::is_none")]
    result_type: Option<&'static str>,
    #[serde(skip_serializing_if = "Option::is_none")]
    contents: Option<Value>,
    #[serde(skip_serializing_if = "Option::is_none")]
    messages: Option<Value>,
    #[serde(skip_serializing_if = "Option::is_none")]
    description: Option<Value>,
    #[serde(skip_serializing_if = "Option::is_none")]
    completion: Option<Value>,
    #[serde(skip_serializing_if = "Option::is_none")]
    ttl_ms: Option<u64>,
    #[serde(skip_serializing_if = "Option::is_none")]
    cache_scope: Option<&'static str>,
    #[serde(rename = "_meta")]
    meta: Meta<'a>,
}

impl<'a> Other<'a> {
    fn new(era: Era, offer: &'a Offer, done: &'a Done) -> Other<'a> {
        let meta = Meta { offer: Some(offer), era, done: Some(done), error: None, own: BTreeMap::new() };
        Other {
            result_type: complete(era),
            contents: None,
            messages: None,
            description: None,
            completion: None,
            ttl_ms: None,
            cache_scope: None,
            meta,
        }
    }
}

fn parse(value: &[u8]) -> Result<Value, RpcError> {
    serde_json::from_slice(value)
        .map_err(|error| RpcError::internal(format!("the server's answer cannot be read: {error}")))
}

/// The result of `resources/read`.
pub fn resource(era: Era, offer: &Offer, uri: &str, done: &Done, value: &[u8]) -> Result<Vec<u8>, RpcError> {
    let mut value = parse(value)?;
    let contents = match &mut value {
        Value::Object(map) if map.get("contents").is_some_and(Value::is_array) => map["contents"].take(),
        Value::Object(map)
            if map.get("blob").is_some_and(Value::is_string) || map.get("text").is_some_and(Value::is_string) =>
        {
            Value::Array(vec![one_content(offer, uri, std::mem::take(map))])
        }
        other => {
            let text = other.as_str().map_or_else(|| other.to_string(), str::to_owned);
            Value::Array(vec![one_content(offer, uri, serde_json::Map::from_iter([("text".to_owned(), text.into())]))])
        }
    };
    // Lists are the same for everybody who may see them; what a resource holds may be meant for one caller.
    let (ttl_ms, cache_scope) = if era == Era::Modern { (Some(0), Some("private")) } else { (None, None) };
    Ok(super::to_json(&Other { contents: Some(contents), ttl_ms, cache_scope, ..Other::new(era, offer, done) }))
}

fn one_content(offer: &Offer, uri: &str, mut content: serde_json::Map<String, Value>) -> Value {
    content.entry("uri").or_insert_with(|| uri.into());
    if let Some(mime_type) = offer.surface.mime_type(uri) {
        content.entry("mimeType").or_insert_with(|| mime_type.into());
    }
    Value::Object(content)
}

/// The result of `prompts/get`.
pub fn prompt(era: Era, offer: &Offer, done: &Done, value: &[u8]) -> Result<Vec<u8>, RpcError> {
    let mut value = parse(value)?;
    let mut description = None;
    let messages = match &mut value {
        Value::Object(map) if map.get("messages").is_some_and(Value::is_array) => {
            description = map.remove("description").filter(Value::is_string);
            map["messages"].take()
        }
        Value::Array(_) => value,
        other => {
            let text = other.as_str().map_or_else(|| other.to_string(), str::to_owned);
            json!([{ "role": "user", "content": { "type": "text", "text": text } }])
        }
    };
    Ok(super::to_json(&Other { messages: Some(messages), description, ..Other::new(era, offer, done) }))
}

/// The result of `completion/complete`.
pub fn completion(era: Era, offer: &Offer, done: &Done, value: &[u8]) -> Result<Vec<u8>, RpcError> {
    Ok(super::to_json(&Other { completion: Some(parse(value)?), ..Other::new(era, offer, done) }))
}

#[cfg(test)]
mod tests {
    use super::*;

    fn given(json: &str) -> bool {
        let raw = RawValue::from_string(json.to_owned()).unwrap();
        Given::read(&raw).is_some()
    }

    #[test]
    fn what_the_host_says_of_a_call_it_says_alone() {
        for own in [
            "bulkhead/receipt",
            "Bulkhead/receipt",
            "BULKHEAD/RECEIPT",
            " bulkhead/receipt",
            "bulk\u{200b}head/receipt",
            "bulkhead\u{2044}receipt",
            ".bulkhead/receipt",
            "bulkhead",
            "IO.ModelContextProtocol/serverInfo",
            "io.modelcontextprotocol /serverInfo",
        ] {
            assert!(is_hosts_own(own), "{own}");
        }
        for theirs in ["receipt", "example.com/bulkhead", "bulkheads/receipt", "io.modelcontextprotocol.example/x", ""]
        {
            assert!(!is_hosts_own(theirs), "{theirs}");
        }
    }

    #[test]
    fn only_what_is_wholly_a_result_is_taken_for_one() {
        assert!(given(r#"{"content":[{"type":"text","text":"a"}]}"#));
        assert!(given(r#"{"content":[],"isError":true,"structuredContent":{"a":1},"_meta":{}}"#));
        for plain in [
            r#"{"content":"a"}"#,
            r#"{"content":[1]}"#,
            r#"{"content":[{"text":"a"}]}"#,
            r#"{"content":[],"other":1}"#,
            r#"{"content":[],"content":[]}"#,
            r#"[{"type":"text"}]"#,
            "null",
        ] {
            assert!(!given(plain), "{plain}");
        }
    }
}
