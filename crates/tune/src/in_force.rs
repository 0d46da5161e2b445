//! When a change, or its undoing, is in force. A value that reads back may not be in force yet while the kernel
//! continues with what it queued before.

use crate::catalogue;
use crate::op::{Op, Outcome};
use crate::persist::PERSIST;
use crate::settles::{InForce, Settles, Sign};
use jitterscope_model::Nanos;
use jitterscope_platform::Machine;
use schemars::JsonSchema;
use serde::Serialize;
use std::time::{SystemTime, UNIX_EPOCH};

/// Maximum undoing time of any value that a knob writes.
pub const LONGEST_UNDOING: Nanos = Nanos(120_000_000_000);

impl InForce {
    /// The knob with this id; `None` if there is none.
    #[must_use]
    pub fn of(knob: &str) -> Option<InForce> {
        // Drop-ins are read at boot.
        if knob == PERSIST {
            Some(InForce::AT_BOOT)
        } else {
            catalogue::find(knob).map(|k| k.in_force)
        }
    }
}

impl Settles {
    /// When a value that replaced `replaced` at `at` is in force. `at` and the result are nanoseconds since the epoch.
    fn by(&self, replaced: &str, at: u64) -> InForceBy {
        match (self, self.longest(replaced)) {
            (_, Some(Nanos::ZERO)) => InForceBy::Now,
            (_, Some(within)) => InForceBy::AtLatest {
                at_realtime_ns: at.saturating_add(within.0),
                within_ns: within,
                shown_by: String::new(),
            },
            (Settles::AtNextEvent(event), None) => InForceBy::AtEvent {
                event: (*event).into(),
            },
            (Settles::AfterReboot, None) => InForceBy::AfterReboot,
            (Settles::Unbounded(words), None) => InForceBy::Unknown {
                cause: NoTime::NoLimit { words },
            },
            (_, None) => InForceBy::Unknown {
                cause: NoTime::Replaced {
                    value: replaced.trim().to_owned(),
                },
            },
        }
    }
}

/// When a change, or its undoing, is in force.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, JsonSchema)]
#[serde(tag = "when", rename_all = "snake_case")]
pub enum InForceBy {
    Now,
    /// At this time at the latest.
    AtLatest {
        /// Nanoseconds since the epoch.
        at_realtime_ns: u64,
        /// Counted from the write.
        within_ns: Nanos,
        /// What shows it, if not the file itself; otherwise empty.
        shown_by: String,
    },
    /// At an event whose time is unknown.
    AtEvent {
        event: String,
    },
    /// At the next boot.
    AfterReboot,
    /// The time is unknown.
    Unknown {
        cause: NoTime,
    },
}

/// Why it is unknown when a change is in force. In JSON it has its stable `id` beside its fields.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, JsonSchema)]
#[serde(tag = "id", rename_all = "snake_case")]
pub enum NoTime {
    /// No limit is known.
    NoLimit {
        /// The reason, in the words of the knob's declaration.
        words: &'static str,
    },
    /// The replaced value, which determines the time, is not a number.
    Replaced { value: String },
}

impl InForceBy {
    fn shown(mut self, sign: Sign) -> InForceBy {
        if let (InForceBy::AtLatest { shown_by, .. }, Sign::Recording(what) | Sign::File(what)) =
            (&mut self, sign)
        {
            *shown_by = what.to_owned();
        }
        self
    }

    /// The state at `now`, nanoseconds since the epoch: a time that has passed becomes "now".
    #[must_use]
    pub(crate) fn at(self, now: u64) -> InForceBy {
        match self {
            InForceBy::AtLatest { at_realtime_ns, .. } if at_realtime_ns <= now => InForceBy::Now,
            other => other,
        }
    }

    /// Whether it is still in the future at `now`, nanoseconds since the epoch.
    #[must_use]
    pub fn is_ahead(&self, now: u64) -> bool {
        match self {
            InForceBy::Now => false,
            InForceBy::AtLatest { at_realtime_ns, .. } => *at_realtime_ns > now,
            InForceBy::AtEvent { .. } | InForceBy::AfterReboot | InForceBy::Unknown { .. } => true,
        }
    }
}

/// The time, nanoseconds since the epoch.
#[must_use]
pub fn realtime_ns() -> u64 {
    let since = SystemTime::now()
        .duration_since(UNIX_EPOCH)
        .map_or(0, |d| d.as_nanos());
    u64::try_from(since).unwrap_or(u64::MAX)
}

/// When a change made at `at` is in force; `None` if it was not made.
#[must_use]
pub(crate) fn applied(
    machine: &Machine,
    knob: &str,
    op: &Op,
    outcome: &Outcome,
    at: u64,
) -> Option<InForceBy> {
    let in_force = InForce::of(knob)?;
    match outcome {
        // A file that shows what is in force has shown it.
        Outcome::Applied { .. } if tells(machine, op).is_some() => Some(InForceBy::Now),
        Outcome::Applied { .. } | Outcome::Pending { .. } => {
            let replaced = if let Op::Write {
                from: Some(from), ..
            } = op
            {
                from
            } else {
                ""
            };
            Some(in_force.apply.by(replaced, at).shown(in_force.shown_by))
        }
        Outcome::Ignored { .. }
        | Outcome::Refused { .. }
        | Outcome::Gone { .. }
        | Outcome::Forbidden { .. } => None,
    }
}

/// When the original, written back at `at`, is in force again.
#[must_use]
pub(crate) fn undone(machine: &Machine, knob: &str, op: &Op, at: u64) -> Option<InForceBy> {
    let in_force = InForce::of(knob)?;
    if let (
        Op::Write {
            kind,
            from: Some(from),
            ..
        },
        Some(now),
    ) = (op, tells(machine, op))
        && let (Some(now), Some(wanted)) = (kind.cpus(&now), kind.cpus(from))
        && now.difference(&wanted).is_empty()
    {
        return Some(InForceBy::Now);
    }
    let replaced = if let Op::Write { to, .. } = op {
        to
    } else {
        ""
    };
    Some(in_force.rollback.by(replaced, at).shown(in_force.shown_by))
}

/// The contents of the file that shows what is in force, for a change that has one.
fn tells(machine: &Machine, op: &Op) -> Option<String> {
    match op {
        Op::Write {
            effective: Some(file),
            ..
        } => machine.read_trimmed(file).ok(),
        _ => None,
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::knob::{Mechanism, Place, Want};

    #[test]
    fn what_was_to_come_by_a_time_has_come_at_it() {
        let latest = |at_realtime_ns| InForceBy::AtLatest {
            within_ns: jitterscope_model::Nanos(5),
            at_realtime_ns,
            shown_by: String::new(),
        };
        for (at, ahead) in [(9, false), (10, false), (11, true)] {
            assert_eq!(latest(at).is_ahead(10), ahead, "{at}");
            let expected = if ahead { latest(at) } else { InForceBy::Now };
            assert_eq!(latest(at).at(10), expected);
        }
        assert!(!InForceBy::Now.is_ahead(0));
        assert!(InForceBy::AfterReboot.is_ahead(u64::MAX));
        assert_eq!(InForceBy::AfterReboot.at(u64::MAX), InForceBy::AfterReboot);
        // This code was written later than that.
        assert!(realtime_ns() > 1_700_000_000_000_000_000);
    }

    #[test]
    fn every_knob_says_when_it_is_in_force_and_how_that_shows() {
        for knob in catalogue::all() {
            let declared = knob.in_force;
            match knob.mechanism {
                Mechanism::Look(_) => assert_eq!(declared, InForce::BY_HAND, "{}", knob.id),
                Mechanism::Boot(_) => assert_eq!(
                    (declared.apply, declared.rollback),
                    (Settles::AfterReboot, Settles::AfterReboot),
                    "{}",
                    knob.id
                ),
                Mechanism::Files(_)
                | Mechanism::Threads(_)
                | Mechanism::Partition
                | Mechanism::Blink => {
                    for settles in [declared.apply, declared.rollback] {
                        assert!(
                            !matches!(settles, Settles::ByHand | Settles::AfterReboot),
                            "{}",
                            knob.id
                        );
                    }
                }
            }
            // A value that reads back at once does not show what is queued.
            let queued = matches!(declared.apply, Settles::WithinReplaced { .. });
            assert!(
                !(queued && declared.shown_by == Sign::ReadsBack),
                "{}",
                knob.id
            );
        }
    }

    /// The values that a setting writes, if they are known beforehand.
    fn written(want: &Want) -> Vec<String> {
        match want {
            Want::OneOf(values) => values
                .first()
                .map(|v| (*v).to_owned())
                .into_iter()
                .collect(),
            Want::AtLeast { write, .. } | Want::AtMost { write, .. } => vec![write.to_string()],
            Want::OffIsolated | Want::SameAs(_) | Want::By(..) => vec![],
        }
    }

    #[test]
    fn no_knob_writes_a_value_whose_undoing_has_no_bound() {
        let mut timed = 0;
        for knob in catalogue::all() {
            let rollback = knob.in_force.rollback;
            assert!(!matches!(rollback, Settles::Unbounded(_)), "{}", knob.id);
            let values: Vec<String> = match knob.mechanism {
                Mechanism::Files(settings) => {
                    settings.iter().flat_map(|s| written(&s.want)).collect()
                }
                _ => vec![],
            };
            match rollback {
                Settles::WithinReplaced { .. } => {
                    assert!(!values.is_empty(), "{}: which value bounds it?", knob.id);
                    for value in values {
                        let longest = rollback.longest(&value).expect("a number");
                        assert!(
                            longest <= LONGEST_UNDOING,
                            "{}: {value} takes {longest}",
                            knob.id
                        );
                        timed += 1;
                    }
                }
                Settles::Within(time) => assert!(time <= LONGEST_UNDOING, "{}: {time}", knob.id),
                _ => {}
            }
            // Intervals linger: the kernel waits them out before it reads a new value.
            if let Mechanism::Files(settings) = knob.mechanism {
                for setting in settings {
                    let (Place::Files(path) | Place::PerCpu(path, _)) = setting.place;
                    if path.ends_with("stat_interval") || path.ends_with("poll_msec") {
                        assert!(
                            matches!(rollback, Settles::WithinReplaced { .. }),
                            "{}",
                            knob.id
                        );
                    }
                }
            }
        }
        assert!(timed >= 2, "only {timed} values are timed");
    }

    #[test]
    fn what_is_replaced_says_how_long_it_takes() {
        let settles = Settles::WithinReplaced {
            unit: Nanos(1_000_000_000),
            slack: Nanos(2_000_000_000),
        };
        assert_eq!(
            settles.longest("60\n"),
            Some(Nanos(60_000_000_000 / 7 + 62_000_000_000))
        );
        assert_eq!(settles.longest("7"), Some(Nanos(10_000_000_000)));
        assert_eq!(settles.longest("much"), None);
        assert_eq!(settles.longest("18446744073709551615"), None);
        let by = settles.by("7", 5);
        assert!(by.is_ahead(10_000_000_004) && !by.is_ahead(10_000_000_005));
        assert!(matches!(settles.by("much", 5), InForceBy::Unknown { .. }));
        assert_eq!(Settles::Immediately.by("x", 5), InForceBy::Now);
    }
}
