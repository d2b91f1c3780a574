//! From bytes to frames, bounded.

use crate::{Frame, Kind, OVERHEAD};

/// Why bytes are not a frame. The sender cannot be trusted any further.
#[derive(Clone, Copy, Debug, PartialEq, Eq, thiserror::Error)]
pub enum Malformed {
    #[error("a frame of {length} bytes is longer than the {cap} allowed")]
    TooLong { length: usize, cap: usize },
    #[error("a frame of {0} bytes is too short to be one")]
    TooShort(usize),
    #[error("`{0}` is no kind of frame")]
    UnknownKind(u8),
    #[error("the meta of {meta} bytes does not fit the frame")]
    MetaOverrun { meta: usize },
    #[error("the meta of a {0:?} frame is not what it must be")]
    Meta(Kind),
}

/// Collects bytes and gives out whole frames. Holds at most the cap, and only what was really received.
#[derive(Debug)]
pub struct Decoder {
    cap: usize,
    buffer: Vec<u8>,
    taken: usize,
}

impl Decoder {
    /// `cap` is the greatest length a frame may announce.
    pub fn new(cap: usize) -> Decoder {
        Decoder { cap, buffer: Vec::new(), taken: 0 }
    }

    /// Changes the cap for the frames to come.
    pub fn set_cap(&mut self, cap: usize) {
        self.cap = cap;
    }

    pub fn push(&mut self, bytes: &[u8]) {
        if self.taken > 0 {
            self.buffer.drain(..self.taken);
            self.taken = 0;
        }
        self.buffer.extend_from_slice(bytes);
    }

    /// Bytes received and not given out yet.
    pub fn pending(&self) -> usize {
        self.buffer.len() - self.taken
    }

    /// How many more bytes the frame under way needs; a reader that asks for no more never over-reads.
    pub fn missing(&self) -> Result<usize, Malformed> {
        let rest = &self.buffer[self.taken..];
        match announced(rest, self.cap)? {
            None => Ok(4 - rest.len()),
            Some(length) => Ok((4 + length).saturating_sub(rest.len())),
        }
    }

    /// The next whole frame, if there is one.
    pub fn next_frame(&mut self) -> Result<Option<Frame>, Malformed> {
        let rest = &self.buffer[self.taken..];
        let Some(length) = announced(rest, self.cap)? else { return Ok(None) };
        let Some(frame) = rest.get(4..4 + length) else { return Ok(None) };
        let frame = parse(frame)?;
        self.taken += 4 + length;
        if self.taken == self.buffer.len() {
            self.buffer.clear();
            self.taken = 0;
        }
        Ok(Some(frame))
    }
}

fn announced(bytes: &[u8], cap: usize) -> Result<Option<usize>, Malformed> {
    let Some(prefix) = bytes.first_chunk::<4>() else { return Ok(None) };
    let length = u32::from_le_bytes(*prefix) as usize;
    if length > cap {
        return Err(Malformed::TooLong { length, cap });
    }
    if length < OVERHEAD {
        return Err(Malformed::TooShort(length));
    }
    Ok(Some(length))
}

fn parse(frame: &[u8]) -> Result<Frame, Malformed> {
    let short = Malformed::TooShort(frame.len());
    let (kind, rest) = frame.split_first().ok_or(short)?;
    let kind = Kind::from_u8(*kind).ok_or(Malformed::UnknownKind(*kind))?;
    let (id, rest) = rest.split_first_chunk::<4>().ok_or(short)?;
    let (meta, rest) = rest.split_first_chunk::<4>().ok_or(short)?;
    let meta = u32::from_le_bytes(*meta) as usize;
    let (meta, body) = rest.split_at_checked(meta).ok_or(Malformed::MetaOverrun { meta })?;
    Ok(Frame { kind, id: u32::from_le_bytes(*id), meta: meta.to_vec(), body: body.to_vec() })
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::encode;
    use proptest::prelude::*;

    fn kinds() -> impl Strategy<Value = Kind> {
        (1u8..=76).prop_filter_map("gap in the numbering", Kind::from_u8)
    }

    proptest! {
        /// Whatever bytes come, in whatever pieces: frames or a refusal, never a panic, never more than was sent.
        #[test]
        fn any_bytes_are_frames_or_refused(chunks in prop::collection::vec(prop::collection::vec(any::<u8>(), 0..64), 0..32)) {
            let mut decoder = Decoder::new(256);
            let mut sent = 0;
            'feed: for chunk in chunks {
                sent += chunk.len();
                decoder.push(&chunk);
                loop {
                    match decoder.next_frame() {
                        Ok(Some(frame)) => prop_assert!(frame.meta.len() + frame.body.len() + OVERHEAD <= 256),
                        Ok(None) => break,
                        Err(_) => break 'feed,
                    }
                }
                prop_assert!(decoder.pending() <= 4 + 256);
            }
            prop_assert!(decoder.pending() <= sent);
        }

        #[test]
        fn what_is_encoded_comes_back(kind in kinds(), id: u32, meta in prop::collection::vec(any::<u8>(), 0..40),
                                      body in prop::collection::vec(any::<u8>(), 0..80), cut in 0usize..60) {
            let bytes = encode(kind, id, &meta, &body).unwrap();
            let mut decoder = Decoder::new(1024);
            let cut = cut.min(bytes.len());
            decoder.push(&bytes[..cut]);
            if cut < bytes.len() {
                prop_assert_eq!(decoder.next_frame(), Ok(None));
                prop_assert!(decoder.missing().unwrap() <= bytes.len() - cut);
            }
            decoder.push(&bytes[cut..]);
            prop_assert_eq!(decoder.next_frame(), Ok(Some(Frame { kind, id, meta, body })));
            prop_assert_eq!(decoder.pending(), 0);
        }
    }

    #[test]
    fn a_length_above_the_cap_is_refused_before_the_frame_arrives() {
        let mut decoder = Decoder::new(100);
        decoder.push(&u32::MAX.to_le_bytes());
        assert_eq!(decoder.next_frame(), Err(Malformed::TooLong { length: u32::MAX as usize, cap: 100 }));
        assert!(decoder.missing().is_err());
    }
}
