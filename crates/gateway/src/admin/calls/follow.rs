//! Calls as they come.

use super::super::stream::{self, Source};
use super::super::{Admin, Error};
use super::{Look, Shown, search};
use axum::body::Bytes;
use registry::CallLine;
use std::collections::VecDeque;
use std::sync::Arc;
use tokio::sync::broadcast::{self, error::RecvError};

pub struct Calls {
    look: Look,
    receiver: broadcast::Receiver<Arc<CallLine>>,
    waiting: VecDeque<Bytes>,
    /// The last line of the past; those up to it are not shown again.
    seen: u64,
}

impl Calls {
    /// Begins with some calls of the past.
    pub async fn start(admin: &Admin, tenant: &str, look: Look, before: usize) -> Result<Calls, Error> {
        // Listening starts before the past is read: a call in between is in both, and known by its number.
        let receiver = admin.app.registry().audit().follow();
        let place = search(admin, tenant)?;
        let looking = look.clone();
        let past = admin.registry(move |registry| {
            let _place = place;
            looking.back(registry, None, before)
        });
        let (past, _) = past.await?;
        let lines = past.iter().rev().map(|line| stream::line(&Shown::of(line)?));
        let waiting = lines.collect::<Result<_, _>>()?;
        Ok(Calls { look, receiver, waiting, seen: past.first().map_or(0, |line| line.seq) })
    }
}

impl Source for Calls {
    async fn next(&mut self) -> Option<Bytes> {
        if let Some(line) = self.waiting.pop_front() {
            return Some(line);
        }
        loop {
            match self.receiver.recv().await {
                Ok(line) if line.seq > self.seen && self.look.matches(&line) => {
                    return stream::line(&Shown::of(&line).ok()?).ok();
                }
                Ok(_) => {}
                Err(RecvError::Lagged(_)) => return Some(stream::LOST),
                Err(RecvError::Closed) => return None,
            }
        }
    }
}
