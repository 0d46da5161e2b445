//! Decodes pages to kernel events.
//!
//! [`Decoder`] is made from a [`TraceContext`]: each known event's format becomes a plan (`plan`), indexed by the
//! event's id. It skips and counts what it cannot decode: unknown events, events shorter than their format, and pages
//! with an invalid end.

mod asked;
mod marks;
mod names;
mod plan;

use crate::context::{ContextError, TraceContext};
use crate::format::NumberField;
use crate::ring::{Page, PageError, PageLayout, PageLoss, PageRecords};
pub use asked::{AskedDecoder, AskedRecord};
use jitterscope_model::{CpuId, ExecutionContext, KernelEvent, Ticks};
pub use marks::Mark;
use marks::Marks;
use names::Names;
use plan::Compiled;

/// Counts of decoded and undecodable data.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct DecodeCounts {
    pub pages: u64,
    pub events: u64,
    /// Events with an unknown id, or of a kind that we do not use.
    pub unknown: u64,
    /// Events shorter than their format.
    pub malformed: u64,
    /// Pages that were truncated, or ended in invalid bytes.
    pub damaged_pages: u64,
    /// Lost events, by the ring buffer's count.
    pub lost: u64,
    /// Pages before which an unknown number of events was lost.
    pub lost_unknown: u64,
}

/// The contents of one page.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct PageInfo {
    /// Times of its first and last event, including unknown ones.
    pub range: Option<(Ticks, Ticks)>,
    pub events: u64,
    /// The loss before it.
    pub loss: PageLoss,
    /// Whether it ended in invalid bytes: later events of it are lost.
    pub damaged: bool,
}

/// Decodes pages of one recording instance.
#[derive(Debug)]
pub struct Decoder {
    layout: PageLayout,
    /// By event id.
    plans: Vec<Option<Compiled>>,
    /// The number of records, by event id.
    seen: Vec<u64>,
    /// The events with a plan: id, and `system:event`.
    events: Vec<(usize, String)>,
    id: NumberField,
    pid: NumberField,
    flags: NumberField,
    names: Names,
    counts: DecodeCounts,
    marks: Option<Marks>,
}

impl Decoder {
    /// A decoder for the pages that `context` belongs to.
    ///
    /// # Errors
    /// The context does not describe pages or formats.
    pub fn new(context: &TraceContext) -> Result<Decoder, ContextError> {
        let layout = context.layout()?;
        let mut names = Names::default();
        let mut plans: Vec<Option<Compiled>> = Vec::new();
        let mut events = Vec::new();
        let (mut id, mut pid, mut flags) = Default::default();
        for format in context.formats()? {
            // The same for all events of a kernel.
            id = format.number("common_type");
            pid = format.number("common_pid");
            flags = format.number("common_flags");
            let index = usize::from(format.id());
            if index >= plans.len() {
                plans.resize_with(index + 1, || None);
            }
            plans[index] = Compiled::new(&format, &mut names);
            events.push((index, format!("{}:{}", format.system(), format.name())));
        }
        Ok(Decoder {
            layout,
            seen: vec![0; plans.len()],
            events,
            plans,
            id,
            pid,
            flags,
            names,
            counts: DecodeCounts::default(),
            marks: None,
        })
    }

    /// The layout of the pages.
    #[must_use]
    pub fn layout(&self) -> &PageLayout {
        &self.layout
    }

    /// The described events, each as `system:event`, with the number of their records so far.
    pub fn seen(&self) -> impl Iterator<Item = (&str, u64)> {
        let count = |id: usize| self.seen.get(id).copied().unwrap_or(0);
        self.events
            .iter()
            .map(move |(id, name)| (name.as_str(), count(*id)))
    }

    /// Keeps what is written to `trace_marker` from now on.
    pub fn keep_marks(&mut self) {
        self.marks = Some(Marks::default());
    }

    /// What was written to `trace_marker` since the last call, in the order of its pages.
    pub fn take_marks(&mut self) -> Vec<Mark> {
        self.marks.as_mut().map_or_else(Vec::new, Marks::take)
    }

    /// The counts so far.
    #[must_use]
    pub fn counts(&self) -> DecodeCounts {
        self.counts
    }

    /// Decodes one page of `cpu`'s buffer and passes each event to `sink`, in order of time.
    ///
    /// # Errors
    /// The bytes are fewer than a page header.
    pub fn page(
        &mut self,
        cpu: CpuId,
        bytes: &[u8],
        sink: impl FnMut(KernelEvent),
    ) -> Result<PageInfo, PageError> {
        let page = Page::parse(&self.layout, bytes)?;
        Ok(self.records(cpu, &page.read(), sink))
    }

    /// The same for a page whose records are already located.
    pub fn records(
        &mut self,
        cpu: CpuId,
        page: &PageRecords<'_>,
        mut sink: impl FnMut(KernelEvent),
    ) -> PageInfo {
        let mut info = PageInfo {
            range: page.time_range(),
            events: 0,
            loss: page.loss(),
            damaged: page.is_damaged(),
        };
        let (mut unknown, mut malformed) = (0, 0);
        for record in &page.events {
            let id = self.id.u32(record.data) as usize;
            let Some(Some(plan)) = self.plans.get(id) else {
                unknown += 1;
                if let Some(seen) = self.seen.get_mut(id) {
                    *seen += 1;
                }
                if let Some(marks) = &mut self.marks {
                    marks.record(id, record.time, record.data);
                }
                continue;
            };
            if record.data.len() < plan.length {
                malformed += 1;
                continue;
            }
            let kind = plan.decode(record.data, &mut self.names);
            info.events += 1;
            self.seen[id] += 1;
            let tid = self.pid.i32(record.data);
            let context = ExecutionContext::from_flags(self.flags.u32(record.data) as u8);
            sink(KernelEvent {
                time: record.time,
                cpu,
                tid,
                context,
                kind,
            });
        }
        self.counts.pages += 1;
        self.counts.events += info.events;
        self.counts.unknown += unknown;
        self.counts.malformed += malformed;
        self.counts.damaged_pages += u64::from(info.damaged);
        match info.loss {
            PageLoss::None => {}
            PageLoss::Lost(n) => self.counts.lost = self.counts.lost.saturating_add(n),
            PageLoss::LostUnknown => self.counts.lost_unknown += 1,
        }
        info
    }
}

#[cfg(test)]
#[path = "tests.rs"]
mod tests;
