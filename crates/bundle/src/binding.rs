//! Where a secret goes. The code that makes the request never has it.

use crate::text::quote;
use crate::word::word;
use crate::{SecretName, ServerName, Wrong};
use serde::{Deserialize, Serialize};
use std::borrow::Borrow;
use std::collections::BTreeSet;
use std::fmt;

/// A secret of the tenant's, and where the host puts it.
#[derive(Clone, Debug, PartialEq, Eq, PartialOrd, Ord, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct Binding {
    pub name: SecretName,
    /// Requests to these, and to no others.
    pub hosts: BTreeSet<BoundHost>,
    pub place: Place,
    pub format: Format,
    /// Only in requests that have the placeholder `{{secret:NAME}}` at the place; otherwise in all.
    pub asked: bool,
    /// It is no secret that somebody has set, but the token of the connection to this provider.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub connection: Option<ServerName>,
}

/// A place in a request.
#[derive(Clone, Debug, PartialEq, Eq, PartialOrd, Ord, Serialize, Deserialize)]
#[serde(rename_all = "snake_case", deny_unknown_fields)]
pub enum Place {
    Header(HeaderName),
    Query(ParameterName),
    Cookie(HeaderName),
    /// A field of a JSON body, as a JSON pointer.
    Body(Pointer),
    /// The secret is `user:password`.
    Basic,
    /// The request is signed by AWS's SigV4. The secret is `ACCESS_KEY_ID:SECRET_ACCESS_KEY`, and `:SESSION_TOKEN` if there is one.
    Aws {
        region: AwsWord,
        service: AwsWord,
    },
}

impl Place {
    /// As a policy names it: `header:authorization`.
    pub fn named(&self) -> String {
        match self {
            Place::Header(name) => format!("header:{name}"),
            Place::Query(name) => format!("query:{name}"),
            Place::Cookie(name) => format!("cookie:{name}"),
            Place::Body(pointer) => format!("body:{pointer}"),
            Place::Basic => "basic".to_owned(),
            Place::Aws { .. } => "aws".to_owned(),
        }
    }
}

impl fmt::Display for Binding {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        self.name.fmt(f)
    }
}

word! {
    /// A host that gets a secret: as in `egress`, without methods and without a path.
    BoundHost, bound_host
}

word! {
    /// Name of a header in lower case, or of a cookie.
    HeaderName, header_name
}

word! {
    /// Name of a parameter of a query.
    ParameterName, parameter_name
}

word! {
    /// A JSON pointer to a field below the top.
    Pointer, pointer
}

word! {
    /// A region or a service of AWS.
    AwsWord, aws_word
}

word! {
    /// What stands around the secret, which is `{}` in it: `Bearer {}`.
    Format, format
}

impl Default for Format {
    fn default() -> Format {
        Format("{}".to_owned())
    }
}

fn bound_host(text: &str) -> Result<(), Wrong> {
    let rule = crate::host::rule(text)?;
    if !rule.is_whole_origin() || rule.is_any_host() {
        let wrong = Wrong::new(format!("{} is more than a host", quote(text)));
        return Err(wrong.hint("a secret goes to a host, such as `api.example.com`, whatever the path"));
    }
    Ok(())
}

fn header_name(text: &str) -> Result<(), Wrong> {
    const MARKS: &[u8] = b"!#$%&'*+-.^_`|~";
    let fine = |b: u8| b.is_ascii_lowercase() || b.is_ascii_digit() || MARKS.contains(&b);
    let good = |text: &str| (1..=128).contains(&text.len()) && text.bytes().all(fine);
    let wrong = Wrong::new(format!("{} is no name for it", quote(text)));
    let lower = text.to_ascii_lowercase();
    match () {
        () if good(text) => Ok(()),
        () if good(&lower) => Err(wrong.hint(format!("write `{lower}`"))),
        () => Err(wrong.hint("such as `authorization` or `x-api-key`")),
    }
}

fn parameter_name(text: &str) -> Result<(), Wrong> {
    let good = (1..=128).contains(&text.len()) && !text.chars().any(crate::is_hidden);
    if good { Ok(()) } else { Err(Wrong::new(format!("{} is no name of a parameter", quote(text)))) }
}

fn pointer(text: &str) -> Result<(), Wrong> {
    let escapes = text.match_indices('~').all(|(at, _)| matches!(text.as_bytes().get(at + 1), Some(b'0' | b'1')));
    let good = text.len() <= 256 && text.starts_with('/') && escapes && !text.chars().any(crate::is_hidden);
    let wrong = || Wrong::new(format!("{} is no JSON pointer", quote(text)));
    if good { Ok(()) } else { Err(wrong().hint("such as `/auth/token`")) }
}

fn aws_word(text: &str) -> Result<(), Wrong> {
    let good = (1..=64).contains(&text.len())
        && text.bytes().all(|b| b.is_ascii_lowercase() || b.is_ascii_digit() || b == b'-');
    let wrong = || Wrong::new(format!("{} is no region or service", quote(text)));
    if good { Ok(()) } else { Err(wrong().hint("such as `eu-central-1` or `s3`")) }
}

fn format(text: &str) -> Result<(), Wrong> {
    let printable = text.bytes().all(|b| (0x20..0x7f).contains(&b));
    let good = text.len() <= 256 && printable && text.matches("{}").count() == 1 && !text.contains("{{secret:");
    let wrong = || Wrong::new(format!("{} does not say where the secret goes", quote(text)));
    if good { Ok(()) } else { Err(wrong().hint("`{}` stands for it, once, such as `Bearer {}`")) }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn all<T: std::str::FromStr>(good: &[&str], bad: &[&str]) {
        for text in good {
            assert!(text.parse::<T>().is_ok(), "{text}");
        }
        for text in bad {
            assert!(text.parse::<T>().is_err(), "{text}");
        }
    }

    #[test]
    fn words() {
        let bad = ["a.b/", "a.b/c", "https://a.b/c", "GET a.b", "GET https://a.b", "*", "", "a b", "u@a.b"];
        all::<BoundHost>(&["a.b", "*.example.com", "a.b:8443", "http://a.b", "192.0.2.1", "[2001:db8::1]:8080"], &bad);
        all::<HeaderName>(&["authorization", "x-api-key", "sid"], &["", "Authorization", "a b", "a:", "a\r\n", "ä"]);
        all::<ParameterName>(&["key", "api key", "ä"], &["", "a\u{200b}", "a\n"]);
        all::<Pointer>(&["/a", "/a/b~1c/0", "/~0"], &["", "a", "/~", "/~2", "/a\u{202e}"]);
        all::<AwsWord>(&["s3", "eu-central-1"], &["", "S3", "a/b", "a b"]);
        all::<Format>(&["{}", "Bearer {}", "token={}"], &["", "Bearer", "{}{}", "{}\r\n", "{{secret:A}}{}"]);
    }
}
