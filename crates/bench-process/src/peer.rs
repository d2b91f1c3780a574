//! A server without the wall: started and spoken to as a plain client does.

use crate::rows::Way;
use anyhow::{Context, Result};
use bench_process::server::{FOLDERS, Server};
use serde_json::value::RawValue;
use serde_json::{Value, json};
use std::path::Path;
use std::process::Stdio;
use std::time::Duration;
use tokio::io::{AsyncBufReadExt, AsyncWriteExt, BufReader, Lines};
use tokio::process::{Child, ChildStdin, ChildStdout, Command};

const PATIENCE: Duration = Duration::from_secs(60);

/// A server that was started. Dropped, it is killed.
pub struct Peer {
    server: Server,
    child: Child,
    input: ChildStdin,
    output: Lines<BufReader<ChildStdout>>,
    last: u64,
    /// Whether it has said that one of its lists is another by now.
    changed: bool,
}

#[derive(serde::Deserialize)]
struct Message<'a> {
    id: Option<u64>,
    method: Option<&'a str>,
    #[serde(borrow)]
    result: Option<&'a RawValue>,
}

/// What a server may offer, and where it lists that.
const LISTS: [(&str, &str); 4] = [
    ("tools", "tools/list"),
    ("prompts", "prompts/list"),
    ("resources", "resources/list"),
    ("resources", "resources/templates/list"),
];

impl Peer {
    /// Starts one, and has it say hello and show what it has: the same conversation as behind the wall.
    pub async fn start(way: Way, server: Server, files: &Path) -> Result<Peer> {
        let mut command = command(way, server, files)?;
        command.stdin(Stdio::piped()).stdout(Stdio::piped()).stderr(Stdio::null()).kill_on_drop(true);
        let mut child = command.spawn().context("it cannot be started")?;
        let input = child.stdin.take().context("no standard input")?;
        let output = BufReader::new(child.stdout.take().context("no standard output")?).lines();
        let mut peer = Peer { server, child, input, output, last: 0, changed: false };
        let hello = json!({
            "protocolVersion": "2025-11-25",
            "capabilities": {
                "roots": {},
                "sampling": { "tools": {}, "context": {} },
                "elicitation": { "form": {}, "url": {} },
            },
            "clientInfo": { "name": "bench", "version": "1" },
        });
        let hello = peer.ask("initialize", &hello.to_string()).await?;
        peer.send(&json!({ "jsonrpc": "2.0", "method": "notifications/initialized" }).to_string()).await?;
        let offered = serde_json::from_str::<Value>(&hello)?["capabilities"].take();
        peer.changed = true;
        while std::mem::take(&mut peer.changed) {
            peer.list(&offered).await?;
        }
        Ok(peer)
    }

    pub async fn call(&mut self) -> Result<()> {
        let (tool, arguments) = self.server.call();
        let result = self.ask("tools/call", &format!(r#"{{"name":"{tool}","arguments":{arguments}}}"#)).await?;
        self.server.check(result.as_bytes())
    }

    /// Some end only with their input, and a wrapper that is killed may leave what it has wrapped for a moment.
    pub async fn end(self) -> Result<()> {
        let Peer { mut child, input, .. } = self;
        drop(input);
        if tokio::time::timeout(Duration::from_millis(200), child.wait()).await.is_err() {
            child.kill().await?;
        }
        Ok(())
    }

    /// Asks for all lists at once.
    async fn list(&mut self, offered: &Value) -> Result<()> {
        let mut asked = Vec::new();
        for (_, method) in LISTS.iter().filter(|(capability, _)| offered[capability].is_object()) {
            asked.push(self.request(method, "{}").await?);
        }
        while !asked.is_empty() {
            let (id, _) = self.answer().await?;
            asked.retain(|other| *other != id);
        }
        Ok(())
    }

    async fn ask(&mut self, method: &str, params: &str) -> Result<String> {
        let asked = self.request(method, params).await?;
        loop {
            let (id, result) = self.answer().await?;
            if id == asked {
                return Ok(result);
            }
        }
    }

    async fn request(&mut self, method: &str, params: &str) -> Result<u64> {
        self.last += 1;
        let id = self.last;
        self.send(&format!(r#"{{"jsonrpc":"2.0","id":{id},"method":"{method}","params":{params}}}"#)).await?;
        Ok(id)
    }

    /// The next answer. What it asks is not answered.
    async fn answer(&mut self) -> Result<(u64, String)> {
        loop {
            let line = tokio::time::timeout(PATIENCE, self.output.next_line()).await.context("it does not answer")?;
            let line = line?.context("it has ended")?;
            let message: Message = serde_json::from_str(&line)?;
            match (message.id, message.method) {
                (Some(id), None) => {
                    let result = message.result.with_context(|| format!("it refuses: {line}"))?;
                    return Ok((id, result.get().to_owned()));
                }
                (_, Some(method)) => self.changed |= method.ends_with("/list_changed"),
                (None, None) => {}
            }
        }
    }

    async fn send(&mut self, line: &str) -> Result<()> {
        self.input.write_all(format!("{line}\n").as_bytes()).await.context("it reads no more")
    }
}

fn command(way: Way, server: Server, files: &Path) -> Result<Command> {
    let mut command = match way {
        Way::Bare => {
            let [interpreter, file] = server.command(files).try_into().ok().context("a command of two words")?;
            let mut command = Command::new(find(&interpreter)?);
            command.arg(file);
            command
        }
        Way::Bubblewrap => bubblewrap(server, files)?,
        Way::Npx => {
            let mut command = Command::new(find("npx")?);
            command.args(["-y", "@modelcontextprotocol/server-everything"]);
            command
        }
        Way::Jailed => anyhow::bail!("that is the wall's"),
    };
    command.current_dir(files).env_clear().env("PATH", FOLDERS.join(":")).env("LANG", "C.UTF-8");
    command.env("HOME", std::env::var_os("HOME").unwrap_or_else(|| "/tmp".into()));
    Ok(command)
}

fn find(program: &str) -> Result<String> {
    let mut places = FOLDERS.iter().map(|folder| format!("{folder}/{program}"));
    places.find(|path| Path::new(path).exists()).with_context(|| format!("there is no `{program}` in {FOLDERS:?}"))
}

/// As close to our jail as its options come. It has no control group, no landlock, and no filter of system calls unless
/// somebody writes one for it; of `/proc` it shows all.
fn bubblewrap(server: Server, files: &Path) -> Result<Command> {
    let mut command = Command::new(find("bwrap")?);
    command.args(["--unshare-all", "--unshare-user", "--die-with-parent", "--new-session", "--clearenv"]);
    command.args(["--uid", "1000", "--gid", "1000", "--hostname", "compartment", "--cap-drop", "ALL"]);
    command.args(["--ro-bind", "/usr", "/usr"]);
    for root in ["/bin", "/sbin", "/lib", "/lib32", "/lib64", "/libx32"] {
        match std::fs::read_link(root) {
            Ok(to) => command.arg("--symlink").arg(to).arg(root),
            Err(_) => command.args(["--ro-bind-try", root, root]),
        };
    }
    for settings in
        ["/etc/alternatives", "/etc/ld.so.cache", "/etc/localtime", "/etc/ssl/certs", "/etc/ssl/openssl.cnf"]
    {
        command.args(["--ro-bind-try", settings, settings]);
    }
    command.args(["--proc", "/proc", "--dev", "/dev", "--size", "33554432", "--tmpfs", "/tmp"]);
    command.args(["--size", "33554432", "--tmpfs", "/home/user"]);
    command.arg("--ro-bind").arg(files).args(["/app", "--chdir", "/app", "--remount-ro", "/"]);
    let path = FOLDERS.join(":");
    for (name, value) in [("PATH", path.as_str()), ("HOME", "/home/user"), ("LANG", "C.UTF-8"), ("TMPDIR", "/tmp")] {
        command.args(["--setenv", name, value]);
    }
    command.args(server.command(Path::new("/app")));
    Ok(command)
}
