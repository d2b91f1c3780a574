//! JSON, with an eye on keys that are there twice.

use super::{Budget, MOST_DEPTH, MOST_POINTER, Tree, too_deep, too_long, twice};
use serde::de::{DeserializeSeed, Deserializer, Error, MapAccess, SeqAccess, Visitor};
use serde_json::{Map, Value};
use std::fmt;

pub enum Failed {
    NoJson(String),
    Bound(String),
}

pub fn read(text: &str) -> Result<Tree, Failed> {
    let mut reader = Reader { budget: Budget::new(), lost: Vec::new(), pointer: String::new(), depth: 0, bound: None };
    let mut json = serde_json::Deserializer::from_str(text);
    let value = (&mut reader).deserialize(&mut json).and_then(|value| json.end().map(|()| value));
    match (value, reader.bound) {
        (Ok(value), _) => Ok(Tree { value, lost: reader.lost }),
        (Err(_), Some(bound)) => Err(Failed::Bound(bound)),
        (Err(error), None) => Err(Failed::NoJson(error.to_string())),
    }
}

struct Reader {
    budget: Budget,
    lost: Vec<(String, String)>,
    pointer: String,
    depth: usize,
    bound: Option<String>,
}

impl Reader {
    fn take<E: Error>(&mut self, text: usize) -> Result<(), E> {
        self.budget.take(1, text).map_err(|message| self.stop(message))
    }

    fn stop<E: Error>(&mut self, message: String) -> E {
        self.bound = Some(message);
        E::custom("bound")
    }

    /// Runs one level deeper, at this key.
    fn below<T, E: Error>(&mut self, key: &str, read: impl FnOnce(&mut Reader) -> Result<T, E>) -> Result<T, E> {
        if self.depth == MOST_DEPTH {
            return Err(self.stop(too_deep()));
        }
        let length = self.pointer.len();
        self.pointer.push('/');
        self.pointer.push_str(&crate::files::escape(key));
        if self.pointer.len() > MOST_POINTER {
            return Err(self.stop(too_long()));
        }
        self.depth += 1;
        let value = read(self)?;
        self.depth -= 1;
        self.pointer.truncate(length);
        Ok(value)
    }
}

impl<'de> DeserializeSeed<'de> for &mut Reader {
    type Value = Value;

    fn deserialize<D: Deserializer<'de>>(self, deserializer: D) -> Result<Value, D::Error> {
        deserializer.deserialize_any(self)
    }
}

impl<'de> Visitor<'de> for &mut Reader {
    type Value = Value;

    fn expecting(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str("JSON")
    }

    fn visit_unit<E: Error>(self) -> Result<Value, E> {
        self.take(0).map(|()| Value::Null)
    }

    fn visit_bool<E: Error>(self, value: bool) -> Result<Value, E> {
        self.take(0).map(|()| value.into())
    }

    fn visit_i64<E: Error>(self, value: i64) -> Result<Value, E> {
        self.take(0).map(|()| value.into())
    }

    fn visit_u64<E: Error>(self, value: u64) -> Result<Value, E> {
        self.take(0).map(|()| value.into())
    }

    fn visit_f64<E: Error>(self, value: f64) -> Result<Value, E> {
        self.take(0).map(|()| value.into())
    }

    fn visit_str<E: Error>(self, value: &str) -> Result<Value, E> {
        self.take(value.len()).map(|()| value.into())
    }

    fn visit_seq<A: SeqAccess<'de>>(self, mut items: A) -> Result<Value, A::Error> {
        self.take(0)?;
        let mut list = Vec::new();
        while let Some(item) = self.below(&list.len().to_string(), |below| items.next_element_seed(below))? {
            list.push(item);
        }
        Ok(Value::Array(list))
    }

    fn visit_map<A: MapAccess<'de>>(self, mut entries: A) -> Result<Value, A::Error> {
        self.take(0)?;
        let mut map = Map::new();
        while let Some(key) = entries.next_key::<String>()? {
            self.take(key.len())?;
            let value = self.below(&key, |below| entries.next_value_seed(below))?;
            if map.contains_key(&key) {
                self.lost.push(twice(&self.pointer, &key));
            } else {
                map.insert(key, value);
            }
        }
        Ok(Value::Object(map))
    }
}
