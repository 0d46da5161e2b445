//! How long a knob says that its change, and the undoing of it, takes to be in force.

use jitterscope_model::Nanos;

/// How long it takes from a write until the value is in force everywhere.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Settles {
    /// The write returns when it is.
    Immediately,
    /// No longer than this.
    Within(Nanos),
    /// As long as the value that is replaced says, because what is queued keeps the delay that it was
    /// queued with.
    WithinReplaced {
        /// What 1 stands for.
        unit: Nanos,
        /// What rounding adds to that and to the grain of the kernel's timers, which is up to 8/63 of a delay.
        slack: Nanos,
    },
    /// One by one, each at an event that comes when it comes: which.
    AtNextEvent(&'static str),
    /// At the next boot.
    AfterReboot,
    /// Nothing is written: it is done by hand.
    ByHand,
    /// No limit is known; why.
    Unbounded(&'static str),
}

/// What shows that a value is in force.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Sign {
    /// The file that was written.
    ReadsBack,
    /// This file.
    File(&'static str),
    /// A recording, by this.
    Recording(&'static str),
    /// The kernel command line.
    Cmdline,
    /// What the knob's own check says.
    Check,
}

/// When a knob's change is in force, and when its undoing is.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct InForce {
    /// After it was applied.
    pub apply: Settles,
    /// After it was rolled back.
    pub rollback: Settles,
    /// What shows it.
    pub shown_by: Sign,
    /// What the time in force leaves behind after the rollback; empty for nothing.
    pub leaves: &'static str,
}

impl InForce {
    /// Both at once, and it reads back.
    pub const AT_ONCE: InForce = InForce::both(Settles::Immediately, Sign::ReadsBack);
    /// Both at the next boot.
    pub const AT_BOOT: InForce = InForce::both(Settles::AfterReboot, Sign::Cmdline);
    /// Done and undone by hand.
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

    /// The same, but this stays behind after the rollback.
    #[must_use]
    pub const fn leaving(mut self, leaves: &'static str) -> InForce {
        self.leaves = leaves;
        self
    }

    /// The same, but the rollback takes this long.
    #[must_use]
    pub const fn undone(mut self, rollback: Settles) -> InForce {
        self.rollback = rollback;
        self
    }
}

impl Settles {
    /// The longest that it takes when `replaced` is replaced; `None` when no time limits it.
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
