//! Checks whether there is memory for the ring: without it, the kernel would kill a process.

use super::error::PipelineRecordError;
use super::settings::PipelineRecordSettings;
use jitterscope_platform::Machine;

/// Bytes of a slot besides its record: the message and the allocator's overhead.
const SLOT: u64 = 64 + 16;

/// Refuses a ring that needs more than half of the free memory, if that is known.
pub(crate) fn check(
    machine: &Machine,
    settings: &PipelineRecordSettings,
) -> Result<(), PipelineRecordError> {
    let (slots, record_length) = (settings.ring as u64, settings.record_length as u64);
    let needs = slots.saturating_mul(SLOT + record_length);
    let meminfo = machine.read("/proc/meminfo").unwrap_or_default();
    let available = meminfo
        .lines()
        .find_map(|line| line.strip_prefix("MemAvailable:"));
    let available = available.and_then(|text| text.split_whitespace().next()?.parse::<u64>().ok());
    match available {
        Some(kib) if needs > kib * 1024 / 2 => Err(PipelineRecordError::Memory {
            slots,
            record_length,
            needs_mib: needs >> 20,
            free_mib: kib >> 10,
        }),
        _ => Ok(()),
    }
}
