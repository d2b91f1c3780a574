//! The tools' own logs: what their code prints. Each server has one, bounded, so that no `console.log` fills a disk.

use crate::disk::Disk;
use crate::files::{self, locked};
use crate::{Directory, RegistryError};
use arc_swap::ArcSwap;
use serde::{Deserialize, Serialize};
use std::collections::HashMap;
use std::fs::{self, File, OpenOptions};
use std::io::{self, Read, Write};
use std::os::unix::fs::{FileExt, OpenOptionsExt};
use std::path::{Path, PathBuf};
use std::sync::atomic::{AtomicU64, Ordering};
use std::sync::{Arc, Mutex};
use tokio::sync::broadcast;

/// A log has two files of at most this size: the newer is written to, and becomes the older when it is full.
const HALF: u64 = 512 << 10;
const LONGEST_TEXT: usize = 64 << 10;
const MOST_OPEN: usize = 64;
/// Lines a follower may lag behind before it misses some.
const FOLLOWED_LINES: usize = 256;

/// One line that a tool wrote.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub struct ToolLine {
    /// RFC 3339 with milliseconds ([`crate::rfc3339_now`]).
    pub time: String,
    /// Id of the call.
    pub call: String,
    pub level: String,
    pub text: String,
}

pub struct ToolLogs {
    dir: PathBuf,
    directory: Arc<ArcSwap<Directory>>,
    disk: Arc<Disk>,
    /// By `tenant/server`.
    open: Mutex<HashMap<String, Arc<Log>>>,
    uses: AtomicU64,
    dropped: AtomicU64,
}

struct Log {
    files: Mutex<Files>,
    lines: broadcast::Sender<Arc<ToolLine>>,
    last_use: AtomicU64,
}

struct Files {
    path: PathBuf,
    /// The newer half, if it is open.
    file: Option<File>,
    length: u64,
}

impl ToolLogs {
    pub(crate) fn open(dir: &Path, directory: Arc<ArcSwap<Directory>>, disk: Arc<Disk>) -> io::Result<ToolLogs> {
        let dir = dir.join("logs");
        files::create_dir(&dir)?;
        remove_orphans(&dir, &directory.load());
        let (uses, dropped) = (AtomicU64::new(0), AtomicU64::new(0));
        Ok(ToolLogs { dir, directory, disk, open: Mutex::default(), uses, dropped })
    }

    /// Adds a line. Never fails: what the disk does not take is counted and forgotten. Nor does it bring the log of a
    /// server back that was deleted meanwhile.
    pub fn append(&self, tenant: &str, server: &str, line: &ToolLine) {
        let Ok(log) = self.log(tenant, server) else { return };
        let mut files = locked(&log.files);
        // Looked up under the lock: once a deleted server's log is gone, this must not make it anew.
        if self.directory.load().server(tenant, server).is_none() {
            return;
        }
        let line = bounded(line);
        // What is left of a full disk is for the audit log.
        if self.disk.check_reserve(0).is_err() || files.append(&line).is_err() {
            self.dropped.fetch_add(1, Ordering::Relaxed);
        }
        if log.lines.receiver_count() > 0 {
            let _ = log.lines.send(Arc::new(line));
        }
    }

    /// The last `n` lines, oldest first.
    pub fn tail(&self, tenant: &str, server: &str, n: usize) -> Result<Vec<ToolLine>, RegistryError> {
        let log = self.log(tenant, server)?;
        let text = locked(&log.files).read()?;
        let lines = text.split(|byte| *byte == b'\n').rev();
        let mut lines: Vec<ToolLine> = lines.filter_map(|line| serde_json::from_slice(line).ok()).take(n).collect();
        lines.reverse();
        Ok(lines)
    }

    /// Lines from now on. A receiver that lags misses some; it ends when the server is deleted. Of a server that does not
    /// exist it ends at once.
    pub fn follow(&self, tenant: &str, server: &str) -> broadcast::Receiver<Arc<ToolLine>> {
        match self.log(tenant, server) {
            Ok(log) => log.lines.subscribe(),
            Err(_) => broadcast::channel(1).1,
        }
    }

    /// How many lines could not be written.
    pub(crate) fn dropped(&self) -> u64 {
        self.dropped.load(Ordering::Relaxed)
    }

    pub(crate) fn remove_server(&self, tenant: &str, server: &str) {
        let mut open = locked(&self.open);
        let path = path(&self.dir, tenant, server);
        let log = open.remove(&format!("{tenant}/{server}"));
        let _guard = log.as_ref().map(|log| locked(&log.files));
        // What cannot be removed now is when the host starts again.
        let _ = fs::remove_file(&path);
        let _ = fs::remove_file(older(&path));
    }

    pub(crate) fn remove_tenant(&self, tenant: &str) {
        let mut open = locked(&self.open);
        let prefix = format!("{tenant}/");
        let logs: Vec<_> = open.extract_if(|name, _| name.starts_with(&prefix)).collect();
        let _guards: Vec<_> = logs.iter().map(|(_, log)| locked(&log.files)).collect();
        let _ = fs::remove_dir_all(self.dir.join(tenant));
    }

    fn log(&self, tenant: &str, server: &str) -> Result<Arc<Log>, RegistryError> {
        // Only names of servers that exist become paths.
        if self.directory.load().server(tenant, server).is_none() {
            return Err(RegistryError::not_found("server", server));
        }
        let mut open = locked(&self.open);
        let now = self.uses.fetch_add(1, Ordering::Relaxed);
        let name = format!("{tenant}/{server}");
        if let Some(log) = open.get(&name) {
            log.last_use.store(now, Ordering::Relaxed);
            return Ok(log.clone());
        }
        if open.len() >= MOST_OPEN {
            close_oldest(&mut open);
        }
        let log = Arc::new(Log {
            files: Mutex::new(Files { path: path(&self.dir, tenant, server), file: None, length: 0 }),
            lines: broadcast::channel(FOLLOWED_LINES).0,
            last_use: AtomicU64::new(now),
        });
        open.insert(name, log.clone());
        Ok(log)
    }
}

/// Closes the log that was not used for the longest time. One that somebody holds or follows is spared.
fn close_oldest(open: &mut HashMap<String, Arc<Log>>) {
    let idle = open.iter().filter(|(_, log)| Arc::strong_count(log) == 1 && log.lines.receiver_count() == 0);
    let oldest = idle.min_by_key(|(_, log)| log.last_use.load(Ordering::Relaxed));
    if let Some(name) = oldest.map(|(name, _)| name.clone()) {
        open.remove(&name);
    }
}

impl Files {
    fn append(&mut self, line: &ToolLine) -> io::Result<()> {
        let mut text = serde_json::to_vec(line)?;
        text.push(b'\n');
        if self.file.is_none() {
            self.file = Some(self.open()?);
        }
        if self.length > 0 && self.length + text.len() as u64 > HALF {
            fs::rename(&self.path, older(&self.path))?;
            self.file = None;
            self.file = Some(self.open()?);
        }
        let Some(file) = &mut self.file else { return Ok(()) };
        if let Err(error) = file.write_all(&text) {
            let _ = file.set_len(self.length);
            return Err(error);
        }
        self.length += text.len() as u64;
        Ok(())
    }

    fn open(&mut self) -> io::Result<File> {
        if let Some(dir) = self.path.parent() {
            files::create_dir(dir)?;
        }
        let mut file = OpenOptions::new().read(true).append(true).create(true).mode(0o600).open(&self.path)?;
        self.length = file.metadata()?.len();
        let mut last = [b'\n'];
        if self.length > 0 {
            file.read_exact_at(&mut last, self.length - 1)?;
        }
        if last != *b"\n" {
            file.write_all(b"\n")?; // a host died while it wrote; the next line is a new one
            self.length += 1;
        }
        Ok(file)
    }

    /// Both halves.
    fn read(&self) -> io::Result<Vec<u8>> {
        let mut text = Vec::new();
        for path in [older(&self.path), self.path.clone()] {
            match File::open(path) {
                Ok(file) => {
                    file.take(2 * HALF).read_to_end(&mut text)?;
                    // A line that was not written to its end must not spoil the one after it.
                    text.push(b'\n');
                }
                Err(error) if error.kind() == io::ErrorKind::NotFound => {}
                Err(error) => return Err(error),
            }
        }
        Ok(text)
    }
}

fn path(dir: &Path, tenant: &str, server: &str) -> PathBuf {
    dir.join(tenant).join(format!("{server}.log"))
}

fn older(path: &Path) -> PathBuf {
    path.with_extension("log.1")
}

fn bounded(line: &ToolLine) -> ToolLine {
    let mut line = line.clone();
    if line.text.len() > LONGEST_TEXT {
        line.text.truncate(line.text.floor_char_boundary(LONGEST_TEXT));
        line.text.push('…');
    }
    line
}

/// A host that died while it removed logs leaves some.
fn remove_orphans(dir: &Path, directory: &Directory) {
    let Ok(tenants) = fs::read_dir(dir) else { return };
    for entry in tenants.flatten() {
        let name = entry.file_name();
        let Some(tenant) = name.to_str().and_then(|name| directory.tenants.get(name)) else {
            let _ = fs::remove_dir_all(entry.path());
            continue;
        };
        let Ok(files) = fs::read_dir(entry.path()) else { continue };
        for file in files.flatten() {
            let name = file.file_name();
            let server = name.to_str().and_then(|name| name.split('.').next());
            if !server.is_some_and(|server| tenant.servers.contains_key(server)) {
                let _ = fs::remove_file(file.path());
            }
        }
    }
}
