//! Bytes that are written as hexadecimal digits, small letters only, so that there is one way to write them.

use serde::{Deserialize, Serialize};
use std::fmt;

/// So many bytes.
#[derive(Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Hash, Serialize, Deserialize)]
#[serde(try_from = "String", into = "String")]
pub struct Hex<const N: usize>([u8; N]);

/// SHA-256 of something.
pub type Digest = Hex<32>;
/// A publisher's public key, ed25519.
pub type PublicKey = Hex<32>;
/// A signature, ed25519.
pub type Signature = Hex<64>;

impl<const N: usize> Hex<N> {
    pub fn new(bytes: [u8; N]) -> Hex<N> {
        Hex(bytes)
    }

    pub fn bytes(&self) -> &[u8; N] {
        &self.0
    }
}

impl<const N: usize> std::str::FromStr for Hex<N> {
    type Err = String;

    fn from_str(text: &str) -> Result<Hex<N>, String> {
        let mut bytes = [0; N];
        if text.bytes().any(|b| b.is_ascii_uppercase()) || ::hex::decode_to_slice(text, &mut bytes).is_err() {
            return Err(format!("{} hexadecimal digits are needed, letters small", 2 * N));
        }
        Ok(Hex(bytes))
    }
}

impl<const N: usize> TryFrom<String> for Hex<N> {
    type Error = String;

    fn try_from(text: String) -> Result<Hex<N>, String> {
        text.parse()
    }
}

impl<const N: usize> From<Hex<N>> for String {
    fn from(hex: Hex<N>) -> String {
        hex.to_string()
    }
}

impl<const N: usize> fmt::Display for Hex<N> {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(&::hex::encode(self.0))
    }
}

impl<const N: usize> fmt::Debug for Hex<N> {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        fmt::Display::fmt(self, f)
    }
}
