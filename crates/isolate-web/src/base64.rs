//! Base64, in the forgiving form of `atob` and the strict URL form of JSON Web Keys.

use crate::bytes;

/// `atob(text): string | undefined`, undefined when the text is not base64.
pub fn atob(scope: &mut v8::PinScope, args: v8::FunctionCallbackArguments, mut rv: v8::ReturnValue) {
    let input = bytes::string(scope, args.get(0));
    let Ok(data) = base64_simd::forgiving_decode_to_vec(input.as_bytes()) else {
        return;
    };
    match v8::String::new_from_one_byte(scope, &data, v8::NewStringType::Normal) {
        Some(text) => rv.set(text.into()),
        None => bytes::throw_too_long(scope),
    }
}

/// `btoa(text): string`, of a text without characters above U+00FF.
pub fn btoa(scope: &mut v8::PinScope, args: v8::FunctionCallbackArguments, mut rv: v8::ReturnValue) {
    let data = bytes::latin1(scope, args.get(0));
    bytes::set_string(scope, &mut rv, &base64_simd::STANDARD.encode_to_string(data));
}

/// `base64UrlEncode(bytes): string`
pub fn url_encode(scope: &mut v8::PinScope, args: v8::FunctionCallbackArguments, mut rv: v8::ReturnValue) {
    let data = bytes::read(args.get(0));
    bytes::set_string(scope, &mut rv, &base64_simd::URL_SAFE_NO_PAD.encode_to_string(data));
}

/// `base64UrlDecode(text): Uint8Array | undefined`
pub fn url_decode(scope: &mut v8::PinScope, args: v8::FunctionCallbackArguments, mut rv: v8::ReturnValue) {
    let input = bytes::string(scope, args.get(0));
    if let Ok(data) = base64_simd::URL_SAFE_NO_PAD.decode_to_vec(input.as_bytes()) {
        bytes::set_array(scope, &mut rv, data);
    }
}
