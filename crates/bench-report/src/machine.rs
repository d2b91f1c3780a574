//! What a result was measured on.

use serde::Serialize;
use serde_json::Value;
use std::path::Path;
use std::process::Command;

#[derive(Serialize)]
pub struct Machine {
    pub cpu: String,
    pub cores: usize,
    pub kernel: String,
    pub memory_gb: u64,
    pub load_1m: f64,
    /// Names and versions of what was measured beside.
    pub peers: Vec<(String, String)>,
    pub date: String,
}

impl Machine {
    pub fn look(peers: Vec<(String, String)>) -> Machine {
        let memory_kb = after(&read("/proc/meminfo"), "MemTotal").trim_end_matches(" kB").parse::<u64>().unwrap_or(0);
        Machine {
            cpu: after(&read("/proc/cpuinfo"), "model name"),
            cores: std::thread::available_parallelism().map_or(0, usize::from),
            kernel: read("/proc/sys/kernel/osrelease").trim().to_owned(),
            memory_gb: (memory_kb + (1 << 19)) >> 20,
            load_1m: read("/proc/loadavg").split(' ').next().and_then(|load| load.parse().ok()).unwrap_or(0.0),
            peers,
            date: said(Command::new("date").args(["-u", "+%F"])),
        }
    }

    pub fn line(&self) -> String {
        let Machine { cpu, cores, memory_gb, kernel, load_1m, peers, date } = self;
        let peers: Vec<String> = peers.iter().map(|(name, version)| format!("{name} {version}")).collect();
        let peers = if peers.is_empty() { String::new() } else { format!("; {}", peers.join(", ")) };
        format!("{cpu}, {cores} cores, {memory_gb} GB, Linux {kernel}, load {load_1m} at the start{peers}; {date}.")
    }
}

/// What a program prints.
pub fn said(command: &mut Command) -> String {
    let output = command.output().map(|output| output.stdout).unwrap_or_default();
    String::from_utf8_lossy(&output).trim().to_owned()
}

/// The dependencies of a `package.json`, which are pinned.
pub fn pinned_versions(package: &Path) -> Vec<(String, String)> {
    let package: Value = serde_json::from_str(&read(package)).unwrap_or_default();
    let pins = package["dependencies"].as_object().cloned().unwrap_or_default();
    pins.into_iter().map(|(name, version)| (name, version.as_str().unwrap_or_default().to_owned())).collect()
}

/// Of a crate, as the repository's lock has it.
pub fn locked_version(root: &Path, name: &str) -> Option<(String, String)> {
    let lock = read(root.join("Cargo.lock"));
    let rest = lock.split(&format!("name = \"{name}\"\nversion = \"")).nth(1)?;
    Some((name.to_owned(), rest.split('"').next()?.to_owned()))
}

fn read(path: impl AsRef<Path>) -> String {
    std::fs::read_to_string(path).unwrap_or_default()
}

fn after(text: &str, key: &str) -> String {
    let line = text.lines().find_map(|line| line.strip_prefix(key)?.trim_start().strip_prefix(':'));
    line.unwrap_or_default().trim().to_owned()
}
