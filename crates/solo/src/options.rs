//! What the person says, and where they say it.

use crate::error::Error;
use std::collections::BTreeMap;
use std::path::{Path, PathBuf};

/// What the command line says.
#[derive(Debug, Clone, Default)]
pub struct Options {
    /// The server's command, as it would be run without a jail.
    pub command: Vec<String>,
    /// Files and folders that the server may read.
    pub ro: Vec<PathBuf>,
    /// Files and folders that it may change, too.
    pub rw: Vec<PathBuf>,
    /// What it may reach: hosts or base URLs.
    pub allow: Vec<String>,
    /// `NAME`, to hand a variable on, or `NAME=VALUE`.
    pub env: Vec<String>,
    pub limits: Limits,
    /// Do not look for a profile of a known server.
    pub no_profile: bool,
    /// No network, not even for installing.
    pub offline: bool,
    /// Install the package anew, though it is there.
    pub refresh: bool,
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

/// Where the command is run: what a plan depends on beside the options.
#[derive(Debug, Clone)]
pub struct Surroundings {
    /// The working directory.
    pub folder: PathBuf,
    pub home: PathBuf,
    /// The folders of `PATH`.
    pub path: Vec<PathBuf>,
    pub variables: BTreeMap<String, String>,
    /// Where installed packages are kept.
    pub cache: PathBuf,
}

impl Surroundings {
    /// Of this process.
    pub fn here() -> Result<Surroundings, Error> {
        let folder = std::env::current_dir().map_err(Error::path("."))?;
        let text = |(name, value): (std::ffi::OsString, std::ffi::OsString)| {
            Some((name.into_string().ok()?, value.into_string().ok()?))
        };
        let variables: BTreeMap<String, String> = std::env::vars_os().filter_map(text).collect();
        let named = |name: &str| variables.get(name).map(PathBuf::from).filter(|path| path.is_absolute());
        let unknown = || Error::Unknown { what: "home", why: "HOME names no folder".into() };
        let home = named("HOME").ok_or_else(unknown)?;
        let cache = named("XDG_CACHE_HOME").unwrap_or_else(|| home.join(".cache")).join("bulkhead/packages");
        let path = std::env::split_paths(variables.get("PATH").map_or("", String::as_str));
        let path = path.filter(|folder| folder.is_absolute()).collect();
        Ok(Surroundings { folder, home, path, variables, cache })
    }

    /// Absolute and without `.` and `..`, as it is written: links stay.
    pub(crate) fn absolute(&self, path: &Path) -> PathBuf {
        let path = match path.strip_prefix("~") {
            Ok(rest) => self.home.join(rest),
            Err(_) => self.folder.join(path),
        };
        let mut plain = PathBuf::from("/");
        for part in path.components() {
            match part {
                std::path::Component::ParentDir => {
                    plain.pop();
                }
                std::path::Component::Normal(name) => plain.push(name),
                _ => {}
            }
        }
        plain
    }

    /// Whether this is so much that nobody means it: the home, or something around it.
    pub(crate) fn around_home(&self, folder: &Path) -> bool {
        self.home.starts_with(folder)
    }
}
