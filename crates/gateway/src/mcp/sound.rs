//! Results that any client can read: not too deep, and without halves of characters.

use bytes::{Bytes, BytesMut};
use sandbox::{Code, Failure};

/// Levels of lists and objects in what a handler gave. Many clients read 128 altogether, and the answer around it has some, too.
pub const MOST_DEPTH: usize = 100;

/// The same JSON, with U+FFFD in the place of each surrogate that stands alone; or why it is not passed on.
pub fn sound(json: Bytes) -> Result<Bytes, Failure> {
    let mut depth = 0usize;
    let mut in_string = false;
    let mut lone = Vec::new();
    let mut at = 0;
    while let Some(byte) = json.get(at) {
        at += match (in_string, byte) {
            (true, b'\\') => match escaped(&json[at..]) {
                Some(0xd800..=0xdbff) if matches!(escaped(&json[at + 6..]), Some(0xdc00..=0xdfff)) => 12,
                Some(0xd800..=0xdfff) => {
                    lone.push(at);
                    6
                }
                _ => 2,
            },
            (_, b'"') => {
                in_string = !in_string;
                1
            }
            (false, b'[' | b'{') => {
                depth += 1;
                if depth > MOST_DEPTH {
                    let message = format!("the result is nested more than {MOST_DEPTH} levels deep");
                    return Err(Failure::new(Code::ResultLimit, message));
                }
                1
            }
            (false, b']' | b'}') => {
                depth = depth.saturating_sub(1);
                1
            }
            _ => 1,
        };
    }
    if lone.is_empty() {
        return Ok(json);
    }
    let mut mended = BytesMut::from(&*json);
    for at in lone {
        mended[at..at + 6].copy_from_slice(br"\ufffd");
    }
    Ok(mended.freeze())
}

/// The code unit of `\uXXXX`, if that is what the text begins with.
fn escaped(text: &[u8]) -> Option<u16> {
    let digits = text.strip_prefix(br"\u")?.get(..4)?;
    let digits =
        std::str::from_utf8(digits).ok().filter(|digits| digits.bytes().all(|digit| digit.is_ascii_hexdigit()))?;
    u16::from_str_radix(digits, 16).ok()
}

#[cfg(test)]
mod tests {
    use super::*;
    use proptest::prelude::*;

    fn mended(json: &str) -> String {
        String::from_utf8(sound(Bytes::copy_from_slice(json.as_bytes())).unwrap().to_vec()).unwrap()
    }

    #[test]
    fn halves_of_characters_are_replaced_and_nothing_else() {
        for (given, wanted) in [
            (r#""\ud83d\ude00""#, r#""\ud83d\ude00""#),
            (r#""a\ud83d""#, r#""a\ufffd""#),
            (r#""\uDE00b""#, r#""\ufffdb""#),
            (r#""\ude00\ud83d""#, r#""\ufffd\ufffd""#),
            (r#""\ud83d\ud83d\ude00""#, r#""\ufffd\ud83d\ude00""#),
            (r#""\\ud83d \"\\""#, r#""\\ud83d \"\\""#),
            (r#"{"\udfff":["\ud800"]}"#, r#"{"\ufffd":["\ufffd"]}"#),
            (r#""\ud83"#, r#""\ud83"#),
            (r#""\"#, r#""\"#),
        ] {
            assert_eq!(mended(given), wanted);
        }
    }

    #[test]
    fn depth_is_bounded_and_brackets_in_text_do_not_count() {
        let nested = |depth: usize| Bytes::from(format!("{}1{}", "[".repeat(depth), "]".repeat(depth)));
        assert!(sound(nested(MOST_DEPTH)).is_ok());
        assert_eq!(sound(nested(MOST_DEPTH + 1)).unwrap_err().code, Code::ResultLimit);
        assert_eq!(sound(Bytes::from(format!("{}1", r#"{"a":"#.repeat(1000)))).unwrap_err().code, Code::ResultLimit);
        assert!(sound(Bytes::from(format!("[{}1]", "[],".repeat(1000)))).is_ok());
        assert!(sound(Bytes::from(format!("\"{}\"", "[{\\\"".repeat(1000)))).is_ok());
    }

    proptest! {
        /// Every string of code units, written as JavaScript writes it, is read afterwards as text with U+FFFD for what is alone.
        #[test]
        fn what_javascript_writes_can_be_read(units in proptest::collection::vec(prop_oneof![any::<u16>(), 0xd7fe_u16..0xe002], 0..40)) {
            let escaped: String = units.iter().map(|unit| format!("\\u{unit:04x}")).collect();
            let read: String = serde_json::from_str(&mended(&format!("\"{escaped}\""))).unwrap();
            prop_assert_eq!(read, String::from_utf16_lossy(&units));
        }

        #[test]
        fn no_bytes_are_too_odd(bytes in proptest::collection::vec(any::<u8>(), 0..200)) {
            let _ = sound(Bytes::from(bytes));
        }
    }
}
