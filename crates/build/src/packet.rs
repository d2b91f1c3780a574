//! The packets that esbuild exchanges over its pipes when it runs as a service: a length, a number, one value.
//! What comes back is read as if esbuild had been taken over by the project.

use std::collections::BTreeMap;
use std::io::{self, Read};

/// Messages have four levels.
const DEEPEST: usize = 16;
/// A value takes a byte in a packet and many here; esbuild sends a hundred messages at most.
const MOST_VALUES: usize = 100_000;

/// The values that packets are made of.
#[derive(Clone, Debug, PartialEq)]
pub(crate) enum Value {
    Null,
    Bool(bool),
    Number(u32),
    Text(String),
    Bytes(Vec<u8>),
    List(Vec<Value>),
    Map(BTreeMap<String, Value>),
}

impl From<&str> for Value {
    fn from(text: &str) -> Value {
        Value::Text(text.to_owned())
    }
}

impl Value {
    pub(crate) fn map<const N: usize>(fields: [(&str, Value); N]) -> Value {
        Value::Map(fields.into_iter().map(|(name, value)| (name.to_owned(), value)).collect())
    }

    pub(crate) fn get(&self, name: &str) -> Option<&Value> {
        if let Value::Map(fields) = self { fields.get(name) } else { None }
    }

    /// Takes a field out of a map.
    pub(crate) fn take(&mut self, name: &str) -> Option<Value> {
        if let Value::Map(fields) = self { fields.remove(name) } else { None }
    }

    pub(crate) fn text(&self) -> Option<&str> {
        if let Value::Text(text) = self { Some(text) } else { None }
    }

    pub(crate) fn number(&self) -> Option<u32> {
        if let Value::Number(number) = self { Some(*number) } else { None }
    }

    pub(crate) fn items(&self) -> &[Value] {
        if let Value::List(items) = self { items } else { &[] }
    }

    /// A request with the number 0.
    pub(crate) fn request(&self) -> Vec<u8> {
        let mut body = 0u32.to_le_bytes().to_vec();
        self.write(&mut body);
        let mut packet = length(body.len());
        packet.extend(body);
        packet
    }

    fn write(&self, out: &mut Vec<u8>) {
        match self {
            Value::Null => out.push(0),
            Value::Bool(value) => out.extend([1, u8::from(*value)]),
            Value::Number(number) => {
                out.push(2);
                out.extend(number.to_le_bytes());
            }
            Value::Text(text) => {
                out.push(3);
                write_bytes(out, text.as_bytes());
            }
            Value::Bytes(bytes) => {
                out.push(4);
                write_bytes(out, bytes);
            }
            Value::List(items) => {
                out.push(5);
                out.extend(length(items.len()));
                items.iter().for_each(|item| item.write(out));
            }
            Value::Map(fields) => {
                out.push(6);
                out.extend(length(fields.len()));
                for (name, value) in fields {
                    write_bytes(out, name.as_bytes());
                    value.write(out);
                }
            }
        }
    }

    /// The value of the response with the number 0. `None`: this is something else, or not well made.
    pub(crate) fn response(packet: &[u8]) -> Option<Value> {
        let mut rest = packet;
        if number(&mut rest)? != 1 {
            return None;
        }
        let value = read(&mut rest, DEEPEST, &mut 0)?;
        rest.is_empty().then_some(value)
    }
}

/// What is sent is small.
fn length(count: usize) -> Vec<u8> {
    u32::try_from(count).unwrap_or(u32::MAX).to_le_bytes().to_vec()
}

fn write_bytes(out: &mut Vec<u8>, bytes: &[u8]) {
    out.extend(length(bytes.len()));
    out.extend(bytes);
}

/// One packet of at most `most` bytes.
pub(crate) fn receive(from: &mut impl Read, most: usize) -> io::Result<Vec<u8>> {
    let mut length = [0; 4];
    from.read_exact(&mut length)?;
    let length = u32::from_le_bytes(length) as usize;
    if length > most {
        return Err(io::ErrorKind::FileTooLarge.into());
    }
    let mut packet = Vec::new();
    from.take(length as u64).read_to_end(&mut packet)?;
    if packet.len() < length { Err(io::ErrorKind::UnexpectedEof.into()) } else { Ok(packet) }
}

fn read(rest: &mut &[u8], depth: usize, count: &mut usize) -> Option<Value> {
    let depth = depth.checked_sub(1)?;
    *count += 1;
    if *count > MOST_VALUES {
        return None;
    }
    Some(match bytes(rest, 1)?[0] {
        0 => Value::Null,
        1 => Value::Bool(bytes(rest, 1)?[0] != 0),
        2 => Value::Number(number(rest)?),
        3 => Value::Text(text(rest)?),
        4 => {
            let length = number(rest)? as usize;
            Value::Bytes(bytes(rest, length)?.to_vec())
        }
        // Every item takes a byte, so a count that lies comes to an end soon.
        5 => Value::List((0..number(rest)?).map(|_| read(rest, depth, count)).collect::<Option<_>>()?),
        6 => Value::Map(
            (0..number(rest)?).map(|_| Some((text(rest)?, read(rest, depth, count)?))).collect::<Option<_>>()?,
        ),
        _ => return None,
    })
}

fn bytes<'a>(rest: &mut &'a [u8], count: usize) -> Option<&'a [u8]> {
    let (taken, left) = rest.split_at_checked(count)?;
    *rest = left;
    Some(taken)
}

fn number(rest: &mut &[u8]) -> Option<u32> {
    bytes(rest, 4)?.try_into().ok().map(u32::from_le_bytes)
}

/// File names need not be UTF-8.
fn text(rest: &mut &[u8]) -> Option<String> {
    let length = number(rest)? as usize;
    Some(String::from_utf8_lossy(bytes(rest, length)?).into_owned())
}

#[cfg(test)]
mod tests {
    use super::*;
    use proptest::prelude::*;

    fn respond(value: &Value) -> Vec<u8> {
        let mut packet = value.request().split_off(4);
        packet[0] = 1;
        packet
    }

    #[test]
    fn what_is_written_is_read() {
        let value = Value::map([
            ("a", Value::List(vec![Value::Null, Value::Bool(true), Value::Number(7)])),
            ("b", Value::map([("c", Value::Bytes(vec![0, 255])), ("d", "ä".into())])),
        ]);
        assert_eq!(Value::response(&respond(&value)), Some(value.clone()));
        let packet = value.request();
        assert_eq!(receive(&mut packet.as_slice(), packet.len()).unwrap(), packet[4..]);
        assert_eq!(receive(&mut packet.as_slice(), 8).unwrap_err().kind(), io::ErrorKind::FileTooLarge);
        assert!(receive(&mut &packet[..packet.len() - 1], 1 << 20).is_err());
    }

    #[test]
    fn what_is_deep_or_short_or_lies_is_refused() {
        let deep = [&[1, 0, 0, 0][..], &[5, 1, 0, 0, 0].repeat(100_000), &[0]].concat();
        assert_eq!(Value::response(&deep), None);
        for lie in [&[5, 255, 255, 255, 255][..], &[3, 255, 255, 255, 255, 65], &[6, 9, 0, 0, 0], &[7], &[]] {
            assert_eq!(Value::response(&[&[1, 0, 0, 0], lie].concat()), None);
        }
        assert_eq!(Value::response(&[0, 0, 0, 0, 0]), None, "a request");
        let many = Value::List(vec![Value::Null; MOST_VALUES]);
        assert_eq!(Value::response(&respond(&many)), None);
    }

    proptest! {
        #[test]
        fn anything_may_come(packet in prop::collection::vec(any::<u8>(), 0..200)) {
            let _ = Value::response(&packet);
        }
    }
}
