//! A host with the process wall, called as the gateway calls it.

use crate::server::Server;
use anyhow::{Result, anyhow};
use policy::{Allowance, Ask, Boundary, Limits, permit};
use process::{ProcessSettings, ProcessWall};
use sandbox::{
    Deployment, Failure, LogLine, NoNetwork, Operation, Pool, PoolSettings, Program, Request, Shows, Speaks,
};
use std::collections::BTreeMap;
use std::path::{Path, PathBuf};
use std::sync::Arc;
use std::sync::atomic::{AtomicU64, Ordering};

pub struct Host {
    pool: Pool,
    /// Where the servers' files are.
    files: PathBuf,
    next: AtomicU64,
}

/// A deployment that has sessions.
pub struct Deployed {
    pub server: Server,
    deployment: Arc<Deployment>,
}

impl Host {
    /// Must be called inside a tokio runtime.
    pub fn start(files: &Path, settings: PoolSettings) -> Result<Host> {
        let wall = ProcessWall::start(ProcessSettings::default())?;
        Ok(Host { pool: Pool::new(Arc::new(wall), settings), files: files.to_owned(), next: AtomicU64::new(0) })
    }

    /// Nothing runs yet: the first call starts it.
    pub fn deploy(&self, server: Server) -> Result<Deployed> {
        let ask = Ask { limits: Limits::of_programs(), boundary: Boundary::Session, ..Ask::default() };
        let program = Program::Command {
            files: self.files.clone(),
            command: server.command(Path::new("/app")),
            environment: BTreeMap::new(),
            network: false,
            speaks: Speaks::Stdio,
        };
        let deployment = Arc::new(Deployment {
            tenant: "bench".to_owned(),
            server: "server".to_owned(),
            id: format!("deployment-{}", self.next.fetch_add(1, Ordering::Relaxed)),
            program,
            permit: permit(&ask, &Allowance::default())?,
            shows: Shows::default(),
        });
        Ok(Deployed { server, deployment })
    }

    /// Calls the server's tool in a session.
    pub async fn call(&self, deployed: &Deployed, session: &str) -> Result<()> {
        let result = self.try_call(deployed, session).await.map_err(|failure| anyhow!("{failure}"))?;
        deployed.server.check(&result)
    }

    /// The same, where it may fail.
    pub async fn try_call(&self, deployed: &Deployed, session: &str) -> Result<Vec<u8>, Failure> {
        let (tool, arguments) = deployed.server.call();
        let request = Request {
            operation: Operation::Tool,
            name: tool.to_owned(),
            input: arguments.into(),
            session: Some(session.to_owned()),
        };
        let answer = self.pool.call(&deployed.deployment, &request, Arc::new(NoNetwork(|_: LogLine| {}))).await;
        answer.outcome.map(|result| result.to_vec())
    }

    /// Lets go of a deployment with all its sessions.
    pub fn release(&self, deployed: &Deployed) {
        self.pool.release(&deployed.deployment.id);
    }
}
