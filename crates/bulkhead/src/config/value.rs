//! What a value of the configuration file may be, and how it is read and shown.

use reqwest::Url;
use std::collections::BTreeMap;
use std::net::{IpAddr, SocketAddr};
use std::path::PathBuf;
use toml::de::DeValue;

/// Why a value cannot be used. Says what is wrong, not where: who asked knows that.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Wrong {
    pub message: String,
    pub hint: Option<String>,
}

impl Wrong {
    pub fn new(message: impl Into<String>) -> Wrong {
        Wrong { message: message.into(), hint: None }
    }

    pub fn hint(self, hint: impl Into<String>) -> Wrong {
        Wrong { hint: Some(hint.into()), ..self }
    }

    fn kind(value: &DeValue<'_>, needed: &str) -> Wrong {
        Wrong::new(format!("{needed} is needed, this is {}", a(value.type_str())))
    }
}

fn a(kind: &str) -> String {
    let article = if kind.starts_with(['a', 'e', 'i', 'o', 'u']) { "an" } else { "a" };
    format!("{article} {kind}")
}

/// A type of value.
pub trait Value: Clone + PartialEq + Sized {
    /// What the reference calls it.
    fn kind() -> String;

    fn read(value: &DeValue<'_>) -> Result<Self, Wrong>;

    /// `None` is left out of the file.
    fn show(&self) -> Option<toml::Value>;
}

macro_rules! whole_numbers {
    ($($number:ty),*) => { $(
        impl Value for $number {
            fn kind() -> String {
                "whole number".to_owned()
            }

            fn read(value: &DeValue<'_>) -> Result<$number, Wrong> {
                let DeValue::Integer(written) = value else { return Err(Wrong::kind(value, "a whole number")) };
                <$number>::from_str_radix(written.as_str(), written.radix()).map_err(|_| {
                    let side = if written.as_str().starts_with('-') { "small" } else { "large" };
                    Wrong::new(format!("`{written}` is too {side}"))
                })
            }

            fn show(&self) -> Option<toml::Value> {
                Some(toml::Value::Integer(i64::try_from(*self).unwrap_or(i64::MAX)))
            }
        }
    )* };
}

whole_numbers!(u32, u64, usize);

impl Value for f64 {
    fn kind() -> String {
        "number".to_owned()
    }

    fn read(value: &DeValue<'_>) -> Result<f64, Wrong> {
        let number = match value {
            DeValue::Float(written) => written.as_str().parse::<f64>().ok(),
            DeValue::Integer(written) => i64::from_str_radix(written.as_str(), written.radix()).ok().map(|n| n as f64),
            _ => return Err(Wrong::kind(value, "a number")),
        };
        number.filter(|number| number.is_finite()).ok_or_else(|| Wrong::new("this is no finite number"))
    }

    fn show(&self) -> Option<toml::Value> {
        Some(toml::Value::Float(*self))
    }
}

impl Value for bool {
    fn kind() -> String {
        "true or false".to_owned()
    }

    fn read(value: &DeValue<'_>) -> Result<bool, Wrong> {
        value.as_bool().ok_or_else(|| Wrong::kind(value, "true or false"))
    }

    fn show(&self) -> Option<toml::Value> {
        Some(toml::Value::Boolean(*self))
    }
}

impl Value for String {
    fn kind() -> String {
        "text".to_owned()
    }

    fn read(value: &DeValue<'_>) -> Result<String, Wrong> {
        let text = value.as_str().ok_or_else(|| Wrong::kind(value, "text"))?;
        if text.chars().any(char::is_control) {
            return Err(Wrong::new("this text has control characters"));
        }
        Ok(text.to_owned())
    }

    fn show(&self) -> Option<toml::Value> {
        Some(toml::Value::String(self.clone()))
    }
}

impl Value for PathBuf {
    fn kind() -> String {
        "path".to_owned()
    }

    fn read(value: &DeValue<'_>) -> Result<PathBuf, Wrong> {
        let text = String::read(value)?;
        if text.is_empty() { Err(Wrong::new("this path is empty")) } else { Ok(PathBuf::from(text)) }
    }

    fn show(&self) -> Option<toml::Value> {
        Some(toml::Value::String(self.to_string_lossy().into_owned()))
    }
}

impl Value for SocketAddr {
    fn kind() -> String {
        "address and port".to_owned()
    }

    fn read(value: &DeValue<'_>) -> Result<SocketAddr, Wrong> {
        address(&String::read(value)?)
    }

    fn show(&self) -> Option<toml::Value> {
        Some(toml::Value::String(self.to_string()))
    }
}

/// An address to listen on.
pub fn address(text: &str) -> Result<SocketAddr, Wrong> {
    let wrong =
        || Wrong::new(format!("`{text}` is no address with a port")).hint("such as `127.0.0.1:8470` or `[::]:8470`");
    text.parse().map_err(|_| wrong())
}

impl<T: Value> Value for Option<T> {
    fn kind() -> String {
        T::kind()
    }

    fn read(value: &DeValue<'_>) -> Result<Option<T>, Wrong> {
        T::read(value).map(Some)
    }

    fn show(&self) -> Option<toml::Value> {
        self.as_ref().and_then(T::show)
    }
}

/// Addresses that begin alike: `192.0.2.0/24`.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Network(pub IpAddr, pub u8);

impl Value for Network {
    fn kind() -> String {
        "network, such as `192.0.2.0/24`".to_owned()
    }

    fn read(value: &DeValue<'_>) -> Result<Network, Wrong> {
        let text = String::read(value)?;
        let (address, bits) =
            text.split_once('/').map_or((text.as_str(), None), |(address, bits)| (address, Some(bits)));
        let wrong = || Wrong::new(format!("`{text}` is no network")).hint("such as `192.0.2.0/24` or `2001:db8::/32`");
        let address: IpAddr = address.parse().map_err(|_| wrong())?;
        let most = if address.is_ipv4() { 32 } else { 128 };
        let bits = bits.map_or(Ok(most), str::parse).ok().filter(|bits| *bits <= most).ok_or_else(wrong)?;
        Ok(Network(address, bits))
    }

    fn show(&self) -> Option<toml::Value> {
        Some(toml::Value::String(format!("{}/{}", self.0, self.1)))
    }
}

/// Lists are short: nobody writes longer ones by hand, and some are searched for every request.
const MOST_ENTRIES: usize = 256;

impl<T: Value> Value for Vec<T> {
    fn kind() -> String {
        format!("list ({})", T::kind())
    }

    fn read(value: &DeValue<'_>) -> Result<Vec<T>, Wrong> {
        let list = value.as_array().ok_or_else(|| Wrong::kind(value, "a list"))?;
        if list.len() > MOST_ENTRIES {
            return Err(Wrong::new(format!("the list has {} entries, {MOST_ENTRIES} are allowed", list.len())));
        }
        list.iter().map(|entry| T::read(entry.get_ref())).collect()
    }

    fn show(&self) -> Option<toml::Value> {
        Some(toml::Value::Array(self.iter().filter_map(T::show).collect()))
    }
}

/// An address on the web: `http` or `https`, without a name, a password or a fragment in it.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct WebAddress(Url);

impl WebAddress {
    pub fn as_str(&self) -> &str {
        self.0.as_str().trim_end_matches('/')
    }

    pub fn host(&self) -> &str {
        self.0.host_str().unwrap_or_default()
    }
}

impl Value for WebAddress {
    fn kind() -> String {
        "URL".to_owned()
    }

    fn read(value: &DeValue<'_>) -> Result<WebAddress, Wrong> {
        web_address(&String::read(value)?).map(WebAddress)
    }

    fn show(&self) -> Option<toml::Value> {
        Some(toml::Value::String(self.as_str().to_owned()))
    }
}

/// Reads an address on the web.
pub fn web_address(text: &str) -> Result<Url, Wrong> {
    let url = Url::parse(text).map_err(|error| Wrong::new(format!("`{text}` is no URL: {error}")));
    let url = url.map_err(|wrong| wrong.hint("such as `https://mcp.example.com`"))?;
    if !matches!(url.scheme(), "http" | "https") || url.host_str().is_none() {
        return Err(Wrong::new(format!("`{text}` is no URL of `http` or `https`")));
    }
    if !url.username().is_empty() || url.password().is_some() || url.fragment().is_some() {
        return Err(Wrong::new("this URL has a user, a password or a fragment"));
    }
    Ok(url)
}

/// Where a web page comes from, as browsers send it: scheme, host and port.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Origin(pub String);

impl Value for Origin {
    fn kind() -> String {
        "origin".to_owned()
    }

    fn read(value: &DeValue<'_>) -> Result<Origin, Wrong> {
        let text = String::read(value)?;
        let url = web_address(&text)?;
        if url.path() != "/" || url.query().is_some() || text.ends_with('/') {
            return Err(Wrong::new(format!("`{text}` has more than scheme, host and port"))
                .hint(format!("an origin is `{}`", url.origin().ascii_serialization())));
        }
        Ok(Origin(url.origin().ascii_serialization()))
    }

    fn show(&self) -> Option<toml::Value> {
        Some(toml::Value::String(self.0.clone()))
    }
}

/// A host as it stands in a request's `Host` field, with or without a port.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct HostName(pub String);

impl Value for HostName {
    fn kind() -> String {
        "host name".to_owned()
    }

    fn read(value: &DeValue<'_>) -> Result<HostName, Wrong> {
        let text = String::read(value)?;
        let wrong =
            || Wrong::new(format!("`{text}` is no host name")).hint("such as `mcp.example.com` or `[::1]:8470`");
        // The parser of URLs knows what hosts look like; a scheme's own port would be dropped, so there is none.
        let url = Url::parse(&format!("x-host://{text}")).map_err(|_| wrong())?;
        let plain = matches!(url.path(), "" | "/") && !text.ends_with('/') && url.username().is_empty();
        match url.host_str() {
            Some(host) if plain && !host.contains(['*', '%']) && url.query().is_none() && url.fragment().is_none() => {
                Ok(HostName(text.to_ascii_lowercase()))
            }
            _ => Err(wrong()),
        }
    }

    fn show(&self) -> Option<toml::Value> {
        Some(toml::Value::String(self.0.clone()))
    }
}

/// Header fields to send along. They hold credentials, so they are never shown.
#[derive(Clone, Default, PartialEq, Eq)]
pub struct Headers(pub BTreeMap<String, String>);

impl std::fmt::Debug for Headers {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        f.debug_set().entries(self.0.keys()).finish()
    }
}

impl Value for Headers {
    fn kind() -> String {
        "table of header fields".to_owned()
    }

    fn read(value: &DeValue<'_>) -> Result<Headers, Wrong> {
        let table = value.as_table().ok_or_else(|| Wrong::kind(value, "a table"))?;
        let mut headers = BTreeMap::new();
        for (name, value) in table.iter().take(MOST_ENTRIES) {
            let name = name.get_ref();
            reqwest::header::HeaderName::from_bytes(name.as_bytes())
                .map_err(|_| Wrong::new(format!("`{name}` is no name of a header field")))?;
            let text =
                String::read(value.get_ref()).map_err(|wrong| Wrong::new(format!("`{name}`: {}", wrong.message)))?;
            reqwest::header::HeaderValue::from_str(&text)
                .map_err(|_| Wrong::new(format!("the value of `{name}` cannot stand in a header field")))?;
            headers.insert(name.to_string(), text);
        }
        Ok(Headers(headers))
    }

    fn show(&self) -> Option<toml::Value> {
        let hidden = self.0.keys().map(|name| (name.clone(), toml::Value::String("***".to_owned())));
        Some(toml::Value::Table(hidden.collect()))
    }
}

/// An enumeration whose values are words.
macro_rules! choice {
    ($(#[$meta:meta])* $Name:ident { $($Variant:ident = $word:literal),* $(,)? }) => {
        $(#[$meta])*
        #[derive(Clone, Copy, Debug, PartialEq, Eq)]
        pub enum $Name { $($Variant),* }

        impl $Name {
            pub const WORDS: &'static [&'static str] = &[$($word),*];

            pub fn as_str(self) -> &'static str {
                match self { $($Name::$Variant => $word),* }
            }
        }

        impl $crate::config::value::Value for $Name {
            fn kind() -> String {
                $Name::WORDS.iter().map(|word| format!("`{word}`")).collect::<Vec<_>>().join(", ")
            }

            fn read(value: &toml::de::DeValue<'_>) -> Result<$Name, $crate::config::value::Wrong> {
                let text = String::read(value)?;
                match text.as_str() {
                    $($word => Ok($Name::$Variant),)*
                    _ => Err($crate::config::value::no_such_word(&text, $Name::WORDS)),
                }
            }

            fn show(&self) -> Option<toml::Value> {
                Some(toml::Value::String(self.as_str().to_owned()))
            }
        }
    };
}
pub(super) use choice;

pub fn no_such_word(text: &str, words: &[&str]) -> Wrong {
    let known = words.iter().map(|word| format!("`{word}`")).collect::<Vec<_>>().join(", ");
    let wrong = Wrong::new(format!("`{text}` is none of {known}"));
    match super::nearest(text, words.iter().copied()) {
        Some(word) => wrong.hint(format!("did you mean `{word}`?")),
        None => wrong,
    }
}
