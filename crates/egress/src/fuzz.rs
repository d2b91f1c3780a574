//! Entries for fuzzing: pure functions of what strangers write.

use crate::finder::Finder;
use crate::mask::Masker;
use crate::proxy::client_hello;
use zeroize::Zeroizing;

/// Masks a text in pieces of these lengths, the rest at the end. Nothing if the secrets cannot be looked for.
pub fn mask_in_pieces(secrets: &[&[u8]], events: bool, text: &[u8], lengths: &[usize]) -> Option<Vec<u8>> {
    let values: Vec<_> = secrets.iter().map(|secret| Zeroizing::new(secret.to_vec())).collect();
    let mut masker = Masker::new(Finder::new(&values).ok()?, events);
    let (mut out, mut rest) = (Vec::new(), text);
    for length in lengths {
        let (piece, left) = rest.split_at((*length).min(rest.len()));
        out.extend(masker.push(piece));
        rest = left;
    }
    out.extend(masker.push(rest));
    out.extend(masker.finish());
    Some(out)
}

/// The name in a TLS ClientHello: nothing while more bytes are needed.
pub fn hello_name(raw: &[u8]) -> Result<Option<Option<String>>, &'static str> {
    client_hello(raw)
}
