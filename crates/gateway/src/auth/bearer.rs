//! The token of a request.

use super::Denied;
use http::{HeaderMap, header};

/// Longer than any token of an issuer should be, and short enough to hash and parse for anybody who asks.
const MAX_BYTES: usize = 8 * 1024;

/// The one place a token may stand in is `Authorization: Bearer`.
pub(super) fn token(headers: &HeaderMap) -> Result<&str, Denied> {
    let mut values = headers.get_all(header::AUTHORIZATION).iter();
    let value = values.next().ok_or(Denied::NoCredentials)?;
    if values.next().is_some() {
        return Err(Denied::Invalid("more than one Authorization header"));
    }
    if value.len() > MAX_BYTES {
        return Err(Denied::Invalid("the token is too long"));
    }
    let text = value.to_str().map_err(|_| MALFORMED)?;
    let (scheme, token) = text.split_once(' ').ok_or(MALFORMED)?;
    if !scheme.eq_ignore_ascii_case("bearer") {
        return Err(Denied::Invalid("the Authorization header has another scheme than Bearer"));
    }
    let token = token.trim_matches(' ');
    if token.is_empty() || !token.bytes().all(is_token_byte) {
        return Err(MALFORMED);
    }
    Ok(token)
}

const MALFORMED: Denied = Denied::Invalid("the Authorization header holds no bearer token");

/// RFC 6750, `b64token`.
fn is_token_byte(byte: u8) -> bool {
    byte.is_ascii_alphanumeric() || b"-._~+/=".contains(&byte)
}

#[cfg(test)]
mod tests {
    use super::*;
    use http::HeaderValue;

    fn of(value: &[u8]) -> Result<String, Denied> {
        let mut headers = HeaderMap::new();
        headers.insert(header::AUTHORIZATION, HeaderValue::from_bytes(value).unwrap());
        token(&headers).map(str::to_owned)
    }

    #[test]
    fn bearer_in_any_case() {
        for value in ["Bearer a.b-c_d~e+f/g=", "bearer a.b-c_d~e+f/g=", "BEARER  a.b-c_d~e+f/g= "] {
            assert_eq!(of(value.as_bytes()).unwrap(), "a.b-c_d~e+f/g=");
        }
    }

    #[test]
    fn anything_else_is_refused() {
        assert_eq!(token(&HeaderMap::new()), Err(Denied::NoCredentials));
        for value in
            ["", "Bearer", "Bearer ", "abc", "Bearer a b", "Bearer a,b", "Bearer \"a\"", "Basic YTpi", "Bearera b"]
        {
            assert!(matches!(of(value.as_bytes()), Err(Denied::Invalid(_))), "{value}");
        }
        assert!(matches!(of(b"Bearer a\xff"), Err(Denied::Invalid(_))));
        assert!(matches!(of("Bearer \u{e4}".as_bytes()), Err(Denied::Invalid(_))));
        assert!(matches!(of(format!("Bearer {}", "a".repeat(MAX_BYTES)).as_bytes()), Err(Denied::Invalid(_))));
    }

    #[test]
    fn two_headers_are_one_too_many() {
        let mut headers = HeaderMap::new();
        headers.append(header::AUTHORIZATION, HeaderValue::from_static("Bearer a"));
        headers.append(header::AUTHORIZATION, HeaderValue::from_static("Bearer a"));
        assert!(matches!(token(&headers), Err(Denied::Invalid(_))));
    }
}
