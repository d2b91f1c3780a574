//! The test files in a checkout, and what their heads say.

use std::path::{Path, PathBuf};

const WEB_IDL_PARSER: &str = "resources/webidl2/lib/webidl2.js";

/// One file with one of its variants.
pub struct Test {
    /// Path inside the checkout, with `/`.
    pub path: String,
    /// `?1-100` and the like, or empty.
    pub variant: String,
    /// Scripts to load first, as paths inside the checkout.
    pub scripts: Vec<String>,
    pub long: bool,
    /// Why the file makes no sense here, if so.
    pub skip: Option<&'static str>,
}

/// All tests under the paths, sorted; a path that does not exist is named in the error.
pub fn find(root: &Path, paths: &[String]) -> Result<Vec<Test>, String> {
    let mut files = Vec::new();
    for path in paths {
        let full = root.join(path);
        if !full.exists() {
            return Err(format!("`{}` does not exist", full.display()));
        }
        walk(&full, &mut files);
    }
    files.sort();
    files.dedup();
    let mut tests = Vec::new();
    for file in files {
        let source = std::fs::read(&file).map_err(|error| format!("`{}`: {error}", file.display()))?;
        let name = file.strip_prefix(root).unwrap_or(&file).to_string_lossy().replace('\\', "/");
        tests.extend(parse(&name, &String::from_utf8_lossy(&source)));
    }
    Ok(tests)
}

fn walk(path: &Path, files: &mut Vec<PathBuf>) {
    if path.is_file() {
        let name = path.to_string_lossy();
        if name.ends_with(".any.js") || name.ends_with(".window.js") {
            files.push(path.to_path_buf());
        }
        return;
    }
    let Ok(entries) = std::fs::read_dir(path) else { return };
    for entry in entries.flatten() {
        walk(&entry.path(), files);
    }
}

fn parse(name: &str, source: &str) -> Vec<Test> {
    let directory = name.rsplit_once('/').map_or("", |(directory, _)| directory);
    let mut variants = Vec::new();
    let mut scripts = Vec::new();
    let mut long = false;
    let mut globals = None;
    for line in source.lines() {
        let Some(meta) = line.strip_prefix("// META:") else {
            if line.starts_with("//") || line.trim().is_empty() {
                continue;
            }
            break;
        };
        match meta.trim().split_once('=') {
            Some(("variant", variant)) => variants.push(variant.to_owned()),
            Some(("script", script)) => scripts.push(resolve(directory, script)),
            Some(("timeout", "long")) => long = true,
            Some(("global", list)) => globals = Some(list.to_owned()),
            _ => {}
        }
    }
    if variants.is_empty() {
        variants.push(String::new());
    }
    let skip = reason_to_skip(name, source, globals.as_deref(), &scripts);
    variants
        .into_iter()
        .map(|variant| Test { path: name.to_owned(), variant, scripts: scripts.clone(), long, skip })
        .collect()
}

/// Joins a script's path, which may be absolute in the checkout, to the directory of the test.
pub fn resolve(directory: &str, script: &str) -> String {
    if let Some(absolute) = script.strip_prefix('/') {
        // The tests' web server has this one file under another name.
        return if absolute == "resources/WebIDLParser.js" { WEB_IDL_PARSER.into() } else { absolute.to_owned() };
    }
    let mut parts: Vec<&str> = directory.split('/').filter(|part| !part.is_empty()).collect();
    for part in script.split('/') {
        match part {
            "." | "" => {}
            ".." => {
                parts.pop();
            }
            part => parts.push(part),
        }
    }
    parts.join("/")
}

fn reason_to_skip(name: &str, source: &str, globals: Option<&str>, scripts: &[String]) -> Option<&'static str> {
    const DOCUMENT: &[&str] = &[
        "document.",
        "createElement",
        "iframe",
        "window.open",
        "ShadowRealm",
        "XMLHttpRequest",
        "getElementById",
        "new Worker(",
        "navigator.serviceWorker",
        "MessageChannel",
        "ImageBitmap",
        "FileReader",
        "window.event",
        "MouseEvent",
        "(window)",
    ];
    const SERVER: &[&str] = &[".py", "get-host-info", "HTTP_REMOTE_ORIGIN"];
    if globals.is_some_and(|list| !list.contains("worker") && !list.contains("window")) {
        return Some("for another kind of global object");
    }
    let by_request = scripts.iter().any(|script| script.ends_with("decoding-helpers.js"));
    if by_request
        || source.contains("iframe")
        || name.ends_with(".window.js") && DOCUMENT.iter().any(|word| source.contains(word))
    {
        return Some("needs a document, a worker or their events");
    }
    let by_script = scripts.iter().any(|script| script.contains(".sub.js") || script.contains("request-cache"));
    (by_script || SERVER.iter().any(|word| source.contains(word))).then_some("needs the tests' web server")
}
