//! Finders that are ready: the next request has the same secrets, and a finder of long ones is large.

use crate::credentials::Value;
use crate::denied::Denied;
use crate::finder::Finder;
use hmac::{Hmac, KeyInit, Mac};
use sha2::Sha256;
use std::collections::HashMap;
use std::sync::{Mutex, MutexGuard, PoisonError};
use std::time::{Duration, Instant};
use zeroize::Zeroizing;

/// Kept at most, and their bytes.
const MOST: usize = 256;
const MOST_BYTES: usize = 64 << 20;
/// What nobody has used for this long is not kept: the secret may have been changed.
const IDLE: Duration = Duration::from_secs(300);

/// What a set of secrets is known by. It tells nothing of them to who has no key.
type Name = [u8; 32];

struct Kept {
    tenant: String,
    deployment: String,
    finder: Finder,
    used: Instant,
}

/// Finders by whom they are for and what they find. No two deployments share one, so that none learns by the time that a request
/// takes whether another has the same secret.
pub(crate) struct Finders {
    key: Zeroizing<[u8; 32]>,
    kept: Mutex<HashMap<Name, Kept>>,
}

impl Finders {
    pub(crate) fn new() -> Result<Finders, Denied> {
        let mut key = Zeroizing::new([0; 32]);
        getrandom::fill(key.as_mut_slice()).map_err(|_| Denied::network("the system has no randomness"))?;
        Ok(Finders { key, kept: Mutex::default() })
    }

    pub(crate) fn get(&self, tenant: &str, deployment: &str, values: &[Value]) -> Result<Finder, Denied> {
        if values.is_empty() {
            return Finder::new(values);
        }
        let now = Instant::now();
        let name = self.name(tenant, deployment, values)?;
        if let Some(kept) = self.lock().get_mut(&name) {
            kept.used = now;
            return Ok(kept.finder.clone());
        }
        let finder = Finder::new(values)?;
        let (tenant, deployment) = (tenant.to_owned(), deployment.to_owned());
        self.keep(name, Kept { tenant, deployment, finder: finder.clone(), used: now }, now);
        Ok(finder)
    }

    pub(crate) fn forget(&self, tenant: &str, deployment: &str) {
        self.lock().retain(|_, kept| kept.tenant != tenant || kept.deployment != deployment);
    }

    fn keep(&self, name: Name, new: Kept, now: Instant) {
        let mut all = self.lock();
        all.retain(|_, kept| now.saturating_duration_since(kept.used) < IDLE);
        all.insert(name, new);
        let mut bytes: usize = all.values().map(|kept| kept.finder.size()).sum();
        while all.len() > MOST || bytes > MOST_BYTES {
            let Some(oldest) = all.iter().min_by_key(|(_, kept)| kept.used).map(|(name, _)| *name) else { return };
            bytes -= all.remove(&oldest).map_or(0, |kept| kept.finder.size());
        }
    }

    fn name(&self, tenant: &str, deployment: &str, values: &[Value]) -> Result<Name, Denied> {
        let wrong = |_| Denied::refuse("the secrets of this request cannot be masked");
        let mut mac = Hmac::<Sha256>::new_from_slice(self.key.as_slice()).map_err(wrong)?;
        let whose = [tenant.as_bytes(), deployment.as_bytes()];
        for part in whose.into_iter().chain(values.iter().map(|value| value.as_slice())) {
            mac.update(&part.len().to_le_bytes());
            mac.update(part);
        }
        Ok(mac.finalize().into_bytes().into())
    }

    fn lock(&self) -> MutexGuard<'_, HashMap<Name, Kept>> {
        self.kept.lock().unwrap_or_else(PoisonError::into_inner)
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::credentials::MOST_SEARCHED;

    fn values(texts: &[&str]) -> Vec<Value> {
        texts.iter().map(|text| Zeroizing::new(text.as_bytes().to_vec())).collect()
    }

    #[test]
    fn the_same_secrets_of_the_same_deployment_have_one_finder() {
        let finders = Finders::new().unwrap();
        let get =
            |tenant: &str, deployment: &str, texts: &[&str]| finders.get(tenant, deployment, &values(texts)).unwrap();
        let first = get("acme", "d1", &["secret-one", "secret-two"]);
        assert!(first.is(&get("acme", "d1", &["secret-one", "secret-two"])));
        for (tenant, deployment, texts) in [
            ("acme", "d1", &["secret-one", "secret-2"][..]),
            ("acme", "d1", &["secret-one"]),
            // Where one ends and the next begins counts.
            ("acme", "d1", &["secret-ones", "ecret-two"]),
            ("acme", "d2", &["secret-one", "secret-two"]),
            ("acmed", "1", &["secret-one", "secret-two"]),
        ] {
            let other = get(tenant, deployment, texts);
            assert!(!first.is(&other), "{tenant} {deployment} {texts:?}");
            assert!(texts.iter().all(|text| other.found_in(text.as_bytes())));
        }
        assert!(!get("acme", "d1", &["secret-two"]).found_in(b"secret-one"));
        finders.forget("acme", "d1");
        assert_eq!(finders.lock().len(), 2);
        assert!(!first.is(&get("acme", "d1", &["secret-one", "secret-two"])));
    }

    #[test]
    fn few_are_kept_and_those_in_use_longest() {
        let finders = Finders::new().unwrap();
        let often = finders.get("acme", "d", &values(&["used-often"])).unwrap();
        for number in 0..MOST * 2 {
            finders.get("acme", "d", &values(&[&format!("secret-{number}")])).unwrap();
            assert!(often.is(&finders.get("acme", "d", &values(&["used-often"])).unwrap()), "{number}");
        }
        assert_eq!(finders.lock().len(), MOST);
        for letter in 'a'..='z' {
            let long = letter.to_string().repeat(MOST_SEARCHED);
            let first = finders.get("acme", "d", &values(&[&long])).unwrap();
            assert!(first.is(&finders.get("acme", "d", &values(&[&long])).unwrap()), "the longest one is kept too");
        }
        let size: usize = finders.lock().values().map(|kept| kept.finder.size()).sum();
        assert!(size <= MOST_BYTES, "{size}");
    }

    #[test]
    fn what_nobody_uses_goes() {
        let finders = Finders::new().unwrap();
        let now = Instant::now();
        let first = finders.get("acme", "d", &values(&["secret-one"])).unwrap();
        let kept = Kept { tenant: "acme".into(), deployment: "d".into(), finder: first.clone(), used: now + IDLE * 2 };
        finders.keep([0; 32], kept, now + IDLE * 2);
        assert_eq!(finders.lock().len(), 1);
    }
}
