//! Who vouches for a lock: the tenant with the key that deploys it, and publishers with signatures.

use crate::canonical::{Excess, canonical, difference, measure};
use crate::text::message;
use crate::{Digest, Hex, KeyId, Lock, PublicKey, Signature};
use ed25519_dalek::{Signer, SigningKey, VerifyingKey};
use hmac::{Hmac, KeyInit, Mac};
use serde::{Deserialize, Serialize};
use serde_json::{Value, json};
use sha2::{Digest as _, Sha256};
use std::collections::BTreeMap;
use std::fmt;

const LARGEST: usize = 16 << 10;
const DEEPEST: u64 = 4;
const MOST_PUBLISHERS: usize = 16;
/// What keys are used for here, so that nothing made with them elsewhere counts.
const PURPOSE: &[u8] = b"bulkhead lock v1";

/// What a tenant's lock is authenticated with. It comes from the deploy key, by way of the hash that the host keeps.
#[derive(Clone)]
pub struct MacKey([u8; 32]);

impl MacKey {
    pub fn from_token_hash(hash: &[u8; 32]) -> MacKey {
        MacKey(mac(hash, PURPOSE).finalize().into_bytes().into())
    }

    pub fn from_token(token: &str) -> MacKey {
        MacKey::from_token_hash(&Sha256::digest(token.as_bytes()).into())
    }
}

impl fmt::Debug for MacKey {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str("***")
    }
}

fn mac(key: &[u8; 32], message: &[u8]) -> Hmac<Sha256> {
    // A key as long as the hash fits into a block; it is padded with zeroes, as HMAC says.
    let mut block = [0; 64];
    block[..32].copy_from_slice(key);
    let mut mac = <Hmac<Sha256> as KeyInit>::new(&block.into());
    mac.update(message);
    mac
}

/// A publisher's secret key.
pub struct PublisherKey(SigningKey);

impl PublisherKey {
    pub fn from_seed(seed: &[u8; 32]) -> PublisherKey {
        PublisherKey(SigningKey::from_bytes(seed))
    }

    pub fn public(&self) -> PublicKey {
        Hex::new(self.0.verifying_key().to_bytes())
    }
}

impl fmt::Debug for PublisherKey {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str("***")
    }
}

fn signed(lock: &Digest) -> Vec<u8> {
    [PURPOSE, b"\0", lock.bytes()].concat()
}

/// Who vouches for one lock.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Seal {
    lock: Digest,
    hmac: Option<Stamp>,
    publishers: BTreeMap<PublicKey, Signature>,
}

#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
struct Stamp {
    key: KeyId,
    mac: Hex<32>,
}

#[derive(Clone, Copy, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
struct Publisher {
    key: PublicKey,
    signature: Signature,
}

#[derive(Deserialize)]
#[serde(deny_unknown_fields)]
struct Wire {
    lock: Digest,
    hmac: Option<Stamp>,
    publishers: Vec<Publisher>,
}

/// Why a seal is not accepted.
#[derive(Clone, Debug, PartialEq, Eq, thiserror::Error)]
pub enum SealError {
    #[error("the seal is too large: it has {bytes} bytes, {most} are allowed")]
    TooLarge { bytes: usize, most: usize },
    #[error("the seal is nested deeper than {most} levels")]
    TooDeep { most: u64 },
    #[error("the seal cannot be read: {0}")]
    Unreadable(String),
    #[error("the seal is not in its canonical form, from byte {at} on")]
    NotCanonical { at: usize },
    #[error("the seal has more than {MOST_PUBLISHERS} publishers")]
    TooManyPublishers,
    #[error("the seal is for the lock {sealed}, this is {lock}")]
    OtherLock { sealed: Digest, lock: Digest },
    #[error("the lock is not authenticated with a deploy key")]
    NoMac,
    #[error("the lock is authenticated with the key `{found}`, not with `{expected}`")]
    OtherKey { found: KeyId, expected: String },
    #[error("the lock's authentication does not fit: it was made with another key or for another lock")]
    WrongMac,
    #[error("the signature of the publisher {0} does not fit")]
    WrongSignature(PublicKey),
}

impl Seal {
    /// A seal that nobody has put anything on yet.
    pub fn new(lock: &Lock) -> Seal {
        Seal { lock: lock.digest(), hmac: None, publishers: BTreeMap::new() }
    }

    /// Authenticates the lock with a deploy key. The id is what the host calls that key.
    pub fn authenticate(&mut self, id: KeyId, key: &MacKey) {
        let mac = mac(&key.0, self.lock.bytes()).finalize().into_bytes();
        self.hmac = Some(Stamp { key: id, mac: Hex::new(mac.into()) });
    }

    /// Signs the lock as a publisher.
    pub fn sign(&mut self, key: &PublisherKey) -> Result<(), SealError> {
        let public = key.public();
        if self.publishers.len() >= MOST_PUBLISHERS && !self.publishers.contains_key(&public) {
            return Err(SealError::TooManyPublishers);
        }
        self.publishers.insert(public, Hex::new(key.0.sign(&signed(&self.lock)).to_bytes()));
        Ok(())
    }

    /// Reads a seal. Anything but its one canonical form is refused, to the byte. Nothing in it is verified yet.
    pub fn parse(bytes: &[u8]) -> Result<Seal, SealError> {
        measure(bytes, LARGEST, DEEPEST).map_err(|excess| match excess {
            Excess::Large { bytes, most } => SealError::TooLarge { bytes, most },
            Excess::Deep(most) => SealError::TooDeep { most },
        })?;
        let wire = serde_json::from_slice::<Wire>(bytes);
        let wire = wire.map_err(|error| SealError::Unreadable(message(&error.to_string())))?;
        if wire.publishers.len() > MOST_PUBLISHERS {
            return Err(SealError::TooManyPublishers);
        }
        let publishers = wire.publishers.into_iter().map(|publisher| (publisher.key, publisher.signature)).collect();
        let seal = Seal { lock: wire.lock, hmac: wire.hmac, publishers };
        match difference(&seal.bytes(), bytes) {
            Some(at) => Err(SealError::NotCanonical { at }),
            None => Ok(seal),
        }
    }

    /// The canonical form.
    pub fn bytes(&self) -> Vec<u8> {
        canonical(&self.value())
    }

    /// The lock that it is for, as the seal says.
    pub fn lock(&self) -> Digest {
        self.lock
    }

    /// The key that the lock is authenticated with, as the seal says.
    pub fn key(&self) -> Option<&KeyId> {
        self.hmac.as_ref().map(|stamp| &stamp.key)
    }

    /// Whose signatures are on it, as the seal says.
    pub fn publishers(&self) -> Vec<PublicKey> {
        self.publishers.keys().copied().collect()
    }

    /// Accepts the seal for this lock and this deploy key, and gives the publishers who signed. Whatever is on the seal
    /// must fit: one wrong signature is a wrong seal. Whether a publisher is to be trusted is not asked here.
    pub fn verify(&self, lock: &Lock, id: &str, key: &MacKey) -> Result<Vec<PublicKey>, SealError> {
        self.belongs(lock)?;
        let stamp = self.hmac.as_ref().ok_or(SealError::NoMac)?;
        if stamp.key.as_str() != id {
            let expected = crate::visible(&id.chars().take(80).collect::<String>());
            return Err(SealError::OtherKey { found: stamp.key.clone(), expected });
        }
        // Takes as long for every wrong value.
        mac(&key.0, self.lock.bytes()).verify_slice(stamp.mac.bytes()).map_err(|_| SealError::WrongMac)?;
        // Signatures take longer to look at, so only somebody with a deploy key gets as far.
        self.verify_publishers(lock)
    }

    /// Accepts the signatures alone, without the deploy key.
    pub fn verify_publishers(&self, lock: &Lock) -> Result<Vec<PublicKey>, SealError> {
        self.belongs(lock)?;
        let message = signed(&self.lock);
        for (public, signature) in &self.publishers {
            let signature = ed25519_dalek::Signature::from_bytes(signature.bytes());
            VerifyingKey::from_bytes(public.bytes())
                .and_then(|key| key.verify_strict(&message, &signature))
                .map_err(|_| SealError::WrongSignature(*public))?;
        }
        Ok(self.publishers())
    }

    pub(crate) fn belongs(&self, lock: &Lock) -> Result<(), SealError> {
        let lock = lock.digest();
        if self.lock == lock { Ok(()) } else { Err(SealError::OtherLock { sealed: self.lock, lock }) }
    }

    /// As it is uploaded and shown.
    pub fn value(&self) -> Value {
        let publishers = self.publishers.iter().map(|(key, signature)| Publisher { key: *key, signature: *signature });
        json!({ "lock": self.lock, "hmac": self.hmac, "publishers": publishers.collect::<Vec<_>>() })
    }
}
