//! A condition as data, and its text form.

use super::value::GateValue;
use jitterscope_model::{BlockReason, Nanos};
use std::fmt;

/// The percentiles that a run has.
pub(super) const PERCENTILES: [&str; 7] = ["50", "90", "99", "99.9", "99.99", "99.999", "99.9999"];

/// One of the percentiles that a run has.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord)]
pub struct Percentile(pub(super) usize);

impl Percentile {
    /// All percentiles, ascending.
    pub fn all() -> impl Iterator<Item = Percentile> {
        (0..PERCENTILES.len()).map(Percentile)
    }

    /// Its name: `99.9`.
    #[must_use]
    pub fn name(self) -> &'static str {
        PERCENTILES[self.0]
    }

    /// The share above it.
    pub(super) fn above(self) -> f64 {
        1.0 - self.name().parse::<f64>().unwrap_or(100.0) / 100.0
    }
}

/// The quantity that a condition tests.
#[derive(Clone, Debug, PartialEq)]
pub enum Quantity {
    /// `wait.p99.9`: the wait of a random instant until a spinning probe's next clock read.
    Wait(Percentile),
    /// `stall.p99`: the length of stalls.
    Stall(Percentile),
    /// `late.p99`: the lateness of wake-ups, with missed deadlines filled in.
    Late(Percentile),
    /// `message.p99`: the time of messages from the intended publication to the slower consumer.
    Message(Percentile),
    /// `max`: the longest stall, latest wake-up, slowest message or longest wait.
    Max,
    /// `stolen`: stalled time, of the measured time.
    Stolen,
    /// `lost`: the time in which followed threads waited or were interrupted, of the time in which they had work.
    Lost,
    /// `stalls`: stalls per second of one CPU.
    Stalls,
    /// `unexplained`: the part of the stalled time that no recorded kernel activity explains.
    Unexplained,
    /// `unresolved`: the part of the stalled time without any verdict.
    Unresolved,
    /// `hypervisor`: the time attributed to it, of the measured time.
    Hypervisor,
    /// `firmware`: the time attributed to it, of the measured time.
    Firmware,
    /// `culprit(PATTERN)`: the time of culprits of this name or kind, of the measured time; `*` matches any text.
    Culprit(String),
    /// `blocked(REASON)`: the time in which followed threads slept for this reason, of their followed time.
    Blocked(BlockReason),
    /// `coverage`: the share of the time between two measured clock reads, on the worst CPU.
    Coverage,
    /// `worse(total)`, for `diff`: the total became worse.
    Worse(Change),
}

/// What a condition tests for a change for the worse.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum Change {
    Total,
    /// Any judged figure or predicted culprit.
    Any,
    /// Culprits of this name or kind.
    Culprit(String),
}

/// The comparison with the limit.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Operator {
    Above,
    AtLeast,
    Below,
    AtMost,
}

/// What it is compared with.
#[derive(Clone, Copy, Debug, PartialEq)]
pub enum Limit {
    /// A length of time.
    Time(Nanos),
    Percent(f64),
    /// Time per second of the measured time: `1ms/s` is 0.1 %.
    TimePerSec(Nanos),
    /// A rate per second.
    PerSec(f64),
}

/// A condition under which a run fails.
#[derive(Clone, Debug, PartialEq)]
pub struct Condition {
    pub quantity: Quantity,
    /// The comparison and the limit; `None` for events that happened or not.
    pub limit: Option<(Operator, Limit)>,
}

impl Operator {
    /// Whether a value satisfies the comparison.
    #[must_use]
    pub fn holds(self, value: f64, limit: f64) -> bool {
        match self {
            Operator::Above => value > limit,
            Operator::AtLeast => value >= limit,
            Operator::Below => value < limit,
            Operator::AtMost => value <= limit,
        }
    }
}

impl Limit {
    /// In nanoseconds, as a share, or per second.
    #[must_use]
    pub fn value(self) -> f64 {
        match self {
            Limit::Time(ns) => ns.0 as f64,
            Limit::Percent(percent) => percent / 100.0,
            Limit::TimePerSec(ns) => ns.0 as f64 / 1e9,
            Limit::PerSec(rate) => rate,
        }
    }

    /// A value in the unit of this limit.
    #[must_use]
    pub fn same_unit(self, value: f64) -> GateValue {
        match self {
            Limit::Time(_) => GateValue::Time(Nanos(value.max(0.0).round() as u64)),
            Limit::Percent(_) | Limit::TimePerSec(_) => GateValue::Share(value),
            Limit::PerSec(_) => GateValue::PerSec(value),
        }
    }
}

impl fmt::Display for Operator {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(match self {
            Operator::Above => ">",
            Operator::AtLeast => ">=",
            Operator::Below => "<",
            Operator::AtMost => "<=",
        })
    }
}

impl fmt::Display for Limit {
    /// Writes the condition exactly as a user would.
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Limit::Time(Nanos(ns)) if *ns > 0 && ns % 1_000_000_000 == 0 => {
                write!(f, "{}s", ns / 1_000_000_000)
            }
            Limit::Time(Nanos(ns)) if *ns > 0 && ns % 1_000_000 == 0 => {
                write!(f, "{}ms", ns / 1_000_000)
            }
            Limit::Time(Nanos(ns)) if *ns > 0 && ns % 1000 == 0 => write!(f, "{}us", ns / 1000),
            Limit::Time(Nanos(ns)) => write!(f, "{ns}ns"),
            Limit::Percent(percent) => write!(f, "{percent}%"),
            Limit::TimePerSec(time) => write!(f, "{}/s", Limit::Time(*time)),
            Limit::PerSec(rate) => write!(f, "{rate}/s"),
        }
    }
}

impl fmt::Display for Quantity {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Quantity::Wait(p) => write!(f, "wait.p{}", p.name()),
            Quantity::Stall(p) => write!(f, "stall.p{}", p.name()),
            Quantity::Late(p) => write!(f, "late.p{}", p.name()),
            Quantity::Message(p) => write!(f, "message.p{}", p.name()),
            Quantity::Max => f.write_str("max"),
            Quantity::Stolen => f.write_str("stolen"),
            Quantity::Lost => f.write_str("lost"),
            Quantity::Stalls => f.write_str("stalls"),
            Quantity::Unexplained => f.write_str("unexplained"),
            Quantity::Unresolved => f.write_str("unresolved"),
            Quantity::Hypervisor => f.write_str("hypervisor"),
            Quantity::Firmware => f.write_str("firmware"),
            Quantity::Culprit(pattern) => write!(f, "culprit({pattern})"),
            Quantity::Blocked(reason) => write!(f, "blocked({reason})"),
            Quantity::Coverage => f.write_str("coverage"),
            Quantity::Worse(Change::Total) => f.write_str("worse(total)"),
            Quantity::Worse(Change::Any) => f.write_str("worse(any)"),
            Quantity::Worse(Change::Culprit(pattern)) => write!(f, "worse(culprit {pattern})"),
        }
    }
}

impl fmt::Display for Condition {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match &self.limit {
            Some((operator, limit)) => write!(f, "{}{operator}{limit}", self.quantity),
            None => write!(f, "{}", self.quantity),
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn what_lies_above_a_percentile_is_the_rest() {
        let above = |name: &str| {
            Percentile::all()
                .find(|of| of.name() == name)
                .map(Percentile::above)
        };
        assert!((above("99").unwrap() - 0.01).abs() < 1e-12);
        assert!((above("50").unwrap() - 0.5).abs() < 1e-12);
        let all: Vec<f64> = Percentile::all().map(Percentile::above).collect();
        assert!(
            all.is_sorted_by(|a, b| a > b) && all.iter().all(|share| (0.0..1.0).contains(share)),
            "{all:?}"
        );
    }

    #[test]
    fn a_value_on_the_limit_is_at_it_and_neither_above_nor_below() {
        for (operator, text, holds) in [
            (Operator::Above, ">", [false, false, true]),
            (Operator::AtLeast, ">=", [false, true, true]),
            (Operator::Below, "<", [true, false, false]),
            (Operator::AtMost, "<=", [true, true, false]),
        ] {
            assert_eq!(
                [1.0, 2.0, 3.0].map(|value| operator.holds(value, 2.0)),
                holds,
                "{text}"
            );
            assert_eq!(operator.to_string(), text);
        }
    }

    #[test]
    fn a_time_is_written_in_the_largest_unit_of_which_it_is_a_whole_number() {
        for (ns, text) in [
            (0, "0ns"),
            (999, "999ns"),
            (1_000, "1us"),
            (1_001, "1001ns"),
            (50_000, "50us"),
            (1_500_000, "1500us"),
            (2_000_000, "2ms"),
            (1_001_000_000, "1001ms"),
            (3_000_000_000, "3s"),
        ] {
            assert_eq!(Limit::Time(Nanos(ns)).to_string(), text);
        }
    }

    #[test]
    fn a_value_is_reported_in_the_unit_of_the_limit() {
        let time = Limit::Time(Nanos(5));
        let whole = [1_500, 0, 0].map(|ns| GateValue::Time(Nanos(ns)));
        assert_eq!([1_499.6, 0.4, -3.0].map(|ns| time.same_unit(ns)), whole);
        assert_eq!(
            Limit::Percent(5.0).same_unit(0.123_456_7),
            GateValue::Share(0.123_456_7)
        );
        assert_eq!(
            Limit::PerSec(1.0).same_unit(2.345),
            GateValue::PerSec(2.345)
        );
        assert_eq!(
            [time, Limit::Percent(5.0), Limit::PerSec(3.0)].map(Limit::value),
            [5.0, 0.05, 3.0]
        );
    }
}
