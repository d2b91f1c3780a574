//! A look at processes and their memory from outside.

use std::collections::HashMap;
use std::time::{Duration, Instant};

/// Nothing takes longer to go than this.
const PATIENCE: Duration = Duration::from_secs(30);

/// Where a jail's own processes are, and from where on it is the program's.
pub const OUTER: usize = 1;
pub const INIT: usize = 2;
pub const PROGRAM: usize = 3;

/// A living process below another one.
#[derive(Clone, Copy, Debug)]
pub struct Process {
    pub pid: u32,
    /// 1 for a child.
    pub depth: usize,
}

/// Everything that lives below this process.
pub fn below() -> Vec<Process> {
    let mut children: HashMap<u32, Vec<u32>> = HashMap::new();
    for entry in std::fs::read_dir("/proc").into_iter().flatten().flatten() {
        let Some(pid) = entry.file_name().to_str().and_then(|name| name.parse::<u32>().ok()) else { continue };
        let Ok(stat) = std::fs::read_to_string(entry.path().join("stat")) else { continue };
        // The name in parentheses may hold anything; the fields start after the last one.
        let Some(fields) = stat.rsplit_once(')').map(|(_, rest)| rest) else { continue };
        let mut fields = fields.split_whitespace();
        let dead = fields.next() == Some("Z");
        if let Some(parent) = fields.next().and_then(|field| field.parse().ok()).filter(|_| !dead) {
            children.entry(parent).or_default().push(pid);
        }
    }
    let mut found = Vec::new();
    let mut queue = vec![Process { pid: std::process::id(), depth: 0 }];
    while let Some(above) = queue.pop() {
        let next = children.remove(&above.pid).unwrap_or_default();
        let next = next.into_iter().map(|pid| Process { pid, depth: above.depth + 1 });
        let start = found.len();
        found.extend(next);
        queue.extend(&found[start..]);
    }
    found
}

/// Waits until nothing lives below this process any more; how many do otherwise.
pub async fn until_none() -> usize {
    let deadline = Instant::now() + PATIENCE;
    loop {
        let left = below().len();
        if left == 0 || Instant::now() > deadline {
            return left;
        }
        tokio::time::sleep(Duration::from_millis(5)).await;
    }
}

/// Resident memory of a process in KiB, with what several share divided among them where that may be read (as root).
pub fn proportional_kb(pid: u32) -> Option<u64> {
    rollup(pid, &["Pss:"]).or_else(|| resident_kb(pid))
}

/// Memory of this process that nobody else has, in KiB.
pub fn own_kb() -> u64 {
    rollup(std::process::id(), &["Private_Clean:", "Private_Dirty:"]).unwrap_or(0)
}

/// Resident memory of a process in KiB.
pub fn resident_kb(pid: u32) -> Option<u64> {
    field_kb(&std::fs::read_to_string(format!("/proc/{pid}/status")).ok()?, "VmRSS:")
}

/// What the kernel uses for itself on behalf of everybody, in KiB.
pub fn kernel_kb() -> u64 {
    let text = std::fs::read_to_string("/proc/meminfo").unwrap_or_default();
    let fields = ["SUnreclaim:", "KernelStack:", "PageTables:", "Percpu:"];
    fields.iter().filter_map(|field| field_kb(&text, field)).sum()
}

fn rollup(pid: u32, fields: &[&str]) -> Option<u64> {
    let text = std::fs::read_to_string(format!("/proc/{pid}/smaps_rollup")).ok()?;
    fields.iter().map(|field| field_kb(&text, field)).sum()
}

fn field_kb(text: &str, field: &str) -> Option<u64> {
    let line = text.lines().find_map(|line| line.strip_prefix(field))?;
    line.trim().trim_end_matches(" kB").parse().ok()
}
