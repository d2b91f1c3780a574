//! What cannot be held is looked at, again and again, while the server runs.

use super::Guarded;
use super::names::is_obeyed;
use std::collections::BTreeSet;
use std::fs;
use std::os::unix::fs::MetadataExt;
use std::path::{Path, PathBuf};

/// Entries of one folder that are looked at.
const ENTRIES: usize = 200_000;

/// Looks, while the server runs, whether something has come that could not be held.
pub(crate) struct Lookout {
    /// Folders, with what programs outside obey in them that is known.
    watched: Vec<(PathBuf, BTreeSet<PathBuf>)>,
    unheld: BTreeSet<PathBuf>,
    /// A file that is replaced on the host loses the mount over it.
    files: Vec<(PathBuf, u64)>,
    /// Links that were there, with where they led.
    links: Vec<(PathBuf, PathBuf)>,
}

impl Lookout {
    pub(crate) fn new(guarded: &Guarded) -> Lookout {
        let file = |path: &PathBuf| Some((path.clone(), path.symlink_metadata().ok()?.ino()));
        let link = |path: &PathBuf| Some((path.clone(), fs::read_link(path).ok()?));
        Lookout {
            watched: guarded.watched.iter().map(|folder| (folder.clone(), obeyed_in(folder))).collect(),
            unheld: guarded.unheld.iter().filter(|path| path.symlink_metadata().is_err()).cloned().collect(),
            files: guarded.read_only.iter().filter_map(file).collect(),
            links: guarded.unheld.iter().filter_map(link).collect(),
        }
    }

    /// Lines for the person; each thing once.
    pub(crate) fn look(&mut self) -> Vec<String> {
        let mut came: Vec<PathBuf> = Vec::new();
        for (folder, known) in &mut self.watched {
            let now = obeyed_in(folder);
            came.extend(now.difference(known).cloned());
            known.extend(now);
        }
        self.unheld.retain(|path| {
            let here = path.symlink_metadata().is_ok();
            came.extend(here.then(|| path.clone()));
            !here
        });
        came.sort();
        came.dedup();
        let danger = "programs outside the jail run or obey it, so look at it before you go on in that folder";
        let mut lines: Vec<String> =
            came.iter().map(|path| format!("`{}` was created during the run; {danger}", path.display())).collect();
        self.files.retain(|(path, known)| {
            let same = path.symlink_metadata().is_ok_and(|found| found.ino() == *known);
            if !same {
                lines.push(format!(
                    "`{}` was replaced during the run, and is not read-only any more; {danger}",
                    path.display()
                ));
            }
            same
        });
        self.links.retain(|(path, to)| {
            let same = fs::read_link(path).is_ok_and(|now| now == *to);
            if !same {
                lines.push(format!("the link `{}` was changed during the run; {danger}", path.display()));
            }
            same
        });
        lines
    }
}

fn obeyed_in(folder: &Path) -> BTreeSet<PathBuf> {
    let entries = fs::read_dir(folder).into_iter().flatten().filter_map(Result::ok).take(ENTRIES);
    let obeyed = entries.filter(|entry| entry.file_name().to_str().is_some_and(is_obeyed));
    obeyed.map(|entry| entry.path()).collect()
}
