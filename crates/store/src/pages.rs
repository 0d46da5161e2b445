//! Writes the raw trace of a run, within its size limit.

use crate::error::StoreError;
use crate::segment::{FrameHeader, HEADER, LONGEST_PAGE, MAGIC, TURN};
use crate::segment_spans::{SegmentSpan, write_spans};
use crate::syncing::Syncing;
use jitterscope_model::{CpuId, DrainTurn, Stall, StoredTrace, Ticks, TraceRole};
use jitterscope_platform::HeldDir;
use std::collections::VecDeque;
use std::fs::File;
use std::io::{BufWriter, Write};
use std::path::PathBuf;

/// The folder of the trace.
pub(crate) const TRACE: &str = "trace";
/// The folder of the segments, inside [`TRACE`].
pub(crate) const SEGMENTS: &str = "segments";
/// The file with the context for decoding the segments.
pub(crate) const CONTEXT: &str = "context.json";
/// Its name until it is complete.
const CONTEXT_PARTIAL: &str = ".context.json";

/// The size, in bytes, at which a segment is closed at the end of a turn.
const SEGMENT: u64 = 1 << 20;
/// The smallest such size: several segments share a small limit, so that those of the worst stalls can be kept.
const SMALLEST_SEGMENT: u64 = 64 << 10;
/// The number of recent stalls kept to match against later pages: pages arrive a fraction of a second late.
const RECENT_STALLS: usize = 4096;

fn role_byte(role: TraceRole) -> u8 {
    match role {
        TraceRole::Local => 0,
        TraceRole::Senders => 1,
        // 2 is `TURN`.
        TraceRole::Graph => 3,
        TraceRole::Stacks => 4,
    }
}

/// The role with this stored number.
pub(crate) fn role_of(byte: u8) -> Option<TraceRole> {
    TraceRole::ALL
        .into_iter()
        .find(|role| role_byte(*role) == byte)
}

struct Segment {
    name: String,
    bytes: u64,
    first: Ticks,
    last: Ticks,
    /// The length of the longest stall that overlaps one of the pages.
    worst: Ticks,
    /// Whether the segment has anything written after the measurement began.
    measured: bool,
}

/// Writes pages into segments. Over the limit, it removes the segment whose worst stall is the shortest.
pub(crate) struct TracePages {
    trace: HeldDir,
    segments: HeldDir,
    has_context: bool,
    limit: u64,
    closed: Vec<Segment>,
    open: Option<(Segment, BufWriter<File>)>,
    syncing: Syncing,
    number: u32,
    recent: VecDeque<(Ticks, Ticks)>,
    /// The latest end in `recent`: most pages are newer.
    last_end: Ticks,
    complete: bool,
    discarded: bool,
    begun: bool,
}

impl TracePages {
    pub(crate) fn create(run: &HeldDir, limit: u64) -> Result<TracePages, StoreError> {
        let trace = run.make_dir(TRACE).map_err(StoreError::writing)?;
        Ok(TracePages {
            segments: trace.make_dir(SEGMENTS).map_err(StoreError::writing)?,
            trace,
            has_context: false,
            limit,
            closed: Vec::new(),
            open: None,
            syncing: Syncing::default(),
            number: 0,
            recent: VecDeque::new(),
            last_end: Ticks(0),
            complete: true,
            discarded: false,
            begun: false,
        })
    }

    pub(crate) fn set_limit(&mut self, limit: u64) {
        self.limit = limit;
    }

    /// Marks the begin of the measurement.
    pub(crate) fn begin(&mut self) {
        self.begun = true;
    }

    pub(crate) fn stall(&mut self, stall: &Stall) {
        if self.recent.len() >= RECENT_STALLS {
            self.recent.pop_front();
        }
        self.recent.push_back((stall.start, stall.end));
        self.last_end = self.last_end.max(stall.end);
        let open = self.open.as_mut().map(|(segment, _)| segment);
        // Newest first: a stall overlaps recent pages.
        for segment in self.closed.iter_mut().rev().take(64).chain(open) {
            if segment.first <= stall.end && stall.start <= segment.last {
                segment.worst = segment.worst.max(stall.length());
            }
        }
    }

    pub(crate) fn page(
        &mut self,
        role: TraceRole,
        cpu: CpuId,
        first: Ticks,
        last: Ticks,
        page: &[u8],
    ) -> Result<(), StoreError> {
        if self.discarded {
            return Ok(());
        }
        if self.limit == 0 {
            self.complete = false;
            return Ok(());
        }
        let length = u32::try_from(page.len()).unwrap_or(u32::MAX);
        self.frame(
            FrameHeader {
                role: role_byte(role),
                cpu,
                first,
                last,
                length,
            },
            page,
        )?;
        let Some((segment, _)) = &mut self.open else {
            return Ok(());
        };
        segment.first = segment.first.min(first);
        segment.last = segment.last.max(last);
        if first <= self.last_end {
            for (start, end) in &self.recent {
                if first <= *end && *start <= last {
                    segment.worst = segment.worst.max(end.since(*start));
                }
            }
        }
        // A segment ends with a turn, so that removing it removes whole turns; a very long turn is split.
        self.end_segment(self.segment_size() / 2 * 3)
    }

    /// Writes the end of a recorder's turn, after its pages. Omits a turn that is too long for a reader: a replay then
    /// processes its stalls with those of the next turn.
    pub(crate) fn turn(&mut self, turn: &DrainTurn) -> Result<(), StoreError> {
        if self.discarded || self.limit == 0 {
            return Ok(());
        }
        let text =
            serde_json::to_vec(turn).map_err(|e| StoreError::damaged(self.segments.path(), e))?;
        if let Some(length) = u32::try_from(text.len())
            .ok()
            .filter(|length| *length <= LONGEST_PAGE)
        {
            let (first, last) = (turn.now, turn.now);
            self.frame(
                FrameHeader {
                    role: TURN,
                    cpu: CpuId(0),
                    first,
                    last,
                    length,
                },
                &text,
            )?;
        }
        self.end_segment(self.segment_size())
    }

    /// Leaves out a number of the segments, by which a reader knows that a part is missing.
    pub(crate) fn missing(&mut self) -> Result<(), StoreError> {
        self.close_segment()?;
        self.number += 1;
        self.complete = false;
        Ok(())
    }

    fn frame(&mut self, header: FrameHeader, bytes: &[u8]) -> Result<(), StoreError> {
        if self.open.is_none() {
            self.open = Some(self.new_segment()?);
        }
        let Some((segment, file)) = &mut self.open else {
            return Ok(());
        };
        file.write_all(&header.to_bytes())
            .and_then(|()| file.write_all(bytes))
            .map_err(|e| StoreError::write(&self.segments.path().join(&segment.name), e))?;
        segment.bytes += (HEADER + bytes.len()) as u64;
        segment.measured |= self.begun;
        Ok(())
    }

    fn segment_size(&self) -> u64 {
        (self.limit / 8).clamp(SMALLEST_SEGMENT, SEGMENT)
    }

    /// Begins a new segment when the open one has at least `enough` bytes.
    fn end_segment(&mut self, enough: u64) -> Result<(), StoreError> {
        let Some((segment, _)) = &self.open else {
            return Ok(());
        };
        if segment.bytes >= enough {
            self.close_segment()?;
            self.keep_limit()?;
        }
        Ok(())
    }

    fn new_segment(&mut self) -> Result<(Segment, BufWriter<File>), StoreError> {
        self.number += 1;
        let name = format!("{:06}.seg", self.number);
        let file = self
            .segments
            .create_new(&name)
            .map_err(StoreError::writing)?;
        let mut file = BufWriter::with_capacity(1 << 16, file);
        file.write_all(MAGIC)
            .map_err(|e| StoreError::write(&self.path(&name), e))?;
        let bytes = MAGIC.len() as u64;
        let (first, last) = (Ticks(u64::MAX), Ticks(0));
        let segment = Segment {
            name,
            bytes,
            first,
            last,
            worst: Ticks(0),
            measured: self.begun,
        };
        Ok((segment, file))
    }

    fn path(&self, segment: &str) -> PathBuf {
        self.segments.path().join(segment)
    }

    fn close_segment(&mut self) -> Result<(), StoreError> {
        let Some((segment, file)) = self.open.take() else {
            return Ok(());
        };
        let (path, name) = (self.path(&segment.name), segment.name.clone());
        // Listed in either case: a segment that failed to close may still have to be removed.
        self.closed.push(segment);
        let file = file
            .into_inner()
            .map_err(|e| StoreError::write(&path, e.into_error()))?;
        self.syncing.add(file, path, name);
        Ok(())
    }

    fn bytes(&self) -> u64 {
        self.closed.iter().map(|s| s.bytes).sum()
    }

    fn keep_limit(&mut self) -> Result<(), StoreError> {
        while self.bytes() > self.limit {
            // Never the last segment: its stalls may still arrive.
            let settled = self.closed.iter().rev().skip(1).rev();
            let least = settled
                .enumerate()
                .min_by_key(|(_, s)| s.worst)
                .map(|(i, _)| i);
            let Some(least) = least else { break };
            let segment = self.closed.remove(least);
            self.remove(&segment.name)?;
            // Segments from before the measurement contain no stalls: they only let a replay start where the recording
            // did.
            self.complete &= !segment.measured;
        }
        Ok(())
    }

    /// Writes the context for decoding the pages, in place of the one before.
    pub(crate) fn context(&mut self, json: &[u8]) -> Result<(), StoreError> {
        if self.discarded {
            return Ok(());
        }
        write_context(&self.trace, json)?;
        self.has_context = true;
        Ok(())
    }

    /// Removes the raw trace, to free space.
    pub(crate) fn discard(&mut self) -> Result<(), StoreError> {
        self.discarded = true;
        self.complete = false;
        let open = self.open.take().map(|(segment, file)| {
            // The buffered rest is not needed.
            let _ = file.into_parts();
            segment
        });
        // An open file would keep its disk space.
        self.syncing.give_up();
        let segments: Vec<Segment> = self.closed.drain(..).chain(open).collect();
        for segment in segments {
            self.remove(&segment.name)?;
        }
        if std::mem::take(&mut self.has_context) {
            self.trace
                .remove_file(CONTEXT)
                .map_err(StoreError::writing)?;
        }
        Ok(())
    }

    /// What the manifest says of the trace before it has any page.
    pub(crate) fn at_the_beginning(&self) -> StoredTrace {
        StoredTrace {
            limit_bytes: self.limit,
            ..StoredTrace::default()
        }
    }

    /// Writes what waits in memory.
    pub(crate) fn flush(&mut self) -> Result<(), StoreError> {
        let Some((segment, file)) = &mut self.open else {
            return Ok(());
        };
        file.flush()
            .map_err(|e| StoreError::write(&self.segments.path().join(&segment.name), e))
    }

    fn remove(&mut self, segment: &str) -> Result<(), StoreError> {
        self.syncing.forget(segment);
        self.segments
            .remove_file(segment)
            .map_err(StoreError::writing)
    }

    pub(crate) fn finish(&mut self) -> Result<StoredTrace, StoreError> {
        self.close_segment()?;
        self.keep_limit()?;
        self.syncing.finish(&self.segments)?;
        if self.has_context {
            let context = self.trace.open_file(CONTEXT).map_err(StoreError::writing)?;
            context
                .sync_all()
                .map_err(|e| StoreError::write(&self.trace.path().join(CONTEXT), e))?;
        }
        let span = |of: &Segment| SegmentSpan {
            name: of.name.clone(),
            first: of.first,
            last: of.last,
        };
        let spans: Vec<SegmentSpan> = self.closed.iter().map(span).collect();
        if !spans.is_empty() {
            write_spans(&self.trace, &spans)?;
        }
        Ok(StoredTrace {
            bytes: self.bytes(),
            complete: self.complete,
            limit_bytes: self.limit,
        })
    }
}

/// Writes the context, in place of the one before.
pub(crate) fn write_context(trace: &HeldDir, json: &[u8]) -> Result<(), StoreError> {
    let _ = trace.remove_file(CONTEXT_PARTIAL);
    let mut file = trace
        .create_new(CONTEXT_PARTIAL)
        .map_err(StoreError::writing)?;
    if let Err(error) = file.write_all(json) {
        let _ = trace.remove_file(CONTEXT_PARTIAL);
        return Err(StoreError::write(
            &trace.path().join(CONTEXT_PARTIAL),
            error,
        ));
    }
    trace
        .rename(CONTEXT_PARTIAL, CONTEXT)
        .map_err(StoreError::writing)
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::segment;
    use jitterscope_model::{Comm, StallId, ThreadRef};
    use jitterscope_testing::Tmpfs;

    fn stall(start: u64, end: u64) -> Stall {
        let victim = ThreadRef {
            tid: 1,
            comm: Comm::new("x"),
        };
        Stall {
            id: StallId(0),
            cpu: CpuId(1),
            victim,
            start: Ticks(start),
            end: Ticks(end),
        }
    }

    /// Writes many pages over the limit. The worst stall is that of the hundredth page. Returns the stored trace and
    /// the numbers of the kept pages. Each stall is announced before or after its page.
    fn kept(stall_first: bool) -> (StoredTrace, Vec<u64>) {
        let dir = tempfile::tempdir().unwrap();
        let run = HeldDir::trusted(dir.path()).unwrap();
        let mut pages = TracePages::create(&run, 3 * SEGMENT).unwrap();
        pages.begin();
        let page = vec![0u8; 4000];
        for n in 0..3000u64 {
            let (first, last) = (n * 1000, n * 1000 + 900);
            // One long stall early on, short ones throughout.
            let stall = stall(first, first + if n == 100 { 800 } else { 10 });
            if stall_first {
                pages.stall(&stall);
            }
            pages
                .page(TraceRole::Local, CpuId(1), Ticks(first), Ticks(last), &page)
                .unwrap();
            if !stall_first {
                pages.stall(&stall);
            }
        }
        let stored = pages.finish().unwrap();
        let mut kept = Vec::new();
        for file in std::fs::read_dir(dir.path().join("trace/segments")).unwrap() {
            let file = File::open(file.unwrap().path()).unwrap();
            segment::read(file, |_| true, |header, _| kept.push(header.first.0 / 1000)).unwrap();
        }
        (stored, kept)
    }

    #[test]
    fn a_stall_that_was_announced_long_before_its_page_is_remembered() {
        let dir = tempfile::tempdir().unwrap();
        let mut pages =
            TracePages::create(&HeldDir::trusted(dir.path()).unwrap(), SMALLEST_SEGMENT).unwrap();
        pages.begin();
        pages.stall(&stall(1_000, 9_000));
        // Fills the list of recent stalls.
        (1..RECENT_STALLS as u64).for_each(|n| pages.stall(&stall(n * 100_000, n * 100_000 + 1)));
        let worst = |pages: &mut TracePages, first, last| {
            pages
                .page(
                    TraceRole::Local,
                    CpuId(1),
                    Ticks(first),
                    Ticks(last),
                    &[0; 8],
                )
                .unwrap();
            pages.open.as_ref().map(|(segment, _)| segment.worst)
        };
        assert_eq!(worst(&mut pages, 300_000, 300_000), Some(Ticks(1)));
        assert_eq!(
            worst(&mut pages, 9_001, 9_002),
            Some(Ticks(1)),
            "it overlaps none"
        );
        pages.stall(&stall(1, 2));
        assert_eq!(
            worst(&mut pages, 9_000, 9_001),
            Some(Ticks(1)),
            "that one is forgotten now"
        );
        pages.stall(&stall(2_000, 9_000));
        assert_eq!(worst(&mut pages, 9_000, 9_001), Some(Ticks(7_000)));
        assert_eq!(pages.recent.len(), RECENT_STALLS);
    }

    #[test]
    fn without_room_for_a_trace_nothing_of_it_is_stored() {
        let dir = tempfile::tempdir().unwrap();
        let mut pages = TracePages::create(&HeldDir::trusted(dir.path()).unwrap(), 0).unwrap();
        let empty = |dir: &tempfile::TempDir| {
            std::fs::read_dir(dir.path().join("trace/segments"))
                .unwrap()
                .next()
                .is_none()
        };
        pages.turn(&DrainTurn::default()).unwrap();
        pages
            .page(TraceRole::Local, CpuId(1), Ticks(1), Ticks(2), &[0; 8])
            .unwrap();
        assert!(empty(&dir));
        let stored = pages.finish().unwrap();
        assert!(!stored.complete && (stored.bytes, stored.limit_bytes) == (0, 0));
    }

    #[test]
    fn a_dropped_trace_removes_all_its_files_and_stays_dropped() {
        let dir = tempfile::tempdir().unwrap();
        let mut pages =
            TracePages::create(&HeldDir::trusted(dir.path()).unwrap(), 1 << 30).unwrap();
        let page = |pages: &mut TracePages| {
            pages
                .page(
                    TraceRole::Local,
                    CpuId(1),
                    Ticks(1),
                    Ticks(2),
                    &[0; 300_000],
                )
                .unwrap();
        };
        (0..8).for_each(|_| page(&mut pages));
        pages.context(b"{}").unwrap();
        assert_eq!(
            std::fs::read_dir(dir.path().join("trace/segments"))
                .unwrap()
                .count(),
            2
        );
        pages.discard().unwrap();
        page(&mut pages);
        pages.turn(&DrainTurn::default()).unwrap();
        pages.context(b"{}").unwrap();
        assert!(
            std::fs::read_dir(dir.path().join("trace/segments"))
                .unwrap()
                .next()
                .is_none()
        );
        assert!(!dir.path().join("trace/context.json").exists());
        let stored = pages.finish().unwrap();
        assert!(!stored.complete && stored.bytes == 0);
    }

    #[test]
    fn a_segment_is_of_the_measurement_once_it_has_begun() {
        let dir = tempfile::tempdir().unwrap();
        let mut pages =
            TracePages::create(&HeldDir::trusted(dir.path()).unwrap(), SMALLEST_SEGMENT).unwrap();
        let page = |pages: &mut TracePages| {
            pages
                .page(TraceRole::Local, CpuId(1), Ticks(1), Ticks(2), &[0; 8])
                .unwrap();
            pages
                .open
                .as_ref()
                .is_some_and(|(segment, _)| segment.measured)
        };
        assert!(!page(&mut pages));
        pages.begin();
        assert!(page(&mut pages), "the one that was open");
        pages.close_segment().unwrap();
        assert!(page(&mut pages), "and those that follow");
    }

    #[test]
    fn a_trace_of_exactly_the_limit_is_kept_whole() {
        let whole = |limit: u64| {
            let dir = tempfile::tempdir().unwrap();
            let mut pages =
                TracePages::create(&HeldDir::trusted(dir.path()).unwrap(), limit).unwrap();
            pages.begin();
            for _ in 0..4 {
                pages
                    .page(
                        TraceRole::Local,
                        CpuId(1),
                        Ticks(1),
                        Ticks(2),
                        &[0; 100_000],
                    )
                    .unwrap();
            }
            pages.finish().unwrap()
        };
        let bytes = 4 * (100_000 + (HEADER + MAGIC.len()) as u64);
        assert_eq!(
            whole(bytes),
            StoredTrace {
                bytes,
                complete: true,
                limit_bytes: bytes
            }
        );
        let less = whole(bytes - 1);
        assert_eq!((less.bytes, less.complete), (bytes / 4 * 3, false));
    }

    #[test]
    fn a_segment_that_finds_no_room_is_named() {
        let Some(disk) = Tmpfs::mount_or_run_where_it_can(1 << 20) else {
            return;
        };
        let run = HeldDir::trusted(disk.path()).unwrap();
        let mut pages = TracePages::create(&run, 1 << 30).unwrap();
        // Less than the buffer, so it is written at the end.
        pages
            .page(
                TraceRole::Local,
                CpuId(1),
                Ticks(1),
                Ticks(2),
                &[0; 8 << 10],
            )
            .unwrap();
        let mut other = run.create_new("other").unwrap();
        while other.write_all(&[1; 4096]).is_ok() {}
        match pages.finish() {
            Err(StoreError::Full { path }) => {
                assert_eq!(path, disk.path().join("trace/segments/000001.seg"));
            }
            other => panic!("{other:?}"),
        }
    }

    #[test]
    fn the_worst_stalls_pages_survive_the_limit() {
        for stall_first in [false, true] {
            let (stored, kept) = kept(stall_first);
            assert!(!stored.complete && stored.bytes <= 3 * SEGMENT + SEGMENT);
            assert!(kept.contains(&100), "the page of the worst stall is gone");
            assert!(kept.len() < 3000);
        }
    }
}
