//! Text to bytes and back, by encoding_rs.

use crate::bytes;
use crate::held::{self, Held};
use encoding_rs::{CoderResult, Decoder, DecoderResult, Encoding, UTF_8};
use std::cell::RefCell;

thread_local! {
    static DECODERS: RefCell<Held<Streaming>> = RefCell::default();
}

/// A decoder in the middle of a stream.
struct Streaming {
    decoder: Decoder,
    fatal: bool,
}

/// `encodingName(label): string | undefined`
pub fn encoding_name(scope: &mut v8::PinScope, args: v8::FunctionCallbackArguments, mut rv: v8::ReturnValue) {
    let label = bytes::string(scope, args.get(0));
    if let Some(encoding) = Encoding::for_label_no_replacement(label.as_bytes()) {
        bytes::set_string(scope, &mut rv, &encoding.name().to_ascii_lowercase());
    }
}

/// `utf8Encode(text): Uint8Array`
pub fn utf8_encode(scope: &mut v8::PinScope, args: v8::FunctionCallbackArguments, mut rv: v8::ReturnValue) {
    let text = bytes::string(scope, args.get(0));
    bytes::set_array(scope, &mut rv, text.into_bytes());
}

/// `utf8EncodeInto(text, view): [read, written]`, whole characters only.
pub fn utf8_encode_into(scope: &mut v8::PinScope, args: v8::FunctionCallbackArguments, mut rv: v8::ReturnValue) {
    let Ok(text) = v8::Local::<v8::String>::try_from(args.get(0)) else {
        return;
    };
    let room = bytes::length(args.get(1)).min(text.length().saturating_mul(3));
    let mut encoded = vec![0; room];
    let mut read = 0;
    let written = text.write_utf8_v2(scope, &mut encoded, v8::WriteFlags::kReplaceInvalidUtf8, Some(&mut read));
    bytes::write(scope, args.get(1), &encoded[..written]);
    let read = v8::Number::new(scope, read as f64);
    let written = v8::Number::new(scope, written as f64);
    rv.set(v8::Array::new_with_elements(scope, &[read.into(), written.into()]).into());
}

/// `utf8Decode(bytes, fatal, keepMark): string | undefined`, undefined when `fatal` and not UTF-8.
pub fn utf8_decode(scope: &mut v8::PinScope, args: v8::FunctionCallbackArguments, mut rv: v8::ReturnValue) {
    let data = bytes::read(args.get(0));
    let (fatal, keep_mark) = (args.get(1).is_true(), args.get(2).is_true());
    let data = if keep_mark { &data[..] } else { data.strip_prefix(b"\xef\xbb\xbf").unwrap_or(&data) };
    match UTF_8.decode_without_bom_handling_and_without_replacement(data) {
        Some(text) => bytes::set_string(scope, &mut rv, &text),
        None if fatal => {}
        None => bytes::set_string(scope, &mut rv, &UTF_8.decode_without_bom_handling(data).0),
    }
}

/// `decoderNew(label, fatal, keepMark): object`
pub fn decoder_new(scope: &mut v8::PinScope, args: v8::FunctionCallbackArguments, mut rv: v8::ReturnValue) {
    let label = bytes::string(scope, args.get(0));
    let (fatal, keep_mark) = (args.get(1).is_true(), args.get(2).is_true());
    let Some(encoding) = Encoding::for_label_no_replacement(label.as_bytes()) else {
        return;
    };
    let decoder =
        if keep_mark { encoding.new_decoder_without_bom_handling() } else { encoding.new_decoder_with_bom_removal() };
    if let Some(owner) = held::hold(scope, &DECODERS, Streaming { decoder, fatal }) {
        rv.set(owner.into());
    }
}

/// `decoderRun(id, bytes, last): string | undefined`, undefined when fatal and malformed.
pub fn decoder_run(scope: &mut v8::PinScope, args: v8::FunctionCallbackArguments, mut rv: v8::ReturnValue) {
    let data = bytes::read(args.get(1));
    let last = args.get(2).is_true();
    let Some(Some(units)) = held::with(&DECODERS, args.get(0), |state| decode(state, &data, last)) else {
        return;
    };
    let narrow: Option<Vec<u8>> = units.iter().map(|unit| u8::try_from(*unit).ok()).collect();
    let text = match narrow {
        Some(narrow) => v8::String::new_from_one_byte(scope, &narrow, v8::NewStringType::Normal),
        None => v8::String::new_from_two_byte(scope, &units, v8::NewStringType::Normal),
    };
    match text {
        Some(text) => rv.set(text.into()),
        None => bytes::throw_too_long(scope),
    }
}

fn decode(state: &mut Streaming, data: &[u8], last: bool) -> Option<Vec<u16>> {
    let mut units = vec![0; state.decoder.max_utf16_buffer_length(data.len())?];
    let written = if state.fatal {
        let (result, _, written) = state.decoder.decode_to_utf16_without_replacement(data, &mut units, last);
        if result != DecoderResult::InputEmpty {
            return None;
        }
        written
    } else {
        let (result, _, written, _) = state.decoder.decode_to_utf16(data, &mut units, last);
        if result != CoderResult::InputEmpty {
            return None;
        }
        written
    };
    units.truncate(written);
    Some(units)
}

/// `isLatin1(text): boolean`: no character above U+00FF.
pub fn is_latin1(_scope: &mut v8::PinScope, args: v8::FunctionCallbackArguments, mut rv: v8::ReturnValue) {
    let text = v8::Local::<v8::String>::try_from(args.get(0));
    rv.set_bool(text.is_ok_and(|text| text.contains_only_onebyte()));
}

/// `latin1Encode(text): Uint8Array`, one byte a character.
pub fn latin1_encode(scope: &mut v8::PinScope, args: v8::FunctionCallbackArguments, mut rv: v8::ReturnValue) {
    let data = bytes::latin1(scope, args.get(0));
    bytes::set_array(scope, &mut rv, data);
}

/// `latin1Decode(bytes): string`, one character a byte.
pub fn latin1_decode(scope: &mut v8::PinScope, args: v8::FunctionCallbackArguments, mut rv: v8::ReturnValue) {
    let data = bytes::read(args.get(0));
    match v8::String::new_from_one_byte(scope, &data, v8::NewStringType::Normal) {
        Some(text) => rv.set(text.into()),
        None => bytes::throw_too_long(scope),
    }
}
