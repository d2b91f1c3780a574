//! Why a command got no answer, or another than it wanted.

use crate::report::{self, FAULT, REFUSED, USAGE};
use crate::terminal;
use reqwest::StatusCode;
use std::path::PathBuf;
use std::process::ExitCode;

#[derive(Debug, thiserror::Error)]
pub enum ClientError {
    #[error("the host's address: {message}")]
    Url { message: String, hint: Option<String> },
    #[error("the key has characters that no key has")]
    Key,
    #[error("the key's file `{}` cannot be read", path.display())]
    KeyFile {
        path: PathBuf,
        #[source]
        source: std::io::Error,
    },
    #[error("the key's file `{}` is empty", path.display())]
    NoKeyInFile { path: PathBuf },
    #[error("{message}")]
    Usage {
        code: &'static str,
        message: String,
        hint: Option<String>,
        #[source]
        source: Option<std::io::Error>,
    },
    #[error("no client could be made")]
    Client(#[source] reqwest::Error),
    #[error("the runtime cannot be started")]
    Runtime(#[source] std::io::Error),
    #[error("the host at {url} cannot be reached")]
    Unreachable {
        url: String,
        #[source]
        source: Root,
    },
    #[error("the host at {url} did not answer in time")]
    Timeout { url: String },
    #[error("the connection to the host at {url} broke")]
    Broken {
        url: String,
        #[source]
        source: Root,
    },
    #[error("the host at {url} gave an answer that makes no sense: {what}")]
    Nonsense { url: String, what: String },
    /// Its message has no code in it, as programs get that apart.
    #[error("{message}")]
    Refused { fault: bool, code: String, message: String, hint: Option<String> },
}

/// What lies at the bottom of an error: "connection refused", without the layers that passed it on.
#[derive(Debug, thiserror::Error)]
#[error("{0}")]
pub struct Root(String);

impl Root {
    pub fn of(error: &dyn std::error::Error) -> Root {
        let mut root = error;
        while let Some(cause) = root.source() {
            root = cause;
        }
        Root(root.to_string())
    }
}

impl ClientError {
    pub fn usage(code: &'static str, message: impl Into<String>) -> ClientError {
        ClientError::Usage { code, message: message.into(), hint: None, source: None }
    }

    pub fn refused(code: impl Into<String>, message: impl Into<String>, hint: Option<String>) -> ClientError {
        ClientError::Refused { fault: false, code: code.into(), message: message.into(), hint }
    }

    /// What the host said with a status that is no success.
    pub fn status(status: StatusCode, code: String, message: String, hint: Option<String>) -> ClientError {
        // A host that is busy says no; one that stumbles is at fault.
        let fault = status.is_server_error() && status != StatusCode::SERVICE_UNAVAILABLE;
        ClientError::Refused { fault, code, message, hint }
    }

    pub fn code(&self) -> &str {
        match self {
            ClientError::Url { .. } => "bad_url",
            ClientError::Key | ClientError::KeyFile { .. } | ClientError::NoKeyInFile { .. } => "bad_key",
            ClientError::Usage { code, .. } => code,
            ClientError::Client(_) | ClientError::Runtime(_) => "internal",
            ClientError::Unreachable { .. } | ClientError::Broken { .. } => "unreachable",
            ClientError::Timeout { .. } => "timeout",
            ClientError::Nonsense { .. } => "bad_answer",
            ClientError::Refused { code, .. } => code,
        }
    }

    fn exit(&self) -> u8 {
        match self {
            ClientError::Refused { fault: false, .. } => REFUSED,
            ClientError::Url { .. }
            | ClientError::Key
            | ClientError::KeyFile { .. }
            | ClientError::NoKeyInFile { .. }
            | ClientError::Usage { .. } => USAGE,
            _ => FAULT,
        }
    }

    fn hint(&self) -> Option<&str> {
        match self {
            ClientError::Url { hint, .. } | ClientError::Usage { hint, .. } | ClientError::Refused { hint, .. } => {
                hint.as_deref()
            }
            ClientError::Unreachable { .. } => {
                Some("`bulkhead serve` starts one here; `--url` or `BULKHEAD_URL` names another")
            }
            ClientError::Nonsense { .. } => Some("is this a Bulkhead host? `--url` or `BULKHEAD_URL` names another"),
            _ => None,
        }
    }

    /// Says it, and gives the exit code.
    pub fn explain(&self, as_json: bool) -> ExitCode {
        if let (ClientError::Refused { code, message, hint, .. }, false) = (self, as_json) {
            report::talk(&terminal::text(&format!("error: {code}: {message}")));
            if let Some(hint) = hint {
                report::talk(&terminal::text(&format!("hint: {hint}")));
            }
            return ExitCode::from(self.exit());
        }
        report::fail(self.exit(), self.code(), self, self.hint(), as_json)
    }
}
