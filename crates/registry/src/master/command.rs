//! A program that prints the master key.

use super::{MasterKeyError, Text, read_text};
use crate::Cause;
use rustix::process::{Pid, Signal, WaitId, WaitIdOptions, kill_process_group, waitid};
use std::io::{self, Read};
use std::os::unix::process::CommandExt;
use std::process::{Child, Command, ExitStatus, Stdio};
use std::sync::mpsc::{self, Receiver, Sender};
use std::time::{Duration, Instant};

const LIMIT: Duration = Duration::from_secs(10);
const PERIOD: Duration = Duration::from_millis(10);
/// Bytes of what it says besides that are looked at.
const LONGEST_TALK: u64 = 4096;
/// Characters of it that are shown.
const LONGEST_LINE: usize = 200;

/// What it prints, as far as that may be a key.
pub(super) fn output(argv: &[String]) -> Result<(Text, usize), MasterKeyError> {
    let (program, arguments) = argv.split_first().ok_or(MasterKeyError::NoCommand)?;
    let failed = |what: String, cause: Option<Cause>| MasterKeyError::Command { program: program.clone(), what, cause };
    let broken = |error: io::Error| failed("cannot be run".to_owned(), Some(error.into()));
    let deadline = Instant::now() + LIMIT;
    let mut command = Command::new(program);
    command.args(arguments).stdin(Stdio::null()).stdout(Stdio::piped()).stderr(Stdio::piped()).process_group(0);
    let mut running = Running(command.spawn().map_err(broken)?);
    let printed = in_background(running.0.stdout.take(), |mut pipe, sender| {
        let _ = sender.send(read_text(&mut pipe));
    });
    let said = in_background(running.0.stderr.take(), |mut pipe, sender| {
        let _ = sender.send(first_line(&mut pipe));
        let _ = io::copy(&mut pipe, &mut io::sink()); // it may say more without being ended for it
    });
    let late = || failed(format!("took longer than {} seconds", LIMIT.as_secs()), None);
    let status = running.end(deadline).map_err(broken)?.ok_or_else(late)?;
    let left = || deadline.saturating_duration_since(Instant::now());
    match printed.recv_timeout(left()).map_err(|_| late())?.map_err(broken)? {
        (text, length) if status.success() || length == text.len() => Ok((text, length)),
        _ => Err(failed(format!("failed with {status}{}", said.recv_timeout(left()).unwrap_or_default()), None)),
    }
}

/// The program, and whatever it started in its group. All of it is killed at the end, however that comes.
struct Running(Child);

impl Running {
    /// None if it does not end in time.
    fn end(&mut self, deadline: Instant) -> io::Result<Option<ExitStatus>> {
        let Some(pid) = self.pid() else { return Ok(None) };
        // It is left unburied at first: so long its group is nobody else's.
        let look = WaitIdOptions::EXITED | WaitIdOptions::NOHANG | WaitIdOptions::NOWAIT;
        while waitid(WaitId::Pid(pid), look)?.is_none() {
            if Instant::now() >= deadline {
                return Ok(None);
            }
            std::thread::sleep(PERIOD);
        }
        self.kill();
        self.0.wait().map(Some)
    }

    fn pid(&self) -> Option<Pid> {
        i32::try_from(self.0.id()).ok().and_then(Pid::from_raw)
    }

    fn kill(&self) {
        if let Some(group) = self.pid() {
            let _ = kill_process_group(group, Signal::KILL);
        }
    }
}

impl Drop for Running {
    fn drop(&mut self) {
        if let Ok(None) = self.0.try_wait() {
            self.kill();
            let _ = self.0.wait();
        }
    }
}

/// Reads in a thread of its own, so that nobody waits longer than they want to.
fn in_background<P: Send + 'static, T: Send + 'static>(
    pipe: Option<P>,
    read: impl FnOnce(P, Sender<T>) + Send + 'static,
) -> Receiver<T> {
    let (sender, receiver) = mpsc::channel();
    if let Some(pipe) = pipe {
        std::thread::spawn(move || read(pipe, sender));
    }
    receiver
}

/// `: ` and the first line, fit to be shown; nothing if there is none.
fn first_line(pipe: &mut impl Read) -> String {
    let mut bytes = Vec::new();
    let _ = pipe.take(LONGEST_TALK).read_to_end(&mut bytes);
    let text = String::from_utf8_lossy(&bytes);
    let line = text.lines().next().unwrap_or_default().trim();
    let line: String = line.chars().filter(|c| !c.is_control()).take(LONGEST_LINE).collect();
    if line.is_empty() { line } else { format!(": {line}") }
}
