//! Searching responses for secrets is computed by the host, for a stranger: a little at a time, and the stranger's tenant pays.

use crate::rig;

use egress::{Binding, Bindings, Bound, Budget, Denied, Limits, Pattern, Place, Secrets, Visit};
use futures_util::future::BoxFuture;
use rig::*;
use secrecy::SecretString;
use serde_json::json;
use std::sync::Arc;
use std::sync::atomic::{AtomicBool, AtomicU64, Ordering};
use std::time::Duration;

struct Store(String);

impl Secrets for Store {
    fn get<'a>(&'a self, used: &'a egress::Use<'a>) -> BoxFuture<'a, Result<Option<SecretString>, Denied>> {
        self.known(used.name)
    }

    fn known<'a>(&'a self, _: &'a str) -> BoxFuture<'a, Result<Option<SecretString>, Denied>> {
        Box::pin(async { Ok(Some(SecretString::from(self.0.clone()))) })
    }
}

/// Each is named by its number.
struct Many(Vec<String>);

impl Secrets for Many {
    fn get<'a>(&'a self, used: &'a egress::Use<'a>) -> BoxFuture<'a, Result<Option<SecretString>, Denied>> {
        self.known(used.name)
    }

    fn known<'a>(&'a self, name: &'a str) -> BoxFuture<'a, Result<Option<SecretString>, Denied>> {
        Box::pin(async { Ok(self.0.get(name.parse::<usize>().unwrap()).map(|text| SecretString::from(text.clone()))) })
    }
}

#[derive(Default)]
struct Bill(AtomicU64);

impl Budget for Bill {
    fn spend(&self, _: u64) -> bool {
        true
    }

    fn computed(&self, cpu_us: u64) {
        self.0.fetch_add(cpu_us, Ordering::SeqCst);
    }
}

fn visit(server: &Server, secret: &str, bill: Arc<Bill>) -> Visit {
    let mut pass = pass(&[server.port]);
    let host = Pattern::parse(&format!("http://a.example:{}", server.port)).unwrap();
    let binding = Binding::new("KEY", vec![host], Place::Header(http::HeaderName::from_static("x-key")));
    pass.credentials = Arc::new(Bound::new(Bindings::new(vec![binding]).unwrap(), Arc::new(Store(secret.to_owned()))));
    pass.budget = bill;
    door(&[server.port], Limits::default()).visit(pass)
}

/// What the host computes is on the tenant's bill, and long secrets are dearer than short ones.
#[test]
fn masking_is_paid_for() {
    run(async {
        let server = Server::says(ok(&"\n".repeat(200_000))).await;
        let mut bills = Vec::new();
        for secret in ["twelve-bytes".to_owned(), "a long secret ".repeat(100)] {
            let bill = Arc::new(Bill::default());
            get(&visit(&server, &secret, bill.clone()), 1, &server.url("/")).await.unwrap();
            bills.push(bill.0.load(Ordering::SeqCst));
        }
        assert!(bills[0] > 0 && bills[1] > 2 * bills[0], "{bills:?}");
    });
}

/// One thread serves everybody: while a megabyte is searched, others have their turn again and again.
#[test]
fn masking_lets_others_have_their_turn() {
    let runtime = tokio::runtime::Builder::new_current_thread().enable_all().build().unwrap();
    let test = async {
        let body = "\0".repeat(1 << 20);
        let server = Server::says(ok(&body)).await;
        let (turns, over) = (Arc::new(AtomicU64::new(0)), Arc::new(AtomicBool::new(false)));
        let (count, end) = (turns.clone(), over.clone());
        let other = tokio::spawn(async move {
            while !end.load(Ordering::SeqCst) {
                count.fetch_add(1, Ordering::SeqCst);
                tokio::task::yield_now().await;
            }
        });
        let visit = visit(&server, &"a long secret ".repeat(100), Arc::default());
        let (_, got) = get(&visit, 1, &server.url("/")).await.unwrap();
        over.store(true, Ordering::SeqCst);
        other.await.unwrap();
        assert_eq!(got.len(), body.len());
        let turns = turns.load(Ordering::SeqCst);
        assert!(turns >= 256, "only {turns} turns");
    };
    runtime
        .block_on(async { tokio::time::timeout(Duration::from_secs(60), test).await })
        .expect("the test takes too long");
}

/// Many short headers of nothing but a secret, where each byte ends hundreds of secrets: all of a head is one text with one budget.
#[test]
fn a_head_full_of_secrets_costs_what_another_does() {
    run(async {
        let head = |letter: &str| {
            let lines: String = (0..90).map(|number| format!("x-{number}: {}\r\n", letter.repeat(300))).collect();
            format!("HTTP/1.1 200 OK\r\n{lines}content-length: 0\r\n\r\n").into_bytes()
        };
        let (same, other) = (Server::says(head("a")).await, Server::says(head("b")).await);
        let secrets: Vec<String> = (12..192).step_by(3).map(|length| "a".repeat(length)).collect();
        let mut bills = Vec::new();
        for server in [&same, &other] {
            let bill = Arc::new(Bill::default());
            let mut pass = pass(&[server.port]);
            let host = Pattern::parse(&format!("http://a.example:{}", server.port)).unwrap();
            let bind = |at: usize| {
                let name = http::HeaderName::from_bytes(format!("x-key-{at}").as_bytes()).unwrap();
                Binding { asked: true, ..Binding::new(at.to_string(), vec![host.clone()], Place::Header(name)) }
            };
            let bindings = Bindings::new((0..secrets.len()).map(bind).collect()).unwrap();
            pass.credentials = Arc::new(Bound::new(bindings, Arc::new(Many(secrets.clone()))));
            pass.budget = bill.clone();
            fetch(&door(&[server.port], Limits::default()).visit(pass), 1, &server.url("/"), json!({})).await.unwrap();
            bills.push(bill.0.load(Ordering::SeqCst));
        }
        assert!(bills[0] < 5 * bills[1], "{bills:?}");
    });
}
