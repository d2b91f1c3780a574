//! Sealing: values that only their key opens, and only in their place.

use crate::RegistryError;
use chacha20poly1305::aead::inout::InOutBuf;
use chacha20poly1305::{AeadInOut, KeyInit, Tag, XChaCha20Poly1305, XNonce};
use secrecy::zeroize::{Zeroize, Zeroizing};
use secrecy::{ExposeSecret, SecretBox, SecretString};

const KEY_BYTES: usize = 32;
const NONCE_BYTES: usize = 24;
const TAG_BYTES: usize = 16;
/// So that nothing that was sealed for something else, or in another way, ever opens.
const DOMAIN: &[u8] = b"bulkhead sealed value 1";

/// A key that seals. Zeroed when it is dropped, and never printed.
pub(crate) struct SealingKey(SecretBox<[u8; KEY_BYTES]>);

/// Where a sealed value belongs. It opens nowhere else.
#[derive(Clone, Copy)]
pub(crate) struct Place<'a> {
    pub kind: &'static str,
    pub tenant: &'a str,
    /// The tenant's, which nobody else of that name ever has.
    pub uid: &'a [u8; 16],
    pub key_version: u64,
    pub version: u64,
    /// Names and whatever else must not change.
    pub words: &'a [&'a str],
}

impl Place<'_> {
    /// Every part has its length before it, so no two places read the same.
    fn bytes(&self) -> Vec<u8> {
        let (key_version, version) = (self.key_version.to_le_bytes(), self.version.to_le_bytes());
        let fixed = [DOMAIN, self.kind.as_bytes(), self.tenant.as_bytes(), self.uid, &key_version, &version];
        let mut bytes = Vec::new();
        for part in fixed.into_iter().chain(self.words.iter().map(|word| word.as_bytes())) {
            bytes.extend((part.len() as u64).to_le_bytes());
            bytes.extend(part);
        }
        bytes
    }
}

/// Bytes that were sealed, in clear until they are dropped.
pub(crate) type Opened = Zeroizing<Box<[u8]>>;

impl SealingKey {
    pub(crate) fn random() -> Result<SealingKey, getrandom::Error> {
        let mut bytes = Box::new([0; KEY_BYTES]);
        getrandom::fill(&mut *bytes)?;
        Ok(SealingKey(SecretBox::new(bytes)))
    }

    /// None if that is not the length of a key.
    pub(crate) fn from_bytes(bytes: &[u8]) -> Option<SealingKey> {
        let mut key = Box::new([0; KEY_BYTES]);
        if bytes.len() != key.len() {
            return None;
        }
        key.copy_from_slice(bytes);
        Some(SealingKey(SecretBox::new(key)))
    }

    pub(crate) fn bytes(&self) -> &[u8; KEY_BYTES] {
        self.0.expose_secret()
    }

    /// Nonce, ciphertext and tag. The value is encrypted where it was copied to, so no second copy of it remains.
    pub(crate) fn seal(&self, place: &Place<'_>, value: &[u8]) -> Result<Box<[u8]>, RegistryError> {
        let mut nonce = XNonce::default();
        getrandom::fill(&mut nonce)?;
        let mut sealed = Vec::with_capacity(NONCE_BYTES + value.len() + TAG_BYTES);
        sealed.extend_from_slice(&nonce);
        sealed.extend_from_slice(value);
        let tag = self
            .cipher()
            .encrypt_inout_detached(&nonce, &place.bytes(), InOutBuf::from(&mut sealed[NONCE_BYTES..]))
            .map_err(|_| {
                sealed.zeroize();
                RegistryError::Internal { what: "a value could not be sealed".to_owned(), cause: None }
            })?;
        sealed.extend_from_slice(&tag);
        Ok(sealed.into_boxed_slice())
    }

    /// None if it was sealed with another key or for another place, or was changed since.
    pub(crate) fn open(&self, place: &Place<'_>, sealed: &[u8]) -> Option<Opened> {
        let (nonce, rest) = sealed.split_first_chunk::<NONCE_BYTES>()?;
        let (value, tag) = rest.split_last_chunk::<TAG_BYTES>()?;
        let mut value: Opened = Zeroizing::new(value.into());
        let (nonce, tag) = (XNonce::from(*nonce), Tag::from(*tag));
        self.cipher()
            .decrypt_inout_detached(&nonce, &place.bytes(), InOutBuf::from(&mut value[..]), &tag)
            .ok()
            .map(|()| value)
    }

    fn cipher(&self) -> XChaCha20Poly1305 {
        XChaCha20Poly1305::new(self.bytes().into())
    }
}

/// As text, in the memory where it was opened. None if it is no text.
pub(crate) fn text(mut opened: Opened) -> Option<SecretString> {
    let bytes = Vec::from(std::mem::take(&mut *opened));
    match String::from_utf8(bytes) {
        Ok(text) => Some(SecretString::from(text)),
        Err(error) => {
            error.into_bytes().zeroize();
            None
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    const UID: [u8; 16] = [7; 16];
    const PLACE: Place<'static> =
        Place { kind: "secret", tenant: "acme", uid: &UID, key_version: 1, version: 2, words: &["API_TOKEN", "x"] };

    #[test]
    fn what_was_sealed_opens_and_nothing_else_does() {
        let key = SealingKey::random().unwrap();
        let sealed = key.seal(&PLACE, b"a value").unwrap();
        assert_eq!(&**key.open(&PLACE, &sealed).unwrap(), b"a value");
        assert_ne!(key.seal(&PLACE, b"a value").unwrap(), sealed, "no nonce comes twice");
        for bit in 0..sealed.len() * 8 {
            let mut changed = sealed.clone();
            changed[bit / 8] ^= 1 << (bit % 8);
            assert!(key.open(&PLACE, &changed).is_none(), "bit {bit}");
        }
        for length in 0..sealed.len() {
            assert!(key.open(&PLACE, &sealed[..length]).is_none(), "the first {length} bytes");
        }
        assert!(SealingKey::random().unwrap().open(&PLACE, &sealed).is_none());
    }

    #[test]
    fn it_opens_in_its_place_alone() {
        let key = SealingKey::random().unwrap();
        let sealed = key.seal(&PLACE, b"a value").unwrap();
        let other = [8; 16];
        for place in [
            Place { kind: "connection", ..PLACE },
            Place { tenant: "other", ..PLACE },
            Place { uid: &other, ..PLACE },
            Place { key_version: 2, version: 1, ..PLACE },
            Place { version: 3, ..PLACE },
            Place { words: &["API_TOKENx", ""], ..PLACE },
            Place { words: &["API_TOKENx"], ..PLACE },
            Place { words: &["x", "API_TOKEN"], ..PLACE },
            Place { words: &["API_TOKEN", "x", ""], ..PLACE },
        ] {
            assert!(key.open(&place, &sealed).is_none());
        }
    }

    #[test]
    fn an_empty_value_is_a_value() {
        let key = SealingKey::random().unwrap();
        let sealed = key.seal(&PLACE, b"").unwrap();
        assert_eq!(key.open(&PLACE, &sealed).unwrap().len(), 0);
        assert!(key.open(&PLACE, &[]).is_none());
    }
}
