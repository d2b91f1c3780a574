//! `bulkhead logs`: what a server's tools wrote.

use super::names::{self, Place};
use super::table::field;
use super::with_host;
use crate::client::{Client, ClientError, Connection};
use crate::report::{self, Reader};
use crate::terminal;
use reqwest::Method;
use serde_json::Value;
use std::process::ExitCode;

/// Show what the tools of a server logged, oldest line first.
#[derive(clap::Args)]
#[command(after_help = "Examples:\n  \
    bulkhead logs acme/prices --tail 20\n  \
    bulkhead logs acme/prices -f\n  \
    bulkhead logs acme/prices --json | jq 'select(.level == \"error\")'")]
pub struct Logs {
    /// Whose it is and what it is called
    #[arg(value_name = "TENANT/SERVER", value_parser = names::place)]
    server: Place,
    /// Go on with what comes
    #[arg(short, long)]
    follow: bool,
    /// So many of the last lines
    #[arg(long, value_name = "N", default_value_t = 100, value_parser = clap::value_parser!(u32).range(0..=10_000))]
    tail: u32,
    /// Print each line as a JSON object: {"time", "call", "level", "text"}
    #[arg(long)]
    json: bool,
}

impl Logs {
    pub fn run(self, connection: &Connection) -> ExitCode {
        with_host(connection, self.json, async |client| self.show(client).await)
    }

    async fn show(&self, client: &Client) -> Result<ExitCode, ClientError> {
        let mut query = vec![("tail", self.tail.to_string())];
        if self.follow {
            query.push(("follow", "true".to_owned()));
        }
        let path = ["tenants", &self.server.tenant, "servers", &self.server.server, "logs"];
        let mut lines = client.lines(client.admin(Method::GET, &path, &query)).await?;
        while let Some(line) = lines.next().await? {
            // Empty ones only show that the host is there.
            if line.is_empty() {
                continue;
            }
            let shown = if self.json { terminal::json(&String::from_utf8_lossy(&line)) } else { text(&line) };
            let reader = report::line(&shown);
            if reader != Reader::There {
                return Ok(reader.exit(ExitCode::SUCCESS));
            }
        }
        Ok(ExitCode::SUCCESS)
    }
}

fn text(line: &[u8]) -> String {
    let line: Value = serde_json::from_slice(line).unwrap_or_default();
    if line["lost"] == true {
        return "(lines were lost: they came too quickly)".to_owned();
    }
    terminal::text(&format!("{}  {:7}  {}", field(&line, "time"), field(&line, "level"), field(&line, "text")))
}
