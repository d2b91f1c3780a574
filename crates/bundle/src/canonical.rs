//! JSON in its one canonical form, RFC 8785. Numbers are doubles, as they are in JavaScript.

use crate::Digest;
use policy::{ArgumentError, Limits, check_arguments};
use serde_json::Value;
use sha2::{Digest as _, Sha256};

/// The canonical form.
pub fn canonical(value: &Value) -> Vec<u8> {
    let mut out = Vec::new();
    write(value, &mut out);
    out
}

/// SHA-256 of the canonical form.
pub fn canonical_digest(value: &Value) -> Digest {
    digest(&canonical(value))
}

pub(crate) fn digest(bytes: &[u8]) -> Digest {
    Digest::new(Sha256::digest(bytes).into())
}

fn write(value: &Value, out: &mut Vec<u8>) {
    match value {
        // What is escaped, and how, is what RFC 8785 says.
        Value::Null | Value::Bool(_) | Value::String(_) => out.extend(value.to_string().as_bytes()),
        Value::Number(number) => match number.as_f64().filter(|number| number.is_finite()) {
            Some(number) => out.extend(ryu_js::Buffer::new().format_finite(number).as_bytes()),
            None => out.extend(number.to_string().as_bytes()),
        },
        Value::Array(list) => {
            out.push(b'[');
            for (index, value) in list.iter().enumerate() {
                if index > 0 {
                    out.push(b',');
                }
                write(value, out);
            }
            out.push(b']');
        }
        Value::Object(map) => {
            let mut members: Vec<_> = map.iter().collect();
            members.sort_by(|(a, _), (b, _)| a.encode_utf16().cmp(b.encode_utf16()));
            out.push(b'{');
            for (index, (name, value)) in members.into_iter().enumerate() {
                if index > 0 {
                    out.push(b',');
                }
                out.extend(Value::from(name.as_str()).to_string().as_bytes());
                out.push(b':');
                write(value, out);
            }
            out.push(b'}');
        }
    }
}

/// What came is too large or too deep to be looked at.
#[derive(Clone, Debug, PartialEq, Eq, thiserror::Error)]
pub(crate) enum Excess {
    #[error("it has {bytes} bytes, {most} are allowed")]
    Large { bytes: usize, most: usize },
    #[error("it is nested deeper than {0} levels")]
    Deep(u64),
}

/// Measures JSON before anything parses it.
pub(crate) fn measure(json: &[u8], most: usize, deepest: u64) -> Result<(), Excess> {
    if json.len() > most {
        return Err(Excess::Large { bytes: json.len(), most });
    }
    let limits = Limits { argument_kb: u64::MAX / 1024, argument_depth: deepest, ..Limits::default() };
    match check_arguments(json, &limits) {
        Err(ArgumentError::TooDeep { most }) => Err(Excess::Deep(most)),
        _ => Ok(()),
    }
}

/// Where two byte strings first differ. `None` when they do not.
pub(crate) fn difference(a: &[u8], b: &[u8]) -> Option<usize> {
    let common = a.iter().zip(b).take_while(|(a, b)| a == b).count();
    (common < a.len().max(b.len())).then_some(common)
}
