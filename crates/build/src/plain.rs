//! Servers that need no build, which most do not.

/// What the wall runs as it is.
pub(crate) fn is_javascript(entry: &str) -> bool {
    entry.ends_with(".js") || entry.ends_with(".mjs")
}

/// Whether nothing in it looks like an import. What looks like one, esbuild decides; one that does not look like it is
/// refused by the wall, which has nothing to import.
pub fn imports_nothing(source: &str) -> bool {
    let follows = |word: &str, next: &[char]| {
        source.match_indices(word).any(|(at, _)| source[at + word.len()..].trim_start().starts_with(next))
    };
    !(follows("import", &['"', '\'', '{', '*', '(', '/', '.'])
        || source.contains("import ")
        || follows("from", &['"', '\'', '/'])
        || follows("require", &['(', '/']))
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
            "import.meta.url",
        ] {
            assert!(!imports_nothing(source), "{source}");
        }
        assert!(imports_nothing("export default { tools: {} }"));
        assert!(imports_nothing("return input.a + 1"));
        assert!(imports_nothing("description: 'Takes it from somewhere; important, required.'"));
    }
}
