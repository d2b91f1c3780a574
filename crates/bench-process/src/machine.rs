//! What a result was measured on.

use serde::Serialize;
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
    pub bubblewrap: String,
    pub server_everything: String,
    pub date: String,
}

impl Machine {
    pub fn look(root: &Path) -> Machine {
        let memory_kb = after(&read("/proc/meminfo"), "MemTotal").trim_end_matches(" kB").parse::<u64>().unwrap_or(0);
        let package: serde_json::Value =
            serde_json::from_str(&read(root.join("bench/process/package.json"))).unwrap_or_default();
        let version = |program: &str| {
            let said = said(Command::new(program).arg("--version").env("PATH", "/usr/local/bin:/usr/bin:/bin"));
            said.rsplit(' ').next().unwrap_or_default().to_owned()
        };
        Machine {
            cpu: after(&read("/proc/cpuinfo"), "model name"),
            cores: std::thread::available_parallelism().map_or(0, usize::from),
            kernel: read("/proc/sys/kernel/osrelease").trim().to_owned(),
            memory_gb: (memory_kb + (1 << 19)) >> 20,
            load_1m: read("/proc/loadavg").split(' ').next().and_then(|load| load.parse().ok()).unwrap_or(0.0),
            node: version("node"),
            python: version("python3"),
            bubblewrap: version("bwrap"),
            server_everything: package["dependencies"]["@modelcontextprotocol/server-everything"]
                .as_str()
                .unwrap_or_default()
                .to_owned(),
            date: said(Command::new("date").args(["-u", "+%F"])),
        }
    }

    pub fn line(&self) -> String {
        let Machine { cpu, cores, memory_gb, kernel, load_1m, node, python, bubblewrap, server_everything, date } =
            self;
        format!(
            "{cpu}, {cores} cores, {memory_gb} GB, Linux {kernel}, load {load_1m} at the start; Node {node}, \
             Python {python}, bubblewrap {bubblewrap}, server-everything {server_everything}; {date}."
        )
    }
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
