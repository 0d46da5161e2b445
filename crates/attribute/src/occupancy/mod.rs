//! Whose was this CPU: one machine a CPU, asked by all windows.
//!
//! [`Machine`] takes a CPU's [`Record`]s as they come and always knows its stack: whose turn it is, and what is
//! open inside. As long as somebody holds a [`Mark`], it also keeps [`Slice`]s, stretches in which the same
//! [`Frame`] was innermost. Closing the mark gives a [`Window`]: slices that fill it without a gap, and the
//! frames that they refer to. Nothing has a name until somebody asks: frames hold numbers and addresses.
//!
//! What can be wrong heals. Besides records the machine is given losses, threads that arrive from other
//! CPUs, and of proofs: a spinning probe's two clock reads say that it ran, so nothing else was open then. A
//! record names the thread that had the CPU when it was written; if that is not the one whose turn it should
//! be, a switch left no record, and the time since the last record has no owner.

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

pub(crate) use frame::{Class, Frame, Outcome};
pub(crate) use machine::Machine;
pub(crate) use names::{CommId, NameId, NameTable};
pub(crate) use plan::Beside;
pub(crate) use record::Record;
pub(crate) use ring::Mark;
pub(crate) use slice::Slice;
pub(crate) use window::Window;

#[cfg(test)]
mod tests;
