//! The tables of docs/egress.md are those of the code.

use egress::{Limits, table};

#[test]
fn the_tables_are_true() {
    let path = concat!(env!("CARGO_MANIFEST_DIR"), "/../../docs/egress.md");
    let text = std::fs::read_to_string(path).unwrap();
    for (name, want) in [("ranges", table()), ("limits", Limits::table())] {
        let (start, end) = (format!("<!-- {name} -->\n"), format!("<!-- end of {name} -->"));
        let found = text.split_once(&start).and_then(|(_, rest)| rest.split_once(&end)).map(|(found, _)| found);
        assert_eq!(found, Some(want.as_str()), "docs/egress.md should have between {start}and {end}:\n\n{want}");
    }
}
