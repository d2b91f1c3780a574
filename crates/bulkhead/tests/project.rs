//! A project from its first file to its first call.

mod support;

use insta::assert_snapshot;
use serde_json::{Value, json};
use support::fake::{FakeHost, json as answer};
use support::host::Host;
use support::{Dir, Run, bulkhead, root};

fn output(run: &Run) -> Value {
    assert_eq!(run.code, 0, "{run:?}");
    serde_json::from_str(&run.stdout).unwrap_or_else(|error| panic!("stdout is not JSON: {error}\n{run:?}"))
}

/// A project, and where it is.
fn project(dir: &Dir, name: &str) -> String {
    let path = dir.path(name).to_string_lossy().into_owned();
    let made = output(&bulkhead(["init", &path, "--json"]));
    assert_eq!(made["name"], name);
    path
}

fn host() -> FakeHost {
    FakeHost::deploying(|_| {
        answer(201, json!({ "server": "x", "deployment": "d1", "url": "http://h/mcp", "surface": {} }))
    })
}

fn deploy<'a>(host: &FakeHost, args: impl IntoIterator<Item = &'a str>) -> Run {
    let args = ["deploy"].into_iter().chain(args);
    bulkhead(args).with_env("BULKHEAD_URL", &host.url()).with_env("BULKHEAD_KEY", "bh_deploy_x").now()
}

#[test]
fn what_init_writes_runs() {
    let dir = Dir::new();
    let path = project(&dir, "search");
    let server = format!("{path}/server.js");
    let greeted = bulkhead(["exec", &server, "greet", r#"{"name": "you"}"#]);
    assert_eq!((greeted.code, greeted.stdout.trim()), (0, r#""Hello, you!""#), "{greeted:?}");

    let host = Host::start(&dir, "");
    let keys = host.tenant("acme");
    let made = output(&host.run(&keys.deploy, ["deploy", &path, "--server", "acme", "--json"]));
    assert_eq!(made["server"], "acme/search");
    let call = host.run(&keys.call, ["call", "acme/search", "greet", r#"{"name": "you"}"#]);
    assert_eq!((call.code, call.stdout.trim()), (0, "Hello, you!"), "{call:?}");
    assert_eq!(host.stop().0, Some(0));
}

#[test]
fn init_changes_nothing_that_is_there() {
    let dir = Dir::new();
    let path = project(&dir, "search");
    std::fs::remove_file(format!("{path}/bulkhead.toml")).unwrap();
    std::fs::write(format!("{path}/server.js"), "mine").unwrap();
    let again = bulkhead(["init", &path, "--json"]);
    assert_eq!(again.code, 1, "{again:?}");
    assert!(again.stdout.contains("server.js` is there already"), "{again:?}");
    assert_eq!(std::fs::read_to_string(format!("{path}/server.js")).unwrap(), "mine");
    assert!(!dir.path("search/bulkhead.toml").exists(), "all or nothing");
    let odd = dir.path("Not A Name").to_string_lossy().into_owned();
    assert_eq!(bulkhead(["init", &odd]).code, 64);
    assert!(!dir.path("Not A Name").exists());
    assert_eq!(bulkhead(["init", &odd, "--name", "fine"]).code, 0);
}

#[test]
fn a_project_says_what_flags_say_for_a_file() {
    let dir = Dir::new();
    let path = project(&dir, "search");
    let manifest = "name = 'search'\ndescription = 'x'\nentry = 'server.js'\nboundary = 'session'\njit = true\n[limits]\ncpu_ms = 9\n";
    std::fs::write(format!("{path}/bulkhead.toml"), manifest).unwrap();
    let host = host();
    assert_eq!(output(&deploy(&host, [&*path, "--server", "acme", "--json"]))["server"], "acme/search");
    let asked = host.asked().pop().unwrap();
    assert_eq!(asked.target, "/admin/v1/tenants/acme/servers/search/deployments");
    let sent = asked.json()["lock"].clone();
    assert_eq!(
        (&sent["entry"], &sent["boundary"], &sent["jit"], &sent["limits"]["cpu_ms"]),
        (&json!("server.js"), &json!("session"), &json!(true), &json!(9))
    );
    let files = json!({ "bulkhead.toml": manifest, "server.js": std::fs::read_to_string(format!("{path}/server.js")).unwrap() });
    assert_eq!(asked.json()["files"], files);
    // The signed lock lies beside the manifest, and is what was sent.
    let kept = std::fs::read(format!("{path}/bulkhead.lock")).unwrap();
    let kept = bundle::BulkheadLock::parse(&kept).unwrap();
    assert_eq!((kept.lock().value(), kept.seal().value()), (sent, asked.json()["seal"].clone()));

    // Under another name, from the directory itself.
    let from_there = bulkhead(["deploy", "--server", "acme/beta", "--json"]);
    let from_there = from_there.with_env("BULKHEAD_URL", &host.url()).with_env("BULKHEAD_KEY", "k");
    let from_there = from_there.in_folder(&path).now();
    assert_eq!(output(&from_there)["server"], "acme/beta");
    host.asked();

    for args in [
        &[&*path, "--server", "acme", "--boundary", "call"][..],
        &[&*path, "--server", "acme", "--limit", "cpu_ms=1"],
        &[&format!("{path}/server.js"), "--server", "acme"],
        &[&*path, "--server", "acme/x/y"],
        &[&dir.path("").to_string_lossy(), "--server", "acme"],
    ] {
        assert_eq!(deploy(&host, args.iter().copied()).code, 64, "{args:?}");
    }
    assert!(host.asked().is_empty());
}

#[test]
fn a_manifest_that_makes_no_sense_is_told_where() {
    let dir = Dir::new();
    let path = project(&dir, "search");
    let file = format!("{path}/bulkhead.toml");
    let host = host();
    let refused = |manifest: &str| {
        std::fs::write(&file, manifest).unwrap();
        let run = deploy(&host, [&*path, "--server", "acme"]);
        assert_eq!(run.code, 64, "{run:?}");
        run.stderr.replace(&file, "FILE")
    };
    assert_snapshot!(refused("name = 'search'\nentyr = 'server.js'\n[limits]\ncpu_ms = 0\n"), @r#"
    error: FILE:1:1: entry: this key is needed; such as `entry = "server.js"`
      FILE:2:1: entyr: there is no such key; did you mean `entry`?
      FILE:4:10: limits.cpu_ms: `0` is not between 1 and 60000
    "#);
    assert_snapshot!(refused("name = 'search'\nentry = '../server.js'\n"), @"error: FILE:2:9: entry: `../server.js` leads out of the project, a path below it is needed");
    std::os::unix::fs::symlink("/etc/passwd", format!("{path}/link.js")).unwrap();
    std::fs::write(&file, "name = 'search'\nentry = 'link.js'\n").unwrap();
    let run = deploy(&host, [&*path, "--server", "acme"]);
    assert_eq!(run.code, 1, "{run:?}");
    assert_snapshot!(run.stderr, @"error: build_failed: the entry `link.js` is a link that leads outside of the project");
    assert!(host.asked().is_empty());
}

#[test]
fn a_diff_shows_what_an_eye_would_miss() {
    let dir = Dir::new();
    let host = Host::start(&dir, "");
    let keys = host.tenant("acme");
    let key = keys.deploy.as_str();
    let diff = |args: &[&str]| host.run(key, ["diff", "acme/s"].into_iter().chain(args.iter().copied())).now();
    let server = |tools: &str, flags: &[&str]| {
        let file = dir.file("s.js", &format!("export default {{ tools: {{ {tools} }} }}"));
        let args = ["deploy", &file, "--server", "acme/s", "--json", "--accept-surface"]
            .into_iter()
            .chain(flags.iter().copied());
        output(&host.run(key, args))["deployment"].as_str().unwrap().to_owned()
    };
    let first = server("get: { description: 'Gets it', run() {} }", &[]);
    assert_eq!(diff(&["--json"]).code, 1, "there is only one");
    let second = server(
        "get: { description: 'Gets it\\u{1f469}\\u200d\\u{1f52c}', run() {} }, put: { run() {} }",
        &["--limit", "cpu_ms=60", "--boundary", "server"],
    );
    let shown = diff(&[]).stdout.replace(&first, "FIRST").replace(&second, "SECOND");
    assert_snapshot!(shown, @r#"
    from FIRST (earlier)
    to   SECOND (current)
    ~ file `bulkhead.toml`: sha256 90de2df415d3d7169a4f5013ef4547af520e43cf7baf74edd72e666b1c397381, 26 bytes → sha256 b13e14e166b4fc5f8c74c450ddc84b000cb719ca16a9c3c666fa21e37da6740a, 68 bytes
    ~ file `s.js`: sha256 9d38f30e9f6a1c758712eeb4b03669e343926f3aa82b91adc9acd0bb95b7682b, 71 bytes → sha256 b32da4a3d599980baefea8480ecd05a5b9d46a6694f2d863350c369163ac9122, 114 bytes
    ~ tool "get" description changed at "/surface/tools/0/description": "Gets it" → "Gets it👩\u{200d}🔬"
    + tool "put" added at "/surface/tools/1": {"inputSchema":{"type":"object"},"name":"put"}
    ~ limit "cpu_ms" raised at "/limits/cpu_ms": 50 → 60
    ~ boundary changed at "/boundary": "call" → "server"
    "#);
    let told = output(&diff(&[&first, &second, "--json"]));
    assert_eq!((&told["old"], &told["new"]), (&json!(first), &json!(second)));
    let seen: Vec<_> =
        told["changes"].as_array().unwrap().iter().map(|change| change["kind"].as_str().unwrap()).collect();
    assert_eq!(seen, ["description_changed", "tool_added", "limit_raised", "boundary_changed"]);
    let same = diff(&[&second, &second]);
    assert!(same.code == 0 && same.stdout.lines().count() == 3 && same.stdout.contains("no difference"), "{same:?}");
    assert_eq!(diff(&["nothing"]).code, 1);
    assert_eq!(host.stop().0, Some(0));
}

#[test]
fn a_deploy_is_signed_step_by_step() {
    let dir = Dir::new();
    let path = project(&dir, "search");
    let server = format!("{path}/server.js");
    let host = Host::start(&dir, "");
    let keys = host.tenant("acme");
    let key = keys.deploy.as_str();
    let deploy =
        |args: &[&str]| host.run(key, ["deploy", &path, "--json"].into_iter().chain(args.iter().copied())).now();
    let code = |run: &Run| {
        serde_json::from_str::<Value>(&run.stdout).unwrap()["error"]["code"].as_str().unwrap_or("ok").to_owned()
    };
    let lock = || std::fs::read_to_string(format!("{path}/bulkhead.lock")).unwrap();
    // The tenant is the key's, the name the project's.
    let first = output(&deploy(&[]));
    assert_eq!(
        (&first["server"], first["url"].as_str().unwrap().ends_with("/acme/search/mcp")),
        (&json!("acme/search"), true)
    );
    let signed = lock();
    assert_eq!(output(&deploy(&[])), first, "nothing to do");
    assert_eq!(lock(), signed);
    // Other code that shows the same needs nobody's agreement.
    let text = std::fs::read_to_string(&server).unwrap();
    std::fs::write(&server, text.replace("Hello", "Hi")).unwrap();
    let second = output(&deploy(&[]));
    assert_ne!(second["deployment"], first["deployment"]);
    assert_ne!(lock(), signed);
    // One that hides something is not deployed at all.
    std::fs::write(&server, text.replace("Greets somebody", "Greets somebody\u{202e}")).unwrap();
    let refused = deploy(&["--accept-surface"]);
    assert_eq!((refused.code, code(&refused).as_str()), (1, "init_failed"), "{refused:?}");
    assert!(refused.stdout.contains("U+202E"), "{refused:?}");
    // Another description has to be agreed to.
    std::fs::write(&server, text.replace("Greets somebody", "Greets everybody")).unwrap();
    let refused = deploy(&[]);
    assert_eq!((refused.code, code(&refused).as_str()), (1, "surface_drift"), "{refused:?}");
    let call = || host.run(&keys.call, ["call", "acme/search", "greet", r#"{"name": "you"}"#]).stdout.trim().to_owned();
    assert_eq!(call(), "Hi, you!");
    let third = output(&deploy(&["--accept-surface"]));
    assert_eq!(call(), "Hello, you!");
    // And so does a raised limit.
    let manifest = format!("{path}/bulkhead.toml");
    let said = std::fs::read_to_string(&manifest).unwrap();
    std::fs::write(&manifest, said.replace("# cpu_ms = 50", "cpu_ms = 60")).unwrap();
    assert_eq!(code(&deploy(&[])), "surface_drift");
    std::fs::write(&manifest, said).unwrap();
    // A lock that somebody edited is noticed before anything else.
    std::fs::write(format!("{path}/bulkhead.lock"), lock().replace("\"cpu_ms\": 50", "\"cpu_ms\": 51")).unwrap();
    assert_eq!(code(&deploy(&[])), "bad_signature");
    std::fs::remove_file(format!("{path}/bulkhead.lock")).unwrap();
    // Back, and forth again.
    assert_eq!(host.run(key, ["rollback", "acme/search"]).code, 0);
    assert_eq!(call(), "Hi, you!");
    assert_eq!(output(&deploy(&["--accept-surface"]))["deployment"], third["deployment"], "the same content");
    assert_eq!(call(), "Hello, you!");
    // What throws is refused with the author's own trace, and what runs goes on.
    std::fs::write(&server, "export default {};\n\nnull.x;").unwrap();
    let thrown = deploy(&["--accept-surface"]);
    assert_eq!((thrown.code, code(&thrown).as_str()), (1, "init_failed"));
    assert!(thrown.stdout.contains("server.js:3:"), "{thrown:?}");
    assert_eq!(call(), "Hello, you!");
    assert_eq!(host.stop().0, Some(0));
}

/// Whenever the author's command dies, what is deployed is whole, and the next one goes on from there.
#[test]
fn a_deploy_that_is_killed_at_any_moment_leaves_something_whole() {
    let dir = Dir::new();
    let path = project(&dir, "search");
    let host = Host::start(&dir, "");
    let keys = host.tenant("acme");
    let write = |number: u32| {
        let source = format!("export default {{ tools: {{ t: {{ run: () => {number} }} }} }}");
        std::fs::write(format!("{path}/server.js"), source).unwrap();
    };
    write(0);
    let begun = std::time::Instant::now();
    let deploy = ["deploy", path.as_str(), "--server", "acme", "--json"];
    output(&host.run(&keys.deploy, deploy));
    let whole = begun.elapsed();
    let (mut running, mut switched) = (0, 0);
    for round in 1..=16_u32 {
        write(round);
        let mut command = std::process::Command::new(env!("CARGO_BIN_EXE_bulkhead"));
        command.args(deploy).env("BULKHEAD_URL", &host.url).env("BULKHEAD_KEY", &keys.deploy);
        let silent = command.stdout(std::process::Stdio::null()).stderr(std::process::Stdio::null());
        let mut child = silent.spawn().unwrap();
        // From its first moments to a while after it would have been done.
        std::thread::sleep(whole * round / 12);
        let _ = child.kill();
        child.wait().unwrap();
        let call = host.run(&keys.call, ["call", "acme/search", "t"]);
        assert_eq!(call.code, 0, "round {round}: {call:?}");
        let runs: u32 = call.stdout.trim().parse().unwrap();
        assert!(runs == running || runs == round, "round {round}: {runs} runs");
        switched += u32::from(runs == round);
        running = runs;
        // The lock beside the manifest is a whole one, this one's or that of before.
        let lock = std::fs::read(dir.path("search/bulkhead.lock")).unwrap();
        serde_json::from_slice::<Value>(&lock).unwrap_or_else(|error| panic!("round {round}: {error}"));
    }
    assert!((1..16).contains(&switched), "some came through and some did not: {switched}");
    write(99);
    output(&host.run(&keys.deploy, deploy));
    let call = host.run(&keys.call, ["call", "acme/search", "t"]);
    assert_eq!(call.stdout.trim(), "99");
    assert_eq!(host.stop().0, Some(0));
}

#[test]
fn a_publisher_signs_and_a_second_key_agrees() {
    let dir = Dir::new();
    let path = project(&dir, "search");
    let secret = dir.path("publisher.key").to_string_lossy().into_owned();
    let public = bulkhead(["publisher", "new", &secret]).stdout.trim().to_owned();
    assert_eq!(bulkhead(["publisher", "new", &secret]).code, 64, "it is there already");
    assert_eq!(bulkhead(["publisher", "show", &secret]).stdout.trim(), public);
    let host = Host::start(&dir, "");
    let keys = host.tenant("acme");
    let deploy =
        || host.run(&keys.deploy, ["deploy", &path, "--publisher-key", &secret, "--json", "--accept-surface"]).now();
    let first = output(&deploy());
    assert_eq!(host.run(&keys.admin, ["tenant", "set", "acme", "--approval", "on"]).code, 0);
    assert_eq!(host.run(&keys.admin, ["tenant", "set", "acme", "--approval", "off"]).code, 1, "an operator alone may");
    let list = output(&host.run(&keys.deploy, ["deployments", "acme/search", "--json"]));
    assert_eq!(list["deployments"][0]["publishers"], json!([public]));
    let lock = format!("{path}/bulkhead.lock");
    let verified = output(&bulkhead(["publisher", "verify", &lock, "--publisher", &public, "--json"]));
    assert_eq!((&verified["server"], &verified["publishers"]), (&json!("search"), &json!([public])));
    assert_eq!(bulkhead(["publisher", "verify", &lock, "--publisher", &"0".repeat(64)]).code, 1);

    let server = format!("{path}/server.js");
    let text = std::fs::read_to_string(&server).unwrap();
    std::fs::write(&server, text.replace("Greets somebody", "Greets anybody")).unwrap();
    let waits = deploy();
    let said: Value = serde_json::from_str(&waits.stdout).unwrap();
    assert_eq!((waits.code, &said["error"]["code"]), (1, &json!("approval_needed")), "{waits:?}");
    let list = output(&host.run(&keys.deploy, ["deployments", "acme/search", "--json"]));
    let waiting = list["deployments"].as_array().unwrap().iter().find(|entry| entry["pending"] == true).unwrap();
    let id = waiting["id"].as_str().unwrap();
    let approve = |key: &str, more: &[&str]| {
        host.run(key, ["approve", "acme/search", id].into_iter().chain(more.iter().copied())).now()
    };
    let shown = approve(&keys.admin, &[]);
    assert!(shown.code == 1 && shown.stderr.contains("Greets anybody"), "{shown:?}");
    assert!(
        shown.stderr.contains("code: 1 file changed") && shown.stderr.contains("~ file `server.js`: sha256 "),
        "{shown:?}"
    );
    let seen: Value = serde_json::from_str(&approve(&keys.admin, &["--json"]).stdout).unwrap();
    assert_eq!((&seen["approved"], &seen["error"]["code"]), (&json!(false), &json!("approval_needed")));
    assert_eq!((&seen["current"], &seen["files"][0]["path"]), (&first["deployment"], &json!("server.js")));
    assert_eq!(seen["changes"][0]["kind"], "description_changed");
    assert_eq!(seen["lock"]["surface"]["tools"][0]["description"], "Greets anybody");
    // Another digest than what was shown.
    let other = approve(&keys.admin, &["--digest", &"0".repeat(64)]);
    assert!(other.code == 1 && other.stderr.contains("stale_proposal: the digest of the proposal is"), "{other:?}");
    let diff = host.run(&keys.deploy, ["diff", "acme/search"]);
    let head =
        format!("from {} (current)\nto   {id} (proposed)\n~ file `server.js`", first["deployment"].as_str().unwrap());
    assert!(diff.stdout.starts_with(&head), "{diff:?}");
    assert_eq!(host.run(&keys.deploy, ["diff", "acme/search", id]).stdout, diff.stdout, "in the same order");
    assert_eq!(approve(&keys.deploy, &["--yes"]).code, 1, "not whoever deployed it");
    let current =
        || output(&host.run(&keys.deploy, ["server", "show", "acme/search", "--json"]))["current"]["id"].clone();
    assert_eq!(current(), first["deployment"]);
    let digest = seen["digest"].as_str().unwrap();
    assert_eq!(approve(&keys.admin, &["--digest", digest]).code, 0);
    assert_eq!(current(), json!(id));
    let again = approve(&keys.admin, &["--yes"]);
    assert!(again.code == 1 && again.stderr.contains("does not wait for approval: it is current"), "{again:?}");
    let list = output(&host.run(&keys.deploy, ["deployments", "acme/search", "--json"]));
    let (by, of) = (&list["deployments"][0]["proposed_by"], &list["deployments"][0]["approved_by"]);
    assert!(by.is_string() && of.is_string() && by != of && list["deployments"][0]["approved_at"].is_u64(), "{list}");
    // Going back is a change of what runs like any other; taking away is not.
    let back = host.run(&keys.deploy, ["rollback", "acme/search", "--json"]);
    let said: Value = serde_json::from_str(&back.stdout).unwrap();
    assert_eq!((back.code, &said["error"]["code"]), (1, &json!("approval_needed")), "{back:?}");
    assert_eq!(current(), json!(id));
    let twice = host.run(&keys.deploy, ["rollback", "acme/search"]);
    assert!(twice.stderr.contains("is proposed already, and waits for a second key"), "{twice:?}");
    let held = host.run(&keys.admin, ["server", "quarantine", "acme/search", "--reason", "it lies", "--json"]);
    assert_eq!(output(&held)["quarantine"], "it lies");
    assert_eq!(host.stop().0, Some(0));
}

#[test]
fn a_first_deployment_is_shown_whole_and_awaits_approval() {
    let dir = Dir::new();
    let host = Host::start(&dir, "");
    let keys = host.tenant("acme");
    assert_eq!(host.run(&keys.admin, ["tenant", "set", "acme", "--approval", "on"]).code, 0);
    let secret =
        host.run(&keys.admin, ["secret", "set", "acme", "API_KEY"]).with_stdin("a secret of enough bytes").now();
    assert_eq!(secret.code, 0, "{secret:?}");
    let allow = ["secret", "allow", "acme", "API_KEY", "--for", "pay", "--to", "api.example.com"];
    assert_eq!(host.run(&keys.admin, allow).code, 0);
    let path = dir.path("pay").to_string_lossy().into_owned();
    std::fs::create_dir(&path).unwrap();
    let manifest = "name = \"pay\"\nentry = \"server.js\"\negress = [\"api.example.com\"]\n\
        [[secrets]]\nname = \"API_KEY\"\nhosts = [\"api.example.com\"]\nheader = \"x-api-key\"\n\
        [limits]\ncpu_ms = 44\n";
    std::fs::write(format!("{path}/bulkhead.toml"), manifest).unwrap();
    let code = |text: &str| {
        let tool = r"pay: { description: 'Pays.\napproved: all is well', input: { type: 'object', properties: { iban: {} } }, run() {} }";
        let source = format!("export default {{ tools: {{ {tool} }} }}; // {text}");
        std::fs::write(format!("{path}/server.js"), source).unwrap();
    };
    code("one");
    let deploy = || host.run(&keys.deploy, ["deploy", &path, "--json"]).now();
    let first = deploy();
    assert!(first.stdout.contains("approval_needed"), "{first:?}");
    // Callers are told what it waits for.
    let call = host.run(&keys.call, ["call", "acme/pay", "pay", "--json"]);
    assert_eq!(serde_json::from_str::<Value>(&call.stdout).unwrap()["error"]["code"], "awaiting_approval", "{call:?}");
    let servers = output(&host.run(&keys.deploy, ["server", "list", "acme", "--json"]));
    assert_eq!(servers["servers"][0]["state"], "awaiting_approval");
    let id = servers["servers"][0]["proposals"][0].as_str().unwrap().to_owned();
    assert_eq!(
        output(&host.run(&keys.call, ["server", "list", "acme", "--json"]))["servers"][0]["proposals"],
        json!([])
    );
    let shown = host.run(&keys.admin, ["approve", "acme/pay", &id]);
    assert_eq!(shown.code, 1, "{shown:?}");
    for expected in [
        "first deployment",
        "runs:     wall isolate, boundary call, jit off",
        "cpu_ms 44",
        "egress: 1\n  api.example.com\n",
        "secrets: 1\n  API_KEY to api.example.com: at {\"header\":\"x-api-key\"} as \"{}\", in every request\n",
        "tools: 1\n  \"pay\": \"Pays.\\napproved: all is well\", takes \"iban\"\n",
        "+ file `server.js`: sha256 ",
        "digest:   ",
    ] {
        assert!(shown.stderr.contains(expected), "{expected}: {shown:?}");
    }
    assert_eq!(host.run(&keys.admin, ["approve", "acme/pay", &id, "--yes"]).code, 0);
    // Two proposals of other code that shows the same: one is agreed to, and the other is stale.
    code("two");
    deploy();
    code("three");
    deploy();
    let waiting =
        output(&host.run(&keys.deploy, ["server", "list", "acme", "--json"]))["servers"][0]["proposals"].clone();
    let (third, second) = (waiting[0].as_str().unwrap(), waiting[1].as_str().unwrap());
    let shown = host.run(&keys.admin, ["approve", "acme/pay", third, "--yes"]);
    assert!(shown.code == 0 && shown.stderr.contains("what it shows and may use: the same"), "{shown:?}");
    assert!(shown.stderr.contains("code: 1 file changed"), "{shown:?}");
    let stale = host.run(&keys.admin, ["approve", "acme/pay", second, "--yes"]);
    assert!(stale.code == 1 && stale.stderr.contains("error: stale_proposal: the proposal of deployment"), "{stale:?}");
    assert!(stale.stderr.contains(&format!("bulkhead rollback acme/pay {second}")), "{stale:?}");
    let list = host.run(&keys.deploy, ["deployments", "acme/pay"]);
    assert!(list.stdout.contains(&format!("stale    {second}")), "{list:?}");
    assert_eq!(host.stop().0, Some(0));
}

#[test]
fn a_typescript_project_is_built_and_deployed() {
    let dir = Dir::new();
    let path = project(&dir, "search");
    let write = |file: &str, text: &str| std::fs::write(format!("{path}/{file}"), text).unwrap();
    let manifest = std::fs::read_to_string(format!("{path}/bulkhead.toml")).unwrap();
    write("bulkhead.toml", &manifest.replace("server.js", "src/server.ts"));
    std::fs::create_dir(format!("{path}/src")).unwrap();
    write(
        "src/server.ts",
        "import { hello } from './hello';\nexport default { tools: { greet: { run: ({ name }: { name: string }) => hello(name) } } };",
    );
    write("src/hello.ts", "export const hello = (name: string): string => `Hello, ${name}!`;");
    let host = Host::start(&dir, "");
    let keys = host.tenant("acme");
    let deploy = || host.run(&keys.deploy, ["deploy", &path, "--json"]).now();
    output(&deploy());
    let call = host.run(&keys.call, ["call", "acme/search", "greet", r#"{"name": "you"}"#]);
    assert_eq!((call.code, call.stdout.trim()), (0, "Hello, you!"), "{call:?}");
    let refused = |run: Run, code: &str, says: &str| {
        let error = serde_json::from_str::<Value>(&run.stdout).unwrap()["error"].clone();
        assert_eq!((run.code, error["code"].as_str()), (1, Some(code)), "{run:?}");
        assert!(error["message"].as_str().unwrap().contains(says), "{run:?}");
    };
    // What fails while it initialises is told with the author's own lines.
    write("src/hello.ts", "type Words = string;\n\nexport const hello: Words = (null as any).words;");
    refused(deploy(), "init_failed", "src/hello.ts:3:");
    write("src/hello.ts", "import secret from '../../../secret.json';\nexport const hello = secret;");
    refused(deploy(), "build_failed", "src/hello.ts:1:20: `../../../secret.json` lies outside of the project");
    write("src/hello.ts", "import { readFileSync } from 'node:fs';\nexport const hello = readFileSync;");
    refused(deploy(), "build_failed", "src/hello.ts:1:30");
    let call = host.run(&keys.call, ["call", "acme/search", "greet", r#"{"name": "you"}"#]);
    assert_eq!((call.code, call.stdout.trim()), (0, "Hello, you!"), "{call:?}");
    assert_eq!(host.stop().0, Some(0));
}

/// The examples with their packages, as `scripts/examples.sh` leaves them.
#[test]
fn servers_of_the_official_sdk_are_deployed_as_they_are() {
    let dir = Dir::new();
    let host = Host::start(&dir, "");
    let keys = host.tenant("acme");
    for name in ["sdk-v1", "sdk-v2", "fetch-handler"] {
        let path = root().join("target/examples").join(name).to_string_lossy().into_owned();
        let made = output(&host.run(&keys.deploy, ["deploy", &path, "--json"]));
        let server = made["server"].as_str().unwrap();
        let tools = output(&host.run(&keys.call, ["tools", server, "--json"]));
        let names: Vec<_> =
            tools["tools"].as_array().unwrap().iter().map(|tool| tool["name"].as_str().unwrap()).collect();
        assert!(names.contains(&"temperature"), "{name}: {names:?}");
        let call = host.run(&keys.call, ["call", server, "temperature", r#"{"city": "Oslo"}"#]);
        assert_eq!(call.code, 0, "{name}: {call:?}");
        let wrong = host.run(&keys.call, ["call", server, "temperature", r#"{"city": 1}"#, "--json"]);
        assert_eq!(wrong.code, 1, "{name}: {wrong:?}");
    }
    assert_eq!(host.stop().0, Some(0));
}

const PETS: &str = r#"
openapi: 3.1.0
info: { title: Pets, version: "1" }
paths:
  /pets/{id}:
    get:
      operationId: getPet
      summary: One pet
      parameters: [{ name: id, in: path, required: true, schema: { type: integer } }]
      responses: { "200": { description: ok, content: { application/json: { schema: { type: object } } } } }
    delete:
      operationId: deletePet
      parameters: [{ name: id, in: path, required: true, schema: { type: integer } }]
      responses: { "204": { description: gone } }
"#;

#[test]
fn a_specification_is_deployed_and_drifts_like_code() {
    let dir = Dir::new();
    let file = dir.file("pets.yaml", PETS);
    let host = Host::start(&dir, "");
    let keys = host.tenant("acme");
    let deploy = |args: &[&str]| {
        let args = ["deploy", &file, "--server", "acme/pets", "--json"].into_iter().chain(args.iter().copied());
        host.run(&keys.deploy, args).now()
    };
    let code = |run: &Run| serde_json::from_str::<Value>(&run.stdout).unwrap()["error"]["code"].clone();
    assert_eq!(code(&deploy(&[])), "build_failed", "it names no server");
    // An address that is never reached is refused with its rule, here and before anything is signed.
    let never = deploy(&["--base-url", "http://127.0.0.1:1/v1"]);
    assert_eq!(code(&never), "refused");
    assert!(never.stdout.contains("rule `http://127.0.0.1:1/v1/`: 127.0.0.1 is never reached"), "{never:?}");
    assert!(never.stdout.contains("nothing was signed"), "{never:?}");
    let here = ["--base-url", "https://pets.example/v0"];
    output(&deploy(&[&here[..], &["--exclude", "deletePet"]].concat()));
    let tools = output(&host.run(&keys.call, ["tools", "acme/pets", "--json"]));
    let names: Vec<_> = tools["tools"].as_array().unwrap().iter().map(|tool| tool["name"].as_str().unwrap()).collect();
    assert_eq!(names, ["getPet"]);
    assert_eq!(tools["tools"][0]["annotations"]["readOnlyHint"], true);
    let explained = |url: &str| {
        let run = host.run(&keys.deploy, ["egress", "explain", "--server", "acme/pets", url, "--json"]);
        output(&run)["decision"].as_str().unwrap().to_owned()
    };
    // Egress is locked to the base URL.
    assert_eq!(explained("https://pets.example/v0/pets/7"), "allowed");
    assert_eq!(explained("https://pets.example/v1/pets/7"), "denied");
    // One operation more is drift, and so is where it leads.
    let more = deploy(&here);
    assert_eq!(code(&more), "surface_drift", "{more:?}");
    output(&deploy(&[&here[..], &["--accept-surface"]].concat()));
    let moved = deploy(&["--base-url", "https://pets.example/v1"]);
    assert!(moved.stdout.contains("surface_drift"), "{moved:?}");
    output(&deploy(&["--base-url", "https://pets.example/v1", "--accept-surface"]));
    let diff = host.run(&keys.deploy, ["diff", "acme/pets"]);
    assert!(diff.stdout.contains(r#"+ host "https://pets.example/v1/""#), "{diff:?}");
    assert!(diff.stdout.contains(r#"+ endpoint "getPet: GET https://pets.example/v1/pets/{id}""#), "{diff:?}");
    assert_eq!(explained("https://pets.example/v1/pets/7"), "allowed");
    assert_eq!(explained("https://pets.example/v2/pets/7"), "denied");
    assert_eq!(explained("https://pets.example.evil.example/v1/"), "denied");
    assert_eq!(host.stop().0, Some(0));
}

#[test]
fn egress_is_explained_without_a_deployment() {
    let explain = |args: &[&str]| {
        let run = bulkhead(["egress", "explain", "--json"].into_iter().chain(args.iter().copied())).now();
        output(&run)
    };
    let allowed = explain(&["--base", "https://api.example.com/v1/", "https://api.example.com/v1/x"]);
    assert_eq!((&allowed["decision"], &allowed["rule"]), (&json!("allowed"), &json!("https://api.example.com/v1/")));
    for url in
        ["http://169.254.169.254/", "http://2852039166/", "http://localhost/", "http://[::1]/", "http://10.0.0.1/"]
    {
        let base = url.trim_end_matches('/');
        let base = if base.contains("2852039166") { "http://169.254.169.254" } else { base };
        assert_eq!(explain(&["--base", base, url])["decision"], "denied", "{url}");
    }
    assert_eq!(bulkhead(["egress", "explain", "--base", "*", "http://a.example"]).code, 64);
}

#[test]
fn every_key_of_the_manifest_is_in_the_docs() {
    let docs = std::fs::read_to_string(root().join("docs/authoring.md")).unwrap();
    let reference = bundle::Manifest::reference();
    assert!(docs.contains(&reference), "docs/authoring.md lacks this:\n{reference}");
}
