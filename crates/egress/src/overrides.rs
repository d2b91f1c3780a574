//! What makes servers take a request for another one: a method or a path that stands in a header, in the query or in a form.
//!
//! Where rules allow only some paths or methods of an origin, such headers are dropped and such fields are refused.

use crate::credentials::Payload;
use crate::denied::Denied;
use http::header::{CONTENT_TYPE, HeaderMap};
use percent_encoding::percent_decode;

/// What frameworks read in place of the method, in a query and in a form.
const FIELDS: [&str; 4] = ["_method", "x-http-method-override", "x-http-method", "x-method-override"];

/// Words that stand in the names of such headers, behind `x-`.
const WORDS: [&str; 5] = ["method", "override", "rewrite", "original", "destinationurl"];
const NAMES: [&str; 9] = [
    "destination",
    "x-accel-redirect",
    "x-forwarded-path",
    "x-forwarded-prefix",
    "x-forwarded-uri",
    "x-forwarded-url",
    "x-proxy-url",
    "x-request-uri",
    "x-waws-unencoded-url",
];

fn is_override(name: &str) -> bool {
    // Some servers do not tell one from the other.
    let name = name.to_ascii_lowercase().replace('_', "-");
    NAMES.contains(&name.as_str())
        || name.strip_prefix("x-").is_some_and(|rest| WORDS.iter().any(|word| rest.contains(word)))
}

pub(crate) fn drop_headers(headers: &mut HeaderMap) {
    let dropped: Vec<_> = headers.keys().filter(|name| is_override(name.as_str())).cloned().collect();
    dropped.iter().for_each(|name| drop(headers.remove(name)));
}

/// Whether the body is a form, in which a field could stand for the method.
pub(crate) fn is_form(headers: &HeaderMap) -> bool {
    let mut types = headers.get_all(CONTENT_TYPE).iter().map(|value| value.as_bytes().to_ascii_lowercase());
    let form = |kind: &[u8]| kind.starts_with(b"application/x-www-form-urlencoded") || kind.starts_with(b"multipart/");
    types.any(|kind| form(kind.trim_ascii_start()))
}

pub(crate) fn refuse_fields(query: &str, headers: &HeaderMap, body: &Payload) -> Result<(), Denied> {
    let in_body = match body {
        Payload::Whole(bytes) if is_form(headers) => in_pairs(bytes) || in_parts(bytes),
        // It was gathered, unless it was sent already: then a redirect leads nowhere.
        _ => false,
    };
    if in_pairs(query.trim_start_matches('?').as_bytes()) || in_body {
        return Err(Denied::refuse(
            "the request has a field `_method`, which servers read in place of the method, and rules allow only some methods here",
        ));
    }
    Ok(())
}

fn is_field(name: &[u8]) -> bool {
    let spaced: Vec<u8> = name.iter().map(|b| if *b == b'+' { b' ' } else { *b }).collect();
    let decoded: Vec<u8> = percent_decode(&spaced).collect();
    let name = decoded.trim_ascii();
    FIELDS.iter().any(|field| name.eq_ignore_ascii_case(field.as_bytes()))
}

fn in_pairs(text: &[u8]) -> bool {
    text.split(|b| matches!(b, b'&' | b';')).any(|pair| is_field(pair.split(|b| *b == b'=').next().unwrap_or_default()))
}

/// The names of a form in parts: `content-disposition: form-data; name="_method"`.
fn in_parts(text: &[u8]) -> bool {
    text.split(|b| matches!(b, b'\r' | b'\n' | b';')).any(|piece| {
        let mut sides = piece.splitn(2, |b| *b == b'=');
        let (Some(key), Some(value)) = (sides.next(), sides.next()) else { return false };
        let key = key.trim_ascii().to_ascii_lowercase();
        matches!(key.as_slice(), b"name" | b"name*") && {
            let value = value.trim_ascii();
            let value = value.rsplit(|b| *b == b'\'').next().unwrap_or(value);
            is_field(value.strip_prefix(b"\"").unwrap_or(value).strip_suffix(b"\"").unwrap_or(value))
        }
    })
}

#[cfg(test)]
mod tests {
    use super::*;
    use http::HeaderValue;

    #[test]
    fn names_of_headers() {
        for name in [
            "x-http-method-override",
            "X-HTTP-Method",
            "x-method-override",
            "x_http_method_override",
            "x-original-url",
            "x-rewrite-url",
            "x-original-uri",
            "x-forwarded-uri",
            "x-forwarded-prefix",
            "x-envoy-original-path",
            "x-http-destinationurl",
            "x-override-url",
            "destination",
        ] {
            assert!(is_override(name), "{name}");
        }
        for name in ["x-api-key", "x-request-id", "content-type", "x-forwarded-for", "x-amz-date", "origin", "accept"] {
            assert!(!is_override(name), "{name}");
        }
    }

    #[test]
    fn fields() {
        let refused = |query: &str, kind: &str, body: &str| {
            let mut headers = HeaderMap::new();
            headers.insert(CONTENT_TYPE, HeaderValue::from_str(kind).unwrap());
            refuse_fields(query, &headers, &Payload::Whole(body.to_owned().into())).is_err()
        };
        let form = "application/x-www-form-urlencoded; charset=utf-8";
        let parts = "--b\r\ncontent-disposition: form-data; name=\"_method\"\r\n\r\nDELETE\r\n--b--";
        for (query, kind, body) in [
            ("?_method=DELETE", "text/plain", ""),
            ("?a=1&%5Fmethod=PUT", "text/plain", ""),
            ("?_METHOD", "text/plain", ""),
            ("?X-HTTP-Method-Override=DELETE", "text/plain", ""),
            ("", form, "a=1&_method=DELETE"),
            ("", form, "%5f%6dethod=DELETE"),
            ("", "Multipart/Form-Data; boundary=b", parts),
            ("", "multipart/form-data; boundary=b", &parts.replace('"', "")),
        ] {
            assert!(refused(query, kind, body), "{query} {kind} {body}");
        }
        for (query, kind, body) in [
            ("?payment_method=card", form, "payment_method=card&x=_method"),
            ("", "text/plain", "_method=DELETE"),
            (
                "",
                "multipart/form-data; boundary=b",
                "--b\r\ncontent-disposition: form-data; name=\"a\"\r\n\r\n_method\r\n--b--",
            ),
        ] {
            assert!(!refused(query, kind, body), "{query} {kind} {body}");
        }
    }
}
