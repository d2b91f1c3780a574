//! What a result was measured on.

use serde::Serialize;
use serde_json::Value;
use std::collections::BTreeMap;
use std::path::Path;
use std::process::Command;

#[derive(Serialize)]
pub struct Machine {
    pub cpu: String,
    pub cores: usize,
    pub kernel: String,
    pub memory_gb: u64,
    pub load_1m: f64,
    pub node: String,
    pub python: String,
    pub packages: BTreeMap<String, String>,
    pub date: String,
}

impl Machine {
    pub fn look(root: &Path) -> Machine {
        let cpuinfo = read("/proc/cpuinfo");
        let memory_kb = after(&read("/proc/meminfo"), "MemTotal").trim_end_matches(" kB").parse::<u64>().unwrap_or(0);
        Machine {
            cpu: after(&cpuinfo, "model name"),
            cores: std::thread::available_parallelism().map_or(0, usize::from),
            kernel: read("/proc/sys/kernel/osrelease").trim().to_owned(),
            memory_gb: (memory_kb + (1 << 19)) >> 20,
            load_1m: read("/proc/loadavg").split(' ').next().and_then(|load| load.parse().ok()).unwrap_or(0.0),
            node: said(Command::new(root.join("target/v8/node/bin/node")).arg("--version")),
            python: said(Command::new(root.join("target/bench/gateway/venv/bin/python")).arg("--version")),
            packages: packages(root),
            date: said(Command::new("date").args(["-u", "+%F"])),
        }
    }
}

/// The peers' versions, as pinned.
fn packages(root: &Path) -> BTreeMap<String, String> {
    let package: Value = serde_json::from_str(&read(root.join("bench/gateway/package.json"))).unwrap_or_default();
    let pins = package["dependencies"].as_object().cloned().unwrap_or_default();
    let mut found: BTreeMap<String, String> =
        pins.into_iter().map(|(name, version)| (name, version.as_str().unwrap_or_default().to_owned())).collect();
    let requirements = read(root.join("bench/gateway/requirements.txt"));
    let wanted = ["fastmcp", "uvicorn", "uvloop"];
    let python =
        requirements.lines().filter_map(|line| line.split_once("==")).filter(|(name, _)| wanted.contains(name));
    found.extend(python.map(|(name, version)| (name.to_owned(), version.to_owned())));
    let lock = read(root.join("Cargo.lock"));
    let rmcp = lock.split("name = \"rmcp\"\nversion = \"").nth(1).and_then(|rest| rest.split('"').next());
    found.extend(rmcp.map(|version| ("rmcp".to_owned(), version.to_owned())));
    found
}

fn read(path: impl AsRef<Path>) -> String {
    std::fs::read_to_string(path).unwrap_or_default()
}

fn after(text: &str, key: &str) -> String {
    let line = text.lines().find_map(|line| line.strip_prefix(key)?.trim_start().strip_prefix(':'));
    line.unwrap_or_default().trim().to_owned()
}

fn said(command: &mut Command) -> String {
    let output = command.output().map(|output| output.stdout).unwrap_or_default();
    String::from_utf8_lossy(&output).trim().to_owned()
}
