//! Event filters: on the other CPUs, only events that target a measured CPU are recorded.

use super::events::EventFilter;
use crate::format::EventFormat;
use jitterscope_model::{CpuId, CpuSet};

/// The most CPUs that a filter names one by one: each is a comparison in the sender's code path.
const ONE_BY_ONE: usize = 16;

/// Filters to try, the best first; if the kernel accepts none, the event is recorded unfiltered. `last` is the highest
/// CPU of the machine.
pub(super) fn candidates(
    format: &EventFormat,
    target: EventFilter,
    measured: &CpuSet,
    last: CpuId,
) -> Vec<String> {
    let list = measured.to_string();
    match target {
        // Filters support sets of CPUs since Linux 6.6.
        EventFilter::Mask(field) if format.has(field) => vec![format!("{field} & CPUS{{{list}}}")],
        EventFilter::Cpu(field) if format.has(field) => number(field, measured),
        EventFilter::Either(one, other) if format.has(one) && format.has(other) => {
            let filters = number(one, measured)
                .into_iter()
                .zip(number(other, measured));
            filters
                .map(|(one, other)| format!("{one} || {other}"))
                .collect()
        }
        EventFilter::Work => {
            let Some(field) = ["cpu", "req_cpu"]
                .into_iter()
                .find(|field| format.has(field))
            else {
                return Vec::new();
            };
            // Unbound work has -1 or a number beyond all CPUs; it may run on a measured CPU.
            let any = if format.is_signed(field) {
                format!("{field} < 0 || {field} > {last}")
            } else {
                format!("{field} > {last}")
            };
            number(field, measured)
                .into_iter()
                .map(|filter| format!("{filter} || {any}"))
                .collect()
        }
        _ => Vec::new(),
    }
}

/// The filter for a field that must be at least a value; none if the kernel does not have the field.
pub(super) fn at_least(format: &EventFormat, field: &str, value: u64) -> Vec<String> {
    if format.has(field) {
        vec![format!("{field} >= {value}")]
    } else {
        Vec::new()
    }
}

/// Filters for the signals that can name a culprit: those that stop a thread (SIGSTOP, SIGTSTP, SIGTTIN, SIGTTOU),
/// those of `timer_create` (`SI_TIMER`) and of `setitimer` (SIGALRM from the kernel).
pub(super) fn signals(format: &EventFormat) -> Vec<String> {
    if !format.has("sig") {
        return Vec::new();
    }
    let stops = "(sig >= 19 && sig <= 22)";
    let timers = format
        .has("code")
        .then(|| format!("{stops} || code == -2 || (sig == 14 && code == 128)"));
    timers.into_iter().chain([stops.into()]).collect()
}

/// Filters for a field that is a CPU number.
fn number(field: &str, measured: &CpuSet) -> Vec<String> {
    let set = format!("{field} & CPUS{{{measured}}}");
    if measured.len() > ONE_BY_ONE {
        return vec![set];
    }
    let each: Vec<String> = measured
        .iter()
        .map(|cpu| format!("{field} == {cpu}"))
        .collect();
    let each = each.join(" || ");
    if measured.len() == 1 {
        vec![each]
    } else {
        vec![set, each]
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn format(fields: &str) -> EventFormat {
        let text = format!(
            "name: x\nID: 7\nformat:\n\tfield:int common_pid;\toffset:4;\tsize:4;\tsigned:1;\n\n{fields}\n"
        );
        EventFormat::parse("s", "x", &text).unwrap()
    }

    #[test]
    fn one_cpu_few_and_many() {
        let f = format("\tfield:int cpu;\toffset:8;\tsize:4;\tsigned:1;\n");
        let of = |target, list: &str| candidates(&f, target, &list.parse().unwrap(), CpuId(63));
        assert_eq!(of(EventFilter::Cpu("cpu"), "3"), ["cpu == 3"]);
        assert_eq!(
            of(EventFilter::Cpu("cpu"), "1-2"),
            ["cpu & CPUS{1-2}", "cpu == 1 || cpu == 2"]
        );
        assert_eq!(of(EventFilter::Cpu("cpu"), "1-40"), ["cpu & CPUS{1-40}"]);
        assert_eq!(
            of(EventFilter::Work, "3"),
            ["cpu == 3 || cpu < 0 || cpu > 63"]
        );
        assert!(of(EventFilter::Cpu("gone"), "3").is_empty());
        assert!(of(EventFilter::Either("cpu", "gone"), "3").is_empty());
        assert!(of(EventFilter::Mask("gone"), "3").is_empty());
        let two = "\tfield:int from;\toffset:8;\tsize:4;\tsigned:1;\n\tfield:int to;\toffset:12;\tsize:4;\tsigned:1;\n";
        let f = self::format(two);
        let of = |list: &str| {
            candidates(
                &f,
                EventFilter::Either("to", "from"),
                &list.parse().unwrap(),
                CpuId(63),
            )
        };
        assert_eq!(of("3"), ["to == 3 || from == 3"]);
        assert_eq!(
            of("1-2"),
            [
                "to & CPUS{1-2} || from & CPUS{1-2}",
                "to == 1 || to == 2 || from == 1 || from == 2"
            ]
        );
    }

    #[test]
    fn unsigned_and_requested_cpus() {
        let f = format("\tfield:unsigned int req_cpu;\toffset:8;\tsize:4;\tsigned:0;\n");
        let filters = candidates(&f, EventFilter::Work, &"1".parse().unwrap(), CpuId(3));
        assert_eq!(filters, ["req_cpu == 1 || req_cpu > 3"]);
    }
}
