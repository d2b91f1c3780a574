use std::io;
use std::path::PathBuf;

/// Why a package cannot be had or a folder not be packed, in words for the person who named it.
#[derive(Debug, thiserror::Error)]
#[non_exhaustive]
pub enum Error {
    #[error("there is no program `{0}` in the folders of PATH")]
    NoProgram(String),
    #[error(
        "`{}` belongs to a version manager, and the version in use there has no such program; install it, or choose \
         another version with the manager's own variable or file", .0.display()
    )]
    NoVersion(PathBuf),
    #[error("`{text}` names no package to deploy: {why}")]
    Spec { text: String, why: String },
    #[error("`{what}` cannot be found out: {why}")]
    Unknown { what: &'static str, why: String },
    #[error("`{0}` is not installed yet, and `--offline` keeps it from being fetched")]
    NotInstalled(String),
    #[error("`{package}` could not be installed: {why}")]
    Install { package: String, why: String },
    #[error("`{package}` is not for {}: {why}", interpreter.display())]
    Interpreter { package: String, interpreter: PathBuf, why: String },
    #[error("`{package}` has no program to run: {why}")]
    NothingToRun { package: String, why: String },
    #[error("`{}` cannot be used", path.display())]
    Path {
        path: PathBuf,
        #[source]
        source: io::Error,
    },
    #[error("`{}` cannot be part of a program: {why}", path.display())]
    Content { path: PathBuf, why: String },
    #[error("`{}` holds more than {what}", path.display())]
    TooMuch { path: PathBuf, what: String },
    #[error("`{}` cannot be packed", path.display())]
    Layer {
        path: PathBuf,
        #[source]
        source: bundle::LayerError,
    },
    #[error("`{}` has changed since it was packed", .0.display())]
    Changed(PathBuf),
    #[error("what was packed cannot be written")]
    Write(#[source] io::Error),
    #[error("the jail of the installer does not start")]
    Jail(#[from] jail::program::SpawnError),
    #[error("the jail of the installer cannot be ended")]
    Confine(#[from] jail::Error),
    #[error("the installer cannot be attended to")]
    Attend(#[source] io::Error),
}

impl Error {
    pub(crate) fn path(path: impl Into<PathBuf>) -> impl FnOnce(io::Error) -> Error {
        let path = path.into();
        move |source| Error::Path { path, source }
    }

    pub(crate) fn content(path: impl Into<PathBuf>, why: impl Into<String>) -> Error {
        Error::Content { path: path.into(), why: why.into() }
    }
}
