//! The tables in docs/authoring.md name every code of failure, and none that does not exist.

use sandbox::Code;
use std::collections::BTreeSet;

const PAGE: &str = include_str!("../../../docs/authoring.md");

fn section(heading: &str) -> &'static str {
    let start = PAGE.find(heading).unwrap_or_else(|| panic!("the page has no section `{}`", heading.trim()));
    let body = &PAGE[start + heading.len()..];
    body.split("\n## ").next().unwrap_or(body)
}

fn rows(heading: &str) -> impl Iterator<Item = Vec<&'static str>> {
    let lines = section(heading).lines().filter(|line| line.starts_with("| `"));
    lines.map(|line| line.trim_matches('|').split('|').map(str::trim).collect())
}

fn code(name: &str) -> Option<Code> {
    serde_json::from_value(name.trim_matches('`').into()).ok()
}

/// Each code leads to the next. A new one does not compile here until it has its place, and its row on the page.
fn after(code: Code) -> Option<Code> {
    Some(match code {
        Code::CpuLimit => Code::TimeLimit,
        Code::TimeLimit => Code::MemoryLimit,
        Code::MemoryLimit => Code::ResultLimit,
        Code::ResultLimit => Code::LogLimit,
        Code::LogLimit => Code::HostCallLimit,
        Code::HostCallLimit => Code::ArgumentLimit,
        Code::ArgumentLimit => Code::BadArguments,
        Code::BadArguments => Code::ToolError,
        Code::ToolError => Code::UnknownTool,
        Code::UnknownTool => Code::InitFailed,
        Code::InitFailed => Code::SurfaceDrift,
        Code::SurfaceDrift => Code::InitLimit,
        Code::InitLimit => Code::JailViolation,
        Code::JailViolation => Code::ProtocolViolation,
        Code::ProtocolViolation => Code::Crashed,
        Code::Crashed => Code::CompartmentLost,
        Code::CompartmentLost => Code::Cancelled,
        Code::Cancelled => Code::Busy,
        Code::Busy => Code::WallUnavailable,
        Code::WallUnavailable => return None,
    })
}

#[test]
fn every_code_has_its_row() {
    let documented: Vec<_> = rows("\n## Errors\n").map(|row| row[0].trim_matches('`')).collect();
    let known: Vec<_> = std::iter::successors(Some(Code::CpuLimit), |code| after(*code)).collect();
    let names: Vec<_> = known.iter().map(|code| code.as_str()).collect();
    assert_eq!(documented, names, "one row for each code, in the same order");
    assert_eq!(names.iter().collect::<BTreeSet<_>>().len(), names.len(), "no name is there twice");
    for known in known {
        assert_eq!(code(known.as_str()), Some(known), "the name is the serialised form");
    }
}

/// Those that hold a program while it runs it sees itself, and no call ends by them.
#[test]
fn every_limit_leads_to_a_code() {
    for row in rows("\n## Limits\n").filter(|row| !row[4].ends_with("; wall `process`")) {
        let named = row[5].split_once('`').map(|(_, rest)| rest).unwrap_or_default();
        assert!(code(named).is_some(), "{}: `{}` names no code", row[0], row[5]);
    }
}
