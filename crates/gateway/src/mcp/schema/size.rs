//! How large a value is, in what its checking costs: counted on its text, before anything is made of it.

use super::cost::Cost;
use std::ops::{AddAssign, Mul};

/// Bytes that are compared, or counted, in the time of one step.
pub const LONGEST_MEMCMP: f64 = 64.0;

/// What a schema makes of one place of a value, in steps of some ten nanoseconds.
#[derive(Clone, Copy, Debug, Default, PartialEq)]
pub struct Weights {
    /// Parts of the schema that look at the place.
    pub visits: f64,
    /// For the place itself.
    pub place: f64,
    /// For each byte of its text.
    pub byte: f64,
    /// For each byte of its keys.
    pub key: f64,
    /// For each place at it and below.
    pub tree: f64,
    /// For each pair of lists or objects in the same list.
    pub square: f64,
}

impl AddAssign for Weights {
    fn add_assign(&mut self, other: Weights) {
        self.visits += other.visits;
        self.place += other.place;
        self.byte += other.byte;
        self.key += other.key;
        self.tree += other.tree;
        self.square += other.square;
    }
}

impl Mul<f64> for Weights {
    type Output = Weights;

    fn mul(self, times: f64) -> Weights {
        Weights {
            visits: self.visits * times,
            place: self.place * times,
            byte: self.byte * times,
            key: self.key * times,
            tree: self.tree * times,
            square: self.square * times,
        }
    }
}

impl Weights {
    /// The larger of each.
    pub fn max(self, other: Weights) -> Weights {
        Weights {
            visits: self.visits.max(other.visits),
            place: self.place.max(other.place),
            byte: self.byte.max(other.byte),
            key: self.key.max(other.key),
            tree: self.tree.max(other.tree),
            square: self.square.max(other.square),
        }
    }
}

/// What lies at one depth of a value.
#[derive(Clone, Copy, Debug, Default, PartialEq)]
struct Level {
    /// Values, and keys of objects.
    places: f64,
    /// Of text.
    bytes: f64,
    /// For each list: the lists and objects in it, times the bytes of the list.
    square: f64,
}

/// A value's places by their depth.
#[derive(Debug, Default, PartialEq)]
pub struct Size {
    levels: Vec<Level>,
}

/// A list or an object that is not closed yet.
struct Open {
    is_list: bool,
    start: usize,
    /// Lists and objects in it.
    inner: f64,
}

impl Size {
    /// Of a JSON text. One that is no JSON has some size as well.
    pub fn of(json: &[u8]) -> Size {
        let mut levels = vec![Level::default()];
        let mut open: Vec<Open> = Vec::new();
        let mut at = 0;
        while let Some(byte) = json.get(at) {
            match byte {
                b'[' | b'{' => {
                    levels[open.len()].places += 1.0;
                    open.last_mut().into_iter().for_each(|outer| outer.inner += 1.0);
                    open.push(Open { is_list: *byte == b'[', start: at, inner: 0.0 });
                    if levels.len() == open.len() {
                        levels.push(Level::default());
                    }
                }
                b']' | b'}' => {
                    if let Some(closed) = open.pop().filter(|closed| closed.is_list) {
                        levels[open.len()].square += closed.inner * (at - closed.start) as f64;
                    }
                }
                b'"' => {
                    let start = at;
                    at += 1;
                    while let Some(inside) = json.get(at).filter(|inside| **inside != b'"') {
                        at += if *inside == b'\\' { 2 } else { 1 };
                    }
                    let level = &mut levels[open.len()];
                    (level.places, level.bytes) = (level.places + 1.0, level.bytes + (at - start) as f64);
                }
                b',' | b':' | b' ' | b'\t' | b'\n' | b'\r' => {}
                _ => {
                    let rest = json[at..].iter();
                    let ends =
                        |byte: &u8| matches!(byte, b',' | b']' | b'}' | b':' | b' ' | b'\t' | b'\n' | b'\r' | b'"');
                    at += rest.take_while(|byte| !ends(byte)).count().max(1) - 1;
                    levels[open.len()].places += 1.0;
                }
            }
            at += 1;
        }
        Size { levels }
    }

    pub fn places(&self) -> f64 {
        self.levels.iter().map(|level| level.places).sum()
    }

    /// Steps that checking it takes at most.
    pub fn work(&self, cost: &Cost) -> f64 {
        let deepest = cost.levels.len().saturating_sub(1);
        let (mut work, mut below) = (0.0, 0.0);
        for (depth, level) in self.levels.iter().enumerate().rev() {
            let weights = cost.levels.get(depth.min(deepest)).copied().unwrap_or_default();
            below += level.places + level.bytes / LONGEST_MEMCMP;
            work += weights.place * level.places + weights.byte * level.bytes;
            work += weights.tree * below + weights.square * level.square / LONGEST_MEMCMP;
        }
        work
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn places_are_counted_by_their_depth() {
        let size = Size::of(br#"{"a": [1, 2.5e3, true, {"b": "x\"y"}], "c": null}"#);
        let places: Vec<f64> = size.levels.iter().map(|level| level.places).collect();
        assert_eq!(places, [1.0, 4.0, 4.0, 2.0]);
        assert_eq!(size.levels[3].bytes, 2.0 + 5.0);
        assert_eq!(size.levels[1].square, 30.0);
        assert_eq!(size.places(), 11.0);
    }

    #[test]
    fn what_is_no_json_has_a_size_as_well() {
        for text in ["", "]]]}", "\"", "\"\\", "[[[", "{\"a\":", "nonsense", ",", "1 2"] {
            assert!(Size::of(text.as_bytes()).places() <= text.len() as f64, "{text}");
        }
    }
}
