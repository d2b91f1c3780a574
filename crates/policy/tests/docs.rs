//! The table of limits in docs/authoring.md says what the code says.

use policy::{LimitName, Limits};

const PAGE: &str = include_str!("../../../docs/authoring.md");

/// The rows of the section's table, cell by cell. Head and rule have no code in their first cell.
fn rows(section: &str) -> Vec<Vec<&'static str>> {
    let start = PAGE.find(section).unwrap_or_else(|| panic!("the page has no section `{}`", section.trim()));
    let body = &PAGE[start + section.len()..];
    let body = body.split("\n## ").next().unwrap_or(body);
    let lines = body.lines().filter(|line| line.starts_with("| `"));
    lines.map(|line| line.trim_matches('|').split('|').map(str::trim).collect()).collect()
}

#[test]
fn every_limit_is_documented_as_it_is() {
    let rows = rows("\n## Limits\n");
    let names: Vec<_> = rows.iter().map(|row| row[0].trim_matches('`')).collect();
    let known: Vec<_> = LimitName::ALL.iter().map(|name| name.as_str()).collect();
    assert_eq!(names, known, "one row for each limit, in the same order");
    for (row, name) in rows.iter().zip(LimitName::ALL.iter().copied()) {
        let number = |cell: &str| cell.replace(',', "").parse::<u64>().unwrap_or_else(|_| panic!("`{name}`: `{cell}`"));
        let written = [number(row[1]), number(row[2]), number(row[3])];
        let real = [Limits::default().get(name), Limits::LEAST.get(name), Limits::MOST.get(name)];
        assert_eq!(written, real, "`{name}`: default, least, most");
        assert_eq!(row.len(), 6, "`{name}` says what it limits and what happens");
    }
}
