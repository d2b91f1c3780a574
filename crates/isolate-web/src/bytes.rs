//! Bytes and strings on their way between JavaScript and Rust.

/// The length in bytes of a view; 0 for anything else.
pub fn length(value: v8::Local<v8::Value>) -> usize {
    v8::Local::<v8::ArrayBufferView>::try_from(value).map_or(0, |view| view.byte_length())
}

/// A copy of the bytes of a view, or none for anything else.
pub fn read(value: v8::Local<v8::Value>) -> Vec<u8> {
    let Ok(view) = v8::Local::<v8::ArrayBufferView>::try_from(value) else {
        return Vec::new();
    };
    let mut copy = vec![0; view.byte_length()];
    let copied = view.copy_contents(&mut copy);
    copy.truncate(copied);
    copy
}

/// Overwrites the beginning of a view; what does not fit is dropped.
pub fn write(scope: &mut v8::PinScope, value: v8::Local<v8::Value>, data: &[u8]) {
    let Ok(view) = v8::Local::<v8::ArrayBufferView>::try_from(value) else {
        return;
    };
    // `buffer` also moves a small view's bytes out of the JavaScript heap, where `get_backing_store` would miss them.
    let Some(_) = view.buffer(scope) else { return };
    let Some(store) = view.get_backing_store() else { return };
    let offset = view.byte_offset();
    let room = view.byte_length().min(store.byte_length().saturating_sub(offset));
    if room == 0 {
        // Its buffer may have shrunk so far that not even the offset is inside.
        return;
    }
    for (cell, byte) in store[offset..offset + room].iter().zip(data) {
        cell.set(*byte);
    }
}

/// A Uint8Array that owns the bytes.
pub fn array<'s>(scope: &mut v8::PinScope<'s, '_>, data: Vec<u8>) -> Option<v8::Local<'s, v8::Uint8Array>> {
    let length = data.len();
    let store = v8::ArrayBuffer::new_backing_store_from_vec(data).make_shared();
    let buffer = v8::ArrayBuffer::with_backing_store(scope, &store);
    v8::Uint8Array::new(scope, buffer, 0, length)
}

pub fn set_array(scope: &mut v8::PinScope, rv: &mut v8::ReturnValue, data: Vec<u8>) {
    if let Some(array) = array(scope, data) {
        rv.set(array.into());
    }
}

/// Throws a RangeError when the text is longer than V8 allows a string to be.
pub fn set_string(scope: &mut v8::PinScope, rv: &mut v8::ReturnValue, text: &str) {
    match v8::String::new(scope, text) {
        Some(text) => rv.set(text.into()),
        None => throw_too_long(scope),
    }
}

pub fn throw_too_long(scope: &mut v8::PinScope) {
    if let Some(message) = v8::String::new(scope, "the text is too long for a string") {
        let error = v8::Exception::range_error(scope, message);
        scope.throw_exception(error);
    }
}

/// The argument as UTF-8; lone surrogates become U+FFFD. JavaScript has already made it a string.
pub fn string(scope: &mut v8::PinScope, value: v8::Local<v8::Value>) -> String {
    value.to_rust_string_lossy(scope)
}

/// The argument as one byte a character; JavaScript has already checked that there is none above U+00FF.
pub fn latin1(scope: &mut v8::PinScope, value: v8::Local<v8::Value>) -> Vec<u8> {
    let Ok(text) = v8::Local::<v8::String>::try_from(value) else {
        return Vec::new();
    };
    let mut data = vec![0; text.length()];
    text.write_one_byte_v2(scope, 0, &mut data, v8::WriteFlags::empty());
    data
}
