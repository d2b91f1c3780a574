//! Text of a provider, made fit to be shown: short, without hidden characters, and without anything secret.

use bundle::is_hidden;
use secrecy::{ExposeSecret, SecretString};

/// So much of a secret in a row gives it away.
const TELLING: usize = 8;

/// At most so many characters, with a mark for each hidden one.
pub(crate) fn shown(text: &str, most: usize) -> String {
    let mut out: String = text.chars().take(most).map(|c| if is_hidden(c) { '\u{fffd}' } else { c }).collect();
    if text.chars().nth(most).is_some() {
        out.push('…');
    }
    out
}

/// Providers repeat what they were sent when they complain about it. Every piece of a secret becomes stars.
pub(crate) fn masked(text: &str, secrets: &[&SecretString]) -> String {
    let bytes = text.as_bytes();
    let mut hide = vec![false; bytes.len()];
    for secret in secrets.iter().map(|secret| secret.expose_secret().as_bytes()).filter(|secret| !secret.is_empty()) {
        let size = secret.len().min(TELLING);
        let pieces: std::collections::HashSet<&[u8]> = secret.windows(size).collect();
        for (at, window) in bytes.windows(size).enumerate() {
            if pieces.contains(window) {
                hide[at..at + size].fill(true);
            }
        }
    }
    // A piece of a secret may begin or end inside of a character.
    text.char_indices().map(|(at, c)| if hide[at..at + c.len_utf8()].contains(&true) { '*' } else { c }).collect()
}

/// What a token, a code or an id may be made of: it goes into headers and forms.
pub(crate) fn is_plain(text: &str, most: usize) -> bool {
    !text.is_empty() && text.len() <= most && text.bytes().all(|byte| byte.is_ascii_graphic())
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn hidden_characters_and_long_texts() {
        assert_eq!(shown("a\x1b[2J\u{202e}\nb", 100), "a\u{fffd}[2J\u{fffd}\u{fffd}b");
        assert_eq!(shown("abcdef", 3), "abc…");
        assert_eq!(shown("abc", 3), "abc");
    }

    #[test]
    fn secrets_and_pieces_of_them() {
        let secret = SecretString::from("0123456789abcdef");
        let short = SecretString::from("pin4");
        let both = [&secret, &short];
        assert_eq!(masked("token 0123456789abcdef is bad", &both), "token **************** is bad");
        assert_eq!(masked("token 456789abcd… is bad", &both), "token **********… is bad");
        assert_eq!(masked("ä pin4 ö", &both), "ä **** ö");
        assert_eq!(masked("0123456 is fine", &both), "0123456 is fine");
        assert_eq!(masked("anything", &[&SecretString::from("")]), "anything");
        assert_eq!(masked("äöü", &[&SecretString::from("ö")]), "ä*ü");
    }
}
