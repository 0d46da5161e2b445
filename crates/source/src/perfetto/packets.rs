//! The packets of a file, compressed ones expanded, in bounded memory.

use super::error::PerfettoError;
use super::numbers::packet;
use super::wire::{Fields, Value, bytes, fields, varint};
use crate::tracedat::ReadAt;
use flate2::read::ZlibDecoder;
use ruzstd::decoding::{FrameDecoder, StreamingDecoder};
use std::io::Read;
use std::sync::atomic::{AtomicBool, Ordering};

/// The longest packet, compressed or expanded, bytes: Perfetto's own have less than one megabyte.
const LONGEST: usize = 16 << 20;
/// What is read at once, bytes.
const AT_ONCE: usize = 1 << 20;
/// The largest window of a zstd frame, bytes.
const LARGEST_WINDOW: u64 = 16 << 20;
/// A tag and a length have at most so many bytes.
const LONGEST_HEAD: usize = 20;

/// Whether a file begins like a trace: with a whole packet all of whose fields can be read, and behind it another one or
/// the end.
///
/// # Errors
/// The file cannot be read.
pub fn is_perfetto(file: &dyn ReadAt) -> std::io::Result<bool> {
    let mut head = [0; LONGEST_HEAD];
    let read = file.read_at(0, &mut head)?;
    let mut rest = &head[..read];
    if varint(&mut rest) != Some(TAG) {
        return Ok(false);
    }
    let size = varint(&mut rest).and_then(|size| usize::try_from(size).ok());
    let Some(size @ 1..=LONGEST) = size else {
        return Ok(false);
    };
    let from = (read - rest.len()) as u64;
    if from.saturating_add(size as u64) > file.length()? {
        return Ok(false);
    }
    let mut whole = vec![0; size + 1];
    let read = file.read_at(from, &mut whole)?;
    let (own, next) = whole[..read].split_at(size.min(read));
    let mut own = fields(own);
    let is_message = own.by_ref().count() > 0 && !own.is_damaged();
    Ok(is_message && next.first().is_none_or(|byte| u64::from(*byte) == TAG))
}

/// The tag of `Trace`'s packets.
const TAG: u64 = (packet::TRACE_PACKET << 3 | 2) as u64;

/// The packets of a file.
pub(super) struct Packets<'f> {
    file: &'f dyn ReadAt,
    length: u64,
    /// The place of the window in the file, and the place in the window.
    window_at: u64,
    window: Vec<u8>,
    at: usize,
    stop: &'f AtomicBool,
    /// Whether the file ends within a packet, or is damaged.
    pub(super) cut: bool,
}

impl<'f> Packets<'f> {
    pub(super) fn new(
        file: &'f dyn ReadAt,
        stop: &'f AtomicBool,
    ) -> Result<Packets<'f>, PerfettoError> {
        Ok(Packets {
            file,
            length: file.length()?,
            window_at: 0,
            window: Vec::new(),
            at: 0,
            stop,
            cut: false,
        })
    }

    /// Makes at least `wanted` bytes available, or all up to the end of the file.
    fn available(&mut self, wanted: usize) -> Result<(), PerfettoError> {
        if self.window.len() - self.at >= wanted {
            return Ok(());
        }
        self.window.drain(..self.at);
        self.window_at += self.at as u64;
        self.at = 0;
        let from = self.window_at + self.window.len() as u64;
        let left = usize::try_from(self.length.saturating_sub(from)).unwrap_or(usize::MAX);
        let more = (wanted - self.window.len()).max(AT_ONCE).min(left);
        let filled = self.window.len();
        self.window.resize(filled + more, 0);
        let read = self.file.read_at(from, &mut self.window[filled..])?;
        self.window.truncate(filled + read);
        Ok(())
    }

    /// Hands over every packet.
    pub(super) fn all(
        &mut self,
        take: &mut dyn FnMut(&[u8]) -> Result<(), PerfettoError>,
    ) -> Result<(), PerfettoError> {
        loop {
            if self.stop.load(Ordering::Relaxed) {
                return Err(PerfettoError::Stopped);
            }
            self.available(LONGEST_HEAD)?;
            let mut rest = &self.window[self.at..];
            if rest.is_empty() {
                return Ok(());
            }
            let there = rest.len();
            let tag = varint(&mut rest);
            let size = varint(&mut rest).and_then(|size| usize::try_from(size).ok());
            let head = there - rest.len();
            let (Some(TAG), Some(size @ ..=LONGEST)) = (tag, size) else {
                self.cut = true;
                return Ok(());
            };
            self.available(head + size)?;
            let Some(whole) = self.window.get(self.at + head..self.at + head + size) else {
                self.cut = true;
                return Ok(());
            };
            let compressed = [packet::COMPRESSED, packet::ZSTD_COMPRESSED];
            let mut own = fields(whole);
            let found = own.find(|(field, _)| compressed.contains(field));
            match found {
                Some((field, Value::Bytes(bytes))) => match expand(field, bytes) {
                    Some(expanded) => {
                        let mut inner = fields(&expanded);
                        self.cut |= each(&mut inner, take)?;
                    }
                    None => self.cut = true,
                },
                _ => {
                    self.cut |= own.is_damaged();
                    take(whole)?;
                }
            }
            self.at += head + size;
        }
    }
}

/// Hands over the packets of an expanded packet. Returns whether one is damaged.
fn each(
    inner: &mut Fields<'_>,
    take: &mut dyn FnMut(&[u8]) -> Result<(), PerfettoError>,
) -> Result<bool, PerfettoError> {
    let mut damaged = false;
    for (field, value) in inner.by_ref() {
        if let (packet::TRACE_PACKET, Value::Bytes(own)) = (field, value) {
            let mut all = fields(own);
            all.by_ref().for_each(drop);
            damaged |= all.is_damaged();
            take(own)?;
        }
    }
    Ok(damaged || inner.is_damaged())
}

/// Expands a compressed packet; `None` if it is damaged or becomes too long.
fn expand(field: u32, compressed: &[u8]) -> Option<Vec<u8>> {
    let mut expanded = Vec::new();
    let most = LONGEST as u64 + 1;
    if field == packet::COMPRESSED {
        ZlibDecoder::new(compressed)
            .take(most)
            .read_to_end(&mut expanded)
            .ok()?;
    } else {
        let mut decoder = FrameDecoder::new();
        decoder.set_max_window_size(LARGEST_WINDOW);
        StreamingDecoder::new_with_decoder(compressed, decoder)
            .ok()?
            .take(most)
            .read_to_end(&mut expanded)
            .ok()?;
    }
    (expanded.len() <= LONGEST).then_some(expanded)
}

/// The texts that a packet's sequence shares.
pub(super) fn kernel_symbols(whole: &[u8]) -> impl Iterator<Item = (u64, &[u8])> {
    use super::numbers::interned;
    let data = super::wire::all(whole, packet::INTERNED);
    let entries = data.flat_map(|data| super::wire::all(data, interned::KERNEL_SYMBOLS));
    entries.filter_map(|entry| {
        let number = super::wire::int(entry, interned::ID)?;
        Some((number, bytes(entry, interned::TEXT)?))
    })
}
