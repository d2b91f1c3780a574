//! The issuer's public keys.

use super::settings;
use base64::Engine;
use base64::engine::general_purpose::URL_SAFE_NO_PAD;
use jsonwebtoken::crypto::rust_crypto;
use jsonwebtoken::{Algorithm, DecodingKey};
use serde::Deserialize;
use serde::de::IgnoredAny;
use serde_json::Value;

/// Issuers have a handful.
const MAX_KEYS: usize = 64;
const MAX_ID_BYTES: usize = 256;
/// Below that RSA is within reach of an attacker, and above it the arithmetic refuses.
const RSA_BITS: std::ops::RangeInclusive<usize> = 2048..=4096;

pub(super) struct KeySet {
    keys: Vec<PublicKey>,
}

struct PublicKey {
    id: Option<String>,
    /// What it may check. A key for one kind of signature is never tried on another.
    algorithms: Vec<Algorithm>,
    key: DecodingKey,
}

/// A key of RFC 7517, as far as it matters. Members that are not text where text belongs make the whole key odd.
#[derive(Deserialize)]
struct Jwk {
    kty: String,
    kid: Option<String>,
    alg: Option<String>,
    #[serde(rename = "use")]
    purpose: Option<String>,
    key_ops: Option<Vec<String>>,
    crv: Option<String>,
    n: Option<String>,
    e: Option<String>,
    x: Option<String>,
    y: Option<String>,
    /// Only private keys have this.
    d: Option<IgnoredAny>,
}

impl KeySet {
    /// None if this is no set of keys. Keys that cannot check a signature here are left out, for issuers may add kinds
    /// that nobody knew of when this was written.
    pub fn parse(document: &[u8]) -> Option<KeySet> {
        #[derive(Deserialize)]
        struct Document {
            keys: Vec<Value>,
        }
        let document: Document = serde_json::from_slice(document).ok()?;
        let keys = document.keys.into_iter().filter_map(|key| PublicKey::new(serde_json::from_value(key).ok()?));
        Some(KeySet { keys: keys.take(MAX_KEYS).collect() })
    }

    pub fn len(&self) -> usize {
        self.keys.len()
    }

    /// The key with this id that fits the algorithm. A token that names no key means the only one that fits.
    pub fn find(&self, id: Option<&str>, algorithm: Algorithm) -> Option<&DecodingKey> {
        let mut fitting = self.keys.iter().filter(|key| {
            key.algorithms.contains(&algorithm) && id.is_none_or(|id| key.id.as_deref().is_some_and(|own| own == id))
        });
        let first = fitting.next()?;
        if id.is_none() && fitting.next().is_some() {
            return None;
        }
        Some(&first.key)
    }
}

impl PublicKey {
    fn new(jwk: Jwk) -> Option<PublicKey> {
        let for_signatures = jwk.purpose.as_deref().is_none_or(|purpose| purpose == "sig")
            && jwk.key_ops.as_ref().is_none_or(|ops| ops.iter().any(|op| op == "verify"));
        let id_fits = jwk.kid.as_ref().is_none_or(|id| !id.is_empty() && id.len() <= MAX_ID_BYTES);
        if !for_signatures || !id_fits || jwk.d.is_some() {
            return None;
        }
        let (key, mut algorithms) = material(&jwk)?;
        if let Some(only) = &jwk.alg {
            let only = settings::algorithm(only)?;
            algorithms.retain(|algorithm| *algorithm == only);
        }
        // Points that are on no curve and the like are found now and not with the first token.
        let usable = |algorithm: &Algorithm| (rust_crypto::DEFAULT_PROVIDER.verifier_factory)(algorithm, &key).is_ok();
        if algorithms.is_empty() || !algorithms.iter().all(usable) {
            return None;
        }
        Some(PublicKey { id: jwk.kid, algorithms, key })
    }
}

/// Lengths are checked here, for the arithmetic below trusts them: it would slice a short Ed25519 key out of bounds.
fn material(jwk: &Jwk) -> Option<(DecodingKey, Vec<Algorithm>)> {
    let x = || bytes(jwk.x.as_deref()?);
    match (jwk.kty.as_str(), jwk.crv.as_deref()) {
        ("RSA", _) => {
            use Algorithm::{PS256, PS384, PS512, RS256, RS384, RS512};
            let (n, e) = (bytes(jwk.n.as_deref()?)?, bytes(jwk.e.as_deref()?)?);
            let n = &n[n.iter().position(|byte| *byte != 0)?..];
            let bits = n.len() * 8 - n[0].leading_zeros() as usize;
            let exponent = (e.len() <= 4).then(|| e.iter().fold(0, |all: u32, byte| all << 8 | u32::from(*byte)))?;
            let fits = RSA_BITS.contains(&bits) && exponent >= 3 && exponent % 2 == 1;
            fits.then(|| (DecodingKey::from_rsa_raw_components(n, &e), vec![RS256, RS384, RS512, PS256, PS384, PS512]))
        }
        ("EC", Some("P-256")) => Some((point(&x()?, &bytes(jwk.y.as_deref()?)?, 32)?, vec![Algorithm::ES256])),
        ("EC", Some("P-384")) => Some((point(&x()?, &bytes(jwk.y.as_deref()?)?, 48)?, vec![Algorithm::ES384])),
        ("OKP", Some("Ed25519")) => {
            let x = x()?;
            (x.len() == 32).then(|| (DecodingKey::from_ed_der(&x), vec![Algorithm::EdDSA]))
        }
        _ => None,
    }
}

/// SEC 1, uncompressed.
fn point(x: &[u8], y: &[u8], size: usize) -> Option<DecodingKey> {
    let point = [&[4], x, y].concat();
    (x.len() == size && y.len() == size).then(|| DecodingKey::from_ec_der(&point))
}

fn bytes(text: &str) -> Option<Vec<u8>> {
    URL_SAFE_NO_PAD.decode(text).ok()
}

#[cfg(test)]
mod tests {
    use super::*;
    use serde_json::json;

    // RFC 7517, appendix A.1, and RFC 8037, appendix A.2.
    const EC_X: &str = "MKBCTNIcKUSDii11ySs3526iDZ8AiTo7Tu6KPAqv7D4";
    const EC_Y: &str = "4Etl6SRW2YiLUrN5vfvVHuhp7x8PxltmWWlbbM4IFyM";
    const RSA_N: &str = "0vx7agoebGcQSuuPiLJXZptN9nndrQmbXEps2aiAFbWhM78LhWx4cbbfAAtVT86zwu1RK7aPFFxuhDR1L6tSoc_BJECPebWKRXjBZCiFV4n3oknjhMstn64tZ_2W-5JsGY4Hc5n9yBXArwl93lqt7_RN5w6Cf0h4QyQ5v-65YGjQR0_FDW2QvzqY368QQMicAtaSqzs8KJZgnYb9c7d0zgdAZHzu6qMQvRL5hajrn1n91CbOpbISD08qNLyrdkt-bFTWhAI4vMQFh6WeZu0fM4lFd2NcRwr3XPksINHaQ-G_xBniIqbw0Ls1jF44-csFCur-kEgU8awapJzKnqDKgw";
    const ED_X: &str = "11qYAYKxCrfVS_7TyWQHOg7hcvPapiMlrwIaaPcHURo";

    fn ec() -> Value {
        json!({"kty": "EC", "crv": "P-256", "x": EC_X, "y": EC_Y, "use": "sig", "kid": "ec"})
    }

    fn rsa() -> Value {
        json!({"kty": "RSA", "n": RSA_N, "e": "AQAB", "alg": "RS256", "kid": "rsa"})
    }

    fn ed() -> Value {
        json!({"kty": "OKP", "crv": "Ed25519", "x": ED_X, "kid": "ed"})
    }

    fn set(keys: &[Value]) -> KeySet {
        KeySet::parse(&serde_json::to_vec(&json!({"keys": keys, "more": true})).unwrap()).unwrap()
    }

    fn with(mut key: Value, name: &str, value: Value) -> Value {
        key[name] = value;
        key
    }

    #[test]
    fn each_kind_checks_its_own_algorithms_only() {
        let set = set(&[ec(), rsa(), ed()]);
        assert_eq!(set.len(), 3);
        assert!(set.find(Some("ec"), Algorithm::ES256).is_some());
        assert!(set.find(Some("rsa"), Algorithm::RS256).is_some());
        assert!(set.find(Some("ed"), Algorithm::EdDSA).is_some());
        for (id, algorithm) in [
            ("ec", Algorithm::ES384),
            ("ec", Algorithm::RS256),
            ("rsa", Algorithm::RS512),
            ("rsa", Algorithm::PS256),
            ("rsa", Algorithm::HS256),
            ("ed", Algorithm::ES256),
            ("other", Algorithm::ES256),
            ("", Algorithm::ES256),
        ] {
            assert!(set.find(Some(id), algorithm).is_none(), "{id} {algorithm:?}");
        }
    }

    #[test]
    fn a_token_without_a_key_id_needs_a_set_without_doubt() {
        assert!(set(&[ec(), rsa()]).find(None, Algorithm::ES256).is_some());
        assert!(set(&[ec(), with(ec(), "kid", json!("ec2"))]).find(None, Algorithm::ES256).is_none());
        assert!(set(&[]).find(None, Algorithm::ES256).is_none());
    }

    #[test]
    fn keys_that_cannot_be_used_are_left_out_and_the_others_stay() {
        let small = URL_SAFE_NO_PAD.encode([0xff; 128]);
        let padded_small = URL_SAFE_NO_PAD.encode([&[0; 256][..], &[0xff; 128][..]].concat());
        let odd = [
            json!(null),
            json!({}),
            json!({"kty": 7}),
            json!({"kty": "oct", "k": "c2VjcmV0", "kid": "ec"}),
            json!({"kty": "EC", "crv": "secp256k1", "x": EC_X, "y": EC_Y}),
            json!({"kty": "EC", "crv": "P-384", "x": EC_X, "y": EC_Y}),
            json!({"kty": "EC", "x": EC_X, "y": EC_Y}),
            with(ec(), "x", json!(EC_Y)),
            with(ec(), "y", json!("")),
            with(ec(), "x", json!(null)),
            with(ec(), "use", json!("enc")),
            with(ec(), "key_ops", json!(["sign"])),
            with(ec(), "alg", json!("RS256")),
            with(ec(), "alg", json!("HS256")),
            with(ec(), "kid", json!("")),
            with(ec(), "kid", json!("x".repeat(MAX_ID_BYTES + 1))),
            with(ec(), "d", json!("870MB6gfuTJ4HtUnUvYMyJpr5eUZNP4Bk43bVdj3eAE")),
            with(rsa(), "n", json!(small)),
            with(rsa(), "n", json!(padded_small)),
            with(rsa(), "n", json!(URL_SAFE_NO_PAD.encode([0xff; 1024]))),
            with(rsa(), "n", json!("")),
            with(rsa(), "n", json!("not base64!")),
            with(rsa(), "e", json!("")),
            with(rsa(), "e", json!("AAAA")),
            with(rsa(), "e", json!("AQ")),
            with(rsa(), "e", json!("Ag")),
            with(rsa(), "e", json!(RSA_N)),
            with(ed(), "x", json!("AAAA")),
            with(ed(), "x", json!("")),
            with(ed(), "crv", json!("Ed448")),
        ];
        for key in &odd {
            assert_eq!(set(std::slice::from_ref(key)).len(), 0, "{key}");
        }
        let all: Vec<Value> = odd.into_iter().chain([ec()]).collect();
        assert!(set(&all).find(Some("ec"), Algorithm::ES256).is_some());
    }

    #[test]
    fn what_is_no_set_is_no_set() {
        for document in ["", "null", "[]", "{}", "{\"keys\": 1}", "{\"keys\": {}}", "{\"keys\": [", "<html>"] {
            assert!(KeySet::parse(document.as_bytes()).is_none(), "{document}");
        }
    }

    #[test]
    fn a_set_has_an_end() {
        assert_eq!(set(&vec![ed(); MAX_KEYS + 10]).len(), MAX_KEYS);
    }
}
