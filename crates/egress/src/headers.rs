//! Which headers go out and come back.

use crate::denied::{Denied, quote};
use crate::limits::Limits;
use http::header::{CONNECTION, HeaderMap, HeaderName, HeaderValue, TRANSFER_ENCODING};

pub(crate) fn is_token(text: &str) -> bool {
    let special = b"!#$%&'*+-.^_`|~";
    !text.is_empty() && text.bytes().all(|b| b.is_ascii_alphanumeric() || special.contains(&b))
}

/// About the connection and not the message: only the host speaks about connections.
fn hop_by_hop(name: &str) -> bool {
    const NAMES: [&str; 9] = [
        "connection",
        "keep-alive",
        "te",
        "trailer",
        "transfer-encoding",
        "upgrade",
        "http2-settings",
        "expect",
        "early-data",
    ];
    NAMES.contains(&name) || name.starts_with("proxy-")
}

/// Those that speak for somebody, and so do not follow a redirect to another origin.
pub(crate) fn speaks_for_somebody(name: &HeaderName) -> bool {
    ["authorization", "cookie", "cookie2", "www-authenticate"].contains(&name.as_str())
}

/// Checks what the code inside wants to send. `host` and `content-length` may be there if they say what is true anyway, and
/// are left out, because the host writes them.
pub(crate) fn request(
    list: &[(String, String)],
    authority: &str,
    length: Option<u64>,
    limits: &Limits,
) -> Result<HeaderMap, Denied> {
    let bytes = list.iter().map(|(name, value)| (name.len() + value.len()) as u64 + 4).sum::<u64>();
    within(list.len() as u64, bytes, limits, "the request")?;
    let mut out = HeaderMap::with_capacity(list.len());
    for (name, value) in list {
        let lower = name.to_ascii_lowercase();
        let wrong = |what: &str| Denied::invalid(format!("header {} {what}", quote(name)));
        if !is_token(&lower) {
            return Err(wrong("has a name that is none"));
        }
        let value = value.trim_matches([' ', '\t']);
        let true_anyway = match lower.as_str() {
            "host" => value.eq_ignore_ascii_case(authority),
            "content-length" => length.is_some_and(|length| value == length.to_string()),
            "connection" => value.eq_ignore_ascii_case("keep-alive") || value.eq_ignore_ascii_case("close"),
            _ => false,
        };
        if true_anyway {
            continue;
        }
        if hop_by_hop(&lower) || lower == "host" || lower == "content-length" {
            return Err(wrong("is the host's to send; leave it out"));
        }
        let bytes: Option<Vec<u8>> = value.chars().map(|c| u8::try_from(u32::from(c)).ok()).collect();
        let value = bytes.and_then(|bytes| HeaderValue::from_bytes(&bytes).ok());
        let value =
            value.ok_or_else(|| wrong("has a line break, a control character or none of a byte in its value"))?;
        let name = HeaderName::from_bytes(lower.as_bytes()).map_err(|_| wrong("has a name that is none"))?;
        out.append(name, value);
    }
    Ok(out)
}

/// Headers named by `connection` are about the connection too.
fn named(headers: &HeaderMap) -> Vec<String> {
    let lists = headers.get_all(CONNECTION).iter().map(|value| latin1(value.as_bytes()).to_ascii_lowercase());
    lists.flat_map(|list| list.split(',').map(|name| name.trim().to_owned()).collect::<Vec<_>>()).collect()
}

/// What a client of the proxy says to the server, without what it says to the proxy.
pub(crate) fn end_to_end(headers: &HeaderMap) -> Vec<(String, String)> {
    let named = named(headers);
    let ours = |name: &str| hop_by_hop(name) || name == "host" || name == "content-length";
    let kept = headers.iter().map(|(name, value)| (name.as_str(), value));
    let kept = kept.filter(|(name, _)| !ours(name) && !named.iter().any(|other| other == name));
    kept.map(|(name, value)| (name.to_owned(), latin1(value.as_bytes()))).collect()
}

/// What the code inside is shown, once secrets are masked: nothing about the connection.
pub(crate) fn response<'a>(headers: &'a HeaderMap, limits: &Limits) -> Result<Vec<(&'a str, &'a [u8])>, Denied> {
    within(headers.len() as u64, size(headers), limits, "the response")?;
    let coded: Vec<&[u8]> = headers.get_all(TRANSFER_ENCODING).iter().map(HeaderValue::as_bytes).collect();
    if !coded.is_empty() && !matches!(coded[..], [coded] if coded.eq_ignore_ascii_case(b"chunked")) {
        return Err(Denied::network("the response has a `transfer-encoding` that is not simply `chunked`"));
    }
    let named = named(headers);
    let ours = |name: &str| hop_by_hop(name) || named.iter().any(|other| other == name);
    let all = headers.iter().map(|(name, value)| (name.as_str(), value.as_bytes()));
    Ok(all.filter(|(name, _)| !ours(name)).collect())
}

pub(crate) fn size(headers: &HeaderMap) -> u64 {
    headers.iter().map(|(name, value)| (name.as_str().len() + value.len()) as u64 + 4).sum()
}

fn within(count: u64, bytes: u64, limits: &Limits, whose: &str) -> Result<(), Denied> {
    if count > limits.headers {
        return Err(Denied::limit(format!("{whose} has {count} headers, {} are allowed", limits.headers)));
    }
    if bytes > limits.header_bytes {
        return Err(Denied::limit(format!(
            "{whose} has {bytes} bytes of headers, {} are allowed",
            limits.header_bytes
        )));
    }
    Ok(())
}

pub(crate) fn latin1(bytes: &[u8]) -> String {
    bytes.iter().map(|b| char::from(*b)).collect()
}

/// Whether a secret may be put into this header.
pub(crate) fn bindable(name: &HeaderName) -> Result<(), Denied> {
    if hop_by_hop(name.as_str()) || ["host", "content-length"].contains(&name.as_str()) {
        return Err(Denied::refuse(format!("no secret can be put into the header `{name}`")));
    }
    Ok(())
}
