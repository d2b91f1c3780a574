//! A driver whose compartment the test plays itself.

use super::super::*;
use crate::control::{self, Control};
use jail::pidfd::PidFd;
use std::os::fd::OwnedFd;
use std::os::unix::process::ExitStatusExt;
use std::process::{Child, Command};
use std::sync::atomic::{AtomicU64, Ordering};
use tokio::net::UnixStream;

/// Small, so that a script of a few hundred frames meets each of them.
pub(super) fn limits() -> Limits {
    Limits { time_ms: 1000, result_kb: 1, log_kb: 4, host_calls: 8, ..Limits::default() }
}

/// The process is a real one that does nothing; what it would say is said by the test at the channel's other end.
pub(super) struct Rig {
    pub(super) driver: Option<Driver>,
    sleeper: Child,
    other_end: Option<OwnedFd>,
}

impl Rig {
    pub(super) fn new() -> Rig {
        Rig::around(Command::new("sleep").arg("600"))
    }

    /// With another process than one that does nothing. It is killed with the rig.
    pub(super) fn around(command: &mut Command) -> Rig {
        let sleeper = command.spawn().expect("every system has `sleep` and `sh`");
        let process = || {
            let pid = i32::try_from(sleeper.id()).expect("a process's number");
            Process::new(PidFd::open(pid).expect("it was just started")).expect("it is not waited for yet")
        };
        // The zygote is gone, so that nobody says how the process ended.
        let (control, gone) = control::pair().expect("a pair");
        drop(gone);
        let zygote = Arc::new(Zygote::new(Control::new(control), process(), None));
        let (stream, other_end) = control::pair().expect("a pair");
        let driver = Driver::new(Forked { process: process(), stream }, zygote).expect("inside a runtime");
        Rig { driver: Some(driver), sleeper, other_end: Some(other_end) }
    }

    pub(super) fn child_blocking(&mut self) -> std::os::unix::net::UnixStream {
        self.other_end.take().expect("there is only one").into()
    }

    pub(super) fn child(&mut self) -> UnixStream {
        let stream = self.child_blocking();
        stream.set_nonblocking(true).expect("a socket can be told");
        UnixStream::from_std(stream).expect("inside a runtime")
    }

    pub(super) fn begin(&mut self, ear: &Arc<Ear>) -> oneshot::Receiver<Answer> {
        self.begin_with(ear, limits())
    }

    pub(super) fn begin_with(&mut self, ear: &Arc<Ear>, limits: Limits) -> oneshot::Receiver<Answer> {
        let (answer, answered) = oneshot::channel();
        let input = Bytes::from_static(b"{}");
        let request = Request { operation: Operation::Tool, name: "run".to_owned(), input, session: None };
        let within = Duration::from_millis(limits.time_ms);
        let driver = self.driver.as_mut().expect("calls begin before it is driven");
        driver.begin(NewCall { request, server: 0, limits, within, host: ear.clone(), answer });
        answered
    }

    /// The driver is gone by now, so its process must be.
    pub(super) fn assert_killed(mut self) {
        assert!(self.driver.is_none(), "the driver was taken to be driven");
        assert_eq!(self.sleeper.wait().expect("it is our child").signal(), Some(9));
    }
}

impl Drop for Rig {
    fn drop(&mut self) {
        // Both do nothing where it is dead and waited for.
        let _ = self.sleeper.kill();
        let _ = self.sleeper.wait();
    }
}

/// How the host treats host calls.
#[derive(Clone, Copy, Debug)]
pub(super) enum Manner {
    Replies,
    Refuses,
    TakesItsTime,
    NeverAnswers,
}

/// A host that counts what it hears.
pub(super) struct Ear {
    manner: Manner,
    pub(super) calls: AtomicU64,
    pub(super) logged: AtomicU64,
}

impl Ear {
    pub(super) fn new(manner: Manner) -> Ear {
        Ear { manner, calls: AtomicU64::new(0), logged: AtomicU64::new(0) }
    }
}

impl Host for Ear {
    fn call(&self, _call: HostCall) -> Future<'_, Result<HostReply, HostRefusal>> {
        self.calls.fetch_add(1, Ordering::SeqCst);
        let manner = self.manner;
        Box::pin(async move {
            match manner {
                Manner::Refuses => {
                    return Err(HostRefusal { code: "egress_denied".to_owned(), message: "no".to_owned() });
                }
                Manner::NeverAnswers => std::future::pending().await,
                Manner::TakesItsTime => tokio::time::sleep(Duration::from_millis(30)).await,
                Manner::Replies => {}
            }
            Ok(HostReply { meta: "{}".to_owned(), body: Bytes::from(vec![b'x'; 64 << 10]) })
        })
    }

    fn log(&self, line: LogLine) {
        self.logged.fetch_add((line.text.len() + line.level.len()) as u64, Ordering::SeqCst);
    }

    fn progress(&self, json: String) {
        self.logged.fetch_add(json.len() as u64, Ordering::SeqCst);
    }
}
