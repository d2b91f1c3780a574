//! A program that is started and has said what it offers.

use crate::driver::{Answer, Driver, NewCall, Peer};
use crate::launch::{Launcher, unavailable};
use crate::peer::greet::greet;
use crate::peer::offer::{Offered, list};
use crate::room::Need;
use sandbox::{Code, Failure};
use std::sync::Arc;
use std::time::Instant;

/// A program that waits for calls. Dropped, it is killed.
pub(crate) struct Instance {
    pub(crate) peer: Peer,
    pub(crate) offered: Offered,
    pub(crate) born: Instant,
}

impl Instance {
    /// Starts one under the limits of initialisation, and holds what it shows against what was agreed.
    pub(crate) async fn start(launcher: &Launcher, need: Need) -> Result<Instance, Failure> {
        let (limits, shows) = (launcher.limits(), launcher.shows());
        let tenant = &launcher.deployment.tenant;
        let place = launcher.ground.room.enter(tenant, limits.memory_mb << 20, need).await.ok_or_else(full)?;
        let started = launcher.launch().await?;
        let peer = Driver::start(started, limits.clone(), shows.clone(), place)
            .map_err(|error| unavailable(&format!("the proxy of a program cannot be served: {error}")))?;
        let introduced = peer.during(NewCall::initialisation(limits.clone()), |call| introduce(&peer, call)).await;
        let offered = match introduced {
            Ok((introduced, _)) => introduced.map_err(|why| Failure::new(Code::InitFailed, why))?,
            Err(Answer { failure, .. }) => return Err(failure),
        };
        shows.check(&offered.surface)?;
        peer.process().settle(limits.cpu_percent)?;
        Ok(Instance { peer, offered, born: Instant::now() })
    }
}

fn full() -> Failure {
    let why = "the programs on this host use all of their memory (`memory_mb` of `[process]`), and none of them has to \
               give way to this tenant; try again later, or end sessions that are not needed";
    Failure::new(Code::Busy, why)
}

/// How often lists may change while a server gets ready: many register some tools only when they know their client.
const MOST_CHANGES: usize = 8;

async fn introduce(peer: &Peer, call: u64) -> Result<Offered, String> {
    let greeting = Arc::new(greet(peer, call).await?);
    for _ in 0..MOST_CHANGES {
        let offered = list(peer, Some(call), &greeting).await?;
        if peer.settle(greeting.clone()).await {
            return Ok(offered);
        }
    }
    Err("the server's lists do not stop changing".to_owned())
}
