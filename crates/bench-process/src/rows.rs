//! What is measured.

use anyhow::{Result, ensure};
use bench_process::server::Server;

/// How a server is run.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Way {
    Bare,
    Bubblewrap,
    Npx,
    Jailed,
}

#[derive(Clone, Copy)]
pub struct Row {
    pub name: &'static str,
    pub server: Server,
    pub way: Way,
    pub note: &'static str,
}

const fn row(name: &'static str, server: Server, way: Way, note: &'static str) -> Row {
    Row { name, server, way, note }
}

/// The bare one of a server is what its others are held against.
const ROWS: [Row; 9] = [
    row("node/bare", Server::Node, Way::Bare, "a process with all rights of the user"),
    row("node/bwrap", Server::Node, Way::Bubblewrap, "namespaces and mounts; no limits, no filter"),
    row("node/bulkhead", Server::Node, Way::Jailed, "the wall, through its pool"),
    row("python/bare", Server::Python, Way::Bare, "the same in Python"),
    row("python/bwrap", Server::Python, Way::Bubblewrap, ""),
    row("python/bulkhead", Server::Python, Way::Jailed, ""),
    row("everything/npx", Server::Everything, Way::Npx, "`npx -y @modelcontextprotocol/server-everything`, installed"),
    row("everything/bare", Server::Everything, Way::Bare, "its program started by `node`"),
    row("everything/bulkhead", Server::Everything, Way::Jailed, "the same behind the wall"),
];

/// Those of these names, or all.
pub fn chosen(names: &[String]) -> Result<Vec<Row>> {
    for name in names {
        ensure!(ROWS.iter().any(|row| row.name == name), "there is no row `{name}`");
    }
    Ok(ROWS.into_iter().filter(|row| names.is_empty() || names.iter().any(|name| name == row.name)).collect())
}

/// The row that others of its server are held against.
pub fn bare(rows: &[Row], server: Server) -> Option<usize> {
    rows.iter().position(|row| row.server == server && row.way == Way::Bare)
}
