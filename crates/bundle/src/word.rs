//! Text that follows a rule, each with a type of its own.

use crate::text::quote;
use serde::{Deserialize, Serialize};
use std::borrow::Borrow;
use std::fmt;

/// Why a value cannot be used. Says what is wrong, not where: who asked knows that.
#[derive(Clone, Debug, PartialEq, Eq, thiserror::Error)]
#[error("{message}{}", .hint.as_ref().map(|hint| format!("; {hint}")).unwrap_or_default())]
pub struct Wrong {
    pub message: String,
    pub hint: Option<String>,
}

impl Wrong {
    pub(crate) fn new(message: impl Into<String>) -> Wrong {
        Wrong { message: message.into(), hint: None }
    }

    pub(crate) fn hint(self, hint: impl Into<String>) -> Wrong {
        Wrong { hint: Some(hint.into()), ..self }
    }
}

/// Declares a type of text that is only made through its rule.
macro_rules! word {
    ($(#[$meta:meta])* $Name:ident, $rule:path) => {
        $(#[$meta])*
        #[derive(Clone, Debug, PartialEq, Eq, PartialOrd, Ord, Hash, Serialize, Deserialize)]
        #[serde(try_from = "String", into = "String")]
        pub struct $Name(String);

        impl $Name {
            pub fn as_str(&self) -> &str {
                &self.0
            }
        }

        impl std::str::FromStr for $Name {
            type Err = $crate::Wrong;

            fn from_str(text: &str) -> Result<$Name, $crate::Wrong> {
                $rule(text).map(|()| $Name(text.to_owned()))
            }
        }

        impl TryFrom<String> for $Name {
            type Error = $crate::Wrong;

            fn try_from(text: String) -> Result<$Name, $crate::Wrong> {
                $rule(&text).map(|()| $Name(text))
            }
        }

        impl From<$Name> for String {
            fn from(word: $Name) -> String {
                word.0
            }
        }

        impl Borrow<str> for $Name {
            fn borrow(&self) -> &str {
                &self.0
            }
        }

        impl fmt::Display for $Name {
            fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
                f.write_str(&self.0)
            }
        }
    };
}
pub(crate) use word;

word! {
    /// Name of a server: `^[a-z0-9]([a-z0-9-]{0,61}[a-z0-9])?$`, and not one of the host's own.
    ServerName, server_name
}

word! {
    /// Name of a secret: `^[A-Z][A-Z0-9_]{0,63}$`.
    SecretName, secret_name
}

word! {
    /// A file below the project, with `/` between its parts: never absolute, never upwards, the same on every system.
    FilePath, file_path
}

word! {
    /// Id of a key, as the host gave it.
    KeyId, key_id
}

const LONGEST_NAME: usize = 63;
const LONGEST_SECRET: usize = 64;
const LONGEST_PATH: usize = 512;
const LONGEST_KEY_ID: usize = 64;

/// The first segments of the host's own URLs. The registry has the same rule; a test compares.
const RESERVED: &[&str] = &["admin", "connect", "healthz", "readyz", "metrics", "mcp", "well-known"];

fn server_name(text: &str) -> Result<(), Wrong> {
    if RESERVED.contains(&text) {
        return Err(Wrong::new(format!("the host needs the name `{text}` for itself")));
    }
    let edge = |byte: Option<&u8>| byte.is_some_and(|b| b.is_ascii_lowercase() || b.is_ascii_digit());
    let bytes = text.as_bytes();
    let good = bytes.len() <= LONGEST_NAME
        && edge(bytes.first())
        && edge(bytes.last())
        && bytes.iter().all(|b| edge(Some(b)) || *b == b'-');
    let wrong = || Wrong::new(format!("{} is no name of a server", quote(text)));
    let hint = || format!("use 1 to {LONGEST_NAME} of a-z, 0-9 and -, with no - at either end");
    if good { Ok(()) } else { Err(wrong().hint(hint())) }
}

fn secret_name(text: &str) -> Result<(), Wrong> {
    let bytes = text.as_bytes();
    let good = bytes.len() <= LONGEST_SECRET
        && bytes.first().is_some_and(u8::is_ascii_uppercase)
        && bytes.iter().all(|b| b.is_ascii_uppercase() || b.is_ascii_digit() || *b == b'_');
    let wrong = || Wrong::new(format!("{} is no name of a secret", quote(text)));
    let hint = || format!("use 1 to {LONGEST_SECRET} of A-Z, 0-9 and _, a letter first, such as `API_TOKEN`");
    if good { Ok(()) } else { Err(wrong().hint(hint())) }
}

fn file_path(text: &str) -> Result<(), Wrong> {
    let wrong = |what: &str| Err(Wrong::new(format!("{} {what}", quote(text))));
    if text.is_empty() {
        return Err(
            Wrong::new("this path is empty").hint("a path below the project is needed, such as `src/server.js`")
        );
    }
    if text.len() > LONGEST_PATH {
        return wrong(&format!("is longer than {LONGEST_PATH} bytes"));
    }
    if text.starts_with('/') {
        return wrong("is absolute, a path below the project is needed");
    }
    // A colon makes a drive or a stream of a path elsewhere.
    if text.contains(['\\', ':']) {
        return wrong("has a character that paths here do not have; parts are separated by `/`");
    }
    if text.chars().any(crate::is_hidden) {
        return wrong("has invisible characters");
    }
    match text.split('/').find(|part| matches!(*part, "" | "." | "..")) {
        Some("..") => wrong("leads out of the project, a path below it is needed"),
        Some(_) => wrong("has an empty part or a `.`"),
        None => Ok(()),
    }
}

fn key_id(text: &str) -> Result<(), Wrong> {
    let good = (1..=LONGEST_KEY_ID).contains(&text.len())
        && text.bytes().all(|b| b.is_ascii_alphanumeric() || matches!(b, b'-' | b'_'));
    if good { Ok(()) } else { Err(Wrong::new(format!("{} is no id of a key", quote(text)))) }
}

#[cfg(test)]
mod tests {
    use super::*;
    use proptest::prelude::*;

    #[test]
    fn names_of_servers_are_those_of_the_registry() {
        let longest = "a".repeat(63);
        let too_long = "a".repeat(64);
        let words = ["", "a", "-", "a-", "-a", "a--b", "A", "a_b", "a.b", "ä", "a\n", &longest, &too_long];
        for word in words.into_iter().chain(RESERVED.iter().copied()) {
            assert_eq!(word.parse::<ServerName>().is_ok(), registry::is_name(word), "{word}");
        }
    }

    proptest! {
        #[test]
        fn and_so_is_any_other(word in "[a-c0-9A_.-]{0,5}|[a-z]{3,8}|.{0,3}|[a-z-]{60,66}") {
            prop_assert_eq!(word.parse::<ServerName>().is_ok(), registry::is_name(&word));
        }
    }

    #[test]
    fn secrets() {
        for good in ["A", "API_TOKEN", "A1", "A_", &"A".repeat(64)] {
            assert!(good.parse::<SecretName>().is_ok(), "{good}");
        }
        for bad in ["", "a", "1A", "_A", "A-B", "A B", "Ä", "A\n", "A=B", &"A".repeat(65)] {
            assert!(bad.parse::<SecretName>().is_err(), "{bad}");
        }
    }

    #[test]
    fn paths_stay_below() {
        for good in ["server.js", "src/a.js", "a b/ä.js", "...", ".hidden", "a/..b"] {
            assert!(good.parse::<FilePath>().is_ok(), "{good}");
        }
        let bad = [
            "",
            "/",
            "/etc/passwd",
            "..",
            "../a",
            "a/../b",
            "a/..",
            "./a",
            "a/./b",
            "a//b",
            "a/",
            "a\\b",
            "..\\a",
            "C:a",
            "C:/a",
            "a\0",
            "a\n",
            "a\u{202e}sj.js",
            "a\u{200b}",
        ];
        for bad in bad {
            assert!(bad.parse::<FilePath>().is_err(), "{bad:?}");
        }
        assert!("a/".repeat(1000).parse::<FilePath>().unwrap_err().to_string().len() < 500);
    }
}
