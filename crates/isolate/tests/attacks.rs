//! Every program in `tests/attacks`, from inside a compartment, with a neighbour at work.
//!
//! Each must end exactly as its header says, the neighbour's calls must all succeed meanwhile, and the host must serve
//! the next caller. The header's format: `tests/attacks/README.md`.

#[path = "support/mod.rs"]
mod support;

use libtest_mimic::{Arguments, Failed, Trial};
use sandbox::{Answer, Pool};
use std::path::{Path, PathBuf};
use std::sync::Arc;
use std::sync::atomic::{AtomicBool, Ordering};
use support::{Server, call, in_session, tool};

const NEIGHBOUR: &str =
    "let n = 0; export default { tools: { run: { run: (input) => ({ n: ++n, twice: input.x * 2 }) } } }";

struct Attack {
    server: Server,
    expect: Vec<String>,
    result: Option<String>,
    message: Option<String>,
    calls: usize,
    input: String,
}

fn main() {
    let mut arguments = Arguments::from_args();
    // The machine's cores are for the attacks; more at once would only make them wait for each other.
    arguments.test_threads.get_or_insert(4);
    let runtime = tokio::runtime::Builder::new_multi_thread().worker_threads(2).enable_all().build();
    let runtime = Arc::new(runtime.expect("a runtime"));
    let pool = runtime.block_on(support::pool());
    let folder = Path::new(env!("CARGO_MANIFEST_DIR")).join("tests/attacks");
    let mut trials = Vec::new();
    for file in programs(&folder) {
        let name = file.strip_prefix(&folder).expect("below the folder").with_extension("").display().to_string();
        let (pool, runtime) = (pool.clone(), runtime.clone());
        trials.push(Trial::test(name, move || {
            let attack = read(&file)?;
            runtime.block_on(stage(&pool, attack))
        }));
    }
    assert!(trials.len() >= 150, "the corpus has at least 150 programs, found {}", trials.len());
    let conclusion = libtest_mimic::run(&arguments, trials);
    drop(pool);
    conclusion.exit();
}

fn programs(folder: &Path) -> Vec<PathBuf> {
    let mut found = Vec::new();
    for entry in std::fs::read_dir(folder).expect("the corpus is there").flatten() {
        let path = entry.path();
        if path.is_dir() {
            found.extend(programs(&path));
        } else if path.extension().is_some_and(|extension| extension == "js") {
            found.push(path);
        }
    }
    found.sort();
    found
}

/// Reads a program and its header; an unknown header line is an error, so that no expectation is lost to a typo.
fn read(file: &Path) -> Result<Attack, Failed> {
    let source = std::fs::read_to_string(file)?;
    let mut attack = Attack {
        server: Server::new(&source).tenant("hostile"),
        expect: Vec::new(),
        result: None,
        message: None,
        calls: 1,
        input: "{}".to_owned(),
    };
    for line in source.lines().map_while(|line| line.strip_prefix("// ")) {
        let Some((key, value)) = line.split_once(": ") else { continue };
        let value = value.trim();
        match key {
            "attack" => {}
            "expect" => attack.expect = value.split('|').map(|code| code.trim().to_owned()).collect(),
            "result" => attack.result = Some(value.to_owned()),
            "message" => attack.message = Some(value.to_owned()),
            "calls" => attack.calls = value.parse()?,
            "input" => attack.input = value.to_owned(),
            "jit" => attack.server.jit = value.parse()?,
            "boundary" => attack.server.boundary = value.parse::<policy::Boundary>()?,
            "limits" => {
                for pair in value.split_whitespace() {
                    let (name, value) = pair.split_once('=').ok_or("a limit is NAME=VALUE")?;
                    attack.server = attack.server.limit(name, value.parse()?);
                }
            }
            _ if key.contains(' ') => {}
            _ => return Err(format!("unknown header `{key}`").into()),
        }
    }
    if attack.expect.is_empty() {
        return Err("the header has no `expect`".into());
    }
    Ok(attack)
}

async fn stage(pool: &Arc<Pool>, attack: Attack) -> Result<(), Failed> {
    let over = Arc::new(AtomicBool::new(false));
    let neighbour = tokio::spawn(neighbour(pool.clone(), over.clone()));
    let deployment = attack.server.clone().deploy();
    let mut outcome = Ok(());
    for index in 0..attack.calls {
        let answer = call(pool, &deployment, &in_session("attack", &attack.input, Some("hostile"))).await;
        outcome = check(&attack, index, &answer);
        if outcome.is_err() {
            break;
        }
    }
    pool.release(&deployment.id);
    over.store(true, Ordering::Relaxed);
    neighbour.await.map_err(|error| error.to_string())??;
    outcome
}

/// Works from before the attack until after it, at least three calls; each in a compartment that knows no other.
async fn neighbour(pool: Arc<Pool>, over: Arc<AtomicBool>) -> Result<(), String> {
    let deployment = Server::new(NEIGHBOUR).tenant("neighbour").deploy();
    let mut calls = 0;
    while calls < 3 || !over.load(Ordering::Relaxed) {
        let answer = call(&pool, &deployment, &tool("run", r#"{"x": 21}"#)).await;
        match answer.outcome {
            Ok(bytes) if bytes == br#"{"n":1,"twice":42}"#[..] => calls += 1,
            other => return Err(format!("the neighbour's call {calls} went wrong: {other:?}")),
        }
        tokio::time::sleep(std::time::Duration::from_millis(5)).await;
    }
    pool.release(&deployment.id);
    Ok(())
}

fn check(attack: &Attack, index: usize, answer: &Answer) -> Result<(), Failed> {
    let (code, text) = match &answer.outcome {
        Ok(bytes) => ("ok", String::from_utf8_lossy(bytes).into_owned()),
        Err(failure) => (failure.code.as_str(), failure.message.clone()),
    };
    let shown: String = text.chars().take(400).collect();
    if !attack.expect.iter().any(|expected| expected == code) {
        return Err(format!("call {index}: expected {:?}, got {code}: {shown}", attack.expect).into());
    }
    if code == "ok"
        && let Some(expected) = &attack.result
    {
        let expected = expected.replace("{call}", &index.to_string());
        let value = |json: &str| serde_json::from_str::<serde_json::Value>(json).ok();
        if value(&text).is_none() || value(&text) != value(&expected) {
            return Err(format!("call {index}: expected the result {expected}, got {shown}").into());
        }
    }
    if code != "ok"
        && let Some(message) = &attack.message
        && !text.contains(message)
    {
        return Err(format!("call {index}: the message lacks `{message}`: {shown}").into());
    }
    // A host that talks about itself to a tenant leaks.
    for word in ["/home", "/target", "libisolate", "isolate_worker", "bulkhead-v8"] {
        if code != "ok" && text.contains(word) {
            return Err(format!("call {index}: the message names the host's `{word}`: {shown}").into());
        }
    }
    Ok(())
}
