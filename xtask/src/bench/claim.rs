//! A claim and its verdict.

use std::fmt;
use std::time::Duration;

#[derive(Clone, Debug, PartialEq)]
pub(super) struct Claim {
    pub(super) what: String,
    pub(super) measured: String,
    pub(super) target: String,
    pub(super) verdict: Verdict,
}

#[derive(Clone, Debug, PartialEq, Eq)]
pub(super) enum Verdict {
    /// The target was met.
    Holds,
    /// The target was missed.
    Missed,
    /// The machine's own variation exceeds what the claim allows.
    Noise {
        /// Estimated measuring time to decide it, if the noise stays the same.
        for_about: Duration,
    },
    /// It was not measured, with the reason and a remedy.
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

    pub(super) fn word(&self) -> &'static str {
        match self {
            Verdict::Holds => "",
            Verdict::Missed => "MISSED",
            Verdict::Noise { .. } => "NOISE",
            Verdict::Skipped(_) => "SKIPPED",
        }
    }

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
    /// A ratio or a count with the maximum `most`.
    pub(super) fn at_most(what: impl Into<String>, measured: f64, most: f64) -> Claim {
        Claim {
            what: what.into(),
            measured: figure(measured),
            target: format!("<= {most}"),
            verdict: Verdict::of(measured <= most),
        }
    }

    /// A ratio or a count with the minimum `least`.
    pub(super) fn at_least(what: impl Into<String>, measured: f64, least: f64) -> Claim {
        Claim {
            what: what.into(),
            measured: figure(measured),
            target: format!(">= {least}"),
            verdict: Verdict::of(measured >= least),
        }
    }

    /// A figure of the machine without a claim, for comparison.
    pub(super) fn figure_of_machine(what: impl Into<String>, measured: f64) -> Claim {
        Claim {
            what: what.into(),
            measured: figure(measured),
            target: "-".into(),
            verdict: Verdict::Holds,
        }
    }

    /// A claim that could not be measured.
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

/// Three decimals for small values, none for large ones.
fn figure(value: f64) -> String {
    if value.abs() < 10.0 {
        format!("{value:.3}")
    } else {
        format!("{value:.0}")
    }
}

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
        // A missing measurement never satisfies a claim.
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
