//! Operations on rows of bits. Each does the same for every row of the same length, whichever bits are set.

use multiversion::multiversion;

const TOP: u32 = u64::BITS - 1;

/// Each bit moves one place up; those of `first` are set as well; what is not in `places` is lost.
#[multiversion(targets("x86_64+avx+avx2"))]
pub(crate) fn advance(before: &[u64], first: &[u64], places: &[u64], after: &mut [u64]) {
    let width = before.len().min(after.len()).min(first.len()).min(places.len());
    let (before, after, first, places) = (&before[..width], &mut after[..width], &first[..width], &places[..width]);
    let Some(lowest) = before.first() else { return };
    after[0] = (lowest << 1 | first[0]) & places[0];
    for at in 1..width {
        after[at] = (before[at] << 1 | before[at - 1] >> TOP | first[at]) & places[at];
    }
}

/// All bits except for those of `last`.
#[multiversion(targets("x86_64+avx+avx2"))]
pub(crate) fn without(before: &[u64], last: &[u64], after: &mut [u64]) {
    after.iter_mut().zip(before).zip(last).for_each(|((after, before), last)| *after = before & !last);
}

#[multiversion(targets("x86_64+avx+avx2"))]
pub(crate) fn join(into: &mut [u64], other: &[u64]) {
    into.iter_mut().zip(other).for_each(|(into, other)| *into |= other);
}

/// Whether they have a bit in common.
#[multiversion(targets("x86_64+avx+avx2"))]
pub(crate) fn meet(one: &[u64], other: &[u64]) -> bool {
    one.iter().zip(other).fold(0, |all, (one, other)| all | one & other) != 0
}

/// Keeps what is in `places`, then moves each bit one place down. Tells whether one moved out.
pub(crate) fn retreat(bits: &mut [u64], places: &[u64]) -> bool {
    let mut carried = 0;
    for (bits, places) in bits.iter_mut().zip(places).rev() {
        let kept = *bits & places;
        *bits = kept >> 1 | carried;
        carried = kept << TOP;
    }
    carried != 0
}
