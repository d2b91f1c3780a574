//! Responses with a secret in them: however they are cut, the same bytes are masked.
#![no_main]

use libfuzzer_sys::fuzz_target;

const SECRET: &[u8] = b"sk-live/4f+9 Q\"x";

fuzz_target!(|bytes: &[u8]| {
    let Some((cuts, text)) = bytes.split_at_checked(8.min(bytes.len())) else { return };
    // In a longer text the steps for many secrets could be spent sooner where it comes in pieces, and then more is masked.
    if text.len() > 1024 {
        return;
    }
    let lengths: Vec<usize> = cuts.iter().map(|cut| usize::from(*cut)).collect();
    let whole = egress::fuzz::mask_in_pieces(&[SECRET], false, text, &[]).expect("a secret that can be masked");
    let pieces = egress::fuzz::mask_in_pieces(&[SECRET], false, text, &lengths).expect("a secret that can be masked");
    assert_eq!(whole, pieces);
    assert_eq!(whole.len(), text.len());
    assert!(!whole.windows(SECRET.len()).any(|window| window == SECRET));
});
