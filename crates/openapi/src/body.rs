//! Bodies of requests.

use crate::files::{At, Refusal};
use crate::input::Input;
use crate::media::{Form, choose, essence, form, is_json, is_media};
use crate::parameters::settle;
use crate::schema::Maker;
use crate::text::{cut, quote};
use serde_json::{Map, Value, json};
use std::collections::BTreeSet;

/// Adds the body to the input, and gives it as the runtime wants it; null when there is none.
pub(crate) fn read<'a>(
    operation: &At<'a>,
    method: &str,
    input: &mut Input,
    maker: &mut Maker<'a, '_>,
) -> Result<Value, Refusal> {
    let Some(written) = operation.get("requestBody") else { return Ok(Value::Null) };
    let at = maker.files.resolve(&written, maker.notes)?;
    at.only(&["description", "content", "required"], maker.notes);
    let required = at.is("required");
    if matches!(method, "GET" | "HEAD") {
        let text = format!("`fetch` sends no body with {method}");
        if required {
            return Err(Refusal::new(&written.place, text));
        }
        maker.notes.ignored(&written.place, text);
        return Ok(Value::Null);
    }
    let content = at.get("content").and_then(|content| choose(&content, maker.notes));
    let Some((media, content)) = content else {
        if required {
            return Err(Refusal::new(&at.place, "the body is required and has no content"));
        }
        maker.notes.ignored(&at.place, "the body has no content");
        return Ok(Value::Null);
    };
    content.only(&["schema", "encoding", "example", "examples"], maker.notes);
    for shown in ["example", "examples"] {
        if let Some(example) = content.get(shown) {
            maker.notes.ignored(&example.place, "examples of bodies are not shown");
        }
    }
    if !is_media(media) {
        return Err(Refusal::new(&content.place, format!("{} is no type of content", quote(media))));
    }
    let wild = essence(media).contains('*');
    if wild {
        maker.notes.changed(&content.place, "it is sent as application/json");
    }
    let media = if wild { "application/json" } else { media };
    let mut body = Body { at, content, media, form: form(media), required, table: Map::new() };
    body.table(input, maker)
}

struct Body<'a> {
    at: At<'a>,
    content: At<'a>,
    media: &'a str,
    form: Form,
    required: bool,
    table: Map<String, Value>,
}

impl<'a> Body<'a> {
    fn table(&mut self, input: &mut Input, maker: &mut Maker<'a, '_>) -> Result<Value, Refusal> {
        let kind = match self.form {
            Form::Json => "json",
            Form::Urlencoded => "form",
            Form::Multipart => "multipart",
            Form::Text => "text",
            Form::Bytes => "bytes",
        };
        self.table.insert("kind".to_owned(), kind.into());
        self.table.insert("type".to_owned(), self.media.into());
        let schema = self.content.get("schema");
        match self.form {
            Form::Text => {
                if essence(self.media).ends_with("xml") {
                    maker
                        .notes
                        .changed(&self.content.place, "XML is not made from a schema; the body is given as text");
                }
                let schema = match schema {
                    Some(schema) if maker.top(&schema)?.str("type") == Some("string") => maker.schema(&schema)?,
                    _ => json!({ "type": "string" }),
                };
                self.whole(schema, input, maker);
            }
            Form::Bytes => {
                let schema =
                    json!({ "type": "string", "contentEncoding": "base64", "contentMediaType": essence(self.media) });
                self.whole(schema, input, maker);
            }
            _ => self.object(schema, input, maker)?,
        }
        if !matches!(self.form, Form::Urlencoded | Form::Multipart)
            && let Some(encoding) = self.content.get("encoding")
        {
            maker.notes.ignored(&encoding.place, "only forms have encodings");
        }
        Ok(std::mem::take(&mut self.table).into())
    }

    /// The body as one argument.
    fn whole(&mut self, mut schema: Value, input: &mut Input, maker: &mut Maker<'a, '_>) {
        let (text, _) = cut(self.at.str("description").unwrap_or_default(), 1_000);
        if let (Value::Object(map), false) = (&mut schema, text.is_empty()) {
            map.insert("description".to_owned(), text.into());
        }
        let argument = input.add("body", "body", schema, self.required, &self.at.place, maker.notes);
        self.table.insert("arg".to_owned(), argument.into());
    }

    fn object(&mut self, schema: Option<At<'a>>, input: &mut Input, maker: &mut Maker<'a, '_>) -> Result<(), Refusal> {
        let Some(schema) = schema else {
            let any = if self.form == Form::Json { json!({}) } else { json!({ "type": "object" }) };
            self.whole(any, input, maker);
            return Ok(());
        };
        let top = maker.top(&schema)?;
        let encodings = if self.form == Form::Json { Map::new() } else { self.encodings(&top, maker)? };
        match flat(&top, self.required, input) {
            Ok(properties) => {
                let needed = top.value["required"].as_array().into_iter().flatten().filter_map(Value::as_str);
                let needed: BTreeSet<&str> = needed.collect();
                let mut fields = Vec::new();
                for (name, property) in properties {
                    if property.is("readOnly") {
                        maker.notes.changed(&property.place, "only read, so no input has it");
                        continue;
                    }
                    let shape = encodings.get(name).filter(|encoding| encoding["file"] == true);
                    let schema = if shape.is_some() { file(&property, maker)? } else { maker.schema(&property)? };
                    let required = needed.contains(name);
                    let argument = input.add(name, "body", schema, required, &property.place, maker.notes);
                    fields.push(json!([argument, name]));
                }
                self.table.insert("fields".to_owned(), fields.into());
                self.table.insert("required".to_owned(), self.required.into());
                top.only(&FLAT[..4], maker.notes);
                for (_, text) in self.at.entries().filter(|(key, _)| *key == "description") {
                    maker.notes.ignored(
                        &text.place,
                        "the properties of the body are arguments, each with its own description",
                    );
                }
            }
            Err(clash) => {
                if let Some(name) = clash {
                    let text = format!("the body is one argument, as {} would be there twice", quote(&name));
                    maker.notes.changed(&self.content.place, text);
                }
                let mut whole = maker.schema(&schema)?;
                for (name, _) in encodings.iter().filter(|(_, encoding)| encoding["file"] == true) {
                    let property = top.get("properties").and_then(|properties| properties.get(name));
                    if let Some(property) = property {
                        // A reference cannot be changed in place, so the whole is written out.
                        if whole.get("$ref").is_some() {
                            whole = maker.schema(&top)?;
                        }
                        whole["properties"][name] = file(&property, maker)?;
                    }
                }
                self.whole(whole, input, maker);
            }
        }
        if !encodings.is_empty() {
            self.table.insert("encoding".to_owned(), encodings.into());
        }
        Ok(())
    }

    /// How properties are written that are not written as usual.
    fn encodings(&self, top: &At<'a>, maker: &mut Maker<'a, '_>) -> Result<Map<String, Value>, Refusal> {
        let mut encodings = Map::new();
        let written = self.content.get("encoding");
        let properties = top.get("properties");
        if properties.is_none() {
            maker
                .notes
                .changed(&self.content.place, "files are only known in a body whose `properties` stand at its top");
        }
        for (name, encoding) in written.iter().flat_map(At::entries) {
            if properties.as_ref().is_none_or(|properties| properties.get(name).is_none()) {
                maker.notes.ignored(&encoding.place, format!("the body has no property {}", quote(name)));
            }
        }
        for (name, property) in properties.iter().flat_map(At::entries) {
            let mut entry = Map::new();
            let encoding = written.as_ref().and_then(|written| written.get(name));
            let mut media = None;
            if let Some(encoding) = &encoding {
                encoding.only(&["contentType", "style", "explode", "allowReserved", "headers"], maker.notes);
                if let Some(headers) = encoding.get("headers") {
                    maker.notes.ignored(&headers.place, "headers of parts are not sent");
                }
                media = self.content_type(encoding, maker);
                let styled = ["style", "explode", "allowReserved"].iter().any(|key| encoding.get(key).is_some());
                if self.form == Form::Urlencoded && styled {
                    let style = encoding.str("style").unwrap_or("form");
                    if !["form", "spaceDelimited", "pipeDelimited", "deepObject"].contains(&style) {
                        return Err(Refusal::new(&encoding.place, format!("the style {} is unknown", quote(style))));
                    }
                    let (style, explode) = settle(style, encoding, maker);
                    entry.insert("style".to_owned(), style.into());
                    entry.insert("explode".to_owned(), explode.into());
                    entry.insert("reserved".to_owned(), encoding.is("allowReserved").into());
                } else if styled {
                    maker.notes.ignored(&encoding.place, "styles have no effect on parts of multipart/form-data");
                }
            }
            let mut file = false;
            if self.form == Form::Multipart {
                let inner = one_of(&property, maker)?;
                file = is_file(&inner, media.as_deref());
                if file {
                    entry.insert("file".to_owned(), true.into());
                    let own = inner.str("contentMediaType").filter(|own| is_media(own) && !own.contains('*'));
                    media = media.or(own.map(str::to_owned));
                }
            }
            if let Some(media) = media {
                entry.insert("json".to_owned(), (is_json(&media) && !file).into());
                entry.insert("type".to_owned(), media.into());
            }
            if !entry.is_empty() {
                encodings.insert(name.to_owned(), entry.into());
            }
        }
        Ok(encodings)
    }

    /// The first of the types that an encoding names.
    fn content_type(&self, encoding: &At<'_>, maker: &mut Maker<'_, '_>) -> Option<String> {
        let media = encoding.get("contentType")?;
        let list: Vec<&str> = media.value.as_str().unwrap_or_default().split(',').map(str::trim).collect();
        let first = list.iter().find(|media| is_media(media) && !media.contains('*'));
        if list.len() > 1 || first.is_none() {
            let chosen = first.copied().unwrap_or("application/octet-stream");
            maker.notes.changed(&media.place, format!("{} is used where the caller names none", quote(chosen)));
        }
        Some(first.copied().unwrap_or("application/octet-stream").to_owned())
    }
}

/// What a schema may have that is spread over the arguments. Only the first four have an effect there.
const FLAT: [&str; 12] = [
    "type",
    "properties",
    "required",
    "additionalProperties",
    "title",
    "description",
    "example",
    "examples",
    "xml",
    "externalDocs",
    "discriminator",
    "deprecated",
];

/// The properties of a body that become arguments; else the name that would be there twice, if it is that.
fn flat<'a>(top: &At<'a>, required: bool, input: &Input) -> Result<Vec<(&'a str, At<'a>)>, Option<String>> {
    let Value::Object(map) = top.value else { return Err(None) };
    let simple = map.keys().all(|key| FLAT.contains(&key.as_str()) || key.starts_with("x-"))
        && map.get("type").is_none_or(|kind| kind == "object")
        && map.get("additionalProperties").is_none_or(|more| more == false);
    let properties: Vec<_> = top.get("properties").iter().flat_map(At::entries).collect();
    let needed: Vec<&Value> = map.get("required").and_then(Value::as_array).into_iter().flatten().collect();
    let known = needed.iter().all(|name| {
        let name = name.as_str().unwrap_or_default();
        map.get("properties").is_some_and(|properties| properties.get(name).is_some())
    });
    // A body that may be left out, but not in part, is no set of arguments.
    if !simple || properties.is_empty() || !known || !(required || needed.is_empty()) {
        return Err(None);
    }
    input.has_room(properties.iter().map(|(name, _)| *name)).map_err(Some)?;
    Ok(properties)
}

/// What a part is, or each of several.
fn one_of<'a>(property: &At<'a>, maker: &mut Maker<'a, '_>) -> Result<At<'a>, Refusal> {
    let top = maker.top(property)?;
    match top.get("items") {
        Some(items) => maker.top(&items),
        None => Ok(top),
    }
}

fn is_file(inner: &At<'_>, media: Option<&str>) -> bool {
    let binary = media.is_some_and(|media| form(media) == Form::Bytes);
    let text = inner.str("type").is_none_or(|kind| kind == "string");
    let encoded = inner.str("contentEncoding").is_some() || inner.str("format") == Some("byte");
    let declared = inner.str("format") == Some("binary") || inner.str("contentMediaType").is_some() || binary;
    text && declared && !encoded
}

/// A file, as callers give one; or a list of them.
fn file<'a>(property: &At<'a>, maker: &mut Maker<'a, '_>) -> Result<Value, Refusal> {
    let top = maker.top(property)?;
    let one = json!({
        "type": "object",
        "properties": {
            "base64": { "type": "string", "contentEncoding": "base64", "description": "The bytes of the file in base64." },
            "text": { "type": "string", "description": "The file as text, in place of `base64`." },
            "filename": { "type": "string", "maxLength": 255 },
            "contentType": { "type": "string", "pattern": "^[A-Za-z0-9!#$&^_.+-]+/[A-Za-z0-9!#$&^_.+-]+$" },
        },
        "additionalProperties": false,
        "oneOf": [{ "required": ["base64"] }, { "required": ["text"] }],
    });
    let mut schema = if top.get("items").is_some() { json!({ "type": "array", "items": one }) } else { one };
    if let (Some(text), Value::Object(map)) = (top.str("description"), &mut schema) {
        map.insert("description".to_owned(), cut(text, 1_000).0.into());
    }
    Ok(schema)
}
