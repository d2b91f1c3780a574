//! What lies in a folder that the server may change, and is run or obeyed by programs outside the jail: settings of
//! repositories, editors, shells and clients. It stays read-only; what is missing of it is watched for.

use std::collections::BTreeSet;
use std::fs;
use std::os::unix::fs::{FileTypeExt, MetadataExt};
use std::path::{Path, PathBuf};

/// Files and folders that programs outside run or obey, at the top of the folder or of a repository in it.
pub(crate) const NAMES: [&str; 41] = [
    ".bash_login",
    ".bash_profile",
    ".bashrc",
    ".circleci",
    ".claude",
    ".codex",
    ".continue",
    ".cursor",
    ".devcontainer",
    ".envrc",
    ".gemini",
    ".git",
    ".gitconfig",
    ".githooks",
    ".github",
    ".gitlab-ci.yml",
    ".gitmodules",
    ".husky",
    ".idea",
    ".kiro",
    ".lefthook.yml",
    ".mcp.json",
    ".mise.toml",
    ".npmrc",
    ".pre-commit-config.yaml",
    ".profile",
    ".ssh",
    ".vimrc",
    ".nvimrc",
    ".exrc",
    ".vscode",
    ".windsurf",
    ".yarnrc",
    ".yarnrc.yml",
    ".zed",
    ".zlogin",
    ".zprofile",
    ".zshenv",
    ".zshrc",
    "lefthook.yml",
    "mise.toml",
];

/// The same within `.git`, where commits are allowed.
const OF_GIT: [&str; 7] = ["commondir", "config", "config.worktree", "hooks", "info", "modules", "worktrees"];

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
    /// Named pipes, which lead to processes outside.
    pub(crate) pipes: Vec<PathBuf>,
    /// What is not there yet, and links, over which nothing can be mounted.
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

impl Guarded {
    /// Looks through a folder that is shown; what lies in `others` is theirs. Says whether all of it was looked at.
    pub(crate) fn add(&mut self, root: &Path, writable: bool, allowed: Allowed, others: &[PathBuf]) -> bool {
        let mut folders = vec![(root.to_owned(), 0)];
        let (mut entries, mut watched) = (0, 0);
        while let Some((folder, depth)) = folders.pop() {
            let mut found = Vec::new();
            for entry in fs::read_dir(&folder).into_iter().flatten().filter_map(Result::ok).take(ENTRIES + 1) {
                entries += 1;
                let (path, Ok(kind)) = (entry.path(), entry.file_type()) else { continue };
                if others.contains(&path) {
                    continue;
                }
                let name = entry.file_name().into_string().unwrap_or_default();
                if kind.is_fifo() {
                    self.pipes.push(path);
                } else if NAMES.contains(&name.as_str()) {
                    found.push((name, kind));
                } else if kind.is_dir() && depth < DEEPEST && !PASSED_OVER.contains(&name.as_str()) {
                    folders.push((path, depth + 1));
                }
            }
            let repository = found.iter().any(|(name, _)| name == ".git");
            if writable && allowed != Allowed::Everything && (depth == 0 || repository) {
                self.hold(&folder, root, found, allowed, others);
                watched += 1;
                if watched <= WATCHED {
                    let there = |name: &&str| folder.join(name).symlink_metadata().is_ok();
                    self.unheld.extend(NAMES.iter().filter(|name| !there(name)).map(|name| folder.join(name)));
                }
            }
            if entries > ENTRIES || self.mounts() > MOST {
                return false;
            }
        }
        true
    }

    /// What was found in one folder, which keeps its place below `root`.
    fn hold(
        &mut self,
        folder: &Path,
        root: &Path,
        found: Vec<(String, fs::FileType)>,
        allowed: Allowed,
        others: &[PathBuf],
    ) {
        for (name, kind) in found {
            let path = folder.join(&name);
            let above = folder.ancestors().take_while(|above| *above != root);
            self.pin(above.map(Path::to_owned), others);
            if kind.is_symlink() {
                self.unheld.push(path);
            } else if name != ".git" || !kind.is_dir() || allowed == Allowed::Nothing {
                self.read_only.push(path);
            } else {
                for inner in OF_GIT.iter().map(|inner| path.join(inner)).filter(|inner| !others.contains(inner)) {
                    let held = inner.symlink_metadata().is_ok_and(|found| found.is_dir() || found.is_file());
                    if held { self.read_only.push(inner) } else { self.unheld.push(inner) }
                }
                self.pin([path], others);
            }
        }
    }

    fn pin(&mut self, folders: impl IntoIterator<Item = PathBuf>, others: &[PathBuf]) {
        for folder in folders {
            if !self.pinned.contains(&folder) && !others.contains(&folder) {
                self.pinned.push(folder);
            }
        }
    }

    fn mounts(&self) -> usize {
        self.read_only.len() + self.pinned.len() + self.pipes.len()
    }
}

/// Looks, while the server runs, whether something has come that could not be held.
pub(crate) struct Lookout {
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
            unheld: guarded.unheld.iter().filter(|path| path.symlink_metadata().is_err()).cloned().collect(),
            files: guarded.read_only.iter().filter_map(file).collect(),
            links: guarded.unheld.iter().filter_map(link).collect(),
        }
    }

    /// Lines for the person; each thing once.
    pub(crate) fn look(&mut self) -> Vec<String> {
        let mut lines = Vec::new();
        let danger = "programs outside the jail run or obey it, so look at it before you go on in that folder";
        self.unheld.retain(|path| {
            let came = path.symlink_metadata().is_ok();
            if came {
                lines.push(format!("`{}` was created during the run; {danger}", path.display()));
            }
            !came
        });
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

#[cfg(test)]
mod tests {
    use super::*;
    use install::testing::Folder;

    fn make(folder: &Path, paths: &[&str]) {
        for path in paths {
            let path = folder.join(path);
            fs::create_dir_all(path.parent().unwrap()).unwrap();
            fs::write(path, "").unwrap();
        }
    }

    #[test]
    fn settings_are_found_in_the_folder_and_in_repositories_below() {
        let folder = Folder::new("guard");
        let root = folder.path().join("work");
        make(
            &root,
            &[
                ".envrc",
                "src/.envrc",
                "a/b/.git/config",
                "a/b/.git/hooks/x",
                "a/b/.vscode/tasks.json",
                "1/2/3/4/5/.git/config",
                "node_modules/x/.git/config",
                "shown/.git/config",
            ],
        );
        std::os::unix::fs::symlink("elsewhere", root.join(".vscode")).unwrap();
        let mut guarded = Guarded::default();
        assert!(guarded.add(&root, true, Allowed::Nothing, &[root.join("shown")]));
        guarded.read_only.sort();
        assert_eq!(guarded.read_only, [".envrc", "a/b/.git", "a/b/.vscode"].map(|path| root.join(path)));
        guarded.pinned.sort();
        assert_eq!(guarded.pinned, ["a", "a/b"].map(|path| root.join(path)));
        assert!(guarded.unheld.contains(&root.join(".git")) && guarded.unheld.contains(&root.join(".vscode")));

        let mut commits = Guarded::default();
        commits.add(&root.join("a/b"), true, Allowed::Commits, &[]);
        commits.read_only.sort();
        assert_eq!(commits.read_only, [".git/config", ".git/hooks", ".vscode"].map(|path| root.join("a/b").join(path)));
        assert_eq!(commits.pinned, [root.join("a/b/.git")]);
        assert!(commits.unheld.contains(&root.join("a/b/.git/commondir")));

        let mut none = Guarded::default();
        none.add(&root, true, Allowed::Everything, &[]);
        none.add(&root, false, Allowed::Nothing, &[]);
        assert_eq!(none, Guarded::default());
    }

    #[test]
    fn what_comes_later_is_told_once() {
        let folder = Folder::new("lookout");
        let root = folder.path().join("work");
        make(&root, &[".envrc"]);
        let mut guarded = Guarded::default();
        guarded.add(&root, true, Allowed::Nothing, &[]);
        let mut lookout = Lookout::new(&guarded);
        assert!(lookout.look().is_empty());
        make(&root, &[".git/config", "new"]);
        fs::rename(root.join("new"), root.join(".envrc")).unwrap();
        let told = lookout.look();
        assert!(told.len() == 2 && told[0].contains(".git` was created") && told[1].contains(".envrc` was replaced"));
        assert!(lookout.look().is_empty());
    }
}
