//! Logs and records.

use crate::support::fake::{Asked, FakeHost, json as answer, text};
use crate::support::{Dir, bulkhead};
use crate::{always, output, prepared, run};
use insta::assert_snapshot;
use serde_json::{Value, json};

#[test]
fn logs_are_lines() {
    let host = always(|| {
        let line = json!({ "time": "2026-07-28T09:30:00.125Z", "call": "1-1", "level": "info", "text": "a\nb\x1b[2J" });
        text("application/x-ndjson", &format!("{line}\n\n{{\"lost\":true}}\n"))
    });
    let plain = run(&host, ["logs", "acme/prices", "--tail", "5", "-f"]);
    assert_eq!(plain.code, 0);
    assert_snapshot!(plain.stdout, @r"
    2026-07-28T09:30:00.125Z  info     a
      b\u{1b}[2J
    (lines were lost: they came too quickly)
    ");
    assert_eq!(host.asked()[0].target, "/admin/v1/tenants/acme/servers/prices/logs?tail=5&follow=true");
    let json = run(&host, ["logs", "acme/prices", "--json"]);
    let lines: Vec<Value> = json.stdout.lines().map(|line| serde_json::from_str(line).unwrap()).collect();
    assert_eq!((lines.len(), lines[0]["text"].as_str()), (2, Some("a\nb\x1b[2J")));
    assert_eq!(prepared(&host, ["logs", "acme/prices"]).into_closed_pipe().code, 0);
}

#[test]
fn calls_are_a_table_or_lines_of_json() {
    let call = |name: &str| json!({ "time": "2026-07-28T09:30:00.125Z", "server": "prices", "method": "tools/call", "name": name, "outcome": "ok", "cpu_us": 1234, "time_us": 5678, "peak_memory_kb": 9, "caller": "k1" });
    let host = FakeHost::start(move |asked: &Asked| match asked.target.contains("cursor=more") {
        false => answer(200, json!({ "calls": [call("a"), call("b")], "next": "more" })),
        true => answer(200, json!({ "calls": [call("c")], "next": null })),
    });
    let plain = run(&host, ["calls", "acme", "--server", "prices", "--outcome", "ok", "--limit", "3"]);
    assert_snapshot!(plain.stdout, @r"
    time                      server            what                      outcome             cpu ms        ms       KiB  caller
    2026-07-28T09:30:00.125Z  prices            a                         ok                     1.2       5.7         9  k1
    2026-07-28T09:30:00.125Z  prices            b                         ok                     1.2       5.7         9  k1
    2026-07-28T09:30:00.125Z  prices            c                         ok                     1.2       5.7         9  k1
    ");
    let targets: Vec<_> = host.asked().into_iter().map(|asked| asked.target).collect();
    assert_eq!(targets[0], "/admin/v1/tenants/acme/calls?server=prices&outcome=ok&limit=3");
    assert_eq!(targets[1], "/admin/v1/tenants/acme/calls?server=prices&outcome=ok&limit=1&cursor=more");
    let json = run(&host, ["calls", "acme", "--json"]);
    assert_eq!(json.stdout.lines().count(), 3);
    assert!(json.stdout.lines().all(|line| serde_json::from_str::<Value>(line).unwrap()["cpu_us"] == 1234));
}

#[test]
fn an_audit_log_that_is_not_there_is_no_sound_one() {
    let dir = Dir::new();
    let run = bulkhead(["audit-log", "verify", "--data", dir.path("nowhere").to_str().unwrap(), "--json"]);
    assert_ne!(run.code, 0, "{run:?}");
    assert!(output(&run)["error"]["code"].as_str().unwrap().starts_with("audit_"), "{run:?}");
}
