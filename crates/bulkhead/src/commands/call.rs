//! `bulkhead call` and `tools`: a server as its clients see it, over MCP.

use super::names::{self, Place};
use super::table::{self, Table, field};
use super::{print_text, print_value, with_host};
use crate::client::mcp::{Endpoint, HEADER_MISMATCH, Note, Request, Wishes};
use crate::client::{Client, ClientError, Connection};
use crate::source::read_at_most;
use crate::{report, terminal};
use policy::Limits;
use serde::{Deserialize, Serialize};
use serde_json::value::RawValue;
use serde_json::{Map, Value, json};
use std::collections::BTreeMap;
use std::io::{IsTerminal, Write};
use std::process::ExitCode;

/// Call a tool of a server.
///
/// The result goes to stdout as text, the receipt and what the tool logged to stderr; with --json result and receipt
/// are one object on stdout.
///
/// Exit status: 0 the tool answered, 1 the call was refused or failed, 2 the host is at fault or cannot be reached.
#[derive(clap::Args)]
#[command(after_help = "Examples:\n  \
    bulkhead call acme/prices double_price '{\"price\": 45}'\n  \
    bulkhead call acme/prices double_price '{\"price\": 45}' --json | jq .receipt.cpu_us\n  \
    jq '{price: .total}' order.json | bulkhead call acme/prices double_price -")]
pub struct Call {
    /// Whose it is and what it is called
    #[arg(value_name = "TENANT/SERVER", value_parser = names::place)]
    server: Place,
    /// The tool
    tool: String,
    /// The tool's arguments as JSON; `-` reads them from stdin
    #[arg(value_name = "JSON", default_value = "{}")]
    arguments: String,
    /// Print {"result", "receipt"}
    #[arg(long)]
    json: bool,
}

/// The tools of a server.
#[derive(clap::Args)]
#[command(after_help = "Examples:\n  \
    bulkhead tools acme/prices\n  \
    bulkhead tools acme/prices --json | jq '.tools[].inputSchema'")]
pub struct Tools {
    /// Whose it is and what it is called
    #[arg(value_name = "TENANT/SERVER", value_parser = names::place)]
    server: Place,
    /// Print {"tools"}
    #[arg(long)]
    json: bool,
}

/// What a tool gave. Parts that are only shown stay as they came.
#[derive(Deserialize)]
#[serde(rename_all = "camelCase")]
struct Given {
    #[serde(default)]
    result_type: Option<String>,
    #[serde(default)]
    content: Vec<Value>,
    #[serde(default)]
    structured_content: Option<Box<RawValue>>,
    #[serde(default)]
    is_error: bool,
    #[serde(default, rename = "_meta")]
    meta: Meta,
}

#[derive(Default, Deserialize)]
struct Meta {
    #[serde(rename = "bulkhead/receipt")]
    receipt: Option<Value>,
    #[serde(rename = "bulkhead/error")]
    error: Option<Failure>,
}

#[derive(Deserialize)]
struct Failure {
    code: String,
    message: String,
    #[serde(default)]
    hint: Option<String>,
}

impl Call {
    pub fn run(self, connection: &Connection) -> ExitCode {
        with_host(connection, self.json, async |client| self.call(client).await)
    }

    async fn call(&self, client: &Client) -> Result<ExitCode, ClientError> {
        let arguments = self.arguments()?;
        let endpoint = Endpoint { client, tenant: &self.server.tenant, server: &self.server.server };
        let mut request = Request {
            method: "tools/call",
            name: Some(&self.tool),
            params: Map::from_iter([("name".to_owned(), json!(self.tool)), ("arguments".to_owned(), arguments)]),
            headers: Vec::new(),
        };
        let mut screen = Screen::new(!self.json);
        let wishes = Wishes { progress: screen.shows_progress, log: !self.json };
        let mut hear = |note: Note| screen.show(note);
        let mut result = endpoint.ask(&request, wishes, &mut hear).await;
        if matches!(&result, Err(error) if error.code() == HEADER_MISMATCH) {
            // Some tools want arguments repeated in header fields; which ones only their schema says.
            request.headers = header_arguments(&endpoint, &self.tool, &request.params["arguments"]).await?;
            result = endpoint.ask(&request, wishes, &mut hear).await;
        }
        screen.clear();
        self.show(&result?)
    }

    fn arguments(&self) -> Result<Value, ClientError> {
        let most = Limits::MOST.argument_kb;
        let bytes = match self.arguments.as_str() {
            "-" => read_at_most(std::io::stdin(), most)
                .map_err(|source| {
                    let message = "stdin cannot be read".to_owned();
                    ClientError::Usage { code: "bad_file", message, hint: None, source: Some(source) }
                })?
                .ok_or_else(|| {
                    let message = format!("the arguments on stdin are larger than {most} KiB (`argument_kb`)");
                    ClientError::refused("argument_limit", message, None)
                })?,
            text => text.as_bytes().to_vec(),
        };
        serde_json::from_slice(&bytes).map_err(|error| ClientError::Usage {
            code: "bad_arguments",
            message: format!("the arguments are not JSON: {error}"),
            hint: Some("quote them for the shell: '{\"price\": 45}'".to_owned()),
            source: None,
        })
    }

    fn show(&self, raw: &RawValue) -> Result<ExitCode, ClientError> {
        let bad = |what: String| ClientError::Nonsense { url: self.server.to_string(), what };
        let given: Given = serde_json::from_str(raw.get()).map_err(|error| bad(error.to_string()))?;
        if given.result_type.as_deref() == Some("input_required") {
            let hint = Some("use a client that can ask its user".to_owned());
            return Err(ClientError::refused(
                "input_required",
                "the tool asks its caller, which a command line cannot answer",
                hint,
            ));
        }
        if given.is_error {
            if !self.json
                && let Some(receipt) = &given.meta.receipt
            {
                report::talk(&receipt_line(receipt));
            }
            return Err(failed(given));
        }
        if self.json {
            let text = whole(raw).map_err(|error| bad(error.to_string()))?;
            return Ok(report::data(&terminal::json(&text), ExitCode::SUCCESS));
        }
        let exit = report::data(&content(&given), ExitCode::SUCCESS);
        if let Some(receipt) = &given.meta.receipt {
            report::talk(&receipt_line(receipt));
        }
        Ok(exit)
    }
}

/// The error of a tool that failed: the host's own words where it has some, else the tool's.
fn failed(given: Given) -> ClientError {
    if let Some(Failure { code, message, hint }) = given.meta.error {
        return ClientError::refused(code, message, hint);
    }
    let said: Vec<_> = given.content.iter().filter_map(|part| part["text"].as_str()).collect();
    let said = if said.is_empty() { "the tool failed and said nothing".to_owned() } else { said.join("\n") };
    ClientError::refused("tool_error", said, None)
}

/// `{"result", "receipt"}`: the result as it came, but for the receipt, which has a place of its own.
fn whole(raw: &RawValue) -> Result<String, serde_json::Error> {
    type Fields = BTreeMap<String, Box<RawValue>>;
    #[derive(Serialize)]
    struct Shown {
        result: Fields,
        receipt: Option<Box<RawValue>>,
    }
    let mut result: Fields = serde_json::from_str(raw.get())?;
    let mut receipt = None;
    if let Some(meta) = result.remove("_meta") {
        let mut meta: Fields = serde_json::from_str(meta.get())?;
        receipt = meta.remove("bulkhead/receipt");
        if !meta.is_empty() {
            result.insert("_meta".to_owned(), serde_json::value::to_raw_value(&meta)?);
        }
    }
    serde_json::to_string(&Shown { result, receipt })
}

/// A result for people. On a terminal later lines are indented, so that none of them passes for one of ours.
fn content(given: &Given) -> String {
    let parts: Vec<String> = given.content.iter().map(part).collect();
    let text = match (parts.is_empty(), &given.structured_content) {
        (true, Some(structured)) => structured.get().to_owned(),
        _ => parts.join("\n"),
    };
    if std::io::stdout().is_terminal() { terminal::text(&text) } else { terminal::lines(&text) }
}

fn part(part: &Value) -> String {
    let kind = part["type"].as_str().unwrap_or("something");
    match kind {
        "text" => part["text"].as_str().unwrap_or_default().to_owned(),
        "image" | "audio" => {
            let size = part["data"].as_str().map_or(0, |data| data.len() / 4 * 3);
            format!("[{kind}, {}, about {size} bytes]", field(part, "mimeType"))
        }
        "resource_link" => format!("[resource {}]", field(part, "uri")),
        "resource" => {
            let resource = &part["resource"];
            resource["text"].as_str().map_or_else(|| format!("[resource {}]", field(resource, "uri")), str::to_owned)
        }
        other => format!("[{other}]"),
    }
}

/// Names of the receipt, if there are any.
fn named(receipt: &Value, key: &str, word: &str) -> String {
    let names: Vec<&str> = receipt[key].as_array().into_iter().flatten().filter_map(Value::as_str).collect();
    if names.is_empty() { String::new() } else { format!(", {word} {}", names.join(" ")) }
}

fn receipt_line(receipt: &Value) -> String {
    let ms = |key: &str| receipt[key].as_f64().unwrap_or_default() / 1000.0;
    let jit = match (&receipt["wall"], &receipt["jit"]) {
        (wall, _) if wall != "isolate" => "",
        (_, Value::Bool(true)) => ", jit",
        _ => ", jitless",
    };
    let line = format!(
        "receipt: wall {}, boundary {}{jit}; {:.1} ms CPU of {}, {:.1} ms, {} KiB memory of {} MiB, {} host calls{}{}{}",
        field(receipt, "wall"),
        field(receipt, "boundary"),
        ms("cpu_us"),
        field(&receipt["limits"], "cpu_ms"),
        ms("time_us"),
        field(receipt, "peak_memory_kb"),
        field(&receipt["limits"], "memory_mb"),
        field(receipt, "host_calls"),
        named(receipt, "hosts", "reached"),
        named(receipt, "credentials", "with"),
        match receipt["masked"].as_u64() {
            None | Some(0) => String::new(),
            Some(count) => format!(", masked {count} times"),
        },
    );
    terminal::text(&line)
}

/// What a call says while it runs.
struct Screen {
    shows_log: bool,
    shows_progress: bool,
    /// Whether a line of progress stands there that the next one replaces.
    open: bool,
}

impl Screen {
    fn new(shows_log: bool) -> Screen {
        Screen { shows_log, shows_progress: std::io::stderr().is_terminal(), open: false }
    }

    fn show(&mut self, note: Note) {
        match note {
            Note::Log { level, text } if self.shows_log => {
                self.clear();
                report::talk(&format!("{}: {}", terminal::text(&level), terminal::text(&text)));
            }
            Note::Progress { progress, total, message } if self.shows_progress => {
                self.clear();
                let of = total.map(|total| format!(" of {total}")).unwrap_or_default();
                let line = format!("progress: {progress}{of} {}", message.unwrap_or_default());
                let _ = write!(std::io::stderr(), "{}", table::cell(&line));
                self.open = true;
            }
            Note::Log { .. } | Note::Progress { .. } => {}
        }
    }

    fn clear(&mut self) {
        if std::mem::take(&mut self.open) {
            let _ = write!(std::io::stderr(), "\r\x1b[K");
        }
    }
}

async fn list_tools(endpoint: &Endpoint<'_>) -> Result<Vec<Value>, ClientError> {
    #[derive(Deserialize)]
    #[serde(rename_all = "camelCase")]
    struct Page {
        tools: Vec<Value>,
        next_cursor: Option<String>,
    }
    const MOST_PAGES: usize = 1000;
    let (mut tools, mut params) = (Vec::new(), Map::new());
    for _ in 0..MOST_PAGES {
        let request = Request { method: "tools/list", name: None, params, headers: Vec::new() };
        let raw = endpoint.ask(&request, Wishes::default(), &mut |_| {}).await?;
        let page: Page = serde_json::from_str(raw.get())
            .map_err(|error| ClientError::Nonsense { url: endpoint.client.shown(), what: error.to_string() })?;
        tools.extend(page.tools);
        let Some(cursor) = page.next_cursor else { return Ok(tools) };
        params = Map::from_iter([("cursor".to_owned(), json!(cursor))]);
    }
    Err(ClientError::Nonsense { url: endpoint.client.shown(), what: "the list of tools has no end".to_owned() })
}

/// `Mcp-Param-*` for the arguments whose schema has `x-mcp-header`.
async fn header_arguments(
    endpoint: &Endpoint<'_>,
    tool: &str,
    arguments: &Value,
) -> Result<Vec<(String, String)>, ClientError> {
    let tools = list_tools(endpoint).await?;
    let schema = tools.iter().find(|entry| entry["name"] == tool).map(|entry| &entry["inputSchema"]);
    Ok(schema.map(|schema| collect_headers(schema, arguments, 0)).unwrap_or_default())
}

fn collect_headers(schema: &Value, value: &Value, depth: usize) -> Vec<(String, String)> {
    const DEEPEST: usize = 16;
    let mut headers = Vec::new();
    let Some(properties) = schema["properties"].as_object().filter(|_| depth < DEEPEST) else { return headers };
    for (name, schema) in properties {
        let Some(value) = value.get(name) else { continue };
        if let Some(header) = schema["x-mcp-header"].as_str()
            && reqwest::header::HeaderName::from_bytes(header.as_bytes()).is_ok()
        {
            match value {
                Value::String(text) => headers.push((format!("mcp-param-{header}"), text.clone())),
                Value::Bool(_) | Value::Number(_) => headers.push((format!("mcp-param-{header}"), value.to_string())),
                _ => {}
            }
        }
        headers.extend(collect_headers(schema, value, depth + 1));
    }
    headers
}

impl Tools {
    pub fn run(self, connection: &Connection) -> ExitCode {
        with_host(connection, self.json, async |client| {
            let endpoint = Endpoint { client, tenant: &self.server.tenant, server: &self.server.server };
            let tools = list_tools(&endpoint).await?;
            if self.json {
                return Ok(print_value(&json!({ "tools": tools })));
            }
            let mut table = Table::new(&["tool", "arguments", "description"]);
            for tool in &tools {
                table.row([field(tool, "name"), arguments(&tool["inputSchema"]), field(tool, "description")]);
            }
            Ok(print_text(&table.text()))
        })
    }
}

/// The names of a tool's arguments, those that may be missing with a question mark.
fn arguments(schema: &Value) -> String {
    let required: Vec<_> = schema["required"].as_array().into_iter().flatten().filter_map(Value::as_str).collect();
    let names = schema["properties"].as_object().into_iter().flat_map(|map| map.keys());
    let shown = names.map(|name| if required.contains(&name.as_str()) { name.clone() } else { format!("{name}?") });
    let shown: Vec<_> = shown.collect();
    if shown.is_empty() { "-".to_owned() } else { shown.join(", ") }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_receipt_has_its_own_place_and_numbers_stay_as_they_are() {
        let result = r#""content":[],"structuredContent":{"n":12345678901234567890123}"#;
        let raw = format!(r#"{{{result},"_meta":{{"bulkhead/receipt":{{"cpu_us":7}}}}}}"#);
        let raw = RawValue::from_string(raw).unwrap();
        assert_eq!(whole(&raw).unwrap(), format!(r#"{{"result":{{{result}}},"receipt":{{"cpu_us":7}}}}"#));
    }

    #[test]
    fn arguments_go_into_the_headers_that_the_schema_names() {
        let schema = json!({ "properties": {
            "region": { "type": "string", "x-mcp-header": "Region" },
            "deep": { "properties": { "n": { "x-mcp-header": "N" } } },
            "evil": { "x-mcp-header": "a\r\nb" },
        }});
        let value = json!({ "region": "eu", "deep": { "n": 4 }, "evil": "x" });
        let headers = collect_headers(&schema, &value, 0);
        let headers: Vec<_> = headers.iter().map(|(name, value)| (name.as_str(), value.as_str())).collect();
        assert_eq!(headers, [("mcp-param-N", "4"), ("mcp-param-Region", "eu")]);
    }
}
