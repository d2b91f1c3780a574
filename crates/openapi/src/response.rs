//! What a tool gives back.

use crate::files::{At, Files, Refusal};
use crate::media::{choose, essence, is_json};
use crate::report::Notes;
use crate::schema::{Maker, Way};
use serde_json::{Value, json};

/// How deep objects are looked for in what a schema is composed of.
const MOST_DEPTH: usize = 8;

#[derive(Default)]
pub(crate) struct Output {
    /// What to ask the API for.
    pub accept: Option<String>,
    pub schema: Option<Value>,
    /// The body is no object, and stands in one as `result`.
    pub wrapped: bool,
}

/// With a schema only where one is `promised`.
pub(crate) fn read(operation: &At<'_>, files: &Files, old: bool, promised: bool, notes: &mut Notes) -> Output {
    let mut output = Output::default();
    let Some(responses) = operation.get("responses") else { return output };
    let mut schemas = Vec::new();
    let mut bodies = 0;
    for (status, written) in responses.entries() {
        if status.starts_with("x-") {
            notes.extension(&responses.place, status);
            continue;
        }
        let success = status.len() == 3 && status.starts_with('2');
        let response = match files.resolve(&written, notes) {
            Ok(response) => response,
            Err(Refusal { place, text }) => {
                notes.ignored(&place, text);
                bodies += usize::from(success);
                continue;
            }
        };
        response.only(&["description", "summary", "content", "headers", "links"], notes);
        for part in ["headers", "links"] {
            if let Some(part) = response.get(part) {
                notes.ignored(&part.place, "only the body of an answer is given back");
            }
        }
        if !success {
            // What is no success is an error with the body as text, whatever it looks like.
            continue;
        }
        bodies += 1;
        let Some((media, content)) = response.get("content").and_then(|content| choose(&content, notes)) else {
            continue;
        };
        content.only(&["schema"], notes);
        if is_json(media) {
            output.accept.get_or_insert_with(|| essence(media));
            schemas.extend(content.get("schema"));
        } else {
            output.accept.get_or_insert_with(|| essence(media));
            notes.ignored(
                &content.place,
                "answers that are not JSON are given back as they are; the tool has no output schema for them",
            );
        }
    }
    let Some(schema) = schemas.first().filter(|_| promised) else { return output };
    if bodies > 1 && !(bodies == schemas.len() && schemas.iter().all(|other| other.value == schema.value)) {
        notes.ignored(&responses.place, "successes differ in their bodies, so the tool has no output schema");
        return output;
    }
    match made(schema, files, old, notes) {
        Ok((schema, wrapped)) => {
            output.schema = Some(schema);
            output.wrapped = wrapped;
        }
        Err(Refusal { place, text }) => notes.ignored(&place, format!("the tool has no output schema: {text}")),
    }
    output
}

fn made<'a>(schema: &At<'a>, files: &'a Files, old: bool, notes: &mut Notes) -> Result<(Value, bool), Refusal> {
    let mut maker = Maker::new(files, notes, Way::Out, old);
    let top = maker.top(schema)?;
    let object = is_object(&top, &mut maker, 0)?;
    let mut made = if object {
        let mut made = maker.schema(&top)?;
        made["type"] = "object".into();
        made
    } else {
        let inner = maker.schema(schema)?;
        json!({ "type": "object", "properties": { "result": inner }, "required": ["result"] })
    };
    let defs = maker.defs(&schema.place)?;
    if !defs.is_empty() {
        made["$defs"] = defs.into();
    }
    Ok((made, !object))
}

/// Whether nothing but objects fit.
fn is_object<'a>(at: &At<'a>, maker: &mut Maker<'a, '_>, depth: usize) -> Result<bool, Refusal> {
    if depth > MOST_DEPTH || at.is("nullable") {
        return Ok(false);
    }
    if let Some(kind) = at.get("type") {
        return Ok(kind.value == "object");
    }
    let mut all = |key: &str| -> Result<Vec<bool>, Refusal> {
        let parts = at.get(key);
        let parts = parts.iter().flat_map(At::items);
        parts.map(|part| maker.top(&part).and_then(|part| is_object(&part, maker, depth + 1))).collect()
    };
    let (any, one, both) = (all("anyOf")?, all("oneOf")?, all("allOf")?);
    let each = |found: &[bool]| !found.is_empty() && found.iter().all(|object| *object);
    let plain = at.get("properties").is_some() && at.get("$ref").is_none();
    Ok(plain || each(&any) || each(&one) || both.contains(&true))
}
