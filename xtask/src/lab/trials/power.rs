//! Frequencies and idle states, which no machine of the developers has: Debian's own drivers, on an ACPI table of ours.

use super::super::options::{Guest, Kernel};
use super::Finding;
use super::steps::{self, Steps};

/// Compiled from `power.asl`.
const TABLE: &[u8] = include_bytes!("power.aml");

/// Each knob of frequencies and idle states: what the kernel does before `tune apply`, after it and after the rollback.
pub fn power(finding: &mut Finding) -> anyhow::Result<()> {
    let script = r#"
modprobe acpi-cpufreq; modprobe cpufreq_ondemand
cpus=/sys/devices/system/cpu
for cpu in 0 1; do echo ondemand >$cpus/cpu$cpu/cpufreq/scaling_governor; done
cat $cpus/cpu1/cpufreq/scaling_driver $cpus/cpuidle/current_driver >/out/drivers
cd /sys/kernel/tracing
for event in cpu_frequency cpu_idle; do echo 1 >events/power/$event/enable; done
# CPU 1 sleeps often, works for a moment, and sleeps again. The file is what the knobs set, then what the kernel did.
look() {
    grep -H . $cpus/cpu?/cpufreq/scaling_governor $cpus/cpu?/cpufreq/scaling_min_freq $cpus/cpu?/cpuidle/state?/disable \
        $cpus/cpu?/power/pm_qos_resume_latency_us >"/out/$1.set"
    echo >trace; echo 1 >tracing_on
    taskset 2 sh -c 'for turn in 1 2; do
        i=0; while [ $i -lt 150 ]; do i=$((i + 1)); usleep 4000; done
        i=0; while [ $i -lt 60000 ]; do i=$((i + 1)); done
    done'
    echo 0 >tracing_on
    grep -o 'cpu_[a-z]*: state=[0-9]* cpu_id=1$' trace | sort | uniq -c >"/out/$1.did"
}
look before
for knob in governor freq-floor cstate cstate-cpu; do
    step $knob jitterscope tune apply --yes --only $knob --cpus 1
    look $knob.on
    step $knob-back jitterscope tune rollback --yes
done
look after
step audit jitterscope audit --cpus 1 --json
"#;
    let folder = finding.folder("guest")?;
    let table = folder.with_extension("aml");
    std::fs::write(&table, TABLE)?;
    let table = format!("file={}", table.display());
    let guest = Guest::new(Kernel::V6_12).qemu(&["-acpitable", &table]);
    let steps = steps::continued(folder, &guest, script)?;
    let knobs = ["governor", "freq-floor", "cstate", "cstate-cpu"];
    for knob in knobs {
        steps.ended(finding, &[(knob, 0), (&format!("{knob}-back"), 0)]);
    }
    let drivers = steps.file("drivers");
    let drivers: Vec<&str> = drivers.lines().collect();
    finding.check(
        drivers == ["acpi-cpufreq", "acpi_idle"],
        format!("the kernel has drivers for both ({drivers:?})"),
    );
    let changes = |name: &str| did(&steps, name, "cpu_frequency", None);
    let to_low = |name: &str| did(&steps, name, "cpu_frequency", Some(1_000_000));
    let deep = |name: &str| did(&steps, name, "cpu_idle", Some(2));
    let shallow = |name: &str| did(&steps, name, "cpu_idle", Some(1));
    let (before, on) = (changes("before"), changes("governor.on"));
    finding.check(
        before > 0 && on == 0,
        format!("governor: CPU 1 changes its frequency {before} times, then {on} times"),
    );
    let (before, on) = (to_low("before"), to_low("freq-floor.on"));
    finding.check(
        before > 0 && on == 0,
        format!("freq-floor: CPU 1 goes to the low frequency {before} times, then {on} times"),
    );
    let (before, on, halts) = (deep("before"), deep("cstate.on"), shallow("cstate.on"));
    finding.check(
        before > 0 && on == 0 && halts > 0,
        format!("cstate: CPU 1 enters C2 {before} times, then {on} times and C1 {halts} times"),
    );
    let (on, halts) = (deep("cstate-cpu.on"), shallow("cstate-cpu.on"));
    let polls = did(&steps, "cstate-cpu.on", "cpu_idle", Some(0));
    finding.check(
        on == 0 && halts == 0 && polls > 0,
        format!("cstate-cpu: then C2 {on}, C1 {halts} and POLL {polls} times"),
    );
    finding.check(
        steps.file("before.set") == steps.file("after.set") && deep("after") > 0,
        "rollback restores every value, and C2 is back",
    );
    let audit = steps.json("audit")?;
    let of = |id: &str| {
        let knobs = audit["knobs"].as_array().into_iter().flatten();
        let knob = knobs.into_iter().find(|knob| knob["id"] == id);
        knob.map_or(String::new(), |knob| knob["cause"].to_string())
    };
    finding.check(
        of("pstate-drv").contains("acpi-cpufreq"),
        format!("audit names the driver ({})", of("pstate-drv")),
    );
    Ok(())
}

/// How often CPU 1 had this event, to this state.
fn did(steps: &Steps, look: &str, event: &str, state: Option<u64>) -> u64 {
    counted(&steps.file(&format!("{look}.did")), event, state)
}

/// From lines of `uniq -c`: `    7 cpu_idle: state=2 cpu_id=1`.
fn counted(lines: &str, event: &str, state: Option<u64>) -> u64 {
    let count = |line: &str| -> Option<u64> {
        let mut words = line.split_whitespace();
        let count = words.next()?.parse().ok()?;
        let is_it = words.next()?.strip_suffix(':')? == event;
        let to: u64 = words.next()?.strip_prefix("state=")?.parse().ok()?;
        (is_it && state.is_none_or(|state| state == to)).then_some(count)
    };
    lines.lines().filter_map(count).sum()
}

#[cfg(test)]
mod tests {
    use super::counted;

    #[test]
    fn events_are_counted_by_state() {
        let lines = "   3 cpu_frequency: state=1000000 cpu_id=1\n  4 cpu_frequency: state=2000000 cpu_id=1\n\
                     12 cpu_idle: state=2 cpu_id=1\n";
        assert_eq!(counted(lines, "cpu_frequency", None), 7);
        assert_eq!(counted(lines, "cpu_frequency", Some(1_000_000)), 3);
        assert_eq!(counted(lines, "cpu_idle", Some(2)), 12);
        assert_eq!(counted("x", "cpu_idle", None), 0);
    }
}
