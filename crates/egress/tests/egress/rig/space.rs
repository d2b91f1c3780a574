//! A network of a test's own, where every address there is leads to the test itself. Nothing leaves it.
#![allow(dead_code)]

use std::collections::HashMap;
use std::net::{IpAddr, Ipv4Addr, Ipv6Addr, SocketAddr};
use std::process::{Command, Stdio};
use std::sync::{Arc, Mutex};
use std::time::{Duration, Instant};
use tokio::io::AsyncWriteExt;
use tokio::net::{TcpListener, TcpStream, UdpSocket};

const PORTS: [u16; 2] = [80, 443];
/// Reached by nobody but ourselves.
const LAST: Ipv4Addr = Ipv4Addr::new(93, 184, 216, 255);
const INSIDE: &str = "EGRESS_TEST_INSIDE";

fn works(program: &str, arguments: &[&str]) -> bool {
    let mut command = Command::new(program);
    command.args(arguments).stdin(Stdio::null()).stdout(Stdio::null()).stderr(Stdio::null());
    command.status().is_ok_and(|status| status.success())
}

/// Runs the test again in namespaces of its own, and there for real. `false`: it is over out here.
pub fn inside(name: &str) -> bool {
    if std::env::var_os(INSIDE).is_some() {
        return true;
    }
    const SPACE: [&str; 4] = ["--user", "--map-root-user", "--net", "--mount"];
    if !works("ip", &["-V"])
        || !works("unshare", &[&SPACE[..], &["--", "mount", "-t", "tmpfs", "tmpfs", "/run"]].concat())
    {
        skips::skip("needs the programs `ip`, `mount` and `unshare`, and user namespaces");
        return false;
    }
    let mut command = Command::new("unshare");
    command.args(SPACE).arg("--").arg(std::env::current_exe().unwrap());
    command
        .args(["--exact", &format!("network::{name}"), "--nocapture"])
        .env(INSIDE, "1")
        .stdin(Stdio::null())
        .stdout(Stdio::null());
    let mut child = command.spawn().unwrap();
    let until = Instant::now() + Duration::from_secs(120);
    let status = loop {
        match child.try_wait().unwrap() {
            Some(status) => break status,
            None if Instant::now() < until => std::thread::sleep(Duration::from_millis(10)),
            None => {
                child.kill().unwrap();
                break child.wait().unwrap();
            }
        }
    };
    assert!(status.success(), "{name} failed in its own network: {status}");
    false
}

/// Makes every address local without giving any to an interface, and names a matter of our own server.
fn lay() {
    let all: [(&str, &[&str]); 4] = [
        ("ip", &["link", "set", "lo", "up"]),
        ("ip", &["route", "add", "local", "0.0.0.0/0", "dev", "lo"]),
        ("ip", &["-6", "route", "add", "local", "::/0", "dev", "lo"]),
        ("mount", &["-t", "tmpfs", "tmpfs", "/run"]),
    ];
    for (program, arguments) in all {
        assert!(works(program, arguments), "{program} {arguments:?}");
    }
    let files = [("nsswitch.conf", "hosts: dns\n"), ("resolv.conf", "nameserver 127.0.0.1\noptions timeout:2\n")];
    for (file, text) in files {
        let (ours, theirs) = (format!("/run/{file}"), format!("/etc/{file}"));
        std::fs::write(&ours, text).unwrap();
        // Without a file, the C library asks 127.0.0.1 by itself.
        if std::fs::exists(&theirs).unwrap_or(false) {
            assert!(works("mount", &["--bind", &ours, &theirs]), "{theirs}");
        }
    }
}

/// What a name has: another name, or addresses.
#[derive(Clone)]
pub enum Has {
    Name(String),
    Addresses(Vec<IpAddr>),
}

/// Answers in turn for each name, and for each version of IP; the last one stays.
pub type Zone = HashMap<String, Vec<Has>>;

#[derive(Default)]
struct Names {
    zone: Zone,
    turns: HashMap<(String, u16), usize>,
}

pub struct Space {
    names: Arc<Mutex<Names>>,
    asked: Arc<Mutex<Vec<(String, u16)>>>,
    reached: Arc<Mutex<Vec<SocketAddr>>>,
}

impl Space {
    /// Listens at every address on ports 80 and 443, and answers for names.
    pub async fn new() -> Space {
        lay();
        let space = Space { names: Arc::default(), asked: Arc::default(), reached: Arc::default() };
        for port in PORTS {
            let listener = TcpListener::bind((Ipv6Addr::UNSPECIFIED, port)).await.unwrap();
            let reached = space.reached.clone();
            tokio::spawn(async move {
                while let Ok((mut stream, _)) = listener.accept().await {
                    let at = stream.local_addr().unwrap();
                    let at = SocketAddr::new(at.ip().to_canonical(), at.port());
                    reached.lock().unwrap().push(at);
                    if port == 443 {
                        continue;
                    }
                    tokio::spawn(async move {
                        let Some(request) = super::request(&mut stream).await else { return };
                        let path = request.split(' ').nth(1).unwrap_or_default();
                        let answer = match path.split_once("/to?") {
                            Some((_, to)) => super::redirect(302, to),
                            None => super::ok(&at.ip().to_string()),
                        };
                        // Whoever closes without saying so is asked again, and answers with a reset.
                        let answer = String::from_utf8(answer).unwrap();
                        let answer = answer.replacen("\r\n\r\n", "\r\nconnection: close\r\n\r\n", 1);
                        let _ = stream.write_all(answer.as_bytes()).await;
                    });
                }
            });
        }
        let socket = UdpSocket::bind("127.0.0.1:53").await.unwrap();
        let (names, asked) = (space.names.clone(), space.asked.clone());
        tokio::spawn(async move {
            let mut buffer = [0; 512];
            while let Ok((length, from)) = socket.recv_from(&mut buffer).await {
                if let Some((name, kind)) = question(&buffer[..length]) {
                    asked.lock().unwrap().push((name.clone(), kind));
                    let reply = reply(&buffer[..length], &records(&mut names.lock().unwrap(), &name, kind));
                    let _ = socket.send_to(&reply, from).await;
                }
            }
        });
        space
    }

    pub fn set(&self, zone: Zone) {
        *self.names.lock().unwrap() = Names { zone, turns: HashMap::new() };
    }

    /// How often addresses of IPv4 were asked for.
    pub fn asked(&self, name: &str) -> usize {
        self.asked.lock().unwrap().iter().filter(|(asked, kind)| asked == name && *kind == A).count()
    }

    /// Where connections arrived since the last time. One of our own behind them tells that there are no more.
    pub async fn reached(&self) -> Vec<SocketAddr> {
        for port in PORTS {
            drop(TcpStream::connect((LAST, port)).await.unwrap());
            while !self.reached.lock().unwrap().contains(&SocketAddr::new(LAST.into(), port)) {
                tokio::task::yield_now().await;
            }
        }
        let all = std::mem::take(&mut *self.reached.lock().unwrap());
        all.into_iter().filter(|at| at.ip() != LAST).collect()
    }
}

const A: u16 = 1;
const CNAME: u16 = 5;
const AAAA: u16 = 28;

/// Name and type of a query.
fn question(packet: &[u8]) -> Option<(String, u16)> {
    let mut at = 12;
    let mut labels = Vec::new();
    loop {
        let length = usize::from(*packet.get(at)?);
        if length == 0 {
            break;
        }
        labels.push(String::from_utf8(packet.get(at + 1..at + 1 + length)?.to_vec()).ok()?.to_lowercase());
        at += 1 + length;
    }
    let kind = u16::from_be_bytes(packet.get(at + 1..at + 3)?.try_into().ok()?);
    Some((labels.join("."), kind))
}

fn wire(name: &str) -> Vec<u8> {
    let labels = name.split('.').flat_map(|label| [&[label.len() as u8], label.as_bytes()].concat());
    labels.chain([0]).collect()
}

/// The records for a name, through all its other names. Nothing, if there is no such name.
fn records(names: &mut Names, name: &str, kind: u16) -> Option<Vec<Vec<u8>>> {
    let mut out = Vec::new();
    let mut name = name.to_owned();
    let record = |name: &str, kind: u16, data: &[u8]| {
        let head = [&kind.to_be_bytes()[..], &1_u16.to_be_bytes(), &0_u32.to_be_bytes()].concat();
        [&wire(name)[..], &head, &(data.len() as u16).to_be_bytes(), data].concat()
    };
    for _ in 0..16 {
        let answers = names.zone.get(&name)?;
        let turn = names.turns.entry((name.clone(), kind)).or_default();
        let has = &answers[(*turn).min(answers.len() - 1)];
        *turn += 1;
        match has {
            Has::Name(next) => {
                out.push(record(&name, CNAME, &wire(next)));
                name = next.clone();
            }
            Has::Addresses(list) => {
                for address in list {
                    match address {
                        IpAddr::V4(address) if kind == A => out.push(record(&name, A, &address.octets())),
                        IpAddr::V6(address) if kind == AAAA => out.push(record(&name, AAAA, &address.octets())),
                        _ => {}
                    }
                }
                return Some(out);
            }
        }
    }
    Some(out)
}

fn reply(query: &[u8], records: &Option<Vec<Vec<u8>>>) -> Vec<u8> {
    let end = 12 + query[12..].iter().position(|b| *b == 0).unwrap() + 5;
    let count = records.as_ref().map_or(0, Vec::len) as u16;
    let code = if records.is_some() { 0x80 } else { 0x83 };
    let mut out = [&query[..2], &[0x81, code, 0, 1], &count.to_be_bytes(), &[0; 4], &query[12..end]].concat();
    records.iter().flatten().for_each(|record| out.extend(record));
    out
}
