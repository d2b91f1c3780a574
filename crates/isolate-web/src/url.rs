//! URLs, by ada. JavaScript keeps the serialised text and the offsets of its parts, and asks again only to change it.

use crate::bytes;
use ada_url::Url;

/// Where a part is absent.
const ABSENT: u32 = u32::MAX;

fn base_of(scope: &mut v8::PinScope, value: v8::Local<v8::Value>) -> Option<String> {
    (!value.is_undefined()).then(|| bytes::string(scope, value))
}

/// Writes the eight offsets into `parts` and returns the text.
fn give(scope: &mut v8::PinScope, rv: &mut v8::ReturnValue, url: &Url, parts: v8::Local<v8::Value>) {
    let found = url.components();
    let offsets = [
        found.protocol_end,
        found.username_end,
        found.host_start,
        found.host_end,
        found.port.unwrap_or(ABSENT),
        found.pathname_start.unwrap_or(ABSENT),
        found.search_start.unwrap_or(ABSENT),
        found.hash_start.unwrap_or(ABSENT),
    ];
    let mut raw = [0; 32];
    for (slot, offset) in raw.chunks_exact_mut(4).zip(offsets) {
        slot.copy_from_slice(&offset.to_ne_bytes());
    }
    bytes::write(scope, parts, &raw);
    bytes::set_string(scope, rv, url.href());
}

/// `urlParse(input, base | undefined, parts: Uint32Array(8)): string | undefined`
pub fn parse(scope: &mut v8::PinScope, args: v8::FunctionCallbackArguments, mut rv: v8::ReturnValue) {
    let input = bytes::string(scope, args.get(0));
    let base = base_of(scope, args.get(1));
    if let Ok(url) = Url::parse(input.as_str(), base.as_deref()) {
        give(scope, &mut rv, &url, args.get(2));
    }
}

/// `urlCanParse(input, base | undefined): boolean`
pub fn can_parse(scope: &mut v8::PinScope, args: v8::FunctionCallbackArguments, mut rv: v8::ReturnValue) {
    let input = bytes::string(scope, args.get(0));
    let base = base_of(scope, args.get(1));
    rv.set_bool(Url::can_parse(&input, base.as_deref()));
}

/// `urlSet(href, part, value, parts): string | undefined`, undefined when `href` itself was refused.
pub fn set(scope: &mut v8::PinScope, args: v8::FunctionCallbackArguments, mut rv: v8::ReturnValue) {
    let href = bytes::string(scope, args.get(0));
    let part = bytes::string(scope, args.get(1));
    let value = bytes::string(scope, args.get(2));
    let Ok(mut url) = Url::parse(href.as_str(), None) else {
        return;
    };
    let text = value.as_str();
    let value = Some(text);
    // A refused value leaves the URL as it was, as the standard says.
    let _ = match part.as_str() {
        "protocol" => url.set_protocol(text),
        "username" => url.set_username(value),
        "password" => url.set_password(value),
        "host" => url.set_host(value),
        "hostname" => url.set_hostname(value),
        "port" => url.set_port(value),
        "pathname" => url.set_pathname(value),
        "search" => {
            url.set_search(value);
            Ok(())
        }
        "hash" => {
            url.set_hash(value);
            Ok(())
        }
        _ => Err(()),
    };
    give(scope, &mut rv, &url, args.get(3));
}

/// `urlOrigin(href): string`
pub fn origin(scope: &mut v8::PinScope, args: v8::FunctionCallbackArguments, mut rv: v8::ReturnValue) {
    let href = bytes::string(scope, args.get(0));
    if let Ok(url) = Url::parse(href.as_str(), None) {
        bytes::set_string(scope, &mut rv, &url.origin());
    }
}
