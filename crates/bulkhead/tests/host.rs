//! The host from its first start to its end, through the command line.

mod support;

use serde_json::{Value, json};
use std::io::{BufRead, BufReader};
use std::net::TcpListener;
use std::os::unix::fs::{MetadataExt, PermissionsExt};
use std::process::{Command, Stdio};
use support::fake::{FakeHost, nothing};
use support::host::{Host, Keys, until};
use support::http::Connection;
use support::{Dir, PROGRAM, Run, bulkhead, example, root};

fn output(run: &Run) -> Value {
    assert_eq!(run.code, 0, "{run:?}");
    serde_json::from_str(&run.stdout).unwrap_or_else(|error| panic!("stdout is not JSON: {error}\n{run:?}"))
}

/// The code of a refusal.
fn refused(run: &Run) -> String {
    assert_eq!((run.code, run.stderr.as_str()), (1, ""), "{run:?}");
    let object: Value = serde_json::from_str(&run.stdout).unwrap_or_else(|error| panic!("{error}\n{run:?}"));
    let keys = |value: &Value| value.as_object().unwrap().keys().cloned().collect::<Vec<_>>();
    assert_eq!(
        (keys(&object), keys(&object["error"])),
        (vec!["error".to_owned()], ["code", "hint", "message"].map(str::to_owned).to_vec())
    );
    object["error"]["code"].as_str().unwrap().to_owned()
}

fn deploy(host: &Host, keys: &Keys, file: &str, server: &str) -> String {
    let made = output(&host.run(&keys.deploy, ["deploy", file, "--server", server, "--json", "--accept-surface"]));
    assert_eq!(made.as_object().unwrap().keys().collect::<Vec<_>>(), ["deployment", "server", "url"]);
    assert_eq!(made["url"], format!("{}/{server}/mcp", host.url));
    made["deployment"].as_str().unwrap().to_owned()
}

/// A program without root's rights to look into others, which all but root lack anyway.
fn modest(program: &str) -> Command {
    if std::fs::metadata("/proc/self").unwrap().uid() != 0 {
        return Command::new(program);
    }
    let mut command = Command::new("setpriv");
    let rights = "-sys_ptrace,-perfmon,-sys_admin";
    command.args(["--bounding-set", rights, "--inh-caps", rights, program]);
    command
}

#[test]
fn a_host_leaves_no_core_and_shows_its_memory_to_nobody() {
    let dir = Dir::new();
    let data = dir.path("data").to_string_lossy().into_owned();
    let mut serve = modest(PROGRAM);
    serve.args(["serve", "--listen", "127.0.0.1:0", "--data", &data]);
    let host = Host::launch(serve, data);
    let limits = std::fs::read_to_string(format!("/proc/{}/limits", host.pid())).unwrap();
    let core = limits.lines().find(|line| line.starts_with("Max core file size")).unwrap();
    assert_eq!(core.split_whitespace().skip(4).take(2).collect::<Vec<_>>(), ["0", "0"], "{core}");
    let looks = |pid: u32| {
        let mut look = modest("cat");
        look.arg(format!("/proc/{pid}/environ")).stdout(Stdio::null()).stderr(Stdio::null());
        look.status().unwrap().success()
    };
    let mut other = modest("sleep").arg("60").spawn().unwrap();
    until("another process can be looked into, so that the look counts", || looks(other.id()));
    let hidden = !looks(host.pid());
    other.kill().unwrap();
    other.wait().unwrap();
    assert!(hidden, "the host cannot");
    assert_eq!(host.stop().0, Some(0));
}

#[test]
fn the_life_of_a_server() {
    let dir = Dir::new();
    let host = Host::start(&dir, "");
    let mode = std::fs::metadata(format!("{}/operator.key", host.data)).unwrap().permissions().mode();
    assert_eq!(mode & 0o777, 0o600);
    let made = output(&host.operate(["tenant", "create", "other", "--json"]));
    assert_eq!(made.as_object().unwrap().keys().collect::<Vec<_>>(), ["admin_key", "call_key", "deploy_key", "tenant"]);
    assert_eq!(made["tenant"], "other");
    let keys = host.tenant("acme");

    let first = deploy(&host, &keys, &example("prices.js"), "acme/prices");
    let tools = host.run(&keys.call, ["tools", "acme/prices"]);
    assert!(tools.stdout.contains("double_price") && tools.stdout.contains("convert"), "{tools:?}");
    let call = host.run(&keys.call, ["call", "acme/prices", "double_price", r#"{"price": 45}"#]);
    assert_eq!((call.code, call.stdout.as_str()), (0, "{\"doublePrice\":90}\n"), "{call:?}");
    assert!(
        call.stderr.contains("doubling 45") && call.stderr.contains("receipt: wall isolate, boundary call"),
        "{call:?}"
    );
    let call = output(&host.run(&keys.call, ["call", "acme/prices", "double_price", r#"{"price": 45}"#, "--json"]));
    assert_eq!(call["result"]["structuredContent"], json!({ "doublePrice": 90 }));
    assert_eq!(
        (call["receipt"]["wall"].as_str(), call["receipt"]["deployment"].as_str()),
        (Some("isolate"), Some(first.as_str()))
    );

    // What it logged and what was called is there to be read.
    let lines = host.run(&keys.call, ["logs", "acme/prices", "--json"]);
    assert!(lines.stdout.lines().any(|line| line.contains("doubling 45")), "{lines:?}");
    let calls = host.run(&keys.call, ["calls", "acme", "--json"]);
    let newest: Value = serde_json::from_str(calls.stdout.lines().next().expect("a call")).unwrap();
    assert_eq!((newest["name"].as_str(), newest["outcome"].as_str()), (Some("double_price"), Some("ok")), "{calls:?}");

    // Another version, and back.
    let second = dir
        .file("prices.js", "export default { tools: { double_price: { run: ({ price }) => `about ${price * 2}` } } };");
    let second = deploy(&host, &keys, &second, "acme/prices");
    assert_ne!(first, second);
    let call = || host.run(&keys.call, ["call", "acme/prices", "double_price", r#"{"price": 1}"#]);
    assert_eq!(call().stdout, "about 2\n");
    let list = output(&host.run(&keys.deploy, ["deployments", "acme/prices", "--json"]));
    assert_eq!(list["deployments"].as_array().unwrap().len(), 2);
    assert_eq!(host.run(&keys.deploy, ["rollback", "acme/prices"]).code, 0);
    assert_eq!(call().stdout, "{\"doublePrice\":2}\n");

    // A revoked key is no key, at once.
    let list = output(&host.run(&keys.admin, ["key", "list", "acme", "--json"]));
    let of_call = list["keys"].as_array().unwrap().iter().find(|key| key["role"] == "call").expect("the call key");
    assert_eq!(host.run(&keys.admin, ["key", "revoke", "acme", of_call["id"].as_str().unwrap()]).code, 0);
    let late = host.run(&keys.call, ["call", "acme/prices", "double_price", r#"{"price": 1}"#, "--json"]);
    assert_eq!(refused(&late), "invalid_token");

    // The end, and another beginning.
    let head = host.operate(["audit-log", "head"]).stdout.trim().to_owned();
    let (code, said) = host.stop();
    assert_eq!(code, Some(0), "{said}");
    let data = dir.path("data").to_string_lossy().into_owned();
    let verified = bulkhead(["audit-log", "verify", "--data", &data, "--expect", &head, "--json"]);
    assert_eq!(output(&verified)["ok"], true);
    let host = Host::start(&dir, "");
    let again = output(&host.operate(["server", "show", "acme/prices", "--json"]));
    assert_eq!(again["current"]["id"], first.as_str());
    assert_eq!(host.stop().0, Some(0));
    break_the_log(&data);
    let broken = bulkhead(["audit-log", "verify", "--data", &data, "--json"]);
    assert_eq!(refused(&broken), "audit_broken");
}

/// Changes one digit in the middle of the audit log.
fn break_the_log(data: &str) {
    let mut folders = vec![std::path::PathBuf::from(data)];
    while let Some(folder) = folders.pop() {
        for entry in std::fs::read_dir(folder).unwrap().flatten() {
            let path = entry.path();
            if path.is_dir() {
                folders.push(path);
                continue;
            }
            let Ok(text) = std::fs::read_to_string(&path) else { continue };
            if let Some(at) = text.find("\"outcome\":\"ok\"") {
                let changed = format!("{}{}", &text[..at], text[at..].replacen("\"ok\"", "\"no\"", 1));
                std::fs::write(&path, changed).unwrap();
                return;
            }
        }
    }
    panic!("no audit log was found in {data}");
}

#[test]
fn refusals_have_codes() {
    let dir = Dir::new();
    let host = Host::start(&dir, "[limits]\ncpu_ms = 1000\n");
    let (acme, other) = (host.tenant("acme"), host.tenant("other"));
    deploy(&host, &acme, &example("prices.js"), "acme/prices");
    deploy(&host, &acme, &example("hostile/spin.js"), "acme/spin");

    assert_eq!(refused(&host.operate(["tenant", "create", "acme", "--json"])), "exists");
    assert_eq!(refused(&host.run(&acme.call, ["tenant", "create", "third", "--json"])), "forbidden");
    assert_eq!(refused(&host.run(&other.admin, ["server", "show", "acme/prices", "--json"])), "not_found");
    assert_eq!(refused(&host.run(&other.call, ["call", "acme/prices", "double_price", "--json"])), "not_found");
    assert_eq!(refused(&host.run(&acme.call, ["call", "acme/nothing", "run", "--json"])), "not_found");
    assert_eq!(refused(&host.run("bh_call_wrong", ["tools", "acme/prices", "--json"])), "invalid_token");
    assert_eq!(refused(&host.run(&acme.call, ["call", "acme/spin", "run", "--json"])), "cpu_limit");
    assert_eq!(
        refused(&host.run(&acme.call, ["call", "acme/prices", "double_price", "{}", "--json"])),
        "bad_arguments"
    );
    let broken = dir.file("broken.js", "export default {");
    assert_eq!(
        refused(&host.run(&acme.deploy, ["deploy", &broken, "--server", "acme/broken", "--json"])),
        "init_failed"
    );
    let greedy = host
        .run(&acme.deploy, ["deploy", &example("prices.js"), "--server", "acme/x", "--limit", "cpu_ms=1001", "--json"]);
    assert_eq!(refused(&greedy), "refused");
    assert_eq!(host.stop().0, Some(0));
}

#[test]
fn one_directory_has_one_host_and_one_port_too() {
    let dir = Dir::new();
    let host = Host::start(&dir, "");
    let data = host.data.clone();
    let second = bulkhead(["serve", "--listen", "127.0.0.1:0", "--data", &data]);
    assert_eq!((second.code, second.stdout.as_str()), (1, ""), "{second:?}");
    assert!(second.stderr.contains("is in use by another host"), "{second:?}");
    assert!(second.stderr.contains("hint: stop that host, or choose another directory with --data"), "{second:?}");
    assert_eq!(host.stop().0, Some(0));

    let taken = TcpListener::bind("127.0.0.1:0").unwrap();
    let address = taken.local_addr().unwrap().to_string();
    let run = bulkhead(["serve", "--listen", &address, "--data", &data]);
    assert_eq!(run.code, 1, "{run:?}");
    assert!(run.stderr.contains(&format!("error: `{address}` cannot be listened on")), "{run:?}");
    assert!(run.stderr.contains("hint: something else listens there; `--listen` names another address"), "{run:?}");
}

#[test]
fn a_machine_that_cannot_run_it_is_2() {
    let dir = Dir::new();
    let data = dir.path("data").to_string_lossy().into_owned();
    let wall =
        bulkhead(["serve", "--listen", "127.0.0.1:0", "--data", &data]).with_env("BULKHEAD_WORKER", "/no/such/worker");
    assert_eq!(wall.code, 2, "{wall:?}");
    assert!(
        wall.stderr.contains("error: the wall cannot be started\n") && wall.stderr.contains("hint: `bulkhead doctor`"),
        "{wall:?}"
    );
    let nowhere = bulkhead(["serve", "--listen", "127.0.0.1:0", "--data", "/proc/nowhere"]);
    assert!(nowhere.code == 2 && nowhere.stderr.contains("`/proc/nowhere"), "{nowhere:?}");
}

#[test]
fn a_reload_takes_a_good_file_and_refuses_a_bad_one() {
    let dir = Dir::new();
    let host = Host::start(&dir, "");
    let keys = host.tenant("acme");
    deploy(&host, &keys, &example("prices.js"), "acme/prices");
    let file = |text: &str| dir.file("host.toml", &format!("{text}\n[isolate]\nquick_forks = false\n"));
    let call = || host.run(&keys.call, ["call", "acme/prices", "double_price", r#"{"price": 1}"#, "--json"]);
    assert_eq!(call().code, 0);

    file("[quota]\nrequests_per_s = 0\nbrust = 1");
    host.signal("HUP");
    host.hears("the configuration was refused, the old one stays: ");
    assert!(
        host.said().contains("host.toml:3:1: `quota.brust`: there is no such key; did you mean `burst`?"),
        "{}",
        host.said()
    );
    let refusal = host.operate(["reload", "--json"]);
    assert_eq!(refused(&refusal), "bad_configuration");
    assert!(refusal.stdout.contains("quota.brust"), "{refusal:?}");
    assert_eq!(call().code, 0, "the old one stays");

    file("[quota]\nrequests_per_s = 0.001\nburst = 1\n[pool]\nspares = 1\n[http]\nmax_connections = 99");
    host.signal("HUP");
    host.hears("the configuration was read again");
    host.hears("`pool.spares`, `http.max_connections` can only change when the host starts; the old values stay");
    until("the new quota", || call().code == 1);
    assert_eq!(refused(&call()), "quota_exceeded");
    let told = host.operate(["reload"]);
    assert!(told.stderr.contains("`pool.spares`, `http.max_connections` take effect when the host starts"), "{told:?}");
    let keys = json!(["pool.spares", "http.max_connections"]);
    assert_eq!(output(&host.operate(["reload", "--json"])), json!({ "reloaded": true, "at_start": keys }));
    file("");
    assert_eq!(output(&host.operate(["reload", "--json"])), json!({ "reloaded": true, "at_start": [] }));
    until("the old quota", || call().code == 0);

    let metrics = || Connection::open(&host.url).unwrap().ask("GET", "/metrics", &[], "").unwrap().status;
    assert_eq!(metrics(), 401);
    file("[metrics]\npublic = true");
    assert_eq!(host.operate(["reload"]).code, 0);
    assert_eq!(metrics(), 200);

    // What is loaded already must fit the new limits, too.
    file("[limits]\ncpu_ms = 10");
    assert_eq!(output(&host.operate(["reload", "--json"])), json!({ "reloaded": true, "at_start": [] }));
    let beyond = call();
    assert!(beyond.code != 0 && beyond.stdout.contains("not permitted"), "{beyond:?}");
    file("");
    assert_eq!(host.operate(["reload"]).code, 0);
    assert_eq!(call().code, 0);
    assert_eq!(host.stop().0, Some(0));
}

const SLOW: &str =
    "export default { tools: { wait: { run: ({ ms }) => new Promise(r => setTimeout(r, ms, 'waited')) } } };";

/// A call in the background: its arguments and the process.
fn in_background(host: &Host, key: &str, ms: u32) -> std::process::Child {
    let arguments = format!("{{\"ms\":{ms}}}");
    Command::new(PROGRAM)
        .args(["call", "acme/slow", "wait", &arguments])
        .env("BULKHEAD_URL", &host.url)
        .env("BULKHEAD_KEY", key)
        .stdout(Stdio::piped())
        .stderr(Stdio::piped())
        .spawn()
        .expect("the program starts")
}

fn is_running(host: &Host) -> bool {
    output(&host.operate(["host", "--json"]))["walls"]["isolate"]["running"] == 1
}

#[test]
fn the_end_waits_for_what_runs() {
    let dir = Dir::new();
    let host = Host::start(&dir, "");
    let keys = host.tenant("acme");
    deploy(&host, &keys, &dir.file("slow.js", SLOW), "acme/slow");
    let call = in_background(&host, &keys.call, 4000);
    until("the call runs", || is_running(&host));
    let (code, said) = host.stop();
    assert_eq!(code, Some(0), "{said}");
    let call = call.wait_with_output().unwrap();
    assert_eq!(
        (call.status.code(), String::from_utf8_lossy(&call.stdout).as_ref()),
        (Some(0), "waited\n"),
        "{call:?}\n{said}"
    );
}

#[test]
fn the_deadline_ends_what_does_not_finish() {
    let dir = Dir::new();
    let host = Host::start(&dir, "[shutdown]\ndeadline_s = 1\n");
    let keys = host.tenant("acme");
    deploy(&host, &keys, &dir.file("slow.js", SLOW), "acme/slow");
    let call = in_background(&host, &keys.call, 25_000);
    until("the call runs", || is_running(&host));
    let (code, said) = host.stop();
    assert_eq!(code, Some(0), "{said}");
    assert!(said.contains("still running at the deadline"), "{said}");
    let call = call.wait_with_output().unwrap();
    assert_ne!(call.status.code(), Some(0), "{call:?}");
}

#[test]
fn a_second_signal_does_not_wait() {
    let dir = Dir::new();
    let host = Host::start(&dir, "[shutdown]\ndeadline_s = 600\n");
    let keys = host.tenant("acme");
    deploy(&host, &keys, &dir.file("slow.js", SLOW), "acme/slow");
    let mut call = in_background(&host, &keys.call, 500_000);
    until("the call runs", || is_running(&host));
    host.signal("INT");
    host.hears("shutting down");
    host.signal("INT");
    let (code, said) = host.end();
    assert_eq!(code, Some(0), "{said}");
    assert!(said.contains("ended at once"), "{said}");
    assert_eq!(call.wait().unwrap().code(), Some(2), "its host is gone");
}

#[test]
fn a_call_is_a_trace_at_the_collector() {
    let collector = FakeHost::start(|_| nothing(200));
    let dir = Dir::new();
    let config = format!("[trace]\notlp_endpoint = '{}'\nheaders = {{ x-api-key = 'secret' }}\n", collector.url());
    let host = Host::start(&dir, &config);
    let keys = host.tenant("acme");
    deploy(&host, &keys, &example("prices.js"), "acme/prices");
    let (trace, other) = ("4bf92f3577b34da6a3ce929d0e0e4736", "11112222333344445555666677778888");
    let mut connection = Connection::open(&host.url).unwrap();
    let mut call = |arguments: &Value, headers: &[(&str, &str)]| {
        connection.call(&keys.call, "acme/prices", "double_price", arguments, headers).unwrap()
    };
    let context = format!("00-{trace}-00f067aa0ba902b7-01");
    assert_eq!(call(&json!({ "price": 45 }), &[("traceparent", &context)]).status, 200);
    // One that was refused, and one whose client does not want it traced.
    let bad = call(&json!({ "price": "x" }), &[("traceparent", &context.replace(trace, other))]);
    assert_eq!(bad.json()["result"]["isError"], true);
    assert_eq!(call(&json!({ "price": 1 }), &[("traceparent", &context.replace("-01", "-00"))]).status, 200);

    // A client may name its span in the message instead.
    let mut message = support::http::call_message("double_price", &json!({ "price": 2 }));
    message["params"]["_meta"]["traceparent"] = json!(context.replace(trace, &"ab".repeat(16)));
    let in_body = Connection::open(&host.url).unwrap().post(&keys.call, "acme/prices", "double_price", &message, &[]);
    assert_eq!(in_body.unwrap().status, 200);

    let calls = host.run(&keys.call, ["calls", "acme", "--json"]).stdout.clone();
    let traced: Vec<_> =
        calls.lines().map(|line| serde_json::from_str::<Value>(line).unwrap()["trace"].clone()).collect();
    assert_eq!(traced, [json!("ab".repeat(16)), Value::Null, json!(other), json!(trace)]);
    assert_eq!(host.stop().0, Some(0));
    let sent = collector.asked();
    assert!(sent.iter().all(|sent| sent.target == "/v1/traces" && sent.header("x-api-key") == Some("secret")));
    let spans: String = sent.into_iter().map(|sent| sent.body).collect();
    assert_eq!(spans.matches("tools/call double_price").count(), 3, "{spans:?}");
    for (step, count) in [("authenticate", 3), ("validate", 3), ("queue", 2), ("run", 2)] {
        // Names are length and text.
        let named = format!("{}{step}", char::from(u8::try_from(step.len()).unwrap()));
        assert_eq!(spans.matches(&named).count(), count, "{step}: {spans:?}");
    }
    assert!(spans.contains("bad_arguments") && spans.contains("bulkhead.tenant"), "{spans:?}");
}

#[test]
fn logs_and_calls_are_followed() {
    let dir = Dir::new();
    let host = Host::start(&dir, "");
    let keys = host.tenant("acme");
    deploy(&host, &keys, &example("prices.js"), "acme/prices");
    for (args, words) in
        [(&["logs", "acme/prices", "-f"][..], "doubling 77"), (&["calls", "acme", "-f", "--json"], "double_price")]
    {
        let mut follower = Command::new(PROGRAM)
            .args(args)
            .env("BULKHEAD_URL", &host.url)
            .env("BULKHEAD_KEY", &keys.call)
            .stdout(Stdio::piped())
            .spawn()
            .expect("the program starts");
        let stdout = follower.stdout.take().expect("a pipe");
        let (send, heard) = std::sync::mpsc::channel();
        let reader = std::thread::spawn(move || {
            for line in BufReader::new(stdout).lines().map_while(Result::ok) {
                let _ = send.send(line);
            }
        });
        // The follower may still be on its way, so more than one call may be needed.
        until(words, || {
            assert_eq!(host.run(&keys.call, ["call", "acme/prices", "double_price", r#"{"price": 77}"#]).code, 0);
            heard.try_iter().any(|line| line.contains(words))
        });
        follower.kill().unwrap();
        follower.wait().unwrap();
        reader.join().unwrap();
    }
    assert_eq!(host.stop().0, Some(0));
}

#[test]
fn the_demo_runs_twice() {
    let release = root().join("target/release/bulkhead");
    if std::path::Path::new(PROGRAM).canonicalize().ok() != release.canonicalize().ok() {
        skips::skip("the demo shows the program in target/release, and this is a test of another one");
        return;
    }
    let dir = Dir::new();
    let home = dir.path("demo");
    let run = || {
        let script = root().join("scripts/demo.sh");
        let output = Command::new("timeout")
            .args(["120", "bash"])
            .arg(script)
            .env("DEMO_EXIT", "1")
            .env("DEMO_HOME", &home)
            .output();
        let output = output.expect("bash");
        let (said, wrong) = (String::from_utf8(output.stdout).unwrap(), String::from_utf8(output.stderr).unwrap());
        assert!(output.status.success(), "{said}\n{wrong}");
        said
    };
    let (first, second) = (run(), run());
    for words in [
        "listening on http://127.0.0.1:",
        "/demo/prices/mcp\n",
        "{\"doublePrice\":90}",
        "curl -s http",
        "npx @modelcontextprotocol/inspector",
        "python3 -c",
    ] {
        assert!(first.contains(words), "`{words}` is not in\n{first}");
    }
    let key = |said: &str| said.lines().find_map(|line| line.strip_prefix("key  ")).map(str::to_owned);
    assert!(key(&first).is_some_and(|key| key.starts_with("bh_call_")) && key(&first) == key(&second));
}
