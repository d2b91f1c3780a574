//! Why there is no host.

use crate::config::MasterKeyProblem;
use crate::report::{self, FAULT, REFUSED, USAGE};
use gateway::StartError;
use gateway::observe::TraceError;
use isolate::WallError;
use registry::{OpenError, RegistryError};
use std::io::ErrorKind;
use std::process::ExitCode;

#[derive(Debug, thiserror::Error)]
pub enum ServeError {
    #[error("traces cannot be sent")]
    Traces(#[from] TraceError),
    #[error("the log cannot be started: {0}")]
    Log(String),
    #[error("the system does not keep this process's memory out of core files")]
    Memory(#[source] std::io::Error),
    #[error("the runtime cannot be started")]
    Runtime(#[source] std::io::Error),
    #[error("signals cannot be listened to")]
    Signals(#[source] std::io::Error),
    #[error(transparent)]
    Open(#[from] OpenError),
    #[error("the way to the network cannot be made")]
    Egress(#[source] egress::Denied),
    #[error("`bulkhead dev` listens on loopback only, and not on `{0}`")]
    DevListens(std::net::SocketAddr),
    #[error("`egress.extra_roots`: {0}")]
    Roots(String),
    #[error("there is no master key for the tenants' secrets")]
    MasterKey(#[from] MasterKeyProblem),
    #[error("the tenants' secrets cannot be opened")]
    Secrets(#[source] RegistryError),
    #[error("the wall cannot be started")]
    Wall(#[from] WallError),
    #[error("the process wall cannot be started")]
    Programs(#[from] process::WallError),
    #[error(transparent)]
    Gateway(#[from] StartError),
}

impl ServeError {
    pub fn explain(&self) -> ExitCode {
        let hint = self.hint();
        report::fail(self.exit(), "serve", self, hint.as_deref(), false)
    }

    fn exit(&self) -> u8 {
        match self {
            ServeError::Open(OpenError::Locked { .. } | OpenError::Exposed { .. }) => REFUSED,
            ServeError::Gateway(StartError::Listen(_, cause)) if cause.kind() == ErrorKind::AddrInUse => REFUSED,
            ServeError::Gateway(StartError::Auth(_)) | ServeError::Traces(_) | ServeError::Roots(_) => USAGE,
            ServeError::MasterKey(_) | ServeError::DevListens(_) => USAGE,
            _ => FAULT,
        }
    }

    fn hint(&self) -> Option<String> {
        match self {
            ServeError::Open(error) => error.hint(),
            ServeError::MasterKey(MasterKeyProblem::Key(error)) => error.hint(),
            ServeError::Secrets(error) => error.hint(),
            ServeError::Programs(_) => Some("`[process] enabled = false` does without it".to_owned()),
            ServeError::Wall(_) => {
                Some("`bulkhead doctor` says what this machine offers and what is missing".to_owned())
            }
            ServeError::Gateway(StartError::Listen(_, cause)) => match cause.kind() {
                ErrorKind::AddrInUse => {
                    Some("something else listens there; `--listen` names another address".to_owned())
                }
                ErrorKind::PermissionDenied => Some("low ports need rights; take one above 1023".to_owned()),
                ErrorKind::AddrNotAvailable => Some("this machine has no such address".to_owned()),
                _ => None,
            },
            ServeError::Gateway(StartError::Auth(error)) => error.hint().map(str::to_owned),
            ServeError::Gateway(StartError::Registry(error)) => error.hint(),
            _ => None,
        }
    }
}
