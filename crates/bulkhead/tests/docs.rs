//! Runs docs/authoring.md: its files are written, its commands are run, and what they print is what the page says.
//! Numbers may differ, and a line `…` stands for any lines.

mod support;

use std::process::Command;
use support::{Dir, PROGRAM, root, without_figures};

const PAGE: &str = include_str!("../../../docs/authoring.md");

/// The bodies of the fenced blocks in this language.
fn blocks(language: &str) -> Vec<&'static str> {
    let fence = format!("\n```{language}\n");
    PAGE.split(&fence).skip(1).map(|rest| rest.split("\n```").next().unwrap_or(rest)).collect()
}

/// `$ command` and what it prints, one after the other.
fn commands(block: &str) -> Vec<(&str, Vec<&str>)> {
    let mut found: Vec<(&str, Vec<&str>)> = Vec::new();
    for line in block.lines() {
        match (line.strip_prefix("$ "), found.last_mut()) {
            (Some(command), _) => found.push((command, Vec::new())),
            (None, Some((_, printed))) => printed.push(line),
            (None, None) => panic!("`{line}` comes before any command"),
        }
    }
    found
}

fn matches(expected: &[&str], printed: &[&str]) -> bool {
    match expected.split_first() {
        None => printed.is_empty(),
        Some((line, rest)) if line.trim() == "…" => (0..=printed.len()).any(|skip| matches(rest, &printed[skip..])),
        Some((line, rest)) => {
            printed.first().is_some_and(|first| without_figures(first) == without_figures(line))
                && matches(rest, &printed[1..])
        }
    }
}

#[test]
fn every_command_prints_what_the_page_says() {
    support::beside("bulkhead-v8");
    support::beside("libisolate_worker.so");
    let dir = Dir::new();
    std::os::unix::fs::symlink(root().join("examples"), dir.path("examples")).unwrap();
    for source in blocks("js") {
        let name = source.lines().next().and_then(|line| line.strip_prefix("// "));
        dir.file(name.unwrap_or_else(|| panic!("a file without a name:\n{source}")), source);
    }
    let folder = std::path::Path::new(PROGRAM).parent().unwrap();
    let path = format!("{}:{}", folder.display(), std::env::var("PATH").unwrap_or_default());
    let mut ran = 0;
    for (command, expected) in blocks("console").into_iter().flat_map(commands) {
        let output = Command::new("timeout")
            .args(["60", "sh", "-c", &format!("{{ {command}; }} 2>&1")])
            .current_dir(dir.path(""))
            .env("PATH", &path)
            .env_remove("BULKHEAD_V8")
            .env_remove("BULKHEAD_WORKER")
            .output()
            .unwrap();
        let printed = String::from_utf8(output.stdout).unwrap();
        let lines: Vec<_> = printed.lines().collect();
        assert!(
            matches(&expected, &lines),
            "$ {command}\n--- the page\n{}\n--- printed\n{printed}",
            expected.join("\n")
        );
        ran += 1;
    }
    assert!(ran >= 8, "only {ran} commands were found on the page");
}
