//! Paths under a prefix. Servers decode paths in many ways; a path that any of them could read as leaving the prefix is refused.

use percent_encoding::percent_decode;

/// Whether a path that the URL parser has normalised is at or below a prefix, however a server decodes it.
pub fn is_under(path: &str, prefix: &str) -> bool {
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

/// Decoded once, twice, and so on, the path must have no further slash, no control character, and no step that a server could take for
/// `.` or `..`.
pub fn unambiguous(path: &str) -> Result<(), String> {
    const ROUNDS: usize = 4;
    let mut text = path.to_owned();
    let slashes = text.chars().filter(|c| is_slash(*c)).count();
    for _ in 0..ROUNDS {
        if text.chars().filter(|c| is_slash(*c)).count() != slashes || text.split(is_slash).any(leads_up) {
            return Err("the path has an encoded slash, backslash or dots, which servers read differently".to_owned());
        }
        if text.chars().any(char::is_control) {
            return Err("the path has a control character".to_owned());
        }
        if has_percent_u(&text) {
            return Err("the path has `%u`, which some servers decode".to_owned());
        }
        let decoded: Vec<u8> = percent_decode(text.as_bytes()).collect();
        if decoded == text.as_bytes() {
            return Ok(());
        }
        // There are servers that read dots out of bytes that are no UTF-8.
        text = String::from_utf8(decoded).map_err(|_| "the path is no UTF-8".to_owned())?;
    }
    Err("the path is percent-encoded again and again".to_owned())
}

/// With the letters that some systems turn into slashes when they convert text.
fn is_slash(c: char) -> bool {
    matches!(c, '/' | '\\' | '\u{2044}' | '\u{2215}' | '\u{2216}' | '\u{29f8}' | '\u{29f9}' | '\u{ff0f}' | '\u{ff3c}')
}

fn is_dot(c: char) -> bool {
    matches!(c, '.' | '\u{2024}' | '\u{3002}' | '\u{fe52}' | '\u{ff0e}' | '\u{ff61}')
}

/// Whether a step is one or two dots, but for what servers leave out: parameters, an encoded query or fragment, blanks and invisible
/// letters.
fn leads_up(step: &str) -> bool {
    let step = step.split([';', '?', '#']).next().unwrap_or_default();
    let seen: Vec<char> = step.chars().filter(|c| !is_blank(*c)).collect();
    matches!(seen.len(), 1 | 2) && seen.iter().all(|c| is_dot(*c))
}

fn is_blank(c: char) -> bool {
    c.is_whitespace() || c.is_control() || matches!(c, '\u{ad}' | '\u{200b}'..='\u{200f}' | '\u{2060}' | '\u{feff}')
}

/// `%u002e`, which IIS and some frameworks take for a dot.
fn has_percent_u(text: &str) -> bool {
    let hex = |rest: &str| rest.len() >= 4 && rest.bytes().take(4).all(|b| b.is_ascii_hexdigit());
    let mut places = text.match_indices('%').map(|(at, _)| &text[at + 1..]);
    places.any(|rest| rest.strip_prefix(['u', 'U']).is_some_and(hex))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn paths_that_stay() {
        for path in
            ["/v1/", "/v1/x", "/v1/a%20b", "/v1/a..b/...", "/v1/%E2%82%AC", "/v1/a;b=c", "/v1/.well-known/x", "/v1/%25"]
        {
            assert!(is_under(path, "/v1/"), "{path}");
        }
    }

    #[test]
    fn paths_that_some_server_reads_as_leaving() {
        for tail in [
            "..",
            ".",
            "%2e%2e/",
            ".%2E/x",
            "..%2fadmin",
            "..%5cadmin",
            "%252e%252e/",
            "%25252e%25252e/",
            "..;/",
            "%2e%2e;x=y/",
            "..%20/",
            "..%20",
            "%20../",
            ".%20./",
            "..%09/",
            "..%0a/",
            "..%0d/",
            "..%00/",
            "x%00",
            "..%3b/",
            "..%3fx",
            "..%23x",
            "%u002e%u002e/",
            "%U002E%u002e/",
            "%u2216x",
            "%25u002e/",
            "%c0%ae%c0%ae/",
            "%ef%bc%8e%ef%bc%8e/",
            "..%ef%bc%8fx",
            "%e2%80%a4%e2%80%a4/",
            "x%e2%88%95y",
            "..%e2%80%8b/",
            "..%c2%a0/",
            "..%ef%bb%bf/",
        ] {
            let path = format!("/v1/{tail}");
            assert!(!is_under(&path, "/v1/"), "{path}");
            assert!(is_under(&path, "/"), "without a path in the rule it does not matter: {path}");
        }
    }
}
