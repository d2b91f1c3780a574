//! The peer: undici in a Node of its own, which takes its turns from here.

use crate::rounds::Turn;
use anyhow::{Context, Result, ensure};
use serde_json::json;
use std::path::Path;
use std::process::Stdio;
use std::time::Duration;
use tokio::io::{AsyncBufReadExt, AsyncWriteExt, BufReader, Lines};
use tokio::process::{Child, ChildStdin, ChildStdout, Command};

/// Beyond its turn, for a Node that starts.
const PATIENCE: Duration = Duration::from_secs(30);

pub struct Node {
    _child: Child,
    input: ChildStdin,
    output: Lines<BufReader<ChildStdout>>,
}

impl Node {
    /// It is killed when it is dropped.
    pub fn start(root: &Path, url: &str) -> Result<Node> {
        let mut command = Command::new(root.join("target/v8/node/bin/node"));
        command.arg(root.join("target/bench/egress/undici.mjs")).arg(url).env("NODE_ENV", "production");
        let mut child = command.stdin(Stdio::piped()).stdout(Stdio::piped()).kill_on_drop(true).spawn()?;
        let input = child.stdin.take().context("no standard input")?;
        let output = BufReader::new(child.stdout.take().context("no standard output")?).lines();
        Ok(Node { _child: child, input, output })
    }

    pub async fn turn(&mut self, how: &str, lanes: usize, time: Duration) -> Result<Turn> {
        let turn = json!({ "how": how, "lanes": lanes, "ms": time.as_millis() as u64 });
        self.input.write_all(format!("{turn}\n").as_bytes()).await?;
        let line =
            tokio::time::timeout(time + PATIENCE, self.output.next_line()).await.context("it does not answer")?;
        let turn: Turn = serde_json::from_str(&line?.context("it ended")?)?;
        ensure!(!turn.times_us.is_empty(), "it has asked nothing");
        Ok(turn)
    }
}
