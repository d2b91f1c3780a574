//! Where a page of the audit log ends, in a form that tells nothing.
//!
//! Lines are numbered over all tenants, so that the plain number would tell each how busy the others are.

use base64::Engine;
use base64::engine::general_purpose::URL_SAFE_NO_PAD;
use hmac::{Hmac, KeyInit, Mac};
use sha2::Sha256;

const HALF: usize = 8;

/// Seals cursors with a key of the host's.
pub struct Cursors([u8; 32]);

impl Cursors {
    pub fn new(key: [u8; 32]) -> Cursors {
        Cursors(key)
    }

    /// The number, masked, and a tag that binds it to the tenant and is the mask's seed.
    pub fn seal(&self, tenant: &str, seq: u64) -> String {
        let tag = self.tag(tenant, seq);
        let masked = seq ^ self.mask(&tag);
        URL_SAFE_NO_PAD.encode([masked.to_be_bytes(), tag].concat())
    }

    /// None if it was not sealed here for this tenant.
    pub fn open(&self, tenant: &str, cursor: &str) -> Option<u64> {
        let bytes: [u8; 2 * HALF] = URL_SAFE_NO_PAD.decode(cursor).ok()?.try_into().ok()?;
        let (masked, tag) = bytes.split_at(HALF);
        let (masked, tag) = (u64::from_be_bytes(masked.try_into().ok()?), tag.try_into().ok()?);
        let seq = masked ^ self.mask(&tag);
        (self.tag(tenant, seq) == tag).then_some(seq)
    }

    fn tag(&self, tenant: &str, seq: u64) -> [u8; HALF] {
        self.digest(&[b"tag", &seq.to_be_bytes(), tenant.as_bytes()])
    }

    fn mask(&self, tag: &[u8; HALF]) -> u64 {
        u64::from_be_bytes(self.digest(&[b"mask", tag]))
    }

    fn digest(&self, parts: &[&[u8]]) -> [u8; HALF] {
        let mut mac = Hmac::<Sha256>::new(&block(&self.0).into());
        parts.iter().for_each(|part| mac.update(part));
        let digest: [u8; 32] = mac.finalize().into_bytes().into();
        std::array::from_fn(|i| digest[i])
    }
}

/// A key as long as a block of the hash, which is what HMAC itself makes of a shorter one.
fn block(key: &[u8; 32]) -> [u8; 64] {
    std::array::from_fn(|i| key.get(i).copied().unwrap_or_default())
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_cursor_comes_back_as_it_went() {
        let cursors = Cursors::new([7; 32]);
        for seq in [0, 1, 2, 1 << 40, u64::MAX] {
            assert_eq!(cursors.open("acme", &cursors.seal("acme", seq)), Some(seq));
        }
    }

    #[test]
    fn one_that_was_not_made_here_is_not_taken() {
        let cursors = Cursors::new([7; 32]);
        let cursor = cursors.seal("acme", 5);
        assert_eq!(cursors.open("globex", &cursor), None);
        assert_eq!(Cursors::new([8; 32]).open("acme", &cursor), None);
        for bad in ["", "5", "AAAAAAAAAAAAAAAAAAAAAA", &cursor[1..], &format!("{cursor}A")] {
            assert_eq!(cursors.open("acme", bad), None, "{bad}");
        }
    }

    #[test]
    fn neighbours_do_not_look_like_it() {
        let cursors = Cursors::new([7; 32]);
        let (one, two) = (cursors.seal("acme", 1), cursors.seal("acme", 2));
        assert_ne!(one[..8], two[..8]);
    }
}
