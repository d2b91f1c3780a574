//! What the last words of a program that did not start tell about what it was not given.

/// Variables that are named, at most.
const MOST: usize = 4;
/// How names of variables end that programs want to be set.
const ENDS: [&str; 28] = [
    "ACCOUNT",
    "CONFIG",
    "CREDENTIALS",
    "DIR",
    "DOMAIN",
    "DSN",
    "EMAIL",
    "ENDPOINT",
    "FILE",
    "HOST",
    "ID",
    "KEY",
    "NAME",
    "ORG",
    "PASS",
    "PASSWORD",
    "PAT",
    "PATH",
    "PORT",
    "PROJECT",
    "REGION",
    "SECRET",
    "STRING",
    "TOKEN",
    "URI",
    "URL",
    "USER",
    "USERNAME",
];

/// The variables that it speaks of; `known` says of which others it may do so. Those come first that it speaks of first.
pub fn variables(words: &str, known: impl Fn(&str) -> bool) -> Vec<&str> {
    let mut names: Vec<&str> = Vec::new();
    for name in words.split(|c: char| !(c.is_ascii_alphanumeric() || c == '_')) {
        let capital = name.bytes().all(|b| b.is_ascii_uppercase() || b.is_ascii_digit() || b == b'_');
        let own = name.starts_with("ERR_") || !name.starts_with(|c: char| c.is_ascii_uppercase());
        let ends = name.rsplit('_').next().unwrap_or_default();
        let wanted = ENDS.contains(&ends) || known(name);
        if capital && !own && wanted && name.contains('_') && !names.contains(&name) {
            names.push(name);
        }
    }
    names.truncate(MOST);
    names
}

/// Whether a part of it is missing that only an install script makes.
pub fn wants_scripts(words: &str) -> bool {
    let missing = ["Could not locate the bindings file", "Cannot find module", "No native build was found"];
    let native = words.contains(".node'") || words.contains(".node\"") || words.contains("bindings file");
    // Some list all the places where they looked, and say why long before.
    let looked = words.matches(".node'").count() > 2;
    looked || (native && missing.iter().any(|text| words.contains(text))) || words.contains(missing[2])
}

/// Whether it wanted a Unix socket with a path, in the words of Node or Python.
pub fn wants_unix_sockets(words: &str) -> bool {
    ["listen ENOSYS", "connect ENOSYS", "[Errno 38] Function not implemented"].iter().any(|text| words.contains(text))
}

/// Whether it found no room for what it writes at its start.
pub fn wants_room(words: &str) -> bool {
    ["ENOSPC", "No space left on device", "File too large", "I/O failure when writing extracted files"]
        .iter()
        .any(|text| words.contains(text))
}

/// Whether it is written for an older `mcp` of Python than the one that it was installed with: many name no version.
pub fn wants_older_sdk(words: &str) -> bool {
    words.contains("'mcp<2'") || words.contains("AttributeError: 'Server' object has no attribute '")
}

/// Whether it wanted to write where all is read-only.
pub fn wants_to_write(words: &str) -> bool {
    ["ead-only file system", "EROFS", "unable to open database file"].iter().any(|text| words.contains(text))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn variables_are_told_from_other_words() {
        let none = |_: &str| false;
        assert_eq!(
            variables("Error: ACME_API_KEY is required, or ACME_URL; ACME_API_KEY!", none),
            ["ACME_API_KEY", "ACME_URL"]
        );
        assert!(variables("ERR_INVALID_URL MODULE_NOT_FOUND KEY _KEY Some_KEY ODD_THING", none).is_empty());
        assert_eq!(variables("set ODD_THING", |name| name == "ODD_THING"), ["ODD_THING"]);
        assert_eq!(variables("A_KEY B_KEY C_KEY D_KEY E_KEY", none).len(), MOST);
    }

    #[test]
    fn other_reasons_are_known() {
        assert!(wants_older_sdk(
            "ModuleNotFoundError: No module named 'mcp.server.fastmcp'. … or pin 'mcp<2' to keep …"
        ));
        assert!(wants_older_sdk("AttributeError: 'Server' object has no attribute 'list_tools'"));
        assert!(!wants_older_sdk("ModuleNotFoundError: No module named 'numpy'"));
        assert!(wants_to_write("OSError: [Errno 30] Read-only file system: 'server.log'"));
        assert!(wants_to_write("Error: EROFS: read-only file system, mkdir 'data'"));
        assert!(!wants_to_write("FileNotFoundError: 'data'"));
    }

    #[test]
    fn native_parts_that_are_missing_are_known() {
        assert!(wants_scripts("Error: Could not locate the bindings file. Tried:\n → /app/x/build/x.node"));
        assert!(wants_scripts("Error: Cannot find module '../build/Release/x.node'"));
        assert!(wants_scripts("Error: No native build was found for platform=linux"));
        assert!(wants_scripts("tries: [ '/a/x.node',\n '/b/x.node',\n '/c/x.node' ]"));
        assert!(!wants_scripts("Error: Cannot find module 'left-pad'"));
        assert!(wants_room("write: No space left on device") && !wants_room("all is well"));
    }
}
