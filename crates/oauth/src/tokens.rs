//! What is kept of a connection.

use crate::error::Error;
use crate::provider::Provider;
use secrecy::{ExposeSecret, SecretString};
use serde::{Deserialize, Serialize};
use zeroize::Zeroizing;

/// A token with less time left is renewed before it is used.
const RENEW_SECONDS: u64 = 60;

#[derive(Clone, Debug, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct Tokens {
    pub access: SecretString,
    pub refresh: Option<SecretString>,
    /// Without it, the token is good until the provider says otherwise.
    pub expires_at: Option<u64>,
    pub scope: Option<String>,
    pub received_at: u64,
    /// Which provider gave them: they are never sent to another one.
    pub(crate) provider: String,
}

impl Tokens {
    pub fn to_secret(&self) -> SecretString {
        #[derive(Serialize)]
        struct Written<'a> {
            access: &'a str,
            refresh: Option<&'a str>,
            expires_at: Option<u64>,
            scope: Option<&'a str>,
            received_at: u64,
            provider: &'a str,
        }
        to_secret(&Written {
            access: self.access.expose_secret(),
            refresh: self.refresh.as_ref().map(|refresh| refresh.expose_secret()),
            expires_at: self.expires_at,
            scope: self.scope.as_deref(),
            received_at: self.received_at,
            provider: &self.provider,
        })
    }

    pub fn from_secret(text: &SecretString) -> Result<Tokens, Error> {
        serde_json::from_str(text.expose_secret()).map_err(|_| Error::Kept)
    }

    pub(crate) fn is_of(&self, provider: &Provider) -> bool {
        self.provider == provider.fingerprint()
    }

    pub fn is_valid(&self, now: u64) -> bool {
        self.expires_at.is_none_or(|end| now < end)
    }

    /// Whether there is time enough left. Short lives are renewed in their last tenth.
    pub fn is_fresh(&self, now: u64) -> bool {
        self.expires_at.is_none_or(|end| {
            let life = end.saturating_sub(self.received_at);
            now.saturating_add((life / 10).clamp(1, RENEW_SECONDS)) < end
        })
    }
}

/// JSON, in a buffer that is wiped. It holds the longest that is ever kept, so it does not grow and leave copies behind.
pub(crate) fn to_secret(value: &impl Serialize) -> SecretString {
    let mut json = Zeroizing::new(Vec::with_capacity(128 << 10));
    // Texts and numbers always become JSON, and JSON is always text.
    let written = serde_json::to_writer(&mut *json, value);
    debug_assert!(written.is_ok());
    SecretString::from(std::str::from_utf8(&json).unwrap_or_default())
}

#[cfg(test)]
mod tests {
    use super::*;

    fn tokens(received_at: u64, expires_at: Option<u64>) -> Tokens {
        let (access, refresh) = ("the-access".into(), Some("the-refresh".into()));
        Tokens { access, refresh, expires_at, scope: Some("a b".into()), received_at, provider: "p".into() }
    }

    #[test]
    fn fresh_until_a_minute_or_a_tenth_of_the_life_is_left() {
        let long = tokens(1000, Some(4600));
        assert!(long.is_fresh(4539) && !long.is_fresh(4540) && long.is_valid(4599) && !long.is_valid(4600));
        let short = tokens(1000, Some(1100));
        assert!(short.is_fresh(1089) && !short.is_fresh(1090));
        let blink = tokens(1000, Some(1002));
        assert!(blink.is_fresh(1000) && !blink.is_fresh(1001));
        let ever = tokens(1000, None);
        assert!(ever.is_fresh(u64::MAX) && ever.is_valid(u64::MAX));
    }

    #[test]
    fn kept_and_read_again_and_never_printed() {
        let kept = tokens(1, Some(2)).to_secret();
        let read = Tokens::from_secret(&kept).unwrap();
        assert_eq!(read.to_secret().expose_secret(), kept.expose_secret());
        assert_eq!(read.refresh.as_ref().unwrap().expose_secret(), "the-refresh");
        let printed = format!("{read:?} {kept:?}");
        assert!(!printed.contains("the-access") && !printed.contains("the-refresh"), "{printed}");
        for broken in ["", "{}", "[]", "{\"access\":1}"] {
            assert_eq!(Tokens::from_secret(&broken.into()).unwrap_err(), Error::Kept);
        }
    }
}
