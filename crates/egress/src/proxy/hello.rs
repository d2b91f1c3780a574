//! Which name a TLS client asks for. Its first message is read, and handed on as it came.

use bytes::BytesMut;
use tokio::io::{AsyncRead, AsyncReadExt};

/// What a client may send until its first message is whole.
const MOST: usize = 16 << 10;
const HANDSHAKE: u8 = 22;
const CLIENT_HELLO: u8 = 1;
const SERVER_NAME: u16 = 0;
const HOST_NAME: u8 = 0;

/// Why it is no good.
pub(super) type Wrong = &'static str;

enum Read {
    /// This many bytes at least are needed.
    More(usize),
    Whole(Option<String>),
}

/// Everything that was read, and the name in it.
pub(super) async fn read<S: AsyncRead + Unpin>(stream: &mut S) -> Result<(BytesMut, Option<String>), Wrong> {
    let mut raw = BytesMut::with_capacity(1024);
    loop {
        match parse(&raw)? {
            Read::Whole(name) => return Ok((raw, name)),
            Read::More(needed) if needed > MOST => return Err("sends a first message of TLS that is too long"),
            Read::More(needed) => {
                while raw.len() < needed {
                    // What has come already must not wait for the rest to be told from TLS.
                    if raw.first().is_some_and(|first| *first != HANDSHAKE) {
                        return Err("speaks no TLS");
                    }
                    match stream.read_buf(&mut raw).await {
                        Ok(0) | Err(_) => return Err("ends before its first message of TLS does"),
                        Ok(_) => {}
                    }
                }
            }
        }
    }
}

/// Takes bytes from the front.
struct Cursor<'a>(&'a [u8]);

impl<'a> Cursor<'a> {
    fn take(&mut self, count: usize) -> Result<&'a [u8], Wrong> {
        let (taken, rest) = self.0.split_at_checked(count).ok_or("sends a first message of TLS that is broken")?;
        self.0 = rest;
        Ok(taken)
    }

    fn number(&mut self, bytes: usize) -> Result<usize, Wrong> {
        Ok(self.take(bytes)?.iter().fold(0, |sum, byte| sum << 8 | usize::from(*byte)))
    }

    /// What a length of this many bytes tells of.
    fn part(&mut self, bytes: usize) -> Result<Cursor<'a>, Wrong> {
        let length = self.number(bytes)?;
        self.take(length).map(Cursor)
    }
}

/// The name in a message, or nothing if more bytes are needed.
pub(crate) fn whole(raw: &[u8]) -> Result<Option<Option<String>>, Wrong> {
    Ok(match parse(raw)? {
        Read::Whole(name) => Some(name),
        Read::More(_) => None,
    })
}

/// A message may come in several records.
fn parse(raw: &[u8]) -> Result<Read, Wrong> {
    let mut message = Vec::new();
    let mut at = 0;
    loop {
        let Some(header) = raw.get(at..at + 5) else { return Ok(Read::More(at + 5)) };
        let length = usize::from(u16::from_be_bytes([header[3], header[4]]));
        if header[0] != HANDSHAKE || header[1] != 3 || length == 0 || length > MOST {
            return Err("speaks no TLS");
        }
        let end = at + 5 + length;
        let Some(part) = raw.get(at + 5..end) else { return Ok(Read::More(end)) };
        message.extend_from_slice(part);
        at = end;
        if let [kind, a, b, c, rest @ ..] = &message[..] {
            let length = usize::from(*a) << 16 | usize::from(*b) << 8 | usize::from(*c);
            if *kind != CLIENT_HELLO || length > MOST {
                return Err("begins TLS with something else than a hello");
            }
            if let Some(hello) = rest.get(..length) {
                return name(Cursor(hello)).map(Read::Whole);
            }
        }
    }
}

fn name(mut hello: Cursor) -> Result<Option<String>, Wrong> {
    // Version and random; then session, ciphers and compression.
    hello.take(2 + 32)?;
    hello.part(1)?;
    hello.part(2)?;
    hello.part(1)?;
    if hello.0.is_empty() {
        return Ok(None);
    }
    let mut extensions = hello.part(2)?;
    let mut found = None;
    while !extensions.0.is_empty() {
        let kind = extensions.number(2)?;
        let mut extension = extensions.part(2)?;
        if kind != usize::from(SERVER_NAME) {
            continue;
        }
        let mut names = extension.part(2)?;
        let kind = names.number(1)?;
        let name = names.part(2)?.0;
        if kind != usize::from(HOST_NAME) || !names.0.is_empty() || !extension.0.is_empty() || found.is_some() {
            return Err("asks for several names");
        }
        let text = std::str::from_utf8(name).ok().filter(|text| text.is_ascii());
        found = Some(text.ok_or("asks for a name that is none")?.to_ascii_lowercase());
    }
    Ok(found)
}

#[cfg(test)]
mod tests {
    use super::*;
    use proptest::prelude::*;
    use std::sync::Arc;

    /// What rustls says first.
    fn real(name: &str) -> Vec<u8> {
        let provider = Arc::new(rustls::crypto::ring::default_provider());
        let config =
            rustls::ClientConfig::builder_with_provider(provider).with_safe_default_protocol_versions().unwrap();
        let config = config.with_root_certificates(rustls::RootCertStore::empty()).with_no_client_auth();
        let name = name.to_owned().try_into().unwrap();
        let mut client = rustls::ClientConnection::new(Arc::new(config), name).unwrap();
        let mut out = Vec::new();
        client.write_tls(&mut out).unwrap();
        out
    }

    #[test]
    fn the_name_of_a_real_client() {
        let raw = real("a.example");
        assert_eq!(whole(&raw), Ok(Some(Some("a.example".to_owned()))));
        assert_eq!(whole(&real("10.0.0.1")), Ok(Some(None)), "addresses have none");
        for end in 0..raw.len() {
            assert_eq!(whole(&raw[..end]), Ok(None), "{end}");
        }
        // In records of seven bytes.
        let split: Vec<u8> =
            raw[5..].chunks(7).flat_map(|part| [&[22, 3, 1, 0, part.len() as u8], part].concat()).collect();
        assert_eq!(whole(&split), Ok(Some(Some("a.example".to_owned()))));
    }

    #[tokio::test]
    async fn what_is_no_hello() {
        let long = [&[22, 3, 1, 0x40, 0, 1, 0, 0x40, 1][..], &[0; 1 << 15]].concat();
        for bytes in [
            &b"GET / HTTP/1.1\r\n\r\n"[..],
            b"SSH-2.0-x\r\n",
            b"\x16",
            b"",
            b"\x16\x03\x01\x00\x00",
            b"\x15\x03\x01\x00\x02\x01\x00",
            &long,
        ] {
            assert!(read(&mut &bytes[..]).await.is_err(), "{bytes:?}");
        }
        // Told at the first byte, though more could come.
        let (mut ours, theirs) = tokio::io::duplex(64);
        tokio::io::AsyncWriteExt::write_all(&mut ours, b"G").await.unwrap();
        let mut theirs = theirs;
        assert_eq!(read(&mut theirs).await.unwrap_err(), "speaks no TLS");
        let (raw, name) = read(&mut &[&real("b.example")[..], b"more"].concat()[..]).await.unwrap();
        assert!(raw.ends_with(b"more") && name.as_deref() == Some("b.example"));
    }

    #[test]
    fn two_names() {
        let raw = real("a.example");
        let at = raw.windows(9).position(|part| part == b"a.example").unwrap();
        let mut twice = raw.clone();
        // The list says that it is longer than its one name.
        twice[at - 4] -= 1;
        assert!(whole(&twice).is_err());
        let mut odd = raw.clone();
        odd[at - 3] = 7;
        assert!(whole(&odd).is_err());
        let mut odd = raw;
        odd[at] = 0xff;
        assert!(whole(&odd).is_err());
    }

    proptest! {
        #![proptest_config(ProptestConfig { failure_persistence: None, ..ProptestConfig::default() })]

        #[test]
        fn nothing_panics(mut bytes in proptest::collection::vec(any::<u8>(), 0..600), at in 0_usize..300, byte: u8) {
            if let Ok(Read::More(needed)) = parse(&bytes) {
                prop_assert!(needed > bytes.len());
            }
            bytes.splice(0..0, [22, 3, 1, 1, 0, 1, 0, 0, 200]);
            let _ = whole(&bytes);
            let mut raw = real("a.example");
            let at = at % raw.len();
            raw[at] = byte;
            let _ = whole(&raw);
        }
    }
}
