//! The table of functions that our JavaScript gets from Rust.

use crate::{base64, clone, digest, form, inflate, origin, random, text, url, value};
use v8::MapFnTo;

type Table<'a> = &'a [(&'a str, v8::FunctionCallback)];

fn table(add: impl FnOnce(Table)) {
    add(&[
        ("timeOrigin", origin::time_origin.map_fn_to()),
        ("random", random::random.map_fn_to()),
        ("fillRandom", random::fill_random.map_fn_to()),
        ("randomUUID", random::random_uuid.map_fn_to()),
        ("drainMicrotasks", value::drain_microtasks.map_fn_to()),
        ("isProxy", value::is_proxy.map_fn_to()),
        ("proxyTarget", value::proxy_target.map_fn_to()),
        ("kindOf", value::kind_of.map_fn_to()),
        ("promiseState", value::promise_state.map_fn_to()),
        ("structuredClone", clone::structured_clone.map_fn_to()),
        ("urlParse", url::parse.map_fn_to()),
        ("urlCanParse", url::can_parse.map_fn_to()),
        ("urlSet", url::set.map_fn_to()),
        ("urlOrigin", url::origin.map_fn_to()),
        ("formParse", form::parse.map_fn_to()),
        ("formSerialize", form::serialize.map_fn_to()),
        ("percentDecode", form::percent_decode.map_fn_to()),
        ("atob", base64::atob.map_fn_to()),
        ("btoa", base64::btoa.map_fn_to()),
        ("base64UrlEncode", base64::url_encode.map_fn_to()),
        ("base64UrlDecode", base64::url_decode.map_fn_to()),
        ("isLatin1", text::is_latin1.map_fn_to()),
        ("latin1Encode", text::latin1_encode.map_fn_to()),
        ("latin1Decode", text::latin1_decode.map_fn_to()),
        ("encodingName", text::encoding_name.map_fn_to()),
        ("utf8Encode", text::utf8_encode.map_fn_to()),
        ("utf8EncodeInto", text::utf8_encode_into.map_fn_to()),
        ("utf8Decode", text::utf8_decode.map_fn_to()),
        ("decoderNew", text::decoder_new.map_fn_to()),
        ("decoderRun", text::decoder_run.map_fn_to()),
        ("digest", digest::digest.map_fn_to()),
        ("hmacSign", digest::hmac_sign.map_fn_to()),
        ("hmacVerify", digest::hmac_verify.map_fn_to()),
        ("zlibNew", inflate::new.map_fn_to()),
        ("zlibRun", inflate::run.map_fn_to()),
    ]);
}

/// An object with every native function.
pub fn object<'s>(scope: &mut v8::PinScope<'s, '_>) -> Option<v8::Local<'s, v8::Object>> {
    let object = v8::Object::new(scope);
    let mut complete = true;
    table(|entries| {
        for (name, callback) in entries {
            complete &= add(scope, object, name, *callback).is_some();
        }
    });
    complete.then_some(object)
}

fn add(
    scope: &mut v8::PinScope,
    object: v8::Local<v8::Object>,
    name: &str,
    callback: v8::FunctionCallback,
) -> Option<()> {
    let key = v8::String::new(scope, name)?;
    let function =
        v8::Function::builder_raw(callback).constructor_behavior(v8::ConstructorBehavior::Throw).build(scope)?;
    function.set_name(key);
    object.set(scope, key.into(), function.into())?;
    Some(())
}
