//! CPU time of a process and of everything below it, from `/proc`.

use std::collections::HashMap;
use std::time::Duration;

/// Kernel time as `/proc` tells it is in hundredths of a second on every Linux.
const TICK: Duration = Duration::from_millis(10);

#[derive(Clone, Copy, Debug, Default)]
pub struct Cpu {
    /// Of the process itself.
    pub root: Duration,
    /// Of the process, all below it, and all of those that have ended and been waited for.
    pub tree: Duration,
}

impl Cpu {
    pub fn since(&self, before: &Cpu) -> Cpu {
        Cpu { root: self.root.saturating_sub(before.root), tree: self.tree.saturating_sub(before.tree) }
    }
}

struct Stat {
    parent: u32,
    own: Duration,
    waited_for: Duration,
}

/// `None` when there is no such process.
pub fn of(pid: u32) -> Option<Cpu> {
    let mut stats: HashMap<u32, Stat> = HashMap::new();
    for entry in std::fs::read_dir("/proc").ok()?.flatten() {
        let Some(pid) = entry.file_name().to_str().and_then(|name| name.parse().ok()) else { continue };
        let Ok(text) = std::fs::read_to_string(entry.path().join("stat")) else { continue };
        if let Some(stat) = parse(&text) {
            stats.insert(pid, stat);
        }
    }
    let root = stats.get(&pid)?.own;
    let tree =
        stats.iter().filter(|(found, _)| below(&stats, **found, pid)).map(|(_, stat)| stat.own + stat.waited_for);
    Some(Cpu { root, tree: tree.sum() })
}

fn below(stats: &HashMap<u32, Stat>, mut pid: u32, root: u32) -> bool {
    // The table was not read in one instant, so it may hold a circle.
    for _ in 0..64 {
        if pid == root {
            return true;
        }
        match stats.get(&pid) {
            Some(stat) => pid = stat.parent,
            None => return false,
        }
    }
    false
}

fn parse(text: &str) -> Option<Stat> {
    // The name in parentheses may hold anything; the fields start after the last one.
    let fields: Vec<&str> = text.rsplit_once(')')?.1.split_whitespace().collect();
    let ticks = |index: usize| fields.get(index)?.parse::<u32>().ok();
    let time = |user: usize, system: usize| Some(TICK * (ticks(user)? + ticks(system)?));
    Some(Stat { parent: ticks(1)?, own: time(11, 12)?, waited_for: time(13, 14)? })
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn children_that_have_ended_count() {
        let pid = std::process::id();
        let before = of(pid).unwrap();
        let script = "i=0; while [ $i -lt 300000 ]; do i=$((i+1)); done";
        assert!(std::process::Command::new("sh").args(["-c", script]).status().unwrap().success());
        let used = of(pid).unwrap().since(&before);
        assert!(used.tree - used.root >= TICK, "{used:?}");
        assert!(of(u32::MAX).is_none());
    }
}
