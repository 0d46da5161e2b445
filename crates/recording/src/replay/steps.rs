//! A stored run as a source: the steps of its recorder, in order.

use super::ReplayError;
use super::breaks::Breaks;
use crate::feed::PageFeed;
use crate::names::ReplayedNames;
use jitterscope_model::{DrainTurn, Record, SetupStep, Sink, Source, SourceTurn, Ticks, TraceRole};
use jitterscope_source::TraceContext;
use jitterscope_store::{RunReader, StoreError, StoredPage, TracePiece};
use std::iter::Peekable;
use std::slice;

/// What comes next.
enum Step {
    /// Pages, and the turn that they belong to; no turn where its end is missing.
    Turn(Vec<StoredPage>, Option<Box<DrainTurn>>),
    /// A part of the trace was not kept.
    Missing,
}

/// Cuts a stored trace into turns.
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

/// The pages that a run kept, as records, names and losses: as its recorder had them.
pub(super) struct StoredPages<'a> {
    steps: Steps,
    context: &'a TraceContext,
    setup: Peekable<slice::Iter<'a, SetupStep>>,
    feed: PageFeed,
    pub(super) names: ReplayedNames,
    pub(super) breaks: Breaks,
    /// Whether the turn under way lacks pages.
    in_part: bool,
}

impl<'a> StoredPages<'a> {
    /// Of a run with this description of its pages.
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
            feed: PageFeed::new(context, &run.manifest().probe.cpus)?,
            names: ReplayedNames::new(context),
            breaks: Breaks::default(),
            in_part: false,
        })
    }

    /// A part of the trace is missing here.
    fn miss(&mut self) {
        self.names.miss(self.context);
        self.breaks.miss(self.feed.last_records());
        self.in_part = true;
    }

    /// Hands over what the pages of a turn hold; takes the names that were read in it out of the turn.
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
            // Which record each came after is not known.
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
            self.feed.page(page.role, page.cpu, &page.bytes, |record| {
                if let Record::Sender(event) | Record::Local(event) = record {
                    names.learn(event);
                }
                take(record);
            });
        }
        self.names.pages_done();
    }
}

/// A run that kept them: its turns are those of its recorder.
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
        Ok(Some(turn.map_or(SourceTurn::Cut, SourceTurn::Kept)))
    }

    fn seen_until(&self) -> Option<Ticks> {
        self.feed.seen_until()
    }
}
