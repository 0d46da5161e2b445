//! Periods of stalls as text.

use jitterscope_analyze::periods::{FALSE_ALARM, GroupPeriods, PeriodSearch};
use jitterscope_model::{Nanos, TickRate, Ticks};
use std::fmt::Write;

/// The table of periods of a measurement.
pub fn text(search: PeriodSearch, start: Ticks, end: Ticks, rate: TickRate) -> String {
    let found = search.finish(start, end, rate, FALSE_ALARM).groups;
    if found.is_empty() {
        return format!(
            "No significant periods (of {} or less: a period must come round five times)",
            Nanos(rate.nanos(end.since(start)).0 / 5)
        );
    }
    let mut out = String::from("Significant periods\n");
    for GroupPeriods { group, periods } in found {
        let who = match &group.culprit {
            Some((kind, name)) => format!("CPU {}: {kind} {name}", group.cpu),
            None => format!("CPU {}: all", group.cpu),
        };
        for period in periods {
            let known = period.known.map(|known| format!(": {}", known.name)).unwrap_or_default();
            let ok = writeln!(
                out,
                "{who}: every {} ({:.4} Hz), {} of {} stalls, {:.0}% of the periods hit, p = 1e{:.0}{known}",
                period.period,
                1e9 / period.period.0.max(1) as f64,
                period.in_pulse,
                period.events,
                period.hit * 100.0,
                period.ln_probability / std::f64::consts::LN_10,
            );
            debug_assert!(ok.is_ok(), "a String takes everything");
        }
    }
    out
}
