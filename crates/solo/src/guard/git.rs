//! Where git keeps what it obeys: in folders that a `.git` file names, and in files that its settings name.

use std::fs::File;
use std::io::Read;
use std::path::{Path, PathBuf};

/// The longest file of git's that is read.
const LONGEST: u64 = 256 << 10;
/// Files with settings that name each other.
const MOST_FILES: usize = 32;

/// Keys whose value git runs, or reads more settings from.
const RUN: [&str; 23] = [
    "askpass",
    "attributesfile",
    "clean",
    "cmd",
    "command",
    "driver",
    "editor",
    "external",
    "fsmonitor",
    "gitproxy",
    "helper",
    "hookspath",
    "packobjectshook",
    "pager",
    "path",
    "process",
    "program",
    "receivepack",
    "smudge",
    "sshcommand",
    "textconv",
    "uploadpack",
    "vcs",
];

/// Whether a folder is a repository without a working tree, or what a `.git` file leads to.
pub(super) fn is_store(folder: &Path) -> bool {
    let is = |name: &str| folder.join(name).exists();
    is("HEAD") && (is("objects") && is("refs") || is("commondir"))
}

/// The folders that a `.git` file leads to: its own, and the one that it has in common with others.
pub(super) fn stores_of(file: &Path) -> Vec<PathBuf> {
    let Some(place) = read(file).and_then(|text| Some(text.strip_prefix("gitdir:")?.trim().to_owned())) else {
        return Vec::new();
    };
    let own = file.parent().unwrap_or(Path::new("/")).join(place);
    let common = read(&own.join("commondir")).map(|text| own.join(text.trim()));
    [own].into_iter().chain(common).collect()
}

/// What the settings in these folders name that git runs or reads, for a working tree at `top`. It may not exist.
pub(super) fn named_in(stores: &[PathBuf], top: &Path) -> Vec<PathBuf> {
    let mut files: Vec<PathBuf> =
        stores.iter().flat_map(|store| ["config", "config.worktree"].map(|name| store.join(name))).collect();
    let mut named = Vec::new();
    let mut at = 0;
    while let Some(file) = files.get(at).cloned() {
        at += 1;
        let around = file.parent().unwrap_or(Path::new("/")).to_owned();
        for (section, value) in read(&file).map(|text| run_by(&text)).unwrap_or_default() {
            if section.starts_with("include") {
                let more = around.join(&value);
                named.push(more.clone());
                if files.len() < MOST_FILES && !files.contains(&more) {
                    files.push(more);
                }
                continue;
            }
            // A path, or a command with paths in it. Where there is no working tree, git runs it in its own folder.
            let words = value.split_whitespace().map(|word| word.trim_matches(['\'', '!', ';', '(', ')']));
            let words = words.filter(|word| word.contains('/'));
            let words: Vec<&str> = [value.as_str()].into_iter().chain(words).collect();
            for folder in [top].into_iter().chain(stores.iter().map(PathBuf::as_path)) {
                named.extend(words.iter().map(|word| folder.join(word)));
            }
        }
    }
    named.sort();
    named.dedup();
    named
}

/// Sections, and values of those keys in them whose value counts.
fn run_by(text: &str) -> Vec<(String, String)> {
    let text = text.replace("\\\n", "");
    let (mut section, mut found) = (String::new(), Vec::new());
    for line in text.lines().map(str::trim) {
        let mut line = line;
        if let Some((head, rest)) = line.strip_prefix('[').and_then(|line| line.split_once(']')) {
            section = head.trim().to_ascii_lowercase();
            line = rest.trim();
        }
        let Some((key, value)) = line.split_once('=') else { continue };
        let key = key.trim().to_ascii_lowercase();
        if RUN.contains(&key.as_str()) || section.starts_with("alias") {
            let value = value.split([';', '#']).next().unwrap_or_default();
            found.push((section.clone(), value.replace(['"', '\\'], "").trim().to_owned()));
        }
    }
    found.retain(|(_, value)| !value.is_empty());
    found
}

fn read(file: &Path) -> Option<String> {
    let file = File::open(file).ok().filter(|file| file.metadata().is_ok_and(|found| found.is_file()))?;
    let mut bytes = Vec::new();
    file.take(LONGEST).read_to_end(&mut bytes).ok()?;
    Some(String::from_utf8_lossy(&bytes).into_owned())
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn values_that_git_runs() {
        let text = "[core]\n\thooksPath = \"tools/run\" # mine\n\tbare = true\n[include] path = ../more\n\
                    [filter \"x\"]\n\tclean = ./a \\\n %f\n[remote \"o\"]\n\turl = ../other\n[alias]\n\tx = !./b\n";
        let found: Vec<String> =
            run_by(text).into_iter().map(|(section, value)| format!("{section}: {value}")).collect();
        assert_eq!(found, ["core: tools/run", "include: ../more", "filter \"x\": ./a  %f", "alias: !./b"]);
    }
}
