//! Secrets of keys.

use crate::{Role, TokenHash};
use base64::Engine;
use base64::engine::general_purpose::URL_SAFE_NO_PAD;
use sha2::{Digest, Sha256};
use std::fmt;

/// Characters of 32 bytes in base64 without padding.
const SECRET_CHARS: usize = 43;

/// The secret of a key: `bh_<role>_<43 characters>`. It exists in clear only until it was shown to whoever asked for it.
#[derive(Clone, PartialEq, Eq)]
pub struct Token(String);

impl Token {
    pub(crate) fn new(role: Role) -> Result<Token, getrandom::Error> {
        let mut secret = [0; 32];
        getrandom::fill(&mut secret)?;
        Ok(Token(format!("bh_{}_{}", role.as_str(), URL_SAFE_NO_PAD.encode(secret))))
    }

    /// A token somebody kept in a file. None if this is no token of that role.
    pub(crate) fn parse(role: Role, text: &str) -> Option<Token> {
        let secret = text.strip_prefix("bh_")?.strip_prefix(role.as_str())?.strip_prefix('_')?;
        let well_formed = secret.len() == SECRET_CHARS && URL_SAFE_NO_PAD.decode(secret).is_ok_and(|b| b.len() == 32);
        well_formed.then(|| Token(text.to_owned()))
    }

    /// The secret itself. Show it to its owner and to nobody else.
    pub fn expose(&self) -> &str {
        &self.0
    }
}

impl fmt::Debug for Token {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str("***")
    }
}

/// What is kept of a token, and what [`crate::Directory::keys`] is looked up by.
pub fn token_hash(token: &str) -> TokenHash {
    Sha256::digest(token.as_bytes()).into()
}

impl Role {
    pub const ALL: [Role; 4] = [Role::Operator, Role::Admin, Role::Deploy, Role::Call];

    pub fn as_str(self) -> &'static str {
        match self {
            Role::Operator => "operator",
            Role::Admin => "admin",
            Role::Deploy => "deploy",
            Role::Call => "call",
        }
    }
}

impl fmt::Display for Role {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(self.as_str())
    }
}

impl std::str::FromStr for Role {
    type Err = String;

    fn from_str(text: &str) -> Result<Role, String> {
        Role::ALL
            .into_iter()
            .find(|role| role.as_str() == text)
            .ok_or_else(|| format!("`{text}` is no role; there are operator, admin, deploy and call"))
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_token_has_its_form_and_is_never_printed() {
        for role in Role::ALL {
            let token = Token::new(role).unwrap();
            let secret = token.expose().strip_prefix(&format!("bh_{role}_")).unwrap();
            assert_eq!(secret.len(), SECRET_CHARS);
            assert_eq!(format!("{token:?}"), "***");
            assert_eq!(Token::parse(role, token.expose()), Some(token));
        }
    }

    #[test]
    fn tokens_differ() {
        assert_ne!(Token::new(Role::Call).unwrap(), Token::new(Role::Call).unwrap());
    }

    #[test]
    fn what_is_no_token_is_not_taken_for_one() {
        let token = Token::new(Role::Operator).unwrap();
        let short = &token.expose()[..token.expose().len() - 1];
        for text in
            ["", "bh_operator_", short, &format!("{}x", token.expose()), &token.expose().replace("operator", "call")]
        {
            assert_eq!(Token::parse(Role::Operator, text), None, "{text}");
        }
    }
}
