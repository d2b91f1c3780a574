//! Names that programs outside the jail run or obey as soon as somebody opens the folder or works in it.

/// Settings of repositories, shells, editors, clients and agents, and instructions to agents.
const NAMES: [&str; 103] = [
    // Repositories and their hooks.
    ".circleci",
    ".git",
    ".git-hooks",
    ".gitconfig",
    ".githooks",
    ".github",
    ".gitmodules",
    ".hg",
    ".hgrc",
    ".husky",
    ".jj",
    ".overcommit.yml",
    ".sl",
    // Shells and what they load.
    ".autoenv",
    ".autoenv.zsh",
    ".bash_aliases",
    ".bash_login",
    ".bash_logout",
    ".bash_profile",
    ".bashrc",
    ".config",
    ".envrc",
    ".inputrc",
    ".mise",
    ".pam_environment",
    ".profile",
    ".ssh",
    ".tmux.conf",
    ".tool-versions",
    ".xinitrc",
    ".xprofile",
    ".zlogin",
    ".zlogout",
    ".zprofile",
    ".zshenv",
    ".zshrc",
    "devenv.nix",
    "devenv.yaml",
    "flake.nix",
    "mise",
    "shell.nix",
    // Package managers and compilers, which editors start.
    ".cargo",
    ".npmrc",
    ".pnpmfile.cjs",
    ".yarnrc",
    ".yarnrc.yml",
    "bunfig.toml",
    "rust-toolchain",
    "rust-toolchain.toml",
    // Editors.
    ".devcontainer",
    ".devcontainer.json",
    ".dir-locals-2.el",
    ".dir-locals.el",
    ".emacs",
    ".emacs.d",
    ".exrc",
    ".fleet",
    ".gitpod.yml",
    ".gvimrc",
    ".idea",
    ".lvimrc",
    ".nova",
    ".nvim.lua",
    ".nvimrc",
    ".replit",
    ".vim",
    ".vimrc",
    ".vs",
    ".vscode",
    ".zed",
    // Clients, agents and what they are told.
    ".agent",
    ".agents",
    ".amazonq",
    ".augment",
    ".augment-guidelines",
    ".claude",
    ".cline",
    ".codex",
    ".continue",
    ".crush.json",
    ".cursor",
    ".cursorrules",
    ".factory",
    ".gemini",
    ".goosehints",
    ".junie",
    ".kilocode",
    ".kiro",
    ".mcp.json",
    ".opencode",
    ".qwen",
    ".roo",
    ".roomodes",
    ".rules",
    ".trae",
    ".windsurf",
    ".windsurfrules",
    "agent.md",
    "conventions.md",
    "crush.json",
    "mcp.json",
    "qwen.md",
    "warp.md",
];

/// How other such names begin and end.
const PATTERNS: [(&str, &str); 20] = [
    ("", ".code-workspace"),
    ("", ".sublime-project"),
    (".aider", ""),
    (".clinerules", ""),
    (".eslintrc", ""),
    (".gitlab-ci", ""),
    (".lefthook", ""),
    (".mise", ".toml"),
    (".pre-commit-config.", ""),
    (".prettierrc", ""),
    (".roorules", ""),
    (".rtx", ".toml"),
    ("agents.", "md"),
    ("claude.", "md"),
    ("eslint.config.", ""),
    ("gemini.", "md"),
    ("lefthook", ""),
    ("mise.", "toml"),
    ("opencode.json", ""),
    ("prettier.config.", ""),
];

/// Whether programs outside run or obey a file or folder of this name.
pub(super) fn is_obeyed(name: &str) -> bool {
    // Some disks do not tell `Claude.md` from `CLAUDE.md`.
    let name = name.to_ascii_lowercase();
    let fits = |(begin, end): &(&str, &str)| {
        name.len() >= begin.len() + end.len() && name.starts_with(begin) && name.ends_with(end)
    };
    NAMES.contains(&name.as_str()) || PATTERNS.iter().any(fits)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn names_and_patterns() {
        for name in [
            ".git",
            "CLAUDE.md",
            "CLAUDE.local.md",
            "AGENTS.override.md",
            "mise.toml",
            "mise.prod.local.toml",
            ".mise.toml",
            "a.code-workspace",
            ".lefthook-local.yml",
            "lefthook.yml",
            ".eslintrc.cjs",
            ".gitlab-ci.yml",
            ".clinerules-code",
        ] {
            assert!(is_obeyed(name), "{name}");
        }
        for name in
            ["README.md", "src", "Cargo.toml", "package.json", "agents.rs", "miser.txt", ".gitignore", ".env", "claude"]
        {
            assert!(!is_obeyed(name), "{name}");
        }
    }
}
