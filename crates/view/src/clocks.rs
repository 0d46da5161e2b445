//! Words for why a clock is unused or doubtful.

use crate::style::tame;
use jitterscope_model::{ClockFailure, TscFlaw};

/// The objection to the TSC, as part of a sentence.
pub(crate) fn tsc_flaw(of: &TscFlaw) -> String {
    match of {
        TscFlaw::NotWanted => "asked for by the user".into(),
        TscFlaw::NoTsc => "this architecture has no TSC".into(),
        TscFlaw::OtherClockSource { source } => {
            format!("the kernel's clock source is {}, not tsc", tame(source))
        }
        TscFlaw::ClockSourceUnreadable { system } => {
            format!("the kernel's clock source cannot be read ({})", tame(system))
        }
        TscFlaw::NotConstant => "the CPU does not promise a constant TSC rate (no constant_tsc flag)".into(),
        TscFlaw::StopsInIdle => {
            "the CPU does not promise that the TSC goes on in deep idle states (no nonstop_tsc flag)".into()
        }
    }
}

/// Why another clock replaces the TSC, as part of a sentence, with a way to get the TSC if there is one.
pub(crate) fn fallback(of: &TscFlaw) -> String {
    match of {
        TscFlaw::NotConstant | TscFlaw::StopsInIdle => format!(
            "{}; the kernel uses it anyway, and --clock tsc reads it, too",
            tsc_flaw(of)
        ),
        TscFlaw::NotWanted
        | TscFlaw::NoTsc
        | TscFlaw::OtherClockSource { .. }
        | TscFlaw::ClockSourceUnreadable { .. } => tsc_flaw(of),
    }
}

/// Why no clock is usable, as part of a sentence.
pub(crate) fn clock_failure(of: &ClockFailure) -> String {
    match of {
        ClockFailure::Stuck => "the clock did not advance during calibration".into(),
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn only_a_fallback_says_how_to_get_the_tsc() {
        let reported = [
            tsc_flaw(&TscFlaw::NotConstant),
            fallback(&TscFlaw::NotConstant),
        ];
        assert!(
            reported[0].ends_with("(no constant_tsc flag)"),
            "{reported:?}"
        );
        assert_eq!(
            reported[1]
                .strip_prefix(&*reported[0])
                .unwrap()
                .split("--clock tsc")
                .count(),
            2,
            "{reported:?}"
        );
        let hpet = TscFlaw::OtherClockSource {
            source: "hpet".into(),
        };
        assert_eq!(
            fallback(&hpet),
            "the kernel's clock source is hpet, not tsc"
        );
        assert!(fallback(&TscFlaw::StopsInIdle).contains("nonstop_tsc"));
    }
}
