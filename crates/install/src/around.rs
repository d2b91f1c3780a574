//! Where a person says what they say.

use crate::error::Error;
use std::collections::BTreeMap;
use std::path::{Path, PathBuf};

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
        Ok(Surroundings { folder, home, path, variables, cache })
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

    /// Whether this is so much that nobody means it: the home, or something around it.
    pub fn around_home(&self, folder: &Path) -> bool {
        self.home.starts_with(folder)
    }
}
