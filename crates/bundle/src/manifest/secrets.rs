//! The tables `[[secrets]]`.

use super::read::{Reader, mismatch, text, truth, word};
use crate::binding::{Binding, Place};
use crate::{Format, SecretName, Wrong};
use std::collections::BTreeSet;
use std::ops::Range;
use toml::de::{DeTable, DeValue};

pub(super) const SECRETS: &str = "secrets";
const MOST_BINDINGS: usize = 64;

/// The keys of such a table, each with what it is.
pub(super) const SECRET_KEYS: &[(&str, &str, &str)] = &[
    ("name", "text: A-Z, 0-9 and _, a letter first", "Name of the secret. `bulkhead secret set` gives it its value."),
    ("hosts", "list of hosts, as in `egress`, without paths and methods", "Where it is sent. It goes nowhere else."),
    ("header", "text, in lower case", "It goes into this header."),
    ("query", "text", "It goes into this parameter of the query."),
    ("cookie", "text, in lower case", "It goes into this cookie."),
    ("body", "JSON pointer", "It goes into this field of a JSON body."),
    ("basic", "`true`", "It is `user:password`, for basic authentication."),
    (
        "aws",
        "table: `region`, `service`",
        "Requests are signed with it (SigV4). It is `ACCESS_KEY_ID:SECRET_ACCESS_KEY`, and `:SESSION_TOKEN` if there is one.",
    ),
    ("format", "text with `{}` in it", "What stands around it: `Bearer {}`. Not for `basic` and `aws`."),
    (
        "asked",
        "true or false",
        "Whether it goes only into requests that have `{{secret:NAME}}` at its place. Otherwise it goes into all.",
    ),
    (
        "connection",
        "name of a provider",
        "It is the token of the tenant's, or the caller's, connection to this provider, and no secret that is set.",
    ),
];

const PLACES: [&str; 6] = ["header", "query", "cookie", "body", "basic", "aws"];

/// What one table says so far.
#[derive(Default)]
struct Draft {
    name: Option<SecretName>,
    hosts: BTreeSet<crate::BoundHost>,
    places: Vec<Place>,
    format: Option<Format>,
    asked: bool,
    connection: Option<crate::ServerName>,
}

impl<'t> Reader<'t> {
    pub(super) fn bindings(&mut self, place: Range<usize>, value: &'t DeValue<'_>) -> BTreeSet<Binding> {
        let such = || format!("write `[[{SECRETS}]]` on a line of its own, and `name`, `hosts` and a place below it");
        let list = value.as_array().ok_or_else(|| mismatch(value, "a list of tables").hint(such()));
        let list = list.and_then(|list| {
            let most = Wrong::new(format!("there are {} of these, {MOST_BINDINGS} are allowed", list.len()));
            if list.len() > MOST_BINDINGS { Err(most) } else { Ok(list) }
        });
        let Some(list) = self.take(place, SECRETS, list) else { return BTreeSet::new() };
        let mut set = BTreeSet::new();
        for entry in list.iter() {
            let table = entry.get_ref().as_table().ok_or_else(|| mismatch(entry.get_ref(), "a table").hint(such()));
            let Some(table) = self.take(entry.span(), SECRETS, table) else { continue };
            let Some(binding) = self.binding(entry.span(), table) else { continue };
            let twice = Wrong::new(format!("`{}` is bound to the same place twice", binding.name));
            let new = if set.insert(binding) { Ok(()) } else { Err(twice) };
            self.take(entry.span(), SECRETS, new);
        }
        set
    }

    fn binding(&mut self, whole: Range<usize>, table: &'t DeTable<'_>) -> Option<Binding> {
        let before = self.found();
        let mut draft = Draft::default();
        for (key, value) in table.iter() {
            let (at, inner) = (value.span(), value.get_ref());
            let name = key.get_ref().as_ref();
            let full = format!("{SECRETS}.{name}");
            match name {
                "name" => draft.name = self.take(at, &full, word(inner)),
                "hosts" => draft.hosts = self.list(at, &full, inner),
                "format" => draft.format = self.take(at, &full, word(inner)),
                "asked" => draft.asked = self.take(at, &full, truth(inner)).unwrap_or_default(),
                "connection" => draft.connection = self.take(at, &full, word(inner)),
                place if PLACES.contains(&place) => draft.places.extend(self.take(at, &full, put(place, inner))),
                other => self.unknown(SECRETS, other, key.span(), inner),
            }
        }
        for (key, such) in [("name", "\"API_TOKEN\""), ("hosts", "[\"api.example.com\"]")] {
            let missing = Wrong::new("this key is needed").hint(format!("such as `{key} = {such}`"));
            let there = if table.contains_key(key) { Ok(()) } else { Err(missing) };
            self.take(whole.clone(), &format!("{SECRETS}.{key}"), there);
        }
        let checked = draft.check(table);
        self.take(whole, SECRETS, checked);
        if self.found() > before {
            return None;
        }
        let Draft { name, hosts, mut places, format, asked, connection } = draft;
        let format = format.unwrap_or_default();
        Some(Binding { name: name?, hosts, place: places.pop()?, format, asked, connection })
    }
}

impl Draft {
    fn check(&self, table: &DeTable<'_>) -> Result<(), Wrong> {
        let given = PLACES.iter().filter(|place| table.contains_key(**place)).count();
        if given != 1 {
            let wrong = Wrong::new(format!("one place is needed, there are {given}"));
            return Err(wrong.hint(format!("one of {}, such as `header = \"authorization\"`", PLACES.join(", "))));
        }
        if table.get("hosts").is_some_and(|hosts| hosts.get_ref().as_array().is_some_and(|list| list.is_empty())) {
            return Err(Wrong::new("a secret that goes to no host goes nowhere").hint("name its `hosts`"));
        }
        let made = matches!(self.places.first(), Some(Place::Basic | Place::Aws { .. }));
        if made && self.format.is_some() {
            return Err(Wrong::new("`basic` and `aws` have a format of their own"));
        }
        Ok(())
    }
}

fn put(place: &str, value: &DeValue<'_>) -> Result<Place, Wrong> {
    Ok(match place {
        "header" => Place::Header(word(value)?),
        "query" => Place::Query(word(value)?),
        "cookie" => Place::Cookie(word(value)?),
        "body" => Place::Body(word(value)?),
        "basic" if truth(value)? => Place::Basic,
        "basic" => return Err(Wrong::new("`basic` is true, or not there")),
        _ => {
            let table = value.as_table().ok_or_else(|| mismatch(value, "a table"))?;
            let member = |key: &str| {
                let such = Wrong::new("this is not a region and a service")
                    .hint("such as `aws = { region = \"eu-central-1\", service = \"s3\" }`");
                table.get(key).filter(|_| table.len() == 2).ok_or(such).and_then(|value| text(value.get_ref())?.parse())
            };
            Place::Aws { region: member("region")?, service: member("service")? }
        }
    })
}
