//! How a value gets into its place, and how a placeholder is found there.

use crate::binding::{HOLE, Place};
use crate::credentials::{Payload, Prepared};
use crate::denied::Denied;
use crate::json;
use bytes::Bytes;
use http::header::{CONTENT_TYPE, COOKIE, HeaderName, HeaderValue};
use percent_encoding::{NON_ALPHANUMERIC, percent_decode_str, utf8_percent_encode};
use zeroize::Zeroizing;

/// Placeholders in one place: each becomes a value, which may be much longer.
const MOST_TIMES: usize = 16;

/// The text with the value wherever the mark stands; nothing if it stands nowhere.
fn swap(text: &[u8], mark: &[u8], value: &[u8]) -> Result<Option<Zeroizing<Vec<u8>>>, Denied> {
    let places = find(text, mark);
    if places.len() > MOST_TIMES {
        return Err(Denied::limit(format!("a request has more than {MOST_TIMES} placeholders in one place")));
    }
    if places.is_empty() {
        return Ok(None);
    }
    let mut out = Zeroizing::new(Vec::with_capacity(text.len() + places.len() * value.len()));
    let mut from = 0;
    for at in places {
        out.extend_from_slice(&text[from..at]);
        out.extend_from_slice(value);
        from = at + mark.len();
    }
    out.extend_from_slice(&text[from..]);
    Ok(Some(out))
}

fn find(text: &[u8], mark: &[u8]) -> Vec<usize> {
    let mut places = Vec::new();
    let mut at = 0;
    while at + mark.len() <= text.len() {
        if text[at..].starts_with(mark) {
            places.push(at);
            at += mark.len();
        } else {
            at += 1;
        }
    }
    places
}

/// Each decoded byte of a query, with how it was written.
fn decoded(raw: &str) -> (Vec<u8>, Vec<&str>) {
    let (mut bytes, mut written) = (Vec::new(), Vec::new());
    let mut at = 0;
    while at < raw.len() {
        let hex = raw.get(at + 1..at + 3).and_then(|hex| u8::from_str_radix(hex, 16).ok());
        let (byte, length) = match (raw.as_bytes()[at], hex) {
            (b'%', Some(byte)) => (byte, 3),
            (b'+', _) => (b' ', 1),
            (byte, _) => (byte, 1),
        };
        bytes.push(byte);
        written.push(raw.get(at..at + length).unwrap_or_default());
        at += length;
    }
    (bytes, written)
}

fn encode(text: &str) -> Zeroizing<String> {
    Zeroizing::new(utf8_percent_encode(text, NON_ALPHANUMERIC).to_string())
}

fn is_parameter(pair: &str, name: &str) -> bool {
    let key = pair.split('=').next().unwrap_or_default().replace('+', " ");
    percent_decode_str(&key).decode_utf8_lossy() == name
}

/// A header that no log shows and that is overwritten when it was sent.
fn sensitive(name: &HeaderName, value: Zeroizing<Vec<u8>>) -> Result<HeaderValue, Denied> {
    let wrong = |_| Denied::refuse(format!("the secret for header `{name}` has characters that no header can carry"));
    let mut value = HeaderValue::from_maybe_shared(Bytes::from_owner(value)).map_err(wrong)?;
    value.set_sensitive(true);
    Ok(value)
}

pub(crate) fn is_json(request: &Prepared) -> bool {
    let mut types = request.headers.get_all(CONTENT_TYPE).iter();
    let (Some(only), None) = (types.next(), types.next()) else { return false };
    let kind = only.to_str().unwrap_or_default().split(';').next().unwrap_or_default().trim().to_ascii_lowercase();
    kind == "application/json" || kind.starts_with("application/") && kind.ends_with("+json")
}

impl Prepared {
    /// Whether the mark stands in this place.
    pub(crate) fn holds(&self, place: &Place, mark: &str) -> bool {
        let within = |text: &[u8]| !find(text, mark.as_bytes()).is_empty();
        match place {
            Place::Header(_) | Place::Basic | Place::Aws { .. } => {
                let name = place.header();
                name.is_some_and(|name| self.headers.get_all(name).iter().any(|value| within(value.as_bytes())))
            }
            Place::Cookie(name) => self.cookies().iter().any(|(key, value)| key == name && within(value.as_bytes())),
            Place::Query(name) => {
                let pairs = self.target.query.trim_start_matches('?').split('&');
                let mut values = pairs.filter(|pair| is_parameter(pair, name)).filter_map(|pair| pair.split_once('='));
                values.any(|(_, value)| within(&decoded(value).0))
            }
            Place::Body(pointer) => match (&self.body, json::steps(pointer)) {
                (Payload::Whole(body), Ok(steps)) if is_json(self) => {
                    json::string_at(body, &steps).ok().flatten().is_some_and(|text| within(text.as_bytes()))
                }
                _ => false,
            },
        }
    }

    /// The texts that the mark stands in, with `{}` for it. Lines of one header are read as one, so all of them are here.
    pub(crate) fn shapes(&self, place: &Place, mark: &str) -> Vec<String> {
        let shape = |text: &[u8]| String::from_utf8_lossy(text).replace(mark, HOLE);
        match place {
            Place::Header(name) => self.headers.get_all(name).iter().map(|value| shape(value.as_bytes())).collect(),
            Place::Cookie(name) => {
                let cookies = self.cookies();
                cookies.iter().filter(|(key, _)| key == name).map(|(_, value)| shape(value.as_bytes())).collect()
            }
            Place::Query(name) => {
                let pairs = self.target.query.trim_start_matches('?').split('&');
                let values = pairs.filter(|pair| is_parameter(pair, name)).filter_map(|pair| pair.split_once('='));
                let held = values.map(|(_, value)| decoded(value).0);
                held.filter(|text| !find(text, mark.as_bytes()).is_empty()).map(|text| shape(&text)).collect()
            }
            Place::Body(pointer) => match (&self.body, json::steps(pointer)) {
                (Payload::Whole(body), Ok(steps)) => {
                    let text = json::string_at(body, &steps).ok().flatten();
                    text.map(|text| shape(text.as_bytes())).into_iter().collect()
                }
                _ => Vec::new(),
            },
            // They are made as a whole.
            Place::Basic | Place::Aws { .. } => vec![HOLE.to_owned()],
        }
    }

    /// Puts the value where the mark stands, and leaves the text around it.
    pub(crate) fn swap(&mut self, place: &Place, mark: &str, value: &str) -> Result<(), Denied> {
        match place {
            Place::Header(name) => self.swap_header(name, mark, value),
            Place::Cookie(name) => {
                let mut cookies = self.cookies();
                for (_, text) in cookies.iter_mut().filter(|(key, _)| key == name) {
                    if let Some(new) = swap(text.as_bytes(), mark.as_bytes(), value.as_bytes())? {
                        *text = in_cookie(name, &new)?;
                    }
                }
                self.set_cookies(&cookies)
            }
            Place::Query(name) => self.swap_query(name, mark, value),
            Place::Body(pointer) => {
                let Payload::Whole(body) = &self.body else { return Ok(()) };
                let steps = json::steps(pointer).map_err(Denied::invalid)?;
                let text = Zeroizing::new(json::string_at(body, &steps).map_err(body_is)?.unwrap_or_default());
                match swap(text.as_bytes(), mark.as_bytes(), value.as_bytes())? {
                    Some(new) => self.set_body(&steps, std::str::from_utf8(&new).unwrap_or_default()),
                    None => Ok(()),
                }
            }
            // They are made as a whole.
            Place::Basic | Place::Aws { .. } => Ok(()),
        }
    }

    /// Puts the text into the place, over whatever is there.
    pub(crate) fn set(&mut self, place: &Place, text: &Zeroizing<String>) -> Result<(), Denied> {
        match place {
            Place::Header(name) => self.set_header(name.clone(), text),
            Place::Cookie(name) => {
                let mut cookies = self.cookies();
                cookies.retain(|(key, _)| key != name);
                cookies.push((name.clone(), in_cookie(name, text.as_bytes())?));
                self.set_cookies(&cookies)
            }
            Place::Query(name) => {
                self.set_query(name, text);
                Ok(())
            }
            Place::Body(pointer) if is_json(self) => {
                self.set_body(&json::steps(pointer).map_err(Denied::invalid)?, text)
            }
            Place::Body(_) | Place::Basic | Place::Aws { .. } => Ok(()),
        }
    }

    /// Replaces what the code inside has set under this name.
    pub fn set_header(&mut self, name: HeaderName, value: &str) -> Result<(), Denied> {
        crate::headers::bindable(&name)?;
        let value = sensitive(&name, Zeroizing::new(value.as_bytes().to_vec()))?;
        self.headers.insert(name, value);
        Ok(())
    }

    fn swap_header(&mut self, name: &HeaderName, mark: &str, value: &str) -> Result<(), Denied> {
        let old: Vec<HeaderValue> = self.headers.get_all(name).iter().cloned().collect();
        self.headers.remove(name);
        for text in old {
            let new = match swap(text.as_bytes(), mark.as_bytes(), value.as_bytes())? {
                Some(new) => sensitive(name, new)?,
                None => text,
            };
            self.headers.append(name.clone(), new);
        }
        Ok(())
    }

    /// Replaces every parameter of this name.
    pub fn set_query(&mut self, name: &str, value: &str) {
        let (name_said, said) = (encode(name), encode(value));
        let old = Zeroizing::new(std::mem::take(&mut self.target.query));
        let others =
            old.trim_start_matches('?').split('&').filter(|pair| !pair.is_empty() && !is_parameter(pair, name));
        let parts = std::iter::once("?").chain(others.flat_map(|pair| [pair, "&"]));
        self.target.query = parts.chain([name_said.as_str(), "=", said.as_str()]).collect::<Vec<_>>().concat();
    }

    fn swap_query(&mut self, name: &str, mark: &str, value: &str) -> Result<(), Denied> {
        let encoded = encode(value);
        let old = Zeroizing::new(std::mem::take(&mut self.target.query));
        let mut parts: Vec<&str> = Vec::new();
        let mut times = 0;
        for pair in old.trim_start_matches('?').split('&') {
            parts.push(if parts.is_empty() { "?" } else { "&" });
            let Some((key, text)) = pair.split_once('=').filter(|_| is_parameter(pair, name)) else {
                parts.push(pair);
                continue;
            };
            let (bytes, written) = decoded(text);
            let places = find(&bytes, mark.as_bytes());
            times += places.len();
            if times > MOST_TIMES {
                return Err(Denied::limit(format!("a request has more than {MOST_TIMES} placeholders in one place")));
            }
            parts.extend([key, "="]);
            let mut from = 0;
            for at in places {
                parts.extend(&written[from..at]);
                parts.push(&encoded);
                from = at + mark.len();
            }
            parts.extend(&written[from..]);
        }
        self.target.query = parts.concat();
        Ok(())
    }

    fn cookies(&self) -> Vec<(String, Zeroizing<String>)> {
        let lines = self.headers.get_all(COOKIE).iter();
        let text = lines.map(|line| crate::headers::latin1(line.as_bytes())).collect::<Vec<_>>().join(";");
        let pairs = text.split(';').map(str::trim).filter(|pair| !pair.is_empty());
        let parts = pairs.map(|pair| pair.split_once('=').unwrap_or((pair, "")));
        parts.map(|(key, value)| (key.trim().to_owned(), Zeroizing::new(value.trim().to_owned()))).collect()
    }

    fn set_cookies(&mut self, cookies: &[(String, Zeroizing<String>)]) -> Result<(), Denied> {
        // Some servers read on to the next quote, over the end of a cookie: what stands between two would be another's value.
        let odd = |text: &str| {
            text.trim_matches('"').contains('"') || text.starts_with('"') != (text.len() > 1 && text.ends_with('"'))
        };
        if cookies.iter().any(|(key, value)| key.contains('"') || odd(value)) {
            return Err(Denied::invalid(
                "a cookie beside one with a secret has a quote that does not enclose its whole value",
            ));
        }
        let mut line = Zeroizing::new(Vec::with_capacity(cookies.iter().map(|(k, v)| k.len() + v.len() * 2 + 3).sum()));
        for (key, value) in cookies {
            let between: &[u8] = if line.is_empty() { b"" } else { b"; " };
            line.extend_from_slice(between);
            let both = key.chars().chain(['=']).chain(value.chars());
            line.extend(both.filter_map(|c| u8::try_from(u32::from(c)).ok()));
        }
        self.headers.insert(COOKIE, sensitive(&COOKIE, line)?);
        Ok(())
    }

    fn set_body(&mut self, steps: &[String], value: &str) -> Result<(), Denied> {
        if let Payload::Whole(body) = &self.body {
            let changed = json::with_string(body, steps, value).map_err(body_is)?;
            self.body = Payload::Whole(Bytes::from_owner(changed));
        }
        Ok(())
    }
}

fn body_is(wrong: json::Wrong) -> Denied {
    Denied::invalid(format!("a secret belongs into the request's body, which {wrong}"))
}

/// RFC 6265: what a cookie's value may have in it.
fn in_cookie(name: &str, value: &[u8]) -> Result<Zeroizing<String>, Denied> {
    let fine = |b: &u8| b.is_ascii_graphic() && !b"\",;\\".contains(b);
    match std::str::from_utf8(value) {
        Ok(text) if value.iter().all(fine) => Ok(Zeroizing::new(text.to_owned())),
        _ => Err(Denied::refuse(format!("the secret for cookie `{name}` has characters that no cookie can carry"))),
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::target::Target;

    const MARK: &str = "{{secret:K}}";
    const VALUE: &str = "a b/c&d=é+";

    fn request(query: &str) -> Prepared {
        let target = Target::parse(&format!("https://a.example/p{query}")).unwrap();
        Prepared { method: "GET".to_owned(), target, headers: Default::default(), body: Payload::Nothing }
    }

    #[test]
    fn queries_keep_what_is_beside() {
        let place = Place::Query("k".to_owned());
        let value = "a%20b%2Fc%26d%3D%C3%A9%2B";
        for (query, want) in [
            ("?k={{secret:K}}&x=%2b+1", format!("?k={value}&x=%2b+1")),
            ("?x&k=a+%2b%7B%7Bsecret%3AK%7D%7D+b", format!("?x&k=a+%2b{value}+b")),
            ("?%6b=%7b%7bsecret:K}}{{secret:K}}", format!("?%6b={value}{value}")),
        ] {
            let mut request = request(query);
            assert!(request.holds(&place, MARK), "{query}");
            request.swap(&place, MARK, VALUE).unwrap();
            assert_eq!(request.target.query, want);
        }
        for query in ["", "?", "?k", "?k=", "?x={{secret:K}}", "?k={{secret:KK}}", "?{{secret:K}}=k", "?K={{secret:K}}"]
        {
            assert!(!request(query).holds(&place, MARK), "{query}");
        }
        let mut many = request(&format!("?k={}", MARK.repeat(MOST_TIMES + 1)));
        assert!(many.swap(&place, MARK, VALUE).is_err());
    }

    #[test]
    fn cookies_keep_what_is_beside() {
        let place = Place::Cookie("k".to_owned());
        let mut one = request("");
        one.headers.append(COOKIE, HeaderValue::from_static("a=1; k={{secret:K}}x;kk=\"2\""));
        one.headers.append(COOKIE, HeaderValue::from_static("b=3=4"));
        assert!(one.holds(&place, MARK));
        one.swap(&place, MARK, "value").unwrap();
        assert_eq!(one.headers.get_all(COOKIE).iter().collect::<Vec<_>>(), ["a=1; k=valuex; kk=\"2\"; b=3=4"]);
        one.set(&place, &Zeroizing::new("other".to_owned())).unwrap();
        assert_eq!(one.headers[COOKIE], "a=1; kk=\"2\"; b=3=4; k=other");
        // A server that reads on to the next quote would take the secret for a part of another cookie.
        let mut open = request("");
        open.headers.append(COOKIE, HeaderValue::from_static("note=\"; k={{secret:K}}; x=\""));
        assert!(open.swap(&place, MARK, "value").is_err());
        for bad in ["a;b", "a b", "a,b", "é", "a\"", "a\n"] {
            assert!(one.set(&place, &Zeroizing::new(bad.to_owned())).is_err(), "{bad}");
        }
    }
}
