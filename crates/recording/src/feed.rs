//! Turns pages of the kernel's buffers into records and losses, live or from a stored run.

use jitterscope_model::{CpuId, CpuSet, Record, Ticks};
use jitterscope_source::{
    ContextError, DecodeCounts, Decoder, Mark, Page, PageInfo, PageLoss, PageRecords, Role,
    StackDecoder, TraceContext,
};
use rustc_hash::FxHashMap;
use std::collections::BTreeMap;

/// Decodes the pages of both tracing instances of one recording.
pub(crate) struct PageFeed {
    local: Decoder,
    senders: Decoder,
    /// For the stacks of sleeping threads, if they are recorded.
    stacks: Option<StackDecoder>,
    /// Time of the last stack, for all CPUs.
    last_stack: FxHashMap<CpuId, Ticks>,
    /// Time of the last record per measured CPU: a loss begins there.
    last_record: FxHashMap<CpuId, Ticks>,
    /// Time of the last record of the sending side, for all CPUs.
    last_sender: FxHashMap<CpuId, Ticks>,
    /// Records up to this time are not trusted.
    deaf_until: Ticks,
    /// Pages whose times are not from this recording.
    foreign: u64,
}

impl PageFeed {
    /// `measured`: the CPUs with a buffer of their own.
    pub(crate) fn new(context: &TraceContext, measured: &CpuSet) -> Result<PageFeed, ContextError> {
        Ok(PageFeed {
            local: Decoder::new(context)?,
            senders: Decoder::new(context)?,
            stacks: StackDecoder::new(context)?,
            last_stack: FxHashMap::default(),
            last_sender: FxHashMap::default(),
            last_record: measured.iter().map(|cpu| (cpu, Ticks::default())).collect(),
            deaf_until: Ticks(0),
            foreign: 0,
        })
    }

    /// Also decodes the stacks that `context` describes from now on.
    pub(crate) fn decode_stacks(&mut self, context: &TraceContext) -> Result<(), ContextError> {
        self.stacks = StackDecoder::new(context)?;
        Ok(())
    }

    /// Keeps what is written to `trace_marker` of either instance from now on.
    pub(crate) fn keep_marks(&mut self) {
        self.local.keep_marks();
        self.senders.keep_marks();
    }

    /// What was written there since the last call.
    pub(crate) fn take_marks(&mut self) -> Vec<Mark> {
        let mut marks = self.local.take_marks();
        marks.extend(self.senders.take_marks());
        marks
    }

    /// Distrusts records up to `until` and drops them when they arrive.
    pub(crate) fn deafen(&mut self, until: Ticks) {
        self.deaf_until = until;
    }

    /// Pages since the last call that another clock stamped: their records precede those of the previous page, or lie
    /// in the future.
    pub(crate) fn take_foreign(&mut self) -> u64 {
        std::mem::take(&mut self.foreign)
    }

    /// Hands over a page's records in time order, preceded by the losses before them. Hands over nothing if the page is
    /// unreadable or claims to be from after `now`.
    pub(crate) fn page(
        &mut self,
        (role, cpu): (Role, CpuId),
        bytes: &[u8],
        now: Ticks,
        mut sink: impl FnMut(Record<'_>),
    ) -> Option<PageInfo> {
        let deaf_until = self.deaf_until;
        match role {
            Role::Senders => {
                let page = Page::parse(self.senders.layout(), bytes).ok()?.read();
                let last_sender = self.last_sender.entry(cpu).or_default();
                if is_foreign(*last_sender, &page, now) {
                    self.foreign += 1;
                    return None;
                }
                for (from, to) in losses(last_sender, &page).into_iter().flatten() {
                    sink(Record::SendersLost(from, to));
                }
                Some(self.senders.records(cpu, &page, |event| {
                    if event.time > deaf_until {
                        sink(Record::Sender(&event));
                    }
                }))
            }
            Role::Local => {
                // Losses before the page, and a possible loss at its end, are reported before its events.
                let last_record = self.last_record.entry(cpu).or_default();
                let page = Page::parse(self.local.layout(), bytes).ok()?.read();
                if is_foreign(*last_record, &page, now) {
                    self.foreign += 1;
                    return None;
                }
                for (from, to) in losses(last_record, &page).into_iter().flatten() {
                    sink(Record::Lost(cpu, from, to));
                }
                Some(self.local.records(cpu, &page, |event| {
                    if event.time > deaf_until {
                        sink(Record::Local(&event));
                    }
                }))
            }
            Role::Stacks => {
                let decoder = self.stacks.as_mut()?;
                let page = Page::parse(decoder.layout(), bytes).ok()?.read();
                let last_stack = self.last_stack.entry(cpu).or_default();
                if is_foreign(*last_stack, &page, now) {
                    return None;
                }
                // A lost stack leaves its sleep without a reason.
                losses(last_stack, &page);
                decoder.records(cpu, &page, |stack| {
                    if stack.time > deaf_until {
                        sink(Record::Stack(stack));
                    }
                });
                Some(PageInfo {
                    range: page.time_range(),
                    loss: page.loss(),
                    damaged: page.is_damaged(),
                    ..PageInfo::default()
                })
            }
            // Which thread ran is known from the other instances; its function calls are read only when a stall is
            // shown.
            Role::Graph => None,
        }
    }

    /// The number of records of each described event, `system:event`.
    pub(crate) fn seen(&self) -> BTreeMap<String, u64> {
        let mut seen: BTreeMap<String, u64> = BTreeMap::new();
        for (event, count) in self.local.seen().chain(self.senders.seen()) {
            *seen.entry(event.to_owned()).or_default() += count;
        }
        seen
    }

    /// What both sides decoded, and what they could not.
    pub(crate) fn counts(&self) -> [DecodeCounts; 2] {
        [self.local.counts(), self.senders.counts()]
    }

    /// The earliest of the CPUs' last records; `None` before the first record.
    pub(crate) fn seen_until(&self) -> Option<Ticks> {
        self.last_record.values().min().copied()
    }

    pub(crate) fn last_records(&self) -> impl Iterator<Item = (CpuId, Ticks)> + '_ {
        self.last_record.iter().map(|(cpu, last)| (*cpu, *last))
    }
}

/// Whether a page's records cannot be from the time in which the page was read.
fn is_foreign(last_record: Ticks, page: &PageRecords<'_>, now: Ticks) -> bool {
    page.time_range()
        .is_some_and(|(first, last)| first < last_record || last > now)
}

/// Where records are missing around a page; updates `last_record` to the end of the page.
fn losses(last_record: &mut Ticks, page: &PageRecords<'_>) -> [Option<(Ticks, Ticks)>; 2] {
    let (first, last) = page.time_range().unwrap_or((*last_record, *last_record));
    let before = (page.loss() != PageLoss::None).then_some((*last_record, first));
    let at_its_end = page.is_damaged().then_some((first, last));
    *last_record = last;
    [before, at_its_end]
}
