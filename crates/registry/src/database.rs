//! The database: one connection that writes, a few that read.

use crate::audit::{Announced, Begin, Link};
use crate::error::Trouble;
use crate::files::locked;
use crate::{Cause, OpenError, RegistryError};
use rusqlite::{Connection, OpenFlags, Transaction, TransactionBehavior};
use std::fs::{OpenOptions, Permissions};
use std::io;
use std::os::unix::fs::{OpenOptionsExt, PermissionsExt};
use std::path::{Path, PathBuf};
use std::sync::Mutex;
use std::sync::atomic::{AtomicBool, AtomicUsize, Ordering};
use std::time::Duration;

const FILE: &str = "bulkhead.db";

/// Each brings the schema from its place in the list to the next.
const MIGRATIONS: &[&str] = &[
    include_str!("../migrations/0001.sql"),
    include_str!("../migrations/0002.sql"),
    include_str!("../migrations/0003_secrets.sql"),
    include_str!("../migrations/0004_layers.sql"),
    include_str!("../migrations/0005_living_keys.sql"),
    include_str!("../migrations/0006_audit_begin.sql"),
    include_str!("../migrations/0007_secret_policy.sql"),
    include_str!("../migrations/0008_approval.sql"),
    include_str!("../migrations/0009_issuer.sql"),
    include_str!("../migrations/0010_policy_places.sql"),
    include_str!("../migrations/0011_proposals.sql"),
];

/// The version that knows where the audit log begins.
const WITH_BEGIN: i64 = 6;

const READERS: usize = 2;
/// At most this much is given back at a time, so that nobody waits long for it.
const SHRINK_PAGES: u32 = 16_384;
/// How long to wait for somebody else who looks at the database, such as a backup.
const BUSY: Duration = Duration::from_secs(5);
/// The same, where it is tried again soon and others wait meanwhile.
const BUSY_SCRUBBING: Duration = Duration::from_millis(100);

pub(crate) struct Database {
    dir: PathBuf,
    writer: Mutex<Connection>,
    readers: [Mutex<Connection>; READERS],
    next_reader: AtomicUsize,
    /// Why the last write failed, if the reason lies with the disk.
    trouble: Mutex<Option<String>>,
    /// The write-ahead log still has what was sealed and should be gone.
    traces: AtomicBool,
}

impl Database {
    pub(crate) fn open(dir: &Path) -> Result<Database, OpenError> {
        let path = dir.join(FILE);
        protect(&path).map_err(OpenError::io("open the database", &path))?;
        let failed = |source| OpenError::Registry { dir: dir.to_owned(), source };
        let mut writer = connect(&path).map_err(|error| failed(diagnose(dir, error.into())))?;
        migrate(dir, &mut writer)?;
        let reader = || connect(&path).and_then(|c| c.pragma_update(None, "query_only", true).map(|()| Mutex::new(c)));
        let readers = [reader(), reader()].map(|reader| reader.map_err(|error| failed(error.into())));
        let [first, second] = readers;
        Ok(Database {
            dir: dir.to_owned(),
            writer: Mutex::new(writer),
            readers: [first?, second?],
            next_reader: AtomicUsize::new(0),
            trouble: Mutex::new(None),
            // Nobody knows what a host that was killed left there.
            traces: AtomicBool::new(true),
        })
    }

    pub(crate) fn read<T>(
        &self,
        read: impl FnOnce(&Connection) -> Result<T, RegistryError>,
    ) -> Result<T, RegistryError> {
        let reader = &self.readers[self.next_reader.fetch_add(1, Ordering::Relaxed) % READERS];
        read(&locked(reader))
    }

    /// Makes a change, all of it or nothing. `then` runs before any other change can be made.
    pub(crate) fn write<T, R>(
        &self,
        change: impl FnOnce(&Transaction<'_>) -> Result<T, RegistryError>,
        then: impl FnOnce(T) -> R,
    ) -> Result<R, RegistryError> {
        let mut writer = locked(&self.writer);
        let result = (|| {
            let transaction = writer.transaction_with_behavior(TransactionBehavior::Immediate)?;
            overwrite(&transaction, false)?;
            let value = change(&transaction)?;
            transaction.commit()?;
            Ok(value)
        })();
        match result {
            Ok(value) => {
                *locked(&self.trouble) = None;
                Ok(then(value))
            }
            Err(error) => Err(self.noted(error)),
        }
    }

    /// Remembers an error that the operator should know of.
    fn noted(&self, error: RegistryError) -> RegistryError {
        let error = diagnose(&self.dir, error);
        if matches!(error.code(), "disk_full" | "read_only" | "corrupt" | "internal") {
            *locked(&self.trouble) = Some(format!("changes cannot be saved: {error}"));
        }
        error
    }

    pub(crate) fn trouble(&self) -> Option<String> {
        locked(&self.trouble).clone()
    }

    /// Records where the audit log begins, for good: what comes before it may go then.
    pub(crate) fn record_begin(&self, begin: &Begin) -> Result<(), RegistryError> {
        self.write(
            |transaction| {
                let Begin { segment, after } = begin;
                let update = "UPDATE audit_begin SET segment = ?1, seq = ?2, hash = ?3";
                transaction.execute(update, (segment, after.seq, after.hash))?;
                transaction.execute("DELETE FROM audit_announced WHERE segment <= ?1", [segment])?;
                Ok(())
            },
            |()| (),
        )
    }

    /// Records where the log says that it will begin.
    pub(crate) fn record_announced(&self, announced: &Announced) -> Result<(), RegistryError> {
        self.write(
            |transaction| {
                let Announced { begin: Begin { segment, after }, at } = announced;
                let insert = "INSERT OR REPLACE INTO audit_announced VALUES (?1, ?2, ?3, ?4)";
                transaction.execute(insert, (segment, after.seq, after.hash, at))?;
                Ok(())
            },
            |()| (),
        )
    }

    /// What the log has announced, the oldest first.
    pub(crate) fn announced(&self) -> Result<Vec<Announced>, RegistryError> {
        self.read(|connection| {
            let query = "SELECT segment, seq, hash, announced_at FROM audit_announced ORDER BY segment";
            let mut statement = connection.prepare_cached(query)?;
            let rows = statement.query_map([], |row| {
                let begin = Begin { segment: row.get(0)?, after: Link { seq: row.get(1)?, hash: row.get(2)? } };
                Ok(Announced { begin, at: row.get(3)? })
            })?;
            Ok(rows.collect::<Result<_, _>>()?)
        })
    }

    /// Records how far the audit log is safe, and that these changes are in it. It may be lost in a power failure: then
    /// an earlier line is on record, which is no less true.
    pub(crate) fn record_head(&self, link: Link, written: &[String]) -> Result<(), RegistryError> {
        let mut writer = locked(&self.writer);
        let result = (|| {
            writer.pragma_update(None, "synchronous", "NORMAL")?;
            let transaction = writer.transaction_with_behavior(TransactionBehavior::Immediate)?;
            transaction.execute("UPDATE audit_head SET seq = ?1, hash = ?2", (link.seq, link.hash))?;
            let mut delete = transaction.prepare_cached("DELETE FROM outbox WHERE id = ?1")?;
            for id in written {
                delete.execute([id])?;
            }
            drop(delete);
            transaction.commit()
        })();
        let restored = writer.pragma_update(None, "synchronous", "FULL");
        match result.and(restored) {
            Ok(()) => {
                *locked(&self.trouble) = None;
                Ok(())
            }
            Err(error) => Err(self.noted(error.into())),
        }
    }

    /// Something sealed was replaced or removed, and is to be gone from the disk too. The keeper sees to it.
    pub(crate) fn leave_no_traces(&self) {
        self.traces.store(true, Ordering::Relaxed);
    }

    /// Empties the write-ahead log if there is anything in it that should be gone. In the database itself it was
    /// overwritten. While somebody else reads, such as a backup, it has to wait; it is tried again.
    pub(crate) fn scrub(&self) {
        if !self.traces.load(Ordering::Relaxed) {
            return;
        }
        let writer = locked(&self.writer);
        let checkpoint = || -> rusqlite::Result<bool> {
            writer.busy_timeout(BUSY_SCRUBBING)?;
            writer.query_row("PRAGMA wal_checkpoint(TRUNCATE)", [], |row| Ok(row.get::<_, i64>(0)? == 0))
        };
        let done = checkpoint().unwrap_or(false);
        let _ = writer.busy_timeout(BUSY);
        self.traces.store(!done, Ordering::Relaxed);
    }

    /// Gives the pages of what was deleted back to the disk. They would be used again anyway, so failing is no loss.
    pub(crate) fn shrink(&self) {
        let writer = locked(&self.writer);
        // It moves one page for each row that is asked for.
        let _ = writer.prepare(&format!("PRAGMA incremental_vacuum({SHRINK_PAGES})")).and_then(|mut vacuum| {
            let mut rows = vacuum.query([])?;
            while rows.next()?.is_some() {}
            Ok(())
        });
    }
}

/// SQLite would make the file readable for everybody, and a copy may be; SQLite's other files take after it.
fn protect(path: &Path) -> io::Result<()> {
    let file = OpenOptions::new().create(true).append(true).mode(0o600).open(path)?;
    match file.metadata()?.permissions().mode() & 0o077 {
        0 => Ok(()),
        _ => file.set_permissions(Permissions::from_mode(0o600)),
    }
}

fn connect(path: &Path) -> rusqlite::Result<Connection> {
    let flags = OpenFlags::SQLITE_OPEN_READ_WRITE | OpenFlags::SQLITE_OPEN_NO_MUTEX;
    let connection = Connection::open_with_flags(path, flags)?;
    connection.busy_timeout(BUSY)?;
    if version(&connection)? > MIGRATIONS.len() as i64 {
        return Ok(connection); // it will be refused, and must not be touched before
    }
    if version(&connection)? == 0 {
        connection.pragma_update(None, "auto_vacuum", "INCREMENTAL")?; // later it would have no effect
    }
    connection.pragma_update(None, "journal_mode", "WAL")?;
    connection.pragma_update(None, "synchronous", "FULL")?;
    connection.pragma_update(None, "foreign_keys", true)?;
    connection.pragma_update(None, "journal_size_limit", 64 << 20)?;
    Ok(connection)
}

/// Whether what is deleted from now on, until the change is made, is overwritten wherever it lay. For whole bundles that
/// would take seconds in which nobody else can change anything; otherwise it is done where it costs nothing.
pub(crate) fn overwrite(transaction: &Transaction<'_>, all: bool) -> rusqlite::Result<()> {
    transaction.pragma_update(None, "secure_delete", if all { "ON" } else { "FAST" })
}

fn version(connection: &Connection) -> rusqlite::Result<i64> {
    connection.pragma_query_value(None, "user_version", |row| row.get(0))
}

fn migrate(dir: &Path, connection: &mut Connection) -> Result<(), OpenError> {
    let known = MIGRATIONS.len() as i64;
    let run = |connection: &mut Connection| -> rusqlite::Result<i64> {
        loop {
            let version = version(connection)?;
            let Some(migration) = usize::try_from(version).ok().and_then(|version| MIGRATIONS.get(version)) else {
                return Ok(version);
            };
            let transaction = connection.transaction_with_behavior(TransactionBehavior::Immediate)?;
            overwrite(&transaction, true)?;
            transaction.execute_batch(migration)?;
            transaction.pragma_update(None, "user_version", version + 1)?;
            transaction.commit()?;
        }
    };
    let found = run(connection)
        .map_err(|error| OpenError::Registry { dir: dir.to_owned(), source: diagnose(dir, error.into()) })?;
    match found == known {
        true => Ok(()),
        false => Err(OpenError::Newer { dir: dir.to_owned(), found, known }),
    }
}

/// SQLite does not always say why a file could not be written; the directory itself can be asked.
fn diagnose(dir: &Path, error: RegistryError) -> RegistryError {
    let RegistryError::Internal { cause: Some(cause), .. } = &error else { return error };
    if !cause.is::<rusqlite::Error>() {
        return error;
    }
    let probe = dir.join("probe.new");
    let asked = std::fs::write(&probe, [0; 4096]);
    let _ = std::fs::remove_file(&probe);
    match (asked.as_ref().err().and_then(Trouble::of), error) {
        (Some(Trouble::Full), RegistryError::Internal { cause: Some(cause), .. }) => RegistryError::DiskFull(cause),
        (Some(Trouble::ReadOnly), RegistryError::Internal { cause: Some(cause), .. }) => RegistryError::ReadOnly(cause),
        (_, error) => error,
    }
}

/// The recorded head of the audit log and where it begins, for who only reads: a host may have the database open, or none.
pub(crate) fn recorded(dir: &Path) -> Result<(Link, Begin), Cause> {
    let path = dir.join(FILE);
    std::fs::metadata(&path)?;
    let flags = OpenFlags::SQLITE_OPEN_READ_ONLY | OpenFlags::SQLITE_OPEN_NO_MUTEX | OpenFlags::SQLITE_OPEN_URI;
    let ask = |address: &Path| -> rusqlite::Result<(Link, Begin)> {
        let connection = Connection::open_with_flags(address, flags)?;
        connection.busy_timeout(BUSY)?;
        // A host of an earlier version let go of nothing.
        let begin = if version(&connection)? < WITH_BEGIN { Begin::FIRST } else { read_begin(&connection)? };
        Ok((read_head(&connection)?, begin))
    };
    match ask(&path) {
        // On a disk that takes no writes SQLite cannot make the files it shares with others, and needs none.
        Err(error) if !dir.join(format!("{FILE}-wal")).exists() => Ok(ask(&immutable(&path).ok_or(error)?)?),
        other => Ok(other?),
    }
}

fn immutable(path: &Path) -> Option<PathBuf> {
    let path = std::path::absolute(path).ok()?;
    let text = path.to_str()?.replace('%', "%25").replace('?', "%3f").replace('#', "%23");
    Some(PathBuf::from(format!("file:{text}?immutable=1")))
}

pub(crate) fn read_begin(connection: &Connection) -> rusqlite::Result<Begin> {
    connection.query_row("SELECT segment, seq, hash FROM audit_begin", [], |row| {
        Ok(Begin { segment: row.get(0)?, after: Link { seq: row.get(1)?, hash: row.get(2)? } })
    })
}

pub(crate) fn read_head(connection: &Connection) -> rusqlite::Result<Link> {
    connection.query_row("SELECT seq, hash FROM audit_head", [], |row| Ok(Link { seq: row.get(0)?, hash: row.get(1)? }))
}
