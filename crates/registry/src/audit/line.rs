//! One line of the log: a JSON object whose last two fields tie it to the line before.
//!
//! `{"seq":7,"time":"…","kind":"call",…,"prev":"<64 hex>","hash":"<64 hex>"}`, where `hash` is SHA-256 over the bytes of the
//! line before `,"hash"`, and `prev` is the hash of the line before, or 64 zeros.

use crate::clock::write_rfc3339;
use crate::{AuditError, AuditEvent};
use sha2::{Digest, Sha256};
use std::io::Write;
use std::time::SystemTime;

/// What the first line follows.
pub(crate) const GENESIS: Link = Link { seq: 0, hash: [0; 32] };

/// No line is longer; who reads the log need not have more memory than this for one.
pub(crate) const LONGEST_LINE: usize = 16 << 20;

/// Recorded arguments and results up to this size are kept; of larger ones, only that they were left out.
const LONGEST_RECORD: usize = 1 << 20;

const HEX: usize = 64;
const PREV_FIELD: &[u8] = br#","prev":""#;
const HASH_FIELD: &[u8] = br#","hash":""#;
/// `,"prev":"…"`
const PREV_BYTES: usize = PREV_FIELD.len() + HEX + 1;
/// `,"hash":"…"}`
const HASH_BYTES: usize = HASH_FIELD.len() + HEX + 2;

/// A line's place in the chain.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) struct Link {
    pub seq: u64,
    pub hash: [u8; 32],
}

/// The fields of an event, as a JSON object without line breaks. `id` makes a change recognisable.
pub(crate) fn body(event: &AuditEvent, id: Option<&str>) -> Result<Vec<u8>, AuditError> {
    let mut left_out = Vec::new();
    let mut body = match event {
        AuditEvent::Call(call) => {
            left_out.clone_from(&call.left_out);
            let large = |text: &Option<Box<serde_json::value::RawValue>>| {
                text.as_ref().is_some_and(|text| text.get().len() > LONGEST_RECORD)
            };
            if large(&call.arguments) || large(&call.result) {
                let mut call = call.clone();
                for (name, record) in [("arguments", &mut call.arguments), ("result", &mut call.result)] {
                    if large(record) {
                        left_out.push(name);
                        *record = None;
                    }
                }
                json(&AuditEvent::Call(call))?
            } else {
                json(event)?
            }
        }
        _ => json(event)?,
    };
    if !left_out.is_empty() {
        append_field(&mut body, "left_out", &left_out)?;
    }
    if let Some(id) = id {
        append_field(&mut body, "id", &id)?;
    }
    // Raw JSON may have line breaks between its tokens, and nowhere else.
    if body.contains(&b'\n') || body.contains(&b'\r') {
        body.iter_mut().filter(|byte| matches!(byte, b'\n' | b'\r')).for_each(|byte| *byte = b' ');
    }
    if body.len() > LONGEST_LINE - 1024 {
        return Err(AuditError::TooLarge { bytes: body.len() });
    }
    Ok(body)
}

fn json(value: &impl serde::Serialize) -> Result<Vec<u8>, AuditError> {
    serde_json::to_vec(value).map_err(|error| AuditError::Event(error.into()))
}

fn append_field(body: &mut Vec<u8>, name: &str, value: &impl serde::Serialize) -> Result<(), AuditError> {
    body.pop();
    body.push(b',');
    body.extend_from_slice(&json(&name)?);
    body.push(b':');
    body.extend_from_slice(&json(value)?);
    body.push(b'}');
    Ok(())
}

/// What a line has beside its body, in bytes, and a little more.
pub(crate) const BESIDE_BODY: usize = 256;

/// Writes the line that follows `prev` into `line`, which is cleared first.
pub(crate) fn chain(line: &mut Vec<u8>, prev: Link, time: SystemTime, body: &[u8]) -> Link {
    let seq = prev.seq + 1;
    line.clear();
    let _ = write!(line, r#"{{"seq":{seq},"time":""#); // writing to a Vec does not fail
    write_rfc3339(time, line);
    line.extend_from_slice(br#"","#);
    line.extend_from_slice(&body[1..body.len() - 1]);
    line.extend_from_slice(PREV_FIELD);
    line.extend_from_slice(&hex_text(&prev.hash));
    line.push(b'"');
    let hash: [u8; 32] = Sha256::digest(&line).into();
    line.extend_from_slice(HASH_FIELD);
    line.extend_from_slice(&hex_text(&hash));
    line.extend_from_slice(b"\"}\n");
    Link { seq, hash }
}

fn hex_text(hash: &[u8; 32]) -> [u8; HEX] {
    let mut text = [0; HEX];
    let _ = hex::encode_to_slice(hash, &mut text); // the lengths fit
    text
}

/// What a line (without its line break) says of itself, if it has the form of one and its hash is right.
pub(crate) struct Parsed {
    pub link: Link,
    pub prev: [u8; 32],
}

pub(crate) fn parse(line: &[u8]) -> Result<Parsed, String> {
    let no_line = || "this is no line of an audit log".to_owned();
    let hashed = line.len().checked_sub(HASH_BYTES).ok_or_else(no_line)?;
    let start = hashed.checked_sub(PREV_BYTES).ok_or_else(no_line)?;
    let (hashed, hash_field) = line.split_at(hashed);
    let hash_text = enclosed(hash_field, HASH_FIELD, b"\"}").ok_or_else(no_line)?;
    let prev_text = enclosed(&hashed[start..], PREV_FIELD, b"\"").ok_or_else(no_line)?;
    let seq = sequence(hashed).ok_or_else(no_line)?;
    let hash: [u8; 32] = Sha256::digest(hashed).into();
    if hex_text(&hash) != hash_text {
        return Err("its hash does not fit its content".to_owned());
    }
    let mut prev = [0; 32];
    // Encoded again and compared, because upper case would decode to the same bytes.
    if hex::decode_to_slice(prev_text, &mut prev).is_err() || hex_text(&prev) != prev_text {
        return Err(no_line());
    }
    Ok(Parsed { link: Link { seq, hash }, prev })
}

fn enclosed<'a>(text: &'a [u8], before: &[u8], after: &[u8]) -> Option<&'a [u8]> {
    text.strip_prefix(before)?.strip_suffix(after)
}

/// The number of what begins like a line.
pub(crate) fn sequence(line: &[u8]) -> Option<u64> {
    let digits = line.strip_prefix(br#"{"seq":"#)?;
    let end = digits.iter().take(20).position(|byte| !byte.is_ascii_digit())?;
    let rest = &digits[end..];
    if !rest.starts_with(br#","time":""#) || (end > 1 && digits[0] == b'0') {
        return None;
    }
    std::str::from_utf8(&digits[..end]).ok()?.parse().ok()
}

/// When a line was written, as it says.
pub(crate) fn time(line: &[u8]) -> Option<&[u8]> {
    let at = line.iter().take(64).position(|byte| *byte == b',')?;
    let rest = line[at..].strip_prefix(br#","time":""#)?;
    rest.get(..rest.iter().take(64).position(|byte| *byte == b'"')?)
}

/// Follows a chain from line to line.
#[derive(Clone, Copy, Debug)]
pub(crate) struct Chain {
    last: Option<Link>,
}

impl Chain {
    /// Expects the first line of all.
    pub(crate) fn genesis() -> Chain {
        Chain { last: Some(GENESIS) }
    }

    /// Expects the line after this one.
    pub(crate) fn after(last: Link) -> Chain {
        Chain { last: Some(last) }
    }

    /// Takes whatever line comes first.
    pub(crate) fn anywhere() -> Chain {
        Chain { last: None }
    }

    pub(crate) fn accept(&mut self, line: &[u8]) -> Result<Link, String> {
        let parsed = parse(line)?;
        if let Some(last) = self.last {
            let (expected, seq) = (last.seq.saturating_add(1), parsed.link.seq);
            if seq != expected {
                return Err(format!("number {expected} was expected here, not {seq}"));
            }
            if parsed.prev != last.hash {
                return Err("it does not follow the line before it".to_owned());
            }
        }
        self.last = Some(parsed.link);
        Ok(parsed.link)
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::{CallEvent, ChangeEvent};
    use serde_json::value::RawValue;

    fn call(arguments: Option<&str>) -> AuditEvent {
        let arguments = arguments.map(|text| RawValue::from_string(text.to_owned()).unwrap());
        AuditEvent::Call(CallEvent { tenant: "acme".to_owned(), arguments, ..CallEvent::default() })
    }

    fn line(event: &AuditEvent, id: Option<&str>) -> String {
        let mut line = Vec::new();
        chain(&mut line, GENESIS, SystemTime::UNIX_EPOCH, &body(event, id).unwrap());
        String::from_utf8(line).unwrap()
    }

    #[test]
    fn a_line_reads_as_documented() {
        let event = AuditEvent::Host { what: "started".to_owned(), detail: "a \"test\"\n".to_owned() };
        let hashed = concat!(
            r#"{"seq":1,"time":"1970-01-01T00:00:00.000Z","kind":"host","what":"started","detail":"a \"test\"\n","#,
            r#""prev":"0000000000000000000000000000000000000000000000000000000000000000""#
        );
        let hash = hex::encode(Sha256::digest(hashed));
        assert_eq!(line(&event, None), format!("{hashed},\"hash\":\"{hash}\"}}\n"));
    }

    #[test]
    fn raw_json_with_line_breaks_stays_on_one_line() {
        let text = line(&call(Some("{\r\n  \"a\": \"x\\ny\"\n}")), None);
        assert_eq!(text.matches('\n').count(), 1);
        let value: serde_json::Value = serde_json::from_str(&text).unwrap();
        assert_eq!(value["arguments"]["a"], "x\ny");
    }

    #[test]
    fn large_records_are_left_out_and_said_to_be() {
        let large = format!("\"{}\"", "x".repeat(LONGEST_RECORD));
        let value: serde_json::Value = serde_json::from_str(&line(&call(Some(&large)), None)).unwrap();
        assert_eq!(value["left_out"], serde_json::json!(["arguments"]));
        assert_eq!(value.get("arguments"), None);
        let kept: serde_json::Value = serde_json::from_str(&line(&call(Some("[1]")), None)).unwrap();
        assert_eq!(kept["arguments"], serde_json::json!([1]));
    }

    #[test]
    fn what_no_reader_would_take_is_refused() {
        let event = AuditEvent::Host { what: "x".repeat(LONGEST_LINE), detail: String::new() };
        assert!(matches!(body(&event, None), Err(AuditError::TooLarge { .. })));
    }

    #[test]
    fn an_id_stands_in_the_line() {
        let event = AuditEvent::Change(ChangeEvent { action: "key.revoke".to_owned(), ..ChangeEvent::default() });
        let value: serde_json::Value = serde_json::from_str(&line(&event, Some("e1"))).unwrap();
        assert_eq!((value["id"].as_str(), value["kind"].as_str()), (Some("e1"), Some("change")));
    }

    #[test]
    fn a_chain_accepts_what_it_wrote_and_nothing_else() {
        let (mut first, mut second) = (Vec::new(), Vec::new());
        let one = chain(&mut first, GENESIS, SystemTime::now(), &body(&call(None), None).unwrap());
        chain(&mut second, one, SystemTime::now(), &body(&call(None), None).unwrap());
        let (first, second) = (first.trim_ascii_end(), second.trim_ascii_end());
        let mut sound = Chain::genesis();
        assert!(sound.accept(first).is_ok() && sound.accept(second).is_ok());
        assert!(sound.accept(second).is_err(), "twice");
        assert!(Chain::genesis().accept(second).is_err(), "not the first");
        assert!(Chain::anywhere().accept(second).is_ok());
    }

    #[test]
    fn a_clock_that_jumps_changes_nothing() {
        let now = SystemTime::now();
        let hours = |count: u64| std::time::Duration::from_secs(count * 3600);
        let times = [now, now - hours(24), SystemTime::UNIX_EPOCH - hours(1), now + hours(99_999_999), now];
        let (mut follow, mut last, mut line) = (Chain::genesis(), GENESIS, Vec::new());
        for time in times {
            last = chain(&mut line, last, time, &body(&call(None), None).unwrap());
            assert_eq!(follow.accept(line.trim_ascii_end()), Ok(last));
        }
    }

    #[test]
    fn every_flipped_bit_is_found() {
        let mut line = Vec::new();
        chain(&mut line, GENESIS, SystemTime::now(), &body(&call(Some("[1]")), None).unwrap());
        line.pop();
        for at in 0..line.len() {
            for bit in 0..8 {
                line[at] ^= 1 << bit;
                assert!(Chain::genesis().accept(&line).is_err(), "byte {at}, bit {bit}");
                line[at] ^= 1 << bit;
            }
        }
        assert!(Chain::genesis().accept(&line).is_ok());
    }
}
