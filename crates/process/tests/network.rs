//! Programs with a network: what a call may reach, through the proxy, for as long as it lasts. And nothing else.

mod support;
#[path = "support/upstream.rs"]
mod upstream;

use egress::Pass;
use egress::proxy::{Authority, Outfit};
use process::{Network, ProcessSettings, ProcessWall};
use sandbox::{Code, Compartment, Deployment, Growth, Request, Wall};
use serde_json::{Value, json};
use std::sync::Arc;
use std::sync::atomic::Ordering;
use support::{PATIENCE, Server, pool, pool_with, run, tool, until_nothing_is_left, value};
use upstream::{KEY, Outside, Upstream, bound, pass};

const PORT: u16 = 3128;

fn networked(authority: Option<&Authority>) -> ProcessSettings {
    let Outfit { port, variables, files } = Outfit::new(PORT, authority);
    ProcessSettings { network: Some(Network { port, variables, files }), ..ProcessSettings::default() }
}

/// One program behind a wall, for many calls.
async fn start(settings: ProcessSettings, server: &Arc<Deployment>) -> Arc<dyn Compartment> {
    let wall = ProcessWall::start(settings).expect("a wall");
    let seed = wall.plant(server.clone()).await.unwrap_or_else(|failure| panic!("{failure}"));
    seed.grow(Growth::ManyCalls).await.unwrap_or_else(|failure| panic!("{failure}"))
}

fn python(arguments: &[&str]) -> Arc<Deployment> {
    let mut server = Server::new("network.py", arguments);
    server.network = true;
    server.deploy()
}

/// Each language that this machine has.
fn servers() -> Vec<(&'static str, Arc<Deployment>)> {
    let node = Server::node("network.mjs", &[]).map(|server| Server { network: true, ..server }.deploy());
    [("python", Some(python(&[]))), ("node", node)].into_iter().filter_map(|(name, it)| Some((name, it?))).collect()
}

async fn ask(program: &Arc<dyn Compartment>, input: Value, host: &Arc<Outside>) -> Value {
    ask_in(program, None, input, host).await
}

async fn ask_in(program: &Arc<dyn Compartment>, session: Option<&str>, input: Value, host: &Arc<Outside>) -> Value {
    let request = Request { session: session.map(str::to_owned), ..tool("run", &input) };
    let (outcome, _) = program.call(&request, host.clone(), PATIENCE).await;
    value(&outcome.unwrap_or_else(|failure| panic!("{input}: {failure}")))
}

fn outside(upstream: &Upstream, pass: Pass) -> Arc<Outside> {
    Outside::new(upstream.door().visit(pass), None)
}

#[tokio::test]
async fn an_allowed_host_is_reached_and_no_other() {
    let upstream = Upstream::plain().await;
    let port = upstream.port;
    let rule = format!("http://a.example:{port}");
    for (language, server) in servers() {
        let program = start(networked(None), &server).await;
        let host = outside(&upstream, pass(&[&rule]));
        for way in ["fetch", "module"] {
            let reached = ask(&program, json!({ "do": way, "url": format!("{rule}/{way}?x=1") }), &host).await;
            assert_eq!(reached["status"], 200, "{language}, {way}: {reached}");
            assert!(reached["body"].as_str().unwrap().contains(&format!("/{way}?x=1")), "{language}, {way}: {reached}");
            let elsewhere = ["http://b.example/", "https://a.example/", "http://169.254.169.254/latest/meta-data/"];
            for url in elsewhere.map(str::to_owned).into_iter().chain([format!("http://b.example:{port}/")]) {
                let refused = ask(&program, json!({ "do": way, "url": url }), &host).await;
                assert!(
                    refused["status"] == 403 || refused["error"].is_string(),
                    "{language}, {way}, {url}: {refused}"
                );
            }
        }
        assert_eq!(sandbox::Host::hosts_reached(&*host), ["a.example"]);
    }
    assert!(upstream.seen().iter().all(|asked| asked.contains("a.example")), "{:?}", upstream.seen());
}

/// Beside the proxy there is no way at all, and every name is nobody's.
#[tokio::test]
async fn nothing_is_reached_beside_the_proxy() {
    let upstream = Upstream::plain().await;
    let host = outside(&upstream, pass(&[&format!("http://a.example:{}", upstream.port)]));
    for (language, server) in servers() {
        let program = start(networked(None), &server).await;
        let targets = [
            ("127.0.0.1", upstream.port),
            ("169.254.169.254", 80),
            ("10.0.0.1", 443),
            ("203.0.113.1", 80),
            ("::1", upstream.port),
            ("2001:db8::1", 80),
        ];
        for (address, port) in targets {
            let tried = ask(&program, json!({ "do": "connect", "host": address, "port": port }), &host).await;
            assert_ne!(tried, "connected", "{language}: {address}");
        }
        for name in ["a.example", "metadata.google.internal"] {
            let found = ask(&program, json!({ "do": "resolve", "name": name }), &host).await;
            assert!(found.as_str().unwrap().to_lowercase().contains("error"), "{language}: {name} is {found}");
        }
        if language == "python" {
            let datagram = json!({ "do": "connect", "kind": "SOCK_DGRAM", "host": "203.0.113.53", "port": 53 });
            assert_ne!(ask(&program, datagram, &host).await, "connected");
            let raw = json!({ "do": "connect", "kind": "SOCK_RAW", "host": "127.0.0.1", "port": 0 });
            assert_ne!(ask(&program, raw, &host).await, "connected");
        }
    }
    assert_eq!(upstream.seen(), Vec::<String>::new());
}

#[tokio::test]
async fn there_is_no_network_outside_of_a_call() {
    let upstream = Upstream::plain().await;
    let url = format!("http://a.example:{}/", upstream.port);
    let program = start(networked(None), &python(&[&url])).await;
    let host = outside(&upstream, pass(&[url.trim_end_matches('/')]));
    let early = ask(&program, json!({ "do": "early" }), &host).await;
    assert_eq!(early["status"], 403, "{early}");
    assert!(early["body"].as_str().unwrap().contains("initialises"), "{early}");
    // Whether the next call was there already is for the program to say, and then it is tried again.
    let tried = async {
        loop {
            ask(&program, json!({ "do": "leave", "url": url }), &host).await;
            assert_eq!(host.open(), 0, "a connection outlives its call");
            tokio::time::sleep(std::time::Duration::from_millis(300)).await;
            let late = ask(&program, json!({ "do": "late" }), &host).await;
            assert_eq!(late["closed"], true, "{late}");
            if late["before"] == true {
                return late;
            }
        }
    };
    let late = tokio::time::timeout(PATIENCE, tried).await.expect("it comes before the next call at last");
    assert_eq!(late["outcome"]["status"], 403, "{late}");
    assert!(late["outcome"]["body"].as_str().unwrap().contains("no call is in flight"), "{late}");
    let told: Vec<_> = host.log.lock().unwrap().iter().filter(|line| line.contains("refused")).cloned().collect();
    assert_eq!(told.len(), 1, "it is told once: {told:?}");
    assert_eq!(ask(&program, json!({ "do": "fetch", "url": url }), &host).await["status"], 200);
}

/// Two strangers in one process: a connection that might be for the other is for nobody.
#[tokio::test]
async fn strangers_have_nobodys_network() {
    let upstream = Upstream::plain().await;
    let url = format!("http://a.example:{}/", upstream.port);
    let program = start(networked(None), &python(&[])).await;
    let (alice, bob) = (
        outside(&upstream, pass(&[url.trim_end_matches('/')])),
        outside(&upstream, pass(&[url.trim_end_matches('/')])),
    );
    let first = json!({ "do": "meet", "who": ["alice", "bob"], "url": url });
    let second = json!({ "do": "meet", "who": ["bob", "alice"] });
    let (tried, waited) =
        tokio::join!(ask_in(&program, Some("alice"), first, &alice), ask_in(&program, Some("bob"), second, &bob));
    assert_eq!((&tried["status"], waited), (&json!(403), json!("waited")), "{tried}");
    assert!(tried["body"].as_str().unwrap().contains("different sessions"), "{tried}");
    assert_eq!(upstream.seen(), Vec::<String>::new());
    let fetch = json!({ "do": "fetch", "url": url });
    assert_eq!(ask_in(&program, Some("alice"), fetch, &alice).await["status"], 200);
    assert_eq!((alice.most.load(Ordering::SeqCst), bob.most.load(Ordering::SeqCst)), (1, 0));
}

#[tokio::test]
async fn connections_are_bounded_and_the_rest_waits() {
    let upstream = Upstream::plain().await;
    let url = format!("http://a.example:{}/", upstream.port);
    let host = outside(&upstream, pass(&[url.trim_end_matches('/')]));
    let program = start(networked(None), &python(&[])).await;
    let good = ask(&program, json!({ "do": "many", "url": url, "count": 40 }), &host).await;
    assert_eq!((good, host.most.load(Ordering::SeqCst)), (json!(40), 32));
}

/// The value is put in by the host, over TLS as well, and is nowhere inside: not even where the answer repeats it.
#[tokio::test]
async fn a_secret_arrives_and_is_not_in_the_jail() {
    let secure = Upstream::secure().await;
    let plain = Upstream::plain().await;
    let authority = Arc::new(Authority::new().unwrap());
    for (language, server) in servers() {
        let program = start(networked(Some(&authority)), &server).await;
        for (upstream, scheme) in [(&plain, "http"), (&secure, "https")] {
            let origin = format!("{scheme}://a.example:{}", upstream.port);
            let visit = upstream.door().visit(bound(&[&origin], &origin));
            let host = Outside::new(visit, Some(authority.clone()));
            for way in ["fetch", "module"] {
                let before = upstream.seen().len();
                let got = ask(&program, json!({ "do": way, "url": format!("{origin}/") }), &host).await;
                assert_eq!(got["status"], 200, "{language}, {way}, {scheme}: {got}");
                let seen = upstream.seen();
                assert!(seen.len() > before && seen.last().unwrap().contains(KEY), "{language}, {way}: {seen:?}");
                assert!(!got.to_string().contains(KEY), "{language}, {way}, {scheme}: {got}");
            }
            let environment = ask(&program, json!({ "do": "environment" }), &host).await;
            assert!(!environment.to_string().contains(KEY));
        }
    }
}

/// Agents that a server makes itself, and plain TLS, go the same way; what it sends by means of its own is left to it.
#[tokio::test]
async fn node_uses_the_proxy_whoever_connects() {
    let Some((_, server)) = servers().into_iter().find(|(language, _)| *language == "node") else { return };
    let (plain, secure) = (Upstream::plain().await, Upstream::secure().await);
    let authority = Arc::new(Authority::new().unwrap());
    let program = start(networked(Some(&authority)), &server).await;
    for (upstream, scheme, ways) in [(&plain, "http", &["agent"][..]), (&secure, "https", &["agent", "secure"])] {
        let origin = format!("{scheme}://a.example:{}", upstream.port);
        let host = Outside::new(upstream.door().visit(bound(&[&origin], &origin)), Some(authority.clone()));
        for way in ways {
            let got = ask(&program, json!({ "do": way, "url": format!("{origin}/{way}") }), &host).await;
            assert_eq!(got["status"], 200, "{way}, {scheme}: {got}");
            assert!(upstream.seen().iter().any(|asked| asked.contains(&format!("/{way}"))), "{way}: {got}");
            let other = format!("{scheme}://b.example:{}/", upstream.port);
            let refused = ask(&program, json!({ "do": way, "url": other }), &host).await;
            assert!(refused["status"] == 403 || refused["error"].is_string(), "{way}, {scheme}: {refused}");
        }
    }
    let host = outside(&plain, pass(&[&format!("http://a.example:{}", plain.port)]));
    let own = ask(&program, json!({ "do": "own", "url": "https://a.example/" }), &host).await;
    assert!(own["error"].as_str().is_some_and(|error| error.contains("sent by its own")), "{own}");
}

#[tokio::test]
async fn who_is_given_no_network_has_none() {
    let mut server = Server::new("network.py", &[]);
    server.network = true;
    let failure = run(&pool(), &server.clone().deploy(), json!({ "do": "environment" })).await.unwrap_err();
    assert_eq!(failure.code, Code::WallUnavailable, "{failure}");
    server.network = false;
    let pool = pool_with(networked(None));
    let environment = run(&pool, &server.clone().deploy(), json!({ "do": "environment" })).await.unwrap();
    assert!(environment.get("HTTP_PROXY").is_none(), "{environment}");
    let tried = json!({ "do": "connect", "host": "127.0.0.1", "port": PORT });
    assert_ne!(run(&pool, &server.deploy(), tried).await.unwrap(), "connected");
    drop(pool);
    until_nothing_is_left().await;
}
