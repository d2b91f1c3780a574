//! Version managers put a small program, a shim, in front of the real one. Which program it stands for is read from the
//! manager's own files. A shim is never run to be asked: whatever has the name of an interpreter may be a stranger's.

use crate::around::Surroundings;
use crate::toolchain::runs;
use std::fs::{self, File};
use std::io::Read;
use std::path::{Path, PathBuf};

/// The longest file with versions in it that is read.
const LONGEST: u64 = 64 << 10;

struct Manager {
    /// The variable that names its folder, and where that is otherwise, below the home.
    root: (&'static str, &'static str),
    /// Where its shims are, below that.
    shims: &'static str,
    tools: &'static [Tool],
}

/// One thing of which a manager keeps several versions.
struct Tool {
    /// Where they are, below the manager's folder, each in a folder with its version as the name.
    store: &'static str,
    /// The variable that names the version in use.
    variable: &'static str,
    /// Files that name it, in the working directory or above.
    files: &'static [Versions],
    /// The files that name it everywhere else: below the manager's folder, and below the home.
    of_manager: Option<Versions>,
    of_home: Option<Versions>,
}

/// A file that names versions, and how.
#[derive(Clone, Copy)]
struct Versions(&'static str, Form);

#[derive(Clone, Copy)]
enum Form {
    /// Words.
    Plain,
    /// Lines that begin with the name of a tool.
    Table(&'static str),
    /// TOML with the tool as a key.
    Toml(&'static str),
    /// JSON with the version at this place.
    Json(&'static str),
}

const MANAGERS: [Manager; 5] = [
    Manager {
        root: ("PYENV_ROOT", ".pyenv"),
        shims: "shims",
        tools: &[Tool {
            store: "versions",
            variable: "PYENV_VERSION",
            files: &[Versions(".python-version", Form::Plain)],
            of_manager: Some(Versions("version", Form::Plain)),
            of_home: None,
        }],
    },
    Manager {
        root: ("NODENV_ROOT", ".nodenv"),
        shims: "shims",
        tools: &[Tool {
            store: "versions",
            variable: "NODENV_VERSION",
            files: &[Versions(".node-version", Form::Plain)],
            of_manager: Some(Versions("version", Form::Plain)),
            of_home: None,
        }],
    },
    Manager {
        root: ("ASDF_DATA_DIR", ".asdf"),
        shims: "shims",
        tools: &[
            Tool {
                store: "installs/python",
                variable: "ASDF_PYTHON_VERSION",
                files: &[Versions(".tool-versions", Form::Table("python"))],
                of_manager: None,
                of_home: Some(Versions(".tool-versions", Form::Table("python"))),
            },
            Tool {
                store: "installs/nodejs",
                variable: "ASDF_NODEJS_VERSION",
                files: &[Versions(".tool-versions", Form::Table("nodejs"))],
                of_manager: None,
                of_home: Some(Versions(".tool-versions", Form::Table("nodejs"))),
            },
        ],
    },
    Manager {
        root: ("MISE_DATA_DIR", ".local/share/mise"),
        shims: "shims",
        tools: &[
            Tool {
                store: "installs/python",
                variable: "MISE_PYTHON_VERSION",
                files: &[
                    Versions("mise.toml", Form::Toml("python")),
                    Versions(".mise.toml", Form::Toml("python")),
                    Versions(".tool-versions", Form::Table("python")),
                ],
                of_manager: None,
                of_home: Some(Versions(".config/mise/config.toml", Form::Toml("python"))),
            },
            Tool {
                store: "installs/node",
                variable: "MISE_NODE_VERSION",
                files: &[
                    Versions("mise.toml", Form::Toml("node")),
                    Versions(".mise.toml", Form::Toml("node")),
                    Versions(".tool-versions", Form::Table("nodejs")),
                ],
                of_manager: None,
                of_home: Some(Versions(".config/mise/config.toml", Form::Toml("node"))),
            },
        ],
    },
    Manager {
        root: ("VOLTA_HOME", ".volta"),
        shims: "bin",
        tools: &[Tool {
            store: "tools/image/node",
            variable: "VOLTA_NODE_VERSION",
            files: &[Versions("package.json", Form::Json("/volta/node"))],
            of_manager: Some(Versions("tools/user/platform.json", Form::Json("/node/runtime"))),
            of_home: None,
        }],
    },
];

/// Whether a program is a shim, and which program it stands for.
pub(crate) enum Shim {
    No,
    For(PathBuf),
    /// The version in use has no such program.
    ForNothing,
}

/// Looks only at files. The answer is a program that the manager keeps, or another one of that name in `PATH`.
pub(crate) fn look_behind(program: &Path, around: &Surroundings) -> Shim {
    let (Some(name), Some(folder)) = (program.file_name(), program.parent()) else { return Shim::No };
    let Ok(folder) = fs::canonicalize(folder) else { return Shim::No };
    for manager in &MANAGERS {
        let root = manager.root(around);
        if fs::canonicalize(root.join(manager.shims)).is_ok_and(|shims| shims == folder) {
            let real = manager.tools.iter().find_map(|tool| tool.real(Path::new(name), &root, &folder, around));
            return real.map_or(Shim::ForNothing, Shim::For);
        }
    }
    Shim::No
}

impl Manager {
    fn root(&self, around: &Surroundings) -> PathBuf {
        let (variable, below_home) = self.root;
        let named = around.variables.get(variable).map(PathBuf::from).filter(|path| path.is_absolute());
        named.unwrap_or_else(|| around.home.join(below_home))
    }
}

impl Tool {
    fn real(&self, name: &Path, root: &Path, shims: &Path, around: &Surroundings) -> Option<PathBuf> {
        let store = root.join(self.store);
        let program = |version: PathBuf| Some(version.join("bin").join(name)).filter(|path| runs(path));
        let Some(named) = self.named(root, around) else {
            return installed(&store, "").into_iter().find_map(program);
        };
        named.iter().find_map(|version| match version.as_str() {
            "system" => {
                let others = around.path.iter().filter(|path| fs::canonicalize(path).is_ok_and(|path| path != shims));
                others.map(|path| path.join(name)).find(|path| runs(path))
            }
            "latest" => installed(&store, "").into_iter().find_map(program),
            // A file in a repository names it, so it must not lead out of the store.
            version if version.starts_with('.') || version.contains('/') => None,
            version => {
                let plain = version.strip_prefix("python-").unwrap_or(version);
                let exact = [version, plain].map(|version| store.join(version)).into_iter();
                exact.chain(installed(&store, &format!("{plain}."))).find_map(program)
            }
        })
    }

    /// The versions that the first place names that names any.
    fn named(&self, root: &Path, around: &Surroundings) -> Option<Vec<String>> {
        let variable = around.variables.get(self.variable).map(|text| words(text));
        let near = around.folder.ancestors().flat_map(|folder| self.files.iter().map(|file| file.read(folder)));
        let far = [self.of_manager.map(|file| file.read(root)), self.of_home.map(|file| file.read(&around.home))];
        let all = variable.into_iter().chain(near).chain(far.into_iter().flatten());
        all.into_iter().find(|versions| !versions.is_empty())
    }
}

impl Versions {
    fn read(self, folder: &Path) -> Vec<String> {
        let Versions(name, form) = self;
        let mut text = String::new();
        let file = File::open(folder.join(name)).ok().filter(|file| file.metadata().is_ok_and(|found| found.is_file()));
        if file.and_then(|file| file.take(LONGEST).read_to_string(&mut text).ok()).is_none() {
            return Vec::new();
        }
        let lines = text.lines().map(|line| line.split('#').next().unwrap_or_default().trim());
        match form {
            Form::Plain => lines.flat_map(words).collect(),
            Form::Table(tool) => {
                let line = lines.map(words).find(|words| words.first().is_some_and(|first| first == tool));
                line.into_iter().flatten().skip(1).collect()
            }
            Form::Toml(tool) => {
                let mut values = lines.filter_map(|line| line.split_once('='));
                let value = values.find(|(key, _)| key.trim().trim_matches('"') == tool).map(|(_, value)| value);
                value.and_then(|value| value.split(['"', '\'']).nth(1)).map(str::to_owned).into_iter().collect()
            }
            Form::Json(place) => {
                let value = serde_json::from_str::<serde_json::Value>(&text).ok();
                value.and_then(|value| value.pointer(place)?.as_str().map(str::to_owned)).into_iter().collect()
            }
        }
    }
}

fn words(text: &str) -> Vec<String> {
    text.split(|c: char| c.is_whitespace() || c == ':').filter(|word| !word.is_empty()).map(str::to_owned).collect()
}

/// Those whose version begins like this, the newest first.
fn installed(store: &Path, begins: &str) -> Vec<PathBuf> {
    let entries = fs::read_dir(store).into_iter().flatten().filter_map(Result::ok);
    let version = |entry: fs::DirEntry| {
        let name = entry.file_name().into_string().ok()?;
        let numbers: Option<Vec<u64>> = name.split('.').map(|part| part.parse().ok()).collect();
        Some((numbers?, entry.path())).filter(|_| name.starts_with(begins))
    };
    let mut all: Vec<_> = entries.filter_map(version).collect();
    all.sort();
    all.into_iter().rev().map(|(_, path)| path).collect()
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::testing::Folder;
    use std::os::unix::fs::PermissionsExt;

    fn program(path: &Path) {
        fs::create_dir_all(path.parent().unwrap()).unwrap();
        fs::write(path, "\x7fELF").unwrap();
        fs::set_permissions(path, fs::Permissions::from_mode(0o755)).unwrap();
    }

    fn behind(folder: &Folder, shim: &str) -> Option<PathBuf> {
        let mut around = folder.surroundings();
        around.folder = folder.path().join("project/deep");
        match look_behind(&around.home.join(shim), &around) {
            Shim::For(path) => Some(path.strip_prefix(&around.home).map_or(path.clone(), Path::to_owned)),
            Shim::No | Shim::ForNothing => None,
        }
    }

    #[test]
    fn each_manager_names_its_version_in_its_own_way() {
        let folder = Folder::new("shims");
        let home = folder.path().join("home");
        let project = folder.path().join("project");
        fs::create_dir_all(project.join("deep")).unwrap();
        for (shim, versions, wanted, file, text) in [
            (".pyenv/shims/python3", ".pyenv/versions", "3.11.9", ".python-version", "# mine\n3.11\n"),
            (".nodenv/shims/node", ".nodenv/versions", "20.1.0", ".node-version", "20.1.0"),
            (
                ".asdf/shims/npm",
                ".asdf/installs/nodejs",
                "20.1.0",
                ".tool-versions",
                "python 3.1\nnodejs 20.1.0 system\n",
            ),
            (
                ".local/share/mise/shims/node",
                ".local/share/mise/installs/node",
                "20.1.0",
                "mise.toml",
                "[tools]\nnode = \"20\"\n",
            ),
            (
                ".volta/bin/node",
                ".volta/tools/image/node",
                "20.1.0",
                "package.json",
                "{\"volta\": {\"node\": \"20.1.0\"}}",
            ),
        ] {
            program(&home.join(shim));
            let name = Path::new(shim).file_name().unwrap();
            let at = |version: &str| Path::new(versions).join(version).join("bin").join(name);
            for version in [wanted, "99.10.1", "99.9.1"] {
                program(&home.join(at(version)));
            }
            assert_eq!(behind(&folder, shim), Some(at("99.10.1")), "{shim}: the newest where nobody says");
            fs::write(project.join(file), text).unwrap();
            assert_eq!(behind(&folder, shim), Some(at(wanted)), "{shim}");
            fs::remove_file(project.join(file)).unwrap();
        }
    }

    #[test]
    fn a_version_does_not_lead_out_of_the_store() {
        let folder = Folder::new("shim-out");
        let home = folder.path().join("home");
        program(&home.join(".pyenv/shims/python3"));
        program(&home.join(".pyenv/versions/3.12.1/bin/python3"));
        program(&home.join("bin/python3"));
        program(&folder.path().join("project/bin/python3"));
        fs::create_dir_all(folder.path().join("project/deep")).unwrap();
        for (version, found) in [
            ("../../../project", None),
            ("/project", None),
            ("..", None),
            ("3.13", None),
            ("system", Some(Path::new("bin/python3").to_owned())),
        ] {
            fs::write(folder.path().join("project/.python-version"), version).unwrap();
            assert_eq!(behind(&folder, ".pyenv/shims/python3"), found, "{version}");
        }
        let mut around = folder.surroundings();
        around.folder = folder.path().join("project/deep");
        assert!(matches!(look_behind(&home.join("bin/python3"), &around), Shim::No));
    }
}
