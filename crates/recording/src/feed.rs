//! Pages of the kernel's buffers to records and losses: the same for pages that just came and for stored ones.

use jitterscope_model::{CpuId, CpuSet, Record, Ticks};
use jitterscope_source::{
    ContextError, Decoder, Page, PageInfo, PageLoss, PageRecords, Role, TraceContext,
};
use rustc_hash::FxHashMap;

/// Decodes the pages of both instances of one recording.
pub(crate) struct PageFeed {
    local: Decoder,
    senders: Decoder,
    /// Time of the last record of each measured CPU, where a loss begins.
    last_record: FxHashMap<CpuId, Ticks>,
    /// The same of the sending side, of all CPUs.
    last_sender: FxHashMap<CpuId, Ticks>,
}

impl PageFeed {
    /// `measured`: the CPUs that have a buffer of their own.
    pub(crate) fn new(context: &TraceContext, measured: &CpuSet) -> Result<PageFeed, ContextError> {
        Ok(PageFeed {
            local: Decoder::new(context)?,
            senders: Decoder::new(context)?,
            last_sender: FxHashMap::default(),
            last_record: measured.iter().map(|cpu| (cpu, Ticks::default())).collect(),
        })
    }

    /// Hands over what a page holds, in order of time, with what was lost before it. What is not readable
    /// hands over nothing.
    pub(crate) fn page(
        &mut self,
        role: Role,
        cpu: CpuId,
        bytes: &[u8],
        mut sink: impl FnMut(Record<'_>),
    ) -> Option<PageInfo> {
        match role {
            Role::Senders => {
                let page = Page::parse(self.senders.layout(), bytes).ok()?.read();
                let last_sender = self.last_sender.entry(cpu).or_default();
                for (from, to) in losses(last_sender, &page).into_iter().flatten() {
                    sink(Record::SendersLost(from, to));
                }
                Some(
                    self.senders
                        .records(cpu, &page, |event| sink(Record::Sender(&event))),
                )
            }
            Role::Local => {
                // What was lost before the page, and what its end may lack, is given before its events.
                let last_record = self.last_record.entry(cpu).or_default();
                let page = Page::parse(self.local.layout(), bytes).ok()?.read();
                for (from, to) in losses(last_record, &page).into_iter().flatten() {
                    sink(Record::Lost(cpu, from, to));
                }
                Some(
                    self.local
                        .records(cpu, &page, |event| sink(Record::Local(&event))),
                )
            }
            // Who ran is known from the others; what he did within is asked for when a stall is shown.
            Role::Graph => None,
        }
    }

    /// The earliest of the CPUs' last records; `None` before there are any.
    pub(crate) fn seen_until(&self) -> Option<Ticks> {
        self.last_record.values().min().copied()
    }

    /// Time of each measured CPU's last record.
    pub(crate) fn last_records(&self) -> impl Iterator<Item = (CpuId, Ticks)> + '_ {
        self.last_record.iter().map(|(cpu, last)| (*cpu, *last))
    }
}

/// Where records are missing around a page; `last_record` becomes that of the page.
fn losses(last_record: &mut Ticks, page: &PageRecords<'_>) -> [Option<(Ticks, Ticks)>; 2] {
    let (first, last) = page.time_range().unwrap_or((*last_record, *last_record));
    let before = (page.loss() != PageLoss::None).then_some((*last_record, first));
    let at_its_end = page.is_damaged().then_some((first, last));
    *last_record = last;
    [before, at_its_end]
}
