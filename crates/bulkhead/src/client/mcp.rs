//! An MCP client of the revision 2026-07-28: every request stands for itself.

use super::{Client, ClientError, MOST_BYTES};
use base64::Engine;
use base64::engine::general_purpose::STANDARD;
use reqwest::header::{ACCEPT, CONTENT_TYPE};
use reqwest::{Method, Response, StatusCode};
use serde::Deserialize;
use serde_json::value::RawValue;
use serde_json::{Map, Value, json};
use std::time::Duration;

const VERSION: &str = "2026-07-28";

/// Longer than any host lets a call take.
const PATIENCE: Duration = Duration::from_secs(15 * 60);

/// One server's endpoint.
pub struct Endpoint<'c> {
    pub client: &'c Client,
    pub tenant: &'c str,
    pub server: &'c str,
}

/// What a client may hear while it waits for an answer.
#[derive(Clone, Copy, Default)]
pub struct Wishes {
    pub progress: bool,
    pub log: bool,
}

/// Something said on the way to an answer.
pub enum Note {
    Log { level: String, text: String },
    Progress { progress: f64, total: Option<f64>, message: Option<String> },
}

/// A request: what it is, what it is about, and header fields that repeat its arguments.
pub struct Request<'a> {
    pub method: &'a str,
    pub name: Option<&'a str>,
    pub params: Map<String, Value>,
    pub headers: Vec<(String, String)>,
}

#[derive(Deserialize)]
struct Message {
    method: Option<String>,
    params: Option<Value>,
    result: Option<Box<RawValue>>,
    error: Option<Failure>,
}

#[derive(Deserialize)]
struct Failure {
    code: i64,
    message: String,
    #[serde(default)]
    data: Value,
}

/// The header of an argument is missing or differs: the one error that a second attempt can mend.
pub const HEADER_MISMATCH: &str = "header_mismatch";

impl Endpoint<'_> {
    /// Sends a request and waits for its result.
    pub async fn ask(
        &self,
        request: &Request<'_>,
        wishes: Wishes,
        hear: &mut dyn FnMut(Note),
    ) -> Result<Box<RawValue>, ClientError> {
        let mut params = request.params.clone();
        params.insert("_meta".to_owned(), meta(wishes));
        let body = json!({ "jsonrpc": "2.0", "id": 1, "method": request.method, "params": params });
        let url = self.client.url(&[self.tenant, self.server, "mcp"]);
        let mut post = self
            .client
            .request(Method::POST, url)
            .timeout(PATIENCE)
            .header(CONTENT_TYPE, "application/json")
            .header(ACCEPT, "application/json, text/event-stream")
            .header("mcp-protocol-version", VERSION)
            .header("mcp-method", request.method);
        if let Some(name) = request.name {
            post = post.header("mcp-name", header_text(name));
        }
        for (name, value) in &request.headers {
            post = post.header(name, header_text(value));
        }
        let response = self.client.send_any(post.body(body.to_string())).await?;
        self.result(response, hear).await
    }

    async fn result(&self, response: Response, hear: &mut dyn FnMut(Note)) -> Result<Box<RawValue>, ClientError> {
        let status = response.status();
        let kind = response.headers().get(CONTENT_TYPE).and_then(|value| value.to_str().ok()).unwrap_or_default();
        if !kind.starts_with("text/event-stream") {
            let body = self.client.body(response).await?;
            let Ok(message) = serde_json::from_slice::<Message>(&body) else {
                return Err(self.client.refusal(status, &body));
            };
            return self.answer(status, message)?.ok_or_else(|| self.client.nonsense("it is no answer"));
        }
        let mut lines = super::Lines::new(self.client, response);
        let mut data: Vec<u8> = Vec::new();
        while let Some(line) = lines.next().await? {
            if let Some(piece) = line.strip_prefix(b"data:") {
                data.extend_from_slice(piece);
                if data.len() > MOST_BYTES {
                    return Err(self.client.nonsense("an event is too large"));
                }
            }
            if !line.is_empty() || data.trim_ascii().is_empty() {
                continue;
            }
            let message: Message =
                serde_json::from_slice(&data).map_err(|error| self.client.nonsense(error.to_string()))?;
            data.clear();
            if let Some(note) = note(&message) {
                hear(note);
            }
            if let Some(result) = self.answer(status, message)? {
                return Ok(result);
            }
        }
        Err(self.client.nonsense("the stream ended before the answer"))
    }

    /// A result or an error; `None` for a message that is neither.
    fn answer(&self, status: StatusCode, message: Message) -> Result<Option<Box<RawValue>>, ClientError> {
        let Some(Failure { code, message, data }) = message.error else { return Ok(message.result) };
        let text = |key: &str| data.get(key).and_then(Value::as_str).map(str::to_owned);
        let name = text("code").unwrap_or_else(|| name(status, code).to_owned());
        Err(ClientError::status(status, name, message, self.client.key_hint(status).or_else(|| text("hint"))))
    }
}

/// What scripts see of an error for which the host has no name.
fn name(status: StatusCode, code: i64) -> &'static str {
    match (status, code) {
        (StatusCode::UNAUTHORIZED, _) => "unauthorized",
        (StatusCode::FORBIDDEN, _) => "forbidden",
        (StatusCode::PAYLOAD_TOO_LARGE, _) => "too_large",
        (StatusCode::TOO_MANY_REQUESTS, _) => "quota",
        (StatusCode::SERVICE_UNAVAILABLE, _) => "busy",
        (_, -32601) => "unknown_method",
        (StatusCode::NOT_FOUND, _) => "not_found",
        (_, -32602) => "bad_arguments",
        (_, -32020) => HEADER_MISMATCH,
        (_, -32021) => "client_cannot",
        (_, -32022) => "unsupported_version",
        _ => "protocol_error",
    }
}

fn meta(wishes: Wishes) -> Value {
    let mut meta = json!({
        "io.modelcontextprotocol/protocolVersion": VERSION,
        "io.modelcontextprotocol/clientInfo": { "name": "bulkhead", "version": env!("CARGO_PKG_VERSION") },
        "io.modelcontextprotocol/clientCapabilities": {},
    });
    if wishes.progress {
        meta["progressToken"] = json!(1);
    }
    if wishes.log {
        meta["io.modelcontextprotocol/logLevel"] = json!("debug");
    }
    meta
}

fn note(message: &Message) -> Option<Note> {
    let params = message.params.as_ref()?;
    let text = |key: &str| params.get(key).and_then(Value::as_str).map(str::to_owned);
    match message.method.as_deref()? {
        "notifications/message" => {
            let said = params.get("data")?;
            let said = said.as_str().map_or_else(|| said.to_string(), str::to_owned);
            Some(Note::Log { level: text("level").unwrap_or_default(), text: said })
        }
        "notifications/progress" => {
            let number = |key: &str| params.get(key).and_then(Value::as_f64);
            Some(Note::Progress { progress: number("progress")?, total: number("total"), message: text("message") })
        }
        _ => None,
    }
}

/// What cannot stand in a header field as it is goes as Base64.
fn header_text(value: &str) -> String {
    let plain = value.bytes().all(|byte| (b' '..=b'~').contains(&byte)) && value.trim() == value && !value.is_empty();
    if plain && !value.starts_with("=?base64?") {
        value.to_owned()
    } else {
        format!("=?base64?{}?=", STANDARD.encode(value))
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn header_text_is_plain_where_it_can_be() {
        assert_eq!(header_text("double_price"), "double_price");
        assert_eq!(header_text("größe"), "=?base64?Z3LDtsOfZQ==?=");
        assert_eq!(header_text(" x"), "=?base64?IHg=?=");
        assert_eq!(header_text("=?base64?x?="), "=?base64?PT9iYXNlNjQ/eD89?=");
        assert_eq!(header_text("a\r\nb: c"), "=?base64?YQ0KYjogYw==?=");
    }
}
