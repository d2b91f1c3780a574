//! What native code could do from inside a sealed compartment, as if V8 had been fully broken.
//!
//! `native/payload.c` is compiled and preloaded before the worker. It makes one forbidden attempt where the worker asks
//! for its resource usage, which it does in sealed processes only. Each attempt must end with the kernel's SIGSYS;
//! if the call returned, whatever it returned, the payload would say so on the channel and the host would see that.

#[path = "support/mod.rs"]
mod support;

use libtest_mimic::{Arguments, Failed, Trial};
use policy::Boundary;
use sandbox::Code;
use std::path::{Path, PathBuf};
use std::process::Command;
use std::sync::Arc;
use support::{Server, call, carrier, in_session, pool_on, tool, wall_from};

fn main() {
    let arguments = Arguments::from_args();
    let source = Path::new(env!("CARGO_MANIFEST_DIR")).join("tests/native/payload.c");
    let payload = Path::new(env!("CARGO_TARGET_TMPDIR")).join("libpayload.so");
    let compiled = Command::new("cc").args(["-shared", "-fPIC", "-O1", "-o"]).arg(&payload).arg(&source).status();
    assert!(compiled.is_ok_and(|status| status.success()), "the payload does not compile; is `cc` there?");
    let text = std::fs::read_to_string(&source).expect("the payload's source");
    let attempts: Vec<(String, String)> = text
        .lines()
        .filter_map(|line| line.trim().strip_prefix("// attempt ")?.split_once(": "))
        .map(|(number, name)| (number.to_owned(), name.trim().to_owned()))
        .collect();
    assert!(attempts.len() >= 38, "the payload has at least 38 attempts, found {}", attempts.len());

    let runtime = tokio::runtime::Builder::new_multi_thread().worker_threads(2).enable_all().build();
    let runtime = Arc::new(runtime.expect("a runtime"));
    let mut trials = vec![Trial::test("without an attempt a call succeeds", {
        let (runtime, payload) = (runtime.clone(), payload.clone());
        move || runtime.block_on(attempt(payload, None, Boundary::Call))
    })];
    for (number, name) in attempts {
        for boundary in [Boundary::Call, Boundary::Server] {
            let (runtime, payload) = (runtime.clone(), payload.clone());
            let (number, name) = (number.clone(), name.clone());
            let kind = if boundary == Boundary::Call { "call" } else { "serve" };
            let title = format!("{kind}: {name}");
            trials.push(Trial::test(title, move || runtime.block_on(attempt(payload, Some(number), boundary))));
        }
    }
    for boundary in [Boundary::Call, Boundary::Session, Boundary::Server, Boundary::Tenant] {
        let (runtime, payload) = (runtime.clone(), payload.clone());
        trials.push(Trial::test(format!("{boundary:?}: compute for ever"), move || {
            runtime.block_on(compute_for_ever(payload, boundary))
        }));
    }
    libtest_mimic::run(&arguments, trials).exit();
}

/// Nothing inside holds native code to its CPU time: that is a timer that it cannot reach. How long it ran is the kernel's
/// word, as the receipt has it.
async fn compute_for_ever(payload: PathBuf, boundary: Boundary) -> Result<(), Failed> {
    let mut carrier = carrier();
    carrier.preload.push(payload);
    carrier.environment.push(("BULKHEAD_PAYLOAD".to_owned(), "1000".to_owned()));
    let pool = pool_on(wall_from(carrier).await);
    let server = Server::new("return 1;").boundary(boundary).limit("cpu_ms", 100).deploy();
    let answer = call(&pool, &server, &in_session("run", "{}", Some("session"))).await;
    let code = answer.outcome.map(drop).map_err(|failure| failure.code);
    if code != Err(Code::CpuLimit) {
        return Err(format!("expected {:?}, got {code:?}", Code::CpuLimit).into());
    }
    // A fifth of grace, and some ticks of the kernel's clock; without a timer it would be 300 ms and more.
    let cpu_us = answer.receipt.cpu_us;
    if (80_000..200_000).contains(&cpu_us) { Ok(()) } else { Err(format!("it ran for {cpu_us} µs").into()) }
}

async fn attempt(payload: PathBuf, number: Option<String>, boundary: Boundary) -> Result<(), Failed> {
    let mut carrier = carrier();
    carrier.preload.push(payload);
    let expected = if number.is_some() { Err(Code::JailViolation) } else { Ok("1".to_owned()) };
    carrier.environment.extend(number.map(|number| ("BULKHEAD_PAYLOAD".to_owned(), number)));
    let pool = pool_on(wall_from(carrier).await);
    let server = Server::new("return 1;").boundary(boundary).deploy();
    let answer = call(&pool, &server, &tool("run", "{}")).await;
    let outcome = answer.outcome.map(|bytes| String::from_utf8_lossy(&bytes).into_owned());
    let code = outcome.clone().map_err(|failure| failure.code);
    if code == expected { Ok(()) } else { Err(format!("expected {expected:?}, got {outcome:?}").into()) }
}
