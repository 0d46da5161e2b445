//! What a period of a culprit can be, by the culprit's kind: the one place that says so.

use jitterscope_model::CulpritKind;

/// Whose timer tick something periodic may be.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum TickOwner {
    /// Nobody's.
    Nobody,
    /// This kernel's.
    Kernel,
    /// This kernel's, or its host's: this kernel saw nothing itself.
    KernelOrHost,
}

/// What holds for the periods of a kind.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) struct OfKind {
    /// Whether it can come at a period that the kernel keeps: a thread that happens to sleep for 10 ms is no tick, nor
    /// is a device.
    pub(super) of_kernel: bool,
    /// Whose tick it may be.
    pub(super) tick: TickOwner,
}

/// What holds for the periods of this kind.
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
        | CulpritKind::Stopped
        | CulpritKind::Loss
        | CulpritKind::Unknown => (true, TickOwner::Nobody),
    };
    OfKind { of_kernel, tick }
}
