//! Sources of kernel records: the running kernel, or a run that kept them.

use crate::{CpuId, CpuSet, DrainTurn, KernelEvent, Setup, Sink, SleepStack, Ticks};

/// One record on its way to attribution.
#[derive(Clone, Debug)]
pub enum Record<'a> {
    /// From the sending side, of any CPU.
    Sender(&'a KernelEvent),
    /// From a measured CPU.
    Local(&'a KernelEvent),
    /// The stack of a thread that goes to sleep, from the CPU that it leaves.
    Stack(&'a SleepStack),
    /// Records of a measured CPU were lost between two times.
    Lost(CpuId, Ticks, Ticks),
    /// Records of the sending side were lost between two times.
    SendersLost(Ticks, Ticks),
    /// Another process wrote to the controls of the trace between two times: records of these CPUs and of the sending
    /// side are not trusted from the first of them on. Comes after the records of its turn.
    Disturbed(&'a CpuSet, Ticks, Ticks),
    /// A setup step of the recorder at this point. Only a stored run sends it.
    Setup(&'a Setup),
}

/// The completeness of a turn.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum SourceTurn {
    /// Everything that is available now. The recorder adds the other data of the turn.
    Open,
    /// As it was recorded, with all its other data.
    Kept(Box<DrainTurn>),
    /// Records without the end of their turn, which was not kept.
    Cut,
    /// Some of the records were not kept.
    Missing,
}

/// Provides kernel records, turn by turn.
pub trait Source {
    type Error;

    /// Reads the next turn; `None` after the last one. Each side's records are in order of time. The sending side comes
    /// first, so a cause always arrives before its effect. Raw pages go to `keep`, unless they are already stored.
    ///
    /// # Errors
    /// Reading or keeping fails.
    fn turn(
        &mut self,
        keep: &mut dyn Sink,
        take: &mut dyn FnMut(Record<'_>),
    ) -> Result<Option<SourceTurn>, Self::Error>;

    /// The earliest of the CPUs' last records; `None` before any record.
    fn seen_until(&self) -> Option<Ticks>;
}
