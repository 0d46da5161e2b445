//! The file as a source: its pages in order of time, turn by turn.

use super::opened::{Opened, Stream};
use crate::feed::PageFeed;
use crate::kept_names::ReplayedNames;
use crate::price::PriceTally;
use jitterscope_model::{
    CpuSet, DrainTurn, EventPrice, NameRead, RawPage, Record, Row, SetupStep, Sink, SinkError,
    Source, SourceTurn, Ticks,
};
use jitterscope_source::tracedat::CpuPages;
use jitterscope_source::{ContextError, DecodeCounts, Page, PageLayout, PageLoss, TraceContext};
use std::cmp::Reverse;
use std::collections::{BTreeMap, BinaryHeap};
use std::io;

/// Pages of a turn, bytes: a turn's records wait in memory, ten times as large.
const TURN_BYTES: usize = 1 << 20;
/// A trace has at most so many turns without pages.
const MOST_STEPS: u64 = 1 << 16;
/// The usual length of a turn, in parts of an interval.
const STEPS_OF_INTERVAL: u64 = 10;

/// The pages of a CPU, with the next one's place in time.
struct Reading<'f> {
    stream: Stream,
    pages: CpuPages<'f>,
    /// Pages are missing or were left out here: the next one follows a loss.
    after_loss: bool,
    /// How many such places the file had so far.
    gaps: u64,
    /// Ends a CPU whose last pages are missing: nothing is known of it from its last record on.
    tail: Option<Vec<u8>>,
    /// The last record so far.
    last: Ticks,
}

impl Reading<'_> {
    /// The bytes of the next page.
    fn page(&mut self) -> &mut [u8] {
        match &mut self.tail {
            Some(tail) => tail,
            None => self.pages.peeked(),
        }
    }
}

/// The pages of a file.
pub(super) struct FilePages<'f> {
    readings: Vec<Reading<'f>>,
    /// The time from which each one's next page counts, and its number: its base time, or the last record before it if
    /// some were lost in between. What ends in that time must not be judged before the loss is known.
    order: BinaryHeap<Reverse<(Ticks, usize)>>,
    layout: PageLayout,
    feed: PageFeed,
    pub(super) names: ReplayedNames,
    setup: Vec<SetupStep>,
    price: PriceTally,
    /// The names of threads that the file states, until the first turn.
    threads: Vec<NameRead>,
    step: Ticks,
    /// The end of the trace, as far as its last pages show it.
    end: Ticks,
    /// Records up to here were handed over.
    now: Ticks,
    /// The last record so far.
    pub(super) last: Ticks,
    turns: u64,
    /// Bytes of the file read so far.
    pub(super) read: u64,
    /// Pages left out because they are out of order.
    pub(super) disordered: u64,
    ended: bool,
}

/// What the plan of an import gives to its source.
pub(super) struct Begun<'a> {
    pub(super) context: &'a TraceContext,
    pub(super) names: ReplayedNames,
    /// CPUs whose time counts.
    pub(super) measured: &'a CpuSet,
    /// First record, and the length of an interval.
    pub(super) from: Ticks,
    pub(super) interval: Ticks,
    /// How long the trace lasts, approximately.
    pub(super) span: Ticks,
    /// The number of the first turn.
    pub(super) first_turn: u64,
}

impl<'f> FilePages<'f> {
    pub(super) fn new(
        opened: &'f Opened,
        begun: Begun<'_>,
    ) -> Result<FilePages<'f>, FilePagesError> {
        let Begun {
            context,
            names,
            measured,
            from,
            interval,
            span,
            first_turn,
        } = begun;
        let mut price = PriceTally::new(measured.clone());
        price.measure(from, Ticks(u64::MAX));
        let reading = |stream: &Stream| Reading {
            pages: opened.pages(stream),
            stream: stream.clone(),
            after_loss: false,
            gaps: 0,
            tail: None,
            last: Ticks(0),
        };
        let named = |(tid, comm): &(i32, jitterscope_model::Comm)| NameRead {
            after: 0,
            tid: *tid,
            name: comm.to_string(),
        };
        let mut pages = FilePages {
            readings: opened.streams.iter().map(reading).collect(),
            order: BinaryHeap::new(),
            layout: opened.layout,
            feed: PageFeed::new(context, measured)?,
            names,
            setup: context.setup.clone(),
            price,
            threads: opened.dat.threads.iter().map(named).collect(),
            step: Ticks(
                (interval.0 / STEPS_OF_INTERVAL)
                    .max(span.0 / MOST_STEPS)
                    .max(1),
            ),
            end: from + span,
            now: from,
            last: from,
            turns: first_turn,
            read: 0,
            disordered: 0,
            ended: false,
        };
        for number in 0..pages.readings.len() {
            pages.queue(number)?;
        }
        Ok(pages)
    }

    /// Queues the next page of a CPU, if it has one.
    fn queue(&mut self, number: usize) -> io::Result<()> {
        let layout = self.layout;
        let Reading {
            pages,
            after_loss,
            gaps,
            tail,
            last,
            ..
        } = &mut self.readings[number];
        if tail.is_some() {
            return Ok(());
        }
        loop {
            let found = pages.peek()?.is_some();
            *after_loss |= std::mem::replace(gaps, pages.gaps()) < pages.gaps();
            let bytes = pages.peeked();
            if !found {
                break;
            }
            match Page::parse(&layout, bytes) {
                Ok(page) if !page.is_empty() => {
                    let is_lossy = *after_loss || page.loss() != PageLoss::None;
                    let from = if is_lossy { *last } else { page.base() };
                    self.order.push(Reverse((from, number)));
                    return Ok(());
                }
                // Without records.
                Ok(page) => *after_loss |= page.loss() != PageLoss::None,
                // Cut off within its head.
                Err(_) => {}
            }
            pages.pass();
        }
        if *after_loss {
            *tail = Some(Page::of_loss(&layout, self.end));
            self.order.push(Reverse((*last, number)));
        }
        Ok(())
    }

    /// The time before which all records were read.
    fn frontier(&self) -> Ticks {
        match self.order.peek() {
            Some(Reverse((base, _))) => *base - Ticks(1),
            None => Ticks(u64::MAX),
        }
    }

    /// Reads the next page.
    fn page(
        &mut self,
        keep: &mut dyn Sink,
        take: &mut dyn FnMut(Record<'_>),
    ) -> Result<usize, FilePagesError> {
        let Some(Reverse((_, number))) = self.order.pop() else {
            return Ok(0);
        };
        let reading = &mut self.readings[number];
        let (role, cpu) = (reading.stream.role, reading.stream.cpu);
        let after_loss = std::mem::take(&mut reading.after_loss);
        let bytes = reading.page();
        if after_loss {
            Page::mark_loss(&self.layout, bytes);
        }
        let whole = bytes.len();
        let used = Page::used(&self.layout, bytes);
        let bytes = &bytes[..used];
        let (names, price) = (&mut self.names, &mut self.price);
        let info = self
            .feed
            .page((role, cpu), bytes, Ticks(u64::MAX), |record| {
                if let Record::Sender(event) | Record::Local(event) = record {
                    names.learn(event);
                    price.event(event);
                }
                take(record);
            });
        match info {
            Some(info) => {
                if let Some((first, last)) = info.range {
                    self.last = self.last.max(last);
                    keep.rows(&[Row::Page(RawPage {
                        role,
                        cpu,
                        first,
                        last,
                        bytes,
                    })])?;
                    self.readings[number].last = last;
                }
            }
            // The end of a CPU whose last page already was at the end.
            None if self.readings[number].tail.is_some() => {}
            None => {
                self.disordered += 1;
                self.readings[number].after_loss = true;
            }
        }
        let reading = &mut self.readings[number];
        if reading.tail.is_none() {
            reading.pages.pass();
        }
        self.queue(number)?;
        Ok(whole)
    }

    /// CPUs whose pages are not all there.
    pub(super) fn incomplete(&self) -> CpuSet {
        let cut = self.readings.iter().filter(|of| of.pages.gaps() > 0);
        cut.map(|reading| reading.stream.cpu).collect()
    }

    /// The number of records of each described event.
    pub(super) fn seen(&self) -> BTreeMap<String, u64> {
        self.feed.seen()
    }

    /// The number of records that no verdict uses, without those that we added.
    pub(super) fn unread(&self) -> u64 {
        let all: u64 = self.feed.counts().iter().map(|of| of.unknown).sum();
        let tails = self.readings.iter().filter(|of| of.tail.is_some());
        all.saturating_sub(tails.count() as u64)
    }

    pub(super) fn counts(&self) -> [DecodeCounts; 2] {
        self.feed.counts()
    }

    pub(super) fn price(&self) -> EventPrice {
        self.price.so_far()
    }
}

/// Why pages cannot be handed over.
#[derive(Debug, thiserror::Error)]
pub(super) enum FilePagesError {
    #[error(transparent)]
    Read(#[from] io::Error),
    #[error(transparent)]
    Context(#[from] ContextError),
    #[error(transparent)]
    Taken(#[from] SinkError),
}

impl Source for FilePages<'_> {
    type Error = FilePagesError;

    fn turn(
        &mut self,
        keep: &mut dyn Sink,
        take: &mut dyn FnMut(Record<'_>),
    ) -> Result<Option<SourceTurn>, FilePagesError> {
        if self.ended {
            return Ok(None);
        }
        for set in self.setup.drain(..) {
            take(Record::Setup(&set.step));
        }
        let names = std::mem::take(&mut self.threads);
        self.names.turn(names.clone(), Vec::new(), Vec::new());
        let (goal, mut bytes) = (self.now + self.step, 0);
        while self.frontier() < goal && bytes < TURN_BYTES {
            bytes += self.page(keep, take)?;
        }
        self.names.pages_done();
        self.read = self.read.saturating_add(bytes as u64);
        self.ended = self.order.is_empty() && goal >= self.last;
        self.now = match self.ended {
            true => Ticks(u64::MAX),
            false => self.now.max(goal.min(self.frontier())),
        };
        let turn = DrainTurn {
            number: self.turns,
            now: self.now,
            names,
            functions: self.names.take_functions(),
            measuring: true,
            end: self.ended.then_some(self.last),
            ..DrainTurn::default()
        };
        self.turns += 1;
        Ok(Some(SourceTurn::Kept(Box::new(turn))))
    }

    fn seen_until(&self) -> Option<Ticks> {
        self.feed.seen_until()
    }
}
