//! Reads a stored run as a source: its recorder's steps in order.

use super::ReplayError;
use super::breaks::Breaks;
use crate::feed::PageFeed;
use crate::kept_names::ReplayedNames;
use jitterscope_model::{
    CpuSet, DrainTurn, Record, SetupStep, Sink, Source, SourceTurn, Ticks, TraceRole,
};
use jitterscope_source::TraceContext;
use jitterscope_store::{RunReader, StoreError, StoredPage, TracePiece};
use std::iter::Peekable;
use std::slice;

enum Step {
    /// Pages and their turn; no turn if its end is missing.
    Turn(Vec<StoredPage>, Option<Box<DrainTurn>>),
    /// A part of the trace was not kept.
    Missing,
}

/// Splits a stored trace into turns.
struct Steps {
    pieces: Pieces,
    pages: Vec<StoredPage>,
    missing: bool,
}

type Pieces = Box<dyn Iterator<Item = Result<TracePiece, StoreError>>>;

impl Iterator for Steps {
    type Item = Result<Step, StoreError>;

    fn next(&mut self) -> Option<Self::Item> {
        if std::mem::take(&mut self.missing) {
            return Some(Ok(Step::Missing));
        }
        loop {
            match self.pieces.next() {
                Some(Ok(TracePiece::Page(page))) => self.pages.push(page),
                Some(Ok(TracePiece::Turn(turn))) => {
                    return Some(Ok(Step::Turn(std::mem::take(&mut self.pages), Some(turn))));
                }
                Some(Ok(TracePiece::Missing)) if self.pages.is_empty() => {
                    return Some(Ok(Step::Missing));
                }
                Some(Ok(TracePiece::Missing)) => {
                    self.missing = true;
                    return Some(Ok(Step::Turn(std::mem::take(&mut self.pages), None)));
                }
                Some(Err(error)) => return Some(Err(error)),
                None if self.pages.is_empty() => return None,
                None => return Some(Ok(Step::Turn(std::mem::take(&mut self.pages), None))),
            }
        }
    }
}

/// The stored pages of a run as records, names and losses, as its recorder had them.
pub(super) struct StoredPages<'a> {
    steps: Steps,
    context: &'a TraceContext,
    setup: Peekable<slice::Iter<'a, SetupStep>>,
    recorded: CpuSet,
    feed: PageFeed,
    pub(super) names: ReplayedNames,
    pub(super) breaks: Breaks,
    /// Whether pages of the current turn are missing.
    in_part: bool,
}

impl<'a> StoredPages<'a> {
    /// The stored pages of a run, with the description of its pages.
    pub(super) fn new(
        run: &RunReader,
        context: &'a TraceContext,
    ) -> Result<StoredPages<'a>, ReplayError> {
        let pieces: Pieces = Box::new(run.trace_pieces()?);
        Ok(StoredPages {
            steps: Steps {
                pieces,
                pages: Vec::new(),
                missing: false,
            },
            context,
            setup: context.setup.iter().peekable(),
            recorded: run.manifest().probe.cpus.clone(),
            feed: PageFeed::new(context, &run.manifest().probe.cpus)?,
            names: ReplayedNames::new(context),
            breaks: Breaks::default(),
            in_part: false,
        })
    }

    fn miss(&mut self) {
        self.names.miss(self.context);
        self.breaks.miss(self.feed.last_records());
        self.in_part = true;
    }

    /// Hands over the records of a turn's pages, and moves the names read in the turn out of `turn`.
    fn pages(
        &mut self,
        pages: &[StoredPage],
        turn: Option<&mut DrainTurn>,
        take: &mut dyn FnMut(Record<'_>),
    ) {
        let in_part = std::mem::take(&mut self.in_part);
        let (mut reads, asked, identities) = turn.map_or_else(Default::default, |turn| {
            let (names, asked) = (
                std::mem::take(&mut turn.names),
                std::mem::take(&mut turn.asked),
            );
            (names, asked, std::mem::take(&mut turn.identities))
        });
        if in_part {
            // The record that preceded each read is unknown.
            reads.iter_mut().for_each(|read| read.after = u64::MAX);
        }
        self.names.turn(reads, asked, identities);
        for page in pages {
            if page.role == TraceRole::Local
                && let Some((from, to)) = self.breaks.page(page.cpu, page.first)
            {
                take(Record::Lost(page.cpu, from, to));
            }
            let names = &mut self.names;
            let (of, now) = ((page.role, page.cpu), Ticks(u64::MAX));
            self.feed.page(of, &page.bytes, now, |record| {
                if let Record::Sender(event) | Record::Local(event) = record {
                    names.learn(event);
                }
                take(record);
            });
        }
        self.names.pages_done();
    }
}

/// A run with stored pages: its turns are those of its recorder.
impl Source for StoredPages<'_> {
    type Error = ReplayError;

    fn turn(
        &mut self,
        _keep: &mut dyn Sink,
        take: &mut dyn FnMut(Record<'_>),
    ) -> Result<Option<SourceTurn>, ReplayError> {
        let (pages, mut turn) = match self.steps.next().transpose()? {
            None => return Ok(None),
            Some(Step::Missing) => {
                self.miss();
                return Ok(Some(SourceTurn::Missing));
            }
            Some(Step::Turn(pages, turn)) => (pages, turn),
        };
        if let Some(number) = turn.as_ref().map(|turn| turn.number) {
            while let Some(set) = self.setup.next_if(|set| set.before_turn <= number) {
                take(Record::Setup(&set.step));
            }
        }
        self.pages(&pages, turn.as_deref_mut(), take);
        if let Some((from, to)) = turn.as_ref().and_then(|turn| turn.disturbed) {
            take(Record::Disturbed(&self.recorded, from, to));
            self.feed.deafen(to);
        }
        Ok(Some(turn.map_or(SourceTurn::Cut, SourceTurn::Kept)))
    }

    fn seen_until(&self) -> Option<Ticks> {
        self.feed.seen_until()
    }
}
