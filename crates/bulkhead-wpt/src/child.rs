//! A fork with a pipe to its parent.

use jail::process::{self, Fork, Forked};
use rustix::event::{PollFd, PollFlags, Timespec, poll};
use rustix::process::{Signal, pidfd_send_signal};
use std::io::{PipeReader, Read, Write};
use std::time::{Duration, Instant};

/// A running child.
pub struct Child {
    forked: Forked,
    output: PipeReader,
    received: Vec<u8>,
    deadline: Instant,
}

/// Forks; the child runs `work`, writes what it returns to the pipe and ends.
pub fn start(limit: Duration, work: impl FnOnce() -> Vec<u8>) -> Result<Child, String> {
    let (output, mut input) = std::io::pipe().map_err(|error| format!("pipe: {error}"))?;
    match process::fork_with_pidfd().map_err(|error| error.to_string())? {
        Fork::Child => {
            let written = input.write_all(&work());
            isolate_engine::exit_now(i32::from(written.is_err()))
        }
        Fork::Parent(forked) => Ok(Child { forked, output, received: Vec::new(), deadline: Instant::now() + limit }),
    }
}

/// Waits until one of the children has ended or overrun its time; gives its index and what it wrote.
pub fn wait(children: &mut [&mut Child]) -> (usize, Option<Vec<u8>>) {
    loop {
        let now = Instant::now();
        if let Some(index) = children.iter().position(|child| child.deadline <= now) {
            end(children[index]);
            return (index, None);
        }
        let mut polled: Vec<PollFd<'_>> =
            children.iter().map(|child| PollFd::new(&child.output, PollFlags::IN)).collect();
        let next = children.iter().map(|child| child.deadline - now).min().unwrap_or_default();
        // Interrupted, it is asked again.
        let _ = poll(&mut polled, Timespec::try_from(next).ok().as_ref());
        let ready: Vec<bool> = polled.iter().map(|one| !one.revents().is_empty()).collect();
        for (index, _) in ready.iter().enumerate().filter(|(_, ready)| **ready) {
            if !read_some(children[index]) {
                end(children[index]);
                return (index, Some(std::mem::take(&mut children[index].received)));
            }
        }
    }
}

/// False at the end of the pipe.
fn read_some(child: &mut Child) -> bool {
    let mut buffer = [0u8; 64 * 1024];
    let got = child.output.read(&mut buffer).unwrap_or(0);
    child.received.extend_from_slice(&buffer[..got]);
    got > 0
}

fn end(child: &Child) {
    // It may have ended already; then there is only its end to wait for.
    let _ = pidfd_send_signal(&child.forked.pidfd, Signal::KILL);
    let _ = process::wait(child.forked.pid);
}
