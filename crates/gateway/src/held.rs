//! Bytes that strangers make the host hold: bodies that arrive, arguments of calls that run, answers that are not read yet.
//!
//! They are counted as they arrive, by tenant and for the whole host. When there are too many, a body that is still
//! arriving is cut: the one that has held the most bytes for the longest, of whoever holds too much.

use axum::body::Body;
use bytes::{Bytes, BytesMut};
use http::HeaderMap;
use http_body::Body as _;
use http_body_util::BodyExt;
use std::collections::HashMap;
use std::sync::{Arc, Mutex, MutexGuard, PoisonError};
use std::time::Duration;
use tokio::sync::Notify;
use tokio::time::Instant;

/// A body that arrives in one piece of this length, or an answer, is not counted: there are as many as calls may run.
const SMALL: usize = 64 << 10;

#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct HeldSettings {
    /// Bytes of everybody.
    pub host: u64,
    /// Bytes of one tenant.
    pub tenant: u64,
}

impl Default for HeldSettings {
    fn default() -> HeldSettings {
        HeldSettings { host: 512 << 20, tenant: 128 << 20 }
    }
}

/// Whose limit is reached.
#[derive(Clone, Copy, Debug, PartialEq, Eq, thiserror::Error)]
pub enum Full {
    #[error("bodies and answers in flight fill the host's {} MiB (`http.held_mb`)", .0 >> 20)]
    Host(u64),
    #[error("bodies and answers in flight fill the tenant's {} MiB (`http.held_per_tenant_mb`)", .0 >> 20)]
    Tenant(u64),
}

/// Why a body could not be read.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Unread {
    TooLarge,
    BrokeOff,
    Late,
    Full(Full),
}

#[derive(Default)]
pub struct Held {
    inner: Mutex<Inner>,
}

#[derive(Default)]
struct Inner {
    settings: HeldSettings,
    all: u64,
    tenants: HashMap<String, u64>,
    /// Bodies that may be cut.
    arriving: HashMap<u64, Arriving>,
    next: u64,
}

struct Arriving {
    tenant: String,
    bytes: u64,
    since: Instant,
    cut: Arc<Cut>,
}

#[derive(Default)]
struct Cut {
    why: Mutex<Option<Full>>,
    told: Notify,
}

/// Some bytes, counted until this is dropped.
pub struct Hold {
    held: Arc<Held>,
    tenant: String,
    bytes: u64,
    /// As long as it may be cut.
    arriving: Option<(u64, Arc<Cut>)>,
}

impl Held {
    pub fn new(settings: HeldSettings) -> Held {
        let held = Held::default();
        held.set(settings);
        held
    }

    pub fn set(&self, settings: HeldSettings) {
        self.lock().settings = settings;
    }

    /// Bytes that are held at this moment.
    pub fn bytes(&self) -> u64 {
        self.lock().all
    }

    /// Holds bytes that are there already.
    pub fn hold(self: &Arc<Held>, tenant: &str, bytes: usize) -> Result<Hold, Full> {
        let mut hold = Hold { held: self.clone(), tenant: tenant.to_owned(), bytes: 0, arriving: None };
        hold.grow(bytes as u64)?;
        Ok(hold)
    }

    /// Reads a body of at most so many bytes.
    pub async fn read(
        self: &Arc<Held>,
        tenant: &str,
        headers: &HeaderMap,
        mut body: Body,
        most: usize,
        patience: Duration,
    ) -> Result<(Bytes, Option<Hold>), Unread> {
        let declared =
            headers.get(http::header::CONTENT_LENGTH).and_then(|value| value.to_str().ok()?.parse::<u64>().ok());
        if declared.is_some_and(|length| length > most as u64) {
            return Err(Unread::TooLarge);
        }
        let end = Instant::now() + patience;
        let first = next(&mut body, end).await?.unwrap_or_default();
        if first.len() > most {
            return Err(Unread::TooLarge);
        }
        if body.is_end_stream() && first.len() <= SMALL {
            return Ok((first, None));
        }
        let mut hold = self.arrive(tenant);
        hold.grow(first.len() as u64).map_err(Unread::Full)?;
        let mut read = BytesMut::from(&first[..]);
        drop(first);
        loop {
            let piece = tokio::select! {
                biased;
                full = hold.cut() => return Err(Unread::Full(full)),
                piece = next(&mut body, end) => piece?,
            };
            let Some(piece) = piece else { break };
            if read.len() + piece.len() > most {
                return Err(Unread::TooLarge);
            }
            hold.grow(piece.len() as u64).map_err(Unread::Full)?;
            read.extend_from_slice(&piece);
        }
        hold.arrived()?;
        Ok((read.freeze(), Some(hold)))
    }

    fn arrive(self: &Arc<Held>, tenant: &str) -> Hold {
        let mut inner = self.lock();
        inner.next += 1;
        let (id, cut) = (inner.next, Arc::<Cut>::default());
        let arriving = Arriving { tenant: tenant.to_owned(), bytes: 0, since: Instant::now(), cut: cut.clone() };
        inner.arriving.insert(id, arriving);
        Hold { held: self.clone(), tenant: tenant.to_owned(), bytes: 0, arriving: Some((id, cut)) }
    }

    fn lock(&self) -> MutexGuard<'_, Inner> {
        self.inner.lock().unwrap_or_else(PoisonError::into_inner)
    }
}

async fn next(body: &mut Body, end: Instant) -> Result<Option<Bytes>, Unread> {
    loop {
        match tokio::time::timeout_at(end, body.frame()).await {
            Err(_) => return Err(Unread::Late),
            Ok(None) => return Ok(None),
            Ok(Some(Err(_))) => return Err(Unread::BrokeOff),
            Ok(Some(Ok(frame))) => {
                // Trailers say nothing here.
                if let Ok(piece) = frame.into_data() {
                    return Ok(Some(piece));
                }
            }
        }
    }
}

impl Inner {
    fn of(&self, tenant: &str) -> u64 {
        self.tenants.get(tenant).copied().unwrap_or(0)
    }

    /// Whose bodies are to be cut for so many bytes more of this tenant.
    fn over(&self, tenant: &str, more: u64) -> Option<(String, Full)> {
        let HeldSettings { host, tenant: most } = self.settings;
        if self.of(tenant) + more > most {
            return Some((tenant.to_owned(), Full::Tenant(most)));
        }
        if self.all + more <= host {
            return None;
        }
        let largest = self.tenants.iter().max_by_key(|(_, bytes)| **bytes).map(|(name, _)| name.clone());
        Some((largest.unwrap_or_else(|| tenant.to_owned()), Full::Host(host)))
    }

    /// The body that has held most for longest.
    fn worst(&self, tenant: &str, now: Instant) -> Option<u64> {
        let cost = |arriving: &Arriving| {
            u128::from(arriving.bytes) * now.saturating_duration_since(arriving.since).as_micros().max(1)
        };
        let own = self.arriving.iter().filter(|(_, arriving)| arriving.tenant == tenant && arriving.bytes > 0);
        own.max_by_key(|(_, arriving)| cost(arriving)).map(|(id, _)| *id)
    }

    fn give_back(&mut self, tenant: &str, bytes: u64) {
        self.all = self.all.saturating_sub(bytes);
        if let Some(own) = self.tenants.get_mut(tenant) {
            *own = own.saturating_sub(bytes);
            if *own == 0 {
                self.tenants.remove(tenant);
            }
        }
    }
}

impl Hold {
    /// Counts more bytes. Bodies of others may be cut for that; or there is no room for this one.
    fn grow(&mut self, more: u64) -> Result<(), Full> {
        let held = self.held.clone();
        let mut inner = held.lock();
        if let Some((id, cut)) = &self.arriving
            && !inner.arriving.contains_key(id)
        {
            let why = *cut.why.lock().unwrap_or_else(PoisonError::into_inner);
            return Err(why.unwrap_or(Full::Host(inner.settings.host)));
        }
        while let Some((whose, full)) = inner.over(&self.tenant, more) {
            let Some(worst) = inner.worst(&whose, Instant::now()) else { return Err(full) };
            if self.arriving.as_ref().is_some_and(|(id, _)| *id == worst) {
                return Err(full);
            }
            if let Some(arriving) = inner.arriving.remove(&worst) {
                inner.give_back(&arriving.tenant, arriving.bytes);
                *arriving.cut.why.lock().unwrap_or_else(PoisonError::into_inner) = Some(full);
                arriving.cut.told.notify_one();
            }
        }
        inner.all += more;
        match inner.tenants.get_mut(&self.tenant) {
            Some(own) => *own += more,
            None => drop(inner.tenants.insert(self.tenant.clone(), more)),
        }
        self.bytes += more;
        if let Some(arriving) = self.arriving.as_ref().and_then(|(id, _)| inner.arriving.get_mut(id)) {
            arriving.bytes = self.bytes;
        }
        Ok(())
    }

    /// Resolves when it is cut.
    async fn cut(&self) -> Full {
        let Some((_, cut)) = &self.arriving else { return std::future::pending().await };
        loop {
            cut.told.notified().await;
            if let Some(full) = *cut.why.lock().unwrap_or_else(PoisonError::into_inner) {
                return full;
            }
        }
    }

    /// All of it is there: it is not cut any more.
    fn arrived(&mut self) -> Result<(), Unread> {
        let held = self.held.clone();
        let mut inner = held.lock();
        let Some((id, cut)) = &self.arriving else { return Ok(()) };
        if inner.arriving.remove(id).is_none() {
            let why = *cut.why.lock().unwrap_or_else(PoisonError::into_inner);
            return Err(Unread::Full(why.unwrap_or(Full::Host(inner.settings.host))));
        }
        self.arriving = None;
        Ok(())
    }

    /// Bytes that are counted until the last copy of them is gone, which is when a client has read them.
    pub fn bind(self, bytes: Bytes) -> Bytes {
        struct Bound(Bytes, #[expect(dead_code, reason = "it counts as long as it lives")] Hold);
        impl AsRef<[u8]> for Bound {
            fn as_ref(&self) -> &[u8] {
                &self.0
            }
        }
        Bytes::from_owner(Bound(bytes, self))
    }
}

impl Drop for Hold {
    fn drop(&mut self) {
        let mut inner = self.held.lock();
        let was_cut = self.arriving.as_ref().is_some_and(|(id, _)| inner.arriving.remove(id).is_none());
        if !was_cut {
            inner.give_back(&self.tenant, self.bytes);
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use futures_util::StreamExt;
    use tokio::sync::mpsc;

    const KIB: usize = 1 << 10;
    const PATIENCE: Duration = Duration::from_secs(30);

    fn held(host: usize, tenant: usize) -> Arc<Held> {
        Arc::new(Held::new(HeldSettings { host: host as u64, tenant: tenant as u64 }))
    }

    /// A body that arrives as it is sent.
    fn slow() -> (mpsc::UnboundedSender<Bytes>, Body) {
        let (sender, receiver) = mpsc::unbounded_channel::<Bytes>();
        let pieces = futures_util::stream::unfold(receiver, |mut receiver| async {
            receiver.recv().await.map(|piece| (Ok::<_, std::io::Error>(piece), receiver))
        });
        (sender, Body::from_stream(pieces.boxed()))
    }

    async fn settle() {
        for _ in 0..20 {
            tokio::task::yield_now().await;
        }
    }

    fn reading(
        held: &Arc<Held>,
        tenant: &'static str,
        body: Body,
    ) -> tokio::task::JoinHandle<Result<(Bytes, Option<Hold>), Unread>> {
        let held = held.clone();
        tokio::spawn(async move { held.read(tenant, &HeaderMap::new(), body, 1 << 20, PATIENCE).await })
    }

    fn zeros(bytes: usize) -> Bytes {
        Bytes::from(vec![b'0'; bytes])
    }

    #[tokio::test(start_paused = true)]
    async fn what_is_held_never_exceeds_the_limit_of_its_tenant() {
        let held = held(4096 * KIB, 512 * KIB);
        let mut bodies = Vec::new();
        for _ in 0..60 {
            let (sender, body) = slow();
            let task = reading(&held, "greedy", body);
            sender.send(zeros(100 * KIB)).unwrap();
            settle().await;
            tokio::time::advance(Duration::from_millis(10)).await;
            assert!(held.bytes() <= 512 * KIB as u64);
            bodies.push((sender, task));
        }
        let (sender, body) = slow();
        let other = reading(&held, "neighbour", body);
        sender.send(zeros(300 * KIB)).unwrap();
        settle().await;
        drop(sender);
        assert_eq!(other.await.unwrap().unwrap().0.len(), 300 * KIB);
        // The first ones held most for longest; the last ones are still welcome.
        let cut = bodies.iter().take_while(|(_, task)| task.is_finished()).count();
        assert_eq!(cut, 55);
        for (sender, task) in bodies {
            drop(sender);
            match task.await.unwrap() {
                Err(error) => assert_eq!(error, Unread::Full(Full::Tenant(512 * KIB as u64))),
                Ok((body, _)) => assert_eq!(body.len(), 100 * KIB),
            }
        }
        assert_eq!(held.bytes(), 0, "all of it is given back");
        assert!(held.lock().arriving.is_empty() && held.lock().tenants.is_empty());
    }

    #[tokio::test(start_paused = true)]
    async fn the_host_takes_from_whoever_holds_most() {
        let held = held(1000 * KIB, 900 * KIB);
        let (large, body) = slow();
        let large_one = reading(&held, "greedy", body);
        large.send(zeros(800 * KIB)).unwrap();
        let (small, body) = slow();
        let small_one = reading(&held, "modest", body);
        small.send(zeros(100 * KIB)).unwrap();
        settle().await;
        assert_eq!(held.bytes(), 900 * KIB as u64);
        let answer = held.hold("third", 200 * KIB).unwrap();
        assert_eq!(large_one.await.unwrap().err(), Some(Unread::Full(Full::Host(1000 * KIB as u64))));
        drop(small);
        assert_eq!(small_one.await.unwrap().unwrap().0.len(), 100 * KIB);
        let kept = answer.bind(zeros(200 * KIB));
        let copy = kept.clone();
        drop(kept);
        assert_eq!(held.bytes(), 200 * KIB as u64, "a copy counts as long as it is there");
        drop(copy);
        assert_eq!(held.bytes(), 0);
        // What arrived as a whole is not cut: the next one is refused.
        let calls = held.hold("greedy", 900 * KIB).unwrap();
        assert_eq!(held.hold("third", 200 * KIB).err(), Some(Full::Host(1000 * KIB as u64)));
        drop(calls);
    }

    #[tokio::test(start_paused = true)]
    async fn bodies_end_in_time_and_within_their_length() {
        let held = held(4096 * KIB, 4096 * KIB);
        let (_sender, body) = slow();
        assert_eq!(reading(&held, "a", body).await.unwrap().err(), Some(Unread::Late));
        assert_eq!(reading(&held, "a", Body::from(zeros(2 << 20))).await.unwrap().err(), Some(Unread::TooLarge));
        let (bytes, hold) = reading(&held, "a", Body::from("{}")).await.unwrap().unwrap();
        assert_eq!((&bytes[..], hold.is_none()), (&b"{}"[..], true));
        let (bytes, hold) = reading(&held, "a", Body::empty()).await.unwrap().unwrap();
        assert!(bytes.is_empty() && hold.is_none());
        assert_eq!(held.bytes(), 0);
    }
}
