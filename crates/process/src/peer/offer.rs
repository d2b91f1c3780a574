//! What a server offers: its lists, in the form that the surface of every wall has.

use super::greet::Greeting;
use super::message::METHOD_NOT_FOUND;
use super::{Params, raw};
use crate::driver::Peer;
use serde::{Serialize, Serializer};
use serde_json::value::RawValue;
use std::collections::{HashMap, HashSet};

const MOST_PAGES: usize = 1000;
const MOST_ENTRIES: usize = 10_000;
const LONGEST_NAME: usize = 128;

/// The greatest surface a server may show, in bytes of JSON.
pub(crate) const SURFACE_BYTES: usize = 1 << 20;

/// A surface, and the names in it that calls may use.
#[derive(Debug)]
pub(crate) struct Offered {
    pub(crate) surface: Box<RawValue>,
    pub(crate) tools: HashSet<String>,
    pub(crate) prompts: HashSet<String>,
}

#[derive(Serialize)]
#[serde(rename_all = "camelCase")]
struct Surface<'a> {
    #[serde(skip_serializing_if = "Option::is_none")]
    name: Option<&'a str>,
    #[serde(skip_serializing_if = "Option::is_none")]
    title: Option<&'a str>,
    #[serde(skip_serializing_if = "Option::is_none")]
    version: Option<&'a str>,
    #[serde(skip_serializing_if = "Option::is_none")]
    website_url: Option<&'a str>,
    #[serde(skip_serializing_if = "Option::is_none")]
    icons: Option<&'a RawValue>,
    #[serde(skip_serializing_if = "Option::is_none")]
    instructions: Option<&'a str>,
    tools: &'a [Entry],
    resources: &'a [Entry],
    resource_templates: &'a [Entry],
    prompts: &'a [Entry],
    #[serde(skip_serializing_if = "std::ops::Not::not")]
    completions: bool,
}

/// What a member of an entry must be.
#[derive(Clone, Copy, PartialEq, Eq)]
enum Form {
    Text,
    Object,
    List,
    Size,
}

/// One kind of list: where it is asked for, and what is shown of its entries.
struct Kind {
    method: &'static str,
    key: &'static str,
    /// What tells its entries apart.
    named: &'static str,
    members: &'static [(&'static str, Form)],
}

const TOOLS: Kind = Kind {
    method: "tools/list",
    key: "tools",
    named: "name",
    members: &[
        ("name", Form::Text),
        ("title", Form::Text),
        ("description", Form::Text),
        ("icons", Form::List),
        ("_meta", Form::Object),
        ("inputSchema", Form::Object),
        ("outputSchema", Form::Object),
        ("annotations", Form::Object),
        ("execution", Form::Object),
    ],
};

const PROMPTS: Kind = Kind {
    method: "prompts/list",
    key: "prompts",
    named: "name",
    members: &[
        ("name", Form::Text),
        ("title", Form::Text),
        ("description", Form::Text),
        ("icons", Form::List),
        ("_meta", Form::Object),
        ("arguments", Form::List),
    ],
};

const RESOURCES: Kind = Kind {
    method: "resources/list",
    key: "resources",
    named: "uri",
    members: &[
        ("uri", Form::Text),
        ("name", Form::Text),
        ("title", Form::Text),
        ("description", Form::Text),
        ("icons", Form::List),
        ("_meta", Form::Object),
        ("mimeType", Form::Text),
        ("annotations", Form::Object),
        ("size", Form::Size),
    ],
};

const TEMPLATES: Kind = Kind {
    method: "resources/templates/list",
    key: "resourceTemplates",
    named: "uriTemplate",
    members: &[
        ("uriTemplate", Form::Text),
        ("name", Form::Text),
        ("title", Form::Text),
        ("description", Form::Text),
        ("icons", Form::List),
        ("_meta", Form::Object),
        ("mimeType", Form::Text),
        ("annotations", Form::Object),
    ],
};

/// Reads all that the server offers. The error is for the server's author. `call`: in whose name it is asked.
pub(crate) async fn list(peer: &Peer, call: Option<u64>, greeting: &Greeting) -> Result<Offered, String> {
    let offers = &greeting.capabilities;
    // All at once: whoever waits for a program to start should not wait for one answer after the other.
    let ((tools, tool_names), (prompts, prompt_names), (resources, _), (templates, _)) = tokio::try_join!(
        read(peer, call, &TOOLS, offers.tools.is_some()),
        read(peer, call, &PROMPTS, offers.prompts.is_some()),
        read(peer, call, &RESOURCES, offers.resources.is_some()),
        read(peer, call, &TEMPLATES, offers.resources.is_some()),
    )?;
    if let Some(bad) = tool_names.iter().find(|name| !is_name(name)) {
        return Err(format!("tool `{bad}`: a name has 1 to {LONGEST_NAME} letters, digits, and _ . / -"));
    }
    if tools.is_empty() && prompts.is_empty() && resources.is_empty() && templates.is_empty() {
        return Err("the server offers no tool, resource or prompt".to_owned());
    }
    let info = &greeting.info;
    let surface = raw(&Surface {
        name: info.name.as_deref(),
        title: info.title.as_deref(),
        version: info.version.as_deref(),
        website_url: info.website_url.as_deref(),
        icons: info.icons.as_deref(),
        instructions: greeting.instructions.as_deref(),
        tools: &tools,
        resources: &resources,
        resource_templates: &templates,
        prompts: &prompts,
        completions: offers.completions.is_some(),
    });
    if surface.get().len() > SURFACE_BYTES {
        return Err(format!("what the server shows has more than {SURFACE_BYTES} bytes"));
    }
    Ok(Offered { surface, tools: tool_names, prompts: prompt_names })
}

fn is_name(name: &str) -> bool {
    let known = |byte: u8| byte.is_ascii_alphanumeric() || b"_./-".contains(&byte);
    (1..=LONGEST_NAME).contains(&name.len()) && name.bytes().all(known)
}

/// All pages of a list, with the names of its entries, which are there once each.
async fn read(
    peer: &Peer,
    call: Option<u64>,
    kind: &Kind,
    offered: bool,
) -> Result<(Vec<Entry>, HashSet<String>), String> {
    let (mut entries, mut names) = (Vec::new(), HashSet::new());
    let (mut cursor, mut bytes): (Option<Box<RawValue>>, usize) = (None, 0);
    for page in 0.. {
        if !offered {
            break;
        }
        if page == MOST_PAGES {
            return Err(format!("`{}` has more than {MOST_PAGES} pages", kind.method));
        }
        let params: Params = cursor.take().map(|cursor| ("cursor", cursor)).into_iter().collect();
        let result = match peer.request(call, kind.method, params).await {
            Ok(result) => result,
            Err(error) if page == 0 && error.code == METHOD_NOT_FOUND => break,
            Err(error) => return Err(format!("`{}` fails: {}", kind.method, error.message)),
        };
        bytes += result.get().len();
        let page = Page::read(&result, kind)?;
        if entries.len() + page.entries.len() > MOST_ENTRIES || bytes > 2 * SURFACE_BYTES {
            return Err(format!("`{}` has too many entries", kind.method));
        }
        for (entry, name) in page.entries {
            if !names.insert(name.clone()) {
                return Err(format!("`{}`: `{name}` is there twice", kind.method));
            }
            entries.push(entry);
        }
        cursor = page.next;
        if cursor.is_none() {
            break;
        }
    }
    Ok((entries, names))
}

struct Page {
    entries: Vec<(Entry, String)>,
    next: Option<Box<RawValue>>,
}

impl Page {
    fn read(result: &RawValue, kind: &Kind) -> Result<Page, String> {
        let Kind { method, key, .. } = kind;
        let mut members: HashMap<String, Box<RawValue>> =
            serde_json::from_str(result.get()).map_err(|_| format!("the answer to `{method}` is no object"))?;
        let list: Option<Vec<Box<RawValue>>> =
            members.remove(*key).and_then(|list| serde_json::from_str(list.get()).ok());
        let list = list.ok_or_else(|| format!("the answer to `{method}` has no array `{key}`"))?;
        let entries = list
            .iter()
            .enumerate()
            .map(|(index, entry)| Entry::read(entry, kind).map_err(|why| format!("`{method}`, entry {index}: {why}")));
        let next = members.remove("nextCursor").filter(|cursor| cursor.get() != "null");
        Ok(Page { entries: entries.collect::<Result<_, _>>()?, next })
    }
}

/// What is shown of one tool, prompt or resource.
struct Entry(Vec<(&'static str, Box<RawValue>)>);

impl Entry {
    /// The entry and its name. What nobody knows is left out, and a null is as good as nothing.
    fn read(given: &RawValue, kind: &Kind) -> Result<(Entry, String), String> {
        let mut members: HashMap<String, Box<RawValue>> =
            serde_json::from_str(given.get()).map_err(|_| "it is no object".to_owned())?;
        let mut shown = Vec::new();
        for (key, form) in kind.members {
            let Some(value) = members.remove(*key).filter(|value| value.get() != "null") else { continue };
            form.check(&value).map_err(|what| format!("`{key}` must be {what}"))?;
            shown.push((*key, value));
        }
        let named = shown.iter().find(|(key, _)| *key == kind.named);
        let name = named.and_then(|(_, name)| serde_json::from_str::<String>(name.get()).ok());
        let name = name.ok_or_else(|| format!("it has no `{}`", kind.named))?;
        if kind.named != "name" && !shown.iter().any(|(key, _)| *key == "name") {
            shown.insert(1, ("name", raw(&name)));
        }
        if kind.key == TOOLS.key && !shown.iter().any(|(key, _)| *key == "inputSchema") {
            shown.push(("inputSchema", raw(&serde_json::json!({ "type": "object" }))));
        }
        Ok((Entry(shown), name))
    }
}

impl Serialize for Entry {
    fn serialize<S: Serializer>(&self, serializer: S) -> Result<S::Ok, S::Error> {
        serializer.collect_map(self.0.iter().map(|(key, value)| (key, value)))
    }
}

impl Form {
    fn check(self, value: &RawValue) -> Result<(), &'static str> {
        let text = value.get();
        let (holds, what) = match self {
            Form::Text => (serde_json::from_str::<String>(text).is_ok(), "a string"),
            Form::Object => (text.starts_with('{'), "an object"),
            Form::List => (text.starts_with('['), "an array"),
            Form::Size => (text.parse::<u64>().is_ok(), "a number of bytes"),
        };
        if holds { Ok(()) } else { Err(what) }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn page(text: &str, kind: &Kind) -> Result<String, String> {
        let result = RawValue::from_string(text.to_owned()).unwrap();
        Page::read(&result, kind).map(|page| {
            let entries: Vec<_> = page.entries.into_iter().map(|(entry, _)| entry).collect();
            serde_json::to_string(&entries).unwrap()
        })
    }

    #[test]
    fn entries_are_shown_in_one_form() {
        assert_eq!(
            page(r#"{"tools":[{"description":null,"extra":1,"inputSchema":{"b":1,"a":2},"name":"x"}]}"#, &TOOLS)
                .unwrap(),
            r#"[{"name":"x","inputSchema":{"b":1,"a":2}}]"#
        );
        assert_eq!(
            page(r#"{"tools":[{"name":"x"}]}"#, &TOOLS).unwrap(),
            r#"[{"name":"x","inputSchema":{"type":"object"}}]"#
        );
        assert_eq!(
            page(r#"{"resources":[{"uri":"a:b","size":3}]}"#, &RESOURCES).unwrap(),
            r#"[{"uri":"a:b","name":"a:b","size":3}]"#
        );
    }

    #[test]
    fn what_does_not_fit_is_refused_by_name() {
        for (text, named) in [
            ("[]", "no object"),
            (r#"{"tools":{}}"#, "no array `tools`"),
            (r#"{"tools":[1]}"#, "entry 0"),
            (r#"{"tools":[{"name":"a"},{"title":"b"}]}"#, "entry 1: it has no `name`"),
            (r#"{"tools":[{"name":1}]}"#, "`name` must be a string"),
            (r#"{"tools":[{"name":"a","inputSchema":[]}]}"#, "`inputSchema` must be an object"),
        ] {
            let refused = page(text, &TOOLS).unwrap_err();
            assert!(refused.contains(named), "{text}: {refused}");
        }
    }

    #[test]
    fn names_are_plain() {
        assert!(is_name("a-b_c./1"));
        for name in ["", "a b", "ä", &"a".repeat(129)] {
            assert!(!is_name(name), "{name}");
        }
    }
}
