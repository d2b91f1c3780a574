//! Text from a specification, made fit to be shown or to be a name.

use serde_json::Value;
use std::collections::{BTreeMap, BTreeSet};
use std::io::Write;

/// Longest name of a tool, and of a property of its input, that all clients take.
const LONGEST_NAME: usize = 64;
const LONGEST_SECRET: usize = 64;
const LONGEST_SERVER: usize = 63;

/// To repeat in a message: nothing in it is invisible, and it is short.
pub(crate) fn quote(text: &str) -> String {
    format!("`{}`", visible(text, 80))
}

/// The same without quotes, for what is allowed to be longer.
pub(crate) fn visible(text: &str, most: usize) -> String {
    match text.char_indices().nth(most) {
        Some((end, _)) => format!("{}…", text[..end].escape_debug()),
        None => text.escape_debug().to_string(),
    }
}

/// At most this many characters, and whether that is less than there was.
pub(crate) fn cut(text: &str, most: usize) -> (String, bool) {
    let text = text.trim();
    match text.char_indices().nth(most) {
        Some((end, _)) => (format!("{}…", text[..end].trim_end()), true),
        None => (text.to_owned(), false),
    }
}

/// Whether a value has at most this many bytes as JSON. Looks at no more than these.
pub(crate) fn is_short(value: &Value, most: usize) -> bool {
    struct Left(usize);
    impl Write for Left {
        fn write(&mut self, bytes: &[u8]) -> std::io::Result<usize> {
            self.0 = self.0.checked_sub(bytes.len()).ok_or(std::io::ErrorKind::FileTooLarge)?;
            Ok(bytes.len())
        }

        fn flush(&mut self) -> std::io::Result<()> {
            Ok(())
        }
    }
    serde_json::to_writer(Left(most), value).is_ok()
}

/// A name of `A-Z a-z 0-9 _ . -`, as near to the text as can be; empty when nothing of it is left.
pub(crate) fn fit(text: &str) -> String {
    let mut name = String::new();
    for c in text.chars() {
        let c = if c.is_ascii_alphanumeric() || matches!(c, '_' | '.' | '-') { c } else { '_' };
        // One underscore stands for a run of what does not fit; those of the author stay.
        if c != '_' || text.contains("__") || !name.ends_with('_') {
            name.push(c);
        }
        if name.len() == LONGEST_NAME {
            break;
        }
    }
    if name.chars().any(|c| c.is_ascii_alphanumeric()) { name } else { String::new() }
}

/// Names that are taken.
#[derive(Default)]
pub(crate) struct Names {
    taken: BTreeSet<String>,
    /// The next number to try, so that a thousand equal names do not take a million tries.
    next: BTreeMap<String, usize>,
}

impl Names {
    /// Takes exactly this one, if it is free.
    pub fn exactly(&mut self, name: &str) -> bool {
        self.taken.insert(name.to_owned())
    }

    /// Takes the name, or the first of `name_2`, `name_3` … that is free, and is not too long.
    pub fn claim(&mut self, name: &str) -> String {
        self.numbered(name, LONGEST_NAME)
    }

    /// `^[A-Z][A-Z0-9_]*$`, taken like any other name.
    pub fn claim_secret(&mut self, text: &str) -> String {
        let mut name = String::new();
        let mut lower = false;
        for c in text.chars().take(LONGEST_SECRET / 2) {
            // petStore becomes PET_STORE.
            if c.is_ascii_uppercase() && lower {
                name.push('_');
            }
            lower = c.is_ascii_lowercase() || c.is_ascii_digit();
            let c = if c.is_ascii_alphanumeric() { c.to_ascii_uppercase() } else { '_' };
            if c != '_' || !name.ends_with('_') {
                name.push(c);
            }
        }
        let name = name.trim_matches('_');
        let name = match name.chars().next() {
            None => "API_KEY".to_owned(),
            Some(first) if first.is_ascii_digit() => format!("KEY_{name}"),
            Some(_) => name.to_owned(),
        };
        self.numbered(&name, LONGEST_SECRET)
    }

    fn numbered(&mut self, name: &str, longest: usize) -> String {
        let mut free: String = name.chars().take(longest).collect();
        let next = self.next.entry(free.clone()).or_insert(2);
        while self.taken.contains(&free) {
            let end = format!("_{next}");
            free = name.chars().take(longest - end.len()).chain(end.chars()).collect();
            *next += 1;
        }
        self.taken.insert(free.clone());
        free
    }
}

/// Name of a server: a-z, 0-9 and -, with no - at either end.
pub(crate) fn server_name(title: &str) -> String {
    let mut name = String::new();
    for c in title.chars() {
        let c = if c.is_ascii_alphanumeric() { c.to_ascii_lowercase() } else { '-' };
        if c != '-' || !(name.is_empty() || name.ends_with('-')) {
            name.push(c);
        }
        if name.len() == LONGEST_SERVER {
            break;
        }
    }
    match name.trim_matches('-') {
        "" => "api".to_owned(),
        name => name.to_owned(),
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use proptest::prelude::*;

    #[test]
    fn names_stay_near() {
        assert_eq!(fit("listPets"), "listPets");
        assert_eq!(fit("pets/list all"), "pets_list_all");
        assert_eq!(fit("filter[name]"), "filter_name_");
        assert_eq!(fit("__proto__"), "__proto__");
        assert_eq!(fit("日本"), "");
        assert_eq!(server_name(" Pet Store (v2) "), "pet-store-v2");
        assert_eq!(server_name("日本"), "api");
    }

    #[test]
    fn names_are_taken_once() {
        let mut names = Names::default();
        let long = "a".repeat(64);
        assert_eq!(names.claim(&long), long);
        assert_eq!(names.claim(&long), format!("{}_2", "a".repeat(62)));
        assert_eq!(names.claim_secret("petstore_auth"), "PETSTORE_AUTH");
        assert_eq!(names.claim_secret("petstore-auth"), "PETSTORE_AUTH_2");
        assert_eq!(names.claim_secret("ApiKeyAuth"), "API_KEY_AUTH");
        assert_eq!(names.claim_secret("2fa"), "KEY_2FA");
        assert_eq!(names.claim_secret("ключ"), "API_KEY");
    }

    proptest! {
        #[test]
        fn any_text_makes_names(text in any::<String>()) {
            let mut names = Names::default();
            for _ in 0..3 {
                let secret = names.claim_secret(&text);
                prop_assert!(secret.len() <= 64 && secret.starts_with(|c: char| c.is_ascii_uppercase()));
                prop_assert!(secret.bytes().all(|b| b.is_ascii_uppercase() || b.is_ascii_digit() || b == b'_'));
            }
            prop_assert!(fit(&text).len() <= 64);
            let name = server_name(&text);
            prop_assert!((1..=63).contains(&name.len()) && !name.starts_with('-') && !name.ends_with('-'));
        }
    }
}
