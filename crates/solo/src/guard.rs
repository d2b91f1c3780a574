//! What lies in a folder that the server may change, and is run or obeyed by programs outside the jail: settings of
//! repositories, editors, shells and clients. It stays read-only; what is missing of it is watched for.

mod git;
mod lookout;
mod names;

pub(crate) use lookout::Lookout;
use names::is_obeyed;
use std::fs;
use std::os::unix::fs::FileTypeExt;
use std::path::{Path, PathBuf};

/// What stays read-only of a repository's own folder where commits are allowed.
const OF_GIT: [&str; 8] = ["commondir", "config", "config.worktree", "gitdir", "hooks", "info", "modules", "worktrees"];

/// Folders that hold other people's code and are not searched.
const PASSED_OVER: [&str; 3] = ["node_modules", ".venv", "target"];

/// Repositories are found so many folders below the one that is named.
const DEEPEST: usize = 4;
/// Entries that are looked at.
const ENTRIES: usize = 200_000;
/// Mounts that are made for this.
const MOST: usize = 500;
/// Repositories whose missing settings are watched for.
const WATCHED: usize = 32;

/// What is kept from the server in the folders that it may change.
#[derive(Debug, Clone, Default, PartialEq, Eq)]
pub struct Guarded {
    /// Read-only, though the folder around it is not.
    pub read_only: Vec<PathBuf>,
    /// Folders that keep their place, because something in them is read-only.
    pub(crate) pinned: Vec<PathBuf>,
    /// Folders within what is read-only that can be written to: a working tree's own part of a repository.
    pub(crate) opened: Vec<PathBuf>,
    /// Named pipes, which lead to processes outside.
    pub(crate) pipes: Vec<PathBuf>,
    /// Folders in which something may come that programs outside obey.
    pub(crate) watched: Vec<PathBuf>,
    /// Single things that are not there yet, and links, over which nothing can be mounted.
    pub(crate) unheld: Vec<PathBuf>,
}

/// How much of this a flag or a profile allows.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum Allowed {
    Nothing,
    /// Writing to `.git`, but for its settings.
    Commits,
    Everything,
}

/// A folder that is shown, as it is searched.
#[derive(Clone, Copy)]
struct Search<'a> {
    root: &'a Path,
    allowed: Allowed,
    /// What is shown for itself.
    others: &'a [PathBuf],
}

impl Search<'_> {
    /// Where a path leads, if that is below the root, in terms of the root as it was named.
    fn inside(&self, path: &Path) -> Option<PathBuf> {
        let real = match fs::canonicalize(path) {
            Ok(real) => real,
            Err(_) => fs::canonicalize(path.parent()?).ok()?.join(path.file_name()?),
        };
        let rest = real.strip_prefix(fs::canonicalize(self.root).ok()?).ok()?;
        (!rest.as_os_str().is_empty()).then(|| self.root.join(rest))
    }
}

impl Guarded {
    /// Looks through a folder that is shown; what lies in `others` is theirs. Says whether all of it was looked at.
    pub(crate) fn add(&mut self, root: &Path, writable: bool, allowed: Allowed, others: &[PathBuf]) -> bool {
        let search = Search { root, allowed, others };
        let holds = writable && allowed != Allowed::Everything;
        let mut folders = vec![(root.to_owned(), 0, false)];
        let mut entries = 0;
        while let Some((folder, depth, held)) = folders.pop() {
            let mut found = Vec::new();
            let store = holds && !held && git::is_store(&folder);
            for entry in fs::read_dir(&folder).into_iter().flatten().filter_map(Result::ok).take(ENTRIES + 1) {
                entries += 1;
                let (path, Ok(kind)) = (entry.path(), entry.file_type()) else { continue };
                if others.contains(&path) {
                    continue;
                }
                let name = entry.file_name().into_string().unwrap_or_default();
                let obeyed = is_obeyed(&name);
                if kind.is_fifo() {
                    self.pipes.push(path);
                } else if (held || store) && name == "objects" {
                    continue;
                } else if kind.is_dir() && depth < DEEPEST && !PASSED_OVER.contains(&name.as_str()) {
                    folders.push((path, depth + 1, held || obeyed || store));
                }
                if obeyed && !held && !store {
                    found.push((name, kind));
                }
            }
            let repository = found.iter().any(|(name, _)| [".git", ".hg", ".jj"].contains(&name.as_str()));
            if store {
                // One that is named itself is meant to be written to, but for its settings.
                let allowed = if folder == root { Allowed::Commits } else { allowed };
                self.hold_store(&folder, &Search { allowed, ..search });
                self.hold_named(std::slice::from_ref(&folder), &folder, &search);
            } else if holds && !held && (depth == 0 || repository) {
                self.hold(&folder, &search, found);
                if self.watched.len() < WATCHED {
                    self.watched.push(folder);
                }
            }
            if entries > ENTRIES || self.mounts() > MOST {
                return false;
            }
        }
        // What is pinned can be written to, so nothing is pinned in what is read-only.
        let read_only = &self.read_only;
        self.pinned.retain(|pinned| !read_only.iter().any(|held| pinned.starts_with(held)));
        true
    }

    /// What was found in one folder.
    fn hold(&mut self, folder: &Path, search: &Search, found: Vec<(String, fs::FileType)>) {
        for (name, kind) in found {
            let path = folder.join(&name);
            if kind.is_symlink() {
                self.unheld.push(path.clone());
            }
            if !path.exists() {
                // A link to what may come.
                let to = fs::read_link(&path).ok().and_then(|to| search.inside(&folder.join(to)));
                self.unheld.extend(to);
                continue;
            }
            // Where a link leads counts, if the server can write there.
            let Some(place) = search.inside(&path) else { continue };
            let stores = match place.metadata() {
                _ if name != ".git" => Vec::new(),
                Ok(found) if found.is_dir() => vec![path.clone()],
                _ => git::stores_of(&place),
            };
            if stores.contains(&path) {
                self.hold_store(&place, search);
            } else {
                self.keep(place, search);
            }
            for store in stores.iter().filter(|store| **store != path) {
                // A file names it: so it has to look like one, and be nothing else that is obeyed.
                let fits = |store: &PathBuf| {
                    let steps = store.strip_prefix(search.root).into_iter().flat_map(Path::components);
                    let mut names = steps.map(|step| step.as_os_str().to_string_lossy().into_owned());
                    git::is_store(store) && names.all(|name| name == ".git" || !is_obeyed(&name))
                };
                if let Some(store) = search.inside(store).filter(fits) {
                    self.hold_store(&store, search);
                }
            }
            self.hold_named(&stores, folder, search);
        }
    }

    /// A folder that is a repository without its working tree, or a part of one.
    fn hold_store(&mut self, store: &Path, search: &Search) {
        if search.allowed == Allowed::Nothing {
            return self.keep(store.to_owned(), search);
        }
        for inner in OF_GIT.map(|inner| store.join(inner)) {
            let found = inner.symlink_metadata();
            if found.is_ok_and(|found| found.is_dir() || found.is_file()) {
                self.keep(inner, search);
            } else if !search.others.contains(&inner) {
                self.unheld.push(inner);
            }
        }
        self.pin(store, search);
        if store.parent().is_some_and(|parent| parent.ends_with("worktrees")) {
            self.opened.push(store.to_owned());
        }
    }

    /// What git's settings in these folders name.
    fn hold_named(&mut self, stores: &[PathBuf], top: &Path, search: &Search) {
        for named in git::named_in(stores, top).iter().filter_map(|named| search.inside(named)) {
            let around = stores.iter().any(|store| store.starts_with(&named)) || top.starts_with(&named);
            if named.exists() && !around {
                self.keep(named, search);
            } else if !around && named.parent() != Some(top) {
                self.unheld.push(named);
            }
        }
    }

    /// Makes it read-only, and keeps the folders around it in their place.
    fn keep(&mut self, path: PathBuf, search: &Search) {
        let below = path.starts_with(search.root) && path != search.root;
        if !below || search.others.contains(&path) || self.read_only.contains(&path) {
            return;
        }
        path.parent().into_iter().for_each(|folder| self.pin(folder, search));
        self.read_only.push(path);
    }

    fn pin(&mut self, folder: &Path, search: &Search) {
        let below = |above: &&Path| above.starts_with(search.root) && *above != search.root;
        for folder in folder.ancestors().take_while(below) {
            if !self.pinned.iter().any(|pinned| pinned == folder) && !search.others.iter().any(|other| other == folder)
            {
                self.pinned.push(folder.to_owned());
            }
        }
    }

    fn mounts(&self) -> usize {
        self.read_only.len() + self.pinned.len() + self.pipes.len()
    }
}

#[cfg(test)]
mod tests;
