//! The servers that are run.

use anyhow::{Result, ensure};
use serde_json::Value;
use std::path::Path;

/// An MCP server over standard input and output.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Server {
    /// `bench/process/server.mjs`.
    Node,
    /// `bench/process/server.py`.
    Python,
    /// The one from npm that shows everything the protocol has.
    Everything,
}

/// Where programs are looked for, inside and outside of a jail.
pub const FOLDERS: [&str; 3] = ["/usr/local/bin", "/usr/bin", "/bin"];

/// Its program in a folder that npm has installed it to.
const EVERYTHING: &str = "node_modules/@modelcontextprotocol/server-everything/dist/index.js";

impl Server {
    /// With its files in this folder.
    pub fn command(self, folder: &Path) -> Vec<String> {
        let (interpreter, file) = match self {
            Server::Node => ("node", "server.mjs"),
            Server::Python => ("python3", "server.py"),
            Server::Everything => ("node", EVERYTHING),
        };
        vec![interpreter.to_owned(), folder.join(file).to_string_lossy().into_owned()]
    }

    /// The tool that is called, and its arguments.
    pub fn call(self) -> (&'static str, &'static str) {
        match self {
            Server::Node | Server::Python => ("double_price", r#"{"price":45}"#),
            Server::Everything => ("echo", r#"{"message":"45"}"#),
        }
    }

    /// A wrong answer would make the numbers mean nothing.
    pub fn check(self, result: &[u8]) -> Result<()> {
        let result: Value = serde_json::from_slice(result)?;
        let right = match self {
            Server::Node | Server::Python => result["structuredContent"]["doublePrice"] == 90,
            Server::Everything => result["content"][0]["text"] == "Echo: 45",
        };
        ensure!(right, "a call went wrong: {result}");
        Ok(())
    }
}
