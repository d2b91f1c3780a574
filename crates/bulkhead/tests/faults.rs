//! What a host goes through: killed in the middle of everything, a disk that is full or can only be read, a clock that
//! jumps, and clients that hold on, dawdle or vanish. It keeps serving the others and says what is wrong.

mod support;

use serde_json::{Value, json};
use std::io::{Read, Write};
use std::path::Path;
use std::process::{Child, Command, Stdio};
use std::sync::atomic::{AtomicBool, Ordering};
use std::time::{Duration, Instant};
use support::host::{Host, Keys, until};
use support::http::{Answer, Connection};
use support::world::{in_own_world, shell};
use support::{Dir, PROGRAM, bulkhead, signed};

/// A server that says which version it is, and can say much.
fn source(version: u32) -> String {
    format!("export default {{ tools: {{ echo: {{ run: ({{ size }}) => '{version}:' + 'x'.repeat(size ?? 0) }} }} }};")
}

fn admin(connection: &mut Connection, key: &str, method: &str, path: &str, body: &Value) -> std::io::Result<Answer> {
    let bearer = format!("Bearer {key}");
    let headers = [("authorization", bearer.as_str()), ("content-type", "application/json")];
    let body = if body.is_null() { String::new() } else { body.to_string() };
    connection.ask(method, &format!("/admin/v1/tenants/acme{path}"), &headers, &body)
}

fn deploy(connection: &mut Connection, key: &str, version: u32) -> std::io::Result<Answer> {
    let surface = json!({ "tools": [{ "name": "echo", "inputSchema": { "type": "object" } }] });
    let bearer = format!("Bearer {key}");
    let me = connection.ask("GET", "/admin/v1/me", &[("authorization", &bearer)], "")?.json();
    let next = admin(connection, key, "GET", "/servers/echo/next", &Value::Null)?.json();
    let body = signed::order(&me, &next, key, "echo", &source(version), &surface);
    admin(connection, key, "POST", "/servers/echo/deployments", &body)
}

/// A host with one tenant and one server.
fn host_with_server(dir: &Dir, config: &str) -> (Host, Keys) {
    let host = Host::start(dir, config);
    let keys = host.tenant("acme");
    let made = deploy(&mut Connection::open(&host.url).unwrap(), &keys.admin, 1).unwrap();
    assert_eq!(made.status, 201, "{made:?}");
    (host, keys)
}

fn echo(connection: &mut Connection, key: &str) -> std::io::Result<Answer> {
    connection.call(key, "acme/echo", "echo", &json!({}), &[])
}

/// Somebody else is served while all this happens.
fn serves(host: &Host, keys: &Keys) {
    let answer = Connection::open(&host.url).and_then(|mut connection| echo(&mut connection, &keys.call)).unwrap();
    assert_eq!(answer.status, 200, "{answer:?}");
    assert_eq!(answer.json()["result"]["isError"], Value::Null, "{answer:?}");
}

fn verify(dir: &Dir) {
    verified(dir, &[]);
}

fn verified(dir: &Dir, more: &[&str]) -> Value {
    let data = dir.path("data").to_string_lossy().into_owned();
    let verified = bulkhead(["audit-log", "verify", "--data", &data, "--json"].into_iter().chain(more.iter().copied()));
    assert_eq!(verified.code, 0, "{verified:?}");
    serde_json::from_str(&verified.stdout).expect("JSON")
}

fn metric(host: &Host, name: &str) -> u64 {
    let key = std::fs::read_to_string(format!("{}/operator.key", host.data)).unwrap();
    let bearer = format!("Bearer {}", key.trim());
    let mut connection = Connection::open(&host.url).unwrap();
    let text = connection.ask("GET", "/metrics", &[("authorization", &bearer)], "").unwrap().body;
    let value = text.lines().find_map(|line| line.strip_prefix(name)?.trim().parse::<f64>().ok());
    value.unwrap_or_else(|| panic!("no {name} in {text}")) as u64
}

// --- killed ------------------------------------------------------------------------------------------------------

/// What a host said yes to before it was killed, in order.
#[derive(Default)]
struct Acknowledged {
    /// Version and deployment.
    deployments: Vec<(u32, String)>,
    /// Key and its token.
    keys: Vec<(String, String)>,
    revoked: Vec<(String, String)>,
    calls: usize,
}

/// Deploys, makes and revokes keys and calls, each over a connection of its own, until the host is no more.
fn busy_until_killed(host: Host, keys: &Keys, version: &mut u32, patience: Duration) -> Acknowledged {
    let url = host.url.clone();
    let (killed, deployed, keyed, called) = <(AtomicBool, AtomicBool, AtomicBool, AtomicBool)>::default();
    let (url, killed, deployed, keyed, called) = (&url, &killed, &deployed, &keyed, &called);
    let again = || !killed.load(Ordering::SeqCst);
    let mut first = *version;
    std::thread::scope(|scope| {
        let deployer = scope.spawn(move || {
            let mut done = Vec::new();
            let Ok(mut connection) = Connection::open(url) else { return (first, done) };
            while again() {
                first += 1;
                let Ok(made) = deploy(&mut connection, &keys.admin, first) else { break };
                assert_eq!(made.status, 201, "{made:?}");
                deployed.store(true, Ordering::SeqCst);
                done.push((first, made.json()["deployment"].as_str().unwrap().to_owned()));
            }
            (first, done)
        });
        let key_maker = scope.spawn(move || {
            let (mut made, mut revoked) = (Vec::new(), Vec::new());
            let Ok(mut connection) = Connection::open(url) else { return (made, revoked) };
            while again() {
                let order = json!({ "role": "call", "name": "extra" });
                let Ok(answer) = admin(&mut connection, &keys.admin, "POST", "/keys", &order) else { break };
                assert_eq!(answer.status, 201, "{answer:?}");
                let answer = answer.json();
                let text = |value: &Value| value.as_str().unwrap().to_owned();
                let key = (text(&answer["key"]["id"]), text(&answer["token"]));
                // Every other one goes again.
                if made.len() == revoked.len() {
                    made.push(key);
                    continue;
                }
                let path = format!("/keys/{}", key.0);
                let Ok(answer) = admin(&mut connection, &keys.admin, "DELETE", &path, &Value::Null) else { break };
                assert_eq!(answer.status, 204, "{answer:?}");
                keyed.store(true, Ordering::SeqCst);
                revoked.push(key);
            }
            (made, revoked)
        });
        let caller = scope.spawn(move || {
            let mut calls = 0;
            let Ok(mut connection) = Connection::open(url) else { return calls };
            while again() {
                let Ok(answer) = echo(&mut connection, &keys.call) else { break };
                assert_eq!(answer.status, 200, "{answer:?}");
                called.store(true, Ordering::SeqCst);
                calls += 1;
            }
            calls
        });
        until("everybody is busy", || [deployed, keyed, called].iter().all(|done| done.load(Ordering::SeqCst)));
        std::thread::sleep(patience);
        host.kill();
        killed.store(true, Ordering::SeqCst);
        let ((last, deployments), (keys, revoked)) = (deployer.join().unwrap(), key_maker.join().unwrap());
        *version = last;
        Acknowledged { deployments, keys, revoked, calls: caller.join().unwrap() }
    })
}

#[test]
fn nothing_that_was_acknowledged_is_lost_with_the_process() {
    let dir = Dir::new();
    let (mut host, keys) = host_with_server(&dir, "");
    let mut version = 1;
    let mut all = Acknowledged::default();
    for round in 0..6 {
        // Another moment each time.
        let patience = Duration::from_millis(37 * round * round);
        let done = busy_until_killed(host, &keys, &mut version, patience);
        all.calls += done.calls;
        verify(&dir);
        host = Host::start(&dir, "");
        let mut connection = Connection::open(&host.url).unwrap();

        let last = done.deployments.last().unwrap().0;
        all.deployments.extend(done.deployments);
        let listed = host.run(&keys.admin, ["deployments", "acme/echo", "--json"]);
        let listed: Value = serde_json::from_str(&listed.stdout).unwrap();
        let ids: Vec<_> =
            listed["deployments"].as_array().unwrap().iter().map(|one| one["id"].as_str().unwrap()).collect();
        for (version, id) in &all.deployments {
            assert!(ids.contains(&id.as_str()), "deployment {id} of version {version} is lost");
        }
        // The newest one that was acknowledged is current, or the one after it that was not any more.
        let answer = echo(&mut connection, &keys.call).unwrap().json();
        let text = answer["result"]["content"][0]["text"].as_str().unwrap_or_else(|| panic!("{answer}")).to_owned();
        let running: u32 = text.trim_end_matches(':').parse().unwrap();
        assert!(running == last || running == last + 1, "version {running} runs after {last} was acknowledged");
        version = version.max(running);

        all.keys.extend(done.keys);
        all.revoked.extend(done.revoked);
        for (id, token) in all.keys.iter().rev().take(50) {
            assert_eq!(echo(&mut connection, token).unwrap().status, 200, "key {id} is lost");
        }
        for (id, token) in all.revoked.iter().rev().take(50) {
            assert_eq!(echo(&mut connection, token).unwrap().status, 401, "key {id} is back");
        }
    }
    assert!(all.calls > 0 && !all.revoked.is_empty());
    // Each change is in the log, too.
    host.stop();
    verify(&dir);
    let log = audit_log(&dir.path("data"));
    for (_, id) in &all.deployments {
        assert!(log.contains(id.as_str()), "the log does not know deployment {id}");
    }
    for (id, _) in all.keys.iter().chain(&all.revoked) {
        assert!(log.contains(id.as_str()), "the log does not know key {id}");
    }
}

fn audit_log(data: &Path) -> String {
    let files = std::fs::read_dir(data.join("audit")).unwrap().flatten().map(|entry| entry.path());
    let logs = files.filter(|path| path.extension().is_some_and(|extension| extension == "log"));
    logs.map(|path| std::fs::read_to_string(path).unwrap()).collect()
}

// --- disks -------------------------------------------------------------------------------------------------------

/// In a world of its own, where loopback must be woken first.
const LOOPBACK: &str = "ip link set lo up";

fn ready(host: &Host) -> Answer {
    Connection::open(&host.url).unwrap().ask("GET", "/readyz", &[], "").unwrap()
}

#[test]
fn a_full_disk() {
    if !in_own_world("a_full_disk", LOOPBACK) {
        return;
    }
    let dir = Dir::new();
    std::fs::create_dir(dir.path("data")).unwrap();
    let data = dir.path("data").to_string_lossy().into_owned();
    shell(&format!("mount -t tmpfs -o size=12m,mode=700 none {data}"));
    let (host, keys) = host_with_server(&dir, "[disk]\nreserve_mb = 0\n");
    let filler = dir.path("data/filler");
    let mut file = std::fs::File::create(&filler).unwrap();
    for size in [1 << 16, 1 << 12, 1] {
        while file.write_all(&vec![0; size]).is_ok() {}
    }

    let mut connection = Connection::open(&host.url).unwrap();
    let mut version = 1;
    let refused = loop {
        version += 1;
        assert!(version < 100, "there is no room for so many");
        let answer = deploy(&mut connection, &keys.admin, version).unwrap();
        if answer.status != 201 {
            break answer;
        }
    };
    assert_eq!((refused.status, refused.json()["error"]["code"].as_str()), (503, Some("disk_full")), "{refused:?}");
    until("it says what is wrong", || {
        let answer = ready(&host);
        answer.status == 503 && answer.body.contains("full")
    });
    // Calls go on, for as long as what must be written about them finds room in memory.
    serves(&host, &keys);

    drop(file);
    std::fs::remove_file(filler).unwrap();
    until("it is well again", || ready(&host).status == 200);
    assert_eq!(deploy(&mut connection, &keys.admin, version).unwrap().status, 201);
    serves(&host, &keys);
    assert_eq!(host.stop().0, Some(0));
    verify(&dir);
}

#[test]
fn a_disk_that_can_only_be_read() {
    if !in_own_world("a_disk_that_can_only_be_read", LOOPBACK) {
        return;
    }
    let dir = Dir::new();
    std::fs::create_dir(dir.path("data")).unwrap();
    let data = dir.path("data").to_string_lossy().into_owned();
    shell(&format!("mount -t tmpfs -o size=32m,mode=700 none {data}"));
    let (host, keys) = host_with_server(&dir, "[disk]\nreserve_mb = 0\n");
    assert_eq!(host.stop().0, Some(0));
    shell(&format!("mount -o remount,ro {data}"));
    let refused = bulkhead(["serve", "--listen", "127.0.0.1:0", "--data", &data]);
    assert_eq!(refused.code, 2, "{refused:?}");
    assert!(refused.stderr.contains(&data) && refused.stderr.to_lowercase().contains("read-only"), "{refused:?}");

    // With the right to write again, everything is as it was. (A disk that fails under a running host: registry/tests/disk.rs.)
    shell(&format!("mount -o remount,rw {data}"));
    let host = Host::start(&dir, "");
    serves(&host, &keys);
    assert_eq!(host.stop().0, Some(0));
    verify(&dir);
}

// --- clocks ------------------------------------------------------------------------------------------------------

/// A clock that a file sets: seconds to add to what the system says.
fn with_own_clock(dir: &Dir) -> Option<Command> {
    let code = dir.file("clock.c", include_str!("support/clock.c"));
    let library = dir.path("clock.so");
    let built = Command::new("cc").args(["-shared", "-fPIC", "-O1", "-o"]).arg(&library).args([&code, "-ldl"]).status();
    if !built.is_ok_and(|status| status.success()) {
        skips::skip("there is no C compiler `cc` to make a clock with");
        return None;
    }
    set_clock(dir, 0);
    let mut command = Command::new(PROGRAM);
    command.env("LD_PRELOAD", library).env("CLOCK_FILE", dir.path("clock"));
    Some(command)
}

fn set_clock(dir: &Dir, seconds: i64) {
    // In one piece, so that nobody reads half of it.
    let (new, file) = (dir.path("clock.new"), dir.path("clock"));
    std::fs::write(&new, format!("{seconds:<32}")).unwrap();
    std::fs::rename(new, file).unwrap();
}

#[test]
fn a_clock_that_jumps() {
    const DAY: i64 = 24 * 3600;
    let dir = Dir::new();
    let Some(mut command) = with_own_clock(&dir) else { return };
    let data = dir.path("data").to_string_lossy().into_owned();
    let config = dir.file("host.toml", "[isolate]\nquick_forks = false\n");
    command.args(["serve", "--listen", "127.0.0.1:0", "--data", &data, "--config", &config]);
    let host = Host::launch(command, data);
    let keys = host.tenant("acme");
    let mut connection = Connection::open(&host.url).unwrap();
    assert_eq!(deploy(&mut connection, &keys.admin, 1).unwrap().status, 201);
    let order = json!({ "role": "call", "name": "short", "expires_in_s": 3600 });
    let short = admin(&mut connection, &keys.admin, "POST", "/keys", &order).unwrap().json()["token"].clone();
    let short = short.as_str().unwrap();

    for (jump, valid) in [(0, 200), (DAY, 401), (-DAY, 200), (400 * DAY, 401), (0, 200)] {
        set_clock(&dir, jump);
        let answer = echo(&mut connection, short).unwrap();
        assert_eq!(answer.status, valid, "a key for an hour, {jump} s later: {answer:?}");
        for _ in 0..20 {
            serves(&host, &keys);
        }
        assert_eq!(deploy(&mut connection, &keys.admin, 2).unwrap().status, 201);
        assert_eq!(ready(&host).status, 200);
    }
    assert_eq!(host.stop().0, Some(0));
    verify(&dir);
    assert_eq!(audit_log(&dir.path("data")).matches(r#""outcome":"ok""#).count(), 5 * 20 + 3);
}

/// Weeks pass between two starts, each of which adds a file to the log.
#[test]
fn old_lines_go_when_it_is_time() {
    const DAY: i64 = 24 * 3600;
    let dir = Dir::new();
    let Some(_) = with_own_clock(&dir) else { return };
    let data = dir.path("data").to_string_lossy().into_owned();
    let config = dir.file("host.toml", "[isolate]\nquick_forks = false\n[audit_log]\nkeep_days = 30\n");
    let file = |number: u64| dir.path("data").join(format!("audit/{number:08}.log"));
    let mut heads = Vec::new();
    for (number, day) in [(1, 0), (2, 40), (3, 80), (4, 90)] {
        let mut command = with_own_clock(&dir).expect("it was there before");
        set_clock(&dir, day * DAY);
        command.args(["serve", "--listen", "127.0.0.1:0", "--data", &data, "--config", &config]);
        let host = Host::launch(command, data.clone());
        let mut tenants = 0;
        until("there is another file", || {
            tenants += 1;
            host.tenant(&format!("tenant-{number}-{tenants}"));
            file(number).exists()
        });
        until("what was announced a week ago is gone", || file(1).exists() == (number < 4));
        assert_eq!(ready(&host).status, 200);
        assert_eq!(host.stop().0, Some(0));
        heads.push(verified(&dir, &[])["head"].as_str().unwrap().to_owned());
    }
    assert!(verified(&dir, &["--expect", &heads[2]])["first_seq"].as_u64().unwrap() > 1);
    let early = bulkhead(["audit-log", "verify", "--data", &data, "--expect", &heads[1]]);
    assert_eq!(early.code, 1, "{early:?}");
}

// --- clients -----------------------------------------------------------------------------------------------------

/// How many connections this process can have beside what it has; as many as the system lets it.
fn raise_open_files() -> u64 {
    use rustix::process::{Resource, Rlimit, getrlimit, setrlimit};
    let limit = getrlimit(Resource::Nofile);
    let raised = setrlimit(Resource::Nofile, Rlimit { current: limit.maximum, maximum: limit.maximum });
    let most = if raised.is_ok() { limit.maximum } else { limit.current };
    most.unwrap_or(u64::MAX)
}

#[test]
fn ten_thousand_idle_connections() {
    const IDLE: usize = 10_000;
    if raise_open_files() < IDLE as u64 + 2000 {
        skips::skip(&format!("`ulimit -Hn` is too small for {IDLE} connections"));
        return;
    }
    let dir = Dir::new();
    let (host, keys) = host_with_server(&dir, "[http]\nheader_timeout_s = 600\n");
    let alone = metric(&host, "bulkhead_process_resident_memory_bytes");
    let mut idle: Vec<Connection> = (0..IDLE).map(|_| Connection::open(&host.url).unwrap()).collect();
    // A tenth has begun to say something.
    for connection in idle.iter().step_by(10) {
        connection.stream().write_all(b"POST /acme/echo/mcp HTTP/1.1\r\nhost: loc").unwrap();
    }
    until("all are accepted", || metric(&host, "bulkhead_connections") > IDLE as u64);
    for _ in 0..20 {
        serves(&host, &keys);
    }
    let with_them = metric(&host, "bulkhead_process_resident_memory_bytes");
    let each = with_them.saturating_sub(alone) / IDLE as u64;
    println!("memory per idle connection: {each} bytes");
    assert!(each < 64 << 10, "{each} bytes each");
    // They are connections like any other.
    for connection in idle.iter_mut().skip(1).step_by(1000) {
        assert_eq!(echo(connection, &keys.call).unwrap().status, 200);
    }
    drop(idle);
    until("all are gone", || metric(&host, "bulkhead_connections") < 100);
    assert_eq!(host.stop().0, Some(0));
}

#[test]
fn who_says_nothing_loses_the_place() {
    let dir = Dir::new();
    let (host, keys) =
        host_with_server(&dir, "[http]\nmax_connections = 20\nheader_timeout_s = 2\nbody_timeout_s = 2\n");
    let holders: Vec<Connection> = (0..20)
        .map(|n| {
            let connection = Connection::open(&host.url).unwrap();
            if n % 2 == 0 {
                connection.stream().write_all(b"POST /acme/echo/mcp HTTP/1.1\r\nhost: loc").unwrap();
            }
            connection
        })
        .collect();
    // All places are taken; these wait, and are served.
    serves(&host, &keys);
    for mut connection in holders {
        let mut rest = String::new();
        let _ = connection.stream().read_to_string(&mut rest);
        assert!(rest.is_empty() || rest.starts_with("HTTP/1.1 408"), "{rest}");
        assert!(connection.receive().is_err());
    }

    // One whose body does not come is told so.
    let mut dawdler = Connection::open(&host.url).unwrap();
    let head = format!(
        "POST /acme/echo/mcp HTTP/1.1\r\nhost: localhost\r\nauthorization: Bearer {}\r\n\
         content-type: application/json\r\ncontent-length: 1000\r\n\r\n{{",
        keys.call
    );
    dawdler.stream().write_all(head.as_bytes()).unwrap();
    serves(&host, &keys);
    assert_eq!(dawdler.receive().unwrap().status, 408);
    assert_eq!(host.stop().0, Some(0));
}

#[test]
fn who_takes_nothing_is_cut_off() {
    let dir = Dir::new();
    let (host, keys) = host_with_server(&dir, "[http]\nwrite_timeout_s = 2\n");
    let mut deaf = Connection::open(&host.url).unwrap();
    let bearer = format!("Bearer {}", keys.call);
    let headers = [
        ("authorization", bearer.as_str()),
        ("content-type", "application/json"),
        ("mcp-protocol-version", "2026-07-28"),
        ("mcp-method", "tools/call"),
        ("mcp-name", "echo"),
    ];
    until("two connections", || metric(&host, "bulkhead_connections") == 2);
    let message = support::http::call_message("echo", &json!({ "size": 900_000 })).to_string();
    for _ in 0..40 {
        deaf.send("POST", "/acme/echo/mcp", &headers, &message).unwrap();
    }
    serves(&host, &keys);
    until("it is cut off", || metric(&host, "bulkhead_connections") == 1);
    let mut received = 0;
    while deaf.receive().is_ok() {
        received += 1;
    }
    assert!(received < 40, "all {received} answers are there");
    assert_eq!(host.stop().0, Some(0));
}

#[test]
fn a_client_that_vanished() {
    if !in_own_world("a_client_that_vanished", LOOPBACK) {
        return;
    }
    // Another network, with a cable to this one.
    let elsewhere = Elsewhere::new();
    shell(&format!(
        "ip link add here type veth peer name there && ip link set there netns {0} && ip addr add 10.99.0.1/24 dev here \
         && ip link set here up && nsenter -t {0} -n sh -c 'ip addr add 10.99.0.2/24 dev there && ip link set there up'",
        elsewhere.0.id()
    ));
    let dir = Dir::new();
    let data = dir.path("data").to_string_lossy().into_owned();
    let config = dir.file(
        "host.toml",
        "allowed_hosts = ['10.99.0.1', 'localhost']\n[http]\nwrite_timeout_s = 2\n[isolate]\nquick_forks = false\n",
    );
    let mut command = Command::new(PROGRAM);
    command.args(["serve", "--listen", "10.99.0.1:0", "--data", &data, "--config", &config]);
    let host = Host::launch(command, data);
    let keys = host.tenant("acme");
    assert_eq!(deploy(&mut Connection::open(&host.url).unwrap(), &keys.admin, 1).unwrap().status, 201);

    let message = json!({ "jsonrpc": "2.0", "id": 1, "method": "subscriptions/listen", "params": {
        "notifications": { "toolsListChanged": true },
        "_meta": { "io.modelcontextprotocol/protocolVersion": "2026-07-28",
                   "io.modelcontextprotocol/clientInfo": { "name": "test", "version": "1" },
                   "io.modelcontextprotocol/clientCapabilities": {} } } })
    .to_string();
    let request = format!(
        "POST /acme/echo/mcp HTTP/1.1\\r\\nhost: localhost\\r\\nauthorization: Bearer {}\\r\\n\
         content-type: application/json\\r\\naccept: application/json, text/event-stream\\r\\n\
         mcp-protocol-version: 2026-07-28\\r\\nmcp-method: subscriptions/listen\\r\\ncontent-length: {}\\r\\n\\r\\n{}",
        keys.call,
        message.len(),
        message
    );
    let (address, port) = host.url.strip_prefix("http://").unwrap().split_once(':').unwrap();
    let script = format!("exec 3<>/dev/tcp/{address}/{port}; printf '{request}' >&3; exec cat <&3");
    let _listener = Elsewhere(
        Command::new("nsenter")
            .args(["-t", &elsewhere.0.id().to_string(), "-n", "bash", "-c", &script])
            .stdout(Stdio::null())
            .spawn()
            .unwrap(),
    );
    until("it listens", || metric(&host, "bulkhead_streams") == 1);
    // The cable is pulled at the other end: no word of farewell reaches the host.
    shell(&format!("nsenter -t {} -n ip link set there down", elsewhere.0.id()));
    let begun = Instant::now();
    until("nobody listens any more", || metric(&host, "bulkhead_streams") == 0);
    println!("noticed after {:?}", begun.elapsed());
    assert_eq!(host.stop().0, Some(0));
}

/// A process in a network of its own.
struct Elsewhere(Child);

impl Elsewhere {
    fn new() -> Elsewhere {
        let child = Command::new("unshare").args(["--net", "sleep", "120"]).stdout(Stdio::null()).spawn().unwrap();
        let own = std::fs::read_link("/proc/self/ns/net").unwrap();
        let other = format!("/proc/{}/ns/net", child.id());
        until("it has a network of its own", || std::fs::read_link(&other).is_ok_and(|network| network != own));
        Elsewhere(child)
    }
}

impl Drop for Elsewhere {
    fn drop(&mut self) {
        let _ = self.0.kill();
        let _ = self.0.wait();
    }
}
