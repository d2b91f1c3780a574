//! Masking tells nothing about a secret to code that stores guesses upstream and reads them back.

use crate::rig;

use base64::Engine;
use egress::{Binding, Bindings, Bound, Denied, Dev, Door, Limits, Pattern, Place, Secrets, Visit};
use futures_util::future::BoxFuture;
use rig::proxy::Proxy;
use rig::*;
use secrecy::SecretString;
use serde_json::json;
use std::io::Write;
use std::sync::{Arc, Mutex};
use std::time::Duration;
use tokio::io::{AsyncReadExt, AsyncWriteExt};
use tokio::time::Instant;

const KEY: &str = "k7Qz+m/9pXw=R2vB";
/// Between two pieces of the server, on the virtual clock.
const PAUSE: Duration = Duration::from_millis(10);

struct Store(String);

impl Secrets for Store {
    fn get<'a>(&'a self, _: &'a str) -> BoxFuture<'a, Result<Option<SecretString>, Denied>> {
        Box::pin(async { Ok(Some(SecretString::from(self.0.clone()))) })
    }
}

fn open(port: u16) -> Door<Dev> {
    door(&[port], Limits { rate_per_tenant: 1_000_000, rate_per_host: 1_000_000, ..Limits::default() })
}

fn visit_of(door: &Door<Dev>, port: u16, secret: &str) -> Visit {
    let mut pass = pass(&[port]);
    let host = Pattern::parse(&format!("http://a.example:{port}")).unwrap();
    let binding = Binding::new("KEY", vec![host], Place::Header(http::HeaderName::from_static("x-key")));
    pass.credentials = Arc::new(Bound::new(Bindings::new(vec![binding]).unwrap(), Arc::new(Store(secret.to_owned()))));
    door.visit(pass)
}

#[derive(Clone, Copy, Debug, PartialEq)]
enum Coding {
    Plain,
    Gzip,
    Events,
}

type Pieces = Arc<Mutex<Vec<Vec<u8>>>>;

/// Sends what is stored, piece by piece with a pause after each.
async fn storage(coding: Coding, pieces: Pieces) -> Server {
    Server::each(move |mut stream, _| {
        let pieces = pieces.clone();
        async move {
            while rig::request(&mut stream).await.is_some() {
                let pieces = pieces.lock().unwrap().clone();
                let kind = match coding {
                    Coding::Plain => "content-type: text/plain",
                    Coding::Gzip => "content-encoding: gzip",
                    Coding::Events => "content-type: text/event-stream; charset=utf-8",
                };
                let head = format!("HTTP/1.1 200 OK\r\n{kind}\r\ntransfer-encoding: chunked\r\n\r\n");
                stream.write_all(head.as_bytes()).await.unwrap();
                let mut encoder = flate2::write::GzEncoder::new(Vec::new(), flate2::Compression::fast());
                for piece in pieces {
                    let mut bytes = piece;
                    if coding == Coding::Gzip {
                        encoder.write_all(&bytes).unwrap();
                        encoder.flush().unwrap();
                        bytes = std::mem::take(encoder.get_mut());
                    }
                    let chunk = [format!("{:x}\r\n", bytes.len()).as_bytes(), &bytes, b"\r\n"].concat();
                    if stream.write_all(&chunk).await.is_err() {
                        return;
                    }
                    tokio::time::sleep(PAUSE).await;
                }
                let rest = if coding == Coding::Gzip { encoder.finish().unwrap() } else { Vec::new() };
                if !rest.is_empty() {
                    let chunk = [format!("{:x}\r\n", rest.len()).as_bytes(), &rest, b"\r\n"].concat();
                    stream.write_all(&chunk).await.unwrap();
                }
                stream.write_all(b"0\r\n\r\n").await.unwrap();
            }
        }
    })
    .await
}

/// When bytes came, counted from the first, and which.
type Transcript = Vec<(Duration, Vec<u8>)>;

fn note(transcript: &mut Transcript, since: Instant, bytes: &[u8]) {
    let at = since.elapsed();
    match transcript.last_mut() {
        Some((last, all)) if *last == at => all.extend(bytes),
        _ => transcript.push((at, bytes.to_vec())),
    }
}

async fn through_isolate(door: &Door<Dev>, server: &Server, secret: &str) -> Transcript {
    let visit = visit_of(door, server.port, secret);
    fetch(&visit, 1, &server.url("/"), json!({})).await.unwrap();
    let (since, mut out) = (Instant::now(), Vec::new());
    while let Some(chunk) = piece(&visit, 1).await.unwrap() {
        // The length of each piece is what the code inside sees.
        note(&mut out, since, format!("[{}]", chunk.len()).as_bytes());
        note(&mut out, since, &chunk);
    }
    note(&mut out, since, b"[end]");
    out
}

async fn through_proxy(door: &Door<Dev>, server: &Server, secret: &str) -> Transcript {
    let proxy = Proxy::new(visit_of(door, server.port, secret), None).await;
    let mut stream = proxy.dial().await;
    let ask = format!("GET {} HTTP/1.1\r\nhost: a.example:{}\r\n\r\n", server.url("/"), server.port);
    stream.write_all(ask.as_bytes()).await.unwrap();
    rig::proxy::head(&mut stream).await;
    let (since, mut out, mut buffer) = (Instant::now(), Vec::new(), vec![0; 1 << 16]);
    loop {
        let read = stream.read(&mut buffer).await.unwrap();
        assert!(read > 0, "the proxy closed early, after {:?}: {:?}", since.elapsed(), shape(&out));
        note(&mut out, since, &buffer[..read]);
        if buffer[..read].ends_with(b"0\r\n\r\n") {
            return out;
        }
    }
}

/// A clock that moves only while everything waits, so that each moment has a number.
fn virtually<T>(test: impl Future<Output = T>) -> T {
    let runtime = tokio::runtime::Builder::new_current_thread().enable_all().start_paused(true).build().unwrap();
    runtime.block_on(test)
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

/// The guess under another name, so that two transcripts can be compared byte by byte.
fn anonymous(transcript: &Transcript, guess: &str) -> Transcript {
    let all: Vec<u8> = transcript.iter().flat_map(|(_, bytes)| bytes.clone()).collect();
    let mut same = all.clone();
    let text = String::from_utf8_lossy(&all).into_owned();
    for (at, _) in text.match_indices(guess) {
        same[at..at + guess.len()].fill(b'?');
    }
    let mut rest = &same[..];
    let mut out = Vec::new();
    for (at, bytes) in transcript {
        let (now, later) = rest.split_at(bytes.len());
        out.push((*at, now.to_vec()));
        rest = later;
    }
    out
}

/// Neither the bytes nor the moments at which they come tell a guess that begins the secret from one that does not.
#[test]
fn a_right_guess_looks_like_a_wrong_one() {
    for coding in [Coding::Plain, Coding::Gzip, Coding::Events] {
        for cut in 0..cuts("").len() {
            virtually(compare(coding, cut));
        }
    }
}

async fn compare(coding: Coding, cut: usize) {
    let pieces: Pieces = Arc::default();
    let server = storage(coding, pieces.clone()).await;
    let door = open(server.port);
    // Guesses as text and in base64, which the mask knows too.
    let base64 = base64::engine::general_purpose::STANDARD.encode(KEY);
    for whole in [KEY, &base64[..20]] {
        for length in [1, 2, 7, whole.len() - 2, whole.len() - 1] {
            let right = &whole[..length];
            let wrong = format!("{}#", &right[..length - 1]);
            let mut seen = Vec::new();
            for guess in [right, &wrong] {
                *pieces.lock().unwrap() = cuts(guess).swap_remove(cut);
                let isolate = anonymous(&through_isolate(&door, &server, KEY).await, guess);
                let proxy = anonymous(&through_proxy(&door, &server, KEY).await, guess);
                seen.push([isolate, proxy]);
            }
            for (path, (right_seen, wrong_seen)) in ["isolate", "proxy"].iter().zip(seen[0].iter().zip(&seen[1])) {
                let (one, two) = (shape(right_seen), shape(wrong_seen));
                assert_eq!(one, two, "{path}, {coding:?}, cut {cut}, {right:?}");
                assert!(right_seen == wrong_seen, "{path}, {coding:?}, cut {cut}, {right:?}: other bytes");
            }
        }
    }
}

fn shape(transcript: &Transcript) -> Vec<(u128, usize)> {
    transcript.iter().map(|(at, bytes)| (at.as_millis(), bytes.len())).collect()
}

/// Not even the length of the secret shows.
#[test]
fn secrets_of_all_lengths_hold_back_the_same() {
    virtually(async {
        for coding in [Coding::Plain, Coding::Events] {
            let pieces: Pieces = Arc::default();
            let server = storage(coding, pieces.clone()).await;
            let text = vec![b"one\n\n".to_vec(), vec![b'x'; 5000], vec![b'y'; 200_000], b"z\n\n".to_vec()];
            *pieces.lock().unwrap() = text;
            let door = open(server.port);
            let short = through_isolate(&door, &server, "twelve-bytes").await;
            for secret in ["z".repeat(40), "long ".repeat(400), "w".repeat(16 << 10)] {
                assert_eq!(shape(&through_isolate(&door, &server, &secret).await), shape(&short), "{coding:?}");
            }
        }
    });
}

/// An event comes when it is whole, though the stream goes on.
#[test]
fn events_come_one_by_one() {
    virtually(async {
        let pieces: Pieces = Arc::default();
        let server = storage(Coding::Events, pieces.clone()).await;
        let list = ["data: one\n\n", "data: t", "wo\r\n\r\n", ": nothing\n\nevent: x\ndata: ", "three\n\n"];
        *pieces.lock().unwrap() = list.map(|text| text.as_bytes().to_vec()).to_vec();
        let visit = visit_of(&open(server.port), server.port, KEY);
        fetch(&visit, 1, &server.url("/"), json!({})).await.unwrap();
        let (since, mut out) = (Instant::now(), Vec::new());
        while let Some(chunk) = piece(&visit, 1).await.unwrap() {
            // A timer that ends together with the pause may add a moment.
            let pauses = since.elapsed().as_millis() / PAUSE.as_millis();
            out.push((pauses, String::from_utf8(chunk.to_vec()).unwrap()));
        }
        let want =
            [(0, "data: one\n\n"), (2, "data: two\r\n\r\n"), (3, ": nothing\n\n"), (4, "event: x\ndata: three\n\n")];
        assert_eq!(out, want.map(|(at, text)| (at, text.to_owned())));
    });
}
