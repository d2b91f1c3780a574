//! Runs the code once behind a wall of this machine, to learn what it shows. What is signed is what was seen here.

use super::package::Package;
use crate::client::ClientError;
use bundle::Surface;
use bytes::Bytes;
use isolate::{Carrier, IsolateSettings, IsolateWall, WallError};
use policy::{Allowance, permit};
use sandbox::{Deployment, Pool, PoolSettings, Program, Shows};
use std::sync::Arc;

pub async fn surface(package: &Package) -> Result<Surface, ClientError> {
    let refused = |code: &str, message: String| ClientError::refused(code, message, None);
    let permit = permit(&package.manifest.ask(), &Allowance::default())
        .map_err(|refusal| refused("refused", refusal.to_string()))?;
    let source = package.source.code.clone();
    let most = permit.limits().source_kb;
    if source.len() as u64 > most * 1024 {
        return Err(refused("init_failed", format!("the code is larger than {most} KiB (`source_kb`)")));
    }
    let deployment = Deployment {
        tenant: "local".to_owned(),
        server: package.manifest.name.to_string(),
        id: "trial".to_owned(),
        program: Program::Module { source: Bytes::from(source), file_name: package.entry.to_string() },
        permit,
        shows: Shows::default(),
    };
    let carrier = Carrier::find().map_err(|error| no_wall(&error.into()))?;
    let wall = IsolateWall::start(IsolateSettings::new(carrier)).await.map_err(|error| no_wall(&error))?;
    let pool = Pool::new(Arc::new(wall), PoolSettings { spares: 0, ..PoolSettings::default() });
    let seed = pool.seed(&Arc::new(deployment)).await;
    let seed = seed.map_err(|failure| refused(failure.code.as_str(), package.source.trace(&failure.message)))?;
    let shown =
        serde_json::from_str(seed.surface().get()).map_err(|error| refused("init_failed", error.to_string()))?;
    Surface::new(shown).map_err(|error| refused("init_failed", error.to_string()))
}

fn no_wall(error: &WallError) -> ClientError {
    let hint = "the code is run once on this machine before it is signed; `bulkhead doctor` says what is missing";
    let mut message = format!("the wall cannot be started: {error}");
    let mut cause = std::error::Error::source(error);
    while let Some(error) = cause {
        message.push_str(&format!(": {error}"));
        cause = error.source();
    }
    ClientError::Refused { fault: true, code: "wall_unavailable".to_owned(), message, hint: Some(hint.to_owned()) }
}
