//! A folder for one test, gone with it.

use crate::Surroundings;
use std::collections::BTreeMap;
use std::path::{Path, PathBuf};

pub struct Folder(PathBuf);

impl Folder {
    pub fn new(name: &str) -> Folder {
        let path = std::env::temp_dir().join(format!("bulkhead-{name}-{}", std::process::id()));
        std::fs::create_dir_all(path.join("home")).unwrap();
        Folder(path.canonicalize().unwrap())
    }

    pub fn path(&self) -> &Path {
        &self.0
    }

    /// With this folder around a home, programs in its `bin`, and nothing else but the system's.
    pub fn surroundings(&self) -> Surroundings {
        let home = self.0.join("home");
        Surroundings {
            folder: self.0.clone(),
            path: vec![home.join("bin"), "/usr/local/bin".into(), "/usr/bin".into(), "/bin".into()],
            home,
            variables: BTreeMap::new(),
            cache: self.0.join("cache"),
            shown: Vec::new(),
        }
    }
}

impl Drop for Folder {
    fn drop(&mut self) {
        let _ = std::fs::remove_dir_all(&self.0);
    }
}
