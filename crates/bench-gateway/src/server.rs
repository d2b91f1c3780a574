//! A server that the benchmark starts and, whatever happens, stops again.

use crate::wire::{Connection, Reply};
use anyhow::{Context, Result, bail, ensure};
use std::net::{Ipv4Addr, SocketAddr};
use std::process::Stdio;
use std::time::{Duration, Instant};
use tokio::io::{AsyncBufReadExt, BufReader};
use tokio::process::{Child, Command};

const START: Duration = Duration::from_secs(60);
const STOP: Duration = Duration::from_secs(15);

pub struct Server {
    child: Child,
    pub pid: u32,
    pub address: SocketAddr,
}

impl Server {
    /// A program that chooses a port itself and prints it.
    pub async fn start(command: Command) -> Result<Server> {
        let mut server = Server::spawn(command, Stdio::piped(), 0)?;
        let stdout = server.child.stdout.take().context("no standard output")?;
        let mut line = String::new();
        tokio::time::timeout(START, BufReader::new(stdout).read_line(&mut line))
            .await
            .context("it does not start")??;
        let port = line.trim().parse().with_context(|| format!("it printed `{}` and no port", line.trim()))?;
        server.address.set_port(port);
        Ok(server)
    }

    /// A program that was told its port and answers 200 at `ready` as soon as it serves.
    pub async fn start_on(command: Command, port: u16, ready: &str) -> Result<Server> {
        let mut server = Server::spawn(command, Stdio::null(), port)?;
        let begin = Instant::now();
        loop {
            if let Some(status) = server.child.try_wait()? {
                bail!("it ended at once: {status}");
            }
            if get(server.address, ready).await.is_ok_and(|status| status == 200) {
                return Ok(server);
            }
            ensure!(begin.elapsed() < START, "it does not answer at `{ready}`");
            tokio::time::sleep(Duration::from_millis(50)).await;
        }
    }

    fn spawn(mut command: Command, stdout: Stdio, port: u16) -> Result<Server> {
        let child = command.stdin(Stdio::null()).stdout(stdout).kill_on_drop(true).spawn();
        let child = child.with_context(|| format!("cannot start `{:?}`", command.as_std().get_program()))?;
        let pid = child.id().context("it ended at once")?;
        Ok(Server { child, pid, address: SocketAddr::from((Ipv4Addr::LOCALHOST, port)) })
    }

    /// Asks it to end, and kills it when it does not.
    pub async fn stop(mut self) {
        // The shell's `kill` is there on every machine, the program is not.
        let ask = Command::new("sh").args(["-c", "kill -TERM \"$0\"", &self.pid.to_string()]).status().await;
        if ask.is_err() || tokio::time::timeout(STOP, self.child.wait()).await.is_err() {
            eprintln!("note: process {} had to be killed", self.pid);
            let _ = self.child.kill().await;
        }
    }
}

async fn get(address: SocketAddr, path: &str) -> Result<u16> {
    Ok(request(address, "GET", path, None, "").await?.status)
}

/// One request on a connection of its own.
pub async fn request(address: SocketAddr, method: &str, path: &str, key: Option<&str>, body: &str) -> Result<Reply> {
    let authorization = key.map(|key| format!("authorization: Bearer {key}\r\n")).unwrap_or_default();
    let request = format!(
        "{method} {path} HTTP/1.1\r\nhost: {address}\r\nconnection: close\r\n{authorization}\
         content-type: application/json\r\ncontent-length: {}\r\n\r\n{body}",
        body.len()
    );
    let mut reply = Reply::default();
    Connection::open(address).await?.exchange(request.as_bytes(), &mut reply).await?;
    Ok(reply)
}

/// A port that was free a moment ago.
pub fn free_port() -> Result<u16> {
    Ok(std::net::TcpListener::bind((Ipv4Addr::LOCALHOST, 0))?.local_addr()?.port())
}
