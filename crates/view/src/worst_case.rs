//! Words for the observed maximum with its exposure.

use crate::number::span;
use jitterscope_analyze::{Exposed, WorstCase};

/// How long was looked: `10.0 s`, `20.0 s of CPU time`.
pub(crate) fn exposure(of: &WorstCase) -> String {
    let time = span(of.exposure_ns);
    match of.exposed {
        Exposed::Cpus if of.of > 1 => format!("{time} of CPU time"),
        Exposed::Threads if of.of > 1 => format!("{time} of threads' time"),
        Exposed::Cpus | Exposed::Threads | Exposed::Messages => time,
    }
}

/// `none above that in 4h00m00s: below 0.75 per hour at 95 %`; `that` is what was not exceeded. `None` without a bound.
pub(crate) fn none_above(of: &WorstCase, that: &str) -> Option<String> {
    let below = per_time(of.longer_below_per_hour?);
    let each = each_cpu(of).unwrap_or_default();
    Some(format!(
        "none above {that} in {}: below {below} at 95 %{each}",
        exposure(of)
    ))
}

/// The bound of each CPU for what is longer than its own maximum; the range where CPUs measured for different times.
fn each_cpu(of: &WorstCase) -> Option<String> {
    let bounds = of.cpus.iter().filter_map(|cpu| cpu.longer_below_per_hour);
    let lowest = bounds.clone().reduce(f64::min)?;
    let [lowest, highest] = [lowest, bounds.fold(lowest, f64::max)].map(per_time);
    let below = if lowest == highest {
        highest
    } else {
        format!("{lowest} to {highest}")
    };
    Some(format!(
        ", and on each CPU, above its own maximum, below {below}"
    ))
}

/// The maximum as a sentence, with what it is.
pub(crate) fn sentence(of: &WorstCase) -> Option<String> {
    let none = none_above(of, &of.longest_ns.to_string())?;
    let what = match of.exposed {
        Exposed::Cpus => "",
        Exposed::Threads => " wait",
        Exposed::Messages => " message",
    };
    Some(format!("Worst{what}: {none}."))
}

/// A rate per hour, per the shortest time that has less than sixty of them.
fn per_time(in_hour: f64) -> String {
    match in_hour {
        rate if rate >= 3600.0 => format!("{:.2} per second", rate / 3600.0),
        rate if rate >= 60.0 => format!("{:.1} per minute", rate / 60.0),
        rate => format!("{rate:.2} per hour"),
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use jitterscope_analyze::{WorstOfCpu, rate_bound};
    use jitterscope_model::{CpuId, Nanos};

    #[test]
    fn the_exposure_and_the_rate_have_their_units() {
        let of = |exposed, of, seconds: u64| WorstCase {
            longest_ns: Nanos(50_000),
            exposed,
            of,
            exposure_ns: Nanos(seconds * 1_000_000_000),
            longer_below_per_hour: rate_bound(seconds as f64).map(|rate| 3600.0 * rate),
            cpus: Vec::new(),
        };
        let text = |case: &WorstCase| none_above(case, "50.0 us");
        assert_eq!(
            text(&of(Exposed::Cpus, 1, 4 * 3600)).unwrap(),
            "none above 50.0 us in 4h00m00s: below 0.75 per hour at 95 %"
        );
        assert_eq!(
            text(&of(Exposed::Cpus, 2, 20)).unwrap(),
            "none above 50.0 us in 20.0 s of CPU time: below 9.0 per minute at 95 %"
        );
        assert_eq!(
            text(&of(Exposed::Threads, 3, 2)).unwrap(),
            "none above 50.0 us in 2.00 s of threads' time: below 1.50 per second at 95 %"
        );
        assert_eq!(
            sentence(&of(Exposed::Messages, 1, 10)).unwrap(),
            "Worst message: none above 50.0 us in 10.0 s: below 18.0 per minute at 95 %."
        );
        assert_eq!(text(&of(Exposed::Cpus, 1, 0)), None);
    }

    #[test]
    fn each_cpu_has_its_own_exposure_and_bound() {
        let cpu = |cpu, seconds: u64| WorstOfCpu {
            cpu: CpuId(cpu),
            longest_ns: Some(Nanos(40_000)),
            exposure_ns: Nanos(seconds * 1_000_000_000),
            longer_below_per_hour: rate_bound(seconds as f64).map(|rate| 3600.0 * rate),
        };
        let text = |cpus| {
            let mut worst = WorstCase::new(Nanos(50_000), Exposed::Cpus, 2, Nanos(20_000_000_000));
            worst.cpus = cpus;
            none_above(&worst, "50.0 us").unwrap()
        };
        let whole = "none above 50.0 us in 20.0 s of CPU time: below 9.0 per minute at 95 %";
        let each = format!("{whole}, and on each CPU, above its own maximum, below");
        assert_eq!(
            text(vec![cpu(0, 10), cpu(1, 10)]),
            format!("{each} 18.0 per minute")
        );
        assert_eq!(
            text(vec![cpu(0, 2), cpu(1, 18)]),
            format!("{each} 10.0 per minute to 1.50 per second")
        );
        assert_eq!(text(vec![cpu(0, 0), cpu(1, 0)]), whole);
    }
}
