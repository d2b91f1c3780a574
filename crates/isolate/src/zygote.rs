//! A zygote as the host sees it, base or deployment: it forks on command and tells how its children ended.

use crate::control::{self, Control};
use crate::driver::IDLE_CPU;
use crate::process::{Handle, Process, Whereabouts};
use isolate_wire::{Ended, Fork, Frame, Kind, encode, encode_with};
use jail::image::Image;
use jail::pidfd::{PidFd, living_children};
use std::collections::{HashSet, VecDeque};
use std::io;
use std::os::fd::{AsFd, OwnedFd};
use std::os::unix::net::UnixStream;
use std::sync::atomic::{AtomicBool, AtomicU64, Ordering};
use std::sync::{Arc, Mutex as StdMutex, MutexGuard, PoisonError, Weak};
use std::time::Duration;
use tokio::sync::Mutex;

/// An answer from code that is ours takes microseconds; a zygote that needs longer is not one any more.
pub(crate) const PATIENCE: Duration = Duration::from_secs(10);

/// Forks that may be under way without anybody having heard of them, of one zygote.
const MOST_EXPECTED: usize = 16;

/// Of a zygote's frozen memory so much is joined into huge pages; the rest would take long for little.
const JOINED: u64 = 32 << 20;

/// CPU time that a fork, or taking note of one's end, may take of a zygote, and that freezing may: far more than they do.
const FORK_CPU: Duration = Duration::from_millis(20);
const FREEZE_CPU: Duration = Duration::from_secs(4);

/// A freshly forked process with its own channel.
pub(crate) struct Forked {
    pub(crate) process: Process,
    pub(crate) stream: UnixStream,
}

pub(crate) struct Zygote {
    desk: Mutex<Desk>,
    process: Process,
    alive: AtomicBool,
    forks: AtomicU64,
    /// What was seen of its CPU time at the last look, and what it was told to do since may take of it.
    cpu_seen: StdMutex<Duration>,
    cpu_allowed_ms: AtomicU64,
    /// All that it was told to fork, as far as somebody still has to do with it.
    children: StdMutex<Vec<Weak<Whereabouts>>>,
    /// Those of them that fork others.
    zygotes: StdMutex<Vec<Weak<Zygote>>>,
    /// A zygote that was forked lives no longer than the one it came from.
    pub(crate) parent: Option<Arc<Zygote>>,
}

/// The zygote's channel, and whom it has been told to fork without anybody having waited for the answer.
struct Desk {
    control: Control,
    expected: VecDeque<Arc<Whereabouts>>,
}

impl Desk {
    /// The next frame that is not about somebody expected.
    async fn answer(&mut self) -> io::Result<Frame> {
        loop {
            let frame = self.control.receive().await?;
            match self.expected.pop_front() {
                Some(whereabouts) => self.settle(&whereabouts, &frame)?,
                None => return Ok(frame),
            }
        }
    }

    /// Takes in what has been said, and waits while too many are expected: the kernel lets only so many descriptors be on
    /// their way, and a zygote that cannot pass one on ends.
    async fn make_room(&mut self) -> io::Result<()> {
        self.look()?;
        while self.expected.len() >= MOST_EXPECTED {
            self.settle_next().await?;
        }
        Ok(())
    }

    /// Waits for what is said of the next one.
    async fn settle_next(&mut self) -> io::Result<()> {
        let frame = self.control.receive().await?;
        match self.expected.pop_front() {
            Some(next) => self.settle(&next, &frame),
            None => Err(nonsense(&frame)),
        }
    }

    /// Takes in what has been said of those who are expected, as far as it is there.
    fn look(&mut self) -> io::Result<()> {
        while let Some(whereabouts) = self.expected.front().cloned() {
            let Some(frame) = self.control.receive_now()? else { return Ok(()) };
            self.expected.pop_front();
            self.settle(&whereabouts, &frame)?;
        }
        Ok(())
    }

    fn settle(&mut self, whereabouts: &Whereabouts, frame: &Frame) -> io::Result<()> {
        let (Kind::Forked, Some(fd)) = (frame.kind, self.control.descriptor()) else { return Err(nonsense(frame)) };
        let (handle, pid) = PidFd::from_untrusted(fd).map_err(io::Error::other)?;
        whereabouts.settle(Handle { handle, pid, id: frame.id });
        Ok(())
    }
}

impl Zygote {
    pub(crate) fn new(control: Control, process: Process, parent: Option<Arc<Zygote>>) -> Zygote {
        let desk = Mutex::new(Desk { control, expected: VecDeque::new() });
        let (alive, forks, cpu_allowed_ms) = (AtomicBool::new(true), AtomicU64::new(0), AtomicU64::new(0));
        let (cpu_seen, children, zygotes) = (StdMutex::default(), StdMutex::default(), StdMutex::default());
        Zygote { desk, process, alive, forks, cpu_seen, cpu_allowed_ms, children, zygotes, parent }
    }

    /// Whether it has used more of the CPU since the last look than what it was told to do can have taken. Its server's code
    /// ran while it loaded; from then on it only forks.
    pub(crate) fn computes(&self) -> bool {
        // Somebody waits for its answer, and not for ever.
        let Ok(_desk) = self.desk.try_lock() else { return false };
        let Some(cpu) = self.process.cpu_time() else { return false };
        let mut seen = self.cpu_seen.lock().unwrap_or_else(PoisonError::into_inner);
        let used = cpu.saturating_sub(std::mem::replace(&mut *seen, cpu));
        used > IDLE_CPU + Duration::from_millis(self.cpu_allowed_ms.swap(0, Ordering::Relaxed))
    }

    /// What it has used so far is no matter any more.
    pub(crate) fn rest(&self) {
        self.computes();
    }

    fn allow(&self, cpu: Duration) {
        self.cpu_allowed_ms.fetch_add(u64::try_from(cpu.as_millis()).unwrap_or(0), Ordering::Relaxed);
    }

    /// The process that forks. Of a base zygote the host has started the one around it, whose only child it is.
    pub(crate) fn pid(&self) -> Option<i32> {
        let pid = self.process.pid()?;
        if self.parent.is_some() { Some(pid) } else { living_children(pid).first().copied() }
    }

    /// Remembers one that was forked from this one.
    pub(crate) fn adopt(&self, zygote: &Arc<Zygote>) {
        keep(&self.zygotes, Arc::downgrade(zygote));
    }

    /// The zygotes that were forked from this one and are still there.
    pub(crate) fn zygotes(&self) -> Vec<Arc<Zygote>> {
        lock(&self.zygotes).iter().filter_map(Weak::upgrade).collect()
    }

    /// Whether each of these processes was ordered here. `None` while an exchange is under way, which may fork for itself.
    pub(crate) fn knows_all(&self, pids: &[i32]) -> Option<bool> {
        let mut desk = self.desk.try_lock().ok()?;
        if desk.look().is_err() {
            self.end();
            return None;
        }
        let children = lock(&self.children);
        let known: HashSet<i32> = children.iter().filter_map(|child| child.upgrade()?.handle()?.pid).collect();
        Some(pids.iter().all(|pid| known.contains(pid)))
    }

    pub(crate) fn alive(&self) -> bool {
        self.alive.load(Ordering::Relaxed) && self.parent.as_ref().is_none_or(|parent| parent.alive())
    }

    pub(crate) fn process(&self) -> &Process {
        &self.process
    }

    pub(crate) fn forks(&self) -> u64 {
        self.forks.load(Ordering::Relaxed)
    }

    /// Forks a process and waits until it is there.
    pub(crate) async fn fork(self: &Arc<Zygote>, fork: &Fork) -> io::Result<Forked> {
        let (stream, theirs) = control::pair()?;
        let process = Process::expected(self);
        self.order(&process, fork, theirs).await?;
        self.find(process.whereabouts()).await?;
        Ok(Forked { process, stream })
    }

    /// Has a process forked, and does not wait for it. The host makes the channel, so that a zygote can hand over nothing
    /// but its own children; what is in there already, the process reads first.
    pub(crate) async fn order(&self, process: &Process, fork: &Fork, channel: OwnedFd) -> io::Result<()> {
        let command = encode_with(Kind::Fork, 0, fork, b"").ok_or_else(too_long)?;
        let mut desk = self.desk.lock().await;
        if !self.alive() {
            return Err(io::ErrorKind::BrokenPipe.into());
        }
        // Safe to leave while it waits: nothing was sent then, or all of it.
        let sending = async {
            desk.make_room().await?;
            desk.control.send_at_once(&command, channel.as_fd()).await
        };
        let sent = tokio::time::timeout(PATIENCE, sending).await;
        if let Err(error) = sent.unwrap_or(Err(io::ErrorKind::TimedOut.into())) {
            self.end();
            return Err(error);
        }
        self.allow(FORK_CPU);
        process.whereabouts().ordered();
        desk.expected.push_back(process.whereabouts().clone());
        keep(&self.children, Arc::downgrade(process.whereabouts()));
        self.forks.fetch_add(1, Ordering::Relaxed);
        Ok(())
    }

    /// Takes in what the zygote has said, unless somebody is at it who will.
    pub(crate) fn look(&self) {
        if let Ok(mut desk) = self.desk.try_lock()
            && desk.look().is_err()
        {
            self.end();
        }
    }

    /// Waits until the zygote has said which process it is. One that does not say so in time is ended.
    pub(crate) async fn find<'a>(&self, whereabouts: &'a Whereabouts) -> io::Result<&'a Handle> {
        if let Some(handle) = whereabouts.handle() {
            return Ok(handle);
        }
        let mut desk = self.desk.lock().await;
        let finding = async {
            loop {
                // Somebody else may have heard it.
                if let Some(handle) = whereabouts.handle() {
                    return Ok(handle);
                }
                if desk.expected.is_empty() {
                    return Err(io::ErrorKind::BrokenPipe.into());
                }
                desk.settle_next().await?;
            }
        };
        let found = tokio::time::timeout(PATIENCE, finding).await.unwrap_or(Err(io::ErrorKind::TimedOut.into()));
        if found.is_err() {
            self.end();
        }
        found
    }

    /// Has it put its memory into a file, after which forks cost less. Nobody can write to the file afterwards: a zygote
    /// that keeps a way to is ended. Like [`Zygote::exchange_whole`], it goes on when the caller goes away.
    pub(crate) async fn freeze(self: &Arc<Zygote>, most: u64) -> io::Result<()> {
        let zygote = self.clone();
        let freezing = tokio::spawn(async move { zygote.freeze_alone(most).await });
        freezing.await.map_err(io::Error::other)?
    }

    /// Nothing is forked meanwhile: the kernel does not join pages that someone just looks at.
    async fn freeze_alone(&self, most: u64) -> io::Result<()> {
        let mut desk = self.desk.lock().await;
        self.allow(FREEZE_CPU);
        let image = Image::new(most).map_err(io::Error::other)?;
        let command = encode(Kind::Freeze, 0, b"", &image.length().to_le_bytes()).ok_or_else(too_long)?;
        let file = image.as_fd().try_clone_to_owned()?;
        let frame = self.exchange_at(&mut desk, &command, Some(file), PATIENCE).await?;
        if frame.kind != Kind::Frozen {
            return Err(self.nonsense(&frame));
        }
        if let Err(error) = image.seal() {
            self.end();
            return Err(io::Error::other(error));
        }
        let length = <[u8; 8]>::try_from(&frame.body[..]).map_or(0, u64::from_le_bytes).min(JOINED);
        let joined = tokio::task::spawn_blocking(move || image.join_pages(length));
        joined.await.map_err(io::Error::other)?;
        // Joining takes the pages out of the zygote's page tables, and its forks are to inherit those.
        let command = encode(Kind::Rehearse, 0, b"", b"").ok_or_else(too_long)?;
        let frame = self.exchange_at(&mut desk, &command, None, PATIENCE).await?;
        if frame.kind == Kind::Rehearsed { Ok(()) } else { Err(self.nonsense(&frame)) }
    }

    /// How a child ended. The caller has killed it or seen it gone. `None` when the zygote itself is gone.
    pub(crate) async fn reap(self: &Arc<Zygote>, process: &Process) -> Option<Ended> {
        let id = self.find(process.whereabouts()).await.ok()?.id;
        let command = encode(Kind::Reap, id, b"", b"")?;
        self.allow(FORK_CPU);
        let frame = self.exchange_whole(command, None).await.ok()?;
        if frame.kind != Kind::Reaped || frame.id != id {
            self.nonsense(&frame);
            return None;
        }
        frame.meta().ok()
    }

    /// As [`Zygote::exchange`], but goes on to its end when the caller goes away: many depend on this zygote, and
    /// no caller may take it along.
    async fn exchange_whole(self: &Arc<Zygote>, command: Vec<u8>, fd: Option<OwnedFd>) -> io::Result<Frame> {
        let zygote = self.clone();
        let exchange = tokio::spawn(async move { zygote.exchange(&command, fd, PATIENCE).await });
        exchange.await.map_err(io::Error::other)?
    }

    /// One command, one answer. A zygote that does not answer in time, or breaks off, or whose caller goes away
    /// before the answer, is killed.
    pub(crate) async fn exchange(&self, command: &[u8], fd: Option<OwnedFd>, within: Duration) -> io::Result<Frame> {
        let mut desk = self.desk.lock().await;
        self.exchange_at(&mut desk, command, fd, within).await
    }

    async fn exchange_at(
        &self,
        desk: &mut Desk,
        command: &[u8],
        fd: Option<OwnedFd>,
        within: Duration,
    ) -> io::Result<Frame> {
        if !self.alive() {
            return Err(io::ErrorKind::BrokenPipe.into());
        }
        // Dropped half-way, the next exchange would read this one's answer.
        let mut guard = Broken { zygote: Some(self) };
        let exchange = async {
            desk.control.send(command, fd.as_ref().map(|fd| fd.as_fd())).await?;
            drop(fd);
            desk.answer().await
        };
        let result = tokio::time::timeout(within, exchange).await.unwrap_or(Err(io::ErrorKind::TimedOut.into()));
        if result.is_ok() && !desk.control.strays() {
            guard.zygote = None;
        }
        result
    }

    fn nonsense(&self, frame: &Frame) -> io::Error {
        self.end();
        nonsense(frame)
    }

    pub(crate) fn end(&self) {
        self.alive.store(false, Ordering::Relaxed);
        self.process.kill();
    }
}

/// Ends the zygote unless the exchange was completed.
struct Broken<'a> {
    zygote: Option<&'a Zygote>,
}

impl Drop for Broken<'_> {
    fn drop(&mut self) {
        if let Some(zygote) = self.zygote {
            zygote.end();
        }
    }
}

/// Adds one, and now and then forgets those that are gone.
fn keep<T>(list: &StdMutex<Vec<Weak<T>>>, one: Weak<T>) {
    let mut list = lock(list);
    if list.len() == list.capacity() {
        list.retain(|other| other.strong_count() > 0);
        let room = list.len().max(32);
        list.reserve(room);
    }
    list.push(one);
}

fn lock<T>(mutex: &StdMutex<T>) -> MutexGuard<'_, T> {
    mutex.lock().unwrap_or_else(PoisonError::into_inner)
}

fn nonsense(frame: &Frame) -> io::Error {
    io::Error::other(format!("a zygote answered with a {:?} frame", frame.kind))
}

fn too_long() -> io::Error {
    io::Error::other("a command does not fit a frame")
}
