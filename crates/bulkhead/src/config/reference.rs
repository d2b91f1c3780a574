//! The reference, as a page: docs/configuration.md.

use super::{Config, Table};
use std::fmt::Write;

const HEAD: &str = "\
# Configuration

<!-- Made by `bulkhead config reference`; a test compares. The words stand in crates/bulkhead/src/config/keys.rs. -->

One TOML file, which may be missing: `bulkhead serve --config FILE`, or `bulkhead.toml` in the data directory.
`BULKHEAD_LISTEN` and `BULKHEAD_DATA` in the environment go before the file, `--listen` and `--data` before both.

```toml
listen = \"127.0.0.1:8470\"
public_url = \"https://mcp.example.com\"
allowed_origins = [\"https://app.example.com\"]

[limits]
memory_mb = 256

[quota]
requests_per_s = 50
```

A key that does not exist is refused, as is a value out of its range; nothing is ignored. `bulkhead config check FILE`
says what is wrong and where, `bulkhead config show` what a host would run with. A running host reads the file again on
SIGHUP and on `bulkhead reload`: a file with a mistake changes nothing, and keys marked *at start* keep the value that the
host started with, which the log says.
";

/// The whole page.
pub fn page() -> String {
    let mut page = HEAD.to_owned();
    for table in Config::tables() {
        section(&mut page, &table);
    }
    page
}

fn section(page: &mut String, table: &Table) {
    let title = if table.name.is_empty() { "The host".to_owned() } else { format!("`[{}]`", table.name) };
    // Writing into a string cannot fail.
    let _ = write!(page, "\n## {title}\n\n{}\n\n| key | value | default | |\n|---|---|---|---|\n", table.about);
    for key in &table.keys {
        let range = key.range.as_ref().map(|range| format!(", {range}")).unwrap_or_default();
        let default = key.default.as_ref().map_or("–".to_owned(), |default| format!("`{default}`"));
        let at_start = if key.at_start { " *At start.*" } else { "" };
        let _ = writeln!(page, "| `{}` | {}{range} | {default} | {}{at_start} |", key.name, key.kind, key.about);
    }
}
