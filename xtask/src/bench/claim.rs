//! One claim, and what became of it.

use std::fmt;
use std::time::Duration;

/// One claim and what was measured.
#[derive(Clone, Debug, PartialEq)]
pub(super) struct Claim {
    pub(super) what: String,
    pub(super) measured: String,
    pub(super) target: String,
    pub(super) verdict: Verdict,
}

/// What became of a claim.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(super) enum Verdict {
    /// The target was reached.
    Holds,
    /// It was not.
    Missed,
    /// The machine alone differs from itself by more than the claim allows.
    Noise {
        /// Measuring for so long would show it, as far as the noise stays what it was.
        for_about: Duration,
    },
    /// It was not measured: why, and what to do about it.
    Skipped(String),
}

impl Verdict {
    pub(super) fn of(holds: bool) -> Verdict {
        if holds {
            Verdict::Holds
        } else {
            Verdict::Missed
        }
    }

    /// The word for a table.
    pub(super) fn word(&self) -> &'static str {
        match self {
            Verdict::Holds => "",
            Verdict::Missed => "MISSED",
            Verdict::Noise { .. } => "NOISE",
            Verdict::Skipped(_) => "SKIPPED",
        }
    }

    /// What there is to say beside the word.
    pub(super) fn remark(&self) -> Option<String> {
        match self {
            Verdict::Holds | Verdict::Missed => None,
            Verdict::Noise { for_about } => Some(format!(
                "the machine's own noise hides it; {} would show it",
                Rough(*for_about)
            )),
            Verdict::Skipped(why) => Some(why.clone()),
        }
    }
}

impl Claim {
    /// A ratio or a count that may be no more than `most`.
    pub(super) fn at_most(what: impl Into<String>, measured: f64, most: f64) -> Claim {
        Claim {
            what: what.into(),
            measured: figure(measured),
            target: format!("<= {most}"),
            verdict: Verdict::of(measured <= most),
        }
    }

    /// A ratio or a count that may be no less than `least`.
    pub(super) fn at_least(what: impl Into<String>, measured: f64, least: f64) -> Claim {
        Claim {
            what: what.into(),
            measured: figure(measured),
            target: format!(">= {least}"),
            verdict: Verdict::of(measured >= least),
        }
    }

    /// A figure of the machine, of which nothing is claimed: what others are held against.
    pub(super) fn figure_of_machine(what: impl Into<String>, measured: f64) -> Claim {
        Claim {
            what: what.into(),
            measured: figure(measured),
            target: "-".into(),
            verdict: Verdict::Holds,
        }
    }

    /// One that could not be measured.
    pub(super) fn skipped(
        what: impl Into<String>,
        target: impl Into<String>,
        why: impl Into<String>,
    ) -> Claim {
        let verdict = Verdict::Skipped(why.into());
        Claim {
            what: what.into(),
            measured: "-".into(),
            target: target.into(),
            verdict,
        }
    }
}

/// Three digits behind the point of what is small, none of what is large.
fn figure(value: f64) -> String {
    if value.abs() < 10.0 {
        format!("{value:.3}")
    } else {
        format!("{value:.0}")
    }
}

/// A length of time that is known roughly.
struct Rough(Duration);

impl fmt::Display for Rough {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let seconds = self.0.as_secs_f64();
        if seconds < 90.0 {
            write!(f, "about {seconds:.0} seconds")
        } else if seconds < 5400.0 {
            write!(f, "about {:.0} minutes", seconds / 60.0)
        } else {
            write!(f, "about {:.0} hours", seconds / 3600.0)
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_bound_itself_holds() {
        assert_eq!(Claim::at_most("x", 1.3, 1.3).verdict, Verdict::Holds);
        assert_eq!(Claim::at_most("x", 1.31, 1.3).verdict, Verdict::Missed);
        assert_eq!(Claim::at_least("x", 0.9, 0.9).verdict, Verdict::Holds);
        assert_eq!(Claim::at_least("x", 0.89, 0.9).verdict, Verdict::Missed);
        // What was measured of nothing holds in no way.
        assert_eq!(Claim::at_most("x", f64::NAN, 1.3).verdict, Verdict::Missed);
        assert_eq!(Claim::at_least("x", f64::NAN, 0.9).verdict, Verdict::Missed);
    }

    #[test]
    fn noise_says_how_long_it_would_take() {
        let of = |seconds| {
            Verdict::Noise {
                for_about: Duration::from_secs(seconds),
            }
            .remark()
            .unwrap_or_default()
        };
        assert!(of(45).contains("about 45 seconds"));
        assert!(of(600).contains("about 10 minutes"));
        assert!(of(7200).contains("about 2 hours"));
        assert_eq!(
            [Verdict::Holds.remark(), Verdict::Missed.remark()],
            [None, None]
        );
    }
}
