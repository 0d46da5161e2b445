//! One CPU's `trace_pipe_raw`, read without waiting.

use super::TraceError;
use super::stats::BufferStats;
use crate::ring::{Page, PageLayout, PageLoss};
use jitterscope_model::CpuId;
use rustix::io::Errno;
use std::fs::{File, OpenOptions};
use std::os::unix::fs::OpenOptionsExt;
use std::path::Path;

/// How often to retry a read that the kernel could not serve temporarily.
const TRIES: u32 = 3;

/// The amount that one call of [`Recorder::drain`](super::Recorder::drain) read.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct Drained {
    pub pages: u64,
    pub bytes: u64,
    /// Whether it stopped before the end: events arrive faster than they are read.
    pub more: bool,
}

/// The losses of one CPU's events.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct CpuLoss {
    /// Events that are missing before pages, as the pages state.
    pub in_pages: u64,
    /// Pages before which an unknown number is missing.
    pub unknown: u64,
    /// The ring buffer's own counts; `None` if they cannot be read (the CPU is gone).
    pub stats: Option<BufferStats>,
}

impl CpuLoss {
    /// Events known to be lost: the maximum of the pages' and the buffer's counts, plus losses that only the buffer
    /// counts. A loss of unknown size counts as at least one.
    #[must_use]
    pub fn total(&self) -> u64 {
        let in_pages = self.in_pages.saturating_add(self.unknown);
        let stats = self.stats.unwrap_or_default();
        in_pages
            .max(stats.overrun)
            .saturating_add(stats.commit_overrun)
            .saturating_add(stats.dropped)
    }
}

/// An open `trace_pipe_raw`.
#[derive(Debug)]
pub(super) struct Pipe {
    pub(super) cpu: CpuId,
    pub(super) loss: CpuLoss,
    file: File,
}

impl Pipe {
    pub(super) fn open(cpu: CpuId, path: &Path) -> Result<Pipe, TraceError> {
        let flags = rustix::fs::OFlags::NONBLOCK.bits() as i32;
        let file = OpenOptions::new().read(true).custom_flags(flags).open(path);
        let file = file.map_err(|source| TraceError::NoCpu { cpu, source })?;
        Ok(Pipe {
            cpu,
            loss: CpuLoss::default(),
            file,
        })
    }

    /// Reads sub-buffers into `buffer` (exactly one sub-buffer long) until none is left, or `limit` are read, and
    /// passes on the used part of each.
    pub(super) fn drain(
        &mut self,
        layout: &PageLayout,
        buffer: &mut [u8],
        limit: u64,
        sink: &mut impl FnMut(&[u8]),
    ) -> Result<Drained, TraceError> {
        let mut drained = Drained::default();
        let mut tries = 0;
        for _ in 0..limit {
            let length = loop {
                match rustix::io::read(&self.file, &mut *buffer) {
                    Ok(length) => break length,
                    Err(Errno::AGAIN) => return Ok(drained),
                    Err(Errno::INTR) => {}
                    // The kernel could not provide a page for us; this does not mean that there are no events.
                    Err(Errno::NOMEM | Errno::BUSY) if tries < TRIES => tries += 1,
                    Err(error) => {
                        return Err(TraceError::NoCpu {
                            cpu: self.cpu,
                            source: error.into(),
                        });
                    }
                }
            };
            let Some(bytes) = buffer.get(..length).filter(|bytes| !bytes.is_empty()) else {
                return Ok(drained);
            };
            let Ok(page) = Page::parse(layout, bytes) else {
                self.loss.unknown += 1;
                return Ok(drained);
            };
            match page.loss() {
                PageLoss::None => {}
                PageLoss::Lost(n) => self.loss.in_pages = self.loss.in_pages.saturating_add(n),
                PageLoss::LostUnknown => self.loss.unknown += 1,
            }
            if page.is_empty() {
                continue;
            }
            let used = &bytes[..Page::used(layout, bytes)];
            drained.pages += 1;
            drained.bytes += used.len() as u64;
            sink(used);
        }
        drained.more = true;
        Ok(drained)
    }
}
