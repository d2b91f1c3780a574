//! Where a person says what they say.

use crate::error::Error;
use std::collections::BTreeMap;
use std::path::{Path, PathBuf};

/// Files and folders of a home that hold keys, passwords, or settings with some in them.
const PRIVATE: [&str; 22] = [
    ".aws",
    ".azure",
    ".bash_history",
    ".claude",
    ".config",
    ".docker",
    ".git-credentials",
    ".gnupg",
    ".kube",
    ".local/share/keyrings",
    ".mozilla",
    ".netrc",
    ".npmrc",
    ".oci",
    ".password-store",
    ".pgpass",
    ".pypirc",
    ".ssh",
    ".terraform.d",
    ".thunderbird",
    ".vault-token",
    ".zsh_history",
];

/// Where a command is run: what is found, and what it means, depends on it.
#[derive(Debug, Clone)]
pub struct Surroundings {
    /// The working directory.
    pub folder: PathBuf,
    pub home: PathBuf,
    /// The folders of `PATH`.
    pub path: Vec<PathBuf>,
    pub variables: BTreeMap<String, String>,
    /// Where installed packages are kept.
    pub cache: PathBuf,
    /// Files and folders that the person shows by name.
    pub shown: Vec<PathBuf>,
}

impl Surroundings {
    /// Of this process.
    pub fn here() -> Result<Surroundings, Error> {
        let folder = std::env::current_dir().map_err(Error::path("."))?;
        let text = |(name, value): (std::ffi::OsString, std::ffi::OsString)| {
            Some((name.into_string().ok()?, value.into_string().ok()?))
        };
        let variables: BTreeMap<String, String> = std::env::vars_os().filter_map(text).collect();
        let named = |name: &str| variables.get(name).map(PathBuf::from).filter(|path| path.is_absolute());
        let unknown = || Error::Unknown { what: "home", why: "HOME names no folder".into() };
        let home = named("HOME").ok_or_else(unknown)?;
        let cache = named("XDG_CACHE_HOME").unwrap_or_else(|| home.join(".cache")).join("bulkhead/packages");
        let path = std::env::split_paths(variables.get("PATH").map_or("", String::as_str));
        let path = path.filter(|folder| folder.is_absolute()).collect();
        Ok(Surroundings { folder, home, path, variables, cache, shown: Vec::new() })
    }

    /// The same where the person shows these by name.
    pub fn showing<'a>(&self, paths: impl Iterator<Item = &'a PathBuf>) -> Surroundings {
        Surroundings { shown: paths.map(|path| self.absolute(path)).collect(), ..self.clone() }
    }

    /// Absolute and without `.` and `..`, as it is written: links stay.
    pub fn absolute(&self, path: &Path) -> PathBuf {
        let path = match path.strip_prefix("~") {
            Ok(rest) => self.home.join(rest),
            Err(_) => self.folder.join(path),
        };
        let mut plain = PathBuf::from("/");
        for part in path.components() {
            match part {
                std::path::Component::ParentDir => {
                    plain.pop();
                }
                std::path::Component::Normal(name) => plain.push(name),
                _ => {}
            }
        }
        plain
    }

    /// What of the person's own comes along with this file or folder, whose path has no links in it; in words.
    pub fn private(&self, real: &Path) -> Option<String> {
        let home = self.home.canonicalize().unwrap_or_else(|_| self.home.clone());
        if home.starts_with(real) {
            return Some("all of your home in it, keys and settings included".to_owned());
        }
        let kept = PRIVATE.iter().find(|name| real.starts_with(home.join(name)))?;
        Some(format!("what is in your `~/{kept}`, where keys, passwords or settings are kept"))
    }

    /// Whether this is so much that nobody means it: the home, or something around it.
    pub fn around_home(&self, folder: &Path) -> bool {
        self.home.starts_with(folder)
    }
}
