//! The possible periods of a culprit, by its kind: the only place that defines them.

use jitterscope_model::CulpritKind;

/// The possible owner of a timer tick.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum TickOwner {
    Nobody,
    Kernel,
    /// This kernel or its host, because this kernel recorded nothing itself.
    KernelOrHost,
}

/// Properties of the periods of a kind.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) struct OfKind {
    /// Whether it can follow a kernel period: a thread or a device that happens to have a period of 10 ms is not a
    /// tick.
    pub(super) of_kernel: bool,
    /// The possible owner of its tick.
    pub(super) tick: TickOwner,
}

/// The properties for a kind.
pub(super) fn of_kind(kind: CulpritKind) -> OfKind {
    let (of_kernel, tick) = match kind {
        CulpritKind::Thread | CulpritKind::PageFault => (false, TickOwner::Nobody),
        CulpritKind::Irq => (false, TickOwner::Kernel),
        CulpritKind::Timer | CulpritKind::Softirq | CulpritKind::Switch => {
            (true, TickOwner::Kernel)
        }
        CulpritKind::Hypervisor | CulpritKind::Firmware | CulpritKind::Unresolved => {
            (true, TickOwner::KernelOrHost)
        }
        CulpritKind::Kworker
        | CulpritKind::Ipi
        | CulpritKind::Nmi
        | CulpritKind::Mce
        | CulpritKind::RtThrottle
        | CulpritKind::Quota
        | CulpritKind::QuotaBeside
        | CulpritKind::Stopped
        | CulpritKind::Loss
        | CulpritKind::Unknown => (true, TickOwner::Nobody),
    };
    OfKind { of_kernel, tick }
}
