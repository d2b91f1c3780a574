//! What can go wrong, in words for people and codes for programs.

use std::io;
use std::path::{Path, PathBuf};

/// Why something could not be read or changed.
#[derive(Debug, thiserror::Error)]
pub enum RegistryError {
    #[error("there is no {kind} `{name}`")]
    NotFound { kind: &'static str, name: String },
    #[error("the {kind} `{name}` exists already")]
    Exists { kind: &'static str, name: String },
    #[error("`{name}` cannot be the name of a {kind}")]
    BadName { kind: &'static str, name: String },
    #[error("{what}")]
    BadValue { what: String },
    #[error("{what}")]
    Conflict { what: String, hint: Option<String> },
    /// Somebody agreed to a proposal that is not there any more, or not as it was.
    #[error("{what}")]
    Stale { what: String, hint: Option<String> },
    #[error("{what}")]
    Forbidden { what: String, hint: Option<String> },
    #[error("the lock is not for the next step: {0}")]
    Replayed(bundle::Replayed),
    #[error("this host has no master key")]
    NoMasterKey,
    #[error("the secrets were sealed with another master key ({sealed_with}; this one is {given})")]
    WrongMasterKey { sealed_with: String, given: String },
    #[error("{what}")]
    Quota { what: String },
    #[error(
        "the disk of the data directory has {free_mb} MiB free, and {reserve_mb} are kept for calls (`disk.reserve_mb`)"
    )]
    DiskReserved { free_mb: u64, reserve_mb: u64 },
    #[error("the disk of the data directory is full")]
    DiskFull(#[source] Cause),
    #[error("the data directory cannot be written")]
    ReadOnly(#[source] Cause),
    #[error("the data directory is damaged: {what}")]
    Corrupt {
        what: String,
        #[source]
        cause: Option<Cause>,
    },
    #[error("the registry failed: {what}")]
    Internal {
        what: String,
        #[source]
        cause: Option<Cause>,
    },
}

/// For the log of the host; it may name paths, so no tenant reads it.
pub type Cause = Box<dyn std::error::Error + Send + Sync>;

impl RegistryError {
    /// Stable: programs may rely on it.
    pub fn code(&self) -> &'static str {
        match self {
            RegistryError::NotFound { .. } => "not_found",
            RegistryError::Exists { .. } => "exists",
            RegistryError::BadName { .. } => "bad_name",
            RegistryError::BadValue { .. } => "bad_value",
            RegistryError::Conflict { .. } => "conflict",
            RegistryError::Stale { .. } => "stale_proposal",
            RegistryError::Forbidden { .. } => "forbidden",
            RegistryError::Replayed(_) => "replayed",
            RegistryError::NoMasterKey => "no_master_key",
            RegistryError::WrongMasterKey { .. } => "wrong_master_key",
            RegistryError::Quota { .. } => "quota",
            RegistryError::DiskFull(_) | RegistryError::DiskReserved { .. } => "disk_full",
            RegistryError::ReadOnly(_) => "read_only",
            RegistryError::Corrupt { .. } => "corrupt",
            RegistryError::Internal { .. } => "internal",
        }
    }

    pub fn hint(&self) -> Option<String> {
        match self {
            RegistryError::Exists { .. } => Some("choose another name, or delete it first".to_owned()),
            RegistryError::BadName { name, .. } => Some(crate::name::explain(name)),
            RegistryError::Conflict { hint, .. }
            | RegistryError::Stale { hint, .. }
            | RegistryError::Forbidden { hint, .. } => hint.clone(),
            RegistryError::Replayed(_) => Some("what is deployed has changed since; deploy again".to_owned()),
            RegistryError::NoMasterKey => Some("secrets can be used once the host's operator gives it one".to_owned()),
            RegistryError::WrongMasterKey { .. } => {
                Some("give the host the key with that id, or restore the data directory that this one fits".to_owned())
            }
            RegistryError::Quota { .. } => Some(
                "delete servers that nobody needs any more, or have the operator raise it: `bulkhead tenant set --disk-bytes`"
                    .to_owned(),
            ),
            RegistryError::DiskFull(_) | RegistryError::DiskReserved { .. } => Some("nothing was changed; make room and try again".to_owned()),
            RegistryError::ReadOnly(_) => {
                Some("nothing was changed; the host's operator must make it writable".to_owned())
            }
            RegistryError::Corrupt { .. } => Some("the host's operator should restore the data directory".to_owned()),
            _ => None,
        }
    }

    pub(crate) fn not_found(kind: &'static str, name: &str) -> RegistryError {
        RegistryError::NotFound { kind, name: name.to_owned() }
    }

    pub(crate) fn internal(what: &str, cause: impl Into<Cause>) -> RegistryError {
        RegistryError::Internal { what: what.to_owned(), cause: Some(cause.into()) }
    }

    pub(crate) fn corrupt(what: impl Into<String>) -> RegistryError {
        RegistryError::Corrupt { what: what.into(), cause: None }
    }
}

impl From<rusqlite::Error> for RegistryError {
    fn from(error: rusqlite::Error) -> RegistryError {
        use rusqlite::ErrorCode;
        match error.sqlite_error_code() {
            Some(ErrorCode::DiskFull) => RegistryError::DiskFull(error.into()),
            Some(ErrorCode::ReadOnly) => RegistryError::ReadOnly(error.into()),
            Some(ErrorCode::DatabaseCorrupt | ErrorCode::NotADatabase) => {
                RegistryError::Corrupt { what: "the database cannot be read".to_owned(), cause: Some(error.into()) }
            }
            _ => RegistryError::internal("the database did not do what it was asked", error),
        }
    }
}

impl From<io::Error> for RegistryError {
    fn from(error: io::Error) -> RegistryError {
        match Trouble::of(&error) {
            Some(Trouble::Full) => RegistryError::DiskFull(error.into()),
            Some(Trouble::ReadOnly) => RegistryError::ReadOnly(error.into()),
            None => RegistryError::internal("a file could not be read or written", error),
        }
    }
}

impl From<getrandom::Error> for RegistryError {
    fn from(error: getrandom::Error) -> RegistryError {
        RegistryError::internal("the system gave no random numbers", error)
    }
}

/// What keeps a disk from taking more.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Trouble {
    Full,
    ReadOnly,
}

impl Trouble {
    pub(crate) fn of(error: &io::Error) -> Option<Trouble> {
        match error.kind() {
            io::ErrorKind::StorageFull | io::ErrorKind::QuotaExceeded => Some(Trouble::Full),
            io::ErrorKind::ReadOnlyFilesystem | io::ErrorKind::PermissionDenied => Some(Trouble::ReadOnly),
            _ => None,
        }
    }
}

/// Why a data directory cannot be used.
#[derive(Debug, thiserror::Error)]
pub enum OpenError {
    #[error("`{}` is in use by another host{holder}", dir.display())]
    Locked { dir: PathBuf, holder: Holder },
    #[error("`{}` was written by a newer version: its schema is {found}, this program knows {known}", dir.display())]
    Newer { dir: PathBuf, found: i64, known: i64 },
    #[error("everybody may write to `{}`", dir.display())]
    Exposed { dir: PathBuf },
    #[error("`{}` holds no operator's token", path.display())]
    OperatorKey { path: PathBuf },
    #[error("cannot {what} `{}`", path.display())]
    Io {
        what: &'static str,
        path: PathBuf,
        #[source]
        source: io::Error,
    },
    #[error("cannot use the database in `{}`", dir.display())]
    Registry {
        dir: PathBuf,
        #[source]
        source: RegistryError,
    },
}

/// Who holds the lock, as far as it said so.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct Holder {
    pub pid: Option<u32>,
    /// RFC 3339.
    pub since: Option<String>,
}

impl std::fmt::Display for Holder {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        match (&self.pid, &self.since) {
            (Some(pid), Some(since)) => write!(f, ", process {pid}, since {since}"),
            (Some(pid), None) => write!(f, ", process {pid}"),
            _ => Ok(()),
        }
    }
}

impl OpenError {
    pub fn code(&self) -> &'static str {
        match self {
            OpenError::Locked { .. } => "locked",
            OpenError::Newer { .. } => "newer_schema",
            OpenError::Exposed { .. } => "exposed",
            OpenError::OperatorKey { .. } => "operator_key",
            OpenError::Io { source, .. } => match Trouble::of(source) {
                Some(Trouble::Full) => "disk_full",
                Some(Trouble::ReadOnly) => "read_only",
                None => "internal",
            },
            OpenError::Registry { source, .. } => source.code(),
        }
    }

    pub fn hint(&self) -> Option<String> {
        match self {
            OpenError::Locked { .. } => Some("stop that host, or choose another directory with --data".to_owned()),
            OpenError::Newer { .. } => Some("run the version that wrote it, or a later one".to_owned()),
            OpenError::Exposed { .. } => Some("take the right to write from others: chmod o-w".to_owned()),
            OpenError::OperatorKey { .. } => Some("remove the file, and the host makes a new one".to_owned()),
            OpenError::Io { .. } | OpenError::Registry { .. } => match self.code() {
                "disk_full" => Some("make room on its disk".to_owned()),
                "read_only" => Some("the host must be able to write there".to_owned()),
                "corrupt" => Some("restore the directory from a backup".to_owned()),
                _ => None,
            },
        }
    }

    pub(crate) fn io(what: &'static str, path: &Path) -> impl FnOnce(io::Error) -> OpenError {
        let path = path.to_owned();
        move |source| OpenError::Io { what, path, source }
    }
}
