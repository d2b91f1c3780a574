//! What makes servers take a request for another one: a method, a path or a host in a header, in the query or in the body.
//!
//! Where rules allow only some paths or methods of an origin, such headers are dropped, and requests with such fields are
//! refused.

use crate::credentials::Payload;
use crate::denied::Denied;
use crate::fields::{Kind, Look, any_in_json, any_in_pairs, any_in_parts, spellings};
use http::header::{CONTENT_ENCODING, HeaderMap, HeaderValue};
use policy::egress::Rule;

/// Parts of names of headers that move a request elsewhere, wherever they stand in it.
const TURNS: [&str; 13] = [
    "method",
    "override",
    "rewrit",
    "original",
    "redirect",
    "destination",
    "sendfile",
    "subrequest",
    "middleware",
    "copy-source",
    "rename-source",
    "script-name",
    "server-name",
];
/// Words of such names.
const TURN_WORDS: [&str; 3] = ["invoke", "matched", "replaced"];
/// What words of such names end with: `x-request-uri`, `x-http-destinationurl`, `x-host`.
const PLACES: [&str; 7] = ["url", "uri", "path", "host", "prefix", "route", "pathinfo"];
/// What may follow `forwarded`: it tells of the client, not of the target.
const OF_CLIENT: [&str; 5] = ["for", "proto", "port", "by", "ssl"];

/// Whether a judge finds a field in a text; none if it cannot be read.
type Reader = fn(&[u8], Look) -> Option<bool>;

/// The methods that an ordinary field may name: `method=delete`.
const METHODS: [&str; 7] = ["GET", "HEAD", "POST", "PUT", "PATCH", "DELETE", "OPTIONS"];

fn is_override(name: &str) -> bool {
    // Some servers do not tell one from the other.
    let name: String =
        name.chars().map(|c| if c.is_ascii_alphanumeric() { c.to_ascii_lowercase() } else { '-' }).collect();
    // Browsers ask by these whether a method would be allowed.
    if name.starts_with("access-control-") {
        return false;
    }
    let words: Vec<&str> = name.split('-').collect();
    let forwarded = |words: &[&str]| match words {
        ["forwarded" | "forward", of, ..] => !OF_CLIENT.contains(of),
        ["forwarded" | "forward"] => true,
        _ => false,
    };
    TURNS.iter().any(|turn| name.contains(turn))
        || words.iter().any(|word| TURN_WORDS.contains(word) || PLACES.iter().any(|place| word.ends_with(place)))
        || (0..words.len()).any(|at| forwarded(words.get(at..).unwrap_or_default()))
}

pub(crate) fn drop_headers(headers: &mut HeaderMap) {
    let dropped: Vec<_> = headers.keys().filter(|name| is_override(name.as_str())).cloned().collect();
    dropped.iter().for_each(|name| drop(headers.remove(name)));
}

/// The rule for some paths or methods that allows a request.
pub(crate) struct Narrow<'a>(pub(crate) &'a Rule);

impl Narrow<'_> {
    /// Whether the body has to be there as a whole, because a field in it could stand for another method or path.
    pub(crate) fn reads(&self, headers: &HeaderMap) -> bool {
        let kind = Kind::of(headers);
        kind.form || kind.parts || self.0.has_methods() && (kind.json || kind.unknown)
    }

    pub(crate) fn refuse_fields(&self, query: &str, headers: &HeaderMap, body: &Payload) -> Result<(), Denied> {
        let look = |name: &[u8], value: &[u8]| self.stands_for_another(name, value);
        verdict(any_in_pairs(query.trim_start_matches('?').as_bytes(), &look))?;
        let bytes = match body {
            _ if !self.reads(headers) => return Ok(()),
            Payload::Whole(bytes) if !bytes.is_empty() => bytes,
            Payload::Stream => return verdict(None),
            // It was sent already: then a redirect leads nowhere.
            Payload::Whole(_) | Payload::Nothing => return Ok(()),
        };
        let kind = Kind::of(headers);
        let plain = |coding: &HeaderValue| coding.as_bytes().eq_ignore_ascii_case(b"identity");
        if !kind.unknown && (kind.odd_charset || !headers.get_all(CONTENT_ENCODING).iter().all(plain)) {
            return verdict(None);
        }
        let ways: [(bool, Reader); 3] =
            [(kind.form, any_in_pairs), (kind.parts, any_in_parts), (kind.json && self.0.has_methods(), any_in_json)];
        ways.iter().filter(|(says_so, _)| *says_so).try_for_each(|(_, any)| verdict(any(bytes, &look)))?;
        // What is not what a server may guess is nothing to worry about.
        let guessed = kind.unknown && ways.iter().any(|(_, any)| any(bytes, &look) == Some(true));
        verdict(Some(guessed))
    }

    /// `_method` in all its spellings; a field such as `method` or `httpMethod` if its value is a method that the rule does not
    /// name; and where WordPress finds its path.
    fn stands_for_another(&self, name: &[u8], value: &[u8]) -> bool {
        let methods = self.0.has_methods();
        let may = |part: &[u8]| name.windows(part.len()).any(|found| found.eq_ignore_ascii_case(part));
        // Most names are none of these, and told so without a copy.
        if !(name.contains(&b'%') || may(b"method") || may(b"verb") || may(b"route")) {
            return false;
        }
        spellings(name).iter().any(|name| {
            let led = name.first().is_some_and(|first| !first.is_ascii_alphanumeric());
            let letters: Vec<u8> = name.iter().copied().filter(u8::is_ascii_alphanumeric).collect();
            let has = |part: &[u8]| letters.windows(part.len()).any(|found| found == part);
            let always = letters == b"method" && led || letters == b"xhttpmethod" || has(b"method") && has(b"override");
            let named = letters.ends_with(b"method") || letters.ends_with(b"verb");
            methods && (always || named && self.forbids(value)) || letters == b"restroute"
        })
    }

    fn forbids(&self, value: &[u8]) -> bool {
        let said = spellings(value);
        let methods = METHODS.iter().filter(|method| !self.0.allows_method(method));
        methods
            .into_iter()
            .any(|method| said.iter().any(|said| said.trim_ascii().eq_ignore_ascii_case(method.as_bytes())))
    }
}

/// What becomes of a request in which such a field was found, was not found, or could not be looked for.
fn verdict(found: Option<bool>) -> Result<(), Denied> {
    let what = match found {
        Some(false) => return Ok(()),
        Some(true) => "the request has a field that servers read in place of its method or path, such as `_method`",
        None => {
            "the fields of the request's body cannot be read, and one such as `_method` could stand for another method or path"
        }
    };
    Err(Denied::refuse(format!("{what}; rules allow only some methods or paths here")))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn names_of_headers() {
        for name in [
            "x-http-method-override",
            "X-HTTP-Method",
            "http-method-override",
            "x_http_method_override",
            "x-original-url",
            "x-rewrite-url",
            "x-original-uri",
            "x-forwarded-uri",
            "x-forwarded-prefix",
            "x-forwarded-host",
            "forwarded",
            "x-envoy-original-path",
            "x-http-destinationurl",
            "x-override-url",
            "x-invoke-path",
            "x-matched-path",
            "destination",
        ] {
            assert!(is_override(name), "{name}");
        }
        for name in [
            "x-api-key",
            "x-request-id",
            "content-type",
            "x-forwarded-for",
            "x-forwarded-proto",
            "x-amz-date",
            "origin",
            "referer",
            "accept",
            "max-forwards",
            "access-control-request-method",
        ] {
            assert!(!is_override(name), "{name}");
        }
    }
}
