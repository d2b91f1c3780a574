//! How this host runs programs.

use std::collections::BTreeMap;
use std::path::PathBuf;
use std::time::Duration;

/// What holds for all programs of a wall, beside what each one's permit says.
#[derive(Clone, Debug)]
pub struct ProcessSettings {
    /// Folders of the host with more programs, beside `/usr`: each is seen inside at its own path, read-only, and the
    /// `bin` in it is searched for programs.
    pub toolchains: Vec<PathBuf>,
    /// Whether programs are put into control groups where this host has them. Without, the host measures and kills.
    pub groups: bool,
    /// What programs with a network find it by. Without one, none of those starts.
    pub network: Option<Network>,
    /// Memory of all programs together, counted by what each may use. Beyond that none starts.
    pub memory_mb: u64,
    /// Memory of all programs together that are started ahead of need.
    pub warm_mb: u64,
    /// Programs of one deployment that are started ahead of need, at most.
    pub warm: usize,
    /// A program that has waited so long is replaced.
    pub warm_age: Duration,
    /// When nobody has wanted one for so long, none waits any more.
    pub warm_idle: Duration,
}

/// What a program needs to use the proxy, which is all the network it has.
#[derive(Clone, Debug)]
pub struct Network {
    /// Where the proxy is, on the program's own loopback.
    pub port: u16,
    /// What tells programs of it. A deployment's own variables are stronger.
    pub variables: BTreeMap<String, String>,
    /// Small files that the variables name, each with its path inside.
    pub files: Vec<(PathBuf, Vec<u8>)>,
}

impl Default for ProcessSettings {
    fn default() -> ProcessSettings {
        ProcessSettings {
            toolchains: Vec::new(),
            groups: true,
            network: None,
            memory_mb: jail::limits::memory_for_guests_mb(),
            warm_mb: 1024,
            warm: 8,
            warm_age: Duration::from_secs(600),
            warm_idle: Duration::from_secs(300),
        }
    }
}
