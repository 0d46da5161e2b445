//! Limits of what a pipeline's run can show.

use super::fit::Freedom;
use jitterscope_model::{MeasuringThread, PipelineResult, Warning};

/// Warns if the scheduler placed threads on a machine whose CPUs differ.
pub(crate) fn free(
    Freedom {
        one_core,
        many_nodes,
    }: Freedom,
) -> Warning {
    Warning::NotPinned {
        one_core,
        many_nodes,
    }
}

/// Warnings that follow from a measurement.
pub(crate) fn of(result: &PipelineResult) -> Vec<Warning> {
    let mut found = Vec::new();
    if let Some(journal) = &result.journal {
        found.extend(journal.ended.clone().map(Warning::from));
        if journal.waits > 0 {
            found.push(Warning::JournalWaits {
                waits: journal.waits,
            });
        }
    }
    let producer = &result.producer;
    if producer.full_waits > 0 {
        found.push(Warning::RingFull {
            waits: producer.full_waits,
            waited_ns: producer.full_waited_ns,
        });
    }
    for consumer in &result.consumers {
        let role = consumer.role;
        // Nobody receives what was sent last if the recording is stopped within a system call.
        let lost = producer.sent.saturating_sub(consumer.received);
        if lost > 0 && result.setup.via.is_in_kernel() {
            found.push(Warning::MessagesLost { role, lost });
        }
        if consumer.slow_dropped > 0 {
            found.push(Warning::DroppedRecords {
                thread: MeasuringThread::Role(role),
                dropped: consumer.slow_dropped,
            });
        }
        if consumer.disordered > 0 {
            found.push(Warning::Disordered {
                role,
                disordered: consumer.disordered,
            });
        }
    }
    for thread in &result.threads {
        if thread.page_faults > 0 {
            found.push(Warning::OwnPageFaults {
                thread: MeasuringThread::Role(thread.role),
                faults: thread.page_faults,
            });
        }
    }
    found
}
