//! Hashes, and message authentication with them.

use crate::bytes;
use hmac::{Hmac, KeyInit, Mac};
use sha1::Sha1;
use sha2::{Digest, Sha256, Sha384, Sha512};

fn hash<D: Digest>(data: &[u8]) -> Vec<u8> {
    D::digest(data).to_vec()
}

/// `digest(name, bytes): Uint8Array | undefined`
pub fn digest(scope: &mut v8::PinScope, args: v8::FunctionCallbackArguments, mut rv: v8::ReturnValue) {
    let data = bytes::read(args.get(1));
    let digest = match bytes::string(scope, args.get(0)).as_str() {
        "SHA-1" => hash::<Sha1>(&data),
        "SHA-256" => hash::<Sha256>(&data),
        "SHA-384" => hash::<Sha384>(&data),
        "SHA-512" => hash::<Sha512>(&data),
        _ => return,
    };
    bytes::set_array(scope, &mut rv, digest);
}

fn sign_with<M: Mac + KeyInit>(key: &[u8], data: &[u8]) -> Option<Vec<u8>> {
    let mut mac = <M as KeyInit>::new_from_slice(key).ok()?;
    mac.update(data);
    Some(mac.finalize().into_bytes().to_vec())
}

fn verify_with<M: Mac + KeyInit>(key: &[u8], data: &[u8], tag: &[u8]) -> Option<bool> {
    let mut mac = <M as KeyInit>::new_from_slice(key).ok()?;
    mac.update(data);
    // Compares in constant time.
    Some(mac.verify_slice(tag).is_ok())
}

/// `hmacSign(hash, key, data): Uint8Array | undefined`
pub fn hmac_sign(scope: &mut v8::PinScope, args: v8::FunctionCallbackArguments, mut rv: v8::ReturnValue) {
    let (key, data) = (bytes::read(args.get(1)), bytes::read(args.get(2)));
    let tag = match bytes::string(scope, args.get(0)).as_str() {
        "SHA-1" => sign_with::<Hmac<Sha1>>(&key, &data),
        "SHA-256" => sign_with::<Hmac<Sha256>>(&key, &data),
        "SHA-384" => sign_with::<Hmac<Sha384>>(&key, &data),
        "SHA-512" => sign_with::<Hmac<Sha512>>(&key, &data),
        _ => None,
    };
    if let Some(tag) = tag {
        bytes::set_array(scope, &mut rv, tag);
    }
}

/// `hmacVerify(hash, key, data, tag): boolean`
pub fn hmac_verify(scope: &mut v8::PinScope, args: v8::FunctionCallbackArguments, mut rv: v8::ReturnValue) {
    let (key, data, tag) = (bytes::read(args.get(1)), bytes::read(args.get(2)), bytes::read(args.get(3)));
    let right = match bytes::string(scope, args.get(0)).as_str() {
        "SHA-1" => verify_with::<Hmac<Sha1>>(&key, &data, &tag),
        "SHA-256" => verify_with::<Hmac<Sha256>>(&key, &data, &tag),
        "SHA-384" => verify_with::<Hmac<Sha384>>(&key, &data, &tag),
        "SHA-512" => verify_with::<Hmac<Sha512>>(&key, &data, &tag),
        _ => None,
    };
    rv.set_bool(right.unwrap_or(false));
}
