//! Unpacks bodies as they are read. How much comes out is counted by the reader.

use crate::denied::Denied;
use crate::download::Raw;
use async_compression::tokio::bufread::{BrotliDecoder, DeflateDecoder, GzipDecoder, ZlibDecoder, ZstdDecoder};
use async_compression::zstd::DParameter;
use http::HeaderMap;
use http::header::CONTENT_ENCODING;
use std::io;
use std::pin::Pin;
use tokio::io::{AsyncBufReadExt, AsyncRead};

/// What the host asks servers for.
pub(crate) const ACCEPTED: &str = "gzip, br, zstd, deflate";
/// The window that RFC 9659 asks of everybody: 8 MiB.
const ZSTD_WINDOW_LOG: u32 = 23;

#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Coding {
    Plain,
    /// Handed on as it is.
    Unknown,
    Gzip,
    Deflate,
    Brotli,
    Zstd,
}

/// How a body is packed. Packed twice is refused: that is how bombs are built.
pub(crate) fn coding(headers: &HeaderMap) -> Result<Coding, Denied> {
    let mut found = Coding::Plain;
    for value in headers.get_all(CONTENT_ENCODING) {
        let text = crate::headers::latin1(value.as_bytes()).to_ascii_lowercase();
        for name in text.split(',').map(str::trim).filter(|name| !name.is_empty() && *name != "identity") {
            if found != Coding::Plain {
                // Without the server's own words, which nobody has masked.
                return Err(Denied::network("the response is packed more than once"));
            }
            found = match name {
                "gzip" | "x-gzip" => Coding::Gzip,
                "deflate" => Coding::Deflate,
                "br" => Coding::Brotli,
                "zstd" => Coding::Zstd,
                _ => Coding::Unknown,
            };
        }
    }
    Ok(found)
}

/// The first bytes, which stay where they are.
pub(crate) async fn peek(raw: &mut Raw) -> io::Result<[u8; 2]> {
    let seen = raw.fill_buf().await?;
    Ok([seen.first().copied().unwrap_or(0), seen.get(1).copied().unwrap_or(0)])
}

pub(crate) fn reader(raw: Raw, coding: Coding, first: [u8; 2]) -> Result<Pin<Box<dyn AsyncRead + Send>>, Denied> {
    Ok(match coding {
        Coding::Plain | Coding::Unknown => Box::pin(raw),
        Coding::Gzip => {
            let mut decoder = GzipDecoder::new(raw);
            decoder.multiple_members(true);
            Box::pin(decoder)
        }
        // Servers send it with a header, as the standard says, and without.
        Coding::Deflate if first[0] & 0x0f == 8 && u16::from_be_bytes(first).is_multiple_of(31) => {
            Box::pin(ZlibDecoder::new(raw))
        }
        Coding::Deflate => Box::pin(DeflateDecoder::new(raw)),
        // Windows of up to a gigabyte, which are no part of the standard.
        Coding::Brotli if first[0] & 0x7f == 0x11 => {
            return Err(Denied::network("the response's brotli has a window that is too large"));
        }
        Coding::Brotli => Box::pin(BrotliDecoder::new(raw)),
        Coding::Zstd => Box::pin(ZstdDecoder::with_params(raw, &[DParameter::window_log_max(ZSTD_WINDOW_LOG)])),
    })
}
