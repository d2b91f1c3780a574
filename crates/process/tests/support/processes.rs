//! A look at the process tree from outside.

use std::collections::HashMap;

/// Parent and state of every process that can be seen.
pub fn processes() -> HashMap<u32, (u32, char)> {
    let mut all = HashMap::new();
    for entry in std::fs::read_dir("/proc").unwrap().flatten() {
        let Some(pid) = entry.file_name().to_str().and_then(|name| name.parse::<u32>().ok()) else { continue };
        let Ok(stat) = std::fs::read_to_string(entry.path().join("stat")) else { continue };
        let mut fields = stat.rsplit_once(')').unwrap().1.split_whitespace();
        let state = fields.next().and_then(|field| field.chars().next()).unwrap();
        let parent = fields.next().and_then(|field| field.parse().ok()).unwrap();
        all.insert(pid, (parent, state));
    }
    all
}

/// Living processes below `root`, with their depth: 1 waits outside of a jail, 2 is the first inside, 3 is the program.
pub fn below(root: u32) -> Vec<(u32, usize)> {
    let all = processes();
    let depth = |mut pid: u32| {
        let mut depth = 0;
        while let Some((parent, _)) = all.get(&pid) {
            if pid == root {
                return Some(depth);
            }
            pid = *parent;
            depth += 1;
        }
        None
    };
    let living = all.iter().filter(|(_, (_, state))| *state != 'Z');
    living.filter_map(|(pid, _)| depth(*pid).filter(|d| *d > 0).map(|depth| (*pid, depth))).collect()
}
