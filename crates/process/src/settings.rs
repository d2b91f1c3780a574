//! How this host runs programs.

use std::path::PathBuf;
use std::time::Duration;

/// What holds for all programs of a wall, beside what each one's permit says.
#[derive(Clone, Debug)]
pub struct ProcessSettings {
    /// Folders of the host with more programs, beside `/usr`: each is seen inside at its own path, read-only, and the
    /// `bin` in it is searched for programs.
    pub toolchains: Vec<PathBuf>,
    /// CPU of one program with all that it starts, where 100 is a core.
    pub cpu_percent: u32,
    /// Processes and threads of one program.
    pub processes: u64,
    /// What a program may write to `/tmp`, and to its home. Both are memory.
    pub tmp_mb: u64,
    pub home_mb: u64,
    /// Memory of all programs together that are started ahead of need.
    pub warm_mb: u64,
    /// Programs of one deployment that are started ahead of need, at most.
    pub warm: usize,
    /// A program that has waited so long is replaced.
    pub warm_age: Duration,
    /// When nobody has wanted one for so long, none waits any more.
    pub warm_idle: Duration,
}

impl Default for ProcessSettings {
    fn default() -> ProcessSettings {
        ProcessSettings {
            toolchains: Vec::new(),
            cpu_percent: 50,
            processes: 50,
            tmp_mb: 32,
            home_mb: 32,
            warm_mb: 1024,
            warm: 8,
            warm_age: Duration::from_secs(600),
            warm_idle: Duration::from_secs(300),
        }
    }
}
