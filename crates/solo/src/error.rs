use std::io;
use std::path::PathBuf;

/// Why a server does not run, in words for the person who wrote the command.
///
/// Each says its causes itself, in one line: none is repeated as a source.
#[derive(Debug, thiserror::Error)]
#[non_exhaustive]
pub enum Error {
    #[error("there is no command to run; write it after `--`")]
    NoCommand,
    #[error("`{}` cannot be shown to the server: {why}", path.display())]
    Folder { path: PathBuf, why: String },
    #[error("`{0}` is no variable: write `--env NAME` or `--env NAME=VALUE`")]
    Variable(String),
    #[error("`--allow`: {0}")]
    Rule(egress::Denied),
    #[error("`--tcp {0}` names no port of a host: write `localhost:PORT` or `NAME:PORT`")]
    Tcp(String),
    #[error("port {port} of `{host}` cannot be had inside: {error}")]
    Listen { host: String, port: u16, error: io::Error },
    #[error("the limit `{0}` cannot be zero")]
    Limit(&'static str),
    #[error("the profiles of known servers do not parse: {0}")]
    Profiles(#[from] toml::de::Error),
    #[error(transparent)]
    Install(install::Error),
    #[error("`{}` cannot be used: {error}", path.display())]
    Path { path: PathBuf, error: io::Error },
    #[error("the jail: {}", causes(.0))]
    Jail(jail::program::SpawnError),
    #[error("the jail: {}", causes(.0))]
    Confine(jail::Error),
    #[error("the way to the network: {0}")]
    Door(egress::Denied),
    #[error("the server's pipes, or signals to it: {0}")]
    Relay(io::Error),
    #[error("`{}` is no plain JSON, so it cannot be changed without losing something: {why}", path.display())]
    Json { path: PathBuf, why: String },
    #[error("`{}` has no `mcpServers`, `servers` or `mcp.servers` in it", .0.display())]
    NoServers(PathBuf),
    #[error("`{}` has changed since it was read; nothing was written", .0.display())]
    Changed(PathBuf),
    #[error("there are too many backups such as `{}`; delete those that you do not need; nothing was written", .0.display())]
    Backups(PathBuf),
}

impl From<jail::program::SpawnError> for Error {
    fn from(error: jail::program::SpawnError) -> Error {
        Error::Jail(error)
    }
}

impl From<jail::Error> for Error {
    fn from(error: jail::Error) -> Error {
        Error::Confine(error)
    }
}

/// What this machine fails at is the same for a server and for an installer.
impl From<install::Error> for Error {
    fn from(error: install::Error) -> Error {
        match error {
            install::Error::Jail(error) => Error::Jail(error),
            install::Error::Confine(error) => Error::Confine(error),
            install::Error::Attend(error) => Error::Relay(error),
            error => Error::Install(error),
        }
    }
}

fn causes(error: &dyn std::error::Error) -> String {
    let mut text = error.to_string();
    let mut next = error.source();
    while let Some(cause) = next {
        text.push_str(": ");
        text.push_str(&cause.to_string());
        next = cause.source();
    }
    text
}

impl Error {
    pub(crate) fn path(path: impl Into<PathBuf>) -> impl FnOnce(io::Error) -> Error {
        let path = path.into();
        move |error| Error::Path { path, error }
    }
}
