//! The one call that everybody answers, `double_price {"price": 45}`, in the forms of the protocol's two eras.

use crate::wire::{Connection, Reply};
use anyhow::{Context, Result, bail, ensure};
use serde::Deserialize;
use std::net::SocketAddr;

/// How a client speaks to a server.
#[derive(Clone, Copy, Debug, PartialEq, Eq, clap::ValueEnum)]
pub enum Form {
    /// 2026-07-28: every request says all there is to say.
    Modern,
    /// 2025-11-25 without a session.
    Stateless,
    /// 2025-11-25 after `initialize`, one session per connection.
    Session,
}

impl Form {
    pub fn era(self) -> &'static str {
        match self {
            Form::Modern => "2026-07-28",
            Form::Stateless => "2025-11-25",
            Form::Session => "2025-11-25, session",
        }
    }

    fn version(self) -> &'static str {
        self.era().split(',').next().unwrap_or_default()
    }
}

#[derive(Clone, Debug)]
pub struct Target {
    pub address: SocketAddr,
    pub path: String,
    pub key: Option<String>,
    pub form: Form,
}

/// Every id has as many digits, so that only they change from call to call.
const FIRST_ID: u32 = 1_000_000_000;
const ID_DIGITS: usize = 10;

/// A connection that makes the call again and again.
pub struct Caller {
    address: SocketAddr,
    connection: Connection,
    request: Vec<u8>,
    /// Where the id is in `request`.
    id_at: usize,
    id: u32,
    reply: Reply,
}

impl Caller {
    pub async fn open(target: &Target) -> Result<Caller> {
        let mut connection = Connection::open(target.address).await?;
        let mut reply = Reply::default();
        let mut session = None;
        if target.form == Form::Session {
            session = Some(open_session(&mut connection, target, &mut reply).await?);
        }
        let request = post(target, session.as_deref(), &call_body(target.form));
        let mark = FIRST_ID.to_string();
        let id_at = request.windows(ID_DIGITS).position(|window| window == mark.as_bytes()).context("no id")?;
        Ok(Caller { address: target.address, connection, request, id_at, id: FIRST_ID, reply })
    }

    /// A new connection for the same session: servers close those that nobody uses for some seconds.
    pub async fn reconnect(&mut self) -> Result<()> {
        self.connection = Connection::open(self.address).await?;
        Ok(())
    }

    /// One call; an answer that is not the right one is an error.
    pub async fn call(&mut self) -> Result<()> {
        self.exchange().await?;
        self.check()
    }

    /// One call; says whether it was answered, as it must be, or refused for its tenant's quota.
    pub async fn call_or_refusal(&mut self) -> Result<bool> {
        if self.exchange().await? == 429 {
            return Ok(false);
        }
        self.check().map(|()| true)
    }

    fn check(&self) -> Result<()> {
        let Reply { status, body, .. } = &self.reply;
        check(&self.reply, self.id)
            .with_context(|| format!("a call went wrong: status {status}, body {}", String::from_utf8_lossy(body)))
    }

    async fn exchange(&mut self) -> Result<u16> {
        self.id = self.id.checked_add(1).unwrap_or(FIRST_ID);
        let digits = self.id.to_string();
        self.request[self.id_at..self.id_at + ID_DIGITS].copy_from_slice(digits.as_bytes());
        self.connection.exchange(&self.request, &mut self.reply).await?;
        Ok(self.reply.status)
    }
}

async fn open_session(connection: &mut Connection, target: &Target, reply: &mut Reply) -> Result<String> {
    let body = r#"{"jsonrpc":"2.0","id":1,"method":"initialize","params":{"protocolVersion":"2025-11-25","capabilities":{},"clientInfo":{"name":"bench-gateway","version":"1.0.0"}}}"#;
    connection.exchange(&post(target, None, body), reply).await?;
    let text = String::from_utf8_lossy(&reply.body);
    let session = reply.session.take().with_context(|| format!("no session: status {}, body {text}", reply.status))?;
    let body = r#"{"jsonrpc":"2.0","method":"notifications/initialized"}"#;
    connection.exchange(&post(target, Some(&session), body), reply).await?;
    ensure!(reply.status == 202, "`notifications/initialized` was answered with status {}", reply.status);
    Ok(session)
}

fn call_body(form: Form) -> String {
    let meta = match form {
        Form::Modern => {
            r#","_meta":{"io.modelcontextprotocol/protocolVersion":"2026-07-28","io.modelcontextprotocol/clientInfo":{"name":"bench-gateway","version":"1.0.0"},"io.modelcontextprotocol/clientCapabilities":{}}"#
        }
        Form::Stateless | Form::Session => "",
    };
    format!(
        r#"{{"jsonrpc":"2.0","id":{FIRST_ID},"method":"tools/call","params":{{"name":"double_price","arguments":{{"price":45}}{meta}}}}}"#
    )
}

fn post(target: &Target, session: Option<&str>, body: &str) -> Vec<u8> {
    let mut head = format!(
        "POST {} HTTP/1.1\r\nhost: {}\r\ncontent-type: application/json\r\naccept: application/json, text/event-stream\r\n\
         mcp-protocol-version: {}\r\ncontent-length: {}\r\n",
        target.path,
        target.address,
        target.form.version(),
        body.len()
    );
    if target.form == Form::Modern {
        head += "mcp-method: tools/call\r\nmcp-name: double_price\r\n";
    }
    if let Some(session) = session {
        head += &format!("mcp-session-id: {session}\r\n");
    }
    if let Some(key) = &target.key {
        head += &format!("authorization: Bearer {key}\r\n");
    }
    format!("{head}\r\n{body}").into_bytes()
}

#[derive(Deserialize)]
struct Answer {
    id: u32,
    result: Outcome,
}

#[derive(Deserialize)]
#[serde(rename_all = "camelCase")]
struct Outcome {
    #[serde(default)]
    is_error: bool,
    structured_content: Doubled,
}

#[derive(Deserialize)]
#[serde(rename_all = "camelCase")]
struct Doubled {
    double_price: f64,
}

fn check(reply: &Reply, id: u32) -> Result<()> {
    ensure!(reply.status == 200, "the status is not 200");
    let json = if reply.event_stream { last_event(&reply.body)? } else { &reply.body };
    let answer: Answer = serde_json::from_slice(json).context("not the answer to a call")?;
    ensure!(answer.id == id, "the answer is for another request");
    ensure!(!answer.result.is_error, "the tool failed");
    ensure!(answer.result.structured_content.double_price == 90.0, "the sum is wrong");
    Ok(())
}

/// The data of the last event of a stream: the answer comes after everything else.
fn last_event(body: &[u8]) -> Result<&[u8]> {
    let line = body.split(|byte| *byte == b'\n').rfind(|line| line.starts_with(b"data:"));
    match line {
        Some(line) => Ok(&line[b"data:".len()..]),
        None => bail!("an event stream without an event"),
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn right(status: u16, event_stream: bool, body: &str) -> bool {
        check(&Reply { status, event_stream, session: None, body: body.into() }, 7).is_ok()
    }

    #[test]
    fn only_the_right_answer_passes() {
        let good = r#"{"jsonrpc":"2.0","id":7,"result":{"content":[],"structuredContent":{"doublePrice":90}}}"#;
        assert!(right(200, false, good));
        assert!(right(200, true, &format!("id: 1\ndata:\n\nevent: message\ndata: {good}\n\n")));
        assert!(!right(429, false, good));
        assert!(!right(200, true, "event: message\n\n"));
        assert!(!right(200, false, &good.replace("90", "91")));
        assert!(!right(200, false, &good.replace("\"id\":7", "\"id\":8")));
        assert!(!right(200, false, &good.replace("\"content\"", "\"isError\":true,\"content\"")));
        assert!(!right(200, false, r#"{"jsonrpc":"2.0","id":7,"error":{"code":-32602,"message":"no"}}"#));
    }
}
