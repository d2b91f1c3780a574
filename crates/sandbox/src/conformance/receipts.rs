//! Every call has an account of what it used, also one that failed.

use super::stage::{Ear, Stage, ask, order, request};
use super::{Behaviour, Capability, Case, case};
use crate::{Code, Receipt};
use policy::Boundary;
use std::sync::Arc;

pub(super) fn cases() -> Vec<Case> {
    vec![
        case!(a_receipt_names_wall_boundary_and_limits),
        case!(a_receipt_of_a_refused_call_shows_no_use),
        case!(a_receipt_tells_the_cpu_time, CpuTime),
        case!(a_receipt_tells_the_time),
        case!(a_receipt_tells_the_memory, Memory),
        case!(a_receipt_counts_host_calls, HostCalls),
        case!(a_receipt_counts_log_output, Logs),
        case!(a_receipt_is_of_its_own_call_only, CpuTime, HostCalls),
    ]
}

fn plausible(receipt: &Receipt) {
    assert!(receipt.wait_us <= receipt.time_us, "{receipt:?}");
    assert!(receipt.peak_memory_kb < 2 * receipt.limits.memory_mb * 1024, "{receipt:?}");
    assert!(receipt.host_calls <= receipt.limits.host_calls + 1, "{receipt:?}");
    assert!(receipt.hosts.is_empty() && receipt.credentials.is_empty(), "nothing was reached: {receipt:?}");
}

async fn a_receipt_names_wall_boundary_and_limits(stage: Arc<Stage>) {
    let pool = stage.pool();
    for (behaviour, boundary) in [Behaviour::Echo, Behaviour::Fail]
        .into_iter()
        .flat_map(|b| [Boundary::Call, Boundary::Session, Boundary::Server].map(|x| (b, x)))
    {
        let server = stage.server(behaviour).boundary(boundary).limits(|limits| limits.cpu_ms = 1234).deploy();
        let receipt = ask(&pool, &server, &request("{}"), Arc::new(Ear::default())).await.receipt;
        assert_eq!(receipt.wall, crate::Wall::name(&*stage.wall));
        assert_eq!((receipt.boundary, receipt.jit), (boundary, false));
        assert_eq!(&receipt.limits, server.permit.limits());
        assert_eq!((receipt.host_calls, receipt.log_bytes), (0, 0));
        plausible(&receipt);
        if stage.has(Capability::CpuTime) {
            assert!(receipt.cpu_us > 0 && receipt.cpu_us <= 1_234_000, "{receipt:?}");
        }
    }
}

async fn a_receipt_of_a_refused_call_shows_no_use(stage: Arc<Stage>) {
    let server = stage.server(Behaviour::Echo).limits(|limits| limits.argument_kb = 1).deploy();
    let answer = ask(&stage.pool(), &server, &request(&" ".repeat(2000)), Arc::new(Ear::default())).await;
    assert_eq!(answer.outcome.expect_err("too long").code, Code::ArgumentLimit);
    let receipt = answer.receipt;
    assert_eq!((receipt.cpu_us, receipt.peak_memory_kb, receipt.host_calls, receipt.log_bytes), (0, 0, 0, 0));
    plausible(&receipt);
}

async fn a_receipt_tells_the_cpu_time(stage: Arc<Stage>) {
    for boundary in [Boundary::Call, Boundary::Server] {
        let server = stage.server(Behaviour::Spin).boundary(boundary).limits(|limits| limits.cpu_ms = 100).deploy();
        let receipt = ask(&stage.pool(), &server, &request("{}"), Arc::new(Ear::default())).await.receipt;
        // The kernel's clock and its timer agree only to a tick.
        assert!(receipt.cpu_us > 50_000, "{boundary:?}: {receipt:?}");
        assert!(receipt.time_us > 50_000, "{boundary:?}: {receipt:?}");
        plausible(&receipt);
    }
}

async fn a_receipt_tells_the_time(stage: Arc<Stage>) {
    for boundary in [Boundary::Call, Boundary::Server] {
        let server = stage.server(Behaviour::Sleep).boundary(boundary).limits(|limits| limits.time_ms = 200).deploy();
        let receipt = ask(&stage.pool(), &server, &request("{}"), Arc::new(Ear::default())).await.receipt;
        assert!(receipt.time_us - receipt.wait_us >= 200_000, "{boundary:?}: {receipt:?}");
        plausible(&receipt);
    }
}

async fn a_receipt_tells_the_memory(stage: Arc<Stage>) {
    for boundary in [Boundary::Call, Boundary::Server] {
        let server = stage.server(Behaviour::Hoard).boundary(boundary).limits(|limits| {
            limits.memory_mb = 32;
            limits.cpu_ms = 30_000;
            limits.time_ms = 60_000;
        });
        let receipt = ask(&stage.pool(), &server.deploy(), &request("{}"), Arc::new(Ear::default())).await.receipt;
        assert!(receipt.peak_memory_kb > 4 << 10, "{boundary:?}: {receipt:?}");
        plausible(&receipt);
    }
}

async fn a_receipt_counts_host_calls(stage: Arc<Stage>) {
    for boundary in [Boundary::Call, Boundary::Server] {
        let server = stage.server(Behaviour::Obey).boundary(boundary).deploy();
        let (pool, ear) = (stage.pool(), Arc::new(Ear::default()));
        for _ in 0..2 {
            let answer = ask(&pool, &server, &order("ask"), ear.clone()).await;
            answer.outcome.expect("a refused host call is no failure of the tool");
            assert_eq!(answer.receipt.host_calls, 1, "{boundary:?}");
        }
        assert_eq!(ear.calls.load(std::sync::atomic::Ordering::SeqCst), 2);
    }
}

async fn a_receipt_counts_log_output(stage: Arc<Stage>) {
    for boundary in [Boundary::Call, Boundary::Server] {
        let server = stage.server(Behaviour::Obey).boundary(boundary).deploy();
        let ear = Arc::new(Ear::default());
        let answer = ask(&stage.pool(), &server, &order("log"), ear.clone()).await;
        answer.outcome.expect("it only logs");
        assert_eq!(ear.log_bytes.load(std::sync::atomic::Ordering::SeqCst), 5, "{boundary:?}");
        // The level counts, too.
        assert!((5..64).contains(&answer.receipt.log_bytes), "{boundary:?}: {:?}", answer.receipt);
    }
}

/// What an earlier call in the same compartment used is not on the bill of the next.
async fn a_receipt_is_of_its_own_call_only(stage: Arc<Stage>) {
    let pool = stage.pool();
    let server =
        stage.server(Behaviour::Obey).boundary(Boundary::Server).limits(|limits| limits.cpu_ms = 10_000).deploy();
    ask(&pool, &server, &order("ask"), Arc::new(Ear::default())).await.outcome.expect("refused, not failed");
    let burnt = ask(&pool, &server, &order("burn"), Arc::new(Ear::default())).await;
    burnt.outcome.expect("it burns within its limit");
    let next = ask(&pool, &server, &order("count"), Arc::new(Ear::default())).await;
    assert_eq!(next.outcome.expect("it counts"), "1");
    assert_eq!((burnt.receipt.host_calls, next.receipt.host_calls), (0, 0));
    assert!(next.receipt.cpu_us * 2 < burnt.receipt.cpu_us, "{:?} after {:?}", next.receipt, burnt.receipt);
}
