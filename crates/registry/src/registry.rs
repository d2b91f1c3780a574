//! The registry as a whole: opening, changing, watching, closing.

use crate::audit::{AuditHealth, AuditLog, Bounds};
use crate::database::{self, Database};
use crate::disk::{self, Disk};
use crate::keeper::Keeper;
use crate::layers::{self, Layers};
use crate::logs::ToolLogs;
use crate::outbox::{self, Outbox, Pending};
use crate::snapshot::{self, Edit};
use crate::{Actor, ChangeEvent, Directory, OpenError, RegistryError, lock, operator};
use arc_swap::ArcSwap;
use rusqlite::{Connection, OptionalExtension, Transaction};
use std::path::Path;
use std::sync::Arc;
use std::time::Duration;
use tokio::sync::watch;

/// A data directory that this process owns. Clones are the same registry.
///
/// Methods that change something block until the change is on the disk. An error means that nothing was changed.
#[derive(Clone)]
pub struct Registry {
    shared: Arc<Shared>,
}

struct Shared {
    directory: Arc<ArcSwap<Directory>>,
    revision: watch::Sender<u64>,
    stores: Arc<Stores>,
    logs: ToolLogs,
    layers: Layers,
    disk: Arc<Disk>,
    // Dropped in this order: the last word is written while the directory is still ours.
    keeper: Keeper,
    _lock: lock::Lock,
}

/// What the keeper looks after.
pub(crate) struct Stores {
    pub database: Database,
    pub audit: AuditLog,
    pub outbox: Outbox,
}

/// What is wrong with the data directory, for `/readyz` and the operator.
#[derive(Clone, Debug, Default, PartialEq, Eq, serde::Serialize)]
pub struct Health {
    /// In words; empty when all is well. Those of the audit log are among them.
    pub problems: Vec<String>,
    pub audit: AuditHealth,
    /// Lines of tools' logs that could not be written.
    pub tool_lines_dropped: u64,
}

/// How a data directory is kept.
#[derive(Clone, Copy, Debug)]
pub struct OpenOptions {
    /// Lines of the audit log that are older than this go, where not set: never.
    pub keep_audit_log: Option<Duration>,
    /// Of a file of the audit log. Tests make these small.
    #[doc(hidden)]
    pub segment_bytes: u64,
    #[doc(hidden)]
    pub waiting_lines: usize,
    /// What the layers of one tenant may take of the disk.
    #[doc(hidden)]
    pub layer_bytes: u64,
    /// What everything that one tenant has deployed may take of the disk, unless its quota says otherwise.
    pub tenant_bytes: u64,
    /// Free space below which tenants deploy and record nothing.
    pub reserve_bytes: u64,
}

impl Default for OpenOptions {
    fn default() -> OpenOptions {
        let Bounds { segment_bytes, waiting_lines, .. } = Bounds::default();
        OpenOptions {
            keep_audit_log: None,
            segment_bytes,
            waiting_lines,
            layer_bytes: layers::MOST_BYTES,
            tenant_bytes: disk::TENANT_BYTES,
            reserve_bytes: disk::RESERVE_BYTES,
        }
    }
}

/// A change that is ready to be committed.
pub(crate) struct Change<R> {
    pub edits: Vec<Edit>,
    pub event: ChangeEvent,
    pub answer: R,
}

/// What became of a wish for a change.
pub(crate) enum Wish<R> {
    Change(Change<R>),
    /// Everything is so already.
    Granted(R),
}

impl Registry {
    /// Opens a data directory, or makes one. A new one has an operator's key in `operator.key`.
    pub fn open(dir: &Path) -> Result<Registry, OpenError> {
        Registry::open_with(dir, OpenOptions::default())
    }

    pub fn open_with(dir: &Path, options: OpenOptions) -> Result<Registry, OpenError> {
        // Whatever becomes of the working directory.
        let dir = &std::path::absolute(dir).map_err(OpenError::io("find", dir))?;
        let lock = lock::lock(dir)?;
        let database = Database::open(dir)?;
        operator::ensure(dir, &database)?;
        let failed = |source| OpenError::Registry { dir: dir.to_owned(), source };
        let (directory, recorded, begin) = database
            .read(|connection| {
                let (head, begin) = (database::read_head(connection)?, database::read_begin(connection)?);
                Ok((snapshot::load(connection)?, head, begin))
            })
            .map_err(failed)?;
        let bounds =
            Bounds { segment_bytes: options.segment_bytes, waiting_lines: options.waiting_lines, ..Bounds::default() };
        let (audit, logged) =
            AuditLog::open(dir, recorded, begin, bounds).map_err(OpenError::io("open the audit log in", dir))?;
        let outbox = Outbox::load(&database, &logged).map_err(failed)?;
        outbox.forward(&audit);
        let directory = Arc::new(ArcSwap::from_pointee(directory));
        let disk = Arc::new(Disk::new(dir, options.tenant_bytes, options.reserve_bytes));
        let logs = ToolLogs::open(dir, directory.clone(), disk.clone())
            .map_err(OpenError::io("open the tools' logs in", dir))?;
        let layers =
            Layers::open(dir, &database, options.layer_bytes).map_err(OpenError::io("open the layers in", dir))?;
        let stores = Arc::new(Stores { database, audit, outbox });
        let keeper = Keeper::start(stores.clone(), recorded, begin, options.keep_audit_log)
            .map_err(OpenError::io("start a thread for", dir))?;
        let revision = watch::Sender::new(directory.load().revision);
        let shared = Shared { directory, revision, stores, logs, layers, disk, keeper, _lock: lock };
        Ok(Registry { shared: Arc::new(shared) })
    }

    /// Who exists and may do what, right now. Costs no lock and no disk.
    pub fn directory(&self) -> Arc<Directory> {
        self.shared.directory.load_full()
    }

    /// The revision of the directory, whenever it changes.
    pub fn watch(&self) -> watch::Receiver<u64> {
        self.shared.revision.subscribe()
    }

    pub fn audit(&self) -> &AuditLog {
        &self.shared.stores.audit
    }

    pub fn logs(&self) -> &ToolLogs {
        &self.shared.logs
    }

    pub fn health(&self) -> Health {
        let audit = self.audit().health();
        let mut problems = audit.problems.clone();
        problems.extend(self.database().trouble());
        problems.extend(self.disk().trouble());
        Health { problems, audit, tool_lines_dropped: self.logs().dropped() }
    }

    /// A random key of the host's own for some purpose: made when it is first asked for, the same ever after.
    pub fn host_key(&self, purpose: &str) -> Result<[u8; 32], RegistryError> {
        let find = |connection: &Connection| {
            let query = "SELECT bytes FROM host_keys WHERE purpose = ?1";
            Ok(connection.query_row(query, [purpose], |row| row.get(0)).optional()?)
        };
        if let Some(key) = self.database().read(find)? {
            return Ok(key);
        }
        let mut key = [0; 32];
        getrandom::fill(&mut key)?;
        let make = |transaction: &Transaction<'_>| match find(transaction)? {
            Some(key) => Ok(key), // somebody else was quicker
            None => {
                transaction.execute("INSERT INTO host_keys VALUES (?1, ?2)", (purpose, key))?;
                Ok(key)
            }
        };
        self.database().write(make, |key| key)
    }

    /// Writes down everything that is still in memory, so that nothing has to be repaired at the next start. Dropping the
    /// last clone does the same, as well as it can.
    pub fn close(&self) -> Result<(), RegistryError> {
        self.shared.keeper.settle()?;
        match self.audit().health() {
            AuditHealth { waiting: 0, .. } => Ok(()),
            health => Err(RegistryError::Internal { what: health.problems.join("; "), cause: None }),
        }
    }

    pub(crate) fn database(&self) -> &Database {
        &self.shared.stores.database
    }

    pub(crate) fn disk(&self) -> &Disk {
        &self.shared.disk
    }

    pub(crate) fn layers(&self) -> &Layers {
        &self.shared.layers
    }

    /// The one way to change who exists and what is deployed. When it returns, the change is on the disk, in the directory
    /// and on its way into the audit log.
    pub(crate) fn change<R>(
        &self,
        make: impl FnOnce(&Transaction<'_>, &Directory) -> Result<Wish<R>, RegistryError>,
    ) -> Result<R, RegistryError> {
        let Shared { directory, stores, keeper, .. } = &*self.shared;
        stores.database.write(
            |transaction| match make(transaction, &directory.load())? {
                Wish::Granted(answer) => Ok((answer, None)),
                Wish::Change(Change { edits, event, answer }) => {
                    Ok((answer, Some((edits, outbox::put(transaction, &event)?))))
                }
            },
            |(answer, changed): (R, Option<(Vec<Edit>, Pending)>)| {
                if let Some((edits, pending)) = changed {
                    if edits.iter().any(Edit::leaves_traces) {
                        stores.database.leave_no_traces();
                    }
                    self.publish(edits);
                    stores.outbox.take(pending, &stores.audit);
                    keeper.wake();
                }
                answer
            },
        )
    }

    /// Changes what is only in memory, in turn with all other changes.
    pub(crate) fn edit(
        &self,
        make: impl FnOnce(&Directory) -> Result<Vec<Edit>, RegistryError>,
    ) -> Result<(), RegistryError> {
        let Shared { directory, stores, .. } = &*self.shared;
        stores.database.write(|_| make(&directory.load()), |edits| self.publish(edits))
    }

    fn publish(&self, edits: Vec<Edit>) {
        let edited = snapshot::edited(&self.shared.directory.load(), edits);
        let number = edited.revision;
        self.shared.directory.store(Arc::new(edited));
        self.shared.revision.send_replace(number);
    }
}

impl Actor {
    /// The host itself.
    pub fn host() -> Actor {
        Actor("host".to_owned())
    }
}
