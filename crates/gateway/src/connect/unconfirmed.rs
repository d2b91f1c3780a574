//! Tokens that a browser has brought, and that wait for the code which shows that the browser was the caller's.
//!
//! The caller who asked for a link may have sent it to somebody else. So the code is shown in the browser that agreed, and
//! the tokens become a connection only when that code comes back over the caller's own authenticated channel.

use super::Known;
use super::tickets::{LIFE, Want, random, same};
use oauth::Tokens;
use std::collections::HashMap;
use std::sync::{Mutex, MutexGuard, PoisonError};
use tokio::time::Instant;

/// Wrong codes until the tokens are given back.
const MOST_WRONG: u32 = 5;
/// Of one tenant at once, and of all. Each caller has one for each provider.
const MOST_OF_A_TENANT: usize = 1000;
const MOST: usize = 10_000;
/// Letters that are not mistaken for each other and make no words (RFC 8628, section 6.1).
const LETTERS: &[u8; 20] = b"BCDFGHJKLMNPQRSTVWXZ";
/// 20^8 codes, of which five may be tried.
const LENGTH: usize = 8;

/// Tokens without an owner yet.
pub struct Unconfirmed {
    pub want: Want,
    pub tokens: Tokens,
    /// The provider as it was when it gave them: where they go back to.
    pub known: Known,
    /// Whoever shows this cookie may cancel.
    pub cookie: String,
}

struct Waiting {
    unconfirmed: Unconfirmed,
    code: String,
    /// Tells this one from the caller's next, in the names of questions.
    id: String,
    wrong: u32,
    since: Instant,
}

/// Why a code confirms nothing.
pub enum NotConfirmed {
    /// None waits for this caller.
    Nothing,
    /// So many more may be tried.
    Wrong { left: u32 },
    /// That was the last: these are to be given back.
    Exhausted(Box<Unconfirmed>),
}

/// Tenant, provider, caller.
type Whose = (String, String, String);

#[derive(Default)]
pub struct Confirmations(Mutex<HashMap<Whose, Waiting>>);

fn key(tenant: &str, provider: &str, asker: &str) -> Whose {
    (tenant.to_owned(), provider.to_owned(), asker.to_owned())
}

impl Confirmations {
    fn lock(&self) -> MutexGuard<'_, HashMap<Whose, Waiting>> {
        self.0.lock().unwrap_or_else(PoisonError::into_inner)
    }

    /// Gives the code for the browser, and what the caller had waiting before. There is no room for it on an error.
    pub fn put(&self, unconfirmed: Unconfirmed) -> Result<(String, Option<Unconfirmed>), Box<Unconfirmed>> {
        let (Some(code), Some(id)) = (new_code(), random()) else { return Err(Box::new(unconfirmed)) };
        let Want { tenant, provider, asker, .. } = &unconfirmed.want;
        let whose = key(tenant, provider, asker);
        let mut all = self.lock();
        let full = all.len() >= MOST || all.keys().filter(|key| key.0 == *tenant).count() >= MOST_OF_A_TENANT;
        if full && !all.contains_key(&whose) {
            return Err(Box::new(unconfirmed));
        }
        let waiting =
            Waiting { unconfirmed, code: code.clone(), id: id[..8].to_owned(), wrong: 0, since: Instant::now() };
        let before = all.insert(whose, waiting).map(|waiting| waiting.unconfirmed);
        Ok((format!("{}-{}", &code[..LENGTH / 2], &code[LENGTH / 2..]), before))
    }

    /// A name for the next question about the code, if one is waited for.
    pub fn question(&self, tenant: &str, provider: &str, asker: &str) -> Option<String> {
        let all = self.lock();
        let waiting = all.get(&key(tenant, provider, asker)).filter(|waiting| waiting.since.elapsed() < LIFE)?;
        Some(format!("{}-{}", waiting.id, waiting.wrong))
    }

    /// Takes the tokens out, if this caller shows the code that the browser was shown.
    pub fn confirm(&self, tenant: &str, provider: &str, asker: &str, code: &str) -> Result<Unconfirmed, NotConfirmed> {
        let whose = key(tenant, provider, asker);
        let mut all = self.lock();
        let waiting = all.get_mut(&whose).filter(|waiting| waiting.since.elapsed() < LIFE);
        let waiting = waiting.ok_or(NotConfirmed::Nothing)?;
        let right = same(&read_code(code), &waiting.code);
        waiting.wrong += u32::from(!right);
        let left = MOST_WRONG.saturating_sub(waiting.wrong);
        if !right && left > 0 {
            return Err(NotConfirmed::Wrong { left });
        }
        let taken = all.remove(&whose).ok_or(NotConfirmed::Nothing)?.unconfirmed;
        if right { Ok(taken) } else { Err(NotConfirmed::Exhausted(Box::new(taken))) }
    }

    /// Takes out what the browser with this cookie has brought.
    pub fn cancel(&self, cookie: &str) -> Vec<Unconfirmed> {
        self.take(|_, waiting| same(&waiting.unconfirmed.cookie, cookie))
    }

    /// Takes out what nobody has confirmed in time.
    pub fn expired(&self) -> Vec<Unconfirmed> {
        self.take(|_, waiting| waiting.since.elapsed() >= LIFE)
    }

    /// Takes out all that wait for a provider of a tenant's, or for any.
    pub fn of(&self, tenant: &str, provider: Option<&str>) -> Vec<Unconfirmed> {
        self.take(|whose, _| whose.0 == tenant && provider.is_none_or(|provider| whose.1 == provider))
    }

    /// Takes out all that wait for a caller.
    pub fn of_asker(&self, asker: &str) -> Vec<Unconfirmed> {
        self.take(|whose, _| whose.2 == asker)
    }

    /// Takes out all there are.
    pub fn all(&self) -> Vec<Unconfirmed> {
        self.take(|_, _| true)
    }

    fn take(&self, is_meant: impl Fn(&Whose, &Waiting) -> bool) -> Vec<Unconfirmed> {
        let taken = self.lock().extract_if(|whose, waiting| is_meant(whose, waiting)).collect::<Vec<_>>();
        taken.into_iter().map(|(_, waiting)| waiting.unconfirmed).collect()
    }
}

/// As somebody typed it: with or without the dash, in small letters or capital ones.
fn read_code(text: &str) -> String {
    let letters = text.chars().filter(|c| !matches!(c, '-' | ' ')).take(LENGTH + 1);
    letters.map(|c| c.to_ascii_uppercase()).collect()
}

fn new_code() -> Option<String> {
    let mut code = String::with_capacity(LENGTH);
    while code.len() < LENGTH {
        let mut bytes = [0; 2 * LENGTH];
        getrandom::fill(&mut bytes).ok()?;
        // Each letter is as likely as any other: 240 is twelve times twenty.
        let fair = bytes.iter().filter(|byte| **byte < 240).map(|byte| char::from(LETTERS[usize::from(byte % 20)]));
        code.extend(fair.take(LENGTH - code.len()));
    }
    Some(code)
}

#[cfg(test)]
mod tests {
    use super::*;
    use secrecy::SecretString;
    use std::time::Duration;

    fn brought(asker: &str) -> Unconfirmed {
        let settings = serde_json::json!({ "token_url": "https://p.example/token", "client_id": "c" });
        let kept = r#"{"access":"t","refresh":null,"expires_at":null,"scope":null,"received_at":0,"provider":"p"}"#;
        let want = Want {
            tenant: "acme".into(),
            provider: "hub".into(),
            subject: asker.into(),
            asker: asker.into(),
            who: asker.into(),
            server: None,
        };
        Unconfirmed {
            want,
            tokens: Tokens::from_secret(&SecretString::from(kept)).unwrap(),
            known: Known { provider: serde_json::from_value(settings).unwrap(), secret: None },
            cookie: format!("{asker}'s cookie"),
        }
    }

    fn code_of(confirmations: &Confirmations, asker: &str) -> String {
        confirmations.put(brought(asker)).ok().unwrap().0
    }

    #[tokio::test(start_paused = true)]
    async fn a_code_is_good_once_for_its_caller_and_for_ten_minutes() {
        let waiting = Confirmations::default();
        let code = code_of(&waiting, "ann");
        assert!(matches!(waiting.confirm("acme", "hub", "bob", &code), Err(NotConfirmed::Nothing)));
        assert!(matches!(waiting.confirm("evil", "hub", "ann", &code), Err(NotConfirmed::Nothing)));
        assert!(matches!(waiting.confirm("acme", "other", "ann", &code), Err(NotConfirmed::Nothing)));
        assert!(waiting.confirm("acme", "hub", "ann", &code.to_lowercase().replace('-', " ")).is_ok());
        assert!(matches!(waiting.confirm("acme", "hub", "ann", &code), Err(NotConfirmed::Nothing)));

        let code = code_of(&waiting, "ann");
        tokio::time::advance(LIFE - Duration::from_secs(1)).await;
        assert!(waiting.expired().is_empty() && waiting.question("acme", "hub", "ann").is_some());
        tokio::time::advance(Duration::from_secs(1)).await;
        assert!(waiting.question("acme", "hub", "ann").is_none());
        assert!(matches!(waiting.confirm("acme", "hub", "ann", &code), Err(NotConfirmed::Nothing)));
        assert_eq!(waiting.expired().len(), 1);
    }

    #[tokio::test]
    async fn few_codes_may_be_tried_and_a_new_consent_has_a_new_code() {
        let waiting = Confirmations::default();
        let code = code_of(&waiting, "ann");
        for left in (1..MOST_WRONG).rev() {
            let tried = waiting.confirm("acme", "hub", "ann", "BBBB-BBBB");
            assert!(matches!(tried, Err(NotConfirmed::Wrong { left: said }) if said == left));
        }
        assert!(matches!(waiting.confirm("acme", "hub", "ann", ""), Err(NotConfirmed::Exhausted(_))));
        assert!(matches!(waiting.confirm("acme", "hub", "ann", &code), Err(NotConfirmed::Nothing)));

        let first = code_of(&waiting, "ann");
        let (second, before) = waiting.put(brought("ann")).ok().unwrap();
        assert!(before.is_some() && first != second);
        assert!(matches!(waiting.confirm("acme", "hub", "ann", &first), Err(NotConfirmed::Wrong { .. })));
        assert_eq!((waiting.cancel("bob's cookie").len(), waiting.cancel("ann's cookie").len()), (0, 1));
        assert!(matches!(waiting.confirm("acme", "hub", "ann", &second), Err(NotConfirmed::Nothing)));
    }

    #[test]
    fn codes_have_eight_letters_of_twenty() {
        for _ in 0..100 {
            let code = new_code().unwrap();
            assert!(code.len() == LENGTH && code.bytes().all(|c| LETTERS.contains(&c)), "{code}");
        }
        assert_ne!(new_code(), new_code());
        assert!(read_code(&"b".repeat(1 << 20)).len() <= LENGTH + 1);
    }
}
