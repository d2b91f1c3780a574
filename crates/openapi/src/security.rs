//! Credentials by name. The module says where they go, and never has one.

use crate::files::{At, Files, Place as Spot, Refusal};
use crate::report::Notes;
use crate::text::{Names, quote};
use serde::Serialize;
use serde_json::{Value, json};
use std::collections::{BTreeMap, BTreeSet};

/// Where a credential goes. The name of a header is in lower case.
#[derive(Clone, Debug, PartialEq, Eq, PartialOrd, Ord, Serialize)]
#[serde(rename_all = "lowercase", tag = "in", content = "name")]
pub enum Place {
    /// `Authorization: Bearer …`
    Bearer,
    /// `Authorization: Basic …`; the secret is `user:password`, and the host encodes it.
    Basic,
    Header(String),
    Query(String),
    Cookie(String),
}

/// A secret that the server needs to reach a host.
#[derive(Clone, Debug, PartialEq, Eq, PartialOrd, Ord, Serialize)]
pub struct SecretBinding {
    /// `^[A-Z][A-Z0-9_]{0,63}$`
    pub name: String,
    pub place: Place,
    pub host: String,
    /// The specification's name for it.
    pub scheme: String,
}

/// The schemes that operations use, with the names of their secrets.
#[derive(Default)]
pub(crate) struct Schemes {
    names: BTreeMap<String, String>,
    taken: Names,
    pub bindings: BTreeSet<SecretBinding>,
}

impl Schemes {
    /// The names depend on all schemes, not on the operations that happen to be selected.
    pub fn new(root: &At<'_>) -> Schemes {
        let mut schemes = Schemes::default();
        let declared = root.get("components").and_then(|components| components.get("securitySchemes"));
        for (name, _) in declared.iter().flat_map(At::entries) {
            let secret = schemes.taken.claim_secret(name);
            schemes.names.insert(name.to_owned(), secret);
        }
        schemes
    }

    /// What an operation sends along: the first alternative that can be used.
    pub fn choose(
        &mut self,
        operation: &At<'_>,
        files: &Files,
        host: &str,
        notes: &mut Notes,
    ) -> Result<Vec<Value>, Refusal> {
        let root = files.root();
        let Some(security) = operation.get("security").or_else(|| root.get("security")) else { return Ok(Vec::new()) };
        let alternatives: Vec<At<'_>> = security.items().collect();
        if alternatives.iter().any(|alternative| alternative.value.as_object().is_some_and(|map| map.is_empty())) {
            if alternatives.len() > 1 {
                notes.changed(&security.place, "credentials are optional here, and none are sent");
            }
            return Ok(Vec::new());
        }
        let mut refusals = Vec::new();
        for (index, alternative) in alternatives.iter().enumerate() {
            let places: Result<Vec<(String, Place)>, Refusal> = alternative
                .entries()
                .map(|(name, at)| Ok((name.to_owned(), place(&root, files, name, &at.place, notes)?)))
                .collect();
            match places.and_then(|places| distinct(places, &alternative.place)) {
                Ok(places) => {
                    for other in &alternatives[index + 1..] {
                        notes.ignored(&other.place, "another way to authenticate is used");
                    }
                    for refusal in refusals {
                        let Refusal { place, text } = refusal;
                        notes.ignored(&place, text);
                    }
                    return Ok(places.into_iter().map(|(name, place)| self.bind(&name, place, host)).collect());
                }
                Err(refusal) => refusals.push(refusal),
            }
        }
        match refusals.into_iter().next() {
            Some(refusal) => Err(refusal),
            None => Ok(Vec::new()),
        }
    }

    fn bind(&mut self, scheme: &str, place: Place, host: &str) -> Value {
        let secret = self.names.get(scheme).cloned().unwrap_or_else(|| self.taken.claim_secret(scheme));
        self.names.insert(scheme.to_owned(), secret.clone());
        let marker = format!("{{{{secret:{secret}}}}}");
        let shown = match &place {
            Place::Bearer => json!({ "in": "header", "name": "authorization", "value": format!("Bearer {marker}") }),
            Place::Basic => json!({ "in": "header", "name": "authorization", "value": format!("Basic {marker}") }),
            Place::Header(name) => json!({ "in": "header", "name": name, "value": marker }),
            Place::Query(name) => json!({ "in": "query", "name": name, "value": marker }),
            Place::Cookie(name) => json!({ "in": "cookie", "name": name, "value": marker }),
        };
        let (host, scheme) = (host.to_owned(), scheme.to_owned());
        self.bindings.insert(SecretBinding { name: secret, place, host, scheme });
        shown
    }
}

/// Two credentials cannot be in one place.
fn distinct(places: Vec<(String, Place)>, at: &Spot) -> Result<Vec<(String, Place)>, Refusal> {
    let spot = |place: &Place| match place {
        Place::Bearer | Place::Basic => Place::Header("authorization".to_owned()),
        other => other.clone(),
    };
    let different: BTreeSet<Place> = places.iter().map(|(_, place)| spot(place)).collect();
    if different.len() == places.len() {
        Ok(places)
    } else {
        Err(Refusal::new(at, "two credentials would go to the same place"))
    }
}

fn place(root: &At<'_>, files: &Files, name: &str, used: &Spot, notes: &mut Notes) -> Result<Place, Refusal> {
    let schemes = root.get("components").and_then(|components| components.get("securitySchemes"));
    let unknown = || Refusal::new(used, format!("there is no security scheme {}", quote(name)));
    let scheme = schemes.and_then(|schemes| schemes.get(name)).ok_or_else(unknown)?;
    let scheme = files.resolve(&scheme, notes)?;
    let refuse = |text: String| Err(Refusal::new(&scheme.place, text));
    match scheme.str("type") {
        Some("http") => match scheme.str("scheme").unwrap_or_default().to_ascii_lowercase().as_str() {
            "bearer" => Ok(Place::Bearer),
            "basic" => Ok(Place::Basic),
            other => refuse(format!("HTTP authentication {} is not supported", quote(other))),
        },
        Some("oauth2" | "openIdConnect") => {
            notes.changed(&scheme.place, "no flow is run; the secret is a bearer token that somebody got elsewhere");
            Ok(Place::Bearer)
        }
        Some("apiKey") => {
            let Some(name) = scheme.str("name") else { return refuse("it has no `name`".to_owned()) };
            match scheme.str("in") {
                Some("header") if is_token(name) => Ok(Place::Header(name.to_ascii_lowercase())),
                Some("query") => Ok(Place::Query(name.to_owned())),
                Some("cookie") if is_token(name) => Ok(Place::Cookie(name.to_owned())),
                Some("header" | "cookie") => refuse(format!("{} is no name for a header or a cookie", quote(name))),
                _ => refuse("`in` is none of `header`, `query` and `cookie`".to_owned()),
            }
        }
        Some(other) => refuse(format!("the type {} is not supported", quote(other))),
        None => refuse("it has no `type`".to_owned()),
    }
}

/// A name of a header or of a cookie.
pub(crate) fn is_token(name: &str) -> bool {
    const MARKS: &[u8] = b"!#$%&'*+-.^_`|~";
    (1..=256).contains(&name.len()) && name.bytes().all(|b| b.is_ascii_alphanumeric() || MARKS.contains(&b))
}
