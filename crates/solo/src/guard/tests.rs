use super::*;
use install::testing::Folder;
use std::os::unix::fs::symlink;

fn make(folder: &Path, paths: &[&str]) {
    for path in paths {
        let path = folder.join(path);
        fs::create_dir_all(path.parent().unwrap()).unwrap();
        fs::write(path, "").unwrap();
    }
}

fn guarded(root: &Path, allowed: Allowed) -> Guarded {
    let mut guarded = Guarded::default();
    assert!(guarded.add(root, true, allowed, &[root.join("shown")]));
    guarded.read_only.sort();
    guarded.pinned.sort();
    guarded
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
    symlink("elsewhere", root.join(".vscode")).unwrap();
    let found = guarded(&root, Allowed::Nothing);
    assert_eq!(found.read_only, [".envrc", "a/b/.git", "a/b/.vscode"].map(|path| root.join(path)));
    assert_eq!(found.pinned, ["a", "a/b"].map(|path| root.join(path)));
    assert!(found.watched.contains(&root));
    for link_or_target in [".vscode", "elsewhere"] {
        assert!(found.unheld.contains(&root.join(link_or_target)), "{found:?}");
    }

    let commits = guarded(&root.join("a/b"), Allowed::Commits);
    assert_eq!(commits.read_only, [".git/config", ".git/hooks", ".vscode"].map(|path| root.join("a/b").join(path)));
    assert_eq!(commits.pinned, [root.join("a/b/.git")]);
    assert!(commits.unheld.contains(&root.join("a/b/.git/commondir")));

    let mut none = Guarded::default();
    none.add(&root, true, Allowed::Everything, &[]);
    none.add(&root, false, Allowed::Nothing, &[]);
    assert_eq!(none, Guarded::default());
}

#[test]
fn where_links_and_git_files_lead_is_held() {
    let folder = Folder::new("guard-elsewhere");
    let root = fs::canonicalize(folder.path()).unwrap().join("work");
    make(&root, &["settings/deep/tasks.json", "bare/HEAD", "bare/config", "bare/worktrees/one/HEAD", "tools/hook"]);
    for path in ["bare/objects", "bare/refs", "tree"] {
        fs::create_dir_all(root.join(path)).unwrap();
    }
    symlink("settings/deep", root.join(".vscode")).unwrap();
    // Out of the folder, and to the folder itself: nothing that could be held.
    symlink("/etc", root.join(".claude")).unwrap();
    symlink(".", root.join(".cursor")).unwrap();
    fs::write(root.join("tree/.git"), "gitdir: ../bare/worktrees/one\n").unwrap();
    fs::write(root.join("bare/worktrees/one/commondir"), "../..\n").unwrap();
    fs::write(root.join("bare/config"), "[core]\n\thooksPath = ../tools\n[include]\n\tpath = more\n").unwrap();
    let found = guarded(&root, Allowed::Nothing);
    for path in ["settings/deep", "bare", "bare/worktrees/one", "tree/.git", "tools"] {
        assert!(found.read_only.contains(&root.join(path)), "{path}: {found:?}");
    }
    assert!(found.read_only.iter().all(|path| path.starts_with(&root) && *path != root), "{found:?}");
    // What is pinned is writable.
    assert!(
        !found.pinned.iter().any(|pinned| found.read_only.iter().any(|held| pinned.starts_with(held))),
        "{found:?}"
    );
    assert!(found.pinned.iter().all(|path| path.starts_with(&root) && *path != root), "{found:?}");
    assert!(found.opened.is_empty() && found.unheld.contains(&root.join("bare/more")), "{found:?}");

    let commits = guarded(&root, Allowed::Commits);
    assert_eq!(commits.opened, [root.join("bare/worktrees/one")]);
    for path in ["bare/config", "bare/worktrees", "bare/worktrees/one/commondir", "tree/.git"] {
        assert!(commits.read_only.contains(&root.join(path)), "{path}: {commits:?}");
    }
    assert!(!commits.read_only.contains(&root.join("bare")));

    // A `.git` file opens nothing that is obeyed.
    make(&root, &[".idea/worktrees/x/HEAD", ".idea/worktrees/x/commondir"]);
    fs::write(root.join("tree/.git"), "gitdir: ../.idea/worktrees/x\n").unwrap();
    assert!(guarded(&root, Allowed::Commits).opened.is_empty());
    // A repository that is named itself keeps its settings.
    let itself = guarded(&root.join("bare"), Allowed::Nothing);
    assert!(itself.read_only.contains(&root.join("bare/config")), "{itself:?}");
    assert!(itself.read_only.iter().chain(&itself.pinned).all(|path| *path != root.join("bare")), "{itself:?}");
}

#[test]
fn what_comes_later_is_told_once() {
    let folder = Folder::new("lookout");
    let root = folder.path().join("work");
    make(&root, &[".envrc"]);
    let mut lookout = Lookout::new(&guarded(&root, Allowed::Nothing));
    assert!(lookout.look().is_empty());
    make(&root, &[".git/config", "mise.x.toml", "new"]);
    fs::rename(root.join("new"), root.join(".envrc")).unwrap();
    let told = lookout.look();
    assert!(
        told.len() == 3 && told[0].contains(".git` was created") && told[1].contains("mise.x.toml` was"),
        "{told:?}"
    );
    assert!(told[2].contains(".envrc` was replaced"), "{told:?}");
    assert!(lookout.look().is_empty());
}
