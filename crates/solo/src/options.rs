//! What the person says.

use crate::error::Error;
use std::path::PathBuf;

/// What the command line says.
#[derive(Debug, Clone, Default)]
pub struct Options {
    /// The server's command, as it would be run without a jail.
    pub command: Vec<String>,
    /// Files and folders that the server may read.
    pub ro: Vec<PathBuf>,
    /// Files and folders that it may change, too.
    pub rw: Vec<PathBuf>,
    /// Let it change `.git` in what it may change, but for its settings and hooks.
    pub commits: bool,
    /// Let it change all that programs outside run or obey, such as `.git/hooks` or `.vscode`.
    pub repo_settings: bool,
    /// Let it make sockets with paths, which lead to programs outside where a folder holds one of theirs.
    pub unix_sockets: bool,
    /// What it may reach: hosts or base URLs.
    pub allow: Vec<String>,
    /// Ports of hosts, as `HOST:PORT`, for what does not go through a proxy.
    pub tcp: Vec<String>,
    /// `NAME`, to hand a variable on, or `NAME=VALUE`.
    pub env: Vec<String>,
    pub limits: Limits,
    /// Do not look for a profile of a known server.
    pub no_profile: bool,
    /// No network, not even for installing.
    pub offline: bool,
    /// Let the package run its install scripts, in the jail of the installer.
    pub scripts: bool,
    /// Install the package anew, though it is there.
    pub refresh: bool,
    /// What runs a package, where the command names nothing.
    pub interpreter: Option<String>,
    /// Say on stderr what the jail is before starting.
    pub explain: bool,
}

/// How much the server and all that it starts may use.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Limits {
    pub memory_mb: u64,
    /// 100 is one core.
    pub cpu_percent: u32,
    /// Processes and threads.
    pub processes: u64,
    /// Room in `/tmp`, and the same in the empty home.
    pub tmp_mb: u64,
}

impl Default for Limits {
    fn default() -> Limits {
        Limits { memory_mb: 512, cpu_percent: 100, processes: 100, tmp_mb: 64 }
    }
}

impl Limits {
    pub(crate) fn check(&self) -> Result<(), Error> {
        let all = [
            ("memory", self.memory_mb),
            ("cpu", self.cpu_percent.into()),
            ("processes", self.processes),
            ("tmp", self.tmp_mb),
        ];
        all.iter().find(|(_, value)| *value == 0).map_or(Ok(()), |(name, _)| Err(Error::Limit(name)))
    }
}
