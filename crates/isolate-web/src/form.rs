//! application/x-www-form-urlencoded, and percent-encoding.

use crate::bytes;

const fn hex(byte: u8) -> Option<u8> {
    match byte {
        b'0'..=b'9' => Some(byte - b'0'),
        b'a'..=b'f' => Some(byte - b'a' + 10),
        b'A'..=b'F' => Some(byte - b'A' + 10),
        _ => None,
    }
}

fn decode(input: &[u8], plus_is_space: bool) -> Vec<u8> {
    let mut output = Vec::with_capacity(input.len());
    let mut at = 0;
    while at < input.len() {
        let escaped = match &input[at..] {
            [b'%', high, low, ..] => hex(*high).zip(hex(*low)),
            _ => None,
        };
        match (escaped, input[at]) {
            (Some((high, low)), _) => {
                output.push(high << 4 | low);
                at += 2;
            }
            (None, b'+') if plus_is_space => output.push(b' '),
            (None, byte) => output.push(byte),
        }
        at += 1;
    }
    output
}

/// `formParse(text): string[]`, names and values in turn.
pub fn parse(scope: &mut v8::PinScope, args: v8::FunctionCallbackArguments, mut rv: v8::ReturnValue) {
    let input = bytes::string(scope, args.get(0));
    let mut strings: Vec<v8::Local<v8::Value>> = Vec::new();
    for piece in input.as_bytes().split(|byte| *byte == b'&').filter(|piece| !piece.is_empty()) {
        let split = piece.iter().position(|byte| *byte == b'=');
        let (name, value) = split.map_or((piece, &[][..]), |at| (&piece[..at], &piece[at + 1..]));
        for part in [name, value] {
            let decoded = decode(part, true);
            match v8::String::new(scope, &String::from_utf8_lossy(&decoded)) {
                Some(text) => strings.push(text.into()),
                None => return bytes::throw_too_long(scope),
            }
        }
    }
    rv.set(v8::Array::new_with_elements(scope, &strings).into());
}

fn encode(input: &str, output: &mut String) {
    for byte in input.bytes() {
        match byte {
            b'a'..=b'z' | b'A'..=b'Z' | b'0'..=b'9' | b'*' | b'-' | b'.' | b'_' => output.push(char::from(byte)),
            b' ' => output.push('+'),
            _ => {
                output.push('%');
                for digit in [byte >> 4, byte & 15] {
                    output.push(char::from(b"0123456789ABCDEF"[usize::from(digit)]));
                }
            }
        }
    }
}

/// `formSerialize(strings): string`, from names and values in turn.
pub fn serialize(scope: &mut v8::PinScope, args: v8::FunctionCallbackArguments, mut rv: v8::ReturnValue) {
    let Ok(strings) = v8::Local::<v8::Array>::try_from(args.get(0)) else {
        return;
    };
    let mut output = String::new();
    for index in 0..strings.length() {
        let Some(value) = strings.get_index(scope, index) else { return };
        if index % 2 == 1 {
            output.push('=');
        } else if index > 0 {
            output.push('&');
        }
        encode(&bytes::string(scope, value), &mut output);
    }
    bytes::set_string(scope, &mut rv, &output);
}

/// `percentDecode(text): Uint8Array`
pub fn percent_decode(scope: &mut v8::PinScope, args: v8::FunctionCallbackArguments, mut rv: v8::ReturnValue) {
    let input = bytes::string(scope, args.get(0));
    bytes::set_array(scope, &mut rv, decode(input.as_bytes(), false));
}
