//! Who is measured: the rows, and the servers behind them.

use crate::call::{Form, Target};
use crate::host::Host;
use crate::server::Server;
use anyhow::{Context, Result};
use serde_json::json;
use std::path::Path;
use tokio::process::Command;

pub struct Row {
    pub name: &'static str,
    pub form: Form,
    source: Source,
    pub note: &'static str,
}

enum Source {
    /// A file of `bench/gateway`, run by Node with an argument.
    Node(&'static str, &'static str),
    Python(&'static str),
    /// A program of this crate.
    Own(&'static str),
    /// Bulkhead, with this boundary.
    Bulkhead(&'static str),
}

const fn row(name: &'static str, form: Form, source: Source, note: &'static str) -> Row {
    Row { name, form, source, note }
}

pub const ROWS: [Row; 14] = [
    row(
        "node-sdk/plain",
        Form::Session,
        Source::Node("node-sdk.mjs", "session"),
        "SDK 1.x, a server per session, JSON answers",
    ),
    row(
        "node-sdk/sse",
        Form::Session,
        Source::Node("node-sdk.mjs", "session-sse"),
        "the same with its default answer, an event stream",
    ),
    row(
        "node-sdk/stateless",
        Form::Stateless,
        Source::Node("node-sdk.mjs", "stateless"),
        "SDK 1.x, a server per request, JSON answers",
    ),
    row("node-sdk/v2", Form::Modern, Source::Node("node-sdk-v2.mjs", ""), "SDK 2.x, a server per request"),
    row(
        "fastmcp/plain",
        Form::Stateless,
        Source::Python("fastmcp_server.py"),
        "uvicorn with uvloop, stateless, JSON answers",
    ),
    row("rmcp/http", Form::Stateless, Source::Own("rmcp-http"), "stateless, JSON answers"),
    row("rmcp/modern", Form::Modern, Source::Own("rmcp-http"), "the same, modern"),
    row(
        "http/floor",
        Form::Stateless,
        Source::Own("http-floor"),
        "HTTP alone: a constant answer, no protocol, no tool",
    ),
    row("bulkhead/call", Form::Modern, Source::Bulkhead("call"), "a fresh jailed process per call"),
    row("bulkhead/call-legacy", Form::Session, Source::Bulkhead("call"), "the same, in a session"),
    row("bulkhead/session", Form::Session, Source::Bulkhead("session"), "a jailed process per session"),
    row("bulkhead/server", Form::Modern, Source::Bulkhead("server"), "a jailed process per server"),
    row("bulkhead/server-legacy", Form::Session, Source::Bulkhead("server"), "the same, in a session"),
    row("bulkhead/server-stateless", Form::Stateless, Source::Bulkhead("server"), "the same, legacy without a session"),
];

impl Row {
    pub fn is_ours(&self) -> bool {
        matches!(self.source, Source::Bulkhead(_))
    }
}

/// A row whose server runs.
pub struct Peer {
    pub row: &'static Row,
    pub target: Target,
    pub pid: u32,
    /// None where several rows share one server.
    server: Option<Server>,
}

pub struct Peers {
    pub list: Vec<Peer>,
    host: Option<Host>,
}

impl Peers {
    /// Starts everything that a chosen row needs.
    pub async fn start(root: &Path, chosen: impl Fn(&Row) -> bool) -> Result<Peers> {
        let mut peers = Peers { list: Vec::new(), host: None };
        let started = peers.start_all(root, chosen).await;
        if let Err(error) = started {
            peers.stop().await;
            return Err(error);
        }
        Ok(peers)
    }

    async fn start_all(&mut self, root: &Path, chosen: impl Fn(&Row) -> bool) -> Result<()> {
        let installed = root.join("target/bench/gateway");
        for row in ROWS.iter().filter(|row| chosen(row) && !row.is_ours()) {
            let command = match row.source {
                Source::Node(file, argument) => {
                    let mut command = Command::new(root.join("target/v8/node/bin/node"));
                    command.arg(installed.join(file)).arg(argument).env("NODE_ENV", "production");
                    command
                }
                Source::Python(file) => {
                    let mut command = Command::new(installed.join("venv/bin/python"));
                    command.arg(installed.join(file));
                    command
                }
                Source::Own(name) => Command::new(root.join("target/release").join(name)),
                Source::Bulkhead(_) => continue,
            };
            let server = Server::start(command).await.with_context(|| format!("cannot start {}", row.name))?;
            let target = Target { address: server.address, path: "/mcp".to_owned(), key: None, form: row.form };
            self.list.push(Peer { row, target, pid: server.pid, server: Some(server) });
        }
        if ROWS.iter().any(|row| chosen(row) && row.is_ours()) {
            self.start_host(root, chosen).await.context("cannot start Bulkhead")?;
        }
        Ok(())
    }

    /// One host serves all of ours.
    async fn start_host(&mut self, root: &Path, chosen: impl Fn(&Row) -> bool) -> Result<()> {
        let host = self.host.insert(Host::start(root).await?);
        let plenty = json!({ "requests_per_s": 1e6, "burst": 1_000_000, "concurrent": 10_000, "cpu_s_per_min": 1e6 });
        let tenant = host.tenant("acme", &plenty).await?;
        for boundary in ["call", "session", "server"] {
            host.deploy(&tenant, &root.join("bench/gateway/prices.js"), boundary, boundary).await?;
        }
        for row in ROWS.iter().filter(|row| chosen(row)) {
            let Source::Bulkhead(boundary) = row.source else { continue };
            let target = host.target(&tenant, boundary, row.form);
            self.list.push(Peer { row, target, pid: host.server.pid, server: None });
        }
        Ok(())
    }

    pub async fn stop(self) {
        for peer in self.list {
            if let Some(server) = peer.server {
                server.stop().await;
            }
        }
        if let Some(host) = self.host {
            host.stop().await;
        }
    }
}
