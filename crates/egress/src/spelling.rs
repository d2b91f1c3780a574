//! How servers write a byte that they do not write as it is: percent, JSON, JavaScript, HTML, quoted-printable.
//!
//! A text can be read in several ways (`%2541` is `%41` or `A`), so every reading is given, and the search follows all of them.

use std::ops::Range;

/// No reading is longer than this many raw bytes.
pub(crate) const LONGEST: usize = 32;
/// Backslashes before an escape: JSON within JSON has two or three, once more four or seven.
const MOST_BACKSLASHES: usize = 8;
/// `%25` and `&amp;` in place of `%` and `&`.
const MOST_TIMES: usize = 3;

/// Bytes that are written with the first `length` bytes of a text.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) struct Reading {
    bytes: [u8; 4],
    count: usize,
    pub(crate) length: usize,
}

impl Reading {
    fn byte(byte: u8, length: usize) -> Reading {
        Reading { bytes: [byte, 0, 0, 0], count: 1, length }
    }

    fn nothing(length: usize) -> Reading {
        Reading { bytes: [0; 4], count: 0, length }
    }

    fn letter(code: u32, length: usize) -> Option<Reading> {
        let mut bytes = [0; 4];
        let count = char::from_u32(code)?.encode_utf8(&mut bytes).len();
        Some(Reading { bytes, count, length })
    }

    /// Empty for what is left out when a text is read, such as the line breaks within base64.
    pub(crate) fn bytes(&self) -> &[u8] {
        &self.bytes[..self.count]
    }
}

/// What the search takes for the same byte: capitals, the two alphabets of base64, and a space that forms write as `+`.
pub(crate) fn fold(byte: u8) -> u8 {
    match byte {
        b'+' | b'-' => b' ',
        b'_' => b'/',
        byte => byte.to_ascii_lowercase(),
    }
}

/// Every reading of the text's beginning, except for its first byte as it is.
pub(crate) fn readings(raw: &[u8], out: &mut Vec<Reading>) {
    out.clear();
    match raw.first() {
        Some(b'%') => percent(raw, out),
        Some(b'\\') => backslash(raw, out),
        Some(b'&') => entity(raw, out),
        Some(b'=') => quoted_printable(raw, out),
        // UTF-16 has a zero beside each letter, and so has its hexadecimal form.
        Some(0) => out.push(Reading::nothing(1)),
        Some(b'0') if raw.get(1) == Some(&b'0') => out.push(Reading::nothing(2)),
        // Base64 is broken into lines, and bytes in hexadecimal are set apart.
        Some(b'\r' | b'\n') => out.extend([Reading::nothing(1), Reading::nothing(1 + indent(&raw[1..]))]),
        Some(b' ' | b':') => out.push(Reading::nothing(1)),
        _ => {}
    }
    for at in 0..out.len() {
        // The same when they are written in another way.
        if let (&[0 | b'\r' | b'\n'], length) = (out[at].bytes(), out[at].length) {
            out.push(Reading::nothing(length));
        }
    }
}

fn indent(raw: &[u8]) -> usize {
    raw.iter().take(LONGEST - 1).take_while(|byte| matches!(byte, b' ' | b'\t')).count()
}

fn hex(raw: &[u8], at: Range<usize>) -> Option<u32> {
    let digits = raw.get(at)?;
    digits.iter().try_fold(0, |sum: u32, digit| Some(sum << 4 | char::from(*digit).to_digit(16)?))
}

fn percent(raw: &[u8], out: &mut Vec<Reading>) {
    let mut at = 1;
    for _ in 0..=MOST_TIMES {
        out.extend(hex(raw, at..at + 2).map(|code| Reading::byte(code as u8, at + 2)));
        if matches!(raw.get(at), Some(b'u' | b'U')) {
            out.extend(hex(raw, at + 1..at + 5).and_then(|code| Reading::letter(code, at + 5)));
        }
        if raw.get(at..at + 2) != Some(b"25") {
            break;
        }
        at += 2;
    }
}

fn quoted_printable(raw: &[u8], out: &mut Vec<Reading>) {
    out.extend(hex(raw, 1..3).map(|code| Reading::byte(code as u8, 3)));
    let soft_break = [&b"=\r\n"[..], b"=\n"].into_iter().find(|soft_break| raw.starts_with(soft_break));
    out.extend(soft_break.map(|text| Reading::nothing(text.len())));
}

fn backslash(raw: &[u8], out: &mut Vec<Reading>) {
    let run = raw.iter().take(MOST_BACKSLASHES).take_while(|byte| **byte == b'\\').count();
    for length in [2, 4] {
        if run >= length {
            out.push(Reading::byte(b'\\', length));
        }
    }
    let Some(next) = raw.get(run).copied().filter(|next| *next != b'\\') else { return };
    let simple = |byte: u8| Reading::byte(byte, run + 1);
    match next {
        b'u' => out.extend(unicode(raw, run)),
        b'x' => {
            if let Some(code) = hex(raw, run + 1..run + 3) {
                out.push(Reading::byte(code as u8, run + 3));
                out.extend(Reading::letter(code, run + 3).filter(|_| code > 0x7f));
            }
        }
        b'n' => out.push(simple(b'\n')),
        b'r' => out.push(simple(b'\r')),
        b't' => out.push(simple(b'\t')),
        b'b' => out.push(simple(8)),
        b'f' => out.push(simple(12)),
        b'0'..=b'7' => {
            let digits = raw[run..].iter().take(3).take_while(|digit| (b'0'..=b'7').contains(digit)).enumerate();
            let mut code = 0;
            for (at, digit) in digits {
                code = code << 3 | u32::from(digit - b'0');
                out.extend(u8::try_from(code).map(|code| Reading::byte(code, run + at + 1)));
            }
        }
        other if !other.is_ascii_alphanumeric() => out.push(simple(other)),
        _ => {}
    }
}

/// `\u002B`, `\u{2B}`, and two of the former for a letter beyond the first 65,536.
fn unicode(raw: &[u8], run: usize) -> Option<Reading> {
    if raw.get(run + 1) == Some(&b'{') {
        let rest = raw.get(run + 2..)?;
        let digits = rest.iter().take(7).position(|byte| *byte == b'}')?;
        return Reading::letter(hex(rest, 0..digits)?, run + 3 + digits);
    }
    let high = hex(raw, run + 1..run + 5)?;
    if (0xd800..0xdc00).contains(&high) {
        let second = raw.get(run + 5..)?;
        let (slashes, rest) = second.split_at_checked(run)?;
        let low = hex(rest, 1..5).filter(|low| (0xdc00..0xe000).contains(low))?;
        let whole = slashes.iter().all(|byte| *byte == b'\\') && rest.first() == Some(&b'u');
        let code = 0x10000 + ((high - 0xd800) << 10) + (low - 0xdc00);
        return Reading::letter(code, 2 * (run + 5)).filter(|_| whole);
    }
    Reading::letter(high, run + 5)
}

fn entity(raw: &[u8], out: &mut Vec<Reading>) {
    let mut at = 1;
    for _ in 0..MOST_TIMES {
        out.extend(number(raw, at));
        let rest = raw.get(at..).unwrap_or_default();
        let name = rest.iter().take(9).position(|byte| *byte == b';').and_then(|end| rest.get(..end));
        let named = name.and_then(|name| NAMES.iter().find(|(known, _)| known.as_bytes().eq_ignore_ascii_case(name)));
        out.extend(named.map(|(known, byte)| Reading::byte(*byte, at + known.len() + 1)));
        if !rest.starts_with(b"amp;") {
            break;
        }
        at += 4;
    }
}

/// `#43;` and `#x2B;`, with zeros before and with or without the semicolon.
fn number(raw: &[u8], at: usize) -> Option<Reading> {
    if raw.get(at) != Some(&b'#') {
        return None;
    }
    let radix = if matches!(raw.get(at + 1), Some(b'x' | b'X')) { 16 } else { 10 };
    let from = at + if radix == 16 { 2 } else { 1 };
    let digits = raw.get(from..)?.iter().map(|byte| char::from(*byte).to_digit(radix)).take(8);
    let digits: Vec<u32> = digits.take_while(Option::is_some).flatten().collect();
    let code = digits.iter().try_fold(0_u32, |sum, digit| sum.checked_mul(radix)?.checked_add(*digit))?;
    let end = from + digits.len();
    let length = if raw.get(end) == Some(&b';') { end + 1 } else { end };
    Reading::letter(code, length).filter(|_| !digits.is_empty())
}

/// The names that HTML has for ASCII.
const NAMES: [(&str, u8); 38] = [
    ("tab", b'\t'),
    ("newline", b'\n'),
    ("nbsp", b' '),
    ("excl", b'!'),
    ("quot", b'"'),
    ("num", b'#'),
    ("dollar", b'$'),
    ("percnt", b'%'),
    ("amp", b'&'),
    ("apos", b'\''),
    ("lpar", b'('),
    ("rpar", b')'),
    ("ast", b'*'),
    ("midast", b'*'),
    ("plus", b'+'),
    ("comma", b','),
    ("hyphen", b'-'),
    ("period", b'.'),
    ("sol", b'/'),
    ("colon", b':'),
    ("semi", b';'),
    ("lt", b'<'),
    ("equals", b'='),
    ("gt", b'>'),
    ("quest", b'?'),
    ("commat", b'@'),
    ("lsqb", b'['),
    ("lbrack", b'['),
    ("bsol", b'\\'),
    ("rsqb", b']'),
    ("rbrack", b']'),
    ("hat", b'^'),
    ("lowbar", b'_'),
    ("grave", b'`'),
    ("lcub", b'{'),
    ("verbar", b'|'),
    ("rcub", b'}'),
    ("tilde", b'~'),
];

#[cfg(test)]
mod tests {
    use super::*;
    use proptest::prelude::*;

    fn read(text: &str) -> Vec<(String, usize)> {
        let mut out = Vec::new();
        readings(text.as_bytes(), &mut out);
        out.iter().map(|one| (String::from_utf8_lossy(one.bytes()).into_owned(), one.length)).collect()
    }

    #[test]
    fn ways_to_write_a_plus() {
        for text in [
            "%2B",
            "%2b",
            "%252B",
            "%25252b",
            "%u002B",
            "%25u002b",
            "\\u002B",
            "\\\\u002b",
            "\\u{2b}",
            "\\x2B",
            "\\\\x2b",
            "\\053",
            "&#43;",
            "&#043;",
            "&#x2B;",
            "&#X002b;",
            "&#43",
            "&plus;",
            "&amp;#43;",
            "&amp;plus;",
            "=2B",
        ] {
            assert!(read(text).contains(&("+".to_owned(), text.len())), "{text}: {:?}", read(text));
        }
    }

    #[test]
    fn all_readings() {
        let own = |list: &[(&str, usize)]| list.iter().map(|(text, at)| ((*text).to_owned(), *at)).collect::<Vec<_>>();
        assert_eq!(read("%2541"), own(&[("%", 3), ("A", 5)]));
        assert_eq!(read("\\\\\\\"x"), own(&[("\\", 2), ("\"", 4)]));
        assert_eq!(read("\\/"), own(&[("/", 2)]));
        assert_eq!(read("\\n"), own(&[("\n", 2), ("", 2)]));
        assert_eq!(read("&amp;lt;"), own(&[("&", 5), ("<", 8)]));
        assert_eq!(read("\\u00e9"), own(&[("é", 6)]));
        assert_eq!(read("\\ud83d\\ude00"), own(&[("😀", 12)]));
        assert_eq!(read("\\\\ud83d\\\\ude00"), own(&[("\\", 2), ("😀", 14)]));
        for nothing in
            ["", "a", "%", "%2", "%zz", "\\", "\\q", "\\u00", "\\ud83d", "&", "&#;", "&nosuch;", "=2", "&#99999999;"]
        {
            assert_eq!(read(nothing), [], "{nothing}");
        }
    }

    proptest! {
        #![proptest_config(ProptestConfig { failure_persistence: None, ..ProptestConfig::default() })]

        #[test]
        fn none_is_longer_than_told(text in "[\\\\%&]{1,9}(amp;|25|u|x|#|d83d|[0-9a-f{};\\\\]){0,40}") {
            let mut out = Vec::new();
            readings(text.as_bytes(), &mut out);
            for one in out {
                prop_assert!((1..=LONGEST).contains(&one.length) && one.length <= text.len());
                prop_assert!(one.bytes().len() <= one.length);
            }
        }
    }
}
