//! Signature version 4 of AWS: proves that the sender has a key, without sending it.

use crate::credentials::{Payload, Prepared};
use crate::denied::Denied;
use hmac::{Hmac, KeyInit, Mac};
use http::header::{AUTHORIZATION, CONTENT_TYPE, HOST, HeaderName, HeaderValue};
use percent_encoding::{AsciiSet, NON_ALPHANUMERIC, percent_decode_str, percent_encode};
use sha2::{Digest, Sha256};
use time::OffsetDateTime;
use zeroize::Zeroizing;

/// Everything but what RFC 3986 calls unreserved.
const STRICT: &AsciiSet = &NON_ALPHANUMERIC.remove(b'-').remove(b'_').remove(b'.').remove(b'~');
const PATH: &AsciiSet = &STRICT.remove(b'/');
const DATE: HeaderName = HeaderName::from_static("x-amz-date");
const DIGEST: HeaderName = HeaderName::from_static("x-amz-content-sha256");
const TOKEN: HeaderName = HeaderName::from_static("x-amz-security-token");

pub(crate) struct Key<'a> {
    pub(crate) id: &'a str,
    pub(crate) secret: &'a str,
    pub(crate) token: Option<&'a str>,
}

impl<'a> Key<'a> {
    /// `ACCESS_KEY_ID:SECRET_ACCESS_KEY[:SESSION_TOKEN]`
    pub(crate) fn parse(text: &'a str) -> Option<Key<'a>> {
        let mut parts = text.splitn(3, ':');
        let (id, secret, token) = (parts.next()?, parts.next()?, parts.next());
        let public = |b: u8| b.is_ascii_alphanumeric() || b == b'_' || b == b'-';
        let good = !id.is_empty() && id.len() <= 128 && id.bytes().all(public) && !secret.is_empty();
        good.then_some(Key { id, secret, token })
    }
}

/// What a key is good for.
pub(crate) struct Scope<'a> {
    pub(crate) region: &'a str,
    pub(crate) service: &'a str,
}

/// Signs method, path, query, host, type and all headers of AWS. The query is sent as it is signed.
pub(crate) fn sign(request: &mut Prepared, key: &Key, scope: &Scope, now: OffsetDateTime) -> Result<(), Denied> {
    let digest = match &request.body {
        Payload::Nothing => hex(&Sha256::digest(b"")),
        Payload::Whole(bytes) => hex(&Sha256::digest(bytes)),
        Payload::Stream => "UNSIGNED-PAYLOAD".to_owned(),
    };
    let stamp = stamp(now);
    request.headers.remove(TOKEN);
    request.set_header(DATE, &stamp)?;
    request.set_header(DIGEST, &digest)?;
    if let Some(token) = key.token {
        request.set_header(TOKEN, token)?;
    }
    let query = canonical_query(&request.target.query);
    request.target.query = if query.is_empty() { String::new() } else { format!("?{query}") };
    let mut headers = vec![(HOST.as_str().to_owned(), Zeroizing::new(request.target.origin.authority()))];
    for (name, value) in &request.headers {
        if name == CONTENT_TYPE || name.as_str().starts_with("x-amz-") {
            let text = value.to_str();
            let text =
                text.map_err(|_| Denied::invalid(format!("header `{name}` cannot be signed: it is no ASCII")))?;
            headers.push((name.as_str().to_owned(), Zeroizing::new(text.to_owned())));
        }
    }
    let path = canonical_path(&request.target.path, scope.service);
    let (canonical, names) = canonical(&request.method, &path, &query, headers, &digest);
    let line = authorization(&canonical, &names, key, scope, &stamp);
    let mut value = HeaderValue::from_str(&line).map_err(|_| Denied::refuse("the key of AWS is none"))?;
    value.set_sensitive(true);
    request.headers.insert(AUTHORIZATION, value);
    Ok(())
}

fn stamp(now: OffsetDateTime) -> String {
    let now = now.to_offset(time::UtcOffset::UTC);
    let (hour, minute, second) = now.to_hms();
    let (year, month, day) = (now.year(), u8::from(now.month()), now.day());
    format!("{year:04}{month:02}{day:02}T{hour:02}{minute:02}{second:02}Z")
}

/// S3 takes a path's bytes for what they say; the others sign the path as it is sent, encoded once more.
fn canonical_path(path: &str, service: &str) -> String {
    if service == "s3" {
        let steps = path.split('/').map(|step| percent_decode_str(step).collect::<Vec<u8>>());
        return steps.map(|step| percent_encode(&step, STRICT).to_string()).collect::<Vec<_>>().join("/");
    }
    let mut short = String::with_capacity(path.len());
    for letter in path.chars() {
        if letter != '/' || !short.ends_with('/') {
            short.push(letter);
        }
    }
    percent_encode(short.as_bytes(), PATH).to_string()
}

fn canonical_query(query: &str) -> String {
    let again = |text: &str| {
        let bytes: Vec<u8> = percent_decode_str(&text.replace('+', " ")).collect();
        percent_encode(&bytes, STRICT).to_string()
    };
    let pairs = query.trim_start_matches('?').split('&').filter(|pair| !pair.is_empty());
    let parts = pairs.map(|pair| pair.split_once('=').unwrap_or((pair, "")));
    let mut pairs: Vec<(String, String)> = parts.map(|(key, value)| (again(key), again(value))).collect();
    pairs.sort();
    pairs.iter().map(|(key, value)| format!("{key}={value}")).collect::<Vec<_>>().join("&")
}

/// The request as both sides write it before they sign, and the names of the headers that are in it.
fn canonical(
    method: &str,
    path: &str,
    query: &str,
    mut headers: Vec<(String, Zeroizing<String>)>,
    digest: &str,
) -> (Zeroizing<String>, String) {
    headers.sort_by(|(one, _), (two, _)| one.cmp(two));
    let mut lines: Vec<(String, Zeroizing<String>)> = Vec::new();
    for (name, value) in headers {
        let value = Zeroizing::new(value.split_ascii_whitespace().collect::<Vec<_>>().join(" "));
        match lines.last_mut().filter(|(last, _)| *last == name) {
            Some((_, last)) => *last = Zeroizing::new(format!("{},{}", last.as_str(), value.as_str())),
            None => lines.push((name, value)),
        }
    }
    let names = lines.iter().map(|(name, _)| name.as_str()).collect::<Vec<_>>().join(";");
    let fields = lines.iter().flat_map(|(name, value)| [name.as_str(), ":", value.as_str(), "\n"]);
    let parts = [method, "\n", path, "\n", query, "\n"].into_iter().chain(fields);
    let parts: Vec<&str> = parts.chain(["\n", names.as_str(), "\n", digest]).collect();
    (Zeroizing::new(parts.concat()), names)
}

fn authorization(canonical: &str, names: &str, key: &Key, scope: &Scope, stamp: &str) -> String {
    let date = stamp.get(..8).unwrap_or_default();
    let Scope { region, service } = scope;
    let scope = format!("{date}/{region}/{service}/aws4_request");
    let text = format!("AWS4-HMAC-SHA256\n{stamp}\n{scope}\n{}", hex(&Sha256::digest(canonical)));
    let mut derived = Zeroizing::new(["AWS4", key.secret].concat().into_bytes());
    for step in [date, region, service, "aws4_request"] {
        derived = mac(&derived, step);
    }
    let (id, signature) = (key.id, hex(&mac(&derived, &text)));
    format!("AWS4-HMAC-SHA256 Credential={id}/{scope}, SignedHeaders={names}, Signature={signature}")
}

fn mac(key: &[u8], text: &str) -> Zeroizing<Vec<u8>> {
    // Keys of every length are good.
    let Ok(mut mac) = Hmac::<Sha256>::new_from_slice(key) else { return Zeroizing::default() };
    mac.update(text.as_bytes());
    Zeroizing::new(mac.finalize().into_bytes().to_vec())
}

fn hex(bytes: &[u8]) -> String {
    bytes.iter().map(|b| format!("{b:02x}")).collect()
}

#[cfg(test)]
mod tests {
    use super::*;

    const KEY: Key = Key { id: "AKIDEXAMPLE", secret: "wJalrXUtnFEMI/K7MDENG+bPxRfiCYEXAMPLEKEY", token: None };
    const STAMP: &str = "20150830T123600Z";
    const EMPTY: &str = "e3b0c44298fc1c149afbf4c8996fb92427ae41e4649b934ca495991b7852b855";

    fn headers(list: &[(&str, &str)]) -> Vec<(String, Zeroizing<String>)> {
        list.iter().map(|(name, value)| ((*name).to_owned(), Zeroizing::new((*value).to_owned()))).collect()
    }

    fn signature(method: &str, path: &str, query: &str, more: &[(&str, &str)]) -> String {
        let scope = Scope { region: "us-east-1", service: "service" };
        let all = [&[("host", "example.amazonaws.com"), ("x-amz-date", STAMP)], more].concat();
        let (path, query) = (canonical_path(path, scope.service), canonical_query(query));
        let (canonical, names) = canonical(method, &path, &query, headers(&all), EMPTY);
        let line = authorization(&canonical, &names, &KEY, &scope, STAMP);
        line.rsplit('=').next().unwrap().to_owned()
    }

    /// The published test suite of the algorithm.
    #[test]
    fn the_published_requests() {
        let vanilla = "5fa00fa31553b73ebf1942676e86291e8372ff2a2260956d9b8aae1d763fbf31";
        assert_eq!(signature("GET", "/", "", &[]), vanilla);
        assert_eq!(signature("GET", "//", "", &[]), vanilla, "get-slash");
        let order = "b97d918cfa904a5beff61c982a1b6f458b799221646efd99d3219ec94cdf2500";
        assert_eq!(signature("GET", "/", "?Param2=value2&Param1=value1", &[]), order);
        let post = "5da7c1a2acd57cee7505fc6676e4e544621c30862966e37dddb68e92efbe5d6b";
        assert_eq!(signature("POST", "/", "", &[]), post);
        let utf8 = "8318018e0b0f223aa2bbf98705b62bb787dc9c0e678f255a891fd03141be5d85";
        assert_eq!(signature("GET", "/\u{1234}", "", &[]), utf8);
        let space = "652487583200325589f1fba4c7e578f72c47cb61beeca81406b39ddec1366741";
        assert_eq!(signature("GET", "/example space/", "", &[]), space);
        let trimmed = "acc3ed3afb60bb290fc8d2dd0098b9911fcaa05412b367055dee359757a9c736";
        assert_eq!(signature("GET", "/", "", &[("my-header1", " value1"), ("my-header2", " \"a   b   c\" ")]), trimmed);
    }

    /// From the documentation of IAM: a signed type, and the key that is derived on the way.
    #[test]
    fn the_documented_request_of_iam() {
        let scope = Scope { region: "us-east-1", service: "iam" };
        let query = canonical_query("?Action=ListUsers&Version=2010-05-08");
        let kind = "application/x-www-form-urlencoded; charset=utf-8";
        let list = [("content-type", kind), ("host", "iam.amazonaws.com"), ("x-amz-date", STAMP)];
        let (canonical, names) = canonical("GET", "/", &query, headers(&list), EMPTY);
        assert_eq!(names, "content-type;host;x-amz-date");
        assert_eq!(
            hex(&Sha256::digest(&*canonical)),
            "f536975d06c0309214f805bb90ccff089219ecd68b2577efef23edd43b7e1a59"
        );
        assert_eq!(
            authorization(&canonical, &names, &KEY, &scope, STAMP),
            "AWS4-HMAC-SHA256 Credential=AKIDEXAMPLE/20150830/us-east-1/iam/aws4_request, \
             SignedHeaders=content-type;host;x-amz-date, \
             Signature=5d672d79c15b13162d9279b0855cfba6789a8edb4c82c400e06b5924a6f2b5d7"
        );
    }

    /// From the documentation of S3: the digest is a header, and the path is encoded once.
    #[test]
    fn the_documented_requests_of_s3() {
        let key = Key { id: "AKIAIOSFODNN7EXAMPLE", secret: "wJalrXUtnFEMI/K7MDENG/bPxRfiCYEXAMPLEKEY", token: None };
        let scope = Scope { region: "us-east-1", service: "s3" };
        let stamp = "20130524T000000Z";
        let host = ("host", "examplebucket.s3.amazonaws.com");
        let sign = |method: &str, path: &str, query: &str, more: &[(&str, &str)], digest: &str| {
            let all = [&[host, ("x-amz-date", stamp), ("x-amz-content-sha256", digest)], more].concat();
            let (path, query) = (canonical_path(path, "s3"), canonical_query(query));
            let (canonical, names) = canonical(method, &path, &query, headers(&all), digest);
            authorization(&canonical, &names, &key, &scope, stamp).rsplit('=').next().unwrap().to_owned()
        };
        assert_eq!(
            sign("GET", "/test.txt", "", &[("range", "bytes=0-9")], EMPTY),
            "f0e8bdb87c964420e857bd35b5d6ed310bd44f0170aba48dd91039c6036bdb41"
        );
        let more = [("date", "Fri, 24 May 2013 00:00:00 GMT"), ("x-amz-storage-class", "REDUCED_REDUNDANCY")];
        assert_eq!(
            sign("PUT", "/test$file.text", "", &more, &hex(&Sha256::digest("Welcome to Amazon S3."))),
            "98ad721746da40c64f1a55b78f14c238d841ea1380cd77a1b5971af0ece108bd"
        );
        assert_eq!(
            sign("GET", "/", "?lifecycle", &[], EMPTY),
            "fea454ca298b7da1c68078a5d1bdbfbbe0d65c699e0f91ac7a200a0136783543"
        );
        assert_eq!(
            sign("GET", "/", "?max-keys=2&prefix=J", &[], EMPTY),
            "34b48302e7b5fa45bde8084f4b7868a86f0a534bc59db6670ed5711ef69dc6f7"
        );
    }

    #[test]
    fn paths_and_keys() {
        assert_eq!(canonical_path("/a%20b/c+d/%2B", "s3"), "/a%20b/c%2Bd/%2B");
        assert_eq!(canonical_path("/a%20b//c+d", "es"), "/a%2520b/c%2Bd");
        assert_eq!(canonical_query("?b&a=1+2&a=%2b&%61=1"), "a=%2B&a=1&a=1%202&b=");
        assert_eq!(stamp(OffsetDateTime::from_unix_timestamp(1_440_938_160).unwrap()), STAMP);
        assert_eq!(Key::parse("AK:s3cret:to:ken").unwrap().token, Some("to:ken"));
        for bad in ["", "AK", "AK:", ":s", "A K:s", "A\nK:s", "A/K:s"] {
            assert!(Key::parse(bad).is_none(), "{bad}");
        }
    }
}
