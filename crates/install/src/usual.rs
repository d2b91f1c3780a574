//! Where installations of a person's own usually are. A file of a repository may lead there; to another place it may not,
//! for with the installation everything beside it would be shown.

use crate::around::Surroundings;
use crate::toolchain::of_system;
use std::fs;
use std::path::{Path, PathBuf};

const OF_MACHINE: [&str; 6] =
    ["/opt", "/nix/store", "/gnu/store", "/snap", "/home/linuxbrew/.linuxbrew", "/etc/alternatives"];

/// Below the home: version managers and what they install.
const OF_HOME: [&str; 30] = [
    ".asdf",
    ".bun",
    ".cargo",
    ".conda",
    ".deno",
    ".fnm",
    ".linuxbrew",
    ".local/pipx",
    ".local/share/fnm",
    ".local/share/mise",
    ".local/share/pipx",
    ".local/share/pnpm",
    ".local/share/uv",
    ".n",
    ".nix-profile",
    ".nodenv",
    ".nvm",
    ".proto",
    ".pyenv",
    ".rbenv",
    ".rustup",
    ".rye",
    ".sdkman",
    ".volta",
    "anaconda3",
    "mambaforge",
    "micromamba",
    "miniconda3",
    "miniforge3",
    "n",
];

/// Variables by which a person says that such a manager is elsewhere.
const VARIABLES: [&str; 16] = [
    "ASDF_DATA_DIR",
    "ASDF_DIR",
    "BUN_INSTALL",
    "CONDA_PREFIX",
    "DENO_INSTALL",
    "FNM_DIR",
    "MISE_DATA_DIR",
    "NODENV_ROOT",
    "NVM_DIR",
    "N_PREFIX",
    "PNPM_HOME",
    "PROTO_HOME",
    "PYENV_ROOT",
    "RBENV_ROOT",
    "UV_PYTHON_INSTALL_DIR",
    "VOLTA_HOME",
];

impl Surroundings {
    /// Whether this path, which has no links in it, is of the system, of a version manager, of an installation in `PATH`, or
    /// one that the person shows anyway.
    pub(crate) fn is_usual(&self, real: &Path) -> bool {
        let of_machine = OF_MACHINE.iter().map(PathBuf::from);
        let of_home = OF_HOME.iter().map(|name| self.home.join(name));
        let named = VARIABLES.iter().filter_map(|name| self.variables.get(*name)).map(PathBuf::from);
        let installed = self.path.iter().filter(|folder| !self.in_repository(folder)).filter_map(|folder| {
            let whole = folder.ends_with("bin") || folder.ends_with("shims");
            folder.parent().filter(|_| whole).map(Path::to_owned)
        });
        let personal = |folder: &PathBuf| self.around_home(folder) || *folder == self.home.join(".local");
        let roots = of_home.chain(named.chain(installed).filter(|folder| folder.is_absolute() && !personal(folder)));
        let mut roots = roots.chain(of_machine).chain(self.shown.iter().cloned());
        of_system(real) || roots.any(|root| real.starts_with(fs::canonicalize(&root).unwrap_or(root)))
    }

    /// Whether it is in the working directory, which may be a repository with a stranger's files.
    pub(crate) fn in_repository(&self, path: &Path) -> bool {
        let real = fs::canonicalize(&self.folder);
        let inside = path.starts_with(&self.folder) || real.is_ok_and(|folder| path.starts_with(folder));
        inside && !self.around_home(&self.folder)
    }
}
