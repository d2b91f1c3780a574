//! The audit log: one line for every call, every change and every repair, each tied to the one before by its hash.

mod line;
mod recent;
mod recover;
mod segment;
mod tail;
mod trim;
mod verify;

pub(crate) use line::Link;
pub use recent::Recent;
pub(crate) use tail::Bounds;
pub(crate) use trim::{Announced, Begin, Keep, Old};
pub use verify::{Verified, VerifyError, verify};

use crate::files::{self, locked};
use crate::{AuditEvent, Cause, ChangeEvent};
use recent::Search;
use serde_json::value::RawValue;
use std::collections::HashSet;
use std::io;
use std::path::{Path, PathBuf};
use std::sync::{Arc, Mutex};
use std::time::Duration;
use tail::Tail;
use tokio::sync::broadcast;

pub(crate) const DAY: Duration = Duration::from_secs(86_400);

/// Calls a follower may lag behind before it misses some.
const FOLLOWED_CALLS: usize = 1024;

/// Longer lines are followed without what was recorded: all of them are kept for whoever lags.
const LONGEST_FOLLOWED: usize = 16 << 10;

/// The last line: its number and its hash (64 zeros when there is none).
#[derive(Clone, Debug, PartialEq, Eq, serde::Serialize, serde::Deserialize)]
pub struct Head {
    pub seq: u64,
    /// Hex.
    pub hash: String,
}

/// A call as the log has it.
#[derive(Clone, Debug, serde::Serialize)]
pub struct CallLine {
    pub seq: u64,
    pub tenant: String,
    pub server: String,
    pub caller: String,
    pub outcome: String,
    /// The whole line: all fields of the event, `seq`, `time`, `prev` and `hash`.
    pub json: Box<RawValue>,
}

/// Which calls; `None` is any.
#[derive(Clone, Debug, Default)]
pub struct CallFilter {
    pub tenant: Option<String>,
    pub server: Option<String>,
    pub caller: Option<String>,
    pub outcome: Option<String>,
    /// At most this many (and never more than 1000).
    pub limit: usize,
    /// Only lines before this one.
    pub before_seq: Option<u64>,
}

impl CallFilter {
    /// For lines of [`AuditLog::follow`].
    pub fn matches(&self, call: &CallLine) -> bool {
        let is = |wanted: &Option<String>, value: &str| wanted.as_deref().is_none_or(|wanted| wanted == value);
        is(&self.tenant, &call.tenant)
            && is(&self.server, &call.server)
            && is(&self.caller, &call.caller)
            && is(&self.outcome, &call.outcome)
            && self.before_seq.is_none_or(|before| call.seq < before)
    }
}

#[derive(Debug, thiserror::Error)]
pub enum AuditError {
    #[error("the audit log cannot be written and no more fits into memory")]
    Full,
    #[error("an event of {bytes} bytes is too large for the audit log")]
    TooLarge { bytes: usize },
    #[error("an event cannot be written as JSON")]
    Event(#[source] Cause),
    #[error("the audit log cannot be read")]
    Read(#[source] Cause),
}

/// How the audit log is.
#[derive(Clone, Debug, Default, PartialEq, Eq, serde::Serialize)]
pub struct AuditHealth {
    /// What is wrong, in words; empty when all is well.
    pub problems: Vec<String>,
    /// Events that wait for the disk.
    pub waiting: usize,
    /// Events that were refused because too many waited.
    pub refused: u64,
}

pub struct AuditLog {
    dir: PathBuf,
    tail: Mutex<Tail>,
    calls: broadcast::Sender<Arc<CallLine>>,
    /// Damage that was found. It does not go away.
    damage: Mutex<Vec<String>>,
    /// Why the disk did not keep what it had taken, when it was last asked to.
    sync_trouble: Mutex<Option<String>>,
    /// Why what is old could not be let go of.
    trim_trouble: Mutex<Option<String>>,
}

impl AuditLog {
    /// Opens the log below a data directory. `recorded` is the last line that is known to have been safe. Also returns the
    /// ids of the changes after it.
    pub(crate) fn open(
        dir: &Path,
        recorded: Link,
        begin: Begin,
        bounds: Bounds,
    ) -> io::Result<(AuditLog, HashSet<String>)> {
        let dir = dir.join("audit");
        files::create_dir(&dir)?;
        let recovered = recover::recover(&dir, recorded, begin)?;
        let log = AuditLog {
            tail: Mutex::new(Tail::new(dir.clone(), bounds, recovered.found)),
            dir,
            calls: broadcast::channel(FOLLOWED_CALLS).0,
            damage: Mutex::new(recovered.damage.clone()),
            sync_trouble: Mutex::new(None),
            trim_trouble: Mutex::new(None),
        };
        if recovered.torn > 0 {
            log.host_event(
                "audit_log_repaired",
                format!("cut off {} bytes of a line that was not written to its end", recovered.torn),
            );
        }
        for damage in recovered.damage {
            log.host_event("audit_log_damaged", damage);
        }
        Ok((log, recovered.ids))
    }

    fn host_event(&self, what: &str, detail: String) {
        // If even this cannot be kept, `health` says why.
        let _ = self.append(&AuditEvent::Host { what: what.to_owned(), detail });
    }

    /// Adds a line and has it written. Quick enough to be called inline by any thread: it costs a hash and one write into the
    /// page cache. While the disk takes nothing, lines wait in memory; an error means that there is no room left there either.
    pub fn append(&self, event: &AuditEvent) -> Result<(), AuditError> {
        let seq = self.add(event)?;
        self.write_up_to(seq);
        Ok(())
    }

    /// Adds a line that somebody has to have written, and gives its number: lines of calls that end together can be written
    /// together. Until then it would be lost with the host.
    pub fn add(&self, event: &AuditEvent) -> Result<u64, AuditError> {
        let body = line::body(event, None)?;
        let followed = matches!(event, AuditEvent::Call(_)) && self.calls.receiver_count() > 0;
        let (link, line) = {
            let mut tail = locked(&self.tail);
            let link = tail.add(&body)?;
            (link, tail.last_line().filter(|_| followed).map(<[u8]>::to_vec))
        };
        let line = line.and_then(|line| if line.len() > LONGEST_FOLLOWED { shortened(&line) } else { Some(line) });
        if let Some(call) = line.and_then(|line| recent::call_line(&line)) {
            let _ = self.calls.send(Arc::new(call)); // fails when the last follower just left
        }
        Ok(link.seq)
    }

    /// Writes this line and all before it, where that has not been done.
    pub fn write_up_to(&self, seq: u64) {
        locked(&self.tail).write_up_to(seq);
    }

    /// Adds a change of the registry, recognisable by `id`. Returns its number.
    pub(crate) fn append_change(&self, id: &str, event: ChangeEvent) -> Result<u64, AuditError> {
        let body = line::body(&AuditEvent::Change(event), Some(id))?;
        let mut tail = locked(&self.tail);
        let seq = tail.add(&body)?.seq;
        tail.write_up_to(seq);
        Ok(seq)
    }

    /// Calls, newest first. May read much of the log, so not for the threads of an executor. One search does not read all
    /// of a great log: then it says where to go on.
    pub fn recent(&self, filter: &CallFilter) -> Result<Recent, AuditError> {
        let mut search = Search::new(filter);
        {
            let tail = locked(&self.tail);
            tail.waiting().rev().for_each(|line| search.lines(line));
        }
        search.files(&self.dir).map_err(|error| AuditError::Read(error.into()))
    }

    /// Calls from now on, of all tenants. A receiver that lags misses some.
    pub fn follow(&self) -> broadcast::Receiver<Arc<CallLine>> {
        self.calls.subscribe()
    }

    /// The last line of the files, so that `verify` finds it at once. Lines that wait are written first; while the disk takes
    /// nothing they are not part of the head.
    pub fn head(&self) -> Head {
        let Link { seq, hash } = locked(&self.tail).written();
        Head { seq, hash: hex::encode(hash) }
    }

    pub fn health(&self) -> AuditHealth {
        let mut problems = locked(&self.damage).clone();
        let tail = locked(&self.tail);
        problems.extend(tail.trouble().map(|trouble| format!("the audit log cannot be written: {trouble}")));
        problems.extend(locked(&self.sync_trouble).clone());
        problems.extend(locked(&self.trim_trouble).clone());
        AuditHealth { problems, waiting: tail.waiting().len(), refused: tail.refused() }
    }

    /// Writes what waits and makes the disk keep it. Returns the last line that is safe, if that is a new one.
    pub(crate) fn sync(&self) -> Option<Link> {
        self.look_after_file();
        let (unsynced, refused) = {
            let mut tail = locked(&self.tail);
            let refused = tail.flush();
            (tail.take_unsynced(), refused)
        };
        if refused > 0 {
            self.host_event("audit_log_gap", format!("{refused} events were refused while the disk took nothing"));
        }
        let unsynced = unsynced?;
        let mut result = unsynced.files.iter().try_for_each(|file| file.sync_data());
        if unsynced.dir {
            result = result.and_then(|()| files::sync_dir(&self.dir));
        }
        let link = unsynced.link;
        *locked(&self.sync_trouble) = match &result {
            Ok(()) => None,
            Err(error) => Some(format!("the disk does not keep the audit log: {error}")),
        };
        match result {
            Ok(()) => Some(link),
            Err(_) => {
                locked(&self.tail).put_back(unsynced);
                None
            }
        }
    }

    /// Begins a new file if the one that is written to is old, so that it can go one day.
    pub(crate) fn leave_old_file(&self, keep: Keep) -> io::Result<()> {
        let Some(number) = locked(&self.tail).segment() else { return Ok(()) };
        if trim::begins_before(&self.dir, number, keep.of_one_file())? {
            locked(&self.tail).leave(number);
        }
        Ok(())
    }

    /// What is older than this and can go, up to a file.
    pub(crate) fn old(&self, begin: Begin, to: u64, safe: Link, older: Duration) -> io::Result<Old> {
        trim::find(&self.dir, begin, to, safe, older)
    }

    /// Whether the disk took nothing when it was last tried.
    pub(crate) fn is_stuck(&self) -> bool {
        locked(&self.tail).trouble().is_some()
    }

    /// Says where the log will begin, and gives the number of the line that does.
    pub(crate) fn announce(&self, begin: &Begin) -> Result<u64, AuditError> {
        let event = AuditEvent::Host { what: trim::ANNOUNCED.to_owned(), detail: begin.said() };
        let seq = self.add(&event)?;
        self.write_up_to(seq);
        Ok(seq)
    }

    /// Removes what comes before the log's beginning.
    pub(crate) fn remove_before(&self, begin: &Begin) -> io::Result<()> {
        trim::remove_before(&self.dir, begin)
    }

    /// Why what is old cannot be let go of, if so.
    pub(crate) fn set_trim_trouble(&self, trouble: Option<String>) {
        let said = |trouble: String| format!("old lines of the audit log cannot be let go of: {trouble}");
        *locked(&self.trim_trouble) = trouble.map(said);
    }

    fn look_after_file(&self) {
        let problem = locked(&self.tail).check_file();
        if let Some(problem) = problem {
            locked(&self.damage).push(problem.clone());
            self.host_event("audit_log_damaged", problem);
        }
    }
}

/// The line without what was recorded of the call, for people to look at: its hash is that of the whole.
fn shortened(line: &[u8]) -> Option<Vec<u8>> {
    let mut fields: serde_json::Map<String, serde_json::Value> = serde_json::from_slice(line).ok()?;
    let recorded: Vec<&str> =
        ["arguments", "result"].into_iter().filter(|name| fields.remove(*name).is_some()).collect();
    let left_out = fields.entry("left_out").or_insert_with(|| serde_json::json!([]));
    left_out.as_array_mut()?.extend(recorded.into_iter().map(serde_json::Value::from));
    serde_json::to_vec(&fields).ok()
}
