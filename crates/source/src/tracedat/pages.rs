//! A CPU's pages, one after another, in bounded memory.

use super::buffers::{Buffer, CpuData};
use super::bytes::ReadAt;
use super::compressed::{Compression, Expander};
use std::io;

/// What a stream reads at once, bytes; less where there are many.
const AT_ONCE: usize = 256 << 10;
/// The head of a compressed chunk: its length in the file, and expanded.
const CHUNK_HEAD: u64 = 8;
/// Pages of a chunk that are always accepted: trace-cmd packs ten.
const CHUNK_PAGES: usize = 16;
/// What compression may add to bytes that do not compress.
const CHUNK_SLACK: usize = 4096;

/// What the pages of a CPU may hold in memory, whatever they are allowed, bytes.
#[must_use]
pub fn least_memory(page_size: u32) -> u64 {
    u64::from(page_size) * CHUNK_PAGES as u64
}

/// The pages of one CPU.
pub struct CpuPages<'f> {
    file: &'f dyn ReadAt,
    page_size: usize,
    /// The next byte in the file, and the end.
    at: u64,
    end: u64,
    /// Bytes of the file that come next, and how many of them are used up.
    ready: Vec<u8>,
    used: usize,
    most: usize,
    chunks: Option<Chunks>,
    gaps: u64,
    /// Nothing more can be read.
    done: bool,
}

/// The compressed form of the pages.
struct Chunks {
    /// How many are to come; `None` before the first.
    left: Option<u32>,
    expander: Expander,
    packed: Vec<u8>,
}

impl<'f> CpuPages<'f> {
    pub(super) fn new(
        file: &'f dyn ReadAt,
        buffer: &Buffer,
        data: &CpuData,
        compression: Compression,
        memory: usize,
    ) -> CpuPages<'f> {
        let page_size = buffer.page_size.max(1) as usize;
        let most = memory.min(AT_ONCE) / page_size * page_size;
        CpuPages {
            file,
            page_size,
            at: data.at,
            end: data.at.saturating_add(data.size),
            ready: Vec::new(),
            used: 0,
            most: most.max(page_size),
            chunks: buffer.compressed.then(|| Chunks {
                left: None,
                expander: Expander::new(compression),
                packed: Vec::new(),
            }),
            gaps: 0,
            done: false,
        }
    }

    /// The next page, which stays the next one until [`CpuPages::pass`]. A page that is cut off has fewer bytes. `None`
    /// after the last one, and where the rest cannot be read.
    ///
    /// # Errors
    /// The file cannot be read.
    pub fn peek(&mut self) -> io::Result<Option<&[u8]>> {
        if self.used >= self.ready.len() {
            self.fill()?;
        }
        let rest = &self.ready[self.used..];
        Ok((!rest.is_empty()).then(|| &rest[..rest.len().min(self.page_size)]))
    }

    /// The bytes of the next page, to change them before they are used.
    pub fn peeked(&mut self) -> &mut [u8] {
        let rest = &mut self.ready[self.used..];
        let length = rest.len().min(self.page_size);
        &mut rest[..length]
    }

    /// Passes over the next page.
    pub fn pass(&mut self) {
        self.used = (self.used + self.page_size).min(self.ready.len());
    }

    /// In how many places the file lacks pages that its tables name, or has damaged ones, as far as it was read.
    #[must_use]
    pub fn gaps(&self) -> u64 {
        self.gaps
    }

    fn fill(&mut self) -> io::Result<()> {
        self.ready.clear();
        self.used = 0;
        if self.done {
            return Ok(());
        }
        match self.chunks.take() {
            None => self.fill_plain(),
            Some(mut chunks) => {
                let filled = self.fill_chunk(&mut chunks);
                self.chunks = Some(chunks);
                if !filled? {
                    self.give_up();
                }
                Ok(())
            }
        }
    }

    fn fill_plain(&mut self) -> io::Result<()> {
        let left = self.end.saturating_sub(self.at);
        self.done = left == 0;
        let wanted = usize::try_from(left).map_or(self.most, |left| left.min(self.most));
        self.ready.resize(wanted, 0);
        let read = self.file.read_at(self.at, &mut self.ready)?;
        self.ready.truncate(read);
        self.at = self.at.saturating_add(read as u64);
        if read < wanted {
            self.give_up();
        }
        Ok(())
    }

    /// Fills in the next chunk that can be expanded. False where the rest cannot be read.
    fn fill_chunk(&mut self, chunks: &mut Chunks) -> io::Result<bool> {
        while self.ready.is_empty() {
            let left = match chunks.left {
                Some(left) => left,
                None => match self.word(self.at)? {
                    Some(count) => {
                        self.at += 4;
                        count
                    }
                    None => return Ok(false),
                },
            };
            chunks.left = Some(left.saturating_sub(1));
            if left == 0 || self.at >= self.end {
                self.gaps += u64::from(left > 0);
                self.done = true;
                return Ok(true);
            }
            let (Some(packed), Some(expanded)) =
                (self.word(self.at)?, self.word(self.at.saturating_add(4))?)
            else {
                return Ok(false);
            };
            let (packed, expanded) = (packed as usize, expanded as usize);
            // A chunk may not be larger than what is read at once: its length is the file's word.
            let most = self.most.max(self.page_size * CHUNK_PAGES);
            if expanded > most || packed > most + CHUNK_SLACK {
                return Ok(false);
            }
            chunks.packed.resize(packed, 0);
            let place = self.at.saturating_add(CHUNK_HEAD);
            let read = self.file.read_at(place, &mut chunks.packed)?;
            self.at = place.saturating_add(packed as u64);
            if read < packed {
                return Ok(false);
            }
            self.ready.resize(expanded, 0);
            if !chunks.expander.expand(&chunks.packed, &mut self.ready) {
                // The next chunk may be whole.
                self.ready.clear();
                self.gaps += 1;
            }
        }
        Ok(true)
    }

    /// Passes over all chunks but the last one that is complete in the file.
    fn pass_chunks(&mut self) -> io::Result<()> {
        let Some(count) = self.word(self.at)? else {
            return Ok(());
        };
        let length = self.file.length()?;
        let (mut at, mut last) = (self.at.saturating_add(4), None);
        for _ in 0..count {
            let Some(packed) = self.word(at)? else {
                break;
            };
            let next = at.saturating_add(CHUNK_HEAD + u64::from(packed));
            if next > length.min(self.end) {
                break;
            }
            (last, at) = (Some(at), next);
        }
        if let (Some(at), Some(chunks)) = (last, &mut self.chunks) {
            self.at = at;
            chunks.left = Some(1);
        }
        Ok(())
    }

    fn word(&self, at: u64) -> io::Result<Option<u32>> {
        let mut word = [0; 4];
        let read = self.file.read_at(at, &mut word)?;
        Ok((read == word.len()).then(|| u32::from_le_bytes(word)))
    }

    /// Nothing more can be read.
    fn give_up(&mut self) {
        self.gaps += 1;
        self.done = true;
    }
}

/// The last page of a CPU that can be read.
pub(super) fn last(
    file: &dyn ReadAt,
    buffer: &Buffer,
    data: &CpuData,
    compression: Compression,
) -> io::Result<Option<Vec<u8>>> {
    let page_size = u64::from(buffer.page_size.max(1));
    let mut data = *data;
    if !buffer.compressed {
        let there = data.size.min(file.length()?.saturating_sub(data.at));
        let before = there.saturating_sub(1) / page_size * page_size;
        data.at = data.at.saturating_add(before);
        data.size = there - before;
    }
    let mut pages = CpuPages::new(file, buffer, &data, compression, AT_ONCE);
    if buffer.compressed {
        pages.pass_chunks()?;
    }
    let mut last = None;
    while let Some(page) = pages.peek()? {
        last = Some(page.to_vec());
        pages.pass();
    }
    Ok(last)
}
