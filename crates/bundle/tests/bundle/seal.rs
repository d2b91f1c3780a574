use crate::support::{KEY, TOKEN, key_id, lock, seal, with};
use bundle::{Lock, MacKey, PublisherKey, Seal, SealError, canonical};
use proptest::prelude::*;
use serde_json::{Value, json};
use sha2::{Digest, Sha256};

fn verify(seal: &Seal) -> Result<usize, SealError> {
    seal.verify(&lock(), KEY, &MacKey::from_token(TOKEN)).map(|publishers| publishers.len())
}

fn edited(edit: impl FnOnce(&mut Value)) -> Result<usize, SealError> {
    let mut value: Value = serde_json::from_slice(&seal(&lock()).bytes()).unwrap();
    edit(&mut value);
    Seal::parse(&canonical(&value)).and_then(|seal| verify(&seal))
}

#[test]
fn it_reads_what_it_writes() {
    let seal = seal(&lock());
    assert_eq!(Seal::parse(&seal.bytes()).unwrap(), seal);
    assert_eq!(verify(&seal), Ok(2));
    assert_eq!((seal.key().unwrap().as_str(), seal.lock()), (KEY, lock().digest()));
}

#[test]
fn the_key_comes_from_the_hash_of_the_token() {
    let hash: [u8; 32] = Sha256::digest(TOKEN.as_bytes()).into();
    let (mut one, mut other) = (Seal::new(&lock()), Seal::new(&lock()));
    one.authenticate(key_id(), &MacKey::from_token(TOKEN));
    other.authenticate(key_id(), &MacKey::from_token_hash(&hash));
    assert_eq!(one, other);
}

/// Made with node's `crypto`: the digest, the key, the MAC and the signature.
#[test]
fn another_implementation_makes_the_same_seal() {
    let lock = concat!(
        r#"{"boundary":"call","egress":[],"endpoints":[],"entry":"a.js","files":{"a.js":{"sha256":"0000000000000000000000000000000000000000000000000000000000000000","size":0}},"#,
        r#""jit":false,"limits":{},"secrets":[],"server":"a","step":{"accepts":null,"number":1,"previous":null},"#,
        r#""surface":{"prompts":[],"resources":[],"templates":[],"tools":[]},"version":1,"wall":"isolate"}"#,
    );
    let sealed = concat!(
        r#"{"hmac":{"key":"key-0123456789abcdef","mac":"6cd87c3420a1a1cb710aae44b643e1347dda5ea553afb62a0fa3e3cbba59b620""#,
        r#"},"lock":"f470f39398ab281034116ff7932d82673c7e8333de4907b66ebdd017c666aa62""#,
        r#","publishers":[{"key":"8a88e3dd7409f195fd52db2d3cba5d72ca6709bf1d94121bf3748801b40f6f5c""#,
        r#","signature":"cf99dc0da56f971c4571d36728480d5342affc5fca32879299b9a2caa42944a9"#,
        r#"d51307c331a28df048330f0ee2aba9da1259cf71e52cec753065232d312d4700"}]}"#,
    );
    let lock = Lock::parse(lock.as_bytes()).unwrap();
    let mut seal = Seal::new(&lock);
    seal.authenticate(key_id(), &MacKey::from_token(TOKEN));
    seal.sign(&PublisherKey::from_seed(&[1; 32])).unwrap();
    assert_eq!(String::from_utf8(seal.bytes()).unwrap(), sealed);
    assert_eq!(
        Seal::parse(sealed.as_bytes()).unwrap().verify(&lock, KEY, &MacKey::from_token(TOKEN)).unwrap().len(),
        1
    );
}

#[test]
fn every_byte_counts() {
    let bytes = seal(&lock()).bytes();
    for at in 0..bytes.len() {
        for flip in [0x01, 0x20, 0xff] {
            let mut bytes = bytes.clone();
            bytes[at] ^= flip;
            assert!(Seal::parse(&bytes).and_then(|seal| verify(&seal)).is_err(), "byte {at} ^ {flip:#x}");
        }
        assert!(Seal::parse(&bytes[..at]).is_err());
    }
}

#[test]
fn another_key_does_not_fit() {
    let seal = seal(&lock());
    let other = MacKey::from_token("bh_deploy_BAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAA");
    assert_eq!(seal.verify(&lock(), KEY, &other), Err(SealError::WrongMac));
    // The hash itself is not the key, nor is the hash of the hash.
    let hash: [u8; 32] = Sha256::digest(TOKEN.as_bytes()).into();
    let again: [u8; 32] = Sha256::digest(hash).into();
    assert_eq!(seal.verify(&lock(), KEY, &MacKey::from_token_hash(&again)), Err(SealError::WrongMac));
    let key = MacKey::from_token(TOKEN);
    assert!(matches!(seal.verify(&lock(), "key-other", &key), Err(SealError::OtherKey { .. })));
}

#[test]
fn another_lock_does_not_fit() {
    let other = with(json!({}), None);
    let (key, seal) = (MacKey::from_token(TOKEN), seal(&lock()));
    assert!(matches!(seal.verify(&other, KEY, &key), Err(SealError::OtherLock { .. })));
    // Nor when the seal is made to name it.
    let mut value: Value = serde_json::from_slice(&seal.bytes()).unwrap();
    value["lock"] = json!(other.digest());
    let named = Seal::parse(&canonical(&value)).unwrap();
    assert_eq!(named.verify(&other, KEY, &key), Err(SealError::WrongMac));
    assert!(matches!(named.verify_publishers(&other), Err(SealError::WrongSignature(_))));
    // The step is part of what is sealed.
    let replayed = with(crate::support::shown(), Some(other.digest()));
    assert!(matches!(seal.verify(&replayed, KEY, &key), Err(SealError::OtherLock { .. })));
}

#[test]
fn signatures_are_not_exchanged() {
    assert_eq!(edited(|_| {}), Ok(2));
    assert_eq!(edited(|seal| seal["publishers"] = json!([])), Ok(0));
    assert_eq!(edited(|seal| seal["hmac"] = json!(null)), Err(SealError::NoMac));
    let exchanged = edited(|seal| {
        let one = seal["publishers"][0]["signature"].take();
        seal["publishers"][0]["signature"] = seal["publishers"][1]["signature"].take();
        seal["publishers"][1]["signature"] = one;
    });
    assert!(matches!(exchanged, Err(SealError::WrongSignature(_))));
}

/// A key of small order, for which a signature of zeroes fits many messages.
#[test]
fn weak_keys_sign_nothing() {
    for key in ["00".repeat(32), format!("01{}", "00".repeat(31)), format!("ec{}7f", "ff".repeat(30))] {
        for head in ["00", "01"] {
            let signature = format!("{head}{}", "00".repeat(63));
            let weak = edited(|seal| seal["publishers"] = json!([{"key": key, "signature": signature}]));
            assert!(matches!(weak, Err(SealError::WrongSignature(_))), "{weak:?}");
        }
    }
}

/// A signature of the bare digest, made for something else, does not count.
#[test]
fn signatures_are_for_this_purpose_alone() {
    use ed25519_dalek::{Signer, SigningKey};
    let key = SigningKey::from_bytes(&[1; 32]);
    let (public, digest) = (hex::encode(key.verifying_key().to_bytes()), lock().digest());
    for message in [digest.bytes().to_vec(), digest.to_string().into_bytes(), lock().bytes()] {
        let signature = hex::encode(key.sign(&message).to_bytes());
        let foreign = edited(|seal| seal["publishers"] = json!([{"key": public, "signature": signature}]));
        assert!(matches!(foreign, Err(SealError::WrongSignature(_))));
    }
    let message = [b"bulkhead lock v1\0", &digest.bytes()[..]].concat();
    let signature = hex::encode(key.sign(&message).to_bytes());
    assert_eq!(edited(|seal| seal["publishers"] = json!([{"key": public, "signature": signature}])), Ok(1));
}

#[test]
fn only_the_canonical_form_is_read() {
    let text = String::from_utf8(seal(&lock()).bytes()).unwrap();
    let upper = text.replacen(&lock().digest().to_string(), &lock().digest().to_string().to_uppercase(), 1);
    let value: Value = serde_json::from_str(&text).unwrap();
    let mut turned = value.clone();
    turned["publishers"].as_array_mut().unwrap().reverse();
    let mut twice = value.clone();
    twice["publishers"][1] = twice["publishers"][0].clone();
    let mut more = value.clone();
    more["hmac"]["more"] = json!(1);
    let mut many = value.clone();
    many["publishers"] = json!(vec![value["publishers"][0].clone(); 17]);
    let forms = [format!("{text} "), upper, turned.to_string(), twice.to_string(), more.to_string(), many.to_string()];
    for form in forms {
        assert!(Seal::parse(form.as_bytes()).is_err(), "{form}");
    }
    assert!(matches!(Seal::parse(&vec![b' '; 1 << 20]), Err(SealError::TooLarge { .. })));
    assert!(matches!(Seal::parse(&[b'['; 1000]), Err(SealError::TooDeep { .. })));
}

#[test]
fn as_many_publishers_as_can_be_read() {
    let mut seal = Seal::new(&lock());
    for seed in 0..16 {
        seal.sign(&PublisherKey::from_seed(&[seed; 32])).unwrap();
    }
    assert_eq!(Seal::parse(&seal.bytes()).unwrap(), seal);
    assert_eq!(seal.sign(&PublisherKey::from_seed(&[16; 32])), Err(SealError::TooManyPublishers));
    seal.sign(&PublisherKey::from_seed(&[3; 32])).unwrap();
    assert_eq!(seal.verify_publishers(&lock()).unwrap().len(), 16);
}

#[test]
fn keys_are_never_printed() {
    let shown = format!("{:?}{:?}", MacKey::from_token(TOKEN), PublisherKey::from_seed(&[7; 32]));
    assert_eq!(shown, "******");
}

proptest! {
    #[test]
    fn nothing_makes_the_reader_panic(bytes in proptest::collection::vec(any::<u8>(), 0..300)) {
        prop_assert!(Seal::parse(&bytes).is_err());
    }

    #[test]
    fn nor_does_a_seal_with_something_in_its_middle(at in 0..600usize, bytes in proptest::collection::vec(any::<u8>(), 1..8)) {
        let mut all = seal(&lock()).bytes();
        let at = at.min(all.len());
        all.splice(at..at, bytes);
        prop_assert!(Seal::parse(&all).and_then(|seal| verify(&seal)).is_err());
    }
}
