//! Processes whose zygote the test plays itself.

use super::*;
use crate::control::{self, Control};
use crate::link::Link;
use isolate_wire::{Ended, Fork, Kind, Role, encode, encode_with};
use jail::socket;
use std::io::Read;
use std::os::fd::{AsFd, OwnedFd};
use std::os::unix::net::UnixStream;
use std::os::unix::process::ExitStatusExt;
use std::process::{Child, Command};

const FORK: Fork = Fork { role: Role::Call, memory_mb: 64, cpu_ms: 50 };

/// A real process that does nothing, killed with the test.
struct Sleeper(Child);

impl Sleeper {
    fn new() -> Sleeper {
        Sleeper(Command::new("sleep").arg("600").spawn().expect("every system has `sleep`"))
    }

    fn handle(&self) -> PidFd {
        PidFd::open(i32::try_from(self.0.id()).expect("a process's number")).expect("it is not waited for yet")
    }

    /// Waits for it: nobody but who is tested kills it.
    async fn killed(mut self) -> bool {
        for _ in 0..1000 {
            if let Some(status) = self.0.try_wait().expect("our child") {
                return status.signal() == Some(9);
            }
            tokio::time::sleep(Duration::from_millis(10)).await;
        }
        false
    }

    fn alive(&mut self) -> bool {
        self.0.try_wait().expect("our child").is_none()
    }
}

impl Drop for Sleeper {
    fn drop(&mut self) {
        let _ = self.0.kill();
        let _ = self.0.wait();
    }
}

struct Stage {
    zygote: Arc<Zygote>,
    /// What stands for the zygote's own process.
    itself: Sleeper,
    /// The zygote's end of its channel.
    end: OwnedFd,
}

impl Stage {
    fn new() -> Stage {
        let itself = Sleeper::new();
        let (ours, end) = control::pair().expect("a pair");
        let process = Process::new(itself.handle()).expect("it lives");
        Stage { zygote: Arc::new(Zygote::new(Control::new(ours), process, None)), itself, end }
    }

    async fn order(&self) -> Process {
        let process = Process::expected(&self.zygote);
        let (_, theirs) = control::pair().expect("a pair");
        self.zygote.order(&process, &FORK, theirs).await.expect("there is room for it");
        process
    }

    fn tell(&self, id: u32, fd: impl AsFd) {
        let frame = encode(Kind::Forked, id, b"", b"").expect("it is short");
        let sent = socket::send_with_fd(self.end.as_fd(), &frame, Some(fd.as_fd())).expect("somebody listens");
        assert_eq!(sent, frame.len());
    }
}

#[tokio::test]
async fn who_goes_away_before_the_zygote_has_said_anything_leaves_no_process() {
    let stage = Stage::new();
    let forked = Sleeper::new();
    drop(stage.order().await);
    tokio::task::yield_now().await;
    stage.tell(7, forked.handle());
    assert!(forked.killed().await);
    assert!(stage.zygote.alive());
}

#[tokio::test]
async fn each_process_is_the_one_that_was_asked_for() {
    let stage = Stage::new();
    let (first, mut second) = (Sleeper::new(), Sleeper::new());
    let (one, two) = (stage.order().await, stage.order().await);
    assert!(one.cpu_time().is_none() && two.cpu_time().is_none());
    stage.tell(7, first.handle());
    stage.tell(8, second.handle());
    assert!(two.cpu_time().is_some());
    drop(one);
    assert!(first.killed().await);
    assert!(second.alive() && two.cpu_time().is_some());
}

#[tokio::test]
async fn the_end_of_a_process_is_told_after_all_that_is_expected() {
    let stage = Stage::new();
    let (sleeper, other) = (Sleeper::new(), Sleeper::new());
    let (process, _later) = (stage.order().await, stage.order().await);
    stage.tell(7, sleeper.handle());
    stage.tell(8, other.handle());
    let ended = Ended { code: Some(3), signal: None, cpu_us: 5, memory_kb: 6 };
    let frame = encode_with(Kind::Reaped, 7, &ended, b"").expect("it is short");
    socket::send_with_fd(stage.end.as_fd(), &frame, None).expect("somebody listens");
    let told = stage.zygote.reap(&process).await.expect("it was said");
    assert_eq!((told.code, told.cpu_us), (Some(3), 5));
}

#[tokio::test]
async fn one_that_is_gone_when_it_is_heard_of_harms_nobody() {
    let stage = Stage::new();
    let gone = Sleeper::new();
    let handle = gone.handle();
    drop(gone);
    let process = stage.order().await;
    stage.tell(7, handle);
    assert!(process.cpu_time().is_none());
    process.kill();
    assert!(stage.zygote.alive());
}

#[tokio::test]
async fn a_zygote_that_hands_over_something_else_is_ended() {
    let stage = Stage::new();
    let process = stage.order().await;
    stage.tell(7, std::fs::File::open("/dev/null").expect("every system has it"));
    assert!(process.cpu_time().is_none());
    assert!(!stage.zygote.alive());
    assert!(stage.itself.killed().await);
}

#[tokio::test]
async fn one_that_was_never_ordered_is_nothing_to_wait_for() {
    let stage = Stage::new();
    drop(Process::expected(&stage.zygote));
    tokio::task::yield_now().await;
    assert!(stage.zygote.alive());
}

#[tokio::test]
async fn what_the_socket_does_not_take_at_once_goes_when_there_is_room() {
    const FRAMES: usize = 64;
    let (ours, theirs) = control::pair().expect("a pair");
    let mut link = Link::new(ours, 1024).expect("inside a runtime");
    for index in 0..FRAMES {
        link.send(vec![index as u8; 64 << 10]);
    }
    let reader = tokio::task::spawn_blocking(move || {
        let mut all = vec![0; FRAMES * (64 << 10)];
        UnixStream::from(theirs).read_exact(&mut all).map(|()| all)
    });
    let sending = async {
        loop {
            // The reader hangs up when it has everything.
            if link.event(true).await.is_err() {
                return;
            }
        }
    };
    tokio::time::timeout(Duration::from_secs(30), sending).await.expect("nobody waits for ever");
    let all = reader.await.expect("no panic").expect("all of it came");
    assert!(all.chunks(64 << 10).enumerate().all(|(index, frame)| frame.iter().all(|byte| *byte == index as u8)));
}

/// What untrusted code can bring about: it dies with half a frame in its hands, and something short is sent to it.
#[tokio::test]
async fn whoever_goes_away_with_half_a_frame_harms_nobody() {
    let (ours, theirs) = control::pair().expect("a pair");
    let mut link = Link::new(ours, 1024).expect("inside a runtime");
    link.send(vec![0; 4 << 20]);
    drop(theirs);
    // Nothing is read, so the end is seen by who sends.
    for _ in 0..3 {
        let _ = tokio::time::timeout(Duration::from_millis(50), link.event(false)).await;
        link.send(vec![0; 8]);
    }
    let ended = tokio::time::timeout(Duration::from_secs(10), link.event(true)).await.expect("it is over");
    assert!(ended.is_err());
}

/// What a compromised zygote can do: descriptors with every byte of an answer.
#[tokio::test]
async fn a_zygote_that_passes_more_than_was_asked_for_is_ended() {
    let stage = Stage::new();
    let process = stage.order().await;
    let null = std::fs::File::open("/dev/null").expect("every system has it");
    let frame = encode(Kind::Loaded, 0, b"", &[b' '; 64]).expect("it is short");
    for byte in frame.chunks(1) {
        socket::send_with_fd(stage.end.as_fd(), byte, Some(null.as_fd())).expect("somebody listens");
    }
    assert!(process.cpu_time().is_none());
    assert!(!stage.zygote.alive());
}

#[tokio::test]
async fn only_so_many_are_expected_at_once() {
    let stage = Stage::new();
    let sleeper = Sleeper::new();
    let mut all = Vec::new();
    for _ in 0..16 {
        all.push(stage.order().await);
    }
    let one_more = || tokio::time::timeout(Duration::from_millis(200), stage.order());
    assert!(one_more().await.is_err());
    assert!(stage.zygote.alive(), "who goes away meanwhile takes nobody along");
    stage.tell(7, sleeper.handle());
    all.push(one_more().await.expect("there is room for one"));
    assert!(all[0].cpu_time().is_some());
}
