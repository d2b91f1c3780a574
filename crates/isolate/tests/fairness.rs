//! One tenant floods, another hardly notices. Ratios of the same run.
//!
//! The machine may be busy otherwise, and then calls take longer whatever the pool does. So the peer of a flood is one busy
//! thread for each core, which is what the flood may have at most, and one round below the limit is enough.

#[path = "support/mod.rs"]
mod support;

use sandbox::{Deployment, Pool};
use std::sync::Arc;
use std::sync::atomic::{AtomicBool, AtomicU64, Ordering};
use std::time::{Duration, Instant};
use support::{Server, run};

const FLOODERS: usize = 50;
const ROUNDS: usize = 3;
/// Of a measurement that the rest of the machine disturbs.
const MOST_ROUNDS: usize = 8;
const CALLS: usize = 100;

/// The quiet tenant's median beside a flood over that beside busy threads. It is about 1; where a flood takes all turns, each
/// call waits for dozens of others.
const MOST: f64 = 12.0;

/// Measurements come one after the other.
static ALONE: tokio::sync::Mutex<()> = tokio::sync::Mutex::const_new(());

/// Computes for some twenty milliseconds.
const BURN: &str = "for (let i = 0; i < 2e6; i++);";

struct Flood {
    over: Arc<AtomicBool>,
    served: Arc<AtomicU64>,
    callers: Vec<tokio::task::JoinHandle<()>>,
}

impl Flood {
    fn start(pool: &Arc<Pool>, server: &Arc<Deployment>) -> Flood {
        let (over, served) = (Arc::new(AtomicBool::new(false)), Arc::new(AtomicU64::new(0)));
        let callers = (0..FLOODERS).map(|_| {
            let (pool, server, over, served) = (pool.clone(), server.clone(), over.clone(), served.clone());
            tokio::spawn(async move {
                while !over.load(Ordering::Relaxed) {
                    // On a slow machine some end at their CPU limit or their patience's end; that is an answer, too.
                    if run(&pool, &server, "{}").await.is_ok() {
                        served.fetch_add(1, Ordering::Relaxed);
                    }
                }
            })
        });
        Flood { callers: callers.collect(), over, served }
    }

    async fn stop(self) -> u64 {
        self.over.store(true, Ordering::Relaxed);
        for caller in self.callers {
            tokio::time::timeout(support::PATIENCE, caller).await.expect("no flooder hangs").expect("no panic");
        }
        self.served.load(Ordering::Relaxed)
    }
}

/// p50 and p99 of a gentle caller, in microseconds.
async fn gentle(pool: &Arc<Pool>, server: &Arc<Deployment>) -> (u64, u64) {
    let mut times = Vec::with_capacity(CALLS);
    for _ in 0..CALLS {
        tokio::time::sleep(Duration::from_millis(5)).await;
        let begin = Instant::now();
        assert_eq!(run(pool, server, r#"{"x":2}"#).await, Ok("4".to_owned()));
        times.push(begin.elapsed().as_micros() as u64);
    }
    times.sort_unstable();
    (times[CALLS / 2], times[CALLS * 99 / 100])
}

/// The same beside one busy thread for each core.
async fn crowded(pool: &Arc<Pool>, server: &Arc<Deployment>) -> (u64, u64) {
    let over = Arc::new(AtomicBool::new(false));
    let cores = std::thread::available_parallelism().map_or(2, |cores| cores.get());
    let busy: Vec<_> = (0..cores)
        .map(|_| {
            let over = over.clone();
            std::thread::spawn(move || while !over.load(Ordering::Relaxed) {})
        })
        .collect();
    let times = gentle(pool, server).await;
    over.store(true, Ordering::Relaxed);
    busy.into_iter().for_each(|thread| thread.join().expect("no panic"));
    times
}

async fn quiet_beside(name: &str, body: &str) {
    let pool = support::pool().await;
    let quiet = Server::new("export default { tools: { run: { run: ({ x }) => x * 2 } } }").tenant("quiet").deploy();
    let flood = format!("export default {{ tools: {{ run: {{ run: async () => {{ {body} return 1 }} }} }} }}");
    let loud = Server::new(&flood).tenant("loud").limit("cpu_ms", 1000).deploy();
    gentle(&pool, &quiet).await;
    let mut best = f64::INFINITY;
    for round in 1..=MOST_ROUNDS {
        let crowded = crowded(&pool, &quiet).await;
        let flood = Flood::start(&pool, &loud);
        tokio::time::sleep(Duration::from_millis(100)).await;
        let beside = gentle(&pool, &quiet).await;
        let served = flood.stop().await;
        println!(
            "{name}, round {round}: p50 {} µs and p99 {} µs beside busy threads, {} and {} beside a flood that had {served} calls served",
            crowded.0, crowded.1, beside.0, beside.1
        );
        assert!(served > 0, "the flood came to nothing");
        best = best.min(beside.0 as f64 / crowded.0 as f64);
        if best < MOST {
            break;
        }
    }
    println!("{name}: beside the flood the p50 is {best:.2} times that beside busy threads");
    assert!(best < MOST, "{name}: the quiet tenant's calls take {best:.1} times as long");
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn a_quiet_tenant_beside_a_flood() {
    let _alone = ALONE.lock().await;
    quiet_beside("small calls", "").await;
    quiet_beside("calls that compute", BURN).await;
    quiet_beside("calls that sleep, then compute", &format!("await new Promise((go) => setTimeout(go, 200)); {BURN}"))
        .await;
}

/// Reads what the host does between its code and its calls by way of what a server has replaced, and computes when it does.
const HOOKS: &str = "let armed = false;
    const spin = () => { if (armed) for (;;); };
    for (const name of ['then', 'absent']) {
        Object.defineProperty(Object.prototype, name, { configurable: true, get: spin, set: spin });
    }
    Object.prototype.toJSON = function () { if (Object.hasOwn(this, 'double')) for (;;); return this; };
    export default {
        get instructions() { armed = true; },
        tools: { run: { run() { armed = false; return 1; } } },
    };";
const HARMLESS: &str = "export default { tools: { run: { run: () => 1 } } }";

/// p50 of a neighbour beside four such servers, each of which is called now and then and has its spares.
async fn beside_four(source: &str) -> u64 {
    let pool = support::pool().await;
    let quiet = Server::new("export default { tools: { run: { run: ({ x }) => x * 2 } } }").tenant("quiet").deploy();
    let server = || Server::new(source).tenant("loud").limit("init_time_ms", 3000).deploy();
    let four: Vec<_> = (0..4).map(|_| server()).collect();
    gentle(&pool, &quiet).await;
    let over = Arc::new(AtomicBool::new(false));
    let callers = four.into_iter().map(|server| {
        let (pool, over) = (pool.clone(), over.clone());
        tokio::spawn(async move {
            while !over.load(Ordering::Relaxed) {
                assert_eq!(run(&pool, &server, "{}").await, Ok("1".to_owned()));
                tokio::time::sleep(Duration::from_millis(200)).await;
            }
        })
    });
    let callers: Vec<_> = callers.collect();
    tokio::time::sleep(Duration::from_millis(500)).await;
    let (p50, _) = gentle(&pool, &quiet).await;
    over.store(true, Ordering::Relaxed);
    for caller in callers {
        tokio::time::timeout(support::PATIENCE, caller).await.expect("no caller hangs").expect("no panic");
    }
    p50
}

/// Servers that hook what the host does outside their calls cost a neighbour no more than such that do not.
#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn a_neighbour_beside_servers_that_hook_the_host() {
    let _alone = ALONE.lock().await;
    let mut ratios = Vec::new();
    for round in 1..=ROUNDS {
        let harmless = beside_four(HARMLESS).await;
        let hooked = beside_four(HOOKS).await;
        println!("round {round}: p50 {harmless} µs beside four servers, {hooked} µs beside four with hooks");
        ratios.push(hooked as f64 / harmless as f64);
    }
    // Whatever else the machine does makes a round worse by chance; what spins does so in each.
    let ratio = ratios.into_iter().fold(f64::INFINITY, f64::min);
    assert!(ratio < 3.0, "the neighbour's calls take {ratio:.1} times as long");
}
