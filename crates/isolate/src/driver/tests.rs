//! Whatever a compartment writes: its calls are answered within their limits, and the host neither panics nor grows.

mod rig;
mod script;

use super::*;
use crate::compartment::{ManyCalls, OneCall};
use proptest::prelude::*;
use rig::{Ear, Manner, Rig, limits};
use sandbox::Compartment;
use script::{Ending, arbitrary_json, endings, every_kind, manners, script};
use std::io::Write;
use std::sync::atomic::Ordering;

/// What a link may read ahead of the frames it gives out.
const READ_AHEAD: usize = 16 << 10;

/// Steps the driver until all calls are answered or it ends, as a compartment does, looking at what it holds.
/// Gives the moment when that was so: asking the zygote how it ended waits for real sockets, and a paused clock may jump
/// meanwhile.
async fn drive(mut driver: Driver) -> Instant {
    while !driver.idle() {
        let step = driver.step().await;
        let (unread, asked) = driver.held_bytes();
        assert!(unread <= 4 + frame_cap(&limits()) + READ_AHEAD, "{unread} bytes wait to become a frame");
        assert!(asked <= PENDING_BYTES + frame_cap(&limits()), "host calls in progress hold {asked} bytes");
        if let Err(cause) = step {
            let over = Instant::now();
            driver.end(cause).await;
            return over;
        }
    }
    Instant::now()
}

/// Plays the script against calls in flight, on a clock that only moves when nobody has anything to do.
fn play(bytes: Vec<u8>, ending: Ending, manner: Manner, calls: u64, reads: bool) {
    let runtime = tokio::runtime::Builder::new_current_thread().enable_all().start_paused(true).build();
    runtime.expect("a runtime").block_on(async {
        let start = Instant::now();
        let mut rig = Rig::new();
        let child = tokio::spawn(script::speak(rig.child(), bytes, ending, reads));
        let ear = Arc::new(Ear::new(manner));
        let answers: Vec<_> = (0..calls).map(|_| rig.begin(&ear)).collect();
        let over = drive(rig.driver.take().expect("not taken yet")).await;
        for answer in answers {
            let (outcome, usage) = answer.await.expect("every caller is answered");
            if let Ok(result) = outcome {
                assert!(result.len() as u64 <= limits().result_kb * 1024, "a result of {} bytes", result.len());
            }
            assert!(usage.host_calls <= limits().host_calls + 1);
        }
        let (heard, logged) = (ear.calls.load(Ordering::SeqCst), ear.logged.load(Ordering::SeqCst));
        assert!(heard <= calls * limits().host_calls, "{heard} host calls got through");
        assert!(logged <= calls * limits().log_kb * 1024, "{logged} bytes of log got through");
        let most = Duration::from_millis(limits().time_ms + 100);
        assert!(over - start <= most, "it took {:?}", over - start);
        rig.assert_killed();
        child.abort();
    });
}

proptest! {
    #![proptest_config(ProptestConfig { failure_persistence: None, ..ProptestConfig::with_cases(128) })]

    #[test]
    fn any_bytes_are_answered_or_end_it(
        bytes in prop::collection::vec(any::<u8>(), 0..4096), ending in endings(), manner in manners(), calls in 1u64..3, reads: bool,
    ) {
        play(bytes, ending, manner, calls, reads);
    }

    #[test]
    fn any_frames_are_answered_or_end_it(
        bytes in script(), ending in endings(), manner in manners(), calls in 1u64..4, reads: bool,
    ) {
        play(bytes, ending, manner, calls, reads);
    }

    /// One frame of each kind with the same JSON for its meta, each to a driver of its own.
    #[test]
    fn any_json_is_a_meta_or_ends_it(
        json in arbitrary_json(), id in 0u32..3, body in prop::collection::vec(any::<u8>(), 0..32),
    ) {
        for kind in every_kind() {
            let meta = json.to_string();
            let frame = Frame { kind, id, meta: meta.into_bytes(), body: body.clone() };
            let runtime = tokio::runtime::Builder::new_current_thread().enable_all().start_paused(true).build();
            runtime.expect("a runtime").block_on(async {
                let mut rig = Rig::new();
                let answer = rig.begin(&Arc::new(Ear::new(Manner::Refuses)));
                let mut driver = rig.driver.take().expect("not taken yet");
                let handled = driver.handle(frame);
                if let Err(cause) = handled {
                    driver.end(cause).await;
                    assert!(answer.await.expect("it is answered").0.is_err());
                }
            });
        }
    }
}

/// Frames that cost nothing must not keep the host from looking at the clock.
#[tokio::test(start_paused = true)]
async fn a_flood_does_not_outrun_the_clock() {
    let mut rig = Rig::new();
    let mut child = rig.child_blocking();
    child.write_all(&encode(Kind::Running, 1, b"", b"").expect("it fits").repeat(1000)).expect("it fits the socket");
    let answer = rig.begin(&Arc::new(Ear::new(Manner::Refuses)));
    let mut driver = rig.driver.take().expect("not taken yet");
    driver.step().await.expect("there is time");
    assert!(driver.held_bytes().0 > 0, "more was said and is not heard yet");
    tokio::time::advance(Duration::from_millis(limits().time_ms)).await;
    let cause = driver.step().await.expect_err("its time is over, whatever else it says");
    driver.end(cause).await;
    assert_eq!(answer.await.expect("it is answered").0.expect_err("no result came").code, Code::TimeLimit);
    rig.assert_killed();
}

/// A host that takes its time holds no more than its share, and listens again when it has answered.
#[test]
fn large_host_calls_wait_their_turn() {
    let asked = isolate_wire::HostCall { call: 1, operation: "fetch".to_owned(), meta: "{}".to_owned() };
    let one = encode_with(Kind::HostCall, 7, &asked, &vec![0; 1 << 20]).expect("it fits");
    for manner in [Manner::NeverAnswers, Manner::TakesItsTime, Manner::Replies] {
        play(one.repeat(limits().host_calls as usize + 2), Ending::FallsSilent, manner, 1, true);
    }
}

#[test]
fn an_oversized_length_ends_it_before_the_rest_arrives() {
    for length in [u32::MAX, u32::try_from(frame_cap(&limits())).expect("small") + 1] {
        play(length.to_le_bytes().to_vec(), Ending::FallsSilent, Manner::Refuses, 1, true);
    }
}

#[tokio::test]
async fn the_greatest_call_in_flight_decides_what_fits_a_frame() {
    let mut rig = Rig::new();
    let ear = Arc::new(Ear::new(Manner::Refuses));
    let great = rig.begin_with(&ear, Limits { result_kb: 4096, ..limits() });
    let _small = rig.begin(&ear);
    let used = Used { cpu_us: 1, memory_kb: 1 };
    let bytes = encode_with(Kind::Done, 1, &used, &vec![b' '; 4 << 20]).expect("it fits");
    tokio::spawn(script::speak(rig.child(), bytes, Ending::FallsSilent, true));
    let mut driver = rig.driver.take().expect("not taken yet");
    tokio::select! {
        answer = great => assert_eq!(answer.expect("it is answered").0.expect("it fits").len(), 4 << 20),
        cause = async { loop { if let Err(cause) = driver.step().await { break cause } } } => panic!("{cause:?}"),
    }
}

#[tokio::test]
async fn a_result_above_its_own_limit_is_none() {
    let mut rig = Rig::new();
    let answer = rig.begin(&Arc::new(Ear::new(Manner::Refuses)));
    let meta = serde_json::to_vec(&Used { cpu_us: 1, memory_kb: 1 }).expect("it serialises");
    let mut driver = rig.driver.take().expect("not taken yet");
    let frame = Frame { kind: Kind::Done, id: 1, meta, body: vec![b' '; limits().result_kb as usize * 1024 + 1] };
    let cause = driver.handle(frame).expect_err("it is too long");
    driver.end(cause).await;
    assert_eq!(answer.await.expect("it is answered").0.expect_err("it is refused").code, Code::ProtocolViolation);
}

/// What a process says of itself goes on an account that all tenants are weighed by.
#[tokio::test]
async fn nobody_says_that_it_used_more_than_it_could() {
    let mut rig = Rig::new();
    let answer = rig.begin(&Arc::new(Ear::new(Manner::Refuses)));
    let mut driver = rig.driver.take().expect("not taken yet");
    let meta = serde_json::to_vec(&Used { cpu_us: u64::MAX, memory_kb: 1 }).expect("it serialises");
    assert!(driver.handle(Frame { kind: Kind::Done, id: 1, meta, body: b"1".to_vec() }).is_ok());
    let (_, usage) = answer.await.expect("it is answered");
    assert!(usage.cpu_us <= 2 * (GRACE.as_micros() as u64 + limits().cpu_ms * 1000), "{usage:?}");
}

/// Calls that overlap without end must not put the look at the CPU clock off without end.
#[tokio::test(start_paused = true)]
async fn a_further_call_does_not_put_off_the_look_at_the_cpu() {
    let mut rig = Rig::new();
    let ear = Arc::new(Ear::new(Manner::Refuses));
    let _first = rig.begin(&ear);
    let due = rig.driver.as_ref().expect("not taken yet").cpu_check;
    tokio::time::advance(Duration::from_millis(50)).await;
    let _second = rig.begin(&ear);
    assert_eq!(rig.driver.as_ref().expect("not taken yet").cpu_check, due);
}

/// What a call leaves running may say a little more, and no more than a call could.
#[tokio::test]
async fn late_words_are_dropped_and_bounded() {
    let mut rig = Rig::new();
    let ear = Arc::new(Ear::new(Manner::Refuses));
    let answer = rig.begin(&ear);
    let mut driver = rig.driver.take().expect("not taken yet");
    let meta = serde_json::to_vec(&Used { cpu_us: 1, memory_kb: 1 }).expect("it serialises");
    assert!(driver.handle(Frame { kind: Kind::Done, id: 1, meta, body: b"1".to_vec() }).is_ok());
    assert!(answer.await.expect("it is answered").0.is_ok());
    let late = Frame { kind: Kind::Progress, id: 1, meta: Vec::new(), body: b"1".to_vec() };
    let most = limits().log_kb * 1024 / LOG_LINE_COST;
    let taken = (0..=most).take_while(|_| driver.handle(late.clone()).is_ok()).count() as u64;
    assert!((1..most).contains(&taken), "{taken} late words were taken");
    assert_eq!(ear.logged.load(Ordering::SeqCst), 0, "they belong to nobody");
}

/// With no call in flight nothing of the tenant's runs. A process that computes all the same is not itself any more.
#[tokio::test]
async fn one_that_computes_without_a_call_is_ended() {
    let mut rig = Rig::around(std::process::Command::new("sh").args(["-c", "while :; do :; done"]));
    let process = ManyCalls::start(rig.driver.take().expect("not taken yet")).expect("a timer");
    let looked_at = async {
        while process.alive() {
            tokio::time::sleep(Duration::from_millis(10)).await;
        }
    };
    tokio::time::timeout(Duration::from_secs(60), looked_at).await.expect("it is looked at");
    assert_eq!((process.ended(), process.ended()), (Some(Code::CpuLimit), None));
    rig.assert_killed();
    let mut rig = Rig::new();
    let mut driver = rig.driver.take().expect("not taken yet");
    driver.cpu_check = Instant::now();
    assert!(driver.step().await.is_ok(), "one that waits is left alone");
    assert!(driver.cpu_check > Instant::now());
}

/// Loading takes as long as it takes: whoever asked for it has a limit of their own.
#[tokio::test]
async fn one_that_loads_is_not_taken_for_one_that_computes() {
    let mut rig = Rig::new();
    let mut driver = rig.driver.take().expect("not taken yet");
    let (answer, _answered) = oneshot::channel();
    driver.loading = Some(answer);
    (driver.cpu_allowed, driver.cpu_check) = (Duration::ZERO, Instant::now());
    assert!(driver.step().await.is_ok());
    (driver.cpu_allowed, driver.cpu_check) = (Duration::ZERO, Instant::now());
    assert!(driver.handle(Frame { kind: Kind::Loaded, id: 0, meta: Vec::new(), body: Vec::new() }).is_ok());
    assert_eq!(driver.cpu_allowed, IDLE_CPU, "what it used meanwhile is forgotten");
}

/// A load beside a call is no excuse for the call.
#[tokio::test]
async fn a_call_beside_a_load_has_its_limit() {
    let mut rig = Rig::new();
    let _call = rig.begin(&Arc::new(Ear::new(Manner::Refuses)));
    let mut driver = rig.driver.take().expect("not taken yet");
    let (answer, _answered) = oneshot::channel();
    driver.loading = Some(answer);
    (driver.cpu_allowed, driver.cpu_check) = (Duration::ZERO, Instant::now());
    assert!(matches!(driver.step().await, Err(Cause::Limit(Code::CpuLimit))));
}

fn spinning() -> Rig {
    Rig::around(std::process::Command::new("sh").args(["-c", "while :; do :; done"]))
}

/// A call of a compartment for many, that may use this much of the CPU and has all the time in the world.
fn begin(rig: &mut Rig, cpu_ms: u64) -> oneshot::Receiver<Answer> {
    rig.begin_with(&Arc::new(Ear::new(Manner::Refuses)), Limits { cpu_ms, time_ms: 60_000, ..limits() })
}

async fn cause_of(driver: &mut Driver) -> Cause {
    let ended = async {
        loop {
            if let Err(cause) = driver.step().await {
                return cause;
            }
        }
    };
    tokio::time::timeout(Duration::from_secs(60), ended).await.expect("it is ended")
}

/// Whatever the process does about it: the timer is the host's. How much it used is the kernel's word.
#[tokio::test]
async fn the_hosts_timer_ends_a_call_that_computes() {
    let mut rig = spinning();
    rig.driver = Some(rig.driver.take().expect("not taken yet").hold_cpu().expect("a timer"));
    let answer = begin(&mut rig, 100);
    let mut driver = rig.driver.take().expect("not taken yet");
    let cause = cause_of(&mut driver).await;
    let used = driver.process.cpu_time().expect("it is not waited for yet");
    assert!(used >= Duration::from_millis(100), "{used:?} is less than it was promised");
    driver.end(cause).await;
    assert_eq!(answer.await.expect("it is answered").0.expect_err("it computes").code, Code::CpuLimit);
    rig.assert_killed();
}

/// A host that is too busy to drive it has the thread of the timers.
#[tokio::test]
async fn one_whose_driver_has_no_time_is_killed_all_the_same() {
    let mut rig = spinning();
    rig.driver = Some(rig.driver.take().expect("not taken yet").hold_cpu().expect("a timer"));
    let answer = begin(&mut rig, 20);
    let driver = rig.driver.take().expect("not taken yet");
    let killed = async {
        while driver.process.cpu_time().is_some() {
            tokio::time::sleep(Duration::from_millis(10)).await;
        }
    };
    tokio::time::timeout(Duration::from_secs(60), killed).await.expect("it is killed");
    // That its channel is closed is all that a driver sees.
    driver.end(Cause::Closed).await;
    assert_eq!(answer.await.expect("it is answered").0.expect_err("it computes").code, Code::CpuLimit);
    rig.assert_killed();
}

/// Each call pays for what it is said to have used, and grace is given once, however often they take turns.
#[tokio::test]
async fn each_call_has_its_own_budget() {
    let mut rig = spinning();
    rig.driver = Some(rig.driver.take().expect("not taken yet").hold_cpu().expect("a timer"));
    let (small, large) = (begin(&mut rig, 50), begin(&mut rig, 500));
    let mut driver = rig.driver.take().expect("not taken yet");
    let running = |id| Frame { kind: Kind::Running, id, meta: Vec::new(), body: Vec::new() };
    driver.handle(running(2)).expect("it is in flight");
    // Beyond the first one's budget, which the second pays for.
    let before = driver.process.cpu_time().expect("it lives");
    while driver.process.cpu_time().expect("it lives") < before + Duration::from_millis(150) {
        let step = tokio::time::timeout(Duration::from_millis(5), driver.step()).await;
        assert!(!matches!(step, Ok(Err(_))), "it was ended for another's account");
    }
    let mut turns = 0;
    let cause = loop {
        driver.handle(running(1 + turns % 2)).expect("both are in flight");
        match tokio::time::timeout(Duration::from_millis(2), driver.step()).await {
            Ok(Err(cause)) => break cause,
            _ => turns += 1,
        }
        assert!(turns < 30_000, "taking turns is no way to have more");
    };
    assert_eq!(driver.running, 1, "the small one's is used up first");
    driver.end(cause).await;
    assert_eq!(small.await.expect("it is answered").0.expect_err("it is over").code, Code::CpuLimit);
    assert_eq!(large.await.expect("it is answered").0.expect_err("it is lost").code, Code::CompartmentLost);
    rig.assert_killed();
}

/// A spare has made itself ready and waits for its call; nobody drives it until then.
#[tokio::test]
async fn a_spare_that_computes_is_ended() {
    let mut rig = spinning();
    let spare = OneCall::waiting(rig.driver.take().expect("not taken yet"), limits());
    let ended = async {
        loop {
            match spare.ended() {
                Some(code) => return code,
                None => tokio::time::sleep(Duration::from_millis(10)).await,
            }
        }
    };
    let code = tokio::time::timeout(Duration::from_secs(60), ended).await.expect("it is found");
    assert_eq!((code, spare.alive(), spare.ended()), (Code::CpuLimit, false, None));
    rig.assert_killed();
    let mut rig = Rig::new();
    let spare = OneCall::waiting(rig.driver.take().expect("not taken yet"), limits());
    assert_eq!((spare.ended(), spare.alive()), (None, true), "one that waits is left alone");
}

/// A zygote has something to do while it forks; otherwise it waits.
#[tokio::test]
async fn a_zygote_that_computes_is_found() {
    let mut rig = spinning();
    // It is the same process, which goes with the first of the two.
    let driver = rig.driver.take().expect("not taken yet");
    let zygote = driver.zygote.clone();
    let found = async {
        while !zygote.computes() {
            tokio::time::sleep(Duration::from_millis(500)).await;
        }
    };
    tokio::time::timeout(Duration::from_secs(60), found).await.expect("it is found");
    drop((driver, rig));
    let rig = Rig::new();
    let zygote = rig.driver.as_ref().expect("not taken yet").zygote.clone();
    assert!(!zygote.computes(), "one that waits is left alone");
}
