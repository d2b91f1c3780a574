//! A server that is compiled, and brings nothing along: gives back what its tool `run` is given, and who it is.

use std::io::{BufRead, Write};

fn main() {
    let mut output = std::io::stdout().lock();
    for line in std::io::stdin().lock().lines() {
        let line = line.expect("standard input");
        let (Some(id), Some(method)) = (field(&line, "id"), field(&line, "method")) else { continue };
        let params = field(&line, "params").unwrap_or("{}");
        let answer = match method {
            r#""initialize""# => result(&format!(
                r#"{{"protocolVersion":{},"capabilities":{{"tools":{{}}}},"serverInfo":{{"name":"compiled","version":"1"}}}}"#,
                field(params, "protocolVersion").unwrap_or("null"),
            )),
            r#""tools/list""# => result(r#"{"tools":[{"name":"run","inputSchema":{"type":"object"}}]}"#),
            r#""tools/call""# => result(&format!(
                r#"{{"content":[],"structuredContent":{{"given":{},"pid":{},"linked":{}}}}}"#,
                field(params, "arguments").unwrap_or("null"),
                std::process::id(),
                std::fs::read_to_string("/proc/self/maps").is_ok_and(|maps| maps.contains("libc.so")),
            )),
            _ => r#""error":{"code":-32601,"message":"no such method"}"#.to_owned(),
        };
        writeln!(output, r#"{{"jsonrpc":"2.0","id":{id},{answer}}}"#).and_then(|()| output.flush()).expect("a reader");
    }
}

fn result(json: &str) -> String {
    format!(r#""result":{json}"#)
}

/// The value of a member of an object, as it stands there.
fn field<'a>(object: &'a str, name: &str) -> Option<&'a str> {
    let mut rest = object.trim().strip_prefix('{')?;
    loop {
        rest = rest.trim_start_matches([' ', ',']);
        let (key, after) = rest.split_at_checked(end(rest)).filter(|(key, _)| key.starts_with('"'))?;
        let after = after.trim_start().strip_prefix(':')?.trim_start();
        let (value, after) = after.split_at(end(after));
        if key.trim_matches('"') == name {
            return Some(value);
        }
        rest = after;
    }
}

/// Where the value ends that a text begins with.
fn end(text: &str) -> usize {
    let (mut depth, mut quoted, mut escaped) = (0, false, false);
    for (place, character) in text.char_indices() {
        match character {
            _ if escaped => escaped = false,
            '\\' if quoted => escaped = true,
            '"' => quoted = !quoted,
            _ if quoted => {}
            '{' | '[' => depth += 1,
            '}' | ']' if depth == 0 => return place,
            '}' | ']' => depth -= 1,
            ',' | ':' if depth == 0 => return place,
            _ => {}
        }
    }
    text.len()
}
