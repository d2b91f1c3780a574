//! A zygote as the host sees it, base or deployment: it forks on command and tells how its children ended.

use crate::control::{self, Control};
use isolate_wire::{Ended, Fork, Frame, Kind, encode, encode_with};
use jail::image::Image;
use jail::pidfd::{Pace, PidFd};
use std::io;
use std::os::fd::{AsFd, OwnedFd};
use std::sync::Arc;
use std::sync::atomic::{AtomicBool, AtomicU64, Ordering};
use std::time::Duration;
use tokio::net::UnixStream;
use tokio::sync::Mutex;

/// An answer from code that is ours takes microseconds; a zygote that needs longer is not one any more.
const PATIENCE: Duration = Duration::from_secs(10);

/// Of a zygote's frozen memory so much is joined into huge pages; the rest would take long for little.
const JOINED: u64 = 32 << 20;

/// A process with its kernel handle. Dropping it kills it.
pub(crate) struct Process {
    view: View,
}

/// A look at a process, without a say in how long it lives.
#[derive(Clone)]
pub(crate) struct View {
    handle: Arc<PidFd>,
    pid: i32,
}

impl View {
    /// CPU time so far, from the kernel. `None` once it is reaped.
    pub(crate) fn cpu_time(&self) -> Option<Duration> {
        self.handle.cpu_time(self.pid).ok()
    }

    /// One that is gone competes with nobody, and where the kernel refuses, all compete as they would anyway.
    pub(crate) fn set_pace(&self, pace: Pace) {
        let _ = self.handle.set_pace(self.pid, pace);
    }
}

impl Process {
    pub(crate) fn new(handle: PidFd) -> io::Result<Process> {
        let pid = handle.pid().map_err(io::Error::other)?;
        Ok(Process { view: View { handle: Arc::new(handle), pid } })
    }

    pub(crate) fn pid(&self) -> i32 {
        self.view.pid
    }

    pub(crate) fn view(&self) -> View {
        self.view.clone()
    }

    /// Safe to repeat, and on a process that has ended.
    pub(crate) fn kill(&self) {
        // The handle names this process and no other, so the only failure is that it is gone already.
        let _ = self.view.handle.kill();
    }

    /// CPU time so far, from the kernel. `None` once it is reaped.
    pub(crate) fn cpu_time(&self) -> Option<Duration> {
        self.view.cpu_time()
    }
}

impl Drop for Process {
    fn drop(&mut self) {
        self.kill();
    }
}

/// A freshly forked process with its own channel.
pub(crate) struct Forked {
    /// The zygote's name for it.
    pub(crate) id: u32,
    pub(crate) process: Process,
    pub(crate) stream: UnixStream,
}

/// A frame, and the descriptor that came with it.
type Answer = (Frame, Option<OwnedFd>);

pub(crate) struct Zygote {
    control: Mutex<Control>,
    process: Process,
    alive: AtomicBool,
    forks: AtomicU64,
    /// A zygote that was forked lives no longer than the one it came from.
    pub(crate) parent: Option<Arc<Zygote>>,
}

impl Zygote {
    pub(crate) fn new(control: Control, process: Process, parent: Option<Arc<Zygote>>) -> Zygote {
        Zygote { control: Mutex::new(control), process, alive: AtomicBool::new(true), forks: AtomicU64::new(0), parent }
    }

    pub(crate) fn alive(&self) -> bool {
        self.alive.load(Ordering::Relaxed) && self.parent.as_ref().is_none_or(|parent| parent.alive())
    }

    pub(crate) fn forks(&self) -> u64 {
        self.forks.load(Ordering::Relaxed)
    }

    /// Forks a process. The host makes the channel, so that a zygote can hand over nothing but its own children.
    pub(crate) async fn fork(self: &Arc<Zygote>, fork: &Fork) -> io::Result<Forked> {
        let (ours, theirs) = control::pair()?;
        let command = encode_with(Kind::Fork, 0, fork, b"").ok_or_else(too_long)?;
        let (frame, fd) = self.exchange_whole(command, Some(theirs)).await?;
        let (Kind::Forked, Some(fd)) = (frame.kind, fd) else { return Err(self.nonsense(&frame)) };
        let (handle, pid) = PidFd::from_untrusted(fd).map_err(io::Error::other)?;
        let process = Process { view: View { handle: Arc::new(handle), pid } };
        self.forks.fetch_add(1, Ordering::Relaxed);
        Ok(Forked { id: frame.id, process, stream: ours })
    }

    /// Has it put its memory into a file, after which forks cost less. Nobody can write to the file afterwards: a zygote
    /// that keeps a way to is ended.
    pub(crate) async fn freeze(self: &Arc<Zygote>, most: u64) -> io::Result<()> {
        let image = Image::new(most).map_err(io::Error::other)?;
        let command = encode(Kind::Freeze, 0, b"", &image.length().to_le_bytes()).ok_or_else(too_long)?;
        let (frame, _) = self.exchange_whole(command, Some(image.as_fd().try_clone_to_owned()?)).await?;
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
        let (frame, _) = self.exchange_whole(command, None).await?;
        if frame.kind == Kind::Rehearsed { Ok(()) } else { Err(self.nonsense(&frame)) }
    }

    /// How a child ended. The caller has killed it or seen it gone. `None` when the zygote itself is gone.
    pub(crate) async fn reap(self: &Arc<Zygote>, id: u32) -> Option<Ended> {
        let command = encode(Kind::Reap, id, b"", b"")?;
        let (frame, _) = self.exchange_whole(command, None).await.ok()?;
        if frame.kind != Kind::Reaped || frame.id != id {
            self.nonsense(&frame);
            return None;
        }
        frame.meta().ok()
    }

    /// As [`Zygote::exchange`], but goes on to its end when the caller goes away: many depend on this zygote, and
    /// no caller may take it along.
    async fn exchange_whole(self: &Arc<Zygote>, command: Vec<u8>, fd: Option<OwnedFd>) -> io::Result<Answer> {
        let zygote = self.clone();
        let exchange = tokio::spawn(async move { zygote.exchange(&command, fd, PATIENCE).await });
        exchange.await.map_err(io::Error::other)?
    }

    /// One command, one answer. A zygote that does not answer in time, or breaks off, or whose caller goes away
    /// before the answer, is killed.
    pub(crate) async fn exchange(&self, command: &[u8], fd: Option<OwnedFd>, within: Duration) -> io::Result<Answer> {
        let mut control = self.control.lock().await;
        if !self.alive() {
            return Err(io::ErrorKind::BrokenPipe.into());
        }
        // Dropped half-way, the next exchange would read this one's answer.
        let mut guard = Broken { zygote: Some(self) };
        let exchange = async {
            control.send(command, fd.as_ref().map(|fd| fd.as_fd())).await?;
            drop(fd);
            control.receive().await
        };
        let result = tokio::time::timeout(within, exchange).await.unwrap_or(Err(io::ErrorKind::TimedOut.into()));
        if result.is_ok() {
            guard.zygote = None;
        }
        result
    }

    fn nonsense(&self, frame: &Frame) -> io::Error {
        self.end();
        io::Error::other(format!("a zygote answered with a {:?} frame", frame.kind))
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

fn too_long() -> io::Error {
    io::Error::other("a command does not fit a frame")
}
