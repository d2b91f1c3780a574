//! The operations of a specification: their names, and which are wanted.

use crate::files::{At, Files};
use crate::report::Notes;
use crate::text::{Names, fit, quote};
use crate::{OpenApiError, Options};
use wildmatch::WildMatch;

/// In the order in which the operations of a path are taken.
const METHODS: [&str; 9] = ["get", "put", "post", "delete", "options", "head", "patch", "trace", "query"];

/// What stands in a path item beside operations.
pub(crate) const BESIDE: [&str; 6] =
    ["summary", "description", "servers", "parameters", "$ref", "additionalOperations"];

pub(crate) struct Operation<'a> {
    pub tool: String,
    /// In capitals.
    pub method: String,
    pub path: &'a str,
    pub item: At<'a>,
    pub at: At<'a>,
    renamed: bool,
}

impl Operation<'_> {
    /// `GET /pets`
    pub fn title(&self) -> String {
        format!("{} {}", self.method, self.path)
    }
}

/// All operations, by path and method, each with a name that does not depend on what is selected.
pub(crate) fn all<'a>(files: &'a Files, notes: &mut Notes) -> Vec<Operation<'a>> {
    let mut found = Vec::new();
    let paths = files.root().get("paths");
    for (path, written) in paths.iter().flat_map(At::entries) {
        if path.starts_with("x-") {
            notes.extension(&files.root().place.below("paths"), path);
            continue;
        }
        let item = match files.resolve(&written, notes) {
            Ok(item) => item,
            Err(refusal) => {
                notes.refused(&refusal.place, format!("no operation of {} is used: {}", quote(path), refusal.text));
                continue;
            }
        };
        let usable = path.starts_with('/') && !path.contains(['?', '#']) && path.len() <= 2_048;
        if !usable || !item.value.is_object() {
            notes.refused(&item.place, "a path begins with `/`, has neither `?` nor `#`, and stands for an object");
            continue;
        }
        let known: Vec<&str> = METHODS.iter().chain(&BESIDE).copied().collect();
        item.only(&known, notes);
        if let Some(more) = item.get("additionalOperations") {
            notes.refused(&more.place, "operations with methods of their own are not supported");
        }
        for method in METHODS {
            if let Some(at) = item.get(method) {
                let method = method.to_ascii_uppercase();
                let (tool, item) = (String::new(), item.clone());
                found.push(Operation { tool, method, path, item, at, renamed: false });
            }
        }
    }
    name(&mut found);
    found
}

/// Names that fit as they are go first, so that no other can take them away.
fn name(operations: &mut [Operation<'_>]) {
    let mut names = Names::default();
    for operation in operations.iter_mut() {
        if let Some(id) = operation.at.str("operationId")
            && fit(id) == id
            && names.exactly(id)
        {
            operation.tool = id.to_owned();
        }
    }
    for operation in operations.iter_mut().filter(|operation| operation.tool.is_empty()) {
        let id = operation.at.str("operationId").map(fit).filter(|id| !id.is_empty());
        let wanted = id.unwrap_or_else(|| {
            let path = operation.path.replace(['{', '}'], "");
            match fit(&format!("{}{}", operation.method.to_ascii_lowercase(), path)) {
                name if name.ends_with('_') => name.trim_end_matches('_').to_owned(),
                name => name,
            }
        });
        operation.tool = names.claim(&wanted);
        operation.renamed = operation.at.str("operationId").is_some() || operation.tool != wanted;
    }
}

/// Those that the options ask for.
pub(crate) fn selected<'a>(
    operations: Vec<Operation<'a>>,
    options: &Options,
    notes: &mut Notes,
) -> Result<Vec<Operation<'a>>, OpenApiError> {
    let matches = |pattern: &WildMatch, operation: &Operation<'_>| {
        let id = operation.at.str("operationId");
        pattern.matches(&operation.title())
            || pattern.matches(&operation.tool)
            || id.is_some_and(|id| pattern.matches(id))
    };
    let tagged = |tag: &str, operation: &Operation<'_>| {
        let tags = operation.at.get("tags");
        tags.is_some_and(|tags| tags.items().any(|item| item.value.as_str() == Some(tag)))
    };
    let no_match = |kind, pattern: &String| {
        let operations = operations.iter().take(5).map(|operation| quote(&operation.title())).collect();
        OpenApiError::NoMatch { kind, pattern: quote(pattern), operations }
    };
    let compile = |kind, patterns: &[String]| -> Result<Vec<WildMatch>, OpenApiError> {
        let compiled = patterns.iter().map(|pattern| {
            let compiled = WildMatch::new(pattern);
            // A filter that matches nothing is a typing error, and could let through what it should keep out.
            let used = operations.iter().any(|operation| matches(&compiled, operation));
            if used { Ok(compiled) } else { Err(no_match(kind, pattern)) }
        });
        compiled.collect()
    };
    let (include, exclude) = (compile("include", &options.include)?, compile("exclude", &options.exclude)?);
    for tag in &options.tags {
        if !operations.iter().any(|operation| tagged(tag, operation)) {
            return Err(no_match("tag", tag));
        }
    }
    let wanted = |operation: &Operation<'_>| {
        (include.is_empty() || include.iter().any(|pattern| matches(pattern, operation)))
            && !exclude.iter().any(|pattern| matches(pattern, operation))
            && (options.tags.is_empty() || options.tags.iter().any(|tag| tagged(tag, operation)))
    };
    let selected: Vec<_> = operations.into_iter().filter(wanted).collect();
    if selected.len() > options.most_tools {
        return Err(OpenApiError::TooMany { selected: selected.len(), most: options.most_tools });
    }
    for operation in selected.iter().filter(|operation| operation.renamed) {
        notes.operation = Some(operation.title());
        let id = operation.at.get("operationId");
        let place = id.map_or_else(|| operation.at.place.clone(), |id| id.place);
        notes.changed(&place, format!("the tool is named {}", quote(&operation.tool)));
    }
    notes.operation = None;
    Ok(selected)
}
