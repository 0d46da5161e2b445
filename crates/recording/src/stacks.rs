//! The stacks of followed threads that go to sleep, during a recording.

use crate::feed::PageFeed;
use crate::kernel_events::AHEAD;
use crate::price::RecordClock;
use jitterscope_model::{
    ClockKind, RawPage, Record, RecordCost, Row, Sink, SinkError, SourceReport, StackPrice,
    TickRate, Ticks,
};
use jitterscope_platform::{Machine, clock, current_tid};
use jitterscope_source::{Role, SleepStacks, StackSettings, TraceContext, TraceError, Tracefs};

/// Whose stacks to record.
pub(crate) struct StackChoice {
    pub(crate) settings: StackSettings,
    /// Whether threads are also followed because of their names. Otherwise the kernel itself adds each thread that
    /// begins to be followed.
    pub(crate) by_name: bool,
    /// The rate of the clock.
    pub(crate) rate: TickRate,
}

/// A recording of stacks, with the threads that it does not have yet. Dropping it ends the recording.
pub(crate) struct FollowedStacks {
    pub(crate) stacks: SleepStacks,
    waiting: Vec<i32>,
    by_name: bool,
    clock: ClockKind,
    /// Why the kernel refused a thread.
    refused: Option<TraceError>,
    price: StackPrice,
    from: Ticks,
    until: Ticks,
}

impl FollowedStacks {
    /// Makes the instance, measures what a stack costs, and adds the record's format to the recorder's `context`.
    pub(crate) fn start(
        machine: &Machine,
        tracefs: &Tracefs,
        context: &mut TraceContext,
        choice: &StackChoice,
    ) -> Result<FollowedStacks, TraceError> {
        let mut stacks = SleepStacks::start(tracefs, &choice.settings)?;
        stacks.describe(context);
        let record = cost(machine, &mut stacks, choice)?;
        Ok(FollowedStacks {
            stacks,
            waiting: Vec::new(),
            by_name: choice.by_name,
            clock: choice.settings.clock,
            refused: None,
            price: StackPrice { records: 0, record },
            from: Ticks(u64::MAX),
            until: Ticks(u64::MAX),
        })
    }

    /// Counts stacks between these times.
    pub(crate) fn measure(&mut self, from: Ticks, until: Ticks) {
        (self.from, self.until, self.price.records) = (from, until, 0);
    }

    /// Keeps what was recorded so far, and hands it over.
    pub(crate) fn turn(
        &mut self,
        feed: &mut PageFeed,
        keep: &mut dyn Sink,
        take: &mut dyn FnMut(Record<'_>),
    ) -> Result<(), SinkError> {
        let mut kept = Ok(());
        for cpu in self.stacks.cpus().clone().iter() {
            let (price, window) = (&mut self.price, self.from..=self.until);
            let mut page = |bytes: &[u8]| {
                let now = clock::now(self.clock) + AHEAD;
                let info = feed.page((Role::Stacks, cpu), bytes, now, |record| {
                    if let Record::Stack(stack) = &record {
                        price.records += u64::from(window.contains(&stack.time));
                    }
                    take(record);
                });
                let range = info.and_then(|info| info.range);
                if let (Some((first, last)), Ok(())) = (range, &kept) {
                    kept = keep.rows(&[Row::Page(RawPage {
                        role: Role::Stacks,
                        cpu,
                        first,
                        last,
                        bytes,
                    })]);
                }
            };
            // No thread goes to sleep on a CPU that is offline.
            let _ = self.stacks.drain(cpu, &mut page);
        }
        kept
    }

    pub(crate) fn price(&self) -> StackPrice {
        self.price.clone()
    }

    /// The user or the recorder follows a thread.
    pub(crate) fn follow(&mut self, tid: i32) {
        self.waiting.push(tid);
    }

    /// A record shows that a thread is followed.
    pub(crate) fn found(&mut self, tid: i32) {
        if self.by_name {
            self.waiting.push(tid);
        }
    }

    /// Hands the threads to the kernel, all at once: it waits for every CPU after each list.
    pub(crate) fn hand_over(&mut self) {
        if self.waiting.is_empty() {
            return;
        }
        if let Err(error) = self.stacks.follow(&self.waiting) {
            self.refused = Some(error);
        }
        self.waiting.clear();
    }

    /// The source report. Called after the last drain.
    pub(crate) fn report(&self) -> SourceReport {
        match &self.refused {
            Some(error) => SleepStacks::refused(error),
            None => self.stacks.report(),
        }
    }
}

/// How much longer a call takes with a record and its stack.
fn cost(
    machine: &Machine,
    stacks: &mut SleepStacks,
    choice: &StackChoice,
) -> Result<Option<RecordCost>, TraceError> {
    let Some(mut clock) = RecordClock::before(machine, choice.settings.clock) else {
        return Ok(None);
    };
    stacks.price(Some(current_tid()))?;
    let cost = clock.longer(choice.rate);
    stacks.price(None)?;
    Ok(cost)
}
