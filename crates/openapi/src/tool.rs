//! One operation becomes one tool.

use crate::files::{At, Files, Refusal};
use crate::input::Input;
use crate::operations::Operation;
use crate::report::Notes;
use crate::schema::{Maker, Way, loosened};
use crate::security::Schemes;
use crate::servers::Base;
use crate::text::cut;
use crate::{Options, body, parameters, path, response};
use serde_json::{Value, json};

const MOST_TITLE: usize = 200;
const MOST_DESCRIPTION: usize = 2_000;

const KNOWN: [&str; 10] = [
    "operationId",
    "summary",
    "description",
    "tags",
    "parameters",
    "requestBody",
    "responses",
    "deprecated",
    "security",
    "servers",
];

/// The tool as the module's table has it.
pub(crate) fn make<'a>(
    operation: &Operation<'a>,
    files: &'a Files,
    base: &Base,
    schemes: &mut Schemes,
    old: bool,
    options: &Options,
    notes: &mut Notes,
) -> Result<Value, Refusal> {
    let at = &operation.at;
    let method = operation.method.as_str();
    if !at.value.is_object() {
        return Err(Refusal::new(&at.place, "an operation is an object"));
    }
    if method == "TRACE" {
        return Err(Refusal::new(&at.place, "`fetch` does not send TRACE"));
    }
    at.only(&KNOWN, notes);
    let credentials = schemes.choose(at, files, &base.host, notes)?;
    let mut input = Input::default();
    let mut maker = Maker::new(files, notes, Way::In, old);
    let parameters = parameters::read(&operation.item, at, &credentials, &mut input, &mut maker)?;
    let parts = path::parts(operation.path, &parameters, &at.place, maker.notes)?;
    let body = body::read(at, method, &mut input, &mut maker)?;
    let input = input.schema(maker.defs(&at.place)?);
    let input = accepted(input, at, options, notes)?;
    let promised = options.output_schemas && method != "HEAD";
    let mut output = response::read(at, files, old, promised, notes);
    if let (Some(schema), Some(check)) = (&output.schema, options.schema_check)
        && let Err(why) = check(schema)
    {
        notes.ignored(&at.place.below("responses"), format!("the host does not take the output schema: {why}"));
        output.schema = None;
    }
    let wrapped = if output.schema.is_none() { Value::Null } else { output.wrapped.into() };
    Ok(json!({
        "name": operation.tool,
        "title": title(at),
        "description": description(operation, notes),
        "input": input,
        "output": output.schema,
        "annotations": annotations(method),
        "request": {
            "method": method,
            "base": base.url,
            "shown": operation.path,
            "path": parts,
            "parameters": parameters,
            "body": body,
            "credentials": credentials,
            "accept": output.accept.filter(|accept| accept.is_ascii() && !accept.contains(['\r', '\n', '\0'])),
            "wrapped": wrapped,
        },
    }))
}

/// The schema, or a looser one that the host takes.
fn accepted(schema: Value, at: &At<'_>, options: &Options, notes: &mut Notes) -> Result<Value, Refusal> {
    let Some(check) = options.schema_check else { return Ok(schema) };
    let Err(why) = check(&schema) else { return Ok(schema) };
    let loose = loosened(&schema);
    check(&loose).map_err(|why| Refusal::new(&at.place, format!("the host does not take the input schema: {why}")))?;
    notes.changed(
        &at.place,
        format!("what the input schema refers to may be anything, as the host does not take it: {why}"),
    );
    Ok(loose)
}

fn title(at: &At<'_>) -> Option<String> {
    at.str("summary").map(|summary| cut(summary, MOST_TITLE).0).filter(|title| !title.is_empty())
}

fn description(operation: &Operation<'_>, notes: &mut Notes) -> String {
    let text = |key: &str| operation.at.str(key).or_else(|| operation.item.str(key)).map(str::trim).unwrap_or_default();
    let (summary, description) = (text("summary"), text("description"));
    let mut whole = match (summary, description) {
        ("", "") => operation.title(),
        (summary, "") => summary.to_owned(),
        ("", description) => description.to_owned(),
        (summary, description) if description.starts_with(summary) => description.to_owned(),
        (summary, description) => format!("{summary}\n\n{description}"),
    };
    if operation.at.is("deprecated") {
        whole = format!("Deprecated. {whole}");
    }
    let (whole, shortened) = cut(&whole, MOST_DESCRIPTION);
    if shortened {
        notes.changed(&operation.at.place.below("description"), format!("cut at {MOST_DESCRIPTION} characters"));
    }
    whole
}

/// What the method promises, and nothing that it does not.
fn annotations(method: &str) -> Value {
    match method {
        "GET" | "HEAD" | "OPTIONS" | "QUERY" => json!({ "readOnlyHint": true, "openWorldHint": true }),
        "PUT" => json!({ "readOnlyHint": false, "idempotentHint": true, "openWorldHint": true }),
        "DELETE" => {
            json!({ "readOnlyHint": false, "destructiveHint": true, "idempotentHint": true, "openWorldHint": true })
        }
        _ => json!({ "readOnlyHint": false, "openWorldHint": true }),
    }
}
