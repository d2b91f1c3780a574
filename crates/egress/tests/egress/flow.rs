//! How much is under way, for whom, and how it ends.

use crate::rig;

use egress::{Budget, Code, Limits, Pass};
use rig::*;
use serde_json::json;
use std::sync::atomic::{AtomicU64, Ordering};
use std::sync::{Arc, Mutex};
use std::time::Duration;
use tokio::io::{AsyncReadExt, AsyncWriteExt};

/// Waits until a number stays the same.
async fn settled(number: &AtomicU64) -> u64 {
    let mut before = u64::MAX;
    loop {
        let now = number.load(Ordering::SeqCst);
        if now > 0 && now == before {
            return now;
        }
        before = now;
        tokio::time::sleep(Duration::from_millis(300)).await;
    }
}

#[test]
fn a_gigabyte_that_nobody_reads_stays_outside() {
    run(async {
        let written = Arc::new(AtomicU64::new(0));
        let count = written.clone();
        let server = Server::each(move |mut stream, _| {
            let count = count.clone();
            async move {
                request(&mut stream).await;
                let gigabyte = 1_u64 << 30;
                let head = format!("HTTP/1.1 200 OK\r\ncontent-length: {gigabyte}\r\n\r\n");
                stream.write_all(head.as_bytes()).await.unwrap();
                let chunk = vec![b'x'; 64 << 10];
                while let Ok(sent) = stream.write(&chunk).await {
                    count.fetch_add(sent as u64, Ordering::SeqCst);
                }
            }
        })
        .await;
        let limits = Limits { response_bytes: 2 << 30, decoded_bytes: 2 << 30, ..Limits::default() };
        let visit = visit(&[server.port], limits.clone());
        fetch(&visit, 1, &server.url("/"), json!({})).await.unwrap();
        let sent = settled(&written).await;
        // The kernel's buffers are most of it.
        assert!(sent < 32 << 20, "{sent} bytes were taken though nobody asked for one");
        assert!(visit.bytes().down < 1024, "{:?} counted as read", visit.bytes());
        let chunk = piece(&visit, 1).await.unwrap().unwrap();
        assert!(chunk.len() as u64 <= limits.chunk_bytes && !chunk.is_empty());
        for _ in 0..200 {
            assert!(piece(&visit, 1).await.unwrap().unwrap().len() as u64 <= limits.chunk_bytes);
        }
        drop(visit);
        settled(&written).await;
    });
}

#[test]
fn a_server_that_does_not_read_stops_the_sender() {
    run(async {
        let server = Server::each(|stream, _| async move {
            tokio::time::sleep(Duration::from_secs(50)).await;
            drop(stream);
        })
        .await;
        let limits = Limits { request_bytes: 1 << 30, ..Limits::default() };
        let visit = Arc::new(visit(&[server.port], limits));
        let (one, url) = (visit.clone(), server.url("/"));
        let task = tokio::spawn(async move { fetch(&one, 1, &url, json!({ "method": "POST", "stream": true })).await });
        let taken = Arc::new(AtomicU64::new(0));
        let (writer, count) = (visit.clone(), taken.clone());
        let chunk = vec![b'x'; 64 << 10];
        let writes = tokio::spawn(async move {
            loop {
                match write(&writer, 1, chunk.clone(), false).await {
                    Ok(()) => drop(count.fetch_add(chunk.len() as u64, Ordering::SeqCst)),
                    Err(denied) if denied.code == Code::Invalid => tokio::task::yield_now().await,
                    Err(denied) => return denied,
                }
            }
        });
        let sent = settled(&taken).await;
        assert!(sent < 32 << 20, "{sent} bytes were taken though nobody reads");
        cancel(&visit, 1, "request").await;
        assert_eq!(task.await.unwrap().unwrap_err().code, Code::Cancelled);
        assert_eq!(writes.await.unwrap().code, Code::Cancelled);
    });
}

#[test]
fn half_a_body_is_not_a_body() {
    run(async {
        let seen = Arc::new(Mutex::new(Vec::new()));
        let copy = seen.clone();
        let server = Server::each(move |mut stream, _| {
            let copy = copy.clone();
            async move {
                let mut buffer = [0; 4096];
                while let Ok(read @ 1..) = stream.read(&mut buffer).await {
                    copy.lock().unwrap().extend(&buffer[..read]);
                }
                copy.lock().unwrap().extend(b"<gone>");
            }
        })
        .await;
        let visit = visit(&[server.port], Limits::default());
        let url = server.url("/");
        let (outcome, ()) = tokio::join!(fetch(&visit, 1, &url, json!({ "method": "POST", "stream": true })), async {
            write(&visit, 1, "half", false).await.unwrap();
            while !String::from_utf8_lossy(&seen.lock().unwrap()).contains("half") {
                tokio::time::sleep(Duration::from_millis(5)).await;
            }
            cancel(&visit, 1, "request").await;
        });
        assert_eq!(outcome.unwrap_err().code, Code::Cancelled);
        while visit.records()[0].failed != Some("egress_cancelled") {
            tokio::time::sleep(Duration::from_millis(5)).await;
        }
        loop {
            let text = String::from_utf8_lossy(&seen.lock().unwrap()).into_owned();
            if text.ends_with("<gone>") {
                assert!(text.ends_with("4\r\nhalf\r\n<gone>"), "{text}");
                return;
            }
            tokio::time::sleep(Duration::from_millis(5)).await;
        }
    });
}

#[test]
fn an_answer_before_the_body_is_sent() {
    run(async {
        let server = Server::each(|mut stream, _| async move {
            let mut buffer = [0; 1024];
            let _ = stream.read(&mut buffer).await;
            let _ = stream.write_all(&ok("enough")).await;
            tokio::time::sleep(Duration::from_secs(50)).await;
        })
        .await;
        let visit = visit(&[server.port], Limits::default());
        let head = fetch(&visit, 1, &server.url("/"), json!({ "method": "POST", "stream": true })).await.unwrap();
        assert_eq!(head["status"], 200);
        write(&visit, 1, "late", false).await.unwrap();
        assert_eq!(read_all(&visit, 1).await.unwrap(), b"enough");
        write(&visit, 1, "", true).await.unwrap();
        assert!(write(&visit, 1, "", true).await.is_err(), "it is over");
    });
}

/// Each answer names the connection it came over.
async fn numbered() -> Server {
    let next = Arc::new(AtomicU64::new(0));
    Server::each(move |mut stream, _| {
        let number = next.fetch_add(1, Ordering::SeqCst);
        async move {
            while request(&mut stream).await.is_some() {
                if stream.write_all(&ok(&format!("{number}"))).await.is_err() {
                    return;
                }
            }
        }
    })
    .await
}

/// A connection comes back a moment after its response was read.
async fn again(visit: &egress::Visit, url: &str, want: &str) -> bool {
    for id in 1000..1100 {
        if get(visit, id, url).await.unwrap().1 == want {
            return true;
        }
    }
    false
}

#[test]
fn connections_are_used_again_but_never_by_others() {
    run(async {
        let server = numbered().await;
        let limits = Limits { rate_per_host: 10_000, rate_per_tenant: 10_000, ..Limits::default() };
        let door = door(&[server.port], limits);
        let everything = pass(&[server.port]).rules;
        let visit = |tenant: &str, deployment: &str| door.visit(Pass::new(tenant, deployment, everything.clone()));
        let url = server.url("/");
        let first = get(&visit("one", "a"), 1, &url).await.unwrap().1;
        assert!(again(&visit("one", "a"), &url, &first).await, "a later call of the same deployment uses it");
        let mut owners = vec![("one", "a", first)];
        for (tenant, deployment) in [("one", "b"), ("two", "a"), ("two", "b"), ("onea", ""), ("", "onea")] {
            for id in 0..10 {
                let number = get(&visit(tenant, deployment), id, &url).await.unwrap().1;
                for (other, its, theirs) in &owners {
                    assert!(
                        *theirs != number || (*other, *its) == (tenant, deployment),
                        "{tenant}/{deployment} got {other}/{its}'s"
                    );
                }
                owners.push((tenant, deployment, number));
            }
        }
        // Another name is another origin, though it is the same place.
        let other = get(&visit("one", "a"), 2, &format!("http://b.example:{}/", server.port)).await.unwrap().1;
        assert!(owners.iter().all(|(_, _, number)| *number != other));
        // What is forgotten is closed.
        tokio::time::sleep(Duration::from_millis(50)).await;
        door.forget("two", "a");
        let number = get(&visit("two", "a"), 3, &url).await.unwrap().1;
        assert!(owners.iter().all(|(_, _, old)| *old != number));
    });
}

#[test]
fn a_connection_that_was_closed_meanwhile_is_replaced() {
    run(async {
        let server = Server::each(|mut stream, _| async move {
            request(&mut stream).await;
            let _ = stream.write_all(&ok("once")).await;
        })
        .await;
        let visit = visit(&[server.port], Limits::default());
        for id in 0..20 {
            assert_eq!(get(&visit, id, &server.url("/")).await.unwrap().1, "once");
        }
        assert_eq!(server.connections(), 20);
    });
}

#[test]
fn places_are_limited_and_come_back() {
    run(async {
        let server = Server::says(ok("a body")).await;
        let limits =
            Limits { open_per_host: 2, open_per_tenant: 3, open_per_call: 5, queue_ms: 100, ..Limits::default() };
        let door = door(&[server.port], limits);
        let visit = door.visit(pass(&[server.port]));
        let url = server.url("/");
        let other = format!("http://b.example:{}/", server.port);
        fetch(&visit, 1, &url, json!({})).await.unwrap();
        fetch(&visit, 2, &url, json!({})).await.unwrap();
        assert_eq!(fetch(&visit, 3, &url, json!({})).await.unwrap_err().code, Code::Limit, "two per host");
        fetch(&visit, 3, &other, json!({})).await.unwrap();
        assert_eq!(fetch(&visit, 4, &other, json!({})).await.unwrap_err().code, Code::Limit, "three in all");
        assert_eq!(fetch(&visit, 3, &other, json!({})).await.unwrap_err().code, Code::Invalid, "a number twice");
        // Another tenant is not concerned.
        let mut pass = pass(&[server.port]);
        pass.tenant = "another".to_owned();
        let neighbour = door.visit(pass);
        assert_eq!(get(&neighbour, 1, &url).await.unwrap().1, "a body");
        read_all(&visit, 1).await.unwrap();
        fetch(&visit, 5, &url, json!({})).await.unwrap();
        cancel(&visit, 2, "body").await;
        cancel(&visit, 3, "request").await;
        cancel(&visit, 99, "request").await;
        fetch(&visit, 6, &url, json!({})).await.unwrap();
        assert!(piece(&visit, 2).await.is_err());
        // One that waits gets the place of one that ends.
        let (waited, ()) = tokio::join!(fetch(&visit, 7, &url, json!({})), async { drop(read_all(&visit, 5).await) });
        waited.unwrap();
        drop(visit);
        let visit = door.visit(Pass::new("tenant", "deployment", rules(&[&format!("http://*:{}", server.port)])));
        fetch(&visit, 1, &url, json!({})).await.unwrap();
        fetch(&visit, 2, &url, json!({})).await.unwrap();
    });
}

#[test]
fn a_call_has_only_so_many_requests() {
    run(async {
        let server = Server::says(ok("a body")).await;
        let visit = visit(&[server.port], Limits { open_per_call: 3, ..Limits::default() });
        for id in 1..4 {
            fetch(&visit, id, &server.url("/"), json!({})).await.unwrap();
        }
        assert_eq!(fetch(&visit, 4, &server.url("/"), json!({})).await.unwrap_err().code, Code::Limit);
        read_all(&visit, 1).await.unwrap();
        fetch(&visit, 4, &server.url("/"), json!({})).await.unwrap();
    });
}

#[test]
fn rates_are_limited_for_each_tenant() {
    run(async {
        let server = Server::says(ok("")).await;
        let limits = Limits { rate_per_host: 1, rate_per_tenant: 1, burst_s: 5, ..Limits::default() };
        let door = door(&[server.port], limits);
        for tenant in ["one", "two"] {
            let outcomes: Vec<bool> = {
                let mut outcomes = Vec::new();
                for id in 0..20 {
                    // Each a visit of its own: a new call is no new burst.
                    let visit = door.visit(Pass::new(tenant, "d", pass(&[server.port]).rules));
                    outcomes.push(get(&visit, id, &server.url("/")).await.is_ok());
                }
                outcomes
            };
            assert!(outcomes[..5].iter().all(|ok| *ok), "{tenant}: {outcomes:?}");
            assert!(outcomes.iter().filter(|ok| !**ok).count() >= 5, "{tenant}: {outcomes:?}");
        }
    });
}

#[test]
fn rates_are_limited_for_each_host() {
    run(async {
        let server = Server::says(ok("")).await;
        let limits = Limits { rate_per_host: 1, burst_s: 1, rate_per_tenant: 1000, ..Limits::default() };
        let visit = visit(&[server.port], limits);
        let mut refused = 0;
        for id in 0..20 {
            refused += usize::from(get(&visit, id, &server.url("/")).await.is_err());
        }
        assert!(refused > 5, "{refused} of 20 were refused");
        get(&visit, 99, &format!("http://b.example:{}/", server.port)).await.unwrap();
    });
}

/// An idle connection makes room for another; one in use does not.
#[test]
fn connections_of_the_whole_host_are_counted() {
    run(async {
        let server = Server::says(ok("a body")).await;
        let door = door(&[server.port], Limits { connections: 1, connect_ms: 300, ..Limits::default() });
        let visit = |tenant: &str| door.visit(Pass::new(tenant, "d", pass(&[server.port]).rules));
        let (one, two) = (visit("one"), visit("two"));
        get(&one, 1, &server.url("/")).await.unwrap();
        fetch(&two, 1, &server.url("/"), json!({})).await.unwrap();
        assert_eq!(fetch(&one, 2, &server.url("/"), json!({})).await.unwrap_err().code, Code::Timeout);
        cancel(&two, 1, "body").await;
        get(&one, 3, &server.url("/")).await.unwrap();
    });
}

struct Purse(AtomicU64);

impl Budget for Purse {
    fn spend(&self, bytes: u64) -> bool {
        let mut left = self.0.load(Ordering::SeqCst);
        left = left.saturating_sub(bytes);
        self.0.store(left, Ordering::SeqCst);
        left > 0
    }

    fn computed(&self, _: u64) {}
}

#[test]
fn a_budget_that_is_spent() {
    run(async {
        let server = Server::says(ok(&"x".repeat(100_000))).await;
        let purse = Arc::new(Purse(AtomicU64::new(150_000)));
        let mut pass = pass(&[server.port]);
        pass.budget = purse.clone();
        let visit = door(&[server.port], Limits::default()).visit(pass);
        get(&visit, 1, &server.url("/")).await.unwrap();
        let denied = get(&visit, 2, &server.url("/")).await.unwrap_err();
        assert_eq!(denied.code, Code::Limit, "in the middle of a body");
        let before = server.requests().len();
        assert_eq!(get(&visit, 3, &server.url("/")).await.unwrap_err().code, Code::Limit);
        assert_eq!(server.requests().len(), before, "nothing is sent any more");
        assert!(visit.bytes().down + visit.bytes().up >= 150_000);
    });
}

#[test]
fn a_body_that_grows_too_long() {
    run(async {
        let server = Server::says(ok("")).await;
        let visit = visit(&[server.port], Limits { request_bytes: 10, ..Limits::default() });
        let more = json!({ "method": "POST", "bodyLength": 11 });
        let denied = fetch_body(&visit, 1, &server.url("/"), more, "x".repeat(11).into()).await.unwrap_err();
        assert_eq!(denied.code, Code::Limit);
        let url = server.url("/");
        let (outcome, ()) = tokio::join!(fetch(&visit, 2, &url, json!({ "method": "POST", "stream": true })), async {
            write(&visit, 2, "0123456789", false).await.unwrap();
            assert_eq!(write(&visit, 2, "x", true).await.unwrap_err().code, Code::Limit);
        });
        assert!(outcome.is_err());
    });
}

#[test]
fn when_the_call_is_over_so_is_everything() {
    run(async {
        let gone = Arc::new(AtomicU64::new(0));
        let count = gone.clone();
        let server = Server::each(move |mut stream, _| {
            let count = count.clone();
            async move {
                request(&mut stream).await;
                let _ = stream.write_all(b"HTTP/1.1 200 OK\r\ncontent-length: 99\r\n\r\nsome").await;
                let mut rest = Vec::new();
                let _ = stream.read_to_end(&mut rest).await;
                count.fetch_add(1, Ordering::SeqCst);
            }
        })
        .await;
        let visit = Arc::new(visit(&[server.port], Limits::default()));
        for id in 0..5 {
            fetch(&visit, id, &server.url("/"), json!({})).await.unwrap();
        }
        assert_eq!(&piece(&visit, 0).await.unwrap().unwrap()[..], b"some");
        let reader = visit.clone();
        let waiting = tokio::spawn(async move { piece(&reader, 0).await });
        tokio::time::sleep(Duration::from_millis(20)).await;
        visit.close();
        assert_eq!(waiting.await.unwrap().unwrap_err().code, Code::Cancelled);
        assert_eq!(fetch(&visit, 9, &server.url("/"), json!({})).await.unwrap_err().code, Code::Cancelled);
        drop(visit);
        while gone.load(Ordering::SeqCst) < 5 {
            tokio::time::sleep(Duration::from_millis(5)).await;
        }
    });
}

/// Small pieces are put together, and one that waits for an answer is not kept back.
#[test]
fn small_pieces() {
    run(async {
        let server = Server::each(|mut stream, _| async move {
            request(&mut stream).await;
            let many = "1\r\nx\r\n".repeat(200);
            let head = format!("HTTP/1.1 200 OK\r\ntransfer-encoding: chunked\r\n\r\n3\r\none\r\n{many}");
            let _ = stream.write_all(head.as_bytes()).await;
            // The next piece comes only when this one was read.
            if request(&mut stream).await.is_none() {
                tokio::time::sleep(Duration::from_secs(50)).await;
            }
        })
        .await;
        let visit = visit(&[server.port], Limits::default());
        fetch(&visit, 1, &server.url("/"), json!({})).await.unwrap();
        let (mut got, mut pieces) = (0, 0);
        while got < 203 {
            got += piece(&visit, 1).await.unwrap().unwrap().len();
            pieces += 1;
        }
        assert!(pieces < 100, "{pieces} host calls for 203 bytes");
    });
}

#[test]
fn nonsense_from_inside() {
    run(async {
        let visit = visit(&[1], Limits::default());
        for operation in ["fetch", "fetch_write", "fetch_read", "fetch_cancel", "fetch_", "", "ask"] {
            for meta in ["", "{}", "[]", "null", "{\"id\":-1}", "{\"id\":1e99}", "{\"id\":\"1\"}", "\u{0}", "{\"id\":1"]
            {
                let denied = visit.call(operation, meta, bytes::Bytes::new()).await.unwrap_err();
                assert_eq!(denied.code, Code::Invalid, "{operation} {meta}");
            }
        }
        let long = meta(1, &"a".repeat(300 << 10), json!({}));
        assert_eq!(visit.call("fetch", &long, bytes::Bytes::new()).await.unwrap_err().code, Code::Invalid);
        let deep = "[".repeat(200_000);
        assert_eq!(visit.call("fetch", &deep, bytes::Bytes::new()).await.unwrap_err().code, Code::Invalid);
        assert!(piece(&visit, 1).await.is_err() && write(&visit, 1, "x", true).await.is_err());
    });
}

/// What is asked for in vain costs nothing, and must not hide what comes after it.
#[test]
fn a_host_that_is_reached_is_told_however_much_was_asked_before() {
    run(async {
        let server = Server::says(ok("hello")).await;
        let visit = visit(&[server.port], Limits::default());
        for id in 0..300 {
            fetch(&visit, id, "http://nowhere.example/", json!({})).await.unwrap_err();
        }
        get(&visit, 300, &server.url("/")).await.unwrap();
        assert_eq!(visit.hosts_reached(), ["a.example"]);
    });
}
