#![forbid(unsafe_code)]
//! What all benchmarks do alike: the machine they ran on, tables, promises, and their parts of docs/benchmarks.md.

mod machine;
mod table;

pub use machine::{Machine, locked_version, pinned_versions, said};
pub use table::Table;

use anyhow::{Context, Result, ensure};
use serde::Serialize;
use std::path::{Path, PathBuf};
use std::process::{Command, ExitCode};

/// A ratio or a difference within one run; absolute times say more about the machine than about the code.
#[derive(Serialize)]
pub struct Promise {
    pub text: String,
    pub value: f64,
    pub kept: bool,
}

impl Promise {
    pub fn line(&self) -> String {
        format!("{}: {} {}", self.text, self.value, if self.kept { "ok" } else { "MISSED" })
    }
}

/// As a list of a document.
pub fn listed(promises: &[Promise]) -> String {
    promises.iter().map(|promise| format!("- {}\n", promise.line())).collect()
}

pub fn print(promises: &[Promise]) {
    for promise in promises {
        println!("promise: {}", promise.line());
    }
}

pub fn all_kept(promises: &[Promise]) -> bool {
    promises.iter().all(|promise| promise.kept)
}

pub fn rounded(value: f64, digits: i32) -> f64 {
    let scale = 10f64.powi(digits);
    (value * scale).round() / scale
}

/// How a program ends that says whether every promise was kept.
pub fn ended(kept: Result<bool>) -> ExitCode {
    match kept {
        Ok(true) => ExitCode::SUCCESS,
        Ok(false) => ExitCode::from(1),
        Err(error) => {
            eprintln!("error: {error}");
            error.chain().skip(1).for_each(|cause| eprintln!("caused by: {cause}"));
            ExitCode::from(2)
        }
    }
}

/// The repository of this program, which is in its `target/release`.
pub fn root() -> Result<PathBuf> {
    let program = std::env::current_exe()?;
    let root = program.ancestors().nth(3).filter(|root| root.join("bench").is_dir());
    root.map(Path::to_owned).context("this program must stay in target/release of its repository")
}

/// The same, with the peers made ready by a script of `bench`: pinned, installed once.
pub fn prepare(script: &str) -> Result<PathBuf> {
    let root = root()?;
    std::fs::create_dir_all(root.join("target/bench"))?;
    let script = root.join("bench").join(script);
    let status = Command::new(&script).status().with_context(|| format!("{}", script.display()))?;
    ensure!(status.success(), "the peers could not be made ready (see above)");
    Ok(root)
}

pub fn write_json(path: &Path, report: &impl Serialize) -> Result<()> {
    std::fs::write(path, serde_json::to_string_pretty(report)? + "\n").with_context(|| format!("{}", path.display()))
}

/// The part of a document between `<!-- NAME:begin -->` and `<!-- NAME:end -->` is made by a program.
pub fn replace_marked(path: &Path, name: &str, text: &str) -> Result<()> {
    let (begin, end) = (format!("<!-- {name}:begin -->\n"), format!("<!-- {name}:end -->"));
    let document = std::fs::read_to_string(path).with_context(|| format!("{}", path.display()))?;
    let parts = document.split_once(&begin).and_then(|(head, rest)| Some((head, rest.split_once(&end)?.1)));
    let lost = || format!("{} has lost its {name}:begin and {name}:end marks", path.display());
    let (head, tail) = parts.with_context(lost)?;
    std::fs::write(path, format!("{head}{begin}{text}{end}{tail}")).with_context(|| format!("{}", path.display()))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn only_the_marked_part_of_a_document_changes() {
        let path = std::env::temp_dir().join(format!("bench-report-{}.md", std::process::id()));
        std::fs::write(&path, "a\n<!-- x:begin -->\nold\n<!-- x:end -->\nb\n").unwrap();
        replace_marked(&path, "x", "new\n").unwrap();
        let text = std::fs::read_to_string(&path).unwrap();
        let lost = replace_marked(&path, "y", "new\n");
        std::fs::remove_file(&path).unwrap();
        assert_eq!(text, "a\n<!-- x:begin -->\nnew\n<!-- x:end -->\nb\n");
        assert!(lost.is_err());
    }
}
