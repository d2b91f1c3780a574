//! `bulkhead calls`: who called what, and what it took.

use super::names;
use super::table::{self, field};
use super::with_host;
use crate::client::{Client, ClientError, Connection};
use crate::report::{self, Reader};
use crate::terminal;
use reqwest::Method;
use serde::Deserialize;
use serde_json::Value;
use serde_json::value::RawValue;
use std::process::ExitCode;

/// What the host gives at once.
const PAGE: u32 = 1000;

/// Show a tenant's calls from the audit log, newest first. A key with the role `call` sees its own.
#[derive(clap::Args)]
#[command(after_help = "Examples:\n  \
    bulkhead calls acme\n  \
    bulkhead calls acme --server prices --outcome cpu_limit --limit 20\n  \
    bulkhead calls acme -f --json | jq -c '[.name, .outcome, .cpu_us]'")]
pub struct Calls {
    /// The tenant
    #[arg(value_parser = names::tenant)]
    tenant: String,
    /// Only calls of this server
    #[arg(long, value_parser = names::tenant)]
    server: Option<String>,
    /// Only calls that ended like this: `ok`, or the code of a failure
    #[arg(long, value_name = "CODE")]
    outcome: Option<String>,
    /// So many calls at most [default: 50, or the last 10 before those that are followed]
    #[arg(long, value_name = "N", value_parser = clap::value_parser!(u32).range(1..=100_000))]
    limit: Option<u32>,
    /// Go on with what comes, oldest first
    #[arg(short, long)]
    follow: bool,
    /// Print each call as a JSON object on a line of its own
    #[arg(long)]
    json: bool,
}

impl Calls {
    pub fn run(self, connection: &Connection) -> ExitCode {
        with_host(connection, self.json, async |client| match self.follow {
            true => self.follow(client).await,
            false => self.list(client).await,
        })
    }

    fn query(&self) -> Vec<(&'static str, String)> {
        let server = self.server.iter().map(|server| ("server", server.clone()));
        server.chain(self.outcome.iter().map(|outcome| ("outcome", outcome.clone()))).collect()
    }

    async fn list(&self, client: &Client) -> Result<ExitCode, ClientError> {
        #[derive(Deserialize)]
        struct Page {
            calls: Vec<Box<RawValue>>,
            next: Option<String>,
        }
        let mut left = self.limit.unwrap_or(50);
        let mut cursor = None;
        self.heading();
        while left > 0 {
            let mut query = self.query();
            query.push(("limit", left.min(PAGE).to_string()));
            query.extend(cursor.map(|cursor| ("cursor", cursor)));
            let request = client.admin(Method::GET, &["tenants", &self.tenant, "calls"], &query);
            let page: Page = client.read(&client.answer(request).await?)?;
            left = left.saturating_sub(u32::try_from(page.calls.len()).unwrap_or(u32::MAX));
            for call in &page.calls {
                let reader = self.show(call.get().as_bytes());
                if reader != Reader::There {
                    return Ok(reader.exit(ExitCode::SUCCESS));
                }
            }
            cursor = page.next;
            if cursor.is_none() {
                break;
            }
        }
        Ok(ExitCode::SUCCESS)
    }

    async fn follow(&self, client: &Client) -> Result<ExitCode, ClientError> {
        let mut query = self.query();
        query.push(("follow", "true".to_owned()));
        query.extend(self.limit.map(|limit| ("limit", limit.min(PAGE).to_string())));
        let request = client.admin(Method::GET, &["tenants", &self.tenant, "calls"], &query);
        let mut lines = client.lines(request).await?;
        self.heading();
        while let Some(line) = lines.next().await? {
            // Empty ones only show that the host is there.
            if line.is_empty() {
                continue;
            }
            let reader = self.show(&line);
            if reader != Reader::There {
                return Ok(reader.exit(ExitCode::SUCCESS));
            }
        }
        Ok(ExitCode::SUCCESS)
    }

    fn heading(&self) {
        if !self.json {
            let _ = report::line(&row(
                ["time", "server", "what", "outcome", "cpu ms", "ms", "KiB", "caller"].map(str::to_owned)
            ));
        }
    }

    fn show(&self, line: &[u8]) -> Reader {
        if self.json {
            return report::line(&terminal::json(&String::from_utf8_lossy(line)));
        }
        let call: Value = serde_json::from_slice(line).unwrap_or_default();
        if call["lost"] == true {
            return report::line("(calls were lost: they came too quickly)");
        }
        let ms = |key: &str| call[key].as_f64().map_or("-".to_owned(), |us| format!("{:.1}", us / 1000.0));
        let what = match call["method"].as_str() {
            Some("tools/call") | None => field(&call, "name"),
            Some(method) => format!("{method} {}", field(&call, "name")),
        };
        report::line(&row([
            field(&call, "time"),
            field(&call, "server"),
            what,
            field(&call, "outcome"),
            ms("cpu_us"),
            ms("time_us"),
            field(&call, "peak_memory_kb"),
            field(&call, "caller"),
        ]))
    }
}

/// Fixed widths: when rows come one by one, nobody knows the widest.
fn row(cells: [String; 8]) -> String {
    let [time, server, what, outcome, cpu, ms, memory, caller] = cells.map(|text| table::cell(&text));
    format!("{time:24}  {server:16}  {what:24}  {outcome:16}  {cpu:>8}  {ms:>8}  {memory:>8}  {caller}")
}
