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
    pub undici: String,
    pub hyper: String,
    pub date: String,
}

impl Machine {
    pub fn look(root: &Path) -> Machine {
        let memory_kb = after(&read("/proc/meminfo"), "MemTotal").trim_end_matches(" kB").parse::<u64>().unwrap_or(0);
        let package: serde_json::Value =
            serde_json::from_str(&read(root.join("bench/egress/package.json"))).unwrap_or_default();
        let lock = read(root.join("Cargo.lock"));
        let hyper = lock.split("name = \"hyper\"\nversion = \"").nth(1).and_then(|rest| rest.split('"').next());
        Machine {
            cpu: after(&read("/proc/cpuinfo"), "model name"),
            cores: std::thread::available_parallelism().map_or(0, usize::from),
            kernel: read("/proc/sys/kernel/osrelease").trim().to_owned(),
            memory_gb: (memory_kb + (1 << 19)) >> 20,
            load_1m: read("/proc/loadavg").split(' ').next().and_then(|load| load.parse().ok()).unwrap_or(0.0),
            node: said(Command::new(root.join("target/v8/node/bin/node")).arg("--version")),
            undici: package["dependencies"]["undici"].as_str().unwrap_or_default().to_owned(),
            hyper: hyper.unwrap_or_default().to_owned(),
            date: said(Command::new("date").args(["-u", "+%F"])),
        }
    }

    pub fn line(&self) -> String {
        format!(
            "{}, {} cores, {} GB, Linux {}, load {} at the start; Node {}, undici {}, hyper {}; {}.",
            self.cpu,
            self.cores,
            self.memory_gb,
            self.kernel,
            self.load_1m,
            self.node,
            self.undici,
            self.hyper,
            self.date
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
