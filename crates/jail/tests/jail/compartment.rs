//! A real jail for a test: built as a worker builds it, with a socket to the test as its only descriptor.

use std::fs;
use std::io::Read;
use std::net::Shutdown;
use std::os::fd::{AsRawFd, OwnedFd};
use std::os::unix::net::UnixStream;
use std::time::{Duration, Instant};

use jail::confine::{Confinement, Enforced, confine};
use jail::namespaces::{self, Plan, Side, enter, fork_init};
use jail::process::{self, Exit};
use jail::socket;

pub const MIB: u64 = 1 << 20;

/// How long a test waits for a word from inside.
pub const PATIENCE: Duration = Duration::from_secs(20);

pub const CONFINEMENT: Confinement = Confinement {
    address_space: 4096 * MIB,
    data: 256 * MIB,
    cpu_seconds: 10,
    open_files: 64,
    processes: 32,
    stack: 8 * MIB,
};

/// The outer process of a jail and the test's end of the socket.
pub struct Compartment {
    pub outer: i32,
    pub stream: UnixStream,
}

impl Compartment {
    /// Builds a jail and runs `inside` as its pid 1, which talks over descriptor 3.
    pub fn start(plan: Option<Plan>, confinement: &Confinement, inside: fn(Enforced)) -> Compartment {
        let (ours, theirs) = socket::pair().expect("socket pair");
        // SAFETY: the case is a single-threaded process.
        let outer = unsafe { libc::fork() };
        assert!(outer >= 0, "cannot fork");
        if outer == 0 {
            drop(ours);
            build(plan, confinement, theirs, inside);
        }
        drop(theirs);
        let stream = UnixStream::from(ours);
        stream.set_read_timeout(Some(PATIENCE)).expect("read timeout");
        Compartment { outer, stream }
    }

    /// Everything that was said inside until the end, and how the outer process ended.
    pub fn finish(mut self) -> (String, Exit) {
        self.stream.shutdown(Shutdown::Write).expect("the end of the conversation");
        let mut said = String::new();
        self.stream.read_to_string(&mut said).expect("words from inside");
        (said, process::wait(self.outer).expect("the outer process"))
    }

    /// The pid of the jail's init as the host sees it.
    pub fn init(&self) -> i32 {
        children(self.outer)[0]
    }
}

/// What `inside` says over its socket when it runs as init of a new jail; it must end well.
pub fn ask(plan: Option<Plan>, inside: fn(Enforced)) -> String {
    let (said, exit) = Compartment::start(plan, &CONFINEMENT, inside).finish();
    assert_eq!(exit.code, Some(0), "ended with {exit:?} after saying: {said}");
    said
}

fn build(plan: Option<Plan>, confinement: &Confinement, socket: OwnedFd, inside: fn(Enforced)) -> ! {
    let result = (|| {
        process::reset_signals()?;
        let plan = match plan {
            Some(plan) => plan,
            None => Plan::for_this_process()?,
        };
        enter(&plan)?;
        match fork_init()? {
            Side::Outer { init } => namespaces::outlive(init),
            Side::Init => {}
        }
        let enforced = confine(&plan, confinement)?;
        process::keep_only(&[(socket.as_raw_fd(), jail::CHILD_FD)])?;
        std::mem::forget(socket);
        inside(enforced);
        Ok::<_, jail::Error>(())
    })();
    if let Err(error) = result {
        eprintln!("cannot build the jail: {}", chain(&error));
        process::exit_now(99);
    }
    process::exit_now(0)
}

/// An error with its causes.
pub fn chain(error: &dyn std::error::Error) -> String {
    let mut text = error.to_string();
    let mut cause = error.source();
    while let Some(error) = cause {
        text += &format!(": {error}");
        cause = error.source();
    }
    text
}

/// Says something to the test, from inside.
pub fn say(text: &str) {
    socket::write_all(jail::CHILD_FD, text.as_bytes()).expect("the test listens");
}

/// One byte from inside.
pub fn read_byte(stream: &mut UnixStream) -> u8 {
    let mut byte = [0];
    stream.read_exact(&mut byte).expect("a sign of life");
    byte[0]
}

/// Waits until the test has nothing more to say, from inside.
pub fn stay() {
    while socket::read(jail::CHILD_FD, &mut [0; 64]).expect("words of the test") > 0 {}
}

/// Pids of the children of `pid`.
pub fn children(pid: i32) -> Vec<i32> {
    let path = format!("/proc/{pid}/task/{pid}/children");
    // One that is gone has none.
    let text = fs::read_to_string(path).unwrap_or_default();
    text.split_whitespace().map(|pid| pid.parse().expect("a pid")).collect()
}

/// Waits for something that is about to become true.
pub fn eventually(what: &str, mut holds: impl FnMut() -> bool) {
    let deadline = Instant::now() + PATIENCE;
    while !holds() {
        assert!(Instant::now() < deadline, "still not so: {what}");
        std::thread::sleep(Duration::from_millis(1));
    }
}
