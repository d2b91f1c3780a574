//! Addresses in disguise. The rules allow every host; what is refused is refused for what it is.

use crate::rig;

use egress::{Code, Door, LONGEST_URL, Limits, Pass, Rules, Serve, Settings, Target, explain};
use rig::*;
use serde_json::json;
use std::net::{IpAddr, Ipv4Addr};
use std::sync::Arc;

const INNER: [Ipv4Addr; 9] = [
    Ipv4Addr::new(127, 0, 0, 1),
    Ipv4Addr::new(127, 255, 1, 2),
    Ipv4Addr::new(10, 0, 0, 1),
    Ipv4Addr::new(172, 16, 3, 4),
    Ipv4Addr::new(192, 168, 1, 1),
    Ipv4Addr::new(169, 254, 169, 254),
    Ipv4Addr::new(100, 100, 100, 200),
    Ipv4Addr::new(168, 63, 129, 16),
    Ipv4Addr::new(0, 0, 0, 0),
];

/// The ways in which parsers read one IPv4 address.
fn disguises(address: Ipv4Addr) -> Vec<String> {
    let [a, b, c, d] = address.octets();
    let number = u32::from(address);
    let low = number & 0xff_ffff;
    let wide =
        |text: &str, zero: char| {
            text.chars()
                .map(|ch| {
                    if ch.is_ascii_digit() { char::from_u32(zero as u32 + ch as u32 - '0' as u32).unwrap() } else { ch }
                })
                .collect::<String>()
        };
    let plain = address.to_string();
    let percent: String = plain.bytes().map(|byte| format!("%{byte:02x}")).collect();
    let mut out = vec![
        plain.clone(),
        format!("{plain}."),
        format!("{number}"),
        format!("{number}."),
        format!("0x{number:x}"),
        format!("0X{number:08X}"),
        format!("0x00000000{number:x}"),
        format!("0{number:o}"),
        format!("0000{number:o}"),
        format!("{a}.{low}"),
        format!("0x{a:x}.{low}"),
        format!("{a}.{b}.{}", u32::from(c) << 8 | u32::from(d)),
        format!("0{a:o}.0{b:o}.0{c:o}.0{d:o}"),
        format!("00{a:o}.00{b:o}.00{c:o}.00{d:o}"),
        format!("0x{a:x}.0x{b:x}.0x{c:x}.0x{d:x}"),
        format!("0x{a:x}.0{b:o}.{c}.{d}"),
        format!("{a}.0x{b:x}.0{c:o}.{d}"),
        wide(&plain, '\u{ff10}'),
        wide(&plain, '\u{1d7ce}'),
        wide(&plain, '\u{1d7d8}'),
        plain.replace('.', "\u{3002}"),
        plain.replace('.', "\u{ff0e}"),
        plain.replace('.', "\u{ff61}"),
        plain.replace('.', "%2e"),
        plain.replace('1', "\u{2460}").replace('2', "\u{2461}"),
        plain.replace('1', "\u{b9}").replace('2', "\u{b2}"),
        plain.replace('.', ".\u{ad}"),
        plain.replace('.', "\u{200b}."),
        percent,
        format!("\t{plain}\n"),
    ];
    let (high, rest) = (u16::from(a) << 8 | u16::from(b), u16::from(c) << 8 | u16::from(d));
    for v6 in [
        format!("::ffff:{plain}"),
        format!("::FFFF:{high:X}:{rest:X}"),
        format!("0:0:0:0:0:ffff:{high:x}:{rest:x}"),
        format!("0000:0000:0000:0000:0000:ffff:{high:04x}:{rest:04x}"),
        format!("::{plain}"),
        format!("::ffff:0:{plain}"),
        format!("64:ff9b::{plain}"),
        format!("64:ff9b:1::{plain}"),
        format!("2002:{high:x}:{rest:x}::1"),
        format!("2001::{:x}:{:x}", !high, !rest),
        format!("2001:0:{high:x}:{rest:x}::1"),
        format!("2a00::5efe:{plain}"),
        format!("2a00::200:5efe:{plain}"),
        format!("fe80::5efe:{plain}"),
    ] {
        out.push(format!("[{v6}]"));
    }
    out
}

/// Tricks that need no address, or hide one among other things. Names lead to loopback here.
const TRICKS: &[&str] = &[
    "http://localhost/",
    "http://LOCALHOST/",
    "http://localhost./",
    "http://localhost../",
    "http://foo.localhost/",
    "http://ⓛⓞⓒⓐⓛⓗⓞⓢⓣ/",
    "http://loc\u{ad}alhost/",
    "http://lOCALHOST%2e/",
    "http://metadata/",
    "http://metadata.google.internal/computeMetadata/v1/",
    "http://metadata.google.internal./",
    "http://instance-data/",
    "http://127.0.0.1.nip.io/",
    "http://7f000001.nip.io/",
    "http://www.127-0-0-1.sslip.io/",
    "http://good.example@127.0.0.1/",
    "http://good.example:80@127.0.0.1:80/",
    "http://good.example%40127.0.0.1/",
    "http://127.0.0.1\\@good.example/",
    "http://127.0.0.1#@good.example/",
    "http://127.0.0.1?@good.example/",
    "http://127.0.0.1;good.example/",
    "http://127.0.0.1,good.example/",
    "http://127.0.0.1 good.example/",
    "http://127.0.0.1%00good.example/",
    "http://127.0.0.1%0d%0ahost:good.example/",
    "http://127.0.0.1%2f.good.example/",
    "http://good.example\\.127.0.0.1/",
    "http://a:b@c:d@127.0.0.1/",
    "http://@127.0.0.1/",
    "http://:@127.0.0.1/",
    "http:127.0.0.1/",
    "http:/127.0.0.1/",
    "http:///127.0.0.1/",
    "http:\\\\127.0.0.1\\",
    "ht\ntp://127.0.0.1/",
    "http://127.\t0.0.1/",
    " http://127.0.0.1/ ",
    "\u{1}http://127.0.0.1/",
    "HTTP://127.0.0.1/",
    "//127.0.0.1/",
    "127.0.0.1",
    "http://0/",
    "http://0x/",
    "http://00/",
    "http://0.0/",
    "http://0x0.0x0/",
    "http://127.1/",
    "http://127.0.1/",
    "http://10.2.3/",
    "http://256.256.256.256/",
    "http://4294967296/",
    "http://0x100000000/",
    "http://1.2.3.4.5/",
    "http://a.127/",
    "http://a.0x7f/",
    "http://09.0.0.1/",
    "http://[::1]/",
    "http://[::]/",
    "http://[0:0:0:0:0:0:0:1]/",
    "http://[0000::0001]/",
    "http://[::1%25lo]/",
    "http://[fe80::1%25eth0]/",
    "http://[fe80::1%eth0]/",
    "http://[fd00:ec2::254]/latest/meta-data/",
    "http://[fd20:ce::254]/",
    "http://[fc00::1]/",
    "http://[ff02::1]/",
    "http://[::127.0.0.1.]/",
    "http://[::ffff:0x7f.0.0.1]/",
    "http://[v1.a]/",
    "http://[::1/",
    "http://::1/",
    "http://[]/",
    "http://[::1].example/",
    "http://255.255.255.255/",
    "http://224.0.0.1/",
    "http://192.0.0.192/opc/v2/",
    "http://198.18.0.1/",
    "http://203.0.113.9/",
    "http://240.0.0.1/",
    "http://xn--/",
    "http://xn--a/",
    "http://a..b/",
    "http://.a.b/",
    "http://-a.b/",
    "http://a-.b/",
    "http://*.example/",
    "http://a!b.example/",
    "http://%/",
    "http:///",
    "http://",
    "http:",
    "https://?",
    "http://a.example:0/",
    "http://a.example:65536/",
    "http://a.example:22/",
    "http://a.example:-80/",
    "http://a.example:80a/",
    "http://a.example:80:80/",
    "ftp://a.example/",
    "ws://a.example/",
    "wss://a.example/",
    "file:///etc/passwd",
    "file://localhost/etc/passwd",
    "gopher://127.0.0.1:6379/_x",
    "dict://127.0.0.1:11211/",
    "ldap://127.0.0.1/",
    "jar:http://127.0.0.1!/",
    "unix:///var/run/docker.sock",
    "http+unix://%2fvar%2frun%2fdocker.sock/",
    "javascript:fetch('http://127.0.0.1')",
    "view-source:http://127.0.0.1/",
    "blob:http://127.0.0.1/x",
    "",
    "/",
    "\0",
];

fn everything() -> Arc<Rules> {
    rules(&["http://*", "https://*"])
}

fn serve(names: Names) -> Door<Serve> {
    // Nothing may get as far as a connection; if it does, it ends at once and with another code.
    let limits = Limits {
        connect_ms: 500,
        rate_per_host: 100_000,
        rate_per_tenant: 100_000,
        total_ms: 2000,
        ..Limits::default()
    };
    Door::serve(Settings { limits, resolver: Arc::new(names), ..Settings::default() }).unwrap()
}

#[test]
fn every_disguise_is_seen_through() {
    run(async {
        let door = serve(Names::default());
        let visit = door.visit(Pass::new("t", "d", everything()));
        let mut urls: Vec<String> = INNER
            .into_iter()
            .flat_map(disguises)
            .flat_map(|host| [format!("http://{host}/"), format!("https://{host}/x?y")])
            .collect();
        urls.extend(TRICKS.iter().map(|trick| (*trick).to_owned()));
        assert!(urls.len() > 600, "{}", urls.len());
        for (id, url) in urls.iter().enumerate() {
            let decision = door.explain(&everything(), url, "GET").await;
            assert!(!decision.allowed, "{url:?}: {}", decision.reason);
            let denied = fetch(&visit, id as u64, url, json!({})).await.expect_err(url);
            assert!(matches!(denied.code, Code::Denied | Code::Invalid), "{url:?}: {denied:?}");
            assert!(!denied.message.chars().any(char::is_control), "{url:?}: {denied:?}");
        }
        assert!(visit.hosts_reached().is_empty());
    });
}

/// Without looking anything up, what is written out as an address is refused already.
#[test]
fn addresses_are_refused_by_rules_alone_too() {
    let mut refused = 0;
    for url in INNER.into_iter().flat_map(disguises).map(|host| format!("http://{host}/")) {
        let decision = explain(&everything(), &url, "GET");
        refused += usize::from(!decision.allowed);
        assert!(!decision.allowed, "{url:?}: {}", decision.reason);
    }
    assert!(refused > 300);
    let decision = explain(&everything(), "https://good.example/", "GET");
    assert!(decision.allowed && decision.rule.as_deref() == Some("https://*"), "{decision:?}");
}

#[test]
fn good_addresses_pass() {
    run(async {
        let public: &[&str] = &["93.184.216.34", "2606:2800:220:1::1"];
        let names =
            Names::default().say("good.example", &[public]).say("only6.example", &[&["64:ff9b::93.184.216.34"]]);
        let door = serve(names);
        for url in ["https://good.example/x", "http://GOOD.example:80/", "https://only6.example/", "https://8.8.8.8/"] {
            let decision = door.explain(&everything(), url, "GET").await;
            assert!(decision.allowed, "{url}: {}", decision.reason);
        }
    });
}

#[test]
fn one_bad_address_spoils_the_name() {
    run(async {
        let mixed: &[&[&str]] = &[
            &["93.184.216.34", "10.0.0.1"],
            &["10.0.0.1", "93.184.216.34"],
            &["93.184.216.34", "::1"],
            &["2606:2800:220:1::1", "93.184.216.34", "169.254.169.254"],
            &["::ffff:93.184.216.34"],
            &["93.184.216.34", "64:ff9b::a00:1"],
            &[],
        ];
        for answer in mixed {
            let names = Names::default().say("mixed.example", &[answer]);
            let door = serve(names);
            let decision = door.explain(&everything(), "https://mixed.example/", "GET").await;
            assert!(!decision.allowed, "{answer:?}");
            let visit = door.visit(Pass::new("t", "d", everything()));
            assert!(fetch(&visit, 1, "https://mixed.example/", json!({})).await.is_err());
        }
        let flood: Vec<String> = (0..65).map(|n| format!("93.184.216.{n}")).collect();
        let flood: Vec<&str> = flood.iter().map(String::as_str).collect();
        let door = serve(Names::default().say("flood.example", &[&flood]));
        assert!(!door.explain(&everything(), "https://flood.example/", "GET").await.allowed);
    });
}

#[test]
fn a_name_that_changes_its_mind() {
    run(async {
        let server = Server::raw(|_| {
            let mut response = ok("x");
            response.splice(15..15, b"\r\nconnection: close".iter().copied());
            response
        })
        .await;
        let port = server.port;
        let answers: &[&[&str]] = &[&["127.0.0.1"], &["10.0.0.1"], &["127.0.0.1"], &["169.254.169.254"]];
        let names = Arc::new(Names::default().say("flip.example", answers));
        let settings = Settings { resolver: names.clone(), ..Settings::default() };
        let door = Door::dev(vec![port], settings).unwrap();
        let visit = door.visit(pass(&[port]));
        let url = format!("http://flip.example:{port}/");
        let mut outcomes = Vec::new();
        for id in 0..4 {
            outcomes.push(get(&visit, id, &url).await.map_err(|denied| denied.code).is_ok());
        }
        assert_eq!(outcomes, [true, false, true, false]);
        assert_eq!(names.asked().len(), 4, "one question for each connection");
        assert_eq!(server.connections(), 2);
    });
}

#[test]
fn loopback_is_for_named_ports_of_a_development_door_only() {
    run(async {
        let open = Server::says(ok("in")).await;
        let shut = Server::says(ok("in")).await;
        let ports = [open.port, shut.port];
        let dev = door(&[open.port], Limits::default()).visit(pass(&ports));
        for host in ["127.0.0.1", "localhost", "127.1", "a.example"] {
            let id = host.len() as u64;
            assert_eq!(get(&dev, id, &format!("http://{host}:{}/", open.port)).await.unwrap().1, "in", "{host}");
            let denied = fetch(&dev, id + 100, &format!("http://{host}:{}/", shut.port), json!({})).await.unwrap_err();
            assert_eq!(denied.code, Code::Denied, "{host}");
        }
        // A disguise is none of loopback's names.
        for host in ["[::ffff:127.0.0.1]", "[64:ff9b::127.0.0.1]", "[2002:7f00:1::]", "10.0.0.1", "0.0.0.0"] {
            let denied = fetch(&dev, 7, &format!("http://{host}:{}/", open.port), json!({})).await.unwrap_err();
            assert_eq!(denied.code, Code::Denied, "{host}");
        }
        // And a serving door has no such ports, whatever it is asked.
        let visit = serve(Names::default()).visit(pass(&ports));
        let before = open.connections();
        for port in ports {
            for host in ["127.0.0.1", "localhost", "[::1]", "a.example"] {
                let denied = fetch(&visit, 1, &format!("http://{host}:{port}/"), json!({})).await.unwrap_err();
                assert_eq!(denied.code, Code::Denied, "{host}");
            }
        }
        assert_eq!((open.connections(), shut.connections()), (before, 0));
        assert_ne!(std::any::TypeId::of::<Door<Serve>>(), std::any::TypeId::of::<Door<egress::Dev>>());
    });
}

#[test]
fn addresses_that_the_operator_refuses() {
    run(async {
        let deny = vec![(IpAddr::V4(Ipv4Addr::new(93, 184, 216, 0)), 24)];
        let settings = Settings { deny, resolver: Arc::new(Names::default()), ..Settings::default() };
        let door = Door::serve(settings).unwrap();
        for url in ["https://93.184.216.34/", "https://[64:ff9b::93.184.216.34]/"] {
            let decision = door.explain(&everything(), url, "GET").await;
            assert!(!decision.allowed && decision.reason.contains("operator"), "{decision:?}");
        }
        assert!(door.explain(&everything(), "https://93.184.217.34/", "GET").await.allowed);
    });
}

/// The bound is for the URL that is sent: a letter takes more bytes there than where it was asked for.
#[test]
fn a_url_that_grows_when_it_is_written_out() {
    for letters in LONGEST_URL / 6 - 8..LONGEST_URL / 6 + 8 {
        let asked = format!("http://a.example/{}", "é".repeat(letters));
        match Target::parse(&asked) {
            Ok(target) => assert_eq!(Target::parse(&target.to_string()).unwrap(), target),
            Err(denied) => assert_eq!(denied.code, Code::Invalid),
        }
    }
}
