//! Pages of the kernel's ring buffer, as read from `per_cpu/cpuN/trace_pipe_raw`.
//!
//! A page begins with a header. The kernel states its field offsets in `events/header_page` ([`PageLayout`]): a base
//! time, and a length with two flags about lost events. Then the records follow. A record is a 32-bit word (5 bits
//! type, 27 bits time since the previous record) and further data that depends on the type:
//!
//! | type | meaning | length after the word |
//! |---|---|---|
//! | 1 to 28 | an event | 4 x type bytes |
//! | 0 | a longer event | the next word counts itself and the event |
//! | 29 | padding; with a zero delta the page ends here | the next word counts itself |
//! | 30 | the next word is the upper part of the delta | 4 bytes |
//! | 31 | an absolute time; its top five bits come from the previous time | 4 bytes |
//!
//! [`Page`] checks every length against the available bytes: hostile bytes end a page early, never the program.

mod layout;
mod page;
mod page_writer;

pub use layout::{LayoutError, PageLayout};
pub use page::{Page, PageError, PageLoss, PageRecords, Records};
pub use page_writer::PageWriter;

/// One undecoded event of the ring buffer.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct RawRecord<'a> {
    /// Timestamp, on the trace clock.
    pub time: jitterscope_model::Ticks,
    /// The event's bytes from its `common_type` field on, padded to a multiple of four.
    pub data: &'a [u8],
}
