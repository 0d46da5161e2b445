//! The steps of a stored recorder, in order.

use super::breaks::Breaks;
use crate::feed::PageFeed;
use crate::kernel_events::Item;
use crate::names::ReplayedNames;
use jitterscope_model::{DrainTurn, Setup, SetupStep, Ticks};
use jitterscope_store::{RunReader, StoreError, StoredPage, TracePiece, TraceRole};
use jitterscope_trace::{Role, TraceContext};

/// What comes next.
pub(super) enum Step {
    /// Pages, and the turn that they belong to; no turn where its end is missing.
    Turn(Vec<StoredPage>, Option<Box<DrainTurn>>),
    /// A part of the trace was not kept.
    Missing,
}

/// Cuts a stored trace into turns.
pub(super) struct Steps<I> {
    pieces: I,
    pages: Vec<StoredPage>,
    missing: bool,
}

/// The steps of a run's recorder.
pub(super) fn steps(
    run: &RunReader,
) -> Result<Steps<impl Iterator<Item = Result<TracePiece, StoreError>> + use<>>, StoreError> {
    Ok(Steps { pieces: run.trace_pieces()?, pages: Vec::new(), missing: false })
}

impl<I: Iterator<Item = Result<TracePiece, StoreError>>> Iterator for Steps<I> {
    type Item = Result<Step, StoreError>;

    fn next(&mut self) -> Option<Self::Item> {
        if std::mem::take(&mut self.missing) {
            return Some(Ok(Step::Missing));
        }
        loop {
            match self.pieces.next() {
                Some(Ok(TracePiece::Page(page))) => self.pages.push(page),
                Some(Ok(TracePiece::Turn(turn))) => {
                    return Some(Ok(Step::Turn(std::mem::take(&mut self.pages), Some(Box::new(turn)))));
                }
                Some(Ok(TracePiece::Missing)) if self.pages.is_empty() => return Some(Ok(Step::Missing)),
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

/// What is set up before a turn.
pub(super) struct SetupSteps<'a>(std::iter::Peekable<std::slice::Iter<'a, SetupStep>>);

impl<'a> SetupSteps<'a> {
    pub(super) fn new(context: &'a TraceContext) -> SetupSteps<'a> {
        SetupSteps(context.setup.iter().peekable())
    }

    /// The next thing that was set up before this turn.
    pub(super) fn before(&mut self, turn: u64) -> Option<&'a Setup> {
        self.0.next_if(|set| set.before_turn <= turn).map(|set| &set.step)
    }
}

/// Pages to records, names and losses, as the recorder had them.
pub(super) struct Reading {
    feed: PageFeed,
    pub(super) names: ReplayedNames,
    pub(super) breaks: Breaks,
    /// Whether the turn under way lacks pages.
    in_part: bool,
}

impl Reading {
    pub(super) fn new(feed: PageFeed, context: &TraceContext) -> Reading {
        Reading { feed, names: ReplayedNames::new(context), breaks: Breaks::default(), in_part: false }
    }

    /// A part of the trace is missing here.
    pub(super) fn miss(&mut self, context: &TraceContext) {
        self.names.miss(context);
        self.breaks.miss(self.feed.last_records());
        self.in_part = true;
    }

    /// Hands over what the pages of a turn hold; takes the names that were read in it out of the turn.
    pub(super) fn turn(
        &mut self,
        pages: &[StoredPage],
        turn: Option<&mut DrainTurn>,
        mut sink: impl FnMut(Item),
    ) {
        let in_part = std::mem::take(&mut self.in_part);
        let (mut reads, asked, identities) = turn.map_or_else(Default::default, |turn| {
            let (names, asked) = (std::mem::take(&mut turn.names), std::mem::take(&mut turn.asked));
            (names, asked, std::mem::take(&mut turn.identities))
        });
        if in_part {
            // Which record each came after cannot be told.
            reads.iter_mut().for_each(|read| read.after = u64::MAX);
        }
        self.names.turn(reads, asked, identities);
        for page in pages {
            let role = match page.role {
                TraceRole::Local => Role::Local,
                TraceRole::Senders => Role::Senders,
            };
            if role == Role::Local
                && let Some((from, to)) = self.breaks.page(page.cpu, page.first)
            {
                sink(Item::Lost(page.cpu, from, to));
            }
            let names = &mut self.names;
            self.feed.page(role, page.cpu, &page.bytes, |item| {
                if let Item::Sender(event) | Item::Local(event) = &item {
                    names.learn(event);
                }
                sink(item);
            });
        }
        self.names.pages_done();
    }

    pub(super) fn seen_until(&self) -> Option<Ticks> {
        self.feed.seen_until()
    }
}
