//! How long a knob's change, and its undoing, take to be in force, as declared.

use jitterscope_model::Nanos;

/// Time from a write until the value is in force everywhere.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Settles {
    /// In force when the write returns.
    Immediately,
    /// At most this time.
    Within(Nanos),
    /// As long as the replaced value says, because queued work keeps its delay.
    WithinReplaced {
        /// The unit of the value.
        unit: Nanos,
        /// Additional time for rounding and for the grain of the kernel's timers, which is up to 8/63 of a delay.
        slack: Nanos,
    },
    /// One by one, each at an event whose time is unknown; names the event.
    AtNextEvent(&'static str),
    /// At the next boot.
    AfterReboot,
    /// Done by hand; nothing is written.
    ByHand,
    /// No known limit, and why.
    Unbounded(&'static str),
}

/// What shows that a value is in force.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Sign {
    ReadsBack,
    File(&'static str),
    /// This property of a recording.
    Recording(&'static str),
    /// The kernel command line.
    Cmdline,
    /// The knob's own check.
    Check,
}

/// When a knob's change is in force, and when its undoing is.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct InForce {
    pub apply: Settles,
    pub rollback: Settles,
    pub shown_by: Sign,
    /// What remains after the rollback; empty for nothing.
    pub leaves: &'static str,
}

impl InForce {
    /// Both immediately, shown by reading back.
    pub const AT_ONCE: InForce = InForce::both(Settles::Immediately, Sign::ReadsBack);
    /// Both at the next boot, shown by the command line.
    pub const AT_BOOT: InForce = InForce::both(Settles::AfterReboot, Sign::Cmdline);
    /// Made and undone by hand.
    pub const BY_HAND: InForce = InForce::both(Settles::ByHand, Sign::Check);

    /// The same for both.
    #[must_use]
    pub const fn both(settles: Settles, shown_by: Sign) -> InForce {
        InForce {
            apply: settles,
            rollback: settles,
            shown_by,
            leaves: "",
        }
    }

    /// Sets what remains after the rollback.
    #[must_use]
    pub const fn leaving(mut self, leaves: &'static str) -> InForce {
        self.leaves = leaves;
        self
    }

    /// Sets the time of the rollback.
    #[must_use]
    pub const fn undone(mut self, rollback: Settles) -> InForce {
        self.rollback = rollback;
        self
    }
}

impl Settles {
    /// The longest time when `replaced` is replaced; `None` without a limit.
    #[must_use]
    pub fn longest(&self, replaced: &str) -> Option<Nanos> {
        match self {
            Settles::Immediately => Some(Nanos::ZERO),
            Settles::Within(time) => Some(*time),
            Settles::WithinReplaced { unit, slack } => {
                let value: u64 = replaced.trim().parse().ok()?;
                let delay = unit.0.checked_mul(value)?;
                Some(Nanos(delay.checked_add(delay / 7)?.checked_add(slack.0)?))
            }
            _ => None,
        }
    }
}
