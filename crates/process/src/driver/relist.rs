//! Lists that change while a server runs are read again, and held against what was agreed.

use super::{Driver, Reply, Settled};
use crate::peer::greet::Greeting;
use crate::peer::{offer, raw};
use crate::verdict::Cause;
use sandbox::{Code, Failure};
use serde_json::json;
use serde_json::value::RawValue;
use std::collections::HashMap;
use std::sync::Arc;
use std::time::Duration;
use tokio::sync::oneshot;

/// What is known of lists that have changed.
#[derive(Default)]
pub(super) struct Relisting {
    /// None until the server is ready.
    greeting: Option<Arc<Greeting>>,
    reading: bool,
    /// Clients that are being told of a change.
    telling: usize,
    /// What changed since the lists were last asked for.
    wanted: Vec<&'static str>,
    /// What is told when the lists are there.
    told: Vec<&'static str>,
    /// Answers that wait for it: what comes after a change counts only if the change is good.
    held: Vec<(oneshot::Sender<Reply>, Reply)>,
}

impl Relisting {
    /// Whether what was read of the lists is still so.
    pub(super) fn settle(&mut self, greeting: &Arc<Greeting>) -> bool {
        let ready = std::mem::take(&mut self.wanted).is_empty();
        if ready {
            self.greeting = Some(greeting.clone());
        }
        ready
    }

    /// Whether answers wait.
    pub(super) fn busy(&self) -> bool {
        self.reading || self.telling > 0
    }

    pub(super) fn tell(&mut self) {
        self.telling += 1;
    }

    pub(super) fn hold(&mut self, answer: oneshot::Sender<Reply>, outcome: Reply) {
        self.held.push((answer, outcome));
    }

    /// Whether the lists must be asked for now.
    pub(super) fn want(&mut self, what: &'static str) -> bool {
        if !self.wanted.contains(&what) {
            self.wanted.push(what);
        }
        self.greeting.is_some() && !self.reading
    }
}

impl Driver {
    /// A server of the newest revision tells of changes only who has asked to be told.
    pub(super) fn listen(&mut self, greeting: &Greeting) {
        let news = greeting.capabilities.news();
        if self.own.modern() && !news.is_empty() {
            let wanted: HashMap<_, _> = news.into_iter().map(|what| (what, true)).collect();
            // It is answered when it is over, if ever.
            let (answer, _) = oneshot::channel();
            self.request(None, "subscriptions/listen", vec![("notifications", raw(&wanted))], answer);
        }
    }

    /// Reads all lists once more, beside whatever else goes on.
    pub(super) fn relist(&mut self) {
        let Some(greeting) = self.relisting.greeting.clone() else { return };
        self.relisting.reading = true;
        self.relisting.told = std::mem::take(&mut self.relisting.wanted);
        let peer = self.own.clone();
        let within = Duration::from_millis(self.limits.init_time_ms);
        self.settled.push(Box::pin(async move {
            let listed = tokio::time::timeout(within, offer::list(&peer, None, &greeting)).await;
            let listed = listed.unwrap_or_else(|_| Err("its lists were not there in time".to_owned()));
            Settled::Listed(listed.map(|offered| offered.surface))
        }));
    }

    pub(super) fn listed(&mut self, listed: Result<Box<RawValue>, String>) -> Result<(), Cause> {
        let drift = |why: String| Cause::Drift(Failure::new(Code::SurfaceDrift, why));
        let surface = listed.map_err(|why| drift(format!("the code changed what it shows: {why}")))?;
        self.shows.check(&surface).map_err(Cause::Drift)?;
        self.relisting.reading = false;
        for what in std::mem::take(&mut self.relisting.told) {
            // One is enough: its host tells all who listen.
            if let Some(call) = self.calls.keys().next_back().copied() {
                self.tell(call, json!({ "what": what }).to_string())?;
            }
        }
        if !self.relisting.wanted.is_empty() {
            self.relist();
        }
        self.release();
        Ok(())
    }

    pub(super) fn client_told(&mut self) {
        self.relisting.telling = self.relisting.telling.saturating_sub(1);
        self.release();
    }

    /// Lets go of the answers that waited, if nothing is left to wait for.
    fn release(&mut self) {
        if self.relisting.busy() {
            return;
        }
        for (answer, outcome) in std::mem::take(&mut self.relisting.held) {
            // Its caller may be gone by now.
            let _ = answer.send(outcome);
        }
    }
}
