//! The door in a network where every address there is would answer: what is refused is never connected to.

use crate::rig;

use egress::{Code, Door, Limits, Pass, RANGES, Serve, Settings, Visit, classify};
use rig::space::{Has, Space, Zone, inside};
use rig::*;
use serde::Deserialize;
use serde_json::json;
use std::collections::HashMap;
use std::net::{IpAddr, Ipv4Addr, Ipv6Addr};
use tokio::net::TcpStream;

const PUBLIC: IpAddr = IpAddr::V4(Ipv4Addr::new(93, 184, 216, 34));

/// As a host has it: the machine's own resolver, and no port of loopback.
fn real() -> (Door<Serve>, Visit) {
    let many = 1_000_000;
    let limits = Limits { rate_per_host: many, rate_per_tenant: many, ..Limits::default() };
    let door = Door::serve(Settings { limits, ..Settings::default() }).unwrap();
    let visit = door.visit(Pass::new("tenant", "deployment", rules(&["http://*", "https://*"])));
    (door, visit)
}

fn zone(entries: &[(&str, &[&[&str]])]) -> Zone {
    let set = |set: &&[&str]| Has::Addresses(set.iter().map(|text| text.parse().unwrap()).collect());
    entries.iter().map(|(name, sets)| ((*name).to_owned(), sets.iter().map(set).collect())).collect()
}

/// Every address has somebody who would count.
async fn everybody_listens(space: &Space, addresses: &[IpAddr]) {
    for address in addresses {
        drop(TcpStream::connect((*address, 80)).await.unwrap_or_else(|error| panic!("{address}: {error}")));
    }
    let reached: Vec<IpAddr> = space.reached().await.iter().map(|at| at.ip()).collect();
    assert_eq!(reached, addresses);
}

#[test]
fn a_name_that_changes_its_mind() {
    if !inside("a_name_that_changes_its_mind") {
        return;
    }
    run(async {
        let space = Space::new().await;
        everybody_listens(&space, &[PUBLIC, LOOPBACK, "10.0.0.1".parse().unwrap(), "fd00::1".parse().unwrap()]).await;
        let (door, visit) = real();
        for (id, inner) in
            ["127.0.0.1", "10.0.0.1", "169.254.169.254", "0.0.0.0", "::1", "fd00::1"].into_iter().enumerate()
        {
            let name = format!("rebind{id}.example");
            space.set(zone(&[(&name, &[&["93.184.216.34"], &[inner], &["93.184.216.34"], &[inner]])]));
            let url = format!("http://{name}/");
            // The address that was checked is the address that is connected to: there is no second question.
            assert_eq!(get(&visit, 1, &url).await.unwrap().1, "93.184.216.34");
            assert_eq!(space.asked(&name), 1);
            door.forget("tenant", "deployment");
            assert_eq!(get(&visit, 2, &url).await.unwrap_err().code, Code::Denied, "{inner}");
            assert_eq!(space.asked(&name), 2);
            // By redirect to itself, which is a new connection after the last one was closed.
            space.set(zone(&[(&name, &[&["93.184.216.34"], &[inner]])]));
            let denied = get(&visit, 3, &format!("http://{name}/to?http://{name}/")).await;
            assert!(denied.is_err_and(|denied| denied.code == Code::Denied || denied.code == Code::Network));
            let reached = space.reached().await;
            assert!(!reached.is_empty() && reached.iter().all(|at| at.ip() == PUBLIC), "{inner}: {reached:?}");
        }
    });
}

/// One address of each range, and every IPv6 form of those of IPv4.
fn forbidden() -> Vec<IpAddr> {
    let mut all = Vec::new();
    for range in RANGES {
        all.push(range.network);
        if let IpAddr::V4(v4) = range.network {
            let [a, b, c, d] = v4.octets().map(u16::from);
            let (high, low) = (a << 8 | b, c << 8 | d);
            all.extend(
                [
                    Ipv6Addr::new(0, 0, 0, 0, 0, 0xffff, high, low),
                    Ipv6Addr::new(0x64, 0xff9b, 0, 0, 0, 0, high, low),
                    Ipv6Addr::new(0x2002, high, low, 0, 0, 0, 0, 1),
                    Ipv6Addr::new(0x2001, 0, 0x808, 0x808, 0, 0xffff, !high, !low),
                    Ipv6Addr::new(0x2a00, 1, 2, 3, 0, 0x5efe, high, low),
                ]
                .map(IpAddr::V6),
            );
        }
    }
    all
}

#[test]
fn redirects_to_every_refused_range() {
    if !inside("redirects_to_every_refused_range") {
        return;
    }
    run(async {
        let space = Space::new().await;
        let inner: Vec<IpAddr> = ["10.0.0.1", "169.254.169.254", "192.168.0.1", "fd00:ec2::254", "2002:a00:1::1"]
            .iter()
            .map(|text| text.parse().unwrap())
            .collect();
        everybody_listens(&space, &inner).await;
        let (_door, visit) = real();
        let forbidden = forbidden();
        assert!(forbidden.len() > 150);
        for (id, address) in forbidden.iter().enumerate() {
            let name = format!("inner{id}.example");
            let zone = [
                ("front.example".to_owned(), vec![Has::Addresses(vec![PUBLIC])]),
                (name.clone(), vec![Has::Name("alias.example".to_owned())]),
                ("alias.example".to_owned(), vec![Has::Addresses(vec![*address])]),
            ];
            space.set(zone.into_iter().collect());
            let literal = match address {
                IpAddr::V4(v4) => v4.to_string(),
                IpAddr::V6(v6) => format!("[{v6}]"),
            };
            for to in [format!("http://{literal}/"), format!("https://{literal}/"), format!("http://{name}/")] {
                let denied = get(&visit, 1, &format!("http://front.example/to?{to}")).await.expect_err(&to);
                // The C library makes IPv4 of a mapped address, and leaves out some that are none for it.
                let unknown = to.contains(&name) && denied.code == Code::Network;
                assert!(denied.code == Code::Denied || unknown, "{to}: {denied}");
            }
            let reached = space.reached().await;
            assert!(!reached.is_empty() && reached.iter().all(|at| at.ip() == PUBLIC), "{address}: {reached:?}");
        }
    });
}

#[derive(Deserialize)]
struct Case {
    url: String,
    #[serde(default)]
    dns: HashMap<String, serde_json::Value>,
    expect: String,
}

/// All of data/ssrf.json that fits into a packet of DNS, sent for real.
#[test]
fn every_trick_end_to_end() {
    if !inside("every_trick_end_to_end") {
        return;
    }
    run(async {
        let space = Space::new().await;
        let (_door, visit) = real();
        let cases: Vec<Case> = serde_json::from_str(include_str!("data/ssrf.json")).unwrap();
        let (mut sent, mut refused) = (0, 0);
        for case in cases {
            let has = |value: &serde_json::Value| match value.as_str() {
                Some(name) => Has::Name(name.to_owned()),
                None => Has::Addresses(serde_json::from_value(value.clone()).unwrap()),
            };
            let zone: Zone = case.dns.iter().map(|(name, value)| (name.clone(), vec![has(value)])).collect();
            let long = zone.values().flatten().any(|has| matches!(has, Has::Addresses(list) if list.len() > 8));
            if long || zone.len() > 6 {
                continue;
            }
            space.set(zone);
            let outcome = fetch(&visit, 1, &case.url, json!({ "redirect": "manual" })).await;
            cancel(&visit, 1, "request").await;
            let reached = space.reached().await;
            if case.expect == "allowed" {
                sent += 1;
                assert!(!reached.is_empty(), "{}: {outcome:?}", case.url);
                assert!(reached.iter().all(|at| classify(at.ip()).is_ok()), "{}: {reached:?}", case.url);
            } else {
                refused += 1;
                assert!(outcome.is_err() && reached.is_empty(), "{}: {outcome:?} {reached:?}", case.url);
            }
        }
        assert!(sent >= 60 && refused >= 600, "{sent} sent, {refused} refused");
    });
}
