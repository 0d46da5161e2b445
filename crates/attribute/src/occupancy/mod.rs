//! Who had a CPU: one machine per CPU, which all windows query.
//!
//! [`Machine`] takes a CPU's [`Record`]s and always knows its stack: whose turn it is, and the open frames inside.
//! While a [`Mark`] is open, it also keeps [`Slice`]s: stretches in which the same [`Frame`] was innermost. Closing the
//! mark returns a [`Window`]: slices that fill it without a gap, and their frames. Frames contain numbers and
//! addresses; names are only looked up on request.
//!
//! Errors in the data heal. Besides records, the machine takes losses, arrivals of threads from other CPUs, and proofs:
//! two clock reads of a spinning probe prove that it ran, so no frame was open then. Each record names the thread that
//! had the CPU when it was written. If it is not the thread whose turn it should be, a switch left no record, and the
//! time since the last record has no known thread.

mod fold;
mod frame;
mod machine;
mod names;
mod parked;
mod plan;
mod record;
mod ring;
mod slice;
mod window;

pub(crate) use frame::{Before, Class, Frame, Outcome};
pub(crate) use machine::Machine;
pub(crate) use names::{CommId, NameId, NameTable};
pub(crate) use plan::Beside;
pub(crate) use record::{Record, frame_priority};
pub(crate) use ring::Mark;
pub(crate) use slice::Slice;
pub(crate) use window::Window;

#[cfg(test)]
mod tests;
