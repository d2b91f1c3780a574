//! `requestState`: what the gateway must remember between two rounds of one call, kept by the client and sealed against it.

use base64::Engine;
use base64::engine::general_purpose::URL_SAFE_NO_PAD;
use hmac::{Hmac, KeyInit, Mac};
use serde::{Deserialize, Serialize};
use serde_json::value::RawValue;
use sha2::Sha256;
use std::collections::BTreeMap;

/// Rounds of one call; a tool that asks more often is stopped.
pub const MOST_ROUNDS: u32 = 10;
const LIFETIME_S: u64 = 3600;
/// A client sends it back in every round, so it may not be large.
pub const MOST_BYTES: usize = 256 * 1024;

/// Answers of earlier rounds, and what they were given for.
#[derive(Serialize, Deserialize)]
pub struct State {
    pub round: u32,
    pub answers: BTreeMap<String, Box<RawValue>>,
    expires_at: u64,
    /// Digest of who asked what: a state is good for repeating that and nothing else.
    bound_to: String,
}

pub struct Sealer {
    keyed: Hmac<Sha256>,
}

impl Sealer {
    pub fn new(key: [u8; 32]) -> Sealer {
        // HMAC fills a short key with zeros up to its block.
        let mut block = [0; 64];
        block[..32].copy_from_slice(&key);
        Sealer { keyed: <Hmac<Sha256> as KeyInit>::new((&block).into()) }
    }

    pub fn seal(&self, round: u32, answers: BTreeMap<String, Box<RawValue>>, bound_to: &str) -> Option<String> {
        let state = State { round, answers, expires_at: now() + LIFETIME_S, bound_to: bound_to.to_owned() };
        let json = super::to_json(&state);
        if json.len() > MOST_BYTES {
            return None;
        }
        let tag = self.tag(&json);
        Some(format!("{}.{}", URL_SAFE_NO_PAD.encode(json), URL_SAFE_NO_PAD.encode(tag)))
    }

    /// The state, if it is ours, unchanged, fresh, and for this very call.
    pub fn open(&self, sealed: &str, bound_to: &str) -> Result<State, &'static str> {
        if sealed.len() > MOST_BYTES * 2 {
            return Err("`requestState` is too large");
        }
        let broken = "`requestState` is not one that this host made";
        let (json, tag) = sealed.split_once('.').ok_or(broken)?;
        let json = URL_SAFE_NO_PAD.decode(json).map_err(|_| broken)?;
        let tag = URL_SAFE_NO_PAD.decode(tag).map_err(|_| broken)?;
        self.mac(&json).verify_slice(&tag).map_err(|_| broken)?;
        let state: State = serde_json::from_slice(&json).map_err(|_| broken)?;
        if state.bound_to != bound_to {
            return Err("`requestState` belongs to another request");
        }
        if state.expires_at < now() {
            return Err("`requestState` has expired; make the call anew");
        }
        Ok(state)
    }

    fn tag(&self, json: &[u8]) -> Vec<u8> {
        self.mac(json).finalize().into_bytes().to_vec()
    }

    fn mac(&self, json: &[u8]) -> Hmac<Sha256> {
        let mut mac = self.keyed.clone();
        mac.update(json);
        mac
    }
}

fn now() -> u64 {
    std::time::SystemTime::now().duration_since(std::time::UNIX_EPOCH).map_or(0, |since| since.as_secs())
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_state_opens_only_unchanged_and_for_its_own_call() {
        let sealer = Sealer::new([7; 32]);
        let answers = BTreeMap::from([("a".to_owned(), RawValue::from_string("{\"x\":1}".to_owned()).unwrap())]);
        let sealed = sealer.seal(1, answers, "call").unwrap();
        assert_eq!(sealer.open(&sealed, "call").unwrap().answers["a"].get(), "{\"x\":1}");
        assert!(sealer.open(&sealed, "other").is_err());
        assert!(Sealer::new([8; 32]).open(&sealed, "call").is_err());
        for at in 0..sealed.len() {
            let mut bytes = sealed.clone().into_bytes();
            bytes[at] = if bytes[at] == b'A' { b'B' } else { b'A' };
            assert!(sealer.open(&String::from_utf8(bytes).unwrap(), "call").is_err(), "byte {at}");
        }
    }
}
