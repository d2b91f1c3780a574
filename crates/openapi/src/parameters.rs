//! Parameters: which there are, and how their values are written.

use crate::files::{At, Refusal};
use crate::input::Input;
use crate::media::is_json;
use crate::schema::Maker;
use crate::security::is_token;
use crate::text::{cut, is_short, quote};
use serde_json::{Value, json};

const MOST_PARAMETERS: usize = 500;
const PLACES: [&str; 4] = ["path", "query", "header", "cookie"];

/// The specification says of the first three that they are no parameters; the others belong to whoever sends a request.
const NO_PARAMETERS: [&str; 14] = [
    "accept",
    "content-type",
    "authorization",
    "host",
    "content-length",
    "transfer-encoding",
    "connection",
    "upgrade",
    "te",
    "trailer",
    "keep-alive",
    "expect",
    "cookie",
    "proxy-authorization",
];

/// Adds the parameters to the input, and gives them as the runtime wants them.
pub(crate) fn read<'a>(
    item: &At<'a>,
    operation: &At<'a>,
    credentials: &[Value],
    input: &mut Input,
    maker: &mut Maker<'a, '_>,
) -> Result<Vec<Value>, Refusal> {
    let mut table = Vec::new();
    for (place, name, at) in all(item, operation, maker)? {
        let required = at.is("required") || place == "path";
        let taken = |credential: &Value| {
            let same = |other: &str| if place == "header" { name.eq_ignore_ascii_case(other) } else { name == other };
            credential["in"] == place && credential["name"].as_str().is_some_and(same)
        };
        if credentials.iter().any(taken) {
            maker.notes.ignored(&at.place, "a credential goes there");
            continue;
        }
        if place == "header" && NO_PARAMETERS.iter().any(|header| header.eq_ignore_ascii_case(name)) {
            maker.notes.ignored(&at.place, format!("the header {} is not the caller's to set", quote(name)));
            continue;
        }
        match one(place, name, &at, maker) {
            Ok((mut entry, schema)) => {
                let argument = input.add(name, place, schema, required, &at.place, maker.notes);
                entry["arg"] = argument.into();
                table.push(entry);
            }
            // What leaves the folder, or cannot be sent, is a matter of the whole operation only where it is needed.
            Err(refusal) if !required && refusal.place == at.place => maker.notes.ignored(&refusal.place, refusal.text),
            Err(refusal) => return Err(refusal),
        }
    }
    Ok(table)
}

/// Those of the operation win over those of the path. By place, then in the order of the file.
fn all<'a>(
    item: &At<'a>,
    operation: &At<'a>,
    maker: &mut Maker<'a, '_>,
) -> Result<Vec<(&'a str, &'a str, At<'a>)>, Refusal> {
    let mut found: Vec<(&str, &str, At<'a>, bool)> = Vec::new();
    for (level, own) in [(operation, true), (item, false)] {
        for written in level.get("parameters").iter().flat_map(At::items) {
            let at = maker.files.resolve(&written, maker.notes)?;
            let (Some(name), Some(place)) = (at.str("name"), at.str("in")) else {
                return Err(Refusal::new(&at.place, "a parameter has a `name` and an `in`, and both are texts"));
            };
            let Some(place) = PLACES.into_iter().find(|known| *known == place) else {
                let text = format!("there are no parameters in {}", quote(place));
                if at.is("required") {
                    return Err(Refusal::new(&at.place, text));
                }
                maker.notes.ignored(&at.place, text);
                continue;
            };
            if found.len() == MOST_PARAMETERS {
                return Err(Refusal::new(&level.place, format!("it has more than {MOST_PARAMETERS} parameters")));
            }
            match found.iter().find(|(other, known, ..)| *other == place && *known == name) {
                None => found.push((place, name, at, own)),
                Some((.., true)) if !own => {}
                Some(_) => maker.notes.ignored(&written.place, "the parameter is there twice; the first one counts"),
            }
        }
    }
    found.sort_by_key(|(place, _, _, own)| (PLACES.iter().position(|known| known == place), *own));
    Ok(found.into_iter().map(|(place, name, at, _)| (place, name, at)).collect())
}

const KNOWN: [&str; 13] = [
    "name",
    "in",
    "description",
    "required",
    "deprecated",
    "allowEmptyValue",
    "style",
    "explode",
    "allowReserved",
    "schema",
    "content",
    "example",
    "examples",
];

fn one<'a>(place: &str, name: &str, at: &At<'a>, maker: &mut Maker<'a, '_>) -> Result<(Value, Value), Refusal> {
    at.only(&KNOWN, maker.notes);
    if matches!(place, "header" | "cookie") && !is_token(name) {
        return Err(Refusal::new(&at.place, format!("{} is no name for a header or a cookie", quote(name))));
    }
    let mut entry = json!({ "in": place, "name": name });
    let content = at.get("content").and_then(|content| content.entries().next());
    let mut schema = match (&content, at.get("schema")) {
        (Some((media, media_type)), _) => {
            let kind = match *media {
                media if is_json(media) => "json",
                media if media.starts_with("text/") => "text",
                media => {
                    return Err(Refusal::new(
                        &at.place,
                        format!("parameters of type {} are not supported", quote(media)),
                    ));
                }
            };
            entry["content"] = kind.into();
            match media_type.get("schema") {
                Some(schema) => maker.schema(&schema)?,
                None => json!({}),
            }
        }
        (None, Some(schema)) => {
            style(place, at, &mut entry, maker)?;
            maker.schema(&schema)?
        }
        (None, None) => {
            style(place, at, &mut entry, maker)?;
            maker.notes.changed(&at.place, "it has no schema; any value is taken");
            json!({})
        }
    };
    if at.is("allowEmptyValue") && place == "query" && schema["type"] != "string" {
        schema = json!({ "anyOf": [schema, { "const": "" }] });
    }
    describe(&mut schema, at, maker);
    Ok((entry, schema))
}

/// What the parameter says of itself goes over what its schema says.
fn describe(schema: &mut Value, at: &At<'_>, maker: &mut Maker<'_, '_>) {
    let Value::Object(map) = schema else { return };
    let (text, shortened) = cut(at.str("description").unwrap_or_default(), 1_000);
    if shortened {
        maker.notes.changed(&at.place.below("description"), "cut at 1000 characters");
    }
    let text = if at.is("deprecated") { format!("Deprecated. {text}").trim_end().to_owned() } else { text };
    if !text.is_empty() {
        map.insert("description".to_owned(), text.into());
    }
    match at.get("example") {
        Some(example) if is_short(example.value, 1_000) => {
            map.insert("examples".to_owned(), json!([example.value]));
        }
        Some(example) => maker.notes.ignored(&example.place, "the example has more than 1000 bytes"),
        None => {}
    }
    if let Some(examples) = at.get("examples") {
        maker.notes.ignored(&examples.place, "named examples are not shown");
    }
}

fn style(place: &str, at: &At<'_>, entry: &mut Value, maker: &mut Maker<'_, '_>) -> Result<(), Refusal> {
    let usual = if matches!(place, "query" | "cookie") { "form" } else { "simple" };
    let style = at.str("style").unwrap_or(usual);
    let known: &[&str] = match place {
        "path" => &["simple", "label", "matrix"],
        "query" => &["form", "spaceDelimited", "pipeDelimited", "deepObject"],
        "header" => &["simple"],
        _ => &["form", "cookie"],
    };
    if !known.contains(&style) {
        let text = format!("the style {} is unknown for parameters in {place}", quote(style));
        return Err(Refusal::new(&at.place, text));
    }
    let (style, explode) = settle(style, at, maker);
    if place == "cookie" && explode && style == "form" && at.str("style").is_some() {
        maker.notes.changed(&at.place, "lists and objects become several cookies, divided by `; ` and not by `&`");
    }
    entry["style"] = style.into();
    entry["explode"] = explode.into();
    if at.is("allowReserved") {
        if place == "query" {
            entry["reserved"] = true.into();
        } else {
            maker.notes.ignored(&at.place.below("allowReserved"), format!("it has no effect on parameters in {place}"));
        }
    }
    Ok(())
}

/// Style and explode, where either may be left out.
pub(crate) fn settle<'s>(style: &'s str, at: &At<'_>, maker: &mut Maker<'_, '_>) -> (&'s str, bool) {
    let given = at.get("explode").and_then(|explode| explode.value.as_bool());
    let explode = given.unwrap_or(matches!(style, "form" | "cookie"));
    if explode && matches!(style, "spaceDelimited" | "pipeDelimited") {
        maker
            .notes
            .changed(&at.place.below("explode"), format!("{} with `explode` is written like `form`", quote(style)));
        return ("form", true);
    }
    (style, explode)
}
