//! Names and values of fields, as some server may read them out of a query or a body.

use http::header::{CONTENT_TYPE, HeaderMap};
use percent_encoding::percent_decode;
use serde::de::{Deserializer, MapAccess, Visitor};
use serde_json::value::RawValue;
use std::fmt;

/// Charsets in which ASCII is ASCII.
const CHARSETS: [&str; 5] = ["utf-8", "utf8", "us-ascii", "iso-8859-1", "windows-1252"];
/// Fields of a form that are looked at; frameworks take fewer.
const MOST: usize = 16 << 10;
/// Servers and what stands before them decode more than once.
const ROUNDS: usize = 3;

/// Judges a name and its value.
pub(crate) type Look<'a> = &'a dyn Fn(&[u8], &[u8]) -> bool;

/// How servers may read a body. An odd `content-type` may be several of these.
#[derive(Default)]
pub(crate) struct Kind {
    pub(crate) form: bool,
    pub(crate) parts: bool,
    pub(crate) json: bool,
    /// Nothing is said, so that servers guess.
    pub(crate) unknown: bool,
    pub(crate) odd_charset: bool,
}

impl Kind {
    pub(crate) fn of(headers: &HeaderMap) -> Kind {
        let types = headers.get_all(CONTENT_TYPE).iter();
        let types: Vec<String> =
            types.map(|value| crate::headers::latin1(value.as_bytes()).to_ascii_lowercase()).collect();
        let has = |what: &str| types.iter().any(|kind| kind.contains(what));
        let charset = |rest: &str| {
            let named =
                rest.trim_start().strip_prefix('=').unwrap_or_default().trim_start().trim_start_matches(['"', '\'']);
            named.split(['"', '\'', ';', ',', ' ']).next().is_some_and(|named| CHARSETS.contains(&named))
        };
        let known = |kind: &String| kind.split("charset").skip(1).all(charset);
        Kind {
            form: has("form-urlencoded"),
            parts: has("multipart"),
            json: has("json"),
            unknown: types.iter().all(|kind| kind.trim().is_empty()),
            odd_charset: !types.iter().all(known),
        }
    }
}

/// How servers may read a name or a value, in lower case: decoded, and cut at brackets and control characters, which PHP and
/// others take for the end of a name or for steps into it.
pub(crate) fn spellings(text: &[u8]) -> Vec<Vec<u8>> {
    let mut whole: Vec<u8> = text.iter().map(|b| if *b == b'+' { b' ' } else { *b }).collect();
    for _ in 0..ROUNDS {
        whole = percent_decode(&without_percent_u(&whole)).collect();
    }
    whole.make_ascii_lowercase();
    let parts = whole.split(|b| matches!(b, b'[' | b']') || b.is_ascii_control());
    let mut all: Vec<Vec<u8>> = parts.filter(|part| !part.is_empty()).map(<[u8]>::to_vec).collect();
    all.push(whole);
    all
}

/// `%u005f`, which IIS decodes, as `%5f`.
fn without_percent_u(text: &[u8]) -> Vec<u8> {
    let mut out = Vec::with_capacity(text.len());
    let mut rest = text;
    while let Some((first, behind)) = rest.split_first() {
        match behind {
            [b'u' | b'U', b'0', b'0', tail @ ..] if *first == b'%' => {
                out.push(b'%');
                rest = tail;
            }
            _ => {
                out.push(*first);
                rest = behind;
            }
        }
    }
    out
}

/// Whether the judge finds a pair of a query or form. None if there are too many to look at.
pub(crate) fn any_in_pairs(text: &[u8], look: Look) -> Option<bool> {
    let mut pairs = text.split(|b| matches!(b, b'&' | b';')).filter(|pair| !pair.is_empty());
    let found = pairs.by_ref().take(MOST).any(|pair| {
        let mut sides = pair.splitn(2, |b| *b == b'=');
        look(sides.next().unwrap_or_default(), sides.next().unwrap_or_default())
    });
    (found || pairs.next().is_none()).then_some(found)
}

/// The same for a form in parts: `content-disposition: form-data; name="NAME"`, an empty line, the value.
pub(crate) fn any_in_parts(text: &[u8], look: Look) -> Option<bool> {
    let (mut names, mut value, mut below) = (0, &b""[..], &b""[..]);
    // From the end, so that the value is known when its name comes.
    for line in unfolded(text).rsplit(|b| *b == b'\n').map(<[u8]>::trim_ascii) {
        if line.is_empty() {
            value = below;
        }
        below = line;
        // Strict readers and lenient ones.
        let pieces = [&b";\r"[..], b";\r:, \t"].into_iter().flat_map(|ends| line.split(|b| ends.contains(b)));
        for name in pieces.filter_map(name_of_part) {
            names += 1;
            if names > MOST {
                return None;
            }
            if look(&name, value) {
                return Some(true);
            }
        }
    }
    Some(false)
}

/// A line that begins with a blank goes on with the one before; so does one behind `=`. Blanks around `=` say nothing.
fn unfolded(text: &[u8]) -> Vec<u8> {
    let mut out: Vec<u8> = Vec::with_capacity(text.len());
    let mut bytes = text.iter().copied().peekable();
    while let Some(byte) = bytes.next() {
        let folded = byte == b'\n' && matches!(bytes.peek(), Some(b' ' | b'\t'));
        let blank = byte.is_ascii_whitespace() && byte != b'\n';
        if (folded || blank) && out.last() == Some(&b'=') {
            continue;
        }
        while byte == b'=' && matches!(out.last(), Some(b' ' | b'\t')) {
            out.pop();
        }
        out.push(if folded { b' ' } else { byte });
    }
    out
}

/// What `name=…` or `name*=charset'language'…` says. Names in pieces (`name*0=`) are written by nobody who means well.
fn name_of_part(piece: &[u8]) -> Option<Vec<u8>> {
    let mut sides = piece.splitn(2, |b| *b == b'=');
    let (key, value) = (sides.next()?.trim_ascii().to_ascii_lowercase(), sides.next()?.trim_ascii());
    let value = match key.as_slice() {
        // An encoded word of mail.
        b"name" if value.starts_with(b"=?") || value.starts_with(b"\"=?") => b"_method",
        b"name" => value,
        b"name*" => value.rsplit(|b| *b == b'\'').next()?,
        key if key.starts_with(b"name*") => b"_method",
        _ => return None,
    };
    Some(value.iter().copied().filter(|b| !matches!(b, b'"' | b'\'' | b'\\')).collect())
}

/// The fields of an object, or of several in a row. None if it is no JSON.
pub(crate) fn any_in_json(text: &[u8], look: Look) -> Option<bool> {
    let text = std::str::from_utf8(text.strip_prefix(b"\xef\xbb\xbf").unwrap_or(text)).ok()?;
    let mut found = false;
    for value in serde_json::Deserializer::from_str(text).into_iter::<&RawValue>() {
        let value = value.ok()?.get();
        if value.starts_with('{') {
            found |= serde_json::Deserializer::from_str(value).deserialize_map(Fields(look)).ok()?;
        }
    }
    Some(found)
}

struct Fields<'a>(Look<'a>);

impl<'de> Visitor<'de> for Fields<'_> {
    type Value = bool;

    fn expecting(&self, f: &mut fmt::Formatter) -> fmt::Result {
        f.write_str("an object")
    }

    fn visit_map<A: MapAccess<'de>>(self, mut map: A) -> Result<bool, A::Error> {
        let mut found = false;
        while let Some((name, value)) = map.next_entry::<String, &'de RawValue>()? {
            let value = serde_json::from_str::<String>(value.get()).unwrap_or_default();
            found |= (self.0)(name.as_bytes(), value.as_bytes());
        }
        Ok(found)
    }
}
