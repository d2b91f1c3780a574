//! Where in a request a secret may stand.

use crate::RegistryError;
use bundle::{Format, HeaderName, ParameterName, Pointer};
use serde::{Deserialize, Serialize};
use std::fmt;
use std::str::FromStr;

/// What services read credentials from, and do not store as data.
const CREDENTIALS: [&str; 9] = [
    "basic",
    "aws",
    "header:authorization",
    "header:x-api-key",
    "header:api-key",
    "header:x-auth-token",
    "header:x-access-token",
    "header:x-goog-api-key",
    "header:private-token",
];
const LONGEST_SCHEME: usize = 32;
/// Between a place and its format.
const AS: &str = " as ";
/// Stands for every format.
const ANY: &str = "*";

/// A place in requests, as an admin names it: `credentials`, or one such as `header:x-key`, `query:key`, `cookie:sid`,
/// `body:/auth/token`, `basic`, `aws`. Behind ` as ` stands what may be around the value, or `*` for anything. Without it only
/// the bare value may stand there; in a header also behind a scheme: `Bearer {}`.
#[derive(Clone, Debug, PartialEq, Eq, PartialOrd, Ord, Serialize, Deserialize)]
#[serde(try_from = "String", into = "String")]
pub enum AllowedPlace {
    Credentials,
    At { place: String, format: Option<String> },
}

impl AllowedPlace {
    pub const CREDENTIALS: &'static str = "credentials";

    /// The narrowest one that a binding fits into. What stands around a placeholder only its requests show.
    pub fn of(binding: &bundle::Binding) -> AllowedPlace {
        let format = Some(binding.format.as_str()).filter(|_| !binding.asked);
        AllowedPlace::around(binding.place.named(), format)
    }

    /// The narrowest one for a place and what stands around the value there.
    pub fn around(place: String, format: Option<&str>) -> AllowedPlace {
        let format = format.filter(|format| !is_plain(&place, format)).map(str::to_owned);
        AllowedPlace::At { place, format }
    }

    /// Whether a value may stand in a place, with this around it (`{}` is the value), if that is known.
    pub fn covers(&self, place: &str, format: Option<&str>) -> bool {
        let (fits, around) = match self {
            AllowedPlace::Credentials => (CREDENTIALS.contains(&place), None),
            AllowedPlace::At { place: own, format } => (own == place, format.as_deref()),
        };
        fits && format.is_none_or(|format| match around {
            None => is_plain(place, format),
            Some(around) => around == ANY || around == format,
        })
    }

    /// Whether services may store what stands there as data.
    pub fn is_stored(&self) -> bool {
        match self {
            AllowedPlace::Credentials => false,
            AllowedPlace::At { place, format } => format.is_some() || !CREDENTIALS.contains(&place.as_str()),
        }
    }
}

/// The bare value, or in a header the value behind the name of a scheme.
fn is_plain(place: &str, format: &str) -> bool {
    let scheme = |text: &str| {
        (1..=LONGEST_SCHEME).contains(&text.len()) && text.bytes().all(|b| b.is_ascii_alphanumeric() || b == b'-')
    };
    format == "{}" || place.starts_with("header:") && format.strip_suffix(" {}").is_some_and(scheme)
}

impl fmt::Display for AllowedPlace {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            AllowedPlace::Credentials => f.write_str(AllowedPlace::CREDENTIALS),
            AllowedPlace::At { place, format: None } => f.write_str(place),
            AllowedPlace::At { place, format: Some(format) } => write!(f, "{place}{AS}{format}"),
        }
    }
}

impl FromStr for AllowedPlace {
    type Err = RegistryError;

    fn from_str(text: &str) -> Result<AllowedPlace, RegistryError> {
        if text == AllowedPlace::CREDENTIALS {
            return Ok(AllowedPlace::Credentials);
        }
        let (place, format) = match text.split_once(AS) {
            Some((place, format)) => (place, Some(format)),
            None => (text, None),
        };
        let named = match place.split_once(':') {
            Some(("header" | "cookie", name)) => name.parse::<HeaderName>().map(drop),
            Some(("query", name)) => name.parse::<ParameterName>().map(drop),
            Some(("body", pointer)) => pointer.parse::<Pointer>().map(drop),
            None if matches!(place, "basic" | "aws") && format.is_none() => Ok(()),
            _ => return Err(bad(text, "it is none of the forms")),
        };
        named.map_err(|wrong| bad(text, &wrong.message))?;
        if let Some(format) = format.filter(|format| *format != ANY) {
            format.parse::<Format>().map_err(|wrong| bad(text, &wrong.message))?;
        }
        Ok(AllowedPlace::At { place: place.to_owned(), format: format.map(str::to_owned) })
    }
}

fn bad(text: &str, why: &str) -> RegistryError {
    let text: String = text.chars().take(64).filter(|c| !bundle::is_hidden(*c)).collect();
    let what = format!(
        "`{text}` is no place in a request: {why}; write `credentials`, `header:NAME`, `query:NAME`, `cookie:NAME`, \
         `body:/POINTER`, `basic` or `aws`"
    );
    RegistryError::BadValue { what }
}

impl TryFrom<String> for AllowedPlace {
    type Error = RegistryError;

    fn try_from(text: String) -> Result<AllowedPlace, RegistryError> {
        text.parse()
    }
}

impl From<AllowedPlace> for String {
    fn from(place: AllowedPlace) -> String {
        place.to_string()
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_place_covers_itself_and_what_is_plain_around_a_value() {
        for (allowed, place, format, fits) in [
            ("credentials", "header:authorization", "{}", true),
            ("credentials", "header:authorization", "Bearer {}", true),
            ("credentials", "header:authorization", "Digest username={}", false),
            ("credentials", "header:authorization", "{} ", false),
            ("credentials", "header:x-api-key", "{}", true),
            ("credentials", "basic", "{}", true),
            ("credentials", "aws", "{}", true),
            ("credentials", "header:x-note", "{}", false),
            ("credentials", "header:cookie", "{}", false),
            ("credentials", "cookie:sid", "{}", false),
            ("credentials", "query:key", "{}", false),
            ("credentials", "body:/note", "{}", false),
            ("query:key", "query:key", "{}", true),
            ("query:key", "query:key", "Bearer {}", false),
            ("query:key", "query:note", "{}", false),
            ("body:/a", "body:/a/b", "{}", false),
            ("header:x-key as k={}", "header:x-key", "k={}", true),
            ("header:x-key as k={}", "header:x-key", "{}", false),
            ("body:/q as *", "body:/q", "any {} thing {}", true),
        ] {
            let allowed: AllowedPlace = allowed.parse().unwrap();
            assert_eq!(allowed.covers(place, Some(format)), fits, "{allowed} {place} {format}");
            assert_eq!(allowed.to_string().parse::<AllowedPlace>().unwrap(), allowed);
        }
        let asked: AllowedPlace = "header:x-key as k={}".parse().unwrap();
        assert!(asked.covers("header:x-key", None) && !asked.covers("header:x-note", None));
    }

    #[test]
    fn what_names_no_place_is_refused() {
        for bad in [
            "",
            "*",
            "header",
            "header:",
            "header:X-Key",
            "query",
            "query:",
            "body",
            "body:a",
            "path",
            "basic:x",
            "basic as {}",
            "aws as *",
            "credentials as *",
            "header:x-key as",
            "header:x-key as k",
            "cookie:a b",
        ] {
            assert!(bad.parse::<AllowedPlace>().is_err(), "{bad}");
        }
    }
}
