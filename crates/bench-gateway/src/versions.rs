//! What the peers are, as pinned.

use bench_report::{locked_version, pinned_versions, said};
use std::path::Path;
use std::process::Command;

/// Packages that say more than their names.
const PYTHON: [&str; 3] = ["fastmcp", "uvicorn", "uvloop"];

pub fn peers(root: &Path) -> Vec<(String, String)> {
    let version = |name: &str, program: &str| {
        let said = said(Command::new(root.join(program)).arg("--version"));
        (name.to_owned(), said.rsplit(' ').next().unwrap_or_default().to_owned())
    };
    let mut peers =
        vec![version("Node", "target/v8/node/bin/node"), version("Python", "target/bench/gateway/venv/bin/python")];
    peers.extend(pinned_versions(&root.join("bench/gateway/package.json")));
    let requirements = std::fs::read_to_string(root.join("bench/gateway/requirements.txt")).unwrap_or_default();
    let pins = requirements.lines().filter_map(|line| line.split_once("=="));
    peers.extend(
        pins.filter(|(name, _)| PYTHON.contains(name)).map(|(name, version)| (name.to_owned(), version.to_owned())),
    );
    peers.extend(locked_version(root, "rmcp"));
    peers
}
