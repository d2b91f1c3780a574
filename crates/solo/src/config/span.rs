//! JSON with the places of its parts in the text.

use serde::Deserialize;
use serde::de::{Deserializer, MapAccess, Visitor};
use serde_json::value::RawValue;
use std::fmt;
use std::ops::Range;

/// A value and where it is.
#[derive(Debug, Clone, Copy)]
pub(super) struct Span<'a> {
    text: &'a str,
    whole: &'a str,
}

/// An object's members, in their order.
#[derive(Debug, Clone)]
pub(super) struct Object<'a> {
    pub(super) members: Vec<(String, Span<'a>)>,
}

pub(super) fn parse(text: &str) -> Result<Span<'_>, serde_json::Error> {
    let value: &RawValue = serde_json::from_str(text)?;
    Ok(Span { text: value.get(), whole: text })
}

impl<'a> Span<'a> {
    /// Its bytes in the whole text.
    pub(super) fn range(&self) -> Range<usize> {
        let start = self.text.as_ptr().addr() - self.whole.as_ptr().addr();
        start..start + self.text.len()
    }

    pub(super) fn text(&self) -> &'a str {
        self.text
    }

    pub(super) fn string(&self) -> Option<String> {
        serde_json::from_str(self.text).ok()
    }

    pub(super) fn array(&self) -> Option<Vec<Span<'a>>> {
        let values: Vec<&'a RawValue> = serde_json::from_str(self.text).ok()?;
        Some(values.into_iter().map(|value| self.inner(value)).collect())
    }

    /// None, too, if a name occurs twice: then nobody knows which one counts.
    pub(super) fn object(&self) -> Option<Object<'a>> {
        let Members(members) = serde_json::from_str(self.text).ok()?;
        let twice = |at: usize| members[..at].iter().any(|(name, _)| *name == members[at].0);
        if (0..members.len()).any(twice) {
            return None;
        }
        let members = members.into_iter().map(|(name, value)| (name, self.inner(value))).collect();
        Some(Object { members })
    }

    fn inner(&self, value: &'a RawValue) -> Span<'a> {
        Span { text: value.get(), whole: self.whole }
    }
}

impl<'a> Object<'a> {
    pub(super) fn get(&self, name: &str) -> Option<Span<'a>> {
        self.members.iter().find(|(member, _)| member == name).map(|(_, value)| *value)
    }
}

struct Members<'a>(Vec<(String, &'a RawValue)>);

impl<'de> Deserialize<'de> for Members<'de> {
    fn deserialize<D: Deserializer<'de>>(deserializer: D) -> Result<Members<'de>, D::Error> {
        struct Reader;
        impl<'de> Visitor<'de> for Reader {
            type Value = Members<'de>;

            fn expecting(&self, f: &mut fmt::Formatter) -> fmt::Result {
                f.write_str("an object")
            }

            fn visit_map<A: MapAccess<'de>>(self, mut map: A) -> Result<Members<'de>, A::Error> {
                let mut members = Vec::new();
                while let Some(member) = map.next_entry()? {
                    members.push(member);
                }
                Ok(Members(members))
            }
        }
        deserializer.deserialize_map(Reader)
    }
}
