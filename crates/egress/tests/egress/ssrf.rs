//! Every known trick to reach what nobody reaches: data/ssrf.json. The rules allow every host; what is refused is refused for what it is.

use crate::rig;

use egress::{Door, Lookup, RANGES, Resolve, Settings, Target, classify};
use rig::*;
use serde::Deserialize;
use std::collections::{BTreeSet, HashMap};
use std::io;
use std::net::IpAddr;
use std::sync::{Arc, Mutex};

#[derive(Deserialize)]
#[serde(deny_unknown_fields)]
struct Case {
    trick: String,
    url: String,
    #[serde(default)]
    dns: HashMap<String, Answer>,
    /// `allowed`, or words of the reason.
    expect: String,
}

#[derive(Clone, Deserialize)]
#[serde(untagged)]
enum Answer {
    Addresses(Vec<IpAddr>),
    /// It is another name for this one.
    Name(String),
}

fn cases() -> Vec<Case> {
    serde_json::from_str(include_str!("data/ssrf.json")).unwrap()
}

/// Follows names as a resolver does.
fn follow(zone: &HashMap<String, Answer>, name: &str) -> Option<Vec<IpAddr>> {
    let mut name = name;
    for _ in 0..16 {
        match zone.get(name)? {
            Answer::Addresses(addresses) => return Some(addresses.clone()),
            Answer::Name(next) => name = next,
        }
    }
    None
}

/// What names lead to in the case at hand.
#[derive(Default)]
struct Staged(Mutex<HashMap<String, Answer>>);

impl Resolve for Staged {
    fn resolve(&self, name: &str) -> Lookup {
        let found = follow(&self.0.lock().unwrap(), name).ok_or_else(|| io::Error::other("no such name"));
        Box::pin(async move { found })
    }
}

#[test]
fn every_trick_is_decided_as_expected() {
    let cases = cases();
    assert!(cases.len() >= 600, "{} cases", cases.len());
    run(async {
        let staged = Arc::new(Staged::default());
        let door = Door::serve(Settings { resolver: staged.clone(), ..Settings::default() }).unwrap();
        let all = rules(&["http://*", "https://*"]);
        let mut wrong = Vec::new();
        for case in &cases {
            *staged.0.lock().unwrap() = case.dns.clone();
            let decision = door.explain(&all, &case.url, "GET").await;
            let met = match case.expect.as_str() {
                "allowed" => decision.allowed,
                words => !decision.allowed && decision.reason.contains(words),
            };
            if !met {
                let (trick, url) = (&case.trick, &case.url);
                wrong.push(format!("{trick}: {url:?} should be {:?}, is: {}", case.expect, decision.reason));
            }
        }
        assert!(wrong.is_empty(), "{} of {}:\n{}", wrong.len(), cases.len(), wrong.join("\n"));
    });
}

/// The classifier alone says the same of the addresses that a case leads to.
#[test]
fn the_classifier_agrees() {
    let mut asked = 0;
    for case in cases() {
        let Ok(target) = Target::parse(&case.url) else { continue };
        let addresses = match &target.origin.host {
            egress::Host::Address(address) => vec![*address],
            egress::Host::Name(name) => follow(&case.dns, name).unwrap_or_default(),
        };
        let reasons: Vec<String> =
            addresses.iter().filter_map(|address| classify(*address).err()).map(|why| why.to_string()).collect();
        if case.expect == "allowed" {
            assert!(reasons.is_empty(), "{}: {reasons:?}", case.url);
        } else if !reasons.is_empty() && !case.expect.starts_with("no rule") && !case.expect.contains("port") {
            assert!(reasons.iter().any(|why| why.contains(&case.expect)), "{}: {reasons:?}", case.url);
        }
        asked += usize::from(!addresses.is_empty());
    }
    assert!(asked >= 400, "{asked} cases lead to addresses");
}

#[test]
fn every_range_has_its_cases_and_none_is_there_twice() {
    let cases = cases();
    for range in RANGES {
        let named = cases.iter().filter(|case| case.expect.contains(&format!("({range}, "))).count();
        assert!(named >= 3, "{range}: {named}");
    }
    let mut seen = BTreeSet::new();
    for case in &cases {
        let mut names: Vec<_> = case.dns.keys().cloned().collect();
        names.sort();
        let said = names.iter().map(|name| match &case.dns[name] {
            Answer::Name(next) => next.clone(),
            Answer::Addresses(list) => format!("{list:?}"),
        });
        assert!(seen.insert((case.url.clone(), said.collect::<String>())), "{} is there twice", case.url);
    }
}
