//! The container of raw trace pages.
//!
//! A segment is an 8-byte magic `JSTRACE1`, then frames: role u8 (0 local, 1 senders, 2 a recorder's turn, 3 function
//! graph), three zero bytes, CPU u32, times of the first and last record u64 each, length u32, then that many bytes of
//! a ring-buffer page or, for a turn, of JSON ([`DrainTurn`](jitterscope_model::DrainTurn)). The pages of a turn
//! precede it. Readers skip unknown roles. All numbers are little-endian. A segment that ends in the middle of a frame
//! has lost only its tail.

use jitterscope_model::{CpuId, Ticks};
use std::io::{self, Read};

pub(crate) const MAGIC: &[u8; 8] = b"JSTRACE1";
pub(crate) const HEADER: usize = 28;
/// The role of a recorder's turn. Its content is JSON, not a page.
pub(crate) const TURN: u8 = 2;
/// The largest page, bytes. A kernel's sub-buffer is an order of pages of at most 64 KiB.
pub(crate) const LONGEST_PAGE: u32 = 1 << 24;

/// The header before a page.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) struct FrameHeader {
    pub(crate) role: u8,
    pub(crate) cpu: CpuId,
    pub(crate) first: Ticks,
    pub(crate) last: Ticks,
    pub(crate) length: u32,
}

impl FrameHeader {
    pub(crate) fn to_bytes(self) -> [u8; HEADER] {
        let mut bytes = [0; HEADER];
        bytes[0] = self.role;
        bytes[4..8].copy_from_slice(&self.cpu.0.to_le_bytes());
        bytes[8..16].copy_from_slice(&self.first.0.to_le_bytes());
        bytes[16..24].copy_from_slice(&self.last.0.to_le_bytes());
        bytes[24..28].copy_from_slice(&self.length.to_le_bytes());
        bytes
    }

    fn from_bytes(bytes: &[u8; HEADER]) -> FrameHeader {
        let u32_at = |at| u32::from_le_bytes(bytes_at(bytes, at));
        let ticks_at = |at| Ticks(u64::from_le_bytes(bytes_at(bytes, at)));
        FrameHeader {
            role: bytes[0],
            cpu: CpuId(u32_at(4)),
            first: ticks_at(8),
            last: ticks_at(16),
            length: u32_at(24),
        }
    }
}

fn bytes_at<const N: usize>(header: &[u8; HEADER], at: usize) -> [u8; N] {
    std::array::from_fn(|byte| header[at + byte])
}

/// How a segment ended.
#[derive(Debug, PartialEq, Eq)]
pub(crate) enum End {
    /// After a whole frame.
    Clean,
    /// In the middle of a frame, or in invalid data.
    Damaged(&'static str),
}

/// Passes every frame that `wanted` accepts to `sink`, with its page.
pub(crate) fn read(
    mut from: impl Read,
    mut wanted: impl FnMut(&FrameHeader) -> bool,
    mut sink: impl FnMut(FrameHeader, Vec<u8>),
) -> io::Result<End> {
    let mut magic = [0; 8];
    if !fill(&mut from, &mut magic)? || &magic != MAGIC {
        return Ok(End::Damaged("it does not begin as a trace segment does"));
    }
    loop {
        let mut bytes = [0; HEADER];
        match read_up_to(&mut from, &mut bytes)? {
            0 => return Ok(End::Clean),
            HEADER => {}
            _ => return Ok(End::Damaged("it ends inside a frame's header")),
        }
        let header = FrameHeader::from_bytes(&bytes);
        if header.length > LONGEST_PAGE {
            return Ok(End::Damaged("a frame claims an impossible length"));
        }
        let mut page = Vec::with_capacity(header.length as usize);
        if from
            .by_ref()
            .take(header.length.into())
            .read_to_end(&mut page)?
            < header.length as usize
        {
            return Ok(End::Damaged("it ends inside a page"));
        }
        if wanted(&header) {
            sink(header, page);
        }
    }
}

/// The whole frames at the beginning of a segment.
#[derive(Debug, PartialEq, Eq)]
pub(crate) struct WholeFrames {
    /// Where the last one ends; 0 if there is none.
    pub(crate) bytes: u64,
    /// The earliest and the latest record of the pages. The last is before the first without pages.
    pub(crate) first: Ticks,
    pub(crate) last: Ticks,
}

/// Finds the whole frames of a segment that may be cut off.
pub(crate) fn whole_frames(from: impl Read) -> io::Result<WholeFrames> {
    let mut found = WholeFrames {
        bytes: 0,
        first: Ticks(u64::MAX),
        last: Ticks(0),
    };
    let look = |header: &FrameHeader| {
        found.bytes = found.bytes.max(MAGIC.len() as u64);
        found.bytes += (HEADER as u64) + u64::from(header.length);
        if header.role != TURN {
            found.first = found.first.min(header.first);
            found.last = found.last.max(header.last);
        }
        false
    };
    read(from, look, |_, _| {})?;
    Ok(found)
}

fn read_up_to(from: &mut impl Read, buffer: &mut [u8]) -> io::Result<usize> {
    let mut filled = 0;
    while filled < buffer.len() {
        match from.read(&mut buffer[filled..]) {
            Ok(0) => break,
            Ok(n) => filled += n,
            Err(error) if error.kind() == io::ErrorKind::Interrupted => {}
            Err(error) => return Err(error),
        }
    }
    Ok(filled)
}

fn fill(from: &mut impl Read, buffer: &mut [u8]) -> io::Result<bool> {
    Ok(read_up_to(from, buffer)? == buffer.len())
}

#[cfg(test)]
mod tests {
    use super::*;
    use proptest::prelude::*;

    fn header(length: u32) -> FrameHeader {
        FrameHeader {
            role: 1,
            cpu: CpuId(300),
            first: Ticks(1 << 60),
            last: Ticks(u64::MAX),
            length,
        }
    }

    /// Returns one byte at a time, and is interrupted before each.
    struct Halting<'b>(&'b [u8], bool);

    impl Read for Halting<'_> {
        fn read(&mut self, buffer: &mut [u8]) -> io::Result<usize> {
            self.1 = !self.1;
            if self.1 {
                return Err(io::ErrorKind::Interrupted.into());
            }
            let length = buffer.len().min(1);
            self.0.read(&mut buffer[..length])
        }
    }

    #[test]
    fn a_read_that_a_signal_interrupts_goes_on() {
        let bytes = [&MAGIC[..], &header(3).to_bytes(), &[1, 2, 3]].concat();
        let mut pages = Vec::new();
        let end = read(Halting(&bytes, false), |_| true, |_, page| pages.push(page)).unwrap();
        assert_eq!((end, pages), (End::Clean, vec![vec![1, 2, 3]]));
    }

    #[test]
    fn what_does_not_begin_as_a_segment_is_damaged() {
        for bytes in [&b""[..], &MAGIC[..7], b"notatrace", &[0; 64]] {
            let end = read(bytes, |_| true, |_, _| panic!("there is no page")).unwrap();
            assert_eq!(
                end,
                End::Damaged("it does not begin as a trace segment does")
            );
        }
    }

    #[test]
    fn no_page_is_longer_than_a_kernels_sub_buffer() {
        for (length, why) in [
            (LONGEST_PAGE, "it ends inside a page"),
            (LONGEST_PAGE + 1, "a frame claims an impossible length"),
            (u32::MAX, "a frame claims an impossible length"),
        ] {
            let bytes = [&MAGIC[..], &header(length).to_bytes()].concat();
            let end = read(&bytes[..], |_| true, |_, _| panic!("there is no page")).unwrap();
            assert_eq!(end, End::Damaged(why), "{length} bytes");
        }
    }

    #[test]
    fn what_cannot_be_read_is_an_error() {
        struct Broken;
        impl Read for Broken {
            fn read(&mut self, _: &mut [u8]) -> io::Result<usize> {
                Err(io::ErrorKind::ConnectionReset.into())
            }
        }
        let error = read(Broken, |_| true, |_, _| {}).unwrap_err();
        assert_eq!(error.kind(), io::ErrorKind::ConnectionReset);
    }

    #[test]
    fn headers_round_trip() {
        let h = header(4096);
        assert_eq!(FrameHeader::from_bytes(&h.to_bytes()), h);
    }

    proptest! {
        #[test]
        fn hostile_segments_never_panic(mut bytes in proptest::collection::vec(any::<u8>(), 0..300), magic: bool) {
            if magic && bytes.len() >= 8 {
                bytes[..8].copy_from_slice(MAGIC);
            }
            let _ = read(&bytes[..], |_| true, |_, _| {});
        }

        #[test]
        fn a_cut_segment_loses_only_its_tail(pages in proptest::collection::vec(0usize..50, 1..6), cut in 0usize..400) {
            let mut bytes = MAGIC.to_vec();
            for length in &pages {
                bytes.extend(header(*length as u32).to_bytes());
                bytes.extend(vec![7; *length]);
            }
            let whole = bytes.len();
            bytes.truncate(whole.saturating_sub(cut));
            let mut got = Vec::new();
            let end = read(&bytes[..], |_| true, |_, page| got.push(page.len())).unwrap();
            let frames: usize = got.iter().map(|length| HEADER + length).sum();
            let magic = if got.is_empty() { 0 } else { MAGIC.len() };
            prop_assert_eq!(whole_frames(&bytes[..]).unwrap().bytes, (magic + frames) as u64);
            prop_assert!(pages.starts_with(&got));
            prop_assert_eq!(end == End::Clean && bytes.len() == whole, got == pages && cut == 0);
        }
    }
}
