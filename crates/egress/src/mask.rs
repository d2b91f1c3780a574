//! Masks secrets in what comes back, wherever a chunk ends. A star stands for each byte, so lengths stay.
//!
//! What comes out, when, and after how much work, must not tell whether a text begins a secret: code inside could store guesses upstream and
//! read them back. So while a body goes on, the last [`TAIL`] bytes are held back, whatever they are and whatever the secret is, and the
//! search does the same for every text of the same spelling (see [`crate::finder`]). Only a whole secret shows, by its stars.

use crate::finder::{Bits, Finder, ends_event};
use crate::spelling::{self, LONGEST, Reading};
use crate::words;
use zeroize::Zeroizing;

/// Held back until more comes or the body ends: 16 bytes for each byte of the longest piece of a secret that is looked for.
pub(crate) const TAIL: usize = 4 << 10;
/// Raw bytes that a secret may take, so that it is found before its first byte is let go.
const MOST_SPAN: usize = TAIL - LONGEST;
/// Words of work that looking for the beginnings of found secrets may take, and how many more each byte of text brings.
const MOST_WORK: usize = 1 << 18;
const WORK_PER_BYTE: usize = 32;
/// Bytes that are searched without a break, and words that are moved for them: some tenths of a millisecond.
const SLICE: std::ops::RangeInclusive<usize> = 64..=4 << 10;
const WORDS_OF_SLICE: usize = 1 << 18;
/// Places at which something may be pending: here, and wherever a reading that begins here may end.
const PLACES: usize = LONGEST + 1;

/// Masks a stream.
///
/// A stream of server-sent events would stand still while the server has nothing more to say. There an event is searched as a whole, and
/// comes out when its empty line is there: what ends an event is decided by the text alone.
pub(crate) struct Masker {
    finder: Finder,
    /// Whether events come out when they are whole.
    by_event: bool,
    /// What came and is not out yet, and the same with stars.
    raw: Vec<u8>,
    masked: Vec<u8>,
    /// Up to where the text has been read.
    done: usize,
    ways: Ways,
    /// Where the event begins that is not whole yet, and up to where its end was looked for.
    event: usize,
    looked: usize,
    /// The end of the last secret.
    covered: usize,
    found: u64,
    /// What is left for looking for beginnings.
    work: usize,
    list: Vec<Reading>,
}

impl Masker {
    /// `events`: whether the body is a stream of server-sent events.
    pub(crate) fn new(finder: Finder, events: bool) -> Masker {
        Masker {
            by_event: events && !finder.spans_events,
            ways: Ways::new(finder.width()),
            finder,
            raw: Vec::new(),
            masked: Vec::new(),
            done: 0,
            event: 0,
            looked: 0,
            covered: 0,
            found: 0,
            work: MOST_WORK,
            list: Vec::new(),
        }
    }

    /// Whether there is nothing to look for.
    pub(crate) fn is_idle(&self) -> bool {
        self.finder.is_empty()
    }

    /// How many bytes to give it at once.
    pub(crate) fn slice(&self) -> usize {
        (WORDS_OF_SLICE / self.finder.width().max(1)).clamp(*SLICE.start(), *SLICE.end())
    }

    /// How many secrets were masked so far.
    pub(crate) fn found(&self) -> u64 {
        self.found
    }

    pub(crate) fn push(&mut self, chunk: &[u8]) -> Vec<u8> {
        if self.finder.is_empty() {
            return chunk.to_vec();
        }
        self.work = MOST_WORK.min(self.work + WORK_PER_BYTE * chunk.len());
        self.raw.extend_from_slice(chunk);
        self.masked.extend_from_slice(chunk);
        while let Some(end) = self.event_end() {
            self.search(end, end);
            self.ways.begin();
            (self.event, self.looked) = (end, end);
        }
        // What a byte begins may be known only some bytes later.
        self.search(self.raw.len().saturating_sub(LONGEST), self.raw.len());
        self.let_go(self.event.max(self.raw.len().saturating_sub(TAIL)))
    }

    /// What is left when nothing follows.
    pub(crate) fn finish(&mut self) -> Vec<u8> {
        self.search(self.raw.len(), self.raw.len());
        self.ways.begin();
        self.let_go(self.raw.len())
    }

    fn event_end(&mut self) -> Option<usize> {
        if !self.by_event {
            return None;
        }
        let end = (self.looked + 1..=self.raw.len()).find(|end| ends_event(&self.raw[self.event..*end]));
        self.looked = self.raw.len();
        end
    }

    /// Goes on to `to`, and looks no further ahead than `limit`.
    fn search(&mut self, to: usize, limit: usize) {
        while self.done < to {
            let text = &self.raw[self.done..limit];
            spelling::readings(text, &mut self.list);
            self.ways.step(&self.finder, text[0], &self.list);
            self.done += 1;
            if self.finder.is_whole(self.ways.here()) {
                self.star();
            }
        }
    }

    fn star(&mut self) {
        let from = self.event.max(self.done.saturating_sub(MOST_SPAN));
        let start = from + self.finder.beginning(self.ways.here(), &self.raw[from..self.done], &mut self.work);
        self.masked[start..self.done].fill(b'*');
        self.found += u64::from(start >= self.covered);
        self.covered = self.done;
    }

    fn let_go(&mut self, count: usize) -> Vec<u8> {
        self.raw.drain(..count);
        let kept = self.masked.split_off(count);
        for at in [&mut self.done, &mut self.event, &mut self.looked, &mut self.covered] {
            *at = at.saturating_sub(count);
        }
        std::mem::replace(&mut self.masked, kept)
    }
}

/// How far the forms have been read, by every way to read the text: here, and where readings end that are longer than a byte.
struct Ways {
    /// A ring.
    places: Vec<Bits>,
    /// Whether a reading ends there. The text decides, not the secret.
    used: [bool; PLACES],
    here: usize,
    /// Within a reading.
    between: [Bits; 2],
    /// Words that were moved.
    #[cfg(test)]
    moved: usize,
}

impl Ways {
    fn new(width: usize) -> Ways {
        let nothing = || Zeroizing::new(vec![0; width]);
        Ways {
            places: (0..PLACES).map(|_| nothing()).collect(),
            used: [false; PLACES],
            here: 0,
            between: [nothing(), nothing()],
            #[cfg(test)]
            moved: 0,
        }
    }

    /// Nothing has been read. What is not used is overwritten before it counts.
    fn begin(&mut self) {
        self.places[self.here].fill(0);
        self.used.fill(false);
    }

    fn here(&self) -> &[u64] {
        &self.places[self.here]
    }

    /// One byte of text further: the byte as it is, and all other readings that begin with it.
    fn step(&mut self, finder: &Finder, byte: u8, list: &[Reading]) {
        self.read(finder, &[byte], 1);
        for one in list {
            self.read(finder, one.bytes(), one.length);
        }
        self.used[self.here] = false;
        self.here = (self.here + 1) % PLACES;
    }

    /// These bytes follow, which are written with so many.
    fn read(&mut self, finder: &Finder, bytes: &[u8], length: usize) {
        let place = (self.here + length) % PLACES;
        let mut there = std::mem::take(&mut self.places[place]);
        let (here, [one, two]) = (&self.places[self.here], &mut self.between);
        match bytes {
            [] => finder.skip(here, one),
            [first, rest @ ..] => {
                finder.step(*first, here, one);
                for byte in rest {
                    finder.step(*byte, one, two);
                    std::mem::swap(one, two);
                }
            }
        }
        if std::mem::replace(&mut self.used[place], true) {
            words::join(&mut there, one);
        } else {
            std::mem::swap(&mut there, one);
        }
        self.places[place] = there;
        #[cfg(test)]
        (self.moved += one.len() * (bytes.len() + 1));
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::credentials::Value;
    use base64::Engine;
    use base64::engine::general_purpose::{STANDARD, STANDARD_NO_PAD, URL_SAFE_NO_PAD};
    use percent_encoding::{AsciiSet, NON_ALPHANUMERIC, percent_encode};
    use proptest::prelude::*;
    use zeroize::Zeroizing;

    const SECRET: &str = "sk-live/4f+9 Q\"x\\é";
    const COMPONENT: &AsciiSet = &NON_ALPHANUMERIC.remove(b'-').remove(b'_').remove(b'.').remove(b'~');

    fn finder(secrets: &[&str]) -> Finder {
        let values: Vec<Value> = secrets.iter().map(|text| Zeroizing::new(text.as_bytes().to_vec())).collect();
        Finder::new(&values).unwrap()
    }

    fn each(write: impl Fn(char) -> String) -> String {
        SECRET.chars().map(write).collect()
    }

    /// The secret as servers write it.
    fn spellings() -> Vec<String> {
        let percent = percent_encode(SECRET.as_bytes(), NON_ALPHANUMERIC).to_string();
        let component = percent_encode(SECRET.as_bytes(), COMPONENT).to_string();
        let hex: String = SECRET.bytes().map(|b| format!("{b:02X}")).collect();
        let json = |text: &str| {
            let quoted = serde_json::to_string(text).unwrap();
            quoted[1..quoted.len() - 1].to_owned()
        };
        let once = json(SECRET);
        vec![
            SECRET.to_owned(),
            SECRET.to_ascii_uppercase(),
            percent.clone(),
            percent.to_ascii_lowercase(),
            percent_encode(percent.as_bytes(), NON_ALPHANUMERIC).to_string(),
            component.replace("%20", "+"),
            SECRET.bytes().map(|b| format!("%{b:02x}")).collect(),
            SECRET.bytes().map(|b| format!("={b:02X}")).collect(),
            SECRET.bytes().map(|b| format!("\\x{b:02x}")).collect(),
            SECRET.bytes().map(|b| format!("\\{b:03o}")).collect(),
            hex.clone(),
            once.clone(),
            once.replace('/', "\\/"),
            once.replace('+', "\\u002B"),
            json(&once),
            json(&json(&once)),
            each(|c| format!("\\u{:04x}", c as u32)),
            json(&each(|c| format!("\\u{:04X}", c as u32))),
            each(|c| format!("\\u{{{:x}}}", c as u32)),
            each(|c| format!("%u{:04X}", c as u32)),
            each(|c| format!("&#{};", c as u32)),
            each(|c| format!("&#x{:X};", c as u32)),
            each(|c| format!("&#x{:06x};", c as u32)),
            each(|c| format!("&amp;#{};", c as u32)),
            SECRET.replace('+', "&#43;").replace('"', "&quot;"),
            SECRET.replace('+', "&plus;").replace('/', "&sol;").replace('"', "&QUOT;"),
            SECRET.chars().map(String::from).collect::<Vec<_>>().join("\0"),
            SECRET.chars().map(String::from).collect::<Vec<_>>().join("%00"),
            SECRET.bytes().map(|b| format!("\\{b:o}")).collect(),
            format!("{}=\r\n{}", &SECRET[..9], &SECRET[9..]),
            hex.as_bytes()
                .chunks(6)
                .map(|line| format!("{}\n      ", String::from_utf8_lossy(line)))
                .collect::<String>()
                .trim()
                .into(),
            SECRET.bytes().map(|b| format!("{b:02x}")).collect::<Vec<_>>().join(":"),
            SECRET.bytes().map(|b| format!("{b:02x}")).collect::<Vec<_>>().join(" "),
        ]
    }

    fn in_pieces(finder: &Finder, events: bool, bytes: &[u8], cuts: &[usize]) -> (Vec<u8>, u64) {
        let mut masker = Masker::new(finder.clone(), events);
        let mut out = Vec::new();
        let mut rest = bytes;
        for cut in cuts {
            let (piece, left) = rest.split_at((*cut).min(rest.len()));
            out.extend(masker.push(piece));
            rest = left;
        }
        out.extend(masker.push(rest));
        out.extend(masker.finish());
        (out, masker.found())
    }

    #[test]
    fn every_spelling_is_masked() {
        let finder = finder(&[SECRET]);
        for spelling in spellings() {
            // What stands before must not make another text of its beginning.
            for before in ["", "x", "%", "\\", "\\\\", "&", "=", "%25", "&amp;", "\u{e9}"] {
                let text = format!("{before}{spelling} after");
                let (out, found) = finder.mask(text.as_bytes());
                assert_eq!(found, 1, "{text}");
                assert_eq!(out.len(), text.len());
                let stars = "*".repeat(spelling.len());
                assert!(String::from_utf8_lossy(&out).ends_with(&format!("{stars} after")), "{text}");
            }
        }
        // Cut off at either end, it is another text.
        for part in [&SECRET[1..], &SECRET[..SECRET.len() - 2]] {
            assert_eq!(finder.mask(part.as_bytes()), (part.as_bytes().to_vec(), 0));
        }
    }

    #[test]
    fn utf_16_in_hexadecimal() {
        let secret = "sk-live/4f+9 Qx0";
        for write in [|unit: u16| format!("{:02x}{:02x}", unit & 255, unit >> 8), |unit: u16| format!("{unit:04X}")] {
            let text: String = secret.encode_utf16().map(write).collect();
            let (out, found) = finder(&[secret]).mask(text.as_bytes());
            assert_eq!((String::from_utf8(out).unwrap().replace(['*', '0'], ""), found), (String::new(), 1), "{text}");
        }
    }

    #[test]
    fn base64_of_a_text_with_the_secret_in_it() {
        let finder = finder(&[SECRET]);
        for (before, after) in [("", ""), ("a", "b"), ("ab", "bc"), ("user:", "\n"), ("Bearer ", "!")] {
            let whole = format!("{before}{SECRET}{after}");
            let (first, last) = ((before.len() * 8).div_ceil(6), (before.len() + SECRET.len()) * 8 / 6);
            for encoded in [STANDARD_NO_PAD.encode(&whole), URL_SAFE_NO_PAD.encode(&whole)] {
                let wrapped: String =
                    encoded.as_bytes().chunks(7).map(|line| format!("{}\\n", String::from_utf8_lossy(line))).collect();
                let percent = percent_encode(encoded.as_bytes(), NON_ALPHANUMERIC).to_string();
                for text in [&encoded, &wrapped, &wrapped.replace("\\n", "\r\n"), &percent] {
                    let (out, found) = finder.mask(text.as_bytes());
                    assert_eq!(found, 1, "{text}");
                    let middle = &encoded[first..last];
                    assert!(!String::from_utf8_lossy(&out).contains(&middle[1..6]), "{text}");
                }
            }
        }
    }

    #[test]
    fn a_long_secret_is_masked_whole() {
        for length in [255, 256, 257, 300, 504, 505, 2000, 16 << 10] {
            let secret: String = (0_u32..)
                .map(|n| format!("{:x}", n.wrapping_mul(2_654_435_761) >> 7))
                .flat_map(|text| text.chars().collect::<Vec<_>>())
                .take(length)
                .collect();
            let finder = finder(&[&secret]);
            let text = format!("<{secret}>");
            let (out, found) = in_pieces(&finder, false, text.as_bytes(), &[100; 200]);
            assert_eq!((String::from_utf8(out).unwrap(), found), (format!("<{}>", "*".repeat(length)), 1));
            let encoded = STANDARD.encode(format!("x{secret}yz"));
            let (out, _) = in_pieces(&finder, false, encoded.as_bytes(), &[]);
            let plain = String::from_utf8(out).unwrap().replace('*', "");
            assert!(plain.len() <= 8, "{plain}");
        }
    }

    #[test]
    fn what_is_held_back_is_always_the_same() {
        for secret in ["twelve-bytes", SECRET, &"x".repeat(9000)] {
            for text in ["sk-live/", "twelve-byte", "zzzzzzzzzz", "xxxx"] {
                let mut masker = Masker::new(finder(&[secret]), false);
                let mut all = 0;
                let mut out = 0;
                for count in [1, 10, 100, 1000] {
                    let chunk = text.repeat(count);
                    all += chunk.len();
                    out += masker.push(chunk.as_bytes()).len();
                    assert_eq!(all - out, all.min(TAIL), "{secret:.20} {text}");
                }
                assert_eq!(masker.finish().len(), TAIL.min(all));
            }
        }
        let mut none = Masker::new(finder(&[]), false);
        assert_eq!(none.push(b"at once"), b"at once");
    }

    /// Code inside stores a guess upstream, with a flood behind it that keeps whatever was begun, and measures how long it takes to read
    /// it back. With the automaton that was here before, each right letter took a fifth more time.
    #[test]
    fn a_right_guess_takes_the_same_work_as_a_wrong_one() {
        let work = |secret: &str, text: &str| {
            let mut masker = Masker::new(finder(&[secret]), false);
            text.as_bytes().chunks(1000).for_each(|chunk| drop(masker.push(chunk)));
            masker.finish();
            assert_eq!(masker.found(), 0);
            (masker.ways.moved, MOST_WORK - masker.work)
        };
        let secret = "Tq7-vXw2_Lk9/Rz4+Bn8";
        let hex = |text: &str| text.bytes().map(|b| format!("{b:02x}")).collect::<String>();
        for flood in ["\0", "\n", "\r\n  ", "%00", "\\n", "00", ": ", "&#10;", "x"] {
            for known in 0..secret.len() - 1 {
                let (before, letter) = (&secret[..known], &secret[known..=known]);
                let wrong = if letter == "x" { "y" } else { "x" };
                for write in [&|text: &str| text.to_owned() as String, &hex as &dyn Fn(&str) -> String] {
                    let text = |letter: &str| format!("{}{}", write(&format!("{before}{letter}")), flood.repeat(500));
                    let (right, other) = (text(letter), text(wrong));
                    assert_eq!(work(secret, &right), work("somebody-elses-value", &right), "{right:.40}");
                    assert_eq!(work(secret, &other), work("somebody-elses-value", &other), "{other:.40}");
                    assert_eq!(work(secret, &right), work(secret, &other), "{right:.40}");
                }
            }
        }
    }

    /// A server that answers with nothing but a secret that repeats itself, spelled out: each byte ends one.
    #[test]
    fn a_secret_that_repeats_itself_costs_no_more_than_its_text() {
        let (secret, text) = ("a".repeat(256), "%61".repeat(20_000));
        let took = |secret: &str| {
            let (finder, begun) = (finder(&[secret]), std::time::Instant::now());
            let mut masker = Masker::new(finder, false);
            let mut out: Vec<u8> = text.as_bytes().chunks(1000).flat_map(|chunk| masker.push(chunk)).collect();
            out.extend(masker.finish());
            (begun.elapsed(), out)
        };
        let (other, _) = took(&"b".repeat(256));
        let (repeated, out) = took(&secret);
        assert!(out.iter().all(|byte| *byte == b'*'), "{}", String::from_utf8_lossy(&out[..100]));
        assert!(repeated < 300 * other, "{repeated:?} beside {other:?}");
    }

    #[test]
    fn events_come_out_whole() {
        let mut masker = Masker::new(finder(&[SECRET]), true);
        assert_eq!(masker.push(b"data: one\n\ndata: tw"), b"data: one\n\n");
        assert_eq!(masker.push(b"o\n"), b"");
        assert_eq!(masker.push(b"\n"), b"data: two\n\n");
        let text = format!("data: {SECRET}\r\n\r\ndata: sk-li");
        assert_eq!(masker.push(text.as_bytes()), format!("data: {}\r\n\r\n", "*".repeat(SECRET.len())).as_bytes());
        assert_eq!(masker.finish(), b"data: sk-li");
        // A secret that could lie in two events is waited for.
        let mut masker = Masker::new(finder(&["-----KEY\n\nMIIEvQIBADAN"]), true);
        assert_eq!(masker.push(b"data: -----KEY\n\n"), b"");
        assert_eq!(masker.push(b"MIIEvQIBADAN\n\n"), b"");
        assert_eq!(masker.finish(), b"data: **********************\n\n");
    }

    #[test]
    fn secrets_that_cannot_be_found_are_refused() {
        assert!(Finder::new(&[Zeroizing::new(vec![b'x'; (64 << 10) + 1])]).is_err());
        assert!(Finder::new(&[]).unwrap().is_empty());
    }

    proptest! {
        #![proptest_config(ProptestConfig { cases: 64, failure_persistence: None, ..ProptestConfig::default() })]

        /// Where a stream is cut changes nothing, whatever is in it.
        #[test]
        fn in_pieces_as_at_once(
            parts in proptest::collection::vec((0_usize..32, "[a-z%\\\\&=;\n]{0,9}"), 0..12),
            cuts in proptest::collection::vec(0_usize..90, 0..60),
            events: bool,
        ) {
            let all = spellings();
            let text: String = parts.iter().map(|(at, after)| format!("{}{after}", all.get(*at).map_or("", |text| text))).collect();
            let finder = finder(&[SECRET]);
            let once = in_pieces(&finder, events, text.as_bytes(), &[]);
            prop_assert_eq!(once.0.len(), text.len());
            prop_assert_eq!(in_pieces(&finder, events, text.as_bytes(), &cuts), once);
        }

        #[test]
        fn other_text_comes_through_as_it_is(text in "(?s).{0,200}", cuts in proptest::collection::vec(0_usize..20, 0..40)) {
            prop_assert_eq!(in_pieces(&finder(&[SECRET]), false, text.as_bytes(), &cuts), (text.into_bytes(), 0));
        }

        /// What is masked does not depend on where it is cut, also when secrets lie over one another.
        #[test]
        fn overlapping_secrets(text in "[ab]{0,60}", cuts in proptest::collection::vec(0_usize..4, 0..60)) {
            let secrets = ["ababab", "babbab", "aaaaaab"];
            let (out, _) = in_pieces(&finder(&secrets), false, text.as_bytes(), &cuts);
            let mut want = text.clone().into_bytes();
            for at in 0..text.len() {
                for secret in secrets {
                    if text[at..].starts_with(secret) {
                        want[at..at + secret.len()].fill(b'*');
                    }
                }
            }
            prop_assert_eq!(String::from_utf8(out).unwrap(), String::from_utf8(want).unwrap());
        }
    }
}
