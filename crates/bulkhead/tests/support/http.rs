//! As much HTTP as it takes to ask a host, with a connection in hand that a test can mistreat.

use super::host::PATIENCE;
use serde_json::{Value, json};
use std::io::{BufRead, BufReader, Error, ErrorKind, Read, Result, Write};
use std::net::TcpStream;

/// An answer.
#[derive(Debug)]
pub struct Answer {
    pub status: u16,
    pub body: String,
}

impl Answer {
    pub fn json(&self) -> Value {
        serde_json::from_str(&self.body).unwrap_or_else(|error| panic!("no JSON: {error}\n{self:?}"))
    }
}

/// A connection that is kept.
pub struct Connection {
    stream: BufReader<TcpStream>,
}

impl Connection {
    /// To the host at `http://ADDRESS`.
    pub fn open(url: &str) -> Result<Connection> {
        let address = url.strip_prefix("http://").expect("a plain URL");
        let stream = TcpStream::connect(address)?;
        stream.set_read_timeout(Some(PATIENCE))?;
        stream.set_write_timeout(Some(PATIENCE))?;
        stream.set_nodelay(true)?;
        Ok(Connection { stream: BufReader::new(stream) })
    }

    pub fn stream(&self) -> &TcpStream {
        self.stream.get_ref()
    }

    pub fn ask(&mut self, method: &str, path: &str, headers: &[(&str, &str)], body: &str) -> Result<Answer> {
        self.send(method, path, headers, body)?;
        self.receive()
    }

    /// Sends a request, and does not wait for the answer.
    pub fn send(&mut self, method: &str, path: &str, headers: &[(&str, &str)], body: &str) -> Result<()> {
        let mut head = format!("{method} {path} HTTP/1.1\r\nhost: localhost\r\ncontent-length: {}\r\n", body.len());
        for (name, value) in headers {
            head.push_str(&format!("{name}: {value}\r\n"));
        }
        self.stream.get_mut().write_all(format!("{head}\r\n{body}").as_bytes())
    }

    pub fn receive(&mut self) -> Result<Answer> {
        let mut line = String::new();
        self.stream.read_line(&mut line)?;
        let status = line.split_whitespace().nth(1).and_then(|word| word.parse().ok());
        let status = status.ok_or_else(|| Error::new(ErrorKind::InvalidData, format!("no status line: {line:?}")))?;
        let mut length = 0;
        loop {
            let mut line = String::new();
            self.stream.read_line(&mut line)?;
            let Some((name, value)) = line.trim_end().split_once(": ") else { break };
            if name.eq_ignore_ascii_case("content-length") {
                length = value.parse().map_err(|_| ErrorKind::InvalidData)?;
            }
        }
        let mut body = vec![0; length];
        self.stream.read_exact(&mut body)?;
        Ok(Answer { status, body: String::from_utf8(body).map_err(|_| ErrorKind::InvalidData)? })
    }

    /// `tools/call`, with the headers that modern clients send.
    pub fn call(
        &mut self,
        key: &str,
        server: &str,
        tool: &str,
        arguments: &Value,
        more: &[(&str, &str)],
    ) -> Result<Answer> {
        self.post(key, server, tool, &call_message(tool, arguments), more)
    }

    pub fn post(
        &mut self,
        key: &str,
        server: &str,
        tool: &str,
        message: &Value,
        more: &[(&str, &str)],
    ) -> Result<Answer> {
        let bearer = format!("Bearer {key}");
        let mut headers = vec![
            ("authorization", bearer.as_str()),
            ("content-type", "application/json"),
            ("accept", "application/json, text/event-stream"),
            ("mcp-protocol-version", "2026-07-28"),
            ("mcp-method", "tools/call"),
            ("mcp-name", tool),
        ];
        headers.extend_from_slice(more);
        self.ask("POST", &format!("/{server}/mcp"), &headers, &message.to_string())
    }
}

pub fn call_message(tool: &str, arguments: &Value) -> Value {
    let meta = json!({
        "io.modelcontextprotocol/protocolVersion": "2026-07-28",
        "io.modelcontextprotocol/clientInfo": { "name": "test", "version": "1" },
        "io.modelcontextprotocol/clientCapabilities": {},
    });
    json!({ "jsonrpc": "2.0", "id": 1, "method": "tools/call",
            "params": { "name": tool, "arguments": arguments, "_meta": meta } })
}
