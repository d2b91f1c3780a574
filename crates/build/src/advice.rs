//! Esbuild's messages, in words that say what to do here.

use crate::builtins::instead;
use crate::error::{Place, Problem};
use crate::files::{Project, folder_of, join, normal};
use crate::graph::lies_outside;
use crate::packet::Value;
use crate::text::name;

/// One message as esbuild sends it.
#[derive(Clone, Debug)]
pub(crate) struct Message {
    text: String,
    notes: Vec<String>,
    pub(crate) file: Option<String>,
    line: usize,
    /// In bytes of the line.
    column: usize,
    source: String,
}

impl Message {
    pub(crate) fn read(value: &Value) -> Option<Message> {
        let location = value.get("location").filter(|location| **location != Value::Null);
        let text = |field| location.and_then(|location| location.get(field)).and_then(Value::text);
        let number = |field| location.and_then(|location| location.get(field)).and_then(Value::number).unwrap_or(0);
        let notes = value.get("notes").map(Value::items).unwrap_or_default();
        Some(Message {
            text: value.get("text")?.text()?.to_owned(),
            notes: notes.iter().filter_map(|note| note.get("text")?.text().map(str::to_owned)).collect(),
            file: text("file").map(str::to_owned),
            line: number("line") as usize,
            column: number("column") as usize,
            source: text("lineText").unwrap_or_default().to_owned(),
        })
    }

    fn place(&self) -> Option<Place> {
        let before = self.source.get(..self.column).unwrap_or_default();
        Some(Place::new(self.file.as_deref()?, self.line, before, &self.source))
    }

    /// What was imported and not found.
    pub(crate) fn unresolved(&self) -> Option<&str> {
        self.text.strip_prefix("Could not resolve \"")?.strip_suffix('"')
    }

    /// A configuration that another one is made of and that was not found: a build without it would be another build.
    pub(crate) fn lost_configuration(&self) -> Option<&str> {
        self.text.strip_prefix("Cannot find base config file \"")?.strip_suffix('"')
    }

    pub(crate) fn problem(&self, project: &Project) -> Problem {
        if let Some(file) = self.file.as_deref().filter(|file| normal("", file).is_none()) {
            // Nothing of what is in it is the author's to read.
            return lies_outside(None, file);
        }
        let place = self.place();
        let folder = folder_of(self.file.as_deref().unwrap_or_default());
        if let Some(path) = self.unresolved().or_else(|| self.lost_configuration()) {
            return unresolved(project, folder, path, place.clone()).unwrap_or_else(|| {
                self.notes.iter().fold(Problem::new(place, &self.text), |problem, note| problem.note(note.clone()))
            });
        }
        let hint = if self.text.starts_with("Top-level return") {
            Some("a script without `export default` cannot import anything; make it a module")
        } else if self.text.contains("permission denied") {
            Some(
                "started by root, a build reads as the owner of the project's folder: everything in it must be theirs to read",
            )
        } else if self.text.starts_with("No loader is configured") {
            Some("code, JSON and text can be imported (.txt, .md, .html, .css, .svg, .sql)")
        } else {
            None
        };
        Problem::new(place, &self.text).note(hint.map(str::to_owned))
    }

    pub(crate) fn warning(&self) -> String {
        Problem::new(self.place(), &self.text).to_string()
    }
}

/// Why this import of a file in `folder` leads nowhere, where that is clear.
fn unresolved(project: &Project, folder: &str, path: &str, place: Option<Place>) -> Option<Problem> {
    if path.starts_with('/') || path.starts_with("file:") {
        return Some(lies_outside(place, path));
    }
    if path == "." || path == ".." || path.starts_with("./") || path.starts_with("../") {
        return match normal(folder, path) {
            None => Some(lies_outside(place, path)),
            Some(inside) if project.leads_out(&inside) => {
                Some(lies_outside(place, path).note("a symbolic link leads there".to_owned()))
            }
            Some(_) => None,
        };
    }
    let package = package(path);
    if let Some(found) = package.as_deref().and_then(|package| installed(project, folder, package)) {
        return project.leads_out(&found).then(|| {
            let link =
                format!("`{}` is a link to there; install the project's packages as copies of its own", name(&found));
            lies_outside(place, path).note(link)
        });
    }
    let text = match (instead(path), package) {
        (Some(instead), _) => format!("`{}` is a module of Node, which is not here: {instead}", name(path)),
        (None, Some(package)) => format!("`{}` is not installed: `npm install {}`", name(path), name(&package)),
        (None, None) => return None,
    };
    Some(Problem::new(place, &text))
}

/// The package's part of an import, where it can be one.
fn package(path: &str) -> Option<String> {
    let mut parts = path.split('/');
    let first = parts.next()?;
    let package = match first.strip_prefix('@') {
        Some("") => return None,
        Some(_) => format!("{first}/{}", parts.next().filter(|part| !part.is_empty())?),
        None => first.to_owned(),
    };
    let usual = |c: char| c.is_ascii_alphanumeric() || "-._~@/".contains(c);
    (package.starts_with(|c: char| c.is_ascii_alphanumeric() || c == '@') && package.chars().all(usual))
        .then_some(package)
}

/// The place of a package that a file in `folder` would find, were it only a link.
fn installed(project: &Project, folder: &str, package: &str) -> Option<String> {
    let mut folder = folder;
    loop {
        // A link in place of the whole folder counts, too.
        let modules = join(folder, "node_modules");
        if project.has(&modules) && (project.has(&join(&modules, package)) || project.leads_out(&modules)) {
            return Some(join(&modules, package));
        }
        if folder.is_empty() {
            return None;
        }
        folder = folder_of(folder);
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn packages_are_told_from_other_words() {
        assert_eq!(package("zod").as_deref(), Some("zod"));
        assert_eq!(package("zod/v4/core").as_deref(), Some("zod"));
        assert_eq!(package("@scope/name/sub").as_deref(), Some("@scope/name"));
        for word in ["@/alias", "@scope", "#internal", "~/alias", "", "$lib", "a b", "x;rm -rf", "-g"] {
            assert_eq!(package(word), None, "{word}");
        }
    }
}
