//! The input of a tool in the making: one flat object.

use crate::files::Place;
use crate::report::Notes;
use crate::text::{Names, fit, quote};
use serde_json::{Map, Value, json};
use std::collections::BTreeSet;

#[derive(Default)]
pub(crate) struct Input {
    names: Names,
    properties: Map<String, Value>,
    required: Vec<String>,
}

impl Input {
    /// Adds a property under a name that is free, which it gives back. `kind` is where the value goes: `query`, `body` …
    pub fn add(
        &mut self,
        name: &str,
        kind: &str,
        schema: Value,
        required: bool,
        at: &Place,
        notes: &mut Notes,
    ) -> String {
        let wanted = match fit(name) {
            wanted if wanted.is_empty() => kind.to_owned(),
            wanted => wanted,
        };
        let free = !self.properties.contains_key(&wanted);
        let argument = self.names.claim(&if free { wanted } else { fit(&format!("{kind}_{name}")) });
        if argument != name {
            notes.changed(at, format!("{kind} {} is the tool's argument {}", quote(name), quote(&argument)));
        }
        self.properties.insert(argument.clone(), schema);
        if required {
            self.required.push(argument.clone());
        }
        argument
    }

    /// Whether all of these could keep their names, or nearly.
    pub fn has_room<'a>(&self, names: impl Iterator<Item = &'a str>) -> Result<(), String> {
        let mut seen = BTreeSet::new();
        for name in names {
            let argument = fit(name);
            if argument.is_empty() || self.properties.contains_key(&argument) || !seen.insert(argument) {
                return Err(name.to_owned());
            }
        }
        Ok(())
    }

    pub fn schema(self, defs: Map<String, Value>) -> Value {
        let mut schema = json!({ "type": "object", "properties": self.properties, "additionalProperties": false });
        if !self.required.is_empty() {
            schema["required"] = self.required.into();
        }
        if !defs.is_empty() {
            schema["$defs"] = defs.into();
        }
        schema
    }
}
