//! Boot parameters, each with and without, and what keeps the tick of a CPU that could do without one.

use super::super::options::{Guest, Kernel};
use super::Finding;
use super::steps::{self, Steps};
use std::collections::BTreeSet;

/// The period of Debian's tick, nanoseconds.
const TICK: u64 = 4_000_000;

/// The parameters of one guest, and their knobs.
const TOGETHER: [(&str, &str); 5] = [
    ("threadirqs", "threadirqs"),
    ("skew_tick=1", "skew-tick"),
    ("rcu_nocb_poll", "rcu-nocb-poll"),
    ("audit=0", "audit"),
    ("mitigations=off", "mitigations"),
];

pub fn at_boot(finding: &mut Finding) -> anyhow::Result<()> {
    let script = r#"
ps -o comm | grep '^irq/' >/out/irqs
ps -o comm | grep -c '^kauditd' >/out/kauditd
grep -h . /sys/devices/system/cpu/vulnerabilities/* >/out/vulnerabilities
cd /sys/kernel/tracing
trace() { echo >trace; echo 1 >tracing_on; "$@"; echo 0 >tracing_on; }
busy() { taskset $1 sh -c "$2; while :; do :; done" & }
echo 1 >events/timer/hrtimer_start/enable
busy 1 :; first=$!; busy 2 :; second=$!
trace sleep 2
kill $first $second
grep 'function=tick' trace >/out/ticks
echo 0 >events/timer/enable
# The removal of a group queues callbacks on the CPU that removes it.
echo 1 >events/sched/sched_waking/enable
trace taskset 4 sh -c 'i=0; while [ $i -lt 60 ]; do i=$((i + 1)); mkdir /sys/fs/cgroup/x; rmdir /sys/fs/cgroup/x; done'
grep -c 'comm=rcuo' trace >/out/woken
grep 'comm=rcuo' trace | grep -c '\[002\]' >/out/woken-from-2
echo 0 >events/sched/enable
echo 1 >events/power/cpu_idle/enable
trace sleep 2
grep -o 'state=[0-9]*' trace | sort | uniq -c >/out/idle
echo 0 >events/power/enable
# What keeps the tick of CPU 2: the interrupts of its timer in 3 s, and the reasons.
echo 1 >events/timer/tick_stop/enable
ticks() { awk '/LOC:/ { print $4 }' /proc/interrupts; }
tick() {
    sleep 1
    before=$(ticks); trace sleep 3; echo $(($(ticks) - before)) >/out/$1.ticks
    grep '\[002\]' trace | grep -o 'success=.*' | sort | uniq -c >/out/$1.why
}
busy 4 :; first=$!; tick alone
busy 4 :; second=$!; tick beside
kill $second; tick alone-again
kill $first; busy 4 'ulimit -t 100'; first=$!; tick limited
kill $first
step audit jitterscope audit --cpus 2,3 --json
"#;
    let run = |finding: &Finding, name: &str, more: &str| {
        let guest = Guest::new(Kernel::V6_12)
            .smp("4")
            .append(&format!("nohz_full=2,3 rcu_nocbs=2,3 {more}"));
        steps::run(finding, name, &guest, script)
    };
    let without = run(finding, "without", "")?;
    let together = TOGETHER.map(|(parameter, _)| parameter).join(" ");
    let with = run(finding, "with", &together)?;
    let polling = run(finding, "polling", "idle=poll")?;
    let both = [&without, &with];

    let threads = both.map(|steps| steps.file("irqs").lines().count());
    let of_devices = with.file("irqs").contains("virtio");
    finding.check(
        threads[1] > threads[0] && of_devices,
        format!("threadirqs gives interrupts threads ({threads:?})"),
    );
    let apart = both.map(|steps| apart(&steps.file("ticks")));
    finding.check(
        apart[0] == Some(0) && apart[1].is_some_and(|ns| ns > 0),
        format!("skew_tick=1 parts the ticks of CPUs 0 and 1 ({apart:?} ns)"),
    );
    let woken = both.map(|steps| (number(steps, "woken-from-2"), number(steps, "woken")));
    finding.check(
        woken[0].0 > Some(0) && woken[1].0 == Some(0),
        format!("with rcu_nocb_poll CPU 2 wakes no callback thread ({woken:?}: CPU 2, all)"),
    );
    let threads = both.map(|steps| number(steps, "kauditd"));
    finding.check(
        threads == [Some(1), Some(0)],
        format!("with audit=0 there is no kauditd ({threads:?})"),
    );
    let mitigated = both.map(|steps| steps.file("vulnerabilities").matches("Mitigation:").count());
    finding.check(
        mitigated[0] > 0 && mitigated[1] == 0,
        format!("mitigations=off turns mitigations off ({mitigated:?})"),
    );
    let idle = [&without, &polling].map(|steps| idle_states(&steps.file("idle")));
    finding.check(
        idle[0].contains(&1) && idle[1] == BTreeSet::from([0]),
        format!("with idle=poll CPUs enter state 0 only ({idle:?})"),
    );
    for (steps, knobs) in [(&with, &TOGETHER[..]), (&polling, &[("", "idle-poll")])] {
        let audit = steps.json("audit")?;
        let rows = audit["knobs"].as_array().into_iter().flatten();
        let fine: Vec<_> = rows.filter(|row| row["state"] == "fine").collect();
        for (_, knob) in knobs {
            let is_fine = fine.iter().any(|row| row["id"] == *knob);
            finding.check(is_fine, format!("audit finds {knob} in force"));
        }
    }
    for steps in [&without, &with, &polling] {
        tick(finding, steps);
    }
    Ok(())
}

/// A full-dynticks CPU ticks for a second task or a limit of CPU time, and says so.
fn tick(finding: &mut Finding, steps: &Steps) {
    let ticks = ["alone", "beside", "alone-again", "limited"]
        .map(|name| number(steps, &format!("{name}.ticks")).unwrap_or(0));
    let few = |count: u64| count * 10 < ticks[1];
    finding.check(
        few(ticks[0]) && few(ticks[2]) && !few(ticks[3]),
        format!("CPU 2 ticks while something needs it ({ticks:?} times)"),
    );
    for (name, why) in [("beside", "SCHED"), ("limited", "POSIX_TIMER")] {
        let said = steps.file(&format!("{name}.why"));
        finding.check(
            said.contains(&format!("success=0 dependency={why}")),
            format!("tick_stop gives the reason {why} ({})", said.trim()),
        );
    }
}

fn number(steps: &Steps, file: &str) -> Option<u64> {
    steps.file(file).trim().parse().ok()
}

/// How far the ticks of CPUs 0 and 1 are apart, from records of their timers; `None` without records of both.
fn apart(records: &str) -> Option<u64> {
    let phase = |cpu: &str| -> Option<u64> {
        let line = records.lines().rfind(|line| line.contains(cpu))?;
        let expires = line.split(" expires=").nth(1)?.split(' ').next()?;
        Some(expires.parse::<u64>().ok()? % TICK)
    };
    Some(phase("[000]")?.abs_diff(phase("[001]")?))
}

/// The states in lines of `uniq -c`, without the value that stands for leaving one.
fn idle_states(lines: &str) -> BTreeSet<u32> {
    lines
        .lines()
        .filter_map(|line| line.split_once("state=")?.1.parse().ok())
        .filter(|state| *state != u32::MAX)
        .collect()
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn ticks_are_compared_by_phase() {
        let records = " sh-1 [000] d.h1. 1.0: hrtimer_start: function=tick_nohz_handler expires=13256000000 softexpires=1\n \
                       sh-2 [001] d.h1. 1.1: hrtimer_start: function=tick_nohz_handler expires=13260500000 softexpires=1\n";
        assert_eq!(apart(records), Some(500_000));
        assert_eq!(apart(""), None);
    }

    #[test]
    fn leaving_is_no_state() {
        let states = idle_states("  22 state=0\n  22 state=4294967295\n");
        assert_eq!(states, BTreeSet::from([0]));
    }
}
