//! Finds secrets in text, however it spells them.

use crate::credentials::Value;
use crate::denied::Denied;
use crate::mask::Masker;
use crate::spelling::{self, Reading, fold};
use aho_corasick::automaton::{Automaton, StateID};
use aho_corasick::nfa::contiguous::NFA;
use aho_corasick::{Anchored, BuildError, dfa::DFA};
use base64::Engine;
use base64::engine::general_purpose::STANDARD_NO_PAD;
use std::collections::HashSet;
use std::sync::Arc;
use zeroize::Zeroizing;

/// Longer secrets than this in all, and finding them would cost more than the request.
const MOST_BYTES: usize = 64 << 10;
/// A longer secret is found piece by piece, so that what is held back need not be as long as the longest secret.
const WINDOW: usize = 256;
/// Pieces overlap, because base64 mixes a byte with its neighbours.
const OVERLAP: usize = 8;
/// Up to this many bytes of patterns there is a table with one step for each byte of text, whatever the text; more would not fit.
const MOST_IN_TABLE: usize = 4 << 10;

enum Machine {
    Table(DFA),
    Links(NFA),
}

/// Finds secrets: as they are, in hexadecimal and in base64, each in every spelling that [`spelling`] knows.
#[derive(Clone)]
pub(crate) struct Finder {
    machine: Option<Arc<Machine>>,
    forms: Arc<[Value]>,
    /// Whether a secret has an empty line in it, so that it may be spread over two events of a stream.
    pub(crate) spans_events: bool,
}

impl Finder {
    pub(crate) fn new(values: &[Value]) -> Result<Finder, Denied> {
        if values.iter().map(|value| value.len()).sum::<usize>() > MOST_BYTES {
            return Err(Denied::refuse(format!(
                "the secrets that the deployment is bound to have more than {MOST_BYTES} bytes and cannot be masked"
            )));
        }
        let mut forms: Vec<Value> = values.iter().flat_map(|value| windows(value)).flat_map(forms).collect();
        forms.sort_by(|one, two| one.as_slice().cmp(two));
        forms.dedup();
        let machine = (!forms.is_empty()).then(|| Machine::new(&forms)).transpose();
        let machine = machine.map_err(|_| Denied::refuse("the secrets of this request cannot be masked"))?;
        let spans_events = values.iter().any(|value| has_empty_line(value));
        Ok(Finder { machine: machine.map(Arc::new), forms: forms.into(), spans_events })
    }

    /// Bytes of memory.
    pub(crate) fn size(&self) -> usize {
        let machine = self.machine.as_ref().map_or(0, |machine| match &**machine {
            Machine::Table(dfa) => dfa.memory_usage(),
            Machine::Links(nfa) => nfa.memory_usage(),
        });
        machine + self.forms.iter().map(|form| form.capacity() + size_of::<Value>()).sum::<usize>()
    }

    /// Whether it is the same one, and not another like it.
    #[cfg(test)]
    pub(crate) fn is(&self, other: &Finder) -> bool {
        Arc::ptr_eq(&self.forms, &other.forms)
    }

    pub(crate) fn is_empty(&self) -> bool {
        self.machine.is_none()
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

    pub(crate) fn start(&self) -> Option<StateID> {
        match &**self.machine.as_ref()? {
            Machine::Table(dfa) => dfa.start_state(Anchored::No).ok(),
            Machine::Links(nfa) => nfa.start_state(Anchored::No).ok(),
        }
    }

    /// One byte further, in its folded form.
    pub(crate) fn step(&self, state: StateID, byte: u8) -> StateID {
        match self.machine.as_deref() {
            Some(Machine::Table(dfa)) => dfa.next_state(Anchored::No, state, fold(byte)),
            Some(Machine::Links(nfa)) => nfa.next_state(Anchored::No, state, fold(byte)),
            None => state,
        }
    }

    pub(crate) fn is_match(&self, state: StateID) -> bool {
        match self.machine.as_deref() {
            Some(Machine::Table(dfa)) => dfa.is_match(state),
            Some(Machine::Links(nfa)) => nfa.is_match(state),
            None => false,
        }
    }

    /// Where the longest form begins that ends at the end of this text. When the steps are spent, all of the text counts.
    pub(crate) fn beginning(&self, state: StateID, raw: &[u8], steps: &mut usize) -> Option<usize> {
        fn patterns(machine: &impl Automaton, state: StateID) -> Vec<usize> {
            (0..machine.match_len(state)).map(|index| machine.match_pattern(state, index).as_usize()).collect()
        }
        let ended = match self.machine.as_deref()? {
            Machine::Table(dfa) => patterns(dfa, state),
            Machine::Links(nfa) => patterns(nfa, state),
        };
        ended.iter().filter_map(|at| beginning(self.forms.get(*at)?, raw, steps)).min()
    }
}

impl Machine {
    fn new(forms: &[Value]) -> Result<Machine, BuildError> {
        let patterns = forms.iter().map(|form| form.as_slice());
        if forms.iter().map(|form| form.len()).sum::<usize>() <= MOST_IN_TABLE {
            DFA::builder().prefilter(false).build(patterns).map(Machine::Table)
        } else {
            NFA::builder().prefilter(false).build(patterns).map(Machine::Links)
        }
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

/// From where the text up to its end can be read as this form: the last such place, and those right before it, which are backslashes.
/// With no steps left it is the whole text: a server that repeats a secret without end must not cost the host its time.
fn beginning(form: &[u8], raw: &[u8], steps: &mut usize) -> Option<usize> {
    // No spelling of a byte is shorter than the byte.
    let latest = raw.len().checked_sub(form.len())?;
    if raw[latest..].iter().map(|byte| fold(*byte)).eq(form.iter().copied()) {
        return Some(latest);
    }
    let can_begin = |from: &usize| spelling::is_special(raw[*from]) || Some(&fold(raw[*from])) == form.first();
    let mut last = None;
    for from in (0..=latest).rev() {
        let fits = can_begin(&from) && reads(form, &raw[from..], steps);
        *steps = steps.saturating_sub(1);
        if *steps == 0 {
            return Some(0);
        }
        match (fits, last) {
            (true, _) => last = Some(from),
            (false, Some(_)) => break,
            (false, None) => {}
        }
    }
    last
}

/// No, when the steps are spent.
fn reads(form: &[u8], raw: &[u8], steps: &mut usize) -> bool {
    let mut open = vec![(0, 0)];
    let mut seen = HashSet::new();
    let mut list: Vec<Reading> = Vec::new();
    while let Some((at, done)) = open.pop() {
        let Some(byte) = raw.get(at).copied() else {
            if done == form.len() {
                return true;
            }
            continue;
        };
        if !seen.insert((at, done)) {
            continue;
        }
        *steps = steps.saturating_sub(1);
        if *steps == 0 {
            return false;
        }
        if spelling::is_special(byte) {
            spelling::readings(&raw[at..], &mut list);
            let fits = |one: &&Reading| {
                let bytes = one.bytes();
                let wanted = form.get(done..done + bytes.len()).unwrap_or_default();
                // Nothing is left out before the first byte.
                bytes.len() == wanted.len()
                    && bytes.iter().map(|b| fold(*b)).eq(wanted.iter().copied())
                    && (at > 0 || !bytes.is_empty())
            };
            open.extend(list.iter().filter(fits).map(|one| (at + one.length, done + one.bytes().len())));
        }
        if form.get(done) == Some(&fold(byte)) {
            open.push((at + 1, done + 1));
        }
    }
    false
}
