//! Runs the code once behind a wall of this machine, to learn what it shows. What is signed is what was seen here.

use super::package::{Code, Package};
use super::program::Laid;
use crate::client::ClientError;
use crate::config::found_toolchains;
use crate::report::chain;
use crate::serve::PROXY_PORT;
use bundle::Surface;
use bytes::Bytes;
use egress::proxy::Outfit;
use isolate::{Carrier, IsolateSettings, IsolateWall};
use policy::{Allowance, permit};
use process::{Network, ProcessSettings, ProcessWall};
use sandbox::{Deployment, Pool, PoolSettings, Program, Shows, Wall};
use std::error::Error;
use std::sync::Arc;

pub async fn surface(package: &Package) -> Result<Surface, ClientError> {
    let refused = |code: &str, message: String| ClientError::refused(code, message, None);
    let permit = permit(&package.manifest.ask(), &Allowance::default())
        .map_err(|refusal| refused("refused", refusal.to_string()))?;
    // What lies there is gone when this is dropped.
    let laid = match &package.code {
        Code::Module(_) => None,
        Code::Program(files) => Some(Laid::out(files)?),
    };
    let deployment = Deployment {
        tenant: "local".to_owned(),
        server: package.manifest.name.to_string(),
        id: "trial".to_owned(),
        program: program(package, laid.as_ref(), permit.limits().source_kb)?,
        permit,
        shows: Shows::default(),
    };
    let pool = Pool::new(wall(&package.code).await?, PoolSettings { spares: 0, ..PoolSettings::default() });
    let seed = pool.seed(&Arc::new(deployment)).await;
    let seed = seed.map_err(|failure| {
        let message = match &package.code {
            Code::Module(source) => source.trace(&failure.message),
            Code::Program(_) => {
                let hint = advice(&failure.message, package);
                return ClientError::refused(failure.code.as_str(), failure.message, hint);
            }
        };
        refused(failure.code.as_str(), message)
    })?;
    let shown =
        serde_json::from_str(seed.surface().get()).map_err(|error| refused("init_failed", error.to_string()))?;
    let surface = Surface::new(shown).map_err(|error| refused("init_failed", error.to_string()))?;
    match surface.hidden() {
        Some(hidden) => Err(refused("init_failed", hidden.to_string())),
        None => Ok(surface),
    }
}

/// What a program that does not start may be missing, as its last words have it.
fn advice(words: &str, package: &Package) -> Option<String> {
    if install::advice::wants_scripts(words) {
        return Some("a part of it is made by install scripts, which run with `--scripts`, in a jail".to_owned());
    }
    if install::advice::wants_older_sdk(words) {
        return Some(
            "it is written for an older `mcp` than the newest: `--with 'mcp<2'` bounds what is installed".to_owned(),
        );
    }
    if install::advice::wants_to_write(words) {
        return Some("it starts in `/app`, which is read-only; it may write to `/tmp` and `/home/user`".to_owned());
    }
    if install::advice::wants_room(words) {
        let more = package.manifest.limits.scratch_mb * 4;
        return Some(format!("it found no room for its files; `--limit scratch_mb={more}` asks for more"));
    }
    let given = |name: &str| matches!(&package.program, bundle::Program::Command(command) if command.environment.contains_key(name));
    let names = install::advice::variables(words, |_| false).into_iter();
    let names: Vec<&str> = names.filter(|name| !given(name)).collect();
    let first = names.first()?;
    let secret = ["KEY", "TOKEN", "SECRET", "PASSWORD"].iter().any(|end| first.ends_with(end));
    let more = if secret {
        "; if it is a secret, give it any text, and bind the secret with `--manifest FILE` (docs/programs.md)"
    } else {
        ""
    };
    Some(format!("it speaks of {}: `--env {first}=VALUE` sets such a variable{more}", names.join(", ")))
}

fn program(package: &Package, laid: Option<&Laid>, source_kb: u64) -> Result<Program, ClientError> {
    match (&package.code, &package.program) {
        (Code::Module(source), program) => {
            if source.code.len() as u64 > source_kb * 1024 {
                let message = format!("the code is larger than {source_kb} KiB (`source_kb`)");
                return Err(ClientError::refused("init_failed", message, None));
            }
            let code = Bytes::from(source.code.clone());
            Ok(Program::Module { source: code, file_name: program.file().to_owned() })
        }
        (Code::Program(_), bundle::Program::Command(command)) => {
            let folder = laid.map(|laid| laid.folder().to_owned()).unwrap_or_default();
            Ok(gateway::command(command.clone(), folder, !package.manifest.egress.is_empty()))
        }
        (Code::Program(_), bundle::Program::Module { .. }) => {
            Err(ClientError::usage("bad_manifest", "a folder of files is run by a `command`"))
        }
    }
}

async fn wall(code: &Code) -> Result<Arc<dyn Wall>, ClientError> {
    match code {
        Code::Module(_) => {
            let carrier = Carrier::find().map_err(|error| no_wall(&isolate::WallError::from(error)))?;
            let wall = IsolateWall::start(IsolateSettings::new(carrier)).await.map_err(|error| no_wall(&error))?;
            Ok(Arc::new(wall))
        }
        Code::Program(_) => {
            // It may look for its proxy, and nobody answers: it is not called here.
            let Outfit { port, variables, files } = Outfit::new(PROXY_PORT, None);
            let network = Some(Network { port, variables, files });
            let settings =
                ProcessSettings { toolchains: found_toolchains(), network, warm: 0, ..ProcessSettings::default() };
            Ok(Arc::new(ProcessWall::start(settings).map_err(|error| no_wall(&error))?))
        }
    }
}

fn no_wall(error: &dyn Error) -> ClientError {
    let hint = "the code is run once on this machine before it is signed; `bulkhead doctor` says what is missing";
    let message = format!("the wall cannot be started: {}", chain(error));
    ClientError::Refused { fault: true, code: "wall_unavailable".to_owned(), message, hint: Some(hint.to_owned()) }
}
