//! Servers that need no build, which most do not.

/// What the wall runs as it is.
pub(crate) fn is_javascript(entry: &str) -> bool {
    entry.ends_with(".js") || entry.ends_with(".mjs")
}

/// Whether none of the words occurs that every import needs. Where one does, esbuild decides.
pub(crate) fn imports_nothing(source: &str) -> bool {
    // With an escape a word can be written in other letters, as far as JavaScript allows that.
    !["import", "require", "from", "\\u"].iter().any(|word| source.contains(word))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn every_way_to_import_is_noticed() {
        for source in [
            "import x from './x.js'",
            "import'./x.js'",
            "await import(name)",
            "export * from './x.js'",
            "export{x}from'./x.js'",
            "const x = require('x')",
            "r\\u0065quire('x')",
        ] {
            assert!(!imports_nothing(source), "{source}");
        }
        assert!(imports_nothing("export default { tools: {} }"));
        assert!(imports_nothing("return input.a + 1"));
    }
}
