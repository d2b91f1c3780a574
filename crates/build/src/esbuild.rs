//! What esbuild makes of a project, checked before it is believed.

use crate::advice::Message;
use crate::error::BuildError;
use crate::files::Project;
use crate::graph::Graph;
use crate::service::{OUTPUT, Request};
use crate::{Built, Options, text};

/// More modules than this are not looked for a second time.
const MOST_UNRESOLVED: usize = 50;

/// A result, and whether the entry imports anything.
pub(crate) struct Bundled {
    pub(crate) built: Built,
    pub(crate) imports: bool,
}

/// Makes one module of the entry.
pub(crate) fn bundle(project: &Project, entry: &str, options: &Options) -> Result<Bundled, BuildError> {
    let response = Request { entry, script: None, external: &[] }.run(project, options)?;
    let lost = response.warnings.iter().filter(|warning| warning.lost_configuration().is_some());
    let errors: Vec<&Message> = response.errors.iter().chain(lost).collect();
    if !errors.is_empty() {
        let graph = whole_graph(project, entry, &response.errors, options);
        let way = |message: &Message| graph.as_ref()?.way(entry, message.file.as_deref()?);
        return Err(BuildError::Problems(errors.iter().map(|error| error.problem(project).note(way(error))).collect()));
    }
    let strange = || BuildError::Esbuild("its result is not to be understood".to_owned());
    let graph = Graph::parse(&response.metafile).ok_or_else(strange)?;
    let (inputs, mut problems) = graph.inputs(project);
    let (left_over, later) = graph.left_over(project);
    problems.extend(left_over);
    if !problems.is_empty() {
        return Err(BuildError::Problems(problems));
    }
    let (mut code, mut map) = (None, None);
    for (path, bytes) in response.files {
        if bytes.len() > options.output_bytes {
            return Err(BuildError::TooLarge(options.output_bytes));
        }
        let text = String::from_utf8(bytes).map_err(|_| strange())?;
        match path.strip_prefix(OUTPUT) {
            Some("") => code = Some(text),
            Some(".map") => map = Some(text),
            _ => return Err(BuildError::Esbuild(format!("the result is more than one file: `{}`", text::name(&path)))),
        }
    }
    let warnings = response.warnings.iter().map(Message::warning).chain(later).collect();
    let built = Built { code: code.ok_or_else(strange)?, map: map.ok_or_else(strange)?, inputs, warnings };
    Ok(Bundled { built, imports: graph.imports() })
}

/// Whether a bare script, which is the body of a function, imports nothing.
pub(crate) fn script_imports_nothing(
    project: &Project,
    entry: &str,
    source: &str,
    options: &Options,
) -> Result<bool, BuildError> {
    let body = format!("export default async function (input, ctx) {{ {source}\n}}");
    let response = Request { entry, script: Some(&body), external: &[] }.run(project, options)?;
    Ok(response.errors.is_empty() && Graph::parse(&response.metafile).is_some_and(|graph| !graph.imports()))
}

/// Who imports whom when what was not found is left out: a failed build says nothing of that.
fn whole_graph(project: &Project, entry: &str, errors: &[Message], options: &Options) -> Option<Graph> {
    let missing: Vec<&str> = errors.iter().filter_map(Message::unresolved).collect();
    let plain = |path: &&str| !path.starts_with(['.', '/']) && !path.contains(['*', '\\']);
    let elsewhere = |error: &Message| error.file.as_deref().is_some_and(|file| file.contains("node_modules/"));
    if missing.len() > MOST_UNRESOLVED || !missing.iter().all(plain) || !errors.iter().any(elsewhere) {
        return None;
    }
    let response = Request { entry, script: None, external: &missing }.run(project, options).ok()?;
    Graph::parse(&response.metafile)
}
