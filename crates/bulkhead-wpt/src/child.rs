//! A fork with a pipe to its parent.

use std::io::Write;
use std::os::fd::{AsRawFd, FromRawFd, OwnedFd};
use std::time::{Duration, Instant};

/// A running child.
pub struct Child {
    pid: libc::pid_t,
    output: OwnedFd,
    received: Vec<u8>,
    deadline: Instant,
}

/// Forks; the child runs `work`, writes what it returns to the pipe and ends.
pub fn start(limit: Duration, work: impl FnOnce() -> Vec<u8>) -> Result<Child, String> {
    let mut ends = [0; 2];
    // SAFETY: the array has room for the two descriptors that `pipe2` writes.
    if unsafe { libc::pipe2(ends.as_mut_ptr(), libc::O_CLOEXEC) } != 0 {
        return Err(format!("pipe: {}", std::io::Error::last_os_error()));
    }
    // SAFETY: both descriptors are new and owned by nobody else.
    let (output, input) = unsafe { (OwnedFd::from_raw_fd(ends[0]), OwnedFd::from_raw_fd(ends[1])) };
    // SAFETY: the process has one thread, so the child may go on as if nothing had happened.
    match unsafe { libc::fork() } {
        -1 => Err(format!("fork: {}", std::io::Error::last_os_error())),
        0 => {
            let result = work();
            let written = std::fs::File::from(input).write_all(&result);
            isolate_engine::exit_now(i32::from(written.is_err()))
        }
        pid => Ok(Child { pid, output, received: Vec::new(), deadline: Instant::now() + limit }),
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
        let mut polled: Vec<libc::pollfd> = children
            .iter()
            .map(|child| libc::pollfd { fd: child.output.as_raw_fd(), events: libc::POLLIN, revents: 0 })
            .collect();
        let next = children.iter().map(|child| child.deadline - now).min().unwrap_or_default();
        let timeout = i32::try_from(next.as_millis()).unwrap_or(i32::MAX).saturating_add(1);
        // SAFETY: the pointer and the length describe one live vector.
        unsafe { libc::poll(polled.as_mut_ptr(), polled.len() as libc::nfds_t, timeout) };
        for (index, poll) in polled.iter().enumerate() {
            if poll.revents != 0 && !read_some(children[index]) {
                end(children[index]);
                return (index, Some(std::mem::take(&mut children[index].received)));
            }
        }
    }
}

/// False at the end of the pipe.
fn read_some(child: &mut Child) -> bool {
    let mut buffer = [0u8; 64 * 1024];
    // SAFETY: the pointer and the length describe one live array.
    let got = unsafe { libc::read(child.output.as_raw_fd(), buffer.as_mut_ptr().cast(), buffer.len()) };
    let got = usize::try_from(got).unwrap_or(0);
    child.received.extend_from_slice(&buffer[..got]);
    got > 0
}

fn end(child: &Child) {
    // SAFETY: the pid is of a child that was not waited for yet, so it cannot mean another process.
    unsafe {
        libc::kill(child.pid, libc::SIGKILL);
        libc::waitpid(child.pid, std::ptr::null_mut(), 0);
    }
}
