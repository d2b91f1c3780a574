//! Names of tenants and servers. They stand in URLs and in paths of files.

use crate::RegistryError;

const LONGEST: usize = 63;

/// The first segments of the host's own URLs.
const RESERVED: &[&str] = &["admin", "connect", "healthz", "readyz", "metrics", "mcp", "well-known"];

/// Whether something may be the name of a tenant or a server: `^[a-z0-9]([a-z0-9-]{0,61}[a-z0-9])?$`, and not reserved.
pub fn is_name(name: &str) -> bool {
    let edge = |byte: Option<&u8>| byte.is_some_and(|b| b.is_ascii_lowercase() || b.is_ascii_digit());
    let bytes = name.as_bytes();
    bytes.len() <= LONGEST
        && edge(bytes.first())
        && edge(bytes.last())
        && bytes.iter().all(|b| edge(Some(b)) || *b == b'-')
        && !RESERVED.contains(&name)
}

pub(crate) fn check(kind: &'static str, name: &str) -> Result<(), RegistryError> {
    if is_name(name) {
        return Ok(());
    }
    // What is shown again is bounded: it comes from outside and may be anything.
    Err(RegistryError::BadName { kind, name: name.chars().take(LONGEST + 1).collect() })
}

pub(crate) fn explain(name: &str) -> String {
    if RESERVED.contains(&name) {
        return "the host needs this name for itself".to_owned();
    }
    format!("use 1 to {LONGEST} of a-z, 0-9 and -, with no - at either end")
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn names() {
        let longest = "a".repeat(63);
        for good in ["a", "0", "acme", "a-b", "a--b", "9-lives", &longest] {
            assert!(is_name(good), "{good}");
        }
        let too_long = "a".repeat(64);
        for bad in ["", "-", "-a", "a-", "A", "a_b", "a.b", "..", "a/b", "ä", "a b", "a\n", "admin", "mcp", &too_long]
        {
            assert!(!is_name(bad), "{bad}");
        }
    }

    #[test]
    fn a_refused_name_is_not_repeated_at_length() {
        let error = check("tenant", &"x".repeat(1_000_000)).unwrap_err();
        assert!(error.to_string().len() < 200);
        assert_eq!(error.code(), "bad_name");
    }
}
