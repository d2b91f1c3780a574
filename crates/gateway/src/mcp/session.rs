//! Sessions of the legacy protocol: small, counted, and gone when nobody uses them.

use super::line::{Client, Level};
use super::sse;
use super::version::Legacy;
use crate::held::{Held, HeldSettings};
use crate::workers::QUICK_BYTES;
use bytes::Bytes;
use dashmap::DashMap;
use registry::SessionRecord;
use serde_json::Value;
use serde_json::value::RawValue;
use std::collections::{HashMap, HashSet, VecDeque};
use std::sync::atomic::{AtomicU64, Ordering};
use std::sync::{Arc, Mutex, MutexGuard, PoisonError};
use std::time::{Duration, SystemTime, UNIX_EPOCH};
use tokio::sync::{mpsc, oneshot};
use tokio::task::AbortHandle;

#[derive(Clone, Debug)]
pub struct SessionSettings {
    /// Sessions of one tenant at once; beyond that the caller who has most loses the one it used least recently.
    pub per_tenant: usize,
    pub idle: Duration,
    /// What a session keeps of its streams for clients that come back.
    pub replay_bytes: usize,
}

impl Default for SessionSettings {
    fn default() -> SessionSettings {
        SessionSettings { per_tenant: 1000, idle: Duration::from_secs(1800), replay_bytes: 256 * 1024 }
    }
}

pub type ClientAnswer = Result<Box<RawValue>, String>;

pub struct Session {
    pub id: String,
    pub tenant: String,
    /// None at the tenant's aggregate endpoint.
    pub server: Option<String>,
    pub owner: String,
    pub version: Legacy,
    pub client: Client,
    created_at: u64,
    used_at: AtomicU64,
    log_level: Mutex<Level>,
    subscriptions: Mutex<HashSet<String>>,
    questions: Mutex<HashMap<u64, oneshot::Sender<ClientAnswer>>>,
    next_question: AtomicU64,
    running: Mutex<HashMap<String, AbortHandle>>,
    streams: Mutex<Streams>,
    replay_bytes: usize,
    /// What is kept for clients that come back.
    replay: Arc<Held>,
    /// What is on its way to a client.
    held: Arc<Held>,
}

const MOST_QUESTIONS: usize = 64;
const MOST_SUBSCRIPTIONS: usize = 256;
/// Of what a client says about itself.
pub const MOST_CLIENT_BYTES: usize = 16 * 1024;
/// Events a client may be behind before its stream is cut; it can come back for them.
const BACKLOG: usize = 256;

#[derive(Default)]
struct Streams {
    next: u64,
    open: HashMap<u64, OpenStream>,
    kept: VecDeque<Kept>,
    kept_bytes: usize,
}

struct OpenStream {
    sent: u64,
    reader: Option<mpsc::Sender<Bytes>>,
}

struct Kept {
    stream: u64,
    number: u64,
    event: Bytes,
}

/// What a client gets that comes back to a stream.
pub struct Resumed {
    pub missed: Vec<Bytes>,
    /// None when the stream has ended.
    pub rest: Option<mpsc::Receiver<Bytes>>,
}

impl Session {
    fn touch(&self) {
        self.used_at.store(now(), Ordering::Relaxed);
    }

    pub fn log_level(&self) -> Level {
        *lock(&self.log_level)
    }

    pub fn set_log_level(&self, level: Level) {
        *lock(&self.log_level) = level;
    }

    /// False when there are too many already.
    pub fn subscribe(&self, uri: &str) -> bool {
        let mut subscriptions = lock(&self.subscriptions);
        subscriptions.contains(uri)
            || (subscriptions.len() < MOST_SUBSCRIPTIONS && subscriptions.insert(uri.to_owned()))
    }

    pub fn unsubscribe(&self, uri: &str) {
        lock(&self.subscriptions).remove(uri);
    }

    pub fn is_subscribed(&self, uri: &str) -> bool {
        lock(&self.subscriptions).contains(uri)
    }

    /// A number for a question to the client, and where its answer will be. None when too many are open.
    pub fn expect_answer(&self) -> Option<(u64, oneshot::Receiver<ClientAnswer>)> {
        let mut questions = lock(&self.questions);
        questions.retain(|_, asker| !asker.is_closed());
        if questions.len() >= MOST_QUESTIONS {
            return None;
        }
        let id = self.next_question.fetch_add(1, Ordering::Relaxed);
        let (sender, receiver) = oneshot::channel();
        questions.insert(id, sender);
        Some((id, receiver))
    }

    /// False when nobody asked.
    pub fn answer(&self, id: &RawValue, answer: ClientAnswer) -> bool {
        let Ok(id) = id.get().parse::<u64>() else { return false };
        let asker = lock(&self.questions).remove(&id);
        asker.is_some_and(|asker| asker.send(answer).is_ok())
    }

    /// Remembers a running request so that it can be cancelled. False when one with this id runs already.
    pub fn started(&self, id: &RawValue, task: AbortHandle) -> bool {
        let mut running = lock(&self.running);
        running.retain(|_, task| !task.is_finished());
        if running.contains_key(id.get()) {
            return false;
        }
        running.insert(id.get().to_owned(), task);
        true
    }

    pub fn cancel(&self, id: &RawValue) {
        if let Some(task) = lock(&self.running).remove(id.get()) {
            task.abort();
        }
    }

    fn end(&self) {
        for (_, task) in lock(&self.running).drain() {
            task.abort();
        }
        let mut streams = lock(&self.streams);
        streams.open.clear();
        streams.kept.clear();
    }

    // --- streams -----------------------------------------------------------------------------------------------

    pub fn open_stream(&self) -> (u64, mpsc::Receiver<Bytes>) {
        let (sender, receiver) = mpsc::channel(BACKLOG);
        let mut streams = lock(&self.streams);
        streams.next += 1;
        let number = streams.next;
        streams.open.insert(number, OpenStream { sent: 0, reader: Some(sender) });
        if self.version >= Legacy::V2025_11_25 {
            let primer = sse::primer(&event_id(number, 0), Duration::from_secs(1));
            if let Some(reader) = streams.open.get(&number).and_then(|open| open.reader.as_ref()) {
                // An empty channel has room.
                let _ = reader.try_send(primer);
            }
        }
        (number, receiver)
    }

    /// Sends a message on a stream and keeps it for a while.
    pub fn emit(&self, stream: u64, json: &[u8]) {
        let mut streams = lock(&self.streams);
        let Some(open) = streams.open.get_mut(&stream) else { return };
        open.sent += 1;
        let number = open.sent;
        let event = sse::event(Some(&event_id(stream, number)), json);
        // What can be kept is counted there; what is too large for that counts until it is read.
        let keeps = event.len() <= self.replay_bytes;
        let store = if keeps { &self.replay } else { &self.held };
        let (event, keeps) = match store.hold(&self.tenant, event.len()) {
            Ok(hold) => (hold.bind(event), keeps),
            Err(_) if event.len() <= QUICK_BYTES => (event, false),
            // There is no room for it at all: the client finds its stream cut.
            Err(_) => return drop(open.reader.take()),
        };
        if let Some(reader) = &open.reader
            && reader.try_send(event.clone()).is_err()
        {
            open.reader = None;
        }
        if keeps {
            streams.keep(Kept { stream, number, event }, self.replay_bytes);
        }
    }

    /// Ends a stream for its reader, who may come back to it.
    pub fn detach(&self, stream: u64) {
        if let Some(open) = lock(&self.streams).open.get_mut(&stream) {
            open.reader = None;
        }
    }

    pub fn close_stream(&self, stream: u64) {
        lock(&self.streams).open.remove(&stream);
    }

    /// Where a client left off: what it missed, and the rest if there is more to come.
    pub fn resume(&self, last_event_id: &str) -> Option<Resumed> {
        let (stream, number) = last_event_id.split_once('-')?;
        let (stream, number) = (stream.parse::<u64>().ok()?, number.parse::<u64>().ok()?);
        let mut streams = lock(&self.streams);
        if stream == 0 || stream > streams.next {
            return None;
        }
        let missed = streams.kept.iter().filter(|kept| kept.stream == stream && kept.number > number);
        let missed = missed.map(|kept| kept.event.clone()).collect();
        let rest = streams.open.get_mut(&stream).map(|open| {
            let (sender, receiver) = mpsc::channel(BACKLOG);
            open.reader = Some(sender);
            receiver
        });
        Some(Resumed { missed, rest })
    }

    fn record(&self) -> SessionRecord {
        SessionRecord {
            id: self.id.clone(),
            tenant: self.tenant.clone(),
            server: self.server.clone(),
            owner: self.owner.clone(),
            protocol_version: self.version.as_str().to_owned(),
            capabilities: serde_json::json!({ "info": self.client.info, "capabilities": self.client.capabilities })
                .to_string(),
            created_at: self.created_at,
            used_at: self.used_at.load(Ordering::Relaxed),
        }
    }
}

impl Streams {
    fn keep(&mut self, kept: Kept, most: usize) {
        self.kept_bytes += kept.event.len();
        self.kept.push_back(kept);
        while self.kept_bytes > most {
            let Some(oldest) = self.kept.pop_front() else { return };
            self.kept_bytes -= oldest.event.len();
        }
    }
}

fn event_id(stream: u64, number: u64) -> String {
    format!("{stream}-{number}")
}

/// All sessions of the host.
pub struct Sessions {
    settings: Mutex<SessionSettings>,
    by_id: DashMap<String, Arc<Session>>,
    /// In the order of their making.
    tenants: Mutex<HashMap<String, Vec<Arc<Session>>>>,
    ended: Mutex<Vec<String>>,
    saved_at: AtomicU64,
    replay: Arc<Held>,
    held: Arc<Held>,
}

/// Bytes that are kept for clients that come back. What finds no room is sent, and not kept.
const REPLAYED: HeldSettings = HeldSettings { host: 256 << 20, tenant: 32 << 20 };

#[derive(Debug, PartialEq, Eq)]
pub struct ClientTooLarge;

impl Sessions {
    pub fn new(settings: SessionSettings, held: Arc<Held>) -> Sessions {
        Sessions {
            settings: Mutex::new(settings),
            by_id: DashMap::new(),
            tenants: Mutex::default(),
            ended: Mutex::default(),
            saved_at: AtomicU64::new(0),
            replay: Arc::new(Held::new(REPLAYED)),
            held,
        }
    }

    pub fn set_settings(&self, settings: SessionSettings) {
        *lock(&self.settings) = settings;
    }

    pub fn len(&self) -> usize {
        self.by_id.len()
    }

    pub fn begin(
        &self,
        tenant: &str,
        server: Option<&str>,
        owner: &str,
        version: Legacy,
        client: Client,
    ) -> Result<Arc<Session>, ClientTooLarge> {
        if client.info.to_string().len() + client.capabilities.to_string().len() > MOST_CLIENT_BYTES {
            return Err(ClientTooLarge);
        }
        let record = SessionRecord {
            id: random_id(),
            tenant: tenant.to_owned(),
            server: server.map(str::to_owned),
            owner: owner.to_owned(),
            protocol_version: String::new(),
            capabilities: String::new(),
            created_at: now(),
            used_at: now(),
        };
        Ok(self.admit(record, version, client))
    }

    /// A session of an earlier run of the host.
    pub fn restore(&self, record: SessionRecord) {
        let Some(version) = Legacy::parse(&record.protocol_version) else { return };
        let Ok(mut kept) = serde_json::from_str::<serde_json::Map<String, Value>>(&record.capabilities) else { return };
        let mut take = |key: &str| kept.remove(key).unwrap_or_default();
        let client = Client { info: take("info"), capabilities: take("capabilities"), version: version.as_str() };
        self.admit(record, version, client);
    }

    fn admit(&self, record: SessionRecord, version: Legacy, client: Client) -> Arc<Session> {
        let settings = lock(&self.settings).clone();
        let session = Arc::new(Session {
            id: record.id,
            tenant: record.tenant.clone(),
            server: record.server,
            owner: record.owner,
            version,
            client,
            created_at: record.created_at,
            used_at: AtomicU64::new(record.used_at),
            log_level: Mutex::new(Level::Info),
            subscriptions: Mutex::default(),
            questions: Mutex::default(),
            next_question: AtomicU64::new(1),
            running: Mutex::default(),
            streams: Mutex::default(),
            replay_bytes: settings.replay_bytes,
            replay: self.replay.clone(),
            held: self.held.clone(),
        });
        self.by_id.insert(session.id.clone(), session.clone());
        let evicted = {
            let mut tenants = lock(&self.tenants);
            let all = tenants.entry(record.tenant).or_default();
            all.push(session.clone());
            (all.len() > settings.per_tenant.max(1)).then(|| evict(all)).flatten()
        };
        if let Some(evicted) = evicted {
            self.forget(&evicted);
        }
        session
    }

    /// The caller's own session at this endpoint.
    pub fn get(&self, id: &str, tenant: &str, server: Option<&str>, owner: &str) -> Option<Arc<Session>> {
        let session = self.by_id.get(id)?.clone();
        let own = session.tenant == tenant && session.server.as_deref() == server && session.owner == owner;
        own.then(|| {
            session.touch();
            session
        })
    }

    pub fn end(&self, session: &Arc<Session>) {
        if let Some(all) = lock(&self.tenants).get_mut(&session.tenant) {
            all.retain(|other| other.id != session.id);
        }
        self.forget(session);
    }

    fn forget(&self, session: &Arc<Session>) {
        self.by_id.remove(&session.id);
        session.end();
        lock(&self.ended).push(session.id.clone());
    }

    /// Ends what nobody used for long.
    pub fn sweep(&self) {
        let idle = lock(&self.settings).idle.as_secs();
        let horizon = now().saturating_sub(idle);
        let mut idle = Vec::new();
        lock(&self.tenants).retain(|_, all| {
            all.retain(|session| {
                let keep = session.used_at.load(Ordering::Relaxed) >= horizon;
                if !keep {
                    idle.push(session.clone());
                }
                keep
            });
            !all.is_empty()
        });
        for session in idle {
            self.forget(&session);
        }
    }

    /// What changed since the last time: records to write, ids to remove.
    pub fn changes(&self) -> (Vec<SessionRecord>, Vec<String>) {
        let ended = std::mem::take(&mut *lock(&self.ended));
        let since = self.saved_at.swap(now(), Ordering::Relaxed);
        let used = self.by_id.iter().filter(|session| session.used_at.load(Ordering::Relaxed) >= since);
        (used.map(|session| session.record()).collect(), ended)
    }
}

/// The session that goes: the least recently used one of whoever has most.
fn evict(all: &mut Vec<Arc<Session>>) -> Option<Arc<Session>> {
    let mut held: HashMap<&str, usize> = HashMap::new();
    for session in all.iter() {
        *held.entry(&session.owner).or_default() += 1;
    }
    let greediest = held.into_iter().max_by_key(|(_, count)| *count)?.0.to_owned();
    let newest = all.len() - 1;
    let candidates = all.iter().enumerate().filter(|(at, session)| session.owner == greediest && *at != newest);
    let at = candidates.min_by_key(|(_, session)| session.used_at.load(Ordering::Relaxed))?.0;
    Some(all.remove(at))
}

pub fn random_id() -> String {
    let mut bytes = [0; 24];
    // Without randomness no session is safe to hand out; the process would not have started without it.
    if getrandom::fill(&mut bytes).is_err() {
        std::process::abort();
    }
    hex::encode(bytes)
}

fn now() -> u64 {
    SystemTime::now().duration_since(UNIX_EPOCH).map_or(0, |since| since.as_secs())
}

fn lock<T>(mutex: &Mutex<T>) -> MutexGuard<'_, T> {
    mutex.lock().unwrap_or_else(PoisonError::into_inner)
}

#[cfg(test)]
mod tests {
    use super::*;

    fn sessions(per_tenant: usize) -> Sessions {
        Sessions::new(SessionSettings { per_tenant, ..SessionSettings::default() }, Arc::default())
    }

    fn begin(sessions: &Sessions, owner: &str) -> Arc<Session> {
        let client = Client { info: Value::Null, capabilities: serde_json::json!({}), version: "2025-11-25" };
        sessions.begin("acme", Some("prices"), owner, Legacy::NEWEST, client).unwrap()
    }

    #[test]
    fn a_flood_of_sessions_costs_the_flooder_its_own() {
        let sessions = sessions(10);
        let quiet = begin(&sessions, "quiet");
        for _ in 0..1000 {
            begin(&sessions, "flood");
        }
        assert_eq!(sessions.len(), 10);
        assert!(sessions.get(&quiet.id, "acme", Some("prices"), "quiet").is_some());
    }

    #[test]
    fn a_session_answers_to_its_owner_at_its_endpoint_alone() {
        let sessions = sessions(10);
        let session = begin(&sessions, "a");
        assert!(sessions.get(&session.id, "acme", Some("prices"), "a").is_some());
        assert!(sessions.get(&session.id, "acme", Some("prices"), "b").is_none());
        assert!(sessions.get(&session.id, "acme", Some("other"), "a").is_none());
        assert!(sessions.get(&session.id, "evil", Some("prices"), "a").is_none());
        sessions.end(&session);
        assert!(sessions.get(&session.id, "acme", Some("prices"), "a").is_none());
    }

    #[test]
    fn a_client_that_comes_back_gets_what_it_missed() {
        let sessions = sessions(10);
        let session = begin(&sessions, "a");
        let (stream, reader) = session.open_stream();
        drop(reader);
        session.emit(stream, b"1");
        session.emit(stream, b"2");
        let resumed = session.resume(&format!("{stream}-1")).unwrap();
        assert_eq!(resumed.missed, [sse::event(Some(&format!("{stream}-2")), b"2")]);
        assert!(resumed.rest.is_some());
        session.close_stream(stream);
        assert!(session.resume(&format!("{stream}-2")).unwrap().rest.is_none());
        for nonsense in ["", "x", "1", "9-1", "0-0", "-1", "1-x"] {
            assert!(session.resume(nonsense).is_none(), "{nonsense}");
        }
    }

    #[test]
    fn what_is_kept_for_replay_is_bounded() {
        let sessions =
            Sessions::new(SessionSettings { replay_bytes: 1000, ..SessionSettings::default() }, Arc::default());
        let session = begin(&sessions, "a");
        let (stream, _reader) = session.open_stream();
        for _ in 0..1000 {
            session.emit(stream, &[b'1'; 100]);
        }
        let streams = lock(&session.streams);
        assert!(streams.kept_bytes <= 1000);
        assert_eq!(streams.kept_bytes, streams.kept.iter().map(|kept| kept.event.len()).sum::<usize>());
    }
}
