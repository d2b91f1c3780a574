//! The files of a program: the index of a layer.

use crate::canonical::{Excess, canonical, difference, digest, measure};
use crate::text::{message, quote};
use crate::word::word;
use crate::{Digest, Wrong};
use serde::de::{Error as _, MapAccess, Visitor};
use serde::{Deserialize, Deserializer, Serialize};
use serde_json::{Map, Value, json};
use std::borrow::Borrow;
use std::collections::BTreeSet;
use std::fmt;

const VERSION: u64 = 1;
const DEEPEST: u64 = 3;
const MOST_ENTRIES: usize = 60_000;
/// Folders are not named, so they are counted beside.
const MOST_FOLDERS: usize = 60_000;
const LARGEST: u64 = 1 << 30;
/// The kernel takes 4096 bytes, and where a layer lies comes before.
const LONGEST_PATH: usize = 2048;
const LONGEST_PART: usize = 255;
const DEEPEST_PATH: usize = 64;
/// What even an empty file takes of a disk.
const BLOCK: u64 = 4096;

word! {
    /// A file of a layer, with `/` between its parts: never absolute, never upwards. Packages have names that projects
    /// need not have, so this takes whatever a disk takes but control characters.
    LayerPath, layer_path
}

word! {
    /// Where a link leads: first up as often as it likes, then down. So it passes no other link on its way up.
    LinkTarget, link_target
}

/// What lies at a path.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum LayerEntry {
    File { sha256: Digest, size: u64, executable: bool },
    Link(LinkTarget),
}

/// The index of a layer: its files and links. Folders are there because of what is in them.
///
/// Nothing in it leads outside: a link climbs no higher than the layer, and nothing lies below a link.
///
/// A layer is uploaded as [`Layer::head`], the length of the index as four bytes, the highest first, and the index; then the
/// bytes of every file, in the order of the index, with nothing between them and nothing after.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Layer {
    entries: Vec<(LayerPath, LayerEntry)>,
    bytes: Vec<u8>,
    size: u64,
    folders: usize,
}

/// Why something is no layer.
#[derive(Clone, Debug, PartialEq, Eq, thiserror::Error)]
pub enum LayerError {
    #[error("the index is too large: it has {bytes} bytes, {most} are allowed")]
    TooLarge { bytes: usize, most: usize },
    #[error("the index is nested deeper than {most} levels")]
    TooDeep { most: u64 },
    #[error("the index cannot be read: {0}")]
    Unreadable(String),
    #[error("layers of version {0} are not known here, only those of version 1")]
    Version(u64),
    #[error("the index is not in its canonical form, from byte {at} on")]
    NotCanonical { at: usize },
    #[error("the layer has more than {most} {what}")]
    TooMany { what: &'static str, most: usize },
    #[error("the files have more than {most} bytes together")]
    TooBig { most: u64 },
    #[error("{} is there twice", quote(.0.as_str()))]
    Twice(LayerPath),
    #[error("{} is no folder, and something lies in it", quote(.0.as_str()))]
    NoFolder(LayerPath),
    #[error("the link {} leads out of the layer, to {}", quote(.path.as_str()), quote(.target.as_str()))]
    LeadsOut { path: LayerPath, target: LinkTarget },
}

impl Layer {
    /// No index is larger.
    pub const LARGEST_INDEX: usize = 16 << 20;

    /// The layer with these entries, in any order.
    pub fn new(entries: impl IntoIterator<Item = (LayerPath, LayerEntry)>) -> Result<Layer, LayerError> {
        // One more than are allowed is enough to see.
        let mut entries: Vec<_> = entries.into_iter().take(MOST_ENTRIES + 1).collect();
        entries.sort_by(|(a, _), (b, _)| in_index(a.as_str(), b.as_str()));
        Layer::of(entries)
    }

    /// Reads an index. Anything but its one canonical form is refused, to the byte.
    pub fn parse(bytes: &[u8]) -> Result<Layer, LayerError> {
        measure(bytes, Layer::LARGEST_INDEX, DEEPEST).map_err(|excess| match excess {
            Excess::Large { bytes, most } => LayerError::TooLarge { bytes, most },
            Excess::Deep(most) => LayerError::TooDeep { most },
        })?;
        let wire = serde_json::from_slice::<Wire>(bytes);
        let wire = wire.map_err(|error| LayerError::Unreadable(message(&error.to_string())))?;
        if wire.version != VERSION {
            return Err(LayerError::Version(wire.version));
        }
        let layer = Layer::of(wire.files.0)?;
        match difference(&layer.bytes, bytes) {
            Some(at) => Err(LayerError::NotCanonical { at }),
            None => Ok(layer),
        }
    }

    fn of(entries: Vec<(LayerPath, LayerEntry)>) -> Result<Layer, LayerError> {
        if entries.len() > MOST_ENTRIES {
            return Err(LayerError::TooMany { what: "files and links", most: MOST_ENTRIES });
        }
        let sizes = entries.iter().map(|(_, entry)| entry.size());
        let size = sizes.fold(0, u64::saturating_add);
        if size > LARGEST {
            return Err(LayerError::TooBig { most: LARGEST });
        }
        for (path, entry) in &entries {
            if let LayerEntry::Link(target) = entry
                && target.climbs() >= parts(path.as_str()).count()
            {
                return Err(LayerError::LeadsOut { path: path.clone(), target: target.clone() });
            }
        }
        let folders = count_folders(&entries)?;
        let files: Map<_, _> = entries.iter().map(|(path, entry)| (path.to_string(), entry.value())).collect();
        let bytes = canonical(&json!({ "version": VERSION, "files": files }));
        if bytes.len() > Layer::LARGEST_INDEX {
            return Err(LayerError::TooLarge { bytes: bytes.len(), most: Layer::LARGEST_INDEX });
        }
        Ok(Layer { entries, bytes, size, folders })
    }

    /// The canonical form.
    pub fn bytes(&self) -> &[u8] {
        &self.bytes
    }

    /// Names the layer.
    pub fn digest(&self) -> Digest {
        digest(&self.bytes)
    }

    /// What comes before the files in an upload.
    pub fn head(&self) -> Vec<u8> {
        let length = self.bytes.len() as u32; // 16 MiB at most
        [&length.to_be_bytes(), &self.bytes[..]].concat()
    }

    /// Bytes of all files.
    pub fn size(&self) -> u64 {
        self.size
    }

    /// Bytes that it takes of a disk, more or less: whole blocks, and one for whatever has no bytes.
    pub fn disk(&self) -> u64 {
        let blocks = |bytes: u64| bytes.div_ceil(BLOCK).max(1) * BLOCK;
        let entries: u64 = self.entries.iter().map(|(_, entry)| blocks(entry.size())).sum();
        entries + blocks(self.bytes.len() as u64) + (self.folders as u64 + 1) * BLOCK
    }

    /// In the order of the index.
    pub fn entries(&self) -> impl ExactSizeIterator<Item = (&LayerPath, &LayerEntry)> {
        self.entries.iter().map(|(path, entry)| (path, entry))
    }

    pub fn get(&self, path: &str) -> Option<&LayerEntry> {
        let found = self.entries.binary_search_by(|(each, _)| in_index(each.as_str(), path)).ok()?;
        Some(&self.entries[found].1)
    }

    /// The folders that its entries lie in, each after the one that it lies in.
    pub fn folders(&self) -> BTreeSet<&str> {
        let paths = self.entries.iter().map(|(path, _)| path.as_str());
        paths.flat_map(|path| path.match_indices('/').map(|(at, _)| &path[..at])).collect()
    }
}

impl LayerEntry {
    /// Bytes of it.
    pub fn size(&self) -> u64 {
        match self {
            LayerEntry::File { size, .. } => *size,
            LayerEntry::Link(_) => 0,
        }
    }

    pub(crate) fn value(&self) -> Value {
        match self {
            LayerEntry::File { sha256, size, executable } => {
                json!({ "sha256": sha256, "size": size, "executable": executable })
            }
            LayerEntry::Link(target) => json!({ "link": target }),
        }
    }
}

impl LinkTarget {
    /// How many folders it goes up.
    fn climbs(&self) -> usize {
        parts(&self.0).take_while(|part| *part == "..").count()
    }
}

/// Canonical JSON has its own order of names.
fn in_index(a: &str, b: &str) -> std::cmp::Ordering {
    a.encode_utf16().cmp(b.encode_utf16())
}

fn parts(path: &str) -> impl Iterator<Item = &str> {
    path.split('/')
}

/// Sorted by parts, whatever lies below an entry follows it at once, and what lies in a folder is together.
fn count_folders(entries: &[(LayerPath, LayerEntry)]) -> Result<usize, LayerError> {
    let mut paths: Vec<&LayerPath> = entries.iter().map(|(path, _)| path).collect();
    paths.sort_unstable_by(|a, b| parts(a.as_str()).cmp(parts(b.as_str())));
    let mut folders = 0;
    let mut before: Option<&LayerPath> = None;
    for path in paths {
        let above = parts(path.as_str()).count() - 1;
        let mut known = 0;
        if let Some(before) = before {
            let both = parts(before.as_str()).zip(parts(path.as_str()));
            known = both.take_while(|(a, b)| a == b).count();
            if known == parts(before.as_str()).count() {
                let before = before.clone();
                return Err(if known > above { LayerError::Twice(before) } else { LayerError::NoFolder(before) });
            }
        }
        folders += above.saturating_sub(known);
        before = Some(path);
    }
    if folders > MOST_FOLDERS {
        return Err(LayerError::TooMany { what: "folders", most: MOST_FOLDERS });
    }
    Ok(folders)
}

fn layer_path(text: &str) -> Result<(), Wrong> {
    check_path(text, text)
}

fn link_target(text: &str) -> Result<(), Wrong> {
    let mut down = text;
    while let Some(rest) = down.strip_prefix("../") {
        down = rest;
    }
    if text.len() <= LONGEST_PATH && down == ".." { Ok(()) } else { check_path(text, down) }
}

/// `part` is what of the text has to be a way down.
fn check_path(text: &str, part: &str) -> Result<(), Wrong> {
    let wrong = |what: &str| Err(Wrong::new(format!("{} {what}", quote(text))));
    if part.is_empty() {
        return wrong("leads to nothing");
    }
    if text.len() > LONGEST_PATH {
        return wrong(&format!("is longer than {LONGEST_PATH} bytes"));
    }
    if text.starts_with('/') {
        return wrong("is absolute");
    }
    if text.chars().any(char::is_control) {
        return wrong("has control characters");
    }
    if parts(text).count() > DEEPEST_PATH {
        return wrong(&format!("has more than {DEEPEST_PATH} parts"));
    }
    match parts(part).find(|part| matches!(*part, "" | "." | "..") || part.len() > LONGEST_PART) {
        Some("..") => wrong("leads upwards, where it may not"),
        Some("" | ".") => wrong("has an empty part or a `.`"),
        Some(_) => wrong(&format!("has a part that is longer than {LONGEST_PART} bytes")),
        None => Ok(()),
    }
}

#[derive(Deserialize)]
#[serde(deny_unknown_fields)]
struct Wire {
    version: u64,
    files: Entries,
}

/// As they come: one that is there twice is still seen.
struct Entries(Vec<(LayerPath, LayerEntry)>);

impl<'de> Deserialize<'de> for Entries {
    fn deserialize<D: Deserializer<'de>>(deserializer: D) -> Result<Entries, D::Error> {
        struct Collect;
        impl<'de> Visitor<'de> for Collect {
            type Value = Entries;

            fn expecting(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
                f.write_str("files by their paths")
            }

            fn visit_map<A: MapAccess<'de>>(self, mut map: A) -> Result<Entries, A::Error> {
                let mut entries = Vec::new();
                while let Some(entry) = map.next_entry()? {
                    if entries.len() == MOST_ENTRIES {
                        return Err(A::Error::custom(format!("there are more than {MOST_ENTRIES} files and links")));
                    }
                    entries.push(entry);
                }
                Ok(Entries(entries))
            }
        }
        deserializer.deserialize_map(Collect)
    }
}

#[derive(Deserialize)]
#[serde(deny_unknown_fields)]
struct WireEntry {
    sha256: Option<Digest>,
    size: Option<u64>,
    executable: Option<bool>,
    link: Option<LinkTarget>,
}

impl<'de> Deserialize<'de> for LayerEntry {
    fn deserialize<D: Deserializer<'de>>(deserializer: D) -> Result<LayerEntry, D::Error> {
        match WireEntry::deserialize(deserializer)? {
            WireEntry { sha256: Some(sha256), size: Some(size), executable: Some(executable), link: None } => {
                Ok(LayerEntry::File { sha256, size, executable })
            }
            WireEntry { sha256: None, size: None, executable: None, link: Some(target) } => {
                Ok(LayerEntry::Link(target))
            }
            _ => Err(D::Error::custom("an entry is a file, with `executable`, `sha256` and `size`, or a `link`")),
        }
    }
}
