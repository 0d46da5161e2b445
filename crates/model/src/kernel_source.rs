//! Where kernel records come from: the kernel as it runs, or a run that kept them.

use crate::{CpuId, DrainTurn, KernelEvent, Setup, Sink, Ticks};

/// One record on its way to attribution.
#[derive(Clone, Debug)]
pub enum Record<'a> {
    /// From the sending side, of any CPU.
    Sender(&'a KernelEvent),
    /// From a measured CPU.
    Local(&'a KernelEvent),
    /// Records of a measured CPU were lost between two times.
    Lost(CpuId, Ticks, Ticks),
    /// Records of the sending side were lost between two times.
    SendersLost(Ticks, Ticks),
    /// The recorder set this up here. A stored run says it again; whoever records knows it already.
    Setup(&'a Setup),
}

/// What a turn was.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum SourceTurn {
    /// Everything that is there now. Whoever records says what else belongs to the turn.
    Open,
    /// As it was recorded, with all that belonged to it.
    Kept(Box<DrainTurn>),
    /// Records without the end of their turn, which was not kept.
    Cut,
    /// A part of the records was not kept.
    Missing,
}

/// Gives kernel records, turn by turn.
pub trait Source {
    /// Why it may fail.
    type Error;

    /// The next turn; `None` after the last one. Each side's records are in order of time, and the sending
    /// side comes first: an effect that is handed over has its cause handed over before it. Raw pages go to
    /// `keep` where they are not kept already.
    ///
    /// # Errors
    /// No more can be read, or kept.
    fn turn(
        &mut self,
        keep: &mut dyn Sink,
        take: &mut dyn FnMut(Record<'_>),
    ) -> Result<Option<SourceTurn>, Self::Error>;

    /// The earliest of the CPUs' last records; `None` before there are any.
    fn seen_until(&self) -> Option<Ticks>;
}
