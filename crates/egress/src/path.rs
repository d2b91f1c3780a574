//! Paths under a prefix. Servers decode paths in many ways; what any of them could read as leaving the prefix is refused.

use percent_encoding::percent_decode;

/// Whether a path that the URL parser has normalised is at or below a prefix, however often a server decodes it.
pub(crate) fn is_under(path: &str, prefix: &str) -> bool {
    if prefix == "/" {
        return true;
    }
    let below = match path.strip_prefix(prefix) {
        Some("") => true,
        Some(rest) => prefix.ends_with('/') || rest.starts_with('/'),
        None => false,
    };
    below && unambiguous(path).is_ok()
}

/// Decoded once, twice, and so on, there must be no further slash and no `.` or `..`, not even with parameters behind it.
pub(crate) fn unambiguous(path: &str) -> Result<(), String> {
    const ROUNDS: usize = 4;
    let mut text = path.as_bytes().to_vec();
    let slashes = count(&text);
    for _ in 0..ROUNDS {
        let steps = text.split(|b| *b == b'/').map(|part| part.split(|b| *b == b';').next().unwrap_or_default());
        if count(&text) != slashes || text.contains(&0) || steps.clone().any(|step| step == b"." || step == b"..") {
            return Err("the path has an encoded slash, backslash or dots, which servers read differently".to_owned());
        }
        let decoded: Vec<u8> = percent_decode(&text).collect();
        if decoded == text {
            return Ok(());
        }
        // There are servers that read dots out of bytes that are no UTF-8.
        if std::str::from_utf8(&decoded).is_err() {
            return Err("the path is no UTF-8".to_owned());
        }
        text = decoded;
    }
    Err("the path is percent-encoded again and again".to_owned())
}

fn count(text: &[u8]) -> usize {
    text.iter().filter(|b| matches!(b, b'/' | b'\\')).count()
}
