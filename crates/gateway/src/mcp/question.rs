//! Questions that code behind a wall asks of people. The code is a stranger, and the client shows its questions in the name of
//! this host: so each says which server asks, hides nothing, sends nobody anywhere, and asks for no credentials.

use super::asking;
use super::connecting::HOSTS_OWN;
use super::line::{Asked, Client, refusal};
use bundle::{hidden_in, is_hidden, without_hidden};
use sandbox::HostRefusal;
use serde_json::value::to_raw_value;
use serde_json::{Map, Value, json};

/// Bytes of one question.
const MOST_BYTES: usize = 1 << 20;
const MOST_MESSAGE: usize = 4000;
const MOST_FIELDS: usize = 32;
const MOST_CHOICES: usize = 256;
/// Characters of a name, of a title or a choice, and of a description.
const LONGEST_NAME: usize = 64;
const LONGEST_TITLE: usize = 256;
const LONGEST_TEXT: usize = 1000;
/// What MCP lets a text be.
const FORMATS: [&str; 4] = ["email", "uri", "date", "date-time"];
/// Marks of a field whose value is not to be seen.
const SECRECY: [&str; 4] = ["writeOnly", "sensitive", "x-sensitive", "secret"];
/// The question as the client gets it, or why the client is not asked.
pub fn checked(ask: Asked, client: &Client, origin: &str) -> Result<Asked, HostRefusal> {
    if ask.key.starts_with(HOSTS_OWN) {
        return Err(bad(format!("the key `{}` is one of the host's own: they begin with `{HOSTS_OWN}`", ask.key)));
    }
    if ask.params.get().len() > MOST_BYTES {
        return Err(bad(format!("a question has at most {MOST_BYTES} bytes")));
    }
    let Ok(Value::Object(given)) = serde_json::from_str(ask.params.get()) else {
        return Err(bad("what to ask must be an object"));
    };
    let mut params = match ask.method.as_str() {
        "elicitation/create" => form(given, client, origin)?,
        "sampling/createMessage" => sample(given),
        // It has nothing to say.
        _ => Map::new(),
    };
    params.insert("_meta".to_owned(), json!({ "bulkhead/origin": origin }));
    let params = to_raw_value(&params).map_err(|error| bad(error.to_string()))?;
    Ok(Asked { params, ..ask })
}

fn bad(message: impl AsRef<str>) -> HostRefusal {
    refusal("bad_ask", message.as_ref())
}

/// `elicitation/create`: made anew of what MCP knows, so that nothing else reaches the client.
fn form(given: Map<String, Value>, client: &Client, origin: &str) -> Result<Map<String, Value>, HostRefusal> {
    let mut params = Map::new();
    match given.get("mode").map(|mode| mode.as_str().unwrap_or_default()) {
        None => {}
        Some("form") => drop(params.insert("mode".to_owned(), "form".into())),
        Some("url") => {
            return Err(bad(
                "`mode: \"url\"` is the host's alone: a server sends nobody to an address. For an account elsewhere, bind a secret with \
                 `connection` in the manifest",
            ));
        }
        Some(_) => return Err(bad("`mode` must be `form`")),
    }
    let message = given.get("message").and_then(Value::as_str).ok_or_else(|| bad("`message` must be a string"))?;
    // On one line, so that nothing in it can look like the beginning of another question.
    let message = without_hidden(message).split_whitespace().collect::<Vec<_>>().join(" ");
    if message.chars().count() > MOST_MESSAGE {
        return Err(bad(format!("`message` has more than {MOST_MESSAGE} characters")));
    }
    params.insert("message".to_owned(), format!("[{origin} asks] {message}").into());
    let schema = given.get("requestedSchema").and_then(Value::as_object);
    let schema = schema.map_or_else(|| Err(bad("`requestedSchema` must be an object")), fields)?;
    let mut fields = schema.get("properties").and_then(Value::as_object).into_iter().flat_map(Map::values);
    if let Some(word) = asking::in_prose(&message).filter(|_| fields.any(is_typed)) {
        return Err(bad(format!("`message`: {}", no_credentials(word))));
    }
    params.insert("requestedSchema".to_owned(), schema);
    // Last: what no client is ever asked is refused as such, whatever this one can show.
    if !client.elicits("form") {
        return Err(refusal("client_cannot", "the client does not show forms"));
    }
    Ok(params)
}

/// Whether something is typed into a field, and not chosen.
fn is_typed(field: &Value) -> bool {
    let kind = field.get("type").and_then(Value::as_str).unwrap_or_default();
    ["string", "number", "integer"].contains(&kind) && field.get("enum").or_else(|| field.get("oneOf")).is_none()
}

/// An object with fields that are not objects themselves.
fn fields(given: &Map<String, Value>) -> Result<Value, HostRefusal> {
    if given.get("type").and_then(Value::as_str) != Some("object") {
        return Err(bad("`requestedSchema` must have `type: \"object\"`"));
    }
    let mut schema = Map::from_iter([("type".to_owned(), Value::from("object"))]);
    let empty = Map::new();
    let properties = match given.get("properties") {
        None => &empty,
        Some(properties) => properties.as_object().ok_or_else(|| bad("`properties` must be an object"))?,
    };
    if properties.len() > MOST_FIELDS {
        return Err(bad(format!("a form has at most {MOST_FIELDS} fields")));
    }
    let made = properties.iter().map(|(name, given)| Ok((name.clone(), field(name, given)?)));
    schema.insert("properties".to_owned(), Value::Object(made.collect::<Result<_, HostRefusal>>()?));
    if let Some(required) = given.get("required") {
        let names = required.as_array().into_iter().flatten();
        let known = |name: &&Value| name.as_str().is_some_and(|name| properties.contains_key(name));
        schema.insert("required".to_owned(), names.filter(known).cloned().collect());
    }
    Ok(schema.into())
}

fn field(name: &str, given: &Value) -> Result<Value, HostRefusal> {
    if name.is_empty() || name.chars().count() > LONGEST_NAME || name.chars().any(is_hidden) {
        return Err(bad(format!("the name of a field has 1 to {LONGEST_NAME} characters that can be seen")));
    }
    let wrong = |what: &str| bad(format!("field `{name}`: {what}"));
    let given = given.as_object().ok_or_else(|| wrong("must be an object"))?;
    let mut made = Map::new();
    for (key, most) in [("title", LONGEST_TITLE), ("description", LONGEST_TEXT)] {
        if let Some(text) = given.get(key) {
            let text = text.as_str().filter(|text| text.chars().count() <= most);
            let text = text.ok_or_else(|| wrong(&format!("`{key}` must be a string of at most {most} characters")))?;
            made.insert(key.to_owned(), without_hidden(text).into());
        }
    }
    if SECRECY.iter().any(|mark| given.get(*mark).is_some_and(|mark| mark != &Value::Bool(false))) {
        return Err(wrong("servers ask for no credentials: bind a secret or a `connection` in the manifest"));
    }
    let kind = given.get("type").and_then(Value::as_str).unwrap_or_default();
    made.insert("type".to_owned(), kind.into());
    let is_choice = given.contains_key("enum") || given.contains_key("oneOf");
    match kind {
        "boolean" => {}
        "number" | "integer" => numbers(given, &mut made, &["minimum", "maximum"]),
        "string" if is_choice => choices(given, &mut made, "oneOf").map_err(wrong)?,
        "string" => {
            numbers(given, &mut made, &["minLength", "maxLength"]);
            match given.get("format").map(|format| format.as_str().unwrap_or_default()) {
                None => {}
                Some("password") => {
                    return Err(wrong("servers ask for no passwords: bind a secret or a `connection` in the manifest"));
                }
                Some(format) if FORMATS.contains(&format) => drop(made.insert("format".to_owned(), format.into())),
                Some(_) => return Err(wrong("`format` must be `email`, `uri`, `date` or `date-time`")),
            }
        }
        "array" => {
            let items =
                given.get("items").and_then(Value::as_object).ok_or_else(|| wrong("`items` must be an object"))?;
            let mut of = Map::new();
            if items.contains_key("enum") {
                of.insert("type".to_owned(), "string".into());
            }
            choices(items, &mut of, "anyOf").map_err(wrong)?;
            made.insert("items".to_owned(), of.into());
            numbers(given, &mut made, &["minItems", "maxItems"]);
        }
        _ => return Err(wrong("`type` must be `string`, `number`, `integer`, `boolean`, or `array` of choices")),
    }
    let typed = kind != "boolean" && kind != "array" && !is_choice;
    let text = |key: &str| given.get(key).and_then(Value::as_str).unwrap_or_default();
    let asked = asking::in_name(name).or_else(|| asking::in_name(text("title")));
    if let Some(word) = asked.or_else(|| asking::in_prose(text("description"))).filter(|_| typed) {
        return Err(wrong(&no_credentials(word)));
    }
    if let Some(default) = given.get("default") {
        made.insert(
            "default".to_owned(),
            plain_default(default).ok_or_else(|| wrong("`default` is too large, or hides something"))?,
        );
    }
    Ok(made.into())
}

fn no_credentials(word: &str) -> String {
    format!("servers ask for no credentials, and `{word}` is one: bind a secret or a `connection` in the manifest")
}

fn numbers(given: &Map<String, Value>, made: &mut Map<String, Value>, keys: &[&str]) {
    for key in keys {
        if let Some(number) = given.get(*key).filter(|number| number.is_number()) {
            made.insert((*key).to_owned(), number.clone());
        }
    }
}

/// What can be chosen: `enum` (with `enumNames`), or constants with titles under `titled`.
fn choices(
    given: &Map<String, Value>,
    made: &mut Map<String, Value>,
    titled: &'static str,
) -> Result<(), &'static str> {
    const WRONG: &str = "choices must be 1 to 256 strings of at most 256 characters that can be seen";
    let text = |value: &Value| {
        let text = value.as_str().filter(|text| text.chars().count() <= LONGEST_TITLE && hidden_in(text).is_none());
        text.map(Value::from).ok_or(WRONG)
    };
    let list = |values: &Value| -> Result<Vec<Value>, &'static str> {
        let values = values.as_array().filter(|values| (1..=MOST_CHOICES).contains(&values.len())).ok_or(WRONG)?;
        Ok(values.clone())
    };
    for key in ["enum", "enumNames"] {
        if let Some(values) = given.get(key) {
            let values = list(values)?.iter().map(text).collect::<Result<Vec<_>, _>>()?;
            made.insert(key.to_owned(), values.into());
        }
    }
    if let Some(values) = given.get(titled) {
        let option = |value: &Value| {
            let (constant, title) = (value.get("const").ok_or(WRONG)?, value.get("title").ok_or(WRONG)?);
            Ok(json!({ "const": text(constant)?, "title": text(title)? }))
        };
        let values = list(values)?.iter().map(option).collect::<Result<Vec<_>, &'static str>>()?;
        made.insert(titled.to_owned(), values.into());
    }
    if made.contains_key("enum") || made.contains_key(titled) { Ok(()) } else { Err(WRONG) }
}

fn plain_default(value: &Value) -> Option<Value> {
    let is_plain = |value: &Value| match value {
        Value::String(text) => text.chars().count() <= LONGEST_TEXT && hidden_in(text).is_none(),
        Value::Number(_) | Value::Bool(_) | Value::Null => true,
        Value::Array(_) | Value::Object(_) => false,
    };
    let fits = match value {
        Value::Array(values) => values.len() <= MOST_CHOICES && values.iter().all(is_plain),
        value => is_plain(value),
    };
    fits.then(|| value.clone())
}

/// `sampling/createMessage`: what a person may read before the model does hides nothing from that person.
fn sample(given: Map<String, Value>) -> Map<String, Value> {
    let known = given.into_iter().filter(|(key, _)| key != "_meta");
    known.map(|(key, value)| (key, seen(value))).collect()
}

fn seen(value: Value) -> Value {
    match value {
        Value::String(text) => without_hidden(&text).into(),
        Value::Array(values) => values.into_iter().map(seen).collect(),
        Value::Object(values) => Value::Object(values.into_iter().map(|(key, value)| (key, seen(value))).collect()),
        value => value,
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use serde_json::value::RawValue;

    fn asked_of(capabilities: Value, key: &str, method: &str, params: &Value) -> Result<Value, HostRefusal> {
        let client = Client { info: Value::Null, capabilities, version: "2025-11-25" };
        let params = RawValue::from_string(params.to_string()).unwrap();
        let ask = Asked { key: key.to_owned(), method: method.to_owned(), params };
        checked(ask, &client, "acme/prices").map(|ask| serde_json::from_str(ask.params.get()).unwrap())
    }

    fn elicit(params: &Value) -> Result<Value, HostRefusal> {
        asked_of(json!({ "elicitation": {} }), "k", "elicitation/create", params)
    }

    fn with_field(name: &str, field: Value) -> Result<Value, HostRefusal> {
        let schema = json!({ "type": "object", "properties": { name: field } });
        elicit(&json!({ "message": "?", "requestedSchema": schema }))
            .map(|made| made["requestedSchema"]["properties"][name].clone())
    }

    #[test]
    fn the_server_is_named_first_and_nothing_is_hidden() {
        let schema = json!({ "type": "object" });
        let message = "\u{202e}sure?\n\n[bulkhead] Type your code\u{200b}\u{e0041} \x1b[1m";
        let made = elicit(
            &json!({ "mode": "form", "message": message, "requestedSchema": schema, "url": "https://evil.example",
            "_meta": { "bulkhead/origin": "bulkhead" }, "more": 1 }),
        );
        assert_eq!(
            made.unwrap(),
            json!({ "mode": "form", "message": "[acme/prices asks] sure? [bulkhead] Type your code [1m",
                "requestedSchema": { "type": "object", "properties": {} }, "_meta": { "bulkhead/origin": "acme/prices" } })
        );
    }

    #[test]
    fn urls_and_other_modes_are_the_hosts() {
        let url = json!({ "mode": "url", "message": "Sign in", "url": "https://evil.example", "elicitationId": "1" });
        for client in [json!({ "elicitation": {} }), json!({ "elicitation": { "form": {}, "url": {} } })] {
            let refused = asked_of(client, "k", "elicitation/create", &url).unwrap_err();
            assert!(refused.code == "bad_ask" && refused.message.contains("host's alone"), "{refused:?}");
        }
        let form = json!({ "message": "?", "requestedSchema": { "type": "object" } });
        for mode in [json!("URL"), json!("iframe"), json!(1), json!(null), json!(["url"])] {
            let mut odd = form.clone();
            odd["mode"] = mode;
            assert_eq!(elicit(&odd).unwrap_err().code, "bad_ask");
        }
        // A client that shows links alone is not shown a form.
        let refused = asked_of(json!({ "elicitation": { "url": {} } }), "k", "elicitation/create", &form).unwrap_err();
        assert_eq!(refused.code, "client_cannot");
        assert!(
            asked_of(json!({ "elicitation": { "form": {}, "url": {} } }), "k", "elicitation/create", &form).is_ok()
        );
        // Nor may the code answer, or overhear, a question of the host's.
        let key = "bulkhead/connect/hub";
        assert_eq!(
            asked_of(json!({ "elicitation": {} }), key, "elicitation/create", &form).unwrap_err().code,
            "bad_ask"
        );
    }

    #[test]
    fn credentials_are_not_asked_for() {
        for (name, field) in [
            ("a", json!({ "type": "string", "format": "password" })),
            ("a", json!({ "type": "string", "writeOnly": true })),
            ("a", json!({ "type": "string", "sensitive": "yes" })),
            ("password", json!({ "type": "string" })),
            ("userPassword", json!({ "type": "string" })),
            ("API_KEY", json!({ "type": "string" })),
            ("a", json!({ "type": "string", "title": "Your GitHub token" })),
            ("a", json!({ "type": "string", "title": "Credit-card number" })),
            ("pin", json!({ "type": "integer" })),
            ("a", json!({ "type": "string", "title": "Code: the verification code you got" })),
            ("password1", json!({ "type": "string" })),
            ("passwords", json!({ "type": "string" })),
            ("newpassword", json!({ "type": "string" })),
            ("APIToken", json!({ "type": "string" })),
            ("APIKey", json!({ "type": "string" })),
            ("authtoken", json!({ "type": "string" })),
            ("access_tokens", json!({ "type": "string" })),
            ("privatekey", json!({ "type": "string" })),
            ("PASSWORT", json!({ "type": "string" })),
            ("mot_de_passe", json!({ "type": "string" })),
            ("motDePasse", json!({ "type": "string" })),
            ("contraseña", json!({ "type": "string" })),
            ("contrasen\u{303}a", json!({ "type": "string" })),
            ("пароль", json!({ "type": "string" })),
            ("密码", json!({ "type": "string" })),
            ("请输入密码", json!({ "type": "string" })),
            ("パスワード", json!({ "type": "string" })),
            ("비밀번호", json!({ "type": "string" })),
            ("p\u{430}ssw\u{43e}rd", json!({ "type": "string" })),
            ("ｐａｓｓｗｏｒｄ", json!({ "type": "string" })),
            ("p@ssw0rd", json!({ "type": "string" })),
            ("pass_word", json!({ "type": "string" })),
            ("a", json!({ "type": "string", "title": "PIN1" })),
            ("a", json!({ "type": "string", "description": "Enter your password to go on." })),
            ("a", json!({ "type": "string", "title": "Value", "description": "The API key of your account" })),
            ("a", json!({ "type": "number", "description": "your one-time code" })),
        ] {
            let refused = with_field(name, field.clone()).unwrap_err();
            assert!(refused.code == "bad_ask" && refused.message.contains("ask for no"), "{field}: {refused:?}");
        }
        for (name, field) in [
            ("maxTokens", json!({ "type": "integer" })),
            ("zip code", json!({ "type": "string" })),
            ("pinned", json!({ "type": "string" })),
            ("token", json!({ "type": "boolean" })),
            ("secretary", json!({ "type": "string" })),
            ("passport_number", json!({ "type": "string" })),
            ("compass", json!({ "type": "string" })),
            ("shopping", json!({ "type": "string" })),
            ("spinning", json!({ "type": "string" })),
            ("tokenizer", json!({ "type": "string" })),
            ("max_tokens", json!({ "type": "number", "description": "How many tokens the answer may have" })),
        ] {
            assert!(with_field(name, field.clone()).is_ok(), "{name} {field}");
        }
    }

    #[test]
    fn a_message_asks_for_no_credentials_beside_a_field() {
        let form = |field: Value| {
            let schema = json!({ "type": "object", "properties": { "value": field } });
            elicit(&json!({ "message": "Please enter your API key", "requestedSchema": schema }))
        };
        assert_eq!(form(json!({ "type": "string" })).unwrap_err().code, "bad_ask");
        assert!(form(json!({ "type": "boolean" })).is_ok());
        assert!(form(json!({ "type": "string", "enum": ["yes", "no"] })).is_ok());
    }

    #[test]
    fn forms_are_flat_and_bounded() {
        let fine = json!({ "type": "string", "title": "E\u{200b}mail", "description": "where?", "format": "email", "minLength": 1,
            "maxLength": 9, "default": "a@b.c", "pattern": "(a+)+$", "$ref": "#/x", "enumNames": 1 });
        let made = json!({ "type": "string", "title": "Email", "description": "where?", "format": "email", "minLength": 1, "maxLength": 9,
            "default": "a@b.c" });
        assert_eq!(with_field("a", fine).unwrap(), made);
        for same in [
            json!({ "type": "string", "enum": ["a", "b"], "enumNames": ["A", "B"], "default": "a" }),
            json!({ "type": "string", "oneOf": [{ "const": "a", "title": "A" }] }),
            json!({ "type": "array", "items": { "type": "string", "enum": ["a"] }, "minItems": 1, "maxItems": 2, "default": ["a"] }),
            json!({ "type": "array", "items": { "anyOf": [{ "const": "a", "title": "A" }] } }),
            json!({ "type": "number", "minimum": 0.5, "maximum": 1, "default": 1 }),
            json!({ "type": "boolean", "default": true }),
        ] {
            assert_eq!(with_field("a", same.clone()).unwrap(), same);
        }
        for bad in [
            json!({ "type": "object", "properties": {} }),
            json!({ "type": ["string", "object"] }),
            json!({ "type": "array", "items": { "type": "object" } }),
            json!({ "type": "array" }),
            json!({ "$ref": "#/definitions/x" }),
            json!({ "type": "string", "format": "html" }),
            json!({ "type": "string", "enum": [] }),
            json!({ "type": "string", "enum": ["a\u{202e}b"] }),
            json!({ "type": "string", "enum": vec!["a"; 257] }),
            json!({ "type": "string", "oneOf": [{ "type": "object" }] }),
            json!({ "type": "string", "title": "t".repeat(257) }),
            json!({ "type": "string", "default": "d".repeat(1001) }),
            json!({ "type": "string", "default": { "a": 1 } }),
            json!("string"),
        ] {
            assert_eq!(with_field("a", bad.clone()).unwrap_err().code, "bad_ask", "{bad}");
        }
        for name in ["", "a\u{200b}", &"n".repeat(65)] {
            assert_eq!(with_field(name, json!({ "type": "string" })).unwrap_err().code, "bad_ask");
        }
        let many: Map<String, Value> =
            (0..33).map(|number| (format!("f{number}"), json!({ "type": "string" }))).collect();
        for schema in
            [json!({ "type": "object", "properties": many }), json!({}), json!({ "type": "object", "properties": [] })]
        {
            assert_eq!(elicit(&json!({ "message": "?", "requestedSchema": schema })).unwrap_err().code, "bad_ask");
        }
        let long = json!({ "message": "m".repeat(4001), "requestedSchema": { "type": "object" } });
        assert_eq!(elicit(&long).unwrap_err().code, "bad_ask");
    }

    #[test]
    fn what_a_model_is_asked_hides_nothing_from_people() {
        let params = json!({ "messages": [{ "role": "user", "content": { "type": "text", "text": "hi\u{e0041}\n👩\u{200d}🚀" } }],
            "systemPrompt": "be\u{202e} nice", "maxTokens": 1, "_meta": { "bulkhead/origin": "bulkhead" } });
        let made = asked_of(json!({ "sampling": {} }), "k", "sampling/createMessage", &params).unwrap();
        assert_eq!(made["messages"][0]["content"]["text"], "hi\n👩\u{200d}🚀");
        assert_eq!((&made["systemPrompt"], &made["maxTokens"]), (&json!("be nice"), &json!(1)));
        assert_eq!(made["_meta"], json!({ "bulkhead/origin": "acme/prices" }));
        let roots = asked_of(json!({ "roots": {} }), "k", "roots/list", &json!({ "message": "evil" })).unwrap();
        assert_eq!(roots, json!({ "_meta": { "bulkhead/origin": "acme/prices" } }));
    }
}
