//! `perfetto`: a trace for <https://ui.perfetto.dev>: stalls with their parts, and the kernel's own events.

mod clock;
mod fields;
mod ftrace;
mod functions;
mod handler_exits;
mod kernel_event;
mod left_out;
mod senders;
mod sink;
mod stalls;
mod stream;
mod track_events;

use super::Format;
use crate::address::Address;
use crate::error::DestinationError;
use crate::exporter::Exporter;
use sink::PerfettoFile;

pub(super) static FORMAT: Format = Format {
    schemes: &["perfetto"],
    usage: &[(
        "perfetto://FILE",
        "for ui.perfetto.dev: stalls, their parts, the kernel's events",
    )],
    notes: "",
    read,
};

fn read(address: &Address<'_>) -> Result<Exporter, DestinationError> {
    let path = address.path()?;
    address.without_options()?;
    Ok(Exporter::file(path, PerfettoFile::new))
}
