//! Masking tells nothing about a secret to code that stores guesses upstream and reads them back.
//!
//! The server sends piece by piece, each when the test says so. So what the code inside has at each step is known, without a clock.

use crate::rig;

use base64::Engine;
use egress::{Binding, Bindings, Bound, Denied, Dev, Door, Limits, Pattern, Place, Secrets, Visit};
use futures_util::future::{BoxFuture, join_all};
use rig::proxy::Proxy;
use rig::*;
use secrecy::SecretString;
use serde_json::json;
use std::io::Write;
use std::sync::{Arc, Mutex};
use std::time::Duration;
use tokio::io::{AsyncReadExt, AsyncWriteExt};
use tokio::sync::{Semaphore, mpsc};

const KEY: &str = "k7Qz+m/9pXw=R2vB";
/// What is held back of every body.
const TAIL: usize = 4096;
/// How long the test looks for bytes that should not be there.
const GRACE: Duration = Duration::from_millis(20);

struct Store(String);

impl Secrets for Store {
    fn get<'a>(&'a self, used: &'a egress::Use<'a>) -> BoxFuture<'a, Result<Option<SecretString>, Denied>> {
        self.known(used.name)
    }

    fn known<'a>(&'a self, _: &'a str) -> BoxFuture<'a, Result<Option<SecretString>, Denied>> {
        Box::pin(async { Ok(Some(SecretString::from(self.0.clone()))) })
    }
}

#[derive(Clone, Copy, Debug, PartialEq)]
enum Coding {
    Plain,
    Gzip,
    Events,
}

#[derive(Clone, Copy, Debug)]
enum Way {
    Isolate,
    Proxy,
}

/// A server that sends what is stored there, and the leave to send one more piece.
struct Storage {
    server: Server,
    coding: Coding,
    pieces: Arc<Mutex<Vec<Vec<u8>>>>,
    leave: Arc<Semaphore>,
}

impl Storage {
    async fn new(coding: Coding) -> Storage {
        let (pieces, leave) = (Arc::new(Mutex::new(Vec::new())), Arc::new(Semaphore::new(0)));
        let (stored, wait) = (pieces.clone(), leave.clone());
        let server = Server::each(move |mut stream, _| {
            let (stored, wait) = (stored.clone(), wait.clone());
            async move {
                while rig::request(&mut stream).await.is_some() {
                    let pieces: Vec<Vec<u8>> = stored.lock().unwrap().clone();
                    if send(&mut stream, coding, pieces, &wait).await.is_err() {
                        return;
                    }
                }
            }
        });
        Storage { server: server.await, coding, pieces, leave }
    }

    fn visit(&self, door: &Door<Dev>, secret: &str) -> Visit {
        let port = self.server.port;
        let mut pass = pass(&[port]);
        let host = Pattern::parse(&format!("http://a.example:{port}")).unwrap();
        let binding = Binding::new("KEY", vec![host], Place::Header(http::HeaderName::from_static("x-key")));
        let bindings = Bindings::new(vec![binding]).unwrap();
        pass.credentials = Arc::new(Bound::new(bindings, Arc::new(Store(secret.to_owned()))));
        door.visit(pass)
    }

    /// What the code inside has got after each piece.
    async fn steps(&self, door: &Door<Dev>, way: Way, secret: &str, pieces: &[Vec<u8>]) -> Vec<Vec<u8>> {
        *self.pieces.lock().unwrap() = pieces.to_vec();
        let visit = self.visit(door, secret);
        let (sender, mut got) = mpsc::unbounded_channel();
        let url = self.server.url("/");
        let reading = match way {
            Way::Isolate => tokio::spawn(isolate(visit, url, sender)),
            Way::Proxy => tokio::spawn(proxied(visit, url, sender)),
        };
        let (mut steps, mut have, mut all) = (Vec::new(), Vec::new(), Vec::new());
        for piece in pieces {
            all.extend_from_slice(piece);
            self.leave.add_permits(1);
            let event = (0..=all.len()).rev().find(|end| all[..*end].ends_with(b"\n\n")).unwrap_or(0);
            let event = if self.coding == Coding::Events { event } else { 0 };
            let expected = all.len().saturating_sub(TAIL).max(event);
            while have.len() < expected {
                have.extend::<Vec<u8>>(got.recv().await.expect("more of the body"));
            }
            while let Ok(Some(more)) = tokio::time::timeout(GRACE, got.recv()).await {
                have.extend::<Vec<u8>>(more);
            }
            steps.push(have.clone());
        }
        self.leave.add_permits(1);
        while let Some(more) = got.recv().await {
            have.extend::<Vec<u8>>(more);
        }
        steps.push(have);
        reading.await.unwrap();
        steps
    }
}

async fn send(
    stream: &mut tokio::net::TcpStream,
    coding: Coding,
    pieces: Vec<Vec<u8>>,
    leave: &Semaphore,
) -> std::io::Result<()> {
    let kind = match coding {
        Coding::Plain => "content-type: text/plain",
        Coding::Gzip => "content-encoding: gzip",
        Coding::Events => "content-type: text/event-stream; charset=utf-8",
    };
    let head = format!("HTTP/1.1 200 OK\r\n{kind}\r\ntransfer-encoding: chunked\r\n\r\n");
    stream.write_all(head.as_bytes()).await?;
    let mut encoder = flate2::write::GzEncoder::new(Vec::new(), flate2::Compression::fast());
    for mut bytes in pieces {
        leave.acquire().await.unwrap().forget();
        if coding == Coding::Gzip {
            encoder.write_all(&bytes)?;
            encoder.flush()?;
            bytes = std::mem::take(encoder.get_mut());
        }
        stream.write_all(&chunk(&bytes)).await?;
    }
    leave.acquire().await.unwrap().forget();
    if coding == Coding::Gzip {
        stream.write_all(&chunk(&encoder.finish()?)).await?;
    }
    stream.write_all(b"0\r\n\r\n").await
}

fn chunk(bytes: &[u8]) -> Vec<u8> {
    [format!("{:x}\r\n", bytes.len()).as_bytes(), bytes, b"\r\n"].concat()
}

type Got = mpsc::UnboundedSender<Vec<u8>>;

async fn isolate(visit: Visit, url: String, got: Got) {
    fetch(&visit, 1, &url, json!({})).await.unwrap();
    while let Some(chunk) = piece(&visit, 1).await.unwrap() {
        got.send(chunk.to_vec()).unwrap();
    }
}

async fn proxied(visit: Visit, url: String, got: Got) {
    let proxy = Proxy::new(visit, None).await;
    let mut stream = proxy.dial().await;
    let host = url.split('/').nth(2).unwrap();
    stream.write_all(format!("GET {url} HTTP/1.1\r\nhost: {host}\r\n\r\n").as_bytes()).await.unwrap();
    rig::proxy::head(&mut stream).await;
    loop {
        let mut line = Vec::new();
        while !line.ends_with(b"\r\n") {
            line.push(stream.read_u8().await.unwrap());
        }
        let length = usize::from_str_radix(std::str::from_utf8(&line).unwrap().trim(), 16).unwrap();
        let mut chunk = vec![0; length + 2];
        stream.read_exact(&mut chunk).await.unwrap();
        if length == 0 {
            return;
        }
        chunk.truncate(length);
        got.send(chunk).unwrap();
    }
}

/// Ways to have the guess lie at the end of what came so far.
fn cuts(guess: &str) -> Vec<Vec<Vec<u8>>> {
    let filler = |length: usize| "x".repeat(length);
    let mut bytewise: Vec<Vec<u8>> = vec![b"data: ".to_vec()];
    bytewise.extend(guess.bytes().map(|b| vec![b]));
    bytewise.push(b" and more".to_vec());
    vec![
        vec![guess.into(), b" and more".to_vec(), filler(9000).into()],
        vec![format!("data: {guess}").into(), b"~\n\n".to_vec(), b"data: next\n\n".to_vec()],
        vec![filler(9000).into(), guess.into(), filler(9000).into(), b"end".to_vec()],
        vec![format!("{}{guess}", filler((128 << 10) - guess.len())).into(), filler(9000).into()],
        vec![format!("data: {guess}\n\n").into(), format!("data: {guess}").into(), b"\n\n".to_vec()],
        bytewise,
    ]
}

fn open(storages: &[Storage]) -> Door<Dev> {
    let ports: Vec<u16> = storages.iter().map(|storage| storage.server.port).collect();
    let many = 1_000_000;
    let limits = Limits {
        rate_per_tenant: many,
        rate_per_host: many,
        open_per_tenant: 999,
        open_per_host: 999,
        ..Limits::default()
    };
    door(&ports, limits)
}

/// Neither the bytes nor the steps at which they come tell a guess that begins the secret from one that does not.
#[test]
fn a_right_guess_looks_like_a_wrong_one() {
    run(async {
        let (mut storages, mut cut_of) = (Vec::new(), Vec::new());
        for coding in [Coding::Plain, Coding::Gzip, Coding::Events] {
            for cut in 0..cuts("").len() {
                storages.push(Storage::new(coding).await);
                cut_of.push(cut);
            }
        }
        let door = open(&storages);
        join_all(storages.iter().zip(cut_of).map(|(storage, cut)| compare(&door, storage, cut))).await;
    });
}

async fn compare(door: &Door<Dev>, storage: &Storage, cut: usize) {
    // As text, and in base64, which the mask knows too.
    let base64 = base64::engine::general_purpose::STANDARD.encode(KEY);
    let guesses = [&KEY[..1], &KEY[..7], &KEY[..KEY.len() - 1], &base64[..19]];
    for right in guesses {
        let wrong = format!("{}#", &right[..right.len() - 1]);
        for way in [Way::Isolate, Way::Proxy] {
            let mut seen = Vec::new();
            for guess in [right, &wrong] {
                let pieces = cuts(guess).swap_remove(cut);
                let steps = storage.steps(door, way, KEY, &pieces).await;
                assert_eq!(steps.last(), Some(&pieces.concat()), "everything came as it was stored");
                seen.push(steps.iter().map(Vec::len).collect::<Vec<_>>());
            }
            assert_eq!(seen[0], seen[1], "{way:?}, {:?}, cut {cut}, {right:?}", storage.coding);
        }
    }
}

/// Not even the length of the secret shows.
#[test]
fn secrets_of_all_lengths_hold_back_the_same() {
    run(async {
        let storages = [Storage::new(Coding::Plain).await, Storage::new(Coding::Events).await];
        let door = open(&storages);
        let pieces = [b"one\n\n".to_vec(), vec![b'x'; 5000], vec![b'y'; 200_000], b"z\n\n".to_vec()];
        let shape = async |storage: &Storage, secret: &str| -> Vec<usize> {
            storage.steps(&door, Way::Isolate, secret, &pieces).await.iter().map(Vec::len).collect()
        };
        for storage in &storages {
            let short = shape(storage, "twelve-bytes").await;
            for secret in ["z".repeat(40), "long ".repeat(400), "w".repeat(16 << 10)] {
                assert_eq!(shape(storage, &secret).await, short, "{:?}", storage.coding);
            }
        }
    });
}

/// An event comes when it is whole, though the stream goes on.
#[test]
fn events_come_one_by_one() {
    run(async {
        let storages = [Storage::new(Coding::Events).await];
        let door = open(&storages);
        let list = ["data: one\n\n", "data: t", "wo\n\n", ": nothing\n\nevent: x\ndata: ", "three\n\n"];
        let pieces = list.map(|text| text.as_bytes().to_vec());
        for way in [Way::Isolate, Way::Proxy] {
            let steps = storages[0].steps(&door, way, KEY, &pieces).await;
            let lengths: Vec<usize> = steps.iter().map(Vec::len).collect();
            assert_eq!(lengths, [11, 11, 22, 33, 55, 55], "{way:?}");
        }
    });
}
