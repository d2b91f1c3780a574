//! A timer of the caller's on the CPU time of another process. That process can neither see it nor change it.
//!
//! It needs no right over the process, only its number in the caller's own pid namespace, which [`PidFd::pid`] gives: a
//! process inside a pid namespace has another number there, and that one would name a stranger here.
//!
//! The kernel looks at its clock ticks: of 50 ms on an idle core at 250 Hz it told after 50.8 to 56.5 ms.

use std::collections::HashMap;
use std::io;
use std::sync::{Arc, Mutex, MutexGuard, OnceLock, PoisonError};
use std::time::Duration;

use crate::error::Error;
use crate::pidfd::{self, PidFd};
use crate::sys::{check, check_long};

/// Timers that one program may have at once. The kernel also counts them against `RLIMIT_SIGPENDING`.
pub const MOST: usize = 8192;

/// What is done when a timer rings, on a thread that has nothing else to do.
pub type Ring = Arc<dyn Fn() + Send + Sync>;

/// A timer on a process's CPU time. It is gone when it is dropped; a process that is gone never rings.
pub struct CpuTimer {
    id: libc::c_int,
    number: u64,
}

impl CpuTimer {
    /// A timer that is not set yet; `pid` is what [`PidFd::pid`] said of `process`.
    pub fn new(process: &PidFd, pid: i32, ring: Ring) -> Result<CpuTimer, Error> {
        let listener = listener()?;
        let number = listener.enter(ring)?;
        let id = create(pidfd::cpu_clock(pid), listener.thread, number).inspect_err(|_| listener.leave(number));
        let timer = CpuTimer { id: id.map_err(Error::CpuTimer)?, number };
        // Alive after the timer was made: so the number was its own when it was made.
        if !process.is_alive()? {
            return Err(Error::CpuTimer(io::Error::from_raw_os_error(libc::ESRCH)));
        }
        Ok(timer)
    }

    /// Rings when the process has used `cpu` in all, then after each further `again`. Replaces what was set before.
    pub fn set(&self, cpu: Duration, again: Duration) -> Result<(), Error> {
        // All zeroes would disarm it.
        let value = libc::itimerspec { it_value: spec(cpu.max(Duration::from_nanos(1))), it_interval: spec(again) };
        // SAFETY: the timer is this one's own; the new value is a local, and the old one is not asked for.
        let set = check_long(unsafe {
            libc::syscall(
                libc::SYS_timer_settime,
                libc::c_long::from(self.id),
                libc::c_long::from(libc::TIMER_ABSTIME),
                &raw const value,
                std::ptr::null_mut::<libc::itimerspec>(),
            )
        });
        set.map(drop).map_err(Error::CpuTimer)
    }
}

impl Drop for CpuTimer {
    fn drop(&mut self) {
        // SAFETY: takes a number, which is this timer's and nobody else's. A timer that is gone needs no deleting.
        unsafe { libc::syscall(libc::SYS_timer_delete, libc::c_long::from(self.id)) };
        if let Ok(listener) = listener() {
            listener.leave(self.number);
        }
    }
}

fn spec(time: Duration) -> libc::timespec {
    let tv_sec = libc::time_t::try_from(time.as_secs()).unwrap_or(libc::time_t::MAX);
    libc::timespec { tv_sec, tv_nsec: time.subsec_nanos().into() }
}

fn create(clock: libc::clockid_t, thread: libc::pid_t, number: u64) -> io::Result<libc::c_int> {
    // SAFETY: all zeroes is a value of this struct of numbers and one pointer.
    let mut event: libc::sigevent = unsafe { std::mem::zeroed() };
    event.sigev_notify = libc::SIGEV_THREAD_ID;
    event.sigev_signo = signal();
    event.sigev_notify_thread_id = thread;
    // Carried as a number: nobody looks where it points.
    event.sigev_value = libc::sigval { sival_ptr: std::ptr::without_provenance_mut(number as usize) };
    let mut id: libc::c_int = 0;
    // SAFETY: the kernel reads one sigevent and writes one number; both are locals.
    check_long(unsafe {
        libc::syscall(libc::SYS_timer_create, libc::c_long::from(clock), &raw const event, &raw mut id)
    })?;
    Ok(id)
}

/// The thread that timers ring at.
struct Listener {
    thread: libc::pid_t,
    rings: Mutex<Rings>,
}

#[derive(Default)]
struct Rings {
    next: u64,
    by_number: HashMap<u64, Ring>,
}

impl Listener {
    fn rings(&self) -> MutexGuard<'_, Rings> {
        self.rings.lock().unwrap_or_else(PoisonError::into_inner)
    }

    fn enter(&self, ring: Ring) -> Result<u64, Error> {
        let mut rings = self.rings();
        if rings.by_number.len() >= MOST {
            return Err(Error::CpuTimer(io::Error::from_raw_os_error(libc::EAGAIN)));
        }
        rings.next += 1;
        let number = rings.next;
        rings.by_number.insert(number, ring);
        Ok(number)
    }

    fn leave(&self, number: u64) {
        let ring = self.rings().by_number.remove(&number);
        // What it holds goes when nobody is locked out.
        drop(ring);
    }

    fn ring(&self, number: u64) {
        let ring = self.rings().by_number.get(&number).cloned();
        if let Some(ring) = ring {
            ring();
        }
    }
}

/// One of the signals that nobody has a use for. It is sent to one thread, which has it blocked, and to no other.
fn signal() -> libc::c_int {
    libc::SIGRTMIN() + 9
}

fn listener() -> Result<&'static Listener, Error> {
    static LISTENER: OnceLock<io::Result<Listener>> = OnceLock::new();
    let listener = LISTENER.get_or_init(|| {
        let (tell, told) = std::sync::mpsc::channel();
        std::thread::Builder::new().name("cpu-timers".to_owned()).spawn(move || listen(&tell))?;
        let thread = told.recv().map_err(io::Error::other)??;
        Ok(Listener { thread, rings: Mutex::default() })
    });
    listener.as_ref().map_err(|error| Error::CpuTimer(io::Error::new(error.kind(), error.to_string())))
}

/// Waits for rings for as long as the program lives.
fn listen(tell: &std::sync::mpsc::Sender<io::Result<libc::pid_t>>) {
    let ready = only_our_signal().and_then(|set| {
        // SAFETY: the set was made by sigemptyset and sigaddset; the old mask is not asked for.
        let blocked = unsafe { libc::pthread_sigmask(libc::SIG_BLOCK, &raw const set, std::ptr::null_mut()) };
        if blocked == 0 { Ok(set) } else { Err(io::Error::from_raw_os_error(blocked)) }
    });
    let set = match ready {
        Ok(set) => set,
        Err(error) => return drop(tell.send(Err(error))),
    };
    // SAFETY: no arguments, and it cannot fail.
    let thread = unsafe { libc::gettid() };
    if tell.send(Ok(thread)).is_err() {
        return;
    }
    loop {
        // SAFETY: all zeroes is a value of this struct of numbers.
        let mut info: libc::siginfo_t = unsafe { std::mem::zeroed() };
        // SAFETY: the set is initialised, and the kernel writes one siginfo.
        let heard = check(unsafe { libc::sigwaitinfo(&raw const set, &raw mut info) });
        if heard.is_err() || info.si_code != libc::SI_TIMER {
            continue;
        }
        // SAFETY: a signal of a timer carries the value that the timer was made with.
        let value = unsafe { info.si_value() };
        if let Ok(listener) = listener() {
            listener.ring(value.sival_ptr.addr() as u64);
        }
    }
}

fn only_our_signal() -> io::Result<libc::sigset_t> {
    // SAFETY: sigset_t is plain bits; sigemptyset gives it its proper empty value before it is used.
    unsafe {
        let mut set: libc::sigset_t = std::mem::zeroed();
        check(libc::sigemptyset(&raw mut set))?;
        check(libc::sigaddset(&raw mut set, signal()))?;
        Ok(set)
    }
}
