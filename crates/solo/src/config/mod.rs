//! Client configurations: puts `bulkhead run … --` before the commands of their servers, and takes it out again.
//!
//! The text is changed where it has to be and nowhere else. What is no plain JSON (comments, commas at the end) is refused.

mod edit;
mod span;

use crate::error::Error;
use edit::Edit;
use similar::TextDiff;
use span::{Object, parse};
use std::collections::BTreeSet;
use std::fs::{self, OpenOptions};
use std::io::Write;
use std::os::unix::fs::OpenOptionsExt;
use std::path::{Path, PathBuf};

/// Nobody's configuration is longer.
const LONGEST: u64 = 16 << 20;

/// Former texts that are kept beside a configuration.
const MOST_BACKUPS: usize = 99;

/// How servers are wrapped.
#[derive(Debug, Clone, Default)]
pub struct Wrap {
    /// The program, as the client will start it.
    pub program: String,
    /// Flags for `run`, such as `--ro` and a folder.
    pub flags: Vec<String>,
    /// Only these servers; empty: all of them.
    pub only: BTreeSet<String>,
}

/// A configuration as it would become.
#[derive(Debug, Clone)]
pub struct Change {
    /// The file itself, where links lead to it.
    pub path: PathBuf,
    pub before: String,
    pub after: String,
    /// Servers whose command changes.
    pub changed: Vec<String>,
    /// Servers that stay as they are, and why.
    pub left: Vec<(String, &'static str)>,
}

/// The clients that are known by name.
pub const CLIENTS: [(&str, &str); 3] = [
    ("claude-desktop", ".config/Claude/claude_desktop_config.json"),
    ("cursor", ".cursor/mcp.json"),
    ("vscode", ".config/Code/User/mcp.json"),
];

/// Where a client has its configuration.
pub fn path_of(client: &str, home: &Path) -> Option<PathBuf> {
    CLIENTS.iter().find(|(name, _)| *name == client).map(|(_, path)| home.join(path))
}

/// What wrapping would change. Nothing is written.
pub fn write_config(path: &Path, wrap: &Wrap) -> Result<Change, Error> {
    change(path, |server| edit::wrap(server, wrap), &wrap.only)
}

/// What taking it out again would change. Nothing is written.
pub fn undo_config(path: &Path) -> Result<Change, Error> {
    change(path, edit::unwrap, &BTreeSet::new())
}

impl Change {
    /// For the person to look at.
    pub fn diff(&self) -> String {
        let name = self.path.display().to_string();
        TextDiff::from_lines(&self.before, &self.after).unified_diff().header(&name, &name).to_string()
    }

    /// Writes it, if the file is still as it was: whole or not at all. The former text stays beside it; returns where.
    pub fn apply(&self) -> Result<PathBuf, Error> {
        let beside = |end: &str| {
            let mut name = self.path.file_name().unwrap_or_default().to_owned();
            name.push(end);
            self.path.with_file_name(name)
        };
        if read(&self.path)? != self.before {
            return Err(Error::Changed(self.path.clone()));
        }
        // An earlier one is kept: it may be the last text without a jail in it.
        let first = beside(".before-bulkhead");
        let more = (2..=MOST_BACKUPS).map(|number| beside(&format!(".before-bulkhead.{number}")));
        let free = |path: &PathBuf| !path.exists() || read(path).is_ok_and(|text| text == self.before);
        let backup = [first.clone()].into_iter().chain(more).find(free).ok_or(Error::Backups(first))?;
        self.put(&backup, &beside(".bulkhead-backup"), &self.before)?;
        self.put(&self.path, &beside(".bulkhead-new"), &self.after)?;
        Ok(backup)
    }

    fn put(&self, path: &Path, stage: &Path, text: &str) -> Result<(), Error> {
        let permissions = fs::metadata(&self.path).map_err(Error::path(&self.path))?.permissions();
        let _ = fs::remove_file(stage);
        let written = OpenOptions::new().write(true).create_new(true).mode(0o600).open(stage).and_then(|mut file| {
            file.set_permissions(permissions)?;
            file.write_all(text.as_bytes())?;
            file.sync_all()
        });
        written.and_then(|()| fs::rename(stage, path)).map_err(|error| {
            let _ = fs::remove_file(stage);
            Error::Path { path: path.to_owned(), error }
        })
    }
}

fn read(path: &Path) -> Result<String, Error> {
    let length = fs::metadata(path).map_err(Error::path(path))?.len();
    if length > LONGEST {
        return Err(Error::Json { path: path.to_owned(), why: format!("it has more than {LONGEST} bytes") });
    }
    fs::read_to_string(path).map_err(Error::path(path))
}

/// What is to become of one server.
type Decide<'a> = &'a dyn Fn(&Object) -> Result<Vec<Edit>, &'static str>;

fn change(
    path: &Path,
    decide: impl Fn(&Object) -> Result<Vec<Edit>, &'static str>,
    only: &BTreeSet<String>,
) -> Result<Change, Error> {
    let path = fs::canonicalize(path).map_err(Error::path(path))?;
    let before = read(&path)?;
    let (edits, changed, left) = {
        let json = |error: serde_json::Error| Error::Json { path: path.clone(), why: error.to_string() };
        let all = servers(&before).map_err(json)?.ok_or_else(|| Error::NoServers(path.clone()))?;
        sort(&all, &decide, only)
    };
    let after = edit::apply(&before, edits);
    Ok(Change { path, before, after, changed, left })
}

type Sorted = (Vec<Edit>, Vec<String>, Vec<(String, &'static str)>);

fn sort(all: &Object, decide: Decide, only: &BTreeSet<String>) -> Sorted {
    let (mut edits, mut changed, mut left) = (Vec::new(), Vec::new(), Vec::new());
    for (name, server) in &all.members {
        if !only.is_empty() && !only.contains(name) {
            left.push((name.clone(), "it is not among those that are named"));
            continue;
        }
        match server.object().ok_or("it is no object").and_then(|server| decide(&server)) {
            Ok(made) => {
                edits.extend(made);
                changed.push(name.clone());
            }
            Err(why) => left.push((name.clone(), why)),
        }
    }
    (edits, changed, left)
}

/// `mcpServers` (Claude Desktop, Cursor and most others), `servers` (VS Code) or `mcp.servers` (its settings).
fn servers(text: &str) -> Result<Option<Object<'_>>, serde_json::Error> {
    let whole = parse(text)?;
    let Some(whole) = whole.object() else { return Ok(None) };
    let direct = whole.get("mcpServers").or_else(|| whole.get("servers")).and_then(|found| found.object());
    let inner = || whole.get("mcp")?.object()?.get("servers")?.object();
    Ok(direct.or_else(inner))
}

#[cfg(test)]
mod tests;
