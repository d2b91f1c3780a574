//! Server-sent events, taken apart as they come. Bounded before they are whole.

/// One event that has something in it.
#[derive(Debug, PartialEq, Eq)]
pub(super) struct Event {
    /// `message` unless it says otherwise.
    pub(super) kind: String,
    pub(super) data: Vec<u8>,
}

/// Longer names of fields, and of kinds, mean nothing to us.
const LONGEST_KIND: usize = 64;
const LONGEST_ID: usize = 1024;
/// What a line has beside its data: `data: `.
const BESIDE: usize = 16;

#[derive(Debug)]
pub(super) struct TooLong;

/// What is known of a stream so far.
pub(super) struct Events {
    longest: usize,
    line: Vec<u8>,
    /// The last byte was a carriage return, and a line feed after it is the same end of line.
    returned: bool,
    begun: bool,
    kind: String,
    data: Option<Vec<u8>>,
    /// What the server calls the last event, so that the stream can go on after it.
    pub(super) last_id: Option<String>,
    /// How long it wants a client to wait before it comes back, in milliseconds.
    pub(super) retry: Option<u64>,
    /// Bytes that were no part of an event with data, since somebody set this to zero.
    pub(super) idle_bytes: usize,
}

impl Events {
    pub(super) fn new(longest: usize) -> Events {
        Events {
            longest,
            line: Vec::new(),
            returned: false,
            begun: false,
            kind: String::new(),
            data: None,
            last_id: None,
            retry: None,
            idle_bytes: 0,
        }
    }

    /// Bytes that wait for the rest of their event.
    pub(super) fn held(&self) -> usize {
        self.line.len() + self.data.as_ref().map_or(0, Vec::len)
    }

    /// Takes some more of the stream, and gives the events that are whole by it.
    pub(super) fn push(&mut self, mut bytes: &[u8]) -> Result<Vec<Event>, TooLong> {
        let mut whole = Vec::new();
        while !bytes.is_empty() {
            if std::mem::take(&mut self.returned) && bytes[0] == b'\n' {
                bytes = &bytes[1..];
                continue;
            }
            let end = bytes.iter().position(|byte| matches!(byte, b'\n' | b'\r'));
            let (part, rest) = bytes.split_at(end.unwrap_or(bytes.len()));
            if self.held() + part.len() > self.longest + BESIDE {
                return Err(TooLong);
            }
            self.line.extend_from_slice(part);
            bytes = rest;
            if end.is_some() {
                self.returned = bytes[0] == b'\r';
                bytes = &bytes[1..];
                let line = std::mem::take(&mut self.line);
                whole.extend(self.end_of_line(&line));
            }
        }
        Ok(whole)
    }

    fn end_of_line(&mut self, line: &[u8]) -> Option<Event> {
        let line = match line.strip_prefix(b"\xef\xbb\xbf") {
            Some(rest) if !self.begun => rest,
            _ => line,
        };
        self.begun = true;
        if line.is_empty() {
            self.idle_bytes += 1;
            let kind = std::mem::take(&mut self.kind);
            let data = self.data.take().filter(|data| !data.is_empty())?;
            return Some(Event { kind: if kind.is_empty() { "message".to_owned() } else { kind }, data });
        }
        let (name, value) = match line.iter().position(|byte| *byte == b':') {
            Some(at) => (&line[..at], line[at + 1..].strip_prefix(b" ").unwrap_or(&line[at + 1..])),
            None => (line, &line[..0]),
        };
        if name == b"data" {
            match &mut self.data {
                Some(data) => {
                    data.push(b'\n');
                    data.extend_from_slice(value);
                }
                None => self.data = Some(value.to_vec()),
            }
            return None;
        }
        self.idle_bytes += line.len() + 1;
        let text = std::str::from_utf8(value).ok()?;
        match name {
            b"event" if text.len() <= LONGEST_KIND => self.kind = text.to_owned(),
            b"id" if text.len() <= LONGEST_ID && !text.contains('\0') => self.last_id = Some(text.to_owned()),
            b"retry" => self.retry = text.parse().ok().or(self.retry),
            _ => {}
        }
        None
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use proptest::prelude::*;

    fn all(stream: &[u8], step: usize) -> Vec<(String, String)> {
        let mut events = Events::new(1000);
        let taken = stream.chunks(step).flat_map(|part| events.push(part).unwrap()).collect::<Vec<_>>();
        taken.into_iter().map(|event| (event.kind, String::from_utf8(event.data).unwrap())).collect()
    }

    #[test]
    fn events_are_the_same_however_they_come() {
        let stream = b"\xef\xbb\xbf: hello\r\ndata: a\r\ndata:b\r\n\r\nevent: endpoint\rdata:  /x\r\rdata\n\nid: 7\nretry: 9\ndata: c\n\ndata: rest";
        let expected = [("message", "a\nb"), ("endpoint", " /x"), ("message", "c")];
        for step in 1..=stream.len() {
            let taken = all(stream, step);
            let taken: Vec<_> = taken.iter().map(|(kind, data)| (kind.as_str(), data.as_str())).collect();
            assert_eq!(taken, expected, "in steps of {step}");
        }
    }

    #[test]
    fn what_the_server_says_of_the_stream_is_kept() {
        let mut events = Events::new(100);
        events.push(b"id: 7\nretry: 250\nretry: soon\n\n: a comment\n").unwrap();
        assert_eq!((events.last_id.as_deref(), events.retry), (Some("7"), Some(250)));
        assert_eq!(events.held(), 0);
        assert!(events.idle_bytes > 20);
    }

    #[test]
    fn nothing_is_held_beyond_the_bound() {
        for piece in [&b"data: xxxxxxx\n"[..], b"xxxxxxx", b"data: ", b":"] {
            let mut events = Events::new(100);
            let refused = (0..10_000).find(|_| {
                assert!(events.held() <= 100 + BESIDE);
                events.push(piece).is_err()
            });
            assert!(refused.is_some());
        }
    }

    proptest! {
        #[test]
        fn whatever_comes_is_taken(bytes in proptest::collection::vec(prop_oneof![
            Just(b'\n'), Just(b'\r'), Just(b':'), Just(b'd'), any::<u8>()], 0..300), step in 1usize..40) {
            let (mut one, mut other) = (Events::new(64), Events::new(64));
            let whole: Result<Vec<_>, _> = one.push(&bytes);
            let parts: Result<Vec<_>, _> = bytes.chunks(step).map(|part| other.push(part)).collect();
            if let (Ok(whole), Ok(parts)) = (whole, parts) {
                prop_assert_eq!(whole, parts.into_iter().flatten().collect::<Vec<_>>());
            }
        }
    }
}
