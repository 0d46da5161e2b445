//! The local timer interrupt, and the timer functions that it or the TIMER softirq runs.

use super::{Kind, Naming, by_itself};
use crate::occupancy::Frame;
use jitterscope_model::{Evidence, KernelAddr, Subject, TimerSource};

/// The interrupt itself. The longest function that it ran provides its name.
pub(super) static LOCAL_TIMER: Kind = Kind {
    evidence: Evidence::LocalTimerRecords,
    subject: |_, _| local_timer(Some(TimerSource::Interrupt)),
    trigger: by_itself,
};

/// The function of a high-resolution timer.
pub(super) static HIGH_RESOLUTION: Kind = Kind {
    evidence: Evidence::TimerRecords,
    subject: |frame, naming| function(frame, naming, TimerSource::HighResolution),
    // The owner of a process's timer; most functions send no signal.
    trigger: |frame, naming| {
        naming
            .senders
            .armed_by(naming.cpu, (frame.opened, frame.end))
    },
};

/// The function of a timer of the wheel.
pub(super) static WHEEL: Kind = Kind {
    evidence: Evidence::TimerRecords,
    subject: |frame, naming| function(frame, naming, TimerSource::Wheel),
    trigger: by_itself,
};

fn function(frame: &Frame, naming: &Naming<'_>, source: TimerSource) -> Subject {
    let function = Some(naming.resolver.function(KernelAddr(frame.subject)));
    Subject::Timer {
        function,
        source: Some(source),
    }
}

/// The interrupt, without regard to its functions.
pub(crate) fn local_timer(source: Option<TimerSource>) -> Subject {
    Subject::Timer {
        function: None,
        source,
    }
}
