//! Templates of paths.

use crate::files::{Place, Refusal};
use crate::report::Notes;
use crate::text::quote;
use percent_encoding::{AsciiSet, NON_ALPHANUMERIC, utf8_percent_encode};
use serde_json::Value;

/// What a path has beside letters and digits. Escapes of the author's stay.
const ESCAPED: &AsciiSet = &NON_ALPHANUMERIC
    .remove(b'-')
    .remove(b'.')
    .remove(b'_')
    .remove(b'~')
    .remove(b'!')
    .remove(b'$')
    .remove(b'&')
    .remove(b'\'')
    .remove(b'(')
    .remove(b')')
    .remove(b'*')
    .remove(b'+')
    .remove(b',')
    .remove(b';')
    .remove(b'=')
    .remove(b':')
    .remove(b'@')
    .remove(b'/')
    .remove(b'%');

/// The path as texts, and as numbers of parameters between them.
pub(crate) fn parts(path: &str, parameters: &[Value], at: &Place, notes: &mut Notes) -> Result<Vec<Value>, Refusal> {
    let refuse = |text: String| Err(Refusal::new(at, text));
    let mut parts = Vec::new();
    let mut used = Vec::new();
    let mut rest = path;
    while !rest.is_empty() {
        let (text, after) = rest.split_once('{').unwrap_or((rest, ""));
        if text.contains('}') {
            return refuse(format!("{} has a brace too many", quote(path)));
        }
        parts.push(utf8_percent_encode(text, ESCAPED).to_string().into());
        if text.len() == rest.len() {
            break;
        }
        let Some((name, after)) = after.split_once('}') else {
            return refuse(format!("{} has a brace too many", quote(path)));
        };
        let number = parameters.iter().position(|parameter| parameter["in"] == "path" && parameter["name"] == name);
        let Some(number) = number else {
            return refuse(format!(
                "the path has {}, and there is no such path parameter",
                quote(&format!("{{{name}}}"))
            ));
        };
        parts.push(number.into());
        used.push(number);
        rest = after;
    }
    let dots = |segment: &str| matches!(segment.to_ascii_lowercase().replace("%2e", ".").as_str(), "." | "..");
    if path.split('/').any(dots) {
        return refuse(format!("{} has a segment `.` or `..`", quote(path)));
    }
    for (number, parameter) in parameters.iter().enumerate() {
        if parameter["in"] == "path" && !used.contains(&number) {
            notes.ignored(
                at,
                format!(
                    "the path has no {}, so that parameter goes nowhere",
                    quote(parameter["name"].as_str().unwrap_or_default())
                ),
            );
        }
    }
    Ok(parts)
}
