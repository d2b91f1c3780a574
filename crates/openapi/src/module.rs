//! The source of the server: a fixed runtime, and a table that it reads. Nothing of a specification is code.

use serde_json::Value;
use std::fmt::Write;

const RUNTIME: &str =
    concat!(include_str!("../js/encode.js"), include_str!("../js/body.js"), include_str!("../js/run.js"));

pub(crate) fn source(server: &Value) -> String {
    format!(
        "// Made from an OpenAPI specification. The table is data; all code is below it.\nconst table = JSON.parse({});\n\n{RUNTIME}",
        literal(&server.to_string())
    )
}

/// A text as a JavaScript literal of ASCII characters that can be seen.
fn literal(text: &str) -> String {
    let mut out = String::with_capacity(text.len() + text.len() / 8);
    out.push('"');
    for c in text.chars() {
        match c {
            '"' | '\\' => out.extend(['\\', c]),
            ' '..='~' => out.push(c),
            c => {
                for unit in c.encode_utf16(&mut [0; 2]) {
                    // Writing into a string cannot fail.
                    let _ = write!(out, "\\u{unit:04x}");
                }
            }
        }
    }
    out.push('"');
    out
}
