//! A deployment zygote that was taken over, as if V8 had been broken while a server initialised: it forks processes that
//! nobody ordered (`native/zygote.c`). They end, and the servers of others go on.

#[path = "support/mod.rs"]
mod support;

use isolate::{Carrier, IsolateSettings, IsolateWall, Together};
use sandbox::{Deployment, Pool};
use std::path::Path;
use std::process::Command;
use std::sync::Arc;
use std::time::{Duration, Instant};
use support::processes::below;
use support::{Server, carrier, pool_on, run};

const HOSTILE: &str = "/* TAKEN OVER */ export default { tools: { run: { run: () => 1 } } }";
const HONEST: &str = "export default { tools: { run: { run: () => 2 } } }";

fn taken_over(sleepers: usize) -> Carrier {
    let source = Path::new(env!("CARGO_MANIFEST_DIR")).join("tests/native/zygote.c");
    let payload = Path::new(env!("CARGO_TARGET_TMPDIR")).join(format!("libzygote-{sleepers}.so"));
    let compiled = Command::new("cc").args(["-shared", "-fPIC", "-O1", "-o"]).arg(&payload).arg(&source).status();
    assert!(compiled.is_ok_and(|status| status.success()), "the payload does not compile; is `cc` there?");
    let mut carrier = carrier();
    carrier.preload.push(payload);
    carrier.environment.push(("BULKHEAD_SLEEPERS".to_owned(), sleepers.to_string()));
    carrier
}

async fn pool(settings: IsolateSettings) -> Arc<Pool> {
    pool_on(Arc::new(IsolateWall::start(settings).await.expect("a wall")))
}

/// Calls a server until it is told to stop; every call must succeed. Gives how many there were.
fn neighbour(pool: &Arc<Pool>, server: Arc<Deployment>, lasts: Duration) -> tokio::task::JoinHandle<usize> {
    let pool = pool.clone();
    tokio::spawn(async move {
        let (began, mut calls) = (Instant::now(), 0);
        while began.elapsed() < lasts {
            assert_eq!(run(&pool, &server, "{}").await.as_deref(), Ok("2"), "after {calls} calls");
            calls += 1;
            tokio::time::sleep(Duration::from_millis(10)).await;
        }
        calls
    })
}

/// One after the other: each counts the processes below this one.
#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn strangers_end_and_take_nothing_from_others() {
    strangers_end_when_their_server_is_deleted().await;
    strangers_use_up_no_processes_of_others().await;
}

async fn strangers_end_when_their_server_is_deleted() {
    const SLEEPERS: usize = 60;
    let pool = pool(IsolateSettings::new(taken_over(SLEEPERS))).await;
    let me = std::process::id();
    let hostile = Server::new(HOSTILE).tenant("hostile").deploy();
    let honest = Server::new(HONEST).tenant("honest").deploy();
    assert_eq!(run(&pool, &hostile, "{}").await.as_deref(), Ok("1"));
    assert!(below(me).len() > SLEEPERS, "the zygote was taken over: {}", below(me).len());
    let neighbour = neighbour(&pool, honest, Duration::from_secs(8));
    pool.release(&hostile.id);
    let began = Instant::now();
    while below(me).len() > SLEEPERS {
        assert!(began.elapsed() < Duration::from_secs(60), "{} processes outlive their server", below(me).len());
        tokio::time::sleep(Duration::from_millis(100)).await;
    }
    assert!(neighbour.await.expect("every call of the neighbour") > 0);
}

async fn strangers_use_up_no_processes_of_others() {
    let together = Together { processes: 120, ..Together::default() };
    let settings = IsolateSettings { together: Some(together), ..IsolateSettings::new(taken_over(5000)) };
    let pool = pool(settings).await;
    // Another base zygote than the hostile one's.
    let honest = Server::new(HONEST).tenant("honest").jit().deploy();
    assert_eq!(run(&pool, &honest, "{}").await.as_deref(), Ok("2"));
    let hostile = Server::new(HOSTILE).tenant("hostile").deploy();
    let neighbour = neighbour(&pool, honest, Duration::from_secs(4));
    // With no process left it can fork nothing for calls either.
    let _ = run(&pool, &hostile, "{}").await;
    assert!(neighbour.await.expect("every call of the neighbour") > 0);
}
