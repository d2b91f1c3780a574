//! The W3C trace context: who the caller's span is.

use http::HeaderMap;
use std::fmt;

/// `00-<trace id>-<span id>-<flags>`.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct TraceParent {
    pub trace_id: [u8; 16],
    pub span_id: [u8; 8],
    pub sampled: bool,
}

impl TraceParent {
    /// From the header `traceparent`. Several of them are none.
    pub fn of(headers: &HeaderMap) -> Option<TraceParent> {
        let mut all = headers.get_all("traceparent").iter();
        let only = all.next().filter(|_| all.next().is_none())?;
        TraceParent::parse(only.to_str().ok()?)
    }

    /// `None` for whatever is not exactly of this form: then the request begins a trace of its own. Versions to come may
    /// add fields at the end.
    pub fn parse(text: &str) -> Option<TraceParent> {
        if text.len() > 256 || !text.is_ascii() {
            return None;
        }
        let (version, rest) = text.split_at_checked(2)?;
        let (fixed, more) = rest.split_at_checked(53)?;
        let mut fields = fixed.strip_prefix('-')?.split('-');
        let (trace, span, flags) = (fields.next()?, fields.next()?, fields.next()?);
        let version = number::<1>(version)?[0];
        let well_ended = if version == 0 { more.is_empty() } else { more.is_empty() || more.starts_with('-') };
        if version == 0xff || !well_ended || fields.next().is_some() {
            return None;
        }
        let (trace_id, span_id) = (number::<16>(trace)?, number::<8>(span)?);
        let sampled = number::<1>(flags)?[0] & 1 == 1;
        let named = trace_id != [0; 16] && span_id != [0; 8];
        named.then_some(TraceParent { trace_id, span_id, sampled })
    }
}

impl fmt::Display for TraceParent {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let flags = u8::from(self.sampled);
        write!(f, "00-{}-{}-{flags:02x}", hex::encode(self.trace_id), hex::encode(self.span_id))
    }
}

/// Lower case only, as the standard has it.
fn number<const N: usize>(text: &str) -> Option<[u8; N]> {
    let mut bytes = [0; N];
    let lower = text.bytes().all(|byte| matches!(byte, b'0'..=b'9' | b'a'..=b'f'));
    (lower && hex::decode_to_slice(text, &mut bytes).is_ok()).then_some(bytes)
}
