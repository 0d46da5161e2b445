//! A kernel that refuses tracefs, and kernels that do not keep time by the TSC.

use super::super::options::{Guest, Kernel};
use super::Finding;
use super::steps::{self, source, word};

/// With `lockdown=confidentiality` the kernel gives nobody its events: what was measured is still told, and
/// why nobody is named.
pub fn lockdown(finding: &mut Finding) -> anyhow::Result<()> {
    let guest = Guest::new(Kernel::V6_1).append("lockdown=confidentiality");
    let script = r#"
step record jitterscope record --cpus 1 -d 2s -q --json
step required jitterscope record --cpus 1 -d 1s -q --require tracefs
step attach jitterscope attach -q --json -d 1s -- sleep 3
step selftest jitterscope selftest --cpus 1 --only fifo
step doctor jitterscope doctor --json
cat /sys/kernel/security/lockdown >/out/lockdown
"#;
    let steps = steps::run(finding, "guest", &guest, script)?;
    steps.ended(finding, &[("record", 0), ("required", 4), ("attach", 4), ("selftest", 4), ("doctor", 0)]);
    let report = steps.json("record")?;
    let stalls = report["attribution"]["stalls"].as_u64().or(report["probe"]["total"]["stalls"].as_u64());
    finding.check(
        stalls.is_some_and(|stalls| stalls > 0),
        format!("stalls are measured all the same ({stalls:?})"),
    );
    let tracefs = source(&report, "tracefs").cloned().unwrap_or_default();
    let told = format!("{}: {}", word(&tracefs, "status"), word(&tracefs, "reason"));
    finding.check(word(&tracefs, "status") == "denied", format!("tracefs is denied, and why: {told}"));
    finding.check(told.contains("lockdown"), format!("the reason is the lockdown: {told}"));
    for step in ["required", "attach", "selftest"] {
        let error = steps.err(step);
        finding.check(error.contains("lockdown"), format!("{step} says why: {:.300}", error.trim()));
    }
    Ok(())
}

/// The HPET as clock source, and a TSC that is called unstable: the probe falls back to the kernel's clock,
/// says so, and the events still lie in the stalls.
pub fn wrong(finding: &mut Finding) -> anyhow::Result<()> {
    for (name, append) in [("hpet", "tsc=reliable clocksource=hpet"), ("unstable", "tsc=unstable")] {
        let script = r#"
cat /sys/devices/system/clocksource/clocksource0/current_clocksource >/out/source
step record jitterscope record --cpus 1 -d 2s -q --json
step tsc jitterscope record --cpus 1 -d 1s -q --clock tsc
"#;
        let steps = steps::run(finding, name, &Guest::new(Kernel::V6_1).append(append), script)?;
        let kept = steps.file("source");
        finding.check(kept.trim() != "tsc", format!("{name}: the kernel keeps time by {}", kept.trim()));
        steps.ended(finding, &[("record", 0)]);
        // What neither CPU nor kernel vouch for is not read.
        let refused = steps.code("tsc") == Some(4) && steps.err("tsc").contains(kept.trim());
        finding.check(refused, format!("{name}: --clock tsc is refused: {}", steps.err("tsc").trim()));
        let report = steps.json("record")?;
        let clock = word(&report["probe"], "clock");
        finding.check(clock == "monotonic_raw", format!("{name}: the probe reads {clock}"));
        let inside = report["attribution"]["events_in_gaps_fraction"].as_f64();
        let proven = report["attribution"]["proven"] == true;
        finding.check(proven, format!("{name}: the evidence is proven ({inside:?} of the events in stalls)"));
        let warned = report["warnings"].to_string();
        finding.check(warned.contains("clock-fallback"), format!("{name}: the fallback is told"));
    }
    Ok(())
}
