//! One tenant uses up what the kernel counts; another's calls go on as if it were alone.

#[path = "support/mod.rs"]
mod support;

use isolate::{IsolateSettings, IsolateWall, Together};
use jail::program::{Bounds, Child, Content, Mount, Tree, system};
use policy::Boundary;
use sandbox::{Code, Deployment, Pool};
use std::io::Read;
use std::sync::Arc;
use std::sync::atomic::{AtomicBool, Ordering};
use std::time::Instant;
use support::{Server, call, in_session, run};

const CALLS: usize = 60;

/// How much longer the median call may take beside the other tenant. Where both had one uid, calls failed after ten seconds.
const MOST: f64 = 8.0;

/// Keeps as many descriptors on their way over sockets as its user may.
const IN_FLIGHT: &str = r#"
import socket, time
pairs = []
try:
    while len(pairs) < 200:
        pair = socket.socketpair(); pairs.append(pair)
        socket.send_fds(pair[0], [b'x'], [pair[0].fileno()] * 200)
except OSError:
    print('full', flush=True); time.sleep(100)
"#;

fn hostile(script: &str) -> Child {
    let mount = |target: &str, content| Mount { target: target.into(), content };
    let mut mounts = system(&[]);
    mounts.extend([mount("/proc", Content::Proc), mount("/dev", Content::Devices)]);
    let bounds = Bounds {
        processes: 64,
        memory_bytes: 256 << 20,
        cpu_percent: 100,
        cpu_seconds: 60,
        data_bytes: 1 << 30,
        file_bytes: 0,
        // Twice what a zygote may have on its way.
        open_files: 8192,
    };
    let tree = Tree { mounts, bounds, reads_as: None, folder: "/".into(), proxy: None, unix_sockets: true };
    let python = "/usr/bin/python3";
    assert!(std::path::Path::new(python).exists(), "the hostile program needs `{python}`");
    let mut child = tree.spawn(None, python, &["-c", script], &[]).expect("a jail");
    let mut word = [0; 4];
    child.stdout.as_mut().expect("stdout").read_exact(&mut word).expect("a word");
    assert_eq!(&word, b"full");
    child
}

/// The median of some calls in microseconds; all succeed.
async fn median(pool: &Pool, server: &Arc<Deployment>) -> u128 {
    let mut times = Vec::with_capacity(CALLS);
    for _ in 0..CALLS {
        let began = Instant::now();
        assert_eq!(run(pool, server, "{}").await.as_deref(), Ok("1"));
        times.push(began.elapsed().as_micros());
    }
    times.sort_unstable();
    times[CALLS / 2]
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn descriptors_in_flight_of_a_program_hold_up_no_call() {
    let pool = support::pool().await;
    let server = Server::new("export default { tools: { run: { run: () => 1 } } }").deploy();
    let alone = median(&pool, &server).await;
    let hostile = tokio::task::spawn_blocking(|| hostile(IN_FLIGHT)).await.expect("a program");
    let beside = median(&pool, &server).await;
    // A new server means new forks of the base zygote.
    let fresh = Server::new("export default { tools: { run: { run: () => 1 } } }").tenant("other").deploy();
    assert_eq!(run(&pool, &fresh, "{}").await.as_deref(), Ok("1"));
    tokio::task::spawn_blocking(|| drop(hostile)).await.expect("its end");
    assert!(beside as f64 <= alone.max(500) as f64 * MOST, "{beside} µs beside, {alone} µs alone");
}

/// Takes 60 MB and keeps them for a while.
const LARGE: &str = "export default { tools: { run: { run: async () => {
    const taken = new Uint8Array(60e6).fill(1);
    await new Promise((done) => setTimeout(done, 3000));
    return taken[7];
} } } }";

/// A pool whose compartments have 480 MiB together.
async fn small_pool() -> Arc<Pool> {
    let together = Together { memory_mb: 640, ..Together::default() };
    let settings =
        IsolateSettings { quick_forks: false, together: Some(together), ..IsolateSettings::new(support::carrier()) };
    support::pool_on(Arc::new(IsolateWall::start(settings).await.expect("a wall")))
}

/// Together they would fill the control group around all, and the kernel would kill in there as it likes.
#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn large_calls_of_one_tenant_cost_no_call_of_another() {
    let pool = small_pool().await;
    let large = Server::new(LARGE).tenant("large").limit("memory_mb", 80);
    // Larger than each of the others, so it is the first that the kernel would kill.
    let small = LARGE.replace("60e6", "70e6").replace("3000", "50");
    let small = Server::new(&small).tenant("small").limit("memory_mb", 100);
    let [large, small] = [large, small].map(|server| server.limit("cpu_ms", 5000).limit("time_ms", 30_000).deploy());
    assert_eq!(run(&pool, &small, "{}").await.as_deref(), Ok("1"));
    let over = Arc::new(AtomicBool::new(false));
    let callers: Vec<_> = (0..14)
        .map(|_| {
            let (pool, large, over) = (pool.clone(), large.clone(), over.clone());
            tokio::spawn(async move {
                let mut heard = Vec::new();
                while !over.load(Ordering::Relaxed) {
                    heard.push(run(&pool, &large, "{}").await);
                }
                heard
            })
        })
        .collect();
    for call in 0..12 {
        assert_eq!(run(&pool, &small, "{}").await.as_deref(), Ok("1"), "call {call} of the neighbour");
    }
    over.store(true, Ordering::Relaxed);
    let mut served = 0;
    for caller in callers {
        for heard in caller.await.expect("no panic") {
            // Who has waited too long hears so; nobody is killed for what the others take.
            assert!(matches!(heard.as_deref(), Ok("1") | Err(Code::Busy)), "{heard:?}");
            served += usize::from(heard.is_ok());
        }
    }
    assert!(served > 0);
}

/// Counts the calls of its compartment, or sleeps first.
const COUNT: &str = "let n = 0; export default { tools: { run: { run: async ({ ms }) => {
    await new Promise((done) => setTimeout(done, ms ?? 0));
    return ++n;
} } } }";

/// Which call of its compartment this was, in this session.
async fn count(pool: &Pool, server: &Arc<Deployment>, session: usize, input: &str) -> Result<String, Code> {
    let answer = call(pool, server, &in_session("run", input, Some(&format!("session-{session}")))).await;
    answer.outcome.map(|bytes| String::from_utf8_lossy(&bytes).into_owned()).map_err(|failure| failure.code)
}

/// The attack: sessions of two tenants that nobody uses hold all the memory there is.
#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn idle_sessions_of_two_tenants_keep_nobody_out() {
    for boundary in [Boundary::Call, Boundary::Session, Boundary::Server, Boundary::Tenant] {
        let pool = small_pool().await;
        let server = |tenant: &str, boundary| {
            Server::new(COUNT).tenant(tenant).boundary(boundary).limit("time_ms", 20_000).deploy()
        };
        // Three times 136 MiB, and what the servers keep.
        let (one, two) = (server("one", Boundary::Session), server("two", Boundary::Session));
        for (server, session) in [(&one, 0), (&one, 1), (&two, 0)] {
            assert_eq!(count(&pool, server, session, "{}").await.as_deref(), Ok("1"));
        }
        let busy = {
            let (pool, one) = (pool.clone(), one.clone());
            tokio::spawn(async move { count(&pool, &one, 0, r#"{"ms":3000}"#).await })
        };
        while pool.state().running == 0 {
            tokio::time::sleep(std::time::Duration::from_millis(1)).await;
        }
        let third = server("three", boundary);
        assert_eq!(count(&pool, &third, 0, "{}").await.as_deref(), Ok("1"), "{boundary:?}");
        assert_eq!(busy.await.expect("no panic").as_deref(), Ok("2"), "what is at work does not give way");
        assert_eq!(count(&pool, &two, 0, "{}").await.as_deref(), Ok("2"), "who holds less keeps what it has");
        assert_eq!(count(&pool, &one, 1, "{}").await.as_deref(), Ok("1"), "the idle one of the largest holder went");
    }
}
