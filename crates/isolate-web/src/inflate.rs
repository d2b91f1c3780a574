//! The formats of CompressionStream and DecompressionStream. Strict, as the standard asks: a stream that ends early,
//! goes on after its end or fails its checksum is an error.

use crate::bytes;
use crate::held::{self, Held};
use flate2::{Compress, Compression, Crc, Decompress, FlushCompress, FlushDecompress, Status};
use std::cell::RefCell;

thread_local! {
    static STREAMS: RefCell<Held<Stream>> = RefCell::default();
}

const CHUNK: usize = 32 * 1024;

enum Stream {
    Deflate { compress: Compress, gzip: Option<Crc>, started: bool },
    Inflate(Inflate),
}

struct Inflate {
    decompress: Decompress,
    gzip: Option<Crc>,
    /// Bytes that are not understood yet: an unfinished header or trailer.
    pending: Vec<u8>,
    phase: Phase,
}

#[derive(PartialEq, Eq, Clone, Copy)]
enum Phase {
    Header,
    Body,
    Trailer,
    Done,
}

/// `zlibNew(format, compress: boolean): object`
pub fn new(scope: &mut v8::PinScope, args: v8::FunctionCallbackArguments, mut rv: v8::ReturnValue) {
    let format = bytes::string(scope, args.get(0));
    let zlib = format == "deflate";
    let gzip = (format == "gzip").then(Crc::new);
    let stream = if args.get(1).is_true() {
        Stream::Deflate { compress: Compress::new(Compression::default(), zlib), gzip, started: false }
    } else {
        let phase = if gzip.is_some() { Phase::Header } else { Phase::Body };
        Stream::Inflate(Inflate { decompress: Decompress::new(zlib), gzip, pending: Vec::new(), phase })
    };
    if let Some(owner) = held::hold(scope, &STREAMS, stream) {
        rv.set(owner.into());
    }
}

/// `zlibRun(id, bytes, last): Uint8Array | undefined`, undefined when the data are not in the format.
pub fn run(scope: &mut v8::PinScope, args: v8::FunctionCallbackArguments, mut rv: v8::ReturnValue) {
    let data = bytes::read(args.get(1));
    let last = args.get(2).is_true();
    let output = held::with(&STREAMS, args.get(0), |stream| match stream {
        Stream::Deflate { compress, gzip, started } => deflate(compress, gzip.as_mut(), started, &data, last),
        Stream::Inflate(inflate) => inflate.run(&data, last),
    });
    if let Some(Some(output)) = output {
        bytes::set_array(scope, &mut rv, output);
    }
}

fn deflate(
    compress: &mut Compress,
    gzip: Option<&mut Crc>,
    started: &mut bool,
    data: &[u8],
    last: bool,
) -> Option<Vec<u8>> {
    let mut output = Vec::new();
    if gzip.is_some() && !*started {
        output.extend_from_slice(&[0x1f, 0x8b, 8, 0, 0, 0, 0, 0, 0, 255]);
    }
    *started = true;
    let flush = if last { FlushCompress::Finish } else { FlushCompress::None };
    let mut rest = data;
    loop {
        output.reserve(CHUNK);
        let (before, produced) = (compress.total_in(), output.len());
        let status = compress.compress_vec(rest, &mut output, flush).ok()?;
        rest = &rest[usize::try_from(compress.total_in() - before).ok()?..];
        let idle = output.len() == produced;
        if status == Status::StreamEnd || (!last && rest.is_empty() && idle) || (rest.is_empty() && idle && last) {
            break;
        }
    }
    if let Some(crc) = gzip {
        crc.update(data);
        if last {
            output.extend_from_slice(&crc.sum().to_le_bytes());
            output.extend_from_slice(&crc.amount().to_le_bytes());
        }
    }
    Some(output)
}

impl Inflate {
    fn run(&mut self, data: &[u8], last: bool) -> Option<Vec<u8>> {
        let mut output = Vec::new();
        self.pending.extend_from_slice(data);
        if self.phase == Phase::Header
            && let Some(length) = gzip_header(&self.pending)?
        {
            self.pending.drain(..length);
            self.phase = Phase::Body;
        }
        if self.phase == Phase::Body {
            self.body(&mut output)?;
        }
        if self.phase == Phase::Trailer
            && let Some(crc) = &self.gzip
            && let Some(trailer) = self.pending.first_chunk::<8>()
        {
            let expected = [crc.sum().to_le_bytes(), crc.amount().to_le_bytes()].concat();
            if trailer[..] != expected {
                return None;
            }
            self.pending.drain(..8);
            self.phase = Phase::Done;
        }
        let trailing = self.phase == Phase::Done && !self.pending.is_empty();
        let early = last && self.phase != Phase::Done;
        (!trailing && !early).then_some(output)
    }

    fn body(&mut self, output: &mut Vec<u8>) -> Option<()> {
        let input = std::mem::take(&mut self.pending);
        let mut at = 0;
        loop {
            output.reserve(CHUNK);
            let (before, produced) = (self.decompress.total_in(), output.len());
            let status = self.decompress.decompress_vec(&input[at..], output, FlushDecompress::None).ok()?;
            at += usize::try_from(self.decompress.total_in() - before).ok()?;
            if let Some(crc) = &mut self.gzip {
                crc.update(&output[produced..]);
            }
            if status == Status::StreamEnd {
                self.phase = if self.gzip.is_some() { Phase::Trailer } else { Phase::Done };
                self.pending = input[at..].to_vec();
                return Some(());
            }
            if at == input.len() && output.len() == produced {
                return Some(());
            }
        }
    }
}

/// The length of a gzip header: none when it is malformed, `Some(None)` when more bytes are needed.
#[allow(clippy::option_option)]
fn gzip_header(data: &[u8]) -> Option<Option<usize>> {
    const EXTRA: u8 = 4;
    const NAME: u8 = 8;
    const COMMENT: u8 = 16;
    const CHECKSUM: u8 = 2;
    let magic = [0x1f, 0x8b, 8];
    if data.iter().zip(magic).any(|(found, wanted)| *found != wanted) {
        return None;
    }
    let Some(flags) = data.get(3) else { return Some(None) };
    let mut at = 10;
    if flags & EXTRA != 0 {
        let Some(size) = data.get(at..at + 2) else { return Some(None) };
        at += 2 + usize::from(u16::from_le_bytes([size[0], size[1]]));
    }
    for text in [NAME, COMMENT] {
        if flags & text != 0 {
            let Some(end) = data.get(at..).and_then(|rest| rest.iter().position(|byte| *byte == 0)) else {
                return Some(None);
            };
            at += end + 1;
        }
    }
    if flags & CHECKSUM != 0 {
        at += 2;
    }
    Some((data.len() >= at).then_some(at))
}
