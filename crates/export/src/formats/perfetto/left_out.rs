//! What of the kernel events a file does not have, because Perfetto has no message for it.

use jitterscope_model::EventKind;
use std::collections::BTreeMap;

#[derive(Default)]
pub(super) struct LeftOut {
    /// Events without a message, by tracepoint.
    without: BTreeMap<&'static str, u64>,
    /// Events of a kind that this version does not decode.
    unknown: u64,
    damaged_pages: u64,
    /// Pages of CPUs that Perfetto refuses.
    of_high_cpus: u64,
}

impl LeftOut {
    pub(super) fn without_message(&mut self, kind: &EventKind) {
        *self.without.entry(tracepoint(kind)).or_default() += 1;
    }

    pub(super) fn unknown(&mut self, events: u64) {
        self.unknown += events;
    }

    pub(super) fn damaged_page(&mut self) {
        self.damaged_pages += 1;
    }

    pub(super) fn cpu_too_high(&mut self) {
        self.of_high_cpus += 1;
    }

    /// What is missing, a sentence each.
    pub(super) fn remarks(&self) -> Vec<String> {
        let mut remarks = Vec::new();
        if !self.without.is_empty() {
            let events: Vec<String> = self
                .without
                .iter()
                .map(|(name, count)| format!("{count} {name}"))
                .collect();
            remarks.push(format!(
                "Perfetto has no message for these kernel events: {}",
                events.join(", ")
            ));
        }
        for (count, what) in [
            (
                self.unknown,
                "kernel events of an unknown kind are left out",
            ),
            (
                self.damaged_pages,
                "pages of the kernel's trace are damaged; their rest is left out",
            ),
            (
                self.of_high_cpus,
                "pages are left out: Perfetto takes no CPU above 1023",
            ),
        ] {
            if count > 0 {
                remarks.push(format!("{count} {what}"));
            }
        }
        remarks
    }
}

/// The tracepoint of an event that has no message.
fn tracepoint(kind: &EventKind) -> &'static str {
    match kind {
        EventKind::StatRuntime { .. } => "sched_stat_runtime",
        EventKind::VectorEntry { .. } | EventKind::VectorExit { .. } => "irq_vectors",
        EventKind::NmiHandler { .. } => "nmi_handler",
        EventKind::CsdEntry { .. } => "csd_function_entry",
        EventKind::CsdExit { .. } => "csd_function_exit",
        EventKind::CsdQueued { .. } => "csd_queue_cpu",
        EventKind::IpiSendCpu { .. } => "ipi_send_cpu",
        EventKind::IpiSendCpumask { .. } => "ipi_send_cpumask",
        EventKind::PageFault { .. } => "page_fault",
        EventKind::TlbFlush { .. } => "tlb_flush",
        EventKind::TickStop { .. } => "tick_stop",
        EventKind::MachineCheck { .. } => "mce_record",
        _ => "others",
    }
}
