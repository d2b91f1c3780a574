//! What a host without control groups sees of programs that hide what they use, and what looking costs it.

mod support;

use process::ProcessSettings;
use sandbox::{Code, Failure, Pool};
use serde_json::{Value, json};
use std::sync::Arc;
use support::{Server, pool_with, run, until_nothing_is_left};

/// As on a machine without control groups.
fn bare() -> Arc<Pool> {
    pool_with(ProcessSettings { groups: false, ..ProcessSettings::default() })
}

fn server(what: &str) -> Server {
    Server::new("hostile.py", &[what]).limit(|limits| (limits.memory_mb, limits.time_ms) = (128, 60_000))
}

async fn fails(server: Server) -> Failure {
    let (pool, deployment) = (bare(), server.deploy());
    let failure = run(&pool, &deployment, json!({})).await.expect_err("it means harm");
    drop((pool, deployment));
    until_nothing_is_left().await;
    failure
}

async fn answers(server: Server, input: Value) -> Value {
    run(&bare(), &server.deploy(), input).await.unwrap_or_else(|failure| panic!("{failure}"))
}

#[tokio::test]
async fn page_tables_are_memory() {
    let failure = fails(server("tables")).await;
    assert_eq!(failure.code, Code::MemoryLimit, "{failure}");
    assert_eq!(answers(server("tables"), json!({ "mb": 16 })).await, "read", "a few of them are nobody's harm");
}

#[tokio::test]
async fn what_waits_in_sockets_is_memory() {
    // As much as its descriptors allow is more than this.
    let failure = fails(server("sockets").limit(|limits| limits.memory_mb = 64)).await;
    assert_eq!(failure.code, Code::MemoryLimit, "{failure}");
    assert_eq!(answers(server("sockets"), json!({ "mb": 8 })).await, "written", "a few of them are nobody's harm");
}

#[tokio::test]
async fn children_whose_end_is_ignored_use_the_calls_cpu_time() {
    let failure = fails(server("orphans").limit(|limits| limits.cpu_ms = 2000)).await;
    assert_eq!(failure.code, Code::CpuLimit, "{failure}");
    let some = server("orphans").limit(|limits| limits.cpu_ms = 10_000);
    assert_eq!(answers(some, json!({ "count": 20 })).await, "computed");
}

/// Memory that processes share is theirs once.
#[tokio::test]
async fn a_family_that_shares_its_memory_is_left_alone() {
    let input = json!({ "mb": 48, "children": 6, "for": 1 });
    assert_eq!(answers(server("family"), input).await, 48);
}

/// Reading what the kernel tells of a process can take as long as the process likes. The threads that serve everybody do not
/// read it: with one such thread, the kernel counts what it reads.
#[tokio::test]
async fn the_threads_that_serve_everybody_do_not_wait_for_the_kernel() {
    for groups in [true, false] {
        let pool = pool_with(ProcessSettings { groups, ..ProcessSettings::default() });
        let deployment = server("family").deploy();
        run(&pool, &deployment, json!({ "mb": 1, "children": 0, "for": 0 })).await.expect("an answer");
        let before = read_by_this_thread();
        run(&pool, &deployment, json!({ "mb": 48, "children": 6, "for": 1 })).await.expect("an answer");
        let read = read_by_this_thread() - before;
        // A look reads some KiB of each process, fifty times a second; the answer has some hundred bytes.
        assert!(read < 8 << 10, "{read} bytes, with groups: {groups}");
    }
}

fn read_by_this_thread() -> u64 {
    let text = std::fs::read_to_string("/proc/thread-self/io").expect("a kernel that counts");
    let line = text.lines().find_map(|line| line.strip_prefix("rchar: ")).expect("a count");
    line.parse().expect("a number")
}
