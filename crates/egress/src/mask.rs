//! Masks secrets in what comes back, wherever a chunk ends. A star stands for each byte, so lengths stay.

use crate::credentials::Value;
use crate::denied::Denied;
use aho_corasick::{AhoCorasick, AhoCorasickKind, MatchKind};
use base64::Engine;
use base64::engine::general_purpose::{STANDARD_NO_PAD, URL_SAFE_NO_PAD};
use percent_encoding::{AsciiSet, NON_ALPHANUMERIC, percent_encode};
use std::sync::Arc;
use zeroize::Zeroizing;

/// What `encodeURIComponent` and form encoders leave as it is.
const COMPONENT: &AsciiSet = &NON_ALPHANUMERIC.remove(b'-').remove(b'_').remove(b'.').remove(b'~');
const LOOSE: &AsciiSet = &COMPONENT.remove(b'!').remove(b'\'').remove(b'(').remove(b')').remove(b'*');

/// Longer secrets than this in all, and finding them would cost more than the request.
const MOST_BYTES: usize = 64 << 10;

/// Finds secrets: as they are, and in base64, percent, hexadecimal and JSON notation. Capitals do not matter.
#[derive(Clone)]
pub(crate) struct Finder {
    finder: Option<Arc<AhoCorasick>>,
    forms: Arc<[Value]>,
}

impl Finder {
    pub(crate) fn new(values: &[Value]) -> Result<Finder, Denied> {
        if values.iter().map(|value| value.len()).sum::<usize>() > MOST_BYTES {
            return Err(Denied::refuse("the secrets of this request are too long to be masked"));
        }
        let mut forms: Vec<Value> = values.iter().flat_map(|value| forms(value)).collect();
        forms.iter_mut().for_each(|form| form.make_ascii_lowercase());
        forms.sort_by(|one, two| one.as_slice().cmp(two));
        forms.dedup();
        let finder = (!forms.is_empty()).then(|| {
            AhoCorasick::builder()
                .ascii_case_insensitive(true)
                .match_kind(MatchKind::Standard)
                .kind(Some(AhoCorasickKind::ContiguousNFA))
                .build(forms.iter().map(|form| form.as_slice()))
        });
        let finder = finder.transpose().map_err(|_| Denied::refuse("the secrets of this request cannot be masked"))?;
        Ok(Finder { finder: finder.map(Arc::new), forms: forms.into() })
    }

    /// Bytes of memory.
    pub(crate) fn size(&self) -> usize {
        let automaton = self.finder.as_ref().map_or(0, |finder| finder.memory_usage());
        automaton + self.forms.iter().map(|form| form.capacity() + size_of::<Value>()).sum::<usize>()
    }

    /// Whether it is the same one, and not another like it.
    #[cfg(test)]
    pub(crate) fn is(&self, other: &Finder) -> bool {
        Arc::ptr_eq(&self.forms, &other.forms)
    }

    pub(crate) fn is_empty(&self) -> bool {
        self.finder.is_none()
    }

    pub(crate) fn found_in(&self, bytes: &[u8]) -> bool {
        self.finder.as_ref().is_some_and(|finder| finder.is_match(bytes))
    }

    /// All of it at once.
    pub(crate) fn mask(&self, bytes: &[u8]) -> Vec<u8> {
        let mut masker = Masker::new(self.clone());
        let mut out = masker.push(bytes);
        out.extend(masker.finish());
        out
    }
}

fn forms(value: &[u8]) -> Vec<Value> {
    let mut out = vec![value.to_vec()];
    for set in [NON_ALPHANUMERIC, COMPONENT, LOOSE] {
        let encoded = percent_encode(value, set).to_string();
        out.push(encoded.replace("%20", "+").into_bytes());
        out.push(encoded.into_bytes());
    }
    out.push(value.iter().flat_map(|b| format!("{b:02x}").into_bytes()).collect());
    if let Ok(json) = serde_json::to_string(&String::from_utf8_lossy(value)).map(Zeroizing::new) {
        let inner = json.trim_start_matches('"').trim_end_matches('"');
        out.push(inner.replace('/', "\\/").into_bytes());
        out.push(inner.to_owned().into_bytes());
    }
    // Base64 of a text with the secret somewhere in it: three ways to be aligned. Characters that neighbours have a part
    // in are left out.
    for before in 0..3 {
        let padded: Value = Zeroizing::new([&[0; 3][..before], value].concat());
        let whole = padded.len() * 8 / 6;
        let first = (before * 8).div_ceil(6);
        for engine in [STANDARD_NO_PAD, URL_SAFE_NO_PAD] {
            let encoded = Zeroizing::new(engine.encode(&padded).into_bytes());
            if let Some(middle) = encoded.get(first..whole) {
                out.push(percent_encode(middle, NON_ALPHANUMERIC).to_string().into_bytes());
                out.push(middle.to_vec());
            }
        }
    }
    let out = out.into_iter().map(Zeroizing::new);
    out.filter(|form| form.len() >= 4).collect()
}

/// Masks a stream. Only an end that could be the beginning of a secret is held back.
pub(crate) struct Masker {
    secrets: Finder,
    held: Vec<u8>,
    /// How many bytes of `held` belong to a secret that began before it.
    tainted: usize,
}

impl Masker {
    pub(crate) fn new(secrets: Finder) -> Masker {
        Masker { secrets, held: Vec::new(), tainted: 0 }
    }

    pub(crate) fn push(&mut self, chunk: &[u8]) -> Vec<u8> {
        let Some(finder) = self.secrets.finder.clone() else {
            return chunk.to_vec();
        };
        let mut raw = std::mem::take(&mut self.held);
        raw.extend_from_slice(chunk);
        let cut = raw.len() - self.beginning(&raw);
        let mut out = raw.clone();
        let mut star = |from: usize, to: usize| out[from..to].fill(b'*');
        star(0, self.tainted);
        let mut tainted = self.tainted.saturating_sub(cut);
        for found in finder.find_overlapping_iter(&raw) {
            star(found.start(), found.end());
            if found.start() < cut {
                tainted = tainted.max(found.end().saturating_sub(cut));
            }
        }
        out.truncate(cut);
        self.held = raw.split_off(cut);
        self.tainted = tainted;
        out
    }

    /// What is left when nothing follows.
    pub(crate) fn finish(&mut self) -> Vec<u8> {
        let mut rest = std::mem::take(&mut self.held);
        if let Some(finder) = &self.secrets.finder {
            let spans: Vec<_> = finder.find_overlapping_iter(&rest).map(|found| found.range()).collect();
            spans.into_iter().chain(std::iter::once(0..self.tainted)).for_each(|span| rest[span].fill(b'*'));
        }
        self.tainted = 0;
        rest
    }

    /// How much of the end is the beginning of a secret, at most.
    fn beginning(&self, raw: &[u8]) -> usize {
        let longest = |form: &Value| {
            let most = raw.len().min(form.len() - 1);
            (1..=most).rev().find(|length| raw[raw.len() - length..].eq_ignore_ascii_case(&form[..*length]))
        };
        self.secrets.forms.iter().filter_map(longest).max().unwrap_or(0)
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use proptest::prelude::*;

    const SECRET: &str = "sk-live/4f+9 Q\"x";

    fn secrets() -> Finder {
        Finder::new(&[Zeroizing::new(SECRET.into())]).unwrap()
    }

    /// The secret as servers write it, each in some text. The second part is what must not be seen.
    fn written(before: &str, after: &str) -> Vec<(Vec<u8>, String)> {
        let whole = format!("{before}{SECRET}{after}");
        let percent = percent_encode(SECRET.as_bytes(), NON_ALPHANUMERIC).to_string();
        let component = percent_encode(SECRET.as_bytes(), COMPONENT).to_string();
        let hex: String = SECRET.bytes().map(|b| format!("{b:02X}")).collect();
        let json = serde_json::to_string(SECRET).unwrap();
        let json = json[1..json.len() - 1].to_owned();
        let wrap = |form: &str| (format!("{before}{form}{after}").into_bytes(), form.to_owned());
        let mut out = vec![
            wrap(SECRET),
            wrap(&SECRET.to_uppercase()),
            wrap(&percent),
            wrap(&percent.to_ascii_lowercase()),
            wrap(&component.replace("%20", "+")),
            wrap(&hex),
            wrap(&json),
            wrap(&json.replace('/', "\\/")),
        ];
        for engine in [STANDARD_NO_PAD, URL_SAFE_NO_PAD] {
            // All characters that only the secret decides.
            let (first, last) = ((before.len() * 8).div_ceil(6), (before.len() + SECRET.len()) * 8 / 6);
            let encoded = engine.encode(&whole);
            let middle = encoded[first..last].to_owned();
            out.push((encoded.into_bytes(), middle));
        }
        out
    }

    fn in_pieces(bytes: &[u8], cuts: &[usize]) -> Vec<u8> {
        let mut masker = Masker::new(secrets());
        let mut out = Vec::new();
        let mut rest = bytes;
        for cut in cuts {
            let (piece, left) = rest.split_at((*cut).min(rest.len()));
            out.extend(masker.push(piece));
            rest = left;
        }
        out.extend(masker.push(rest));
        out.extend(masker.finish());
        out
    }

    proptest! {
        #![proptest_config(ProptestConfig { cases: 48, failure_persistence: None, ..ProptestConfig::default() })]

        #[test]
        fn no_form_comes_through_however_it_is_cut(
            before in "[a-z:{ ]{0,9}", after in "[a-z}& ]{0,9}", cuts in proptest::collection::vec(0_usize..7, 0..40),
        ) {
            for (text, hidden) in written(&before, &after) {
                let out = in_pieces(&text, &cuts);
                prop_assert_eq!(out.len(), text.len());
                let shown = String::from_utf8_lossy(&out).into_owned();
                prop_assert!(!shown.contains(&hidden), "{} in {}", hidden, shown);
                prop_assert_eq!(out, secrets().mask(&text));
            }
        }

        #[test]
        fn other_text_comes_through_as_it_is(text in "(?s).{0,200}", cuts in proptest::collection::vec(0_usize..20, 0..40)) {
            prop_assume!(!secrets().found_in(text.as_bytes()));
            prop_assert_eq!(in_pieces(text.as_bytes(), &cuts), text.into_bytes());
        }

        /// What masks must not depend on where it is cut, also when secrets lie over one another.
        #[test]
        fn overlapping_secrets(text in "[ab]{0,60}", cuts in proptest::collection::vec(0_usize..4, 0..60)) {
            let secrets = Finder::new(&["ababab", "babbab", "aaaaaab"].map(|text| Zeroizing::new(text.into()))).unwrap();
            let mut masker = Masker::new(secrets.clone());
            let mut out = Vec::new();
            let mut rest = text.as_bytes();
            for cut in cuts {
                let (piece, left) = rest.split_at(cut.min(rest.len()));
                out.extend(masker.push(piece));
                rest = left;
            }
            out.extend(masker.push(rest));
            out.extend(masker.finish());
            let mut want = text.clone().into_bytes();
            for at in 0..text.len() {
                for secret in ["ababab", "babbab", "aaaaaab"] {
                    if text[at..].starts_with(secret) {
                        want[at..at + secret.len()].fill(b'*');
                    }
                }
            }
            prop_assert_eq!(String::from_utf8(out).unwrap(), String::from_utf8(want).unwrap());
        }
    }

    /// A stream of events must not wait for the next one.
    #[test]
    fn only_the_beginning_of_a_secret_is_held_back() {
        let mut masker = Masker::new(secrets());
        assert_eq!(masker.push(b"data: one\n\n"), b"data: one\n\n");
        assert_eq!(masker.push(b"data: sk-li"), b"data: ");
        assert_eq!(masker.push(b"ke\n\n"), b"sk-like\n\n");
        assert_eq!(masker.push(b"sk-live/4f"), b"");
        assert_eq!(masker.finish(), b"sk-live/4f");
    }

    #[test]
    fn secrets_that_cannot_be_found_are_refused() {
        assert!(Finder::new(&[Zeroizing::new(vec![b'x'; MOST_BYTES + 1])]).is_err());
        assert!(Finder::new(&[]).unwrap().is_empty());
    }
}
