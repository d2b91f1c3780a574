//! Projects for tests, each in a folder of its own that goes when the test is over.

use build::{BuildError, Built, Options, build};
use std::fs::{self, Permissions};
use std::os::unix::fs::{PermissionsExt, symlink};
use std::path::{Path, PathBuf};
use std::sync::atomic::{AtomicU32, Ordering};
use std::time::Duration;

pub struct Project {
    pub root: PathBuf,
}

/// What is installed or fetched lies in the workspace's `target`, wherever cargo builds.
pub fn target(path: &str) -> PathBuf {
    Path::new(env!("CARGO_MANIFEST_DIR")).join("../../target").join(path)
}

pub fn options() -> Options {
    Options { esbuild: Some(target("esbuild/esbuild")), wall_clock: Duration::from_secs(30), ..Options::default() }
}

impl Project {
    pub fn new(files: &[(&str, &str)]) -> Project {
        static NEXT: AtomicU32 = AtomicU32::new(0);
        let name = format!("bulkhead-build-{}-{}", std::process::id(), NEXT.fetch_add(1, Ordering::Relaxed));
        let root = std::env::temp_dir().join(name);
        let project = Project { root };
        fs::create_dir_all(project.folder()).unwrap();
        // Below it there may be things that nobody else should read.
        fs::set_permissions(&project.root, Permissions::from_mode(0o700)).unwrap();
        fs::write(project.root.join("secret.json"), r#"{ "secret": "hunter2" }"#).unwrap();
        fs::write(project.root.join("secret.ts"), "export default 'hunter2'").unwrap();
        for (path, text) in files {
            project.write(path, text);
        }
        project
    }

    /// With the packages of target/build-npm.
    pub fn with_packages(files: &[(&str, &str)]) -> Project {
        let installed = target("build-npm/node_modules");
        assert!(installed.is_dir(), "run scripts/build-test.sh first");
        let project = Project::new(files);
        copy(&installed, &project.folder().join("node_modules"));
        project
    }

    pub fn folder(&self) -> PathBuf {
        self.root.join("project")
    }

    pub fn write(&self, path: &str, text: impl AsRef<[u8]>) {
        let path = self.folder().join(path);
        fs::create_dir_all(path.parent().unwrap()).unwrap();
        fs::write(&path, text).unwrap();
    }

    pub fn link(&self, path: &str, to: impl AsRef<Path>) {
        let path = self.folder().join(path);
        fs::create_dir_all(path.parent().unwrap()).unwrap();
        symlink(to, path).unwrap();
    }

    pub fn build(&self, entry: &str) -> Result<Built, BuildError> {
        build(&self.folder(), entry, &options())
    }

    #[track_caller]
    pub fn built(&self, entry: &str) -> Built {
        match self.build(entry) {
            Ok(built) => built,
            Err(error) => panic!("{error}"),
        }
    }

    /// What the author reads.
    #[track_caller]
    pub fn refusal(&self, entry: &str) -> String {
        match self.build(entry) {
            Err(error) => {
                assert_eq!(error.code(), "build_failed");
                let text = error.to_string();
                assert!(!text.contains("hunter2"), "{text}");
                assert!(!text.chars().any(|c| c != '\n' && bundle::is_hidden(c)), "{text:?}");
                text
            }
            Ok(built) => panic!("it was built: {built:#?}"),
        }
    }
}

impl Drop for Project {
    fn drop(&mut self) {
        let _ = fs::remove_dir_all(&self.root);
    }
}

/// With hard links, where they can be made.
fn copy(from: &Path, to: &Path) {
    fs::create_dir_all(to).unwrap();
    for entry in fs::read_dir(from).unwrap() {
        let entry = entry.unwrap();
        let to = to.join(entry.file_name());
        let kind = entry.file_type().unwrap();
        if kind.is_dir() {
            copy(&entry.path(), &to);
        } else if kind.is_file() && fs::hard_link(entry.path(), &to).is_err() {
            fs::copy(entry.path(), &to).unwrap();
        }
    }
}
