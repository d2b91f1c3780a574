//! What servers asked of the network since the host began: host by host, and what became of it.

use dashmap::DashMap;
use egress::Record;
use registry::Timestamp;
use std::collections::BTreeMap;
use std::sync::{Arc, Mutex, PoisonError};

/// Rows of one server; what finds no place in them is summed.
pub const MOST_ROWS: usize = 200;
/// Of these, such that were refused: what is asked for in vain the code can make up without end.
const MOST_DENIED: usize = MOST_ROWS / 2;
/// Longer rules are cut.
const LONGEST_RULE: usize = 200;

/// One host, one decision, one rule.
#[derive(Clone, Debug, PartialEq, Eq, PartialOrd, Ord)]
pub struct Row {
    /// Empty for URLs that cannot be read.
    pub host: String,
    pub allowed: bool,
    /// What let it through, or would have if the address were not refused.
    pub rule: Option<String>,
}

/// What all requests of a row used.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct Sum {
    pub requests: u64,
    pub bytes_up: u64,
    pub bytes_down: u64,
    /// Why the last one that did not end well did not.
    pub failed: Option<&'static str>,
    pub last_at: Timestamp,
}

impl Sum {
    fn add(&mut self, record: &Record, now: Timestamp) {
        self.requests += 1;
        self.bytes_up = self.bytes_up.saturating_add(record.bytes_up);
        self.bytes_down = self.bytes_down.saturating_add(record.bytes_down);
        self.failed = record.failed.or(self.failed);
        self.last_at = now;
    }
}

/// What one server asked for.
#[derive(Clone, Default)]
pub struct Asked {
    pub rows: BTreeMap<Row, Sum>,
    /// Further ones.
    pub others: Sum,
}

/// Where one server's requests are noted.
#[derive(Default)]
pub struct Page(Mutex<Asked>);

impl Page {
    pub fn note(&self, record: &Record, now: Timestamp) {
        let rule = record.rule.as_deref().map(|rule| rule.chars().take(LONGEST_RULE).collect());
        let row = Row { host: record.host.clone(), allowed: record.allowed, rule };
        let mut asked = self.0.lock().unwrap_or_else(PoisonError::into_inner);
        let Asked { rows, others } = &mut *asked;
        let most = if row.allowed { MOST_ROWS } else { MOST_DENIED };
        let room = rows.len() < most || rows.contains_key(&row);
        let sum = if room { rows.entry(row).or_default() } else { others };
        sum.add(record, now);
    }
}

/// All pages. They are in memory alone: the audit log has each call's hosts for good.
#[derive(Default)]
pub struct Reached(DashMap<String, Arc<Page>>);

impl Reached {
    pub fn page(&self, tenant: &str, server: &str) -> Arc<Page> {
        self.0.entry(key(tenant, server)).or_default().clone()
    }

    pub fn look(&self, tenant: &str, server: &str) -> Asked {
        let page = self.0.get(&key(tenant, server)).map(|page| page.clone());
        page.map(|page| page.0.lock().unwrap_or_else(PoisonError::into_inner).clone()).unwrap_or_default()
    }

    pub fn forget(&self, tenant: &str, server: &str) {
        self.0.remove(&key(tenant, server));
    }
}

/// Names have no slash.
fn key(tenant: &str, server: &str) -> String {
    format!("{tenant}/{server}")
}

#[cfg(test)]
mod tests {
    use super::*;

    fn record(host: &str, allowed: bool) -> Record {
        Record {
            allowed,
            method: "GET".to_owned(),
            host: host.to_owned(),
            port: 443,
            rule: allowed.then(|| "https://*.example.com".to_owned()),
            credentials: Vec::new(),
            failed: (!allowed).then_some("egress_denied"),
            status: None,
            bytes_up: 10,
            bytes_down: 100,
            masked: 0,
        }
    }

    #[test]
    fn hosts_without_end_are_summed_and_do_not_crowd_out_the_real_ones() {
        let reached = Reached::default();
        let page = reached.page("acme", "prices");
        for number in 0..1000 {
            page.note(&record(&format!("made-up-{number}"), false), 1);
        }
        for number in 0..1000 {
            page.note(&record(&format!("{number}.example.com"), true), 2);
        }
        page.note(&record("0.example.com", true), 3);
        let Asked { rows, others } = reached.look("acme", "prices");
        assert_eq!(rows.len(), MOST_ROWS);
        assert_eq!(rows.keys().filter(|row| row.allowed).count(), MOST_ROWS - MOST_DENIED);
        assert_eq!(others.requests, 2000 - MOST_ROWS as u64);
        assert_eq!((others.bytes_down, others.last_at), (others.requests * 100, 2));
        let known = rows.iter().find(|(row, _)| row.host == "0.example.com").unwrap();
        assert_eq!((known.1.requests, known.1.bytes_up, known.1.last_at, known.1.failed), (2, 20, 3, None));
        assert!(reached.look("acme", "other").rows.is_empty());
        reached.forget("acme", "prices");
        assert!(reached.look("acme", "prices").rows.is_empty());
    }

    #[test]
    fn a_long_rule_is_cut() {
        let page = Page::default();
        page.note(&Record { rule: Some("é".repeat(2000)), ..record("a", true) }, 1);
        let asked = page.0.lock().unwrap().clone();
        let rule = asked.rows.keys().next().unwrap().rule.clone().unwrap();
        assert_eq!(rule.chars().count(), LONGEST_RULE);
    }
}
