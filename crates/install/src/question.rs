//! One question to a package manager, asked in a jail: it is a program that `PATH` or the command line names, and may be
//! anybody's.

use crate::error::Error;
use crate::ground::{HOME, TMP, ground, host};
use crate::job::keep;
use crate::toolchain::{self, Found};
use jail::program::{Bounds, Content, End, Mount, Tree};
use std::collections::{BTreeMap, BTreeSet};
use std::path::PathBuf;
use std::thread;
use std::time::Duration;

const PATIENCE: Duration = Duration::from_secs(60);
const MEMORY: u64 = 1 << 30;
const SCRATCH_BYTES: u64 = 16 << 20;

/// A jail without a network. There is nothing in it but the system, the program with what it needs, and these files.
pub(crate) struct Question<'a> {
    pub(crate) found: &'a Found,
    /// Small files, by their places.
    pub(crate) files: Vec<(PathBuf, String)>,
    /// All variables beside `PATH`, `HOME` and `LANG`.
    pub(crate) variables: BTreeMap<String, String>,
}

impl Question<'_> {
    /// What it answers on stdout.
    pub(crate) fn ask(&self, arguments: &[&str]) -> Result<String, Error> {
        let failed = |why: String| Error::Unknown { what: "the settings of the package manager", why };
        let program = self.found.program.to_string_lossy();
        let own = [("PATH".to_owned(), path(self.found)), ("HOME".to_owned(), HOME.to_owned())];
        let own = BTreeMap::from(own).into_iter().chain([("LANG".to_owned(), "C.UTF-8".to_owned())]);
        let variables: BTreeMap<String, String> = self.variables.clone().into_iter().chain(own).collect();
        let variables: Vec<_> = variables.iter().map(|(name, value)| (name.as_str(), value.as_str())).collect();
        let mut child = self.tree().spawn(None, &program, arguments, &variables)?;
        drop(child.stdin.take());
        let (output, errors) = (child.stdout.take(), child.stderr.take());
        let output = thread::spawn(move || output.map(keep).unwrap_or_default());
        let errors = thread::spawn(move || errors.map(keep).unwrap_or_default());
        let end = child.watch(PATIENCE, MEMORY)?;
        let (output, errors) = (output.join().unwrap_or_default(), errors.join().unwrap_or_default());
        match end {
            End::Exited(exit) if exit.code == Some(0) => Ok(output),
            End::Exited(_) => Err(failed(errors.lines().last().unwrap_or("it failed").to_owned())),
            End::TooLong => Err(failed(format!("`{program}` took longer than {} s to tell", PATIENCE.as_secs()))),
            End::TooLarge => Err(failed(format!("`{program}` needs more than {} MB to tell", MEMORY >> 20))),
        }
    }

    fn tree(&self) -> Tree {
        let mut mounts = ground(SCRATCH_BYTES, SCRATCH_BYTES, false);
        let text = |(target, text): &(PathBuf, String)| {
            let content = Content::Text { bytes: text.clone().into_bytes() };
            Mount { target: target.clone(), content }
        };
        mounts.extend(self.files.iter().map(text));
        mounts.extend(needs(self.found, []));
        Tree {
            mounts,
            bounds: Bounds {
                processes: 64,
                memory_bytes: MEMORY,
                cpu_percent: 100,
                cpu_seconds: PATIENCE.as_secs(),
                data_bytes: MEMORY * 2,
                file_bytes: SCRATCH_BYTES,
                open_files: 1024,
            },
            reads_as: None,
            folder: TMP.into(),
            proxy: None,
            unix_sockets: true,
        }
    }
}

/// What a program needs beside the system, and these others, read-only at their own paths.
pub(crate) fn needs<'a>(found: &'a Found, others: impl IntoIterator<Item = &'a PathBuf>) -> Vec<Mount> {
    let all: BTreeSet<&PathBuf> = found.needs.iter().chain(others).collect();
    let mut all: Vec<&PathBuf> = all.into_iter().filter(|path| !toolchain::of_system(path)).collect();
    all.sort_by_key(|path| path.components().count());
    all.into_iter().map(|path| host(path, path)).collect()
}

/// The folders of its programs, and the system's.
pub(crate) fn path(found: &Found) -> String {
    let folders = found.folders.iter().map(|folder| folder.to_string_lossy().into_owned());
    let all: Vec<String> = folders.chain(["/usr/local/bin", "/usr/bin", "/bin"].map(str::to_owned)).collect();
    all.join(":")
}
