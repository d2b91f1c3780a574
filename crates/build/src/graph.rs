//! What esbuild says that it read, and who imported what.

use crate::error::{Place, Problem};
use crate::files::Project;
use crate::text::name;
use serde::Deserialize;
use std::collections::{BTreeMap, HashMap, VecDeque};

/// The largest file in which an import is looked for, to name its line.
const LARGEST: usize = 4 << 20;
/// Steps that are shown of a way from the entry to a file.
const MOST_STEPS: usize = 8;

#[derive(Deserialize)]
pub(crate) struct Graph {
    inputs: BTreeMap<String, Input>,
    outputs: BTreeMap<String, Output>,
}

#[derive(Deserialize)]
struct Input {
    imports: Vec<Import>,
}

#[derive(Deserialize)]
struct Output {
    imports: Vec<Import>,
}

#[derive(Deserialize)]
struct Import {
    path: String,
    kind: String,
    #[serde(default)]
    external: bool,
    original: Option<String>,
}

impl Graph {
    pub(crate) fn parse(metafile: &[u8]) -> Option<Graph> {
        serde_json::from_slice(metafile).ok()
    }

    /// The files of the project that were read, and whatever was read and is none of its files: that should not have
    /// been possible.
    pub(crate) fn inputs(&self, project: &Project) -> (Vec<String>, Vec<Problem>) {
        let (mut inside, mut outside) = (Vec::new(), Vec::new());
        for file in self.inputs.keys() {
            if project.folder.join(file).canonicalize().is_ok_and(|found| found.starts_with(&project.folder)) {
                inside.push(file.clone());
            } else if !made_up(file) {
                let (place, asked) = self.importer(project, |import| import.path == *file);
                outside.push(lies_outside(place, asked.as_deref().unwrap_or(file)));
            }
        }
        (inside, outside)
    }

    /// Whether the entry imports anything at all.
    pub(crate) fn imports(&self) -> bool {
        self.inputs.values().any(|input| !input.imports.is_empty())
    }

    /// What the result would import when it is loaded, which nothing can.
    pub(crate) fn left_over(&self, project: &Project) -> (Vec<Problem>, Vec<String>) {
        let (mut problems, mut warnings) = (Vec::new(), Vec::new());
        for import in self.outputs.values().flat_map(|output| &output.imports).filter(|import| import.external) {
            let (place, _) = self.importer(project, |other| other.external && other.path == import.path);
            let path = name(&import.path);
            if import.kind == "import-statement" {
                let text = format!(
                    "`{path}` is not in the project: nothing is loaded from elsewhere; install it as a package"
                );
                problems.push(Problem::new(place, &text));
            } else {
                let problem =
                    Problem::new(place, &format!("`{path}` is not there; the code will fail if it gets here"));
                warnings.push(problem.to_string());
            }
        }
        (problems, warnings)
    }

    /// The first import like this, and how it was written.
    fn importer(&self, project: &Project, like: impl Fn(&Import) -> bool) -> (Option<Place>, Option<String>) {
        let all = self.inputs.iter().flat_map(|(file, input)| input.imports.iter().map(move |import| (file, import)));
        let Some((file, import)) = all.into_iter().find(|(_, import)| like(import)) else { return (None, None) };
        let written = import.original.as_ref().unwrap_or(&import.path);
        (Some(find(project, file, written)), Some(written.clone()))
    }

    /// The files on the shortest way from the entry to a file, both included.
    pub(crate) fn way(&self, entry: &str, file: &str) -> Option<String> {
        let mut from: HashMap<&str, &str> = HashMap::new();
        let mut next = VecDeque::from([entry]);
        while let Some(here) = next.pop_front() {
            if here == file {
                break;
            }
            for import in self.inputs.get(here).into_iter().flat_map(|input| &input.imports) {
                if import.path != entry && !import.external && !from.contains_key(import.path.as_str()) {
                    from.insert(&import.path, here);
                    next.push_back(&import.path);
                }
            }
        }
        let mut way = vec![file];
        while let Some(before) = from.get(way.last()?) {
            way.push(before);
        }
        if way.last() != Some(&entry) || way.len() < 2 {
            return None;
        }
        way.reverse();
        let shown = way.iter().take(MOST_STEPS).map(|step| format!("`{}`", name(step))).collect::<Vec<_>>();
        Some(format!("imported by way of {}", shown.join(" → ")))
    }
}

/// Esbuild's own pieces, and modules that are written out where they are imported.
fn made_up(file: &str) -> bool {
    file.starts_with("<data:") || file.starts_with("<define:") || file == "<runtime>"
}

pub(crate) fn lies_outside(place: Option<Place>, path: &str) -> Problem {
    Problem::new(place, &format!("`{}` lies outside of the project", name(path)))
}

/// Where a file has this text in quotes.
fn find(project: &Project, file: &str, written: &str) -> Place {
    let source = project.source(file, LARGEST).unwrap_or_default();
    for (number, line) in source.lines().enumerate() {
        let found = ['"', '\'', '`'].iter().find_map(|quote| line.find(&format!("{quote}{written}{quote}")));
        if let Some(column) = found {
            return Place::new(file, number + 1, &line[..column], line);
        }
    }
    Place::new(file, 0, "", "")
}
