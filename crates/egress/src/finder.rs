//! Finds secrets in text, however it spells them, in a time that does not tell what they are.
//!
//! A search that goes on where a text begins like a secret, and stops where it does not, can be measured: code inside could store guesses
//! upstream and read them back with a watch. Here each byte of each secret has one bit, and each byte of text moves all bits at once by
//! the same operations, whichever of them are set. Only the text and the lengths of the secrets decide what is done.

use crate::credentials::{MOST_SEARCHED, Value};
use crate::denied::Denied;
use crate::mask::Masker;
use crate::spelling::{self, LONGEST, Reading, fold};
use crate::words;
use base64::Engine;
use base64::engine::general_purpose::STANDARD_NO_PAD;
use std::collections::VecDeque;
use std::ops::Range;
use std::sync::Arc;
use zeroize::Zeroizing;

/// A longer secret is found piece by piece, so that what is held back need not be as long as the longest secret.
const WINDOW: usize = 256;
/// Pieces overlap, because base64 mixes a byte with its neighbours.
const OVERLAP: usize = 8;
const BITS: usize = u64::BITS as usize;
/// What a step backward costs beside its words, in words.
const STEP: usize = 8;

/// How far each form has been read: a bit is set when the byte that it stands for was the last one read.
pub(crate) type Bits = Zeroizing<Vec<u64>>;

/// Finds secrets: as they are, in hexadecimal and in base64, each in every spelling that [`spelling`] knows.
#[derive(Clone)]
pub(crate) struct Finder {
    forms: Arc<Forms>,
    /// Whether a secret has an empty line in it, so that it may be spread over two events of a stream.
    pub(crate) spans_events: bool,
}

/// The forms in which secrets are looked for. Each begins with a word of its own.
struct Forms {
    /// The words of each form.
    words: Vec<Range<usize>>,
    /// Words in all.
    width: usize,
    /// For each byte of text the places in the forms at which it is right.
    places: Bits,
    first: Bits,
    last: Bits,
}

impl Finder {
    pub(crate) fn new(values: &[Value]) -> Result<Finder, Denied> {
        if values.iter().map(|value| value.len()).sum::<usize>() > MOST_SEARCHED {
            return Err(Denied::refuse(format!(
                "the secrets that would have to be masked have more than {MOST_SEARCHED} bytes together"
            )));
        }
        let mut forms: Vec<Value> = values.iter().flat_map(|value| windows(value)).flat_map(forms).collect();
        forms.sort_by(|one, two| one.as_slice().cmp(two));
        forms.dedup();
        let spans_events = values.iter().any(|value| has_empty_line(value));
        Ok(Finder { forms: Arc::new(Forms::new(&forms)), spans_events })
    }

    /// Bytes of memory.
    pub(crate) fn size(&self) -> usize {
        let forms = &self.forms;
        size_of::<u64>() * (forms.places.len() + 2 * forms.width) + size_of::<Range<usize>>() * forms.words.len()
    }

    /// Whether it is the same one, and not another like it.
    #[cfg(test)]
    pub(crate) fn is(&self, other: &Finder) -> bool {
        Arc::ptr_eq(&self.forms, &other.forms)
    }

    pub(crate) fn is_empty(&self) -> bool {
        self.forms.width == 0
    }

    pub(crate) fn found_in(&self, bytes: &[u8]) -> bool {
        self.mask(bytes).1 > 0
    }

    /// Masks all of it at once, and tells how many secrets were found.
    pub(crate) fn mask(&self, bytes: &[u8]) -> (Vec<u8>, u64) {
        let mut masker = Masker::new(self.clone(), false);
        let mut out = masker.push(bytes);
        out.extend(masker.finish());
        (out, masker.found())
    }

    /// Words that say how far every form has been read.
    pub(crate) fn width(&self) -> usize {
        self.forms.width
    }

    /// One byte further: what was read before goes on where the byte is right, and each form may begin.
    pub(crate) fn step(&self, byte: u8, before: &[u64], after: &mut [u64]) {
        words::advance(before, &self.forms.first, self.forms.places(byte), after);
    }

    /// What was read before goes on without a byte. Behind a whole secret nothing is left out: a line break there is no part of it.
    pub(crate) fn skip(&self, before: &[u64], after: &mut [u64]) {
        words::without(before, &self.forms.last, after);
    }

    /// Whether a form has been read to its end.
    pub(crate) fn is_whole(&self, bits: &[u64]) -> bool {
        words::meet(bits, &self.forms.last)
    }

    /// Where the longest form begins that ends at the end of this text, after so many words of work as there are left. When they are spent,
    /// or it begins before the text, all of the text counts.
    pub(crate) fn beginning(&self, bits: &[u64], raw: &[u8], work: &mut usize) -> usize {
        // The last byte of a form is in its last word.
        let whole = |words: &&Range<usize>| bits[words.end - 1] & self.forms.last[words.end - 1] != 0;
        let mut earliest = raw.len();
        for words in self.forms.words.iter().filter(whole) {
            // With nothing left, no further form is looked at either.
            if *work == 0 {
                return 0;
            }
            earliest = earliest.min(self.forms.beginning(words, raw, work));
        }
        earliest
    }
}

impl Forms {
    fn new(forms: &[Value]) -> Forms {
        let mut words = Vec::with_capacity(forms.len());
        let mut width = 0;
        for form in forms {
            let next = width + form.len().div_ceil(BITS);
            words.push(width..next);
            width = next;
        }
        let none = |rows: usize| Zeroizing::new(vec![0_u64; rows * width]);
        let (mut places, mut first, mut last) = (none(1 << u8::BITS), none(1), none(1));
        for (form, words) in forms.iter().zip(&words) {
            let bit = |at: usize| (words.start + at / BITS, 1_u64 << (at % BITS));
            for (at, byte) in form.iter().enumerate() {
                let (word, bit) = bit(at);
                places[usize::from(*byte) * width + word] |= bit;
            }
            let ((begin, one), (end, two)) = (bit(0), bit(form.len() - 1));
            first[begin] |= one;
            last[end] |= two;
        }
        // What the search takes for the same byte has the same places.
        for byte in (0..=u8::MAX).filter(|byte| fold(*byte) != *byte) {
            let from = usize::from(fold(byte)) * width;
            places.copy_within(from..from + width, usize::from(byte) * width);
        }
        Forms { words, width, places, first, last }
    }

    fn places(&self, byte: u8) -> &[u64] {
        let from = usize::from(byte) * self.width;
        self.places.get(from..from + self.width).unwrap_or_default()
    }

    /// Goes back through the text, by every way to read it, until the form in these words is at its beginning: the last such place, and
    /// those right before it, which are backslashes.
    fn beginning(&self, words: &Range<usize>, raw: &[u8], work: &mut usize) -> usize {
        let mut ways = Backward::new(self, words);
        let mut list: Vec<Reading> = Vec::new();
        let mut last = None;
        for at in (0..raw.len()).rev() {
            spelling::readings(&raw[at..], &mut list);
            let cost = (1 + list.len()) * (words.len() + STEP);
            if *work < cost {
                *work = 0;
                return 0;
            }
            *work -= cost;
            match (ways.step(raw[at], &list), last) {
                (true, _) => last = Some(at),
                (false, Some(last)) => return last,
                (false, None) => {}
            }
        }
        last.unwrap_or(0)
    }
}

/// How one form can be read backward from its end. A bit is set when what stands behind its byte is right.
struct Backward<'a> {
    forms: &'a Forms,
    words: Range<usize>,
    /// The bits at the place that was read last and at those behind it.
    near: VecDeque<Vec<u64>>,
}

impl<'a> Backward<'a> {
    fn new(forms: &'a Forms, words: &Range<usize>) -> Backward<'a> {
        let end = forms.last[words.clone()].to_vec();
        Backward { forms, words: words.clone(), near: [end].into() }
    }

    /// One place further to the front. Tells whether the form begins here.
    fn step(&mut self, byte: u8, list: &[Reading]) -> bool {
        let (mut here, mut begins) = (vec![0; self.words.len()], false);
        let plain = [(1, &[byte][..])];
        let ways = plain.into_iter().chain(list.iter().map(|one| (one.length, one.bytes())));
        for (length, bytes) in ways {
            let Some(behind) = self.near.get(length - 1) else { continue };
            let mut bits = behind.clone();
            for byte in bytes.iter().rev() {
                begins |= words::retreat(&mut bits, &self.forms.places(*byte)[self.words.clone()]);
            }
            if bytes.is_empty() {
                words::without(behind, &self.forms.last[self.words.clone()], &mut bits);
            }
            words::join(&mut here, &bits);
        }
        self.near.push_front(here);
        self.near.truncate(LONGEST);
        begins
    }
}

/// The pieces in which a secret is looked for.
fn windows(value: &[u8]) -> Vec<&[u8]> {
    if value.len() <= WINDOW {
        return vec![value];
    }
    let last = value.len() - WINDOW;
    let starts = (0..last).step_by(WINDOW - OVERLAP).chain([last]);
    starts.map(|start| &value[start..start + WINDOW]).collect()
}

fn forms(value: &[u8]) -> Vec<Value> {
    let mut out = vec![value.to_vec()];
    out.push(value.iter().flat_map(|b| format!("{b:02x}").into_bytes()).collect());
    // Base64 of a text with the secret somewhere in it: three ways to be aligned. Characters that neighbours have a part
    // in are left out.
    for before in 0..3 {
        let padded: Value = Zeroizing::new([&[0; 3][..before], value].concat());
        let (first, whole) = ((before * 8).div_ceil(6), padded.len() * 8 / 6);
        let encoded = Zeroizing::new(STANDARD_NO_PAD.encode(&padded).into_bytes());
        out.extend(encoded.get(first..whole).map(<[u8]>::to_vec));
    }
    out.iter_mut().flatten().for_each(|byte| *byte = fold(*byte));
    out.into_iter().map(Zeroizing::new).filter(|form| !form.is_empty()).collect()
}

fn has_empty_line(value: &[u8]) -> bool {
    (1..=value.len()).any(|end| ends_event(&value[..end]))
}

/// Whether an event of a stream ends here: at an empty line.
pub(crate) fn ends_event(raw: &[u8]) -> bool {
    [&b"\n\n"[..], b"\r\r", b"\n\r\n"].iter().any(|end| raw.ends_with(end))
}
