//! A kernel that refuses tracefs, and kernels that do not use the TSC as their clock.

use super::super::options::{Guest, Kernel};
use super::Finding;
use super::steps::{self, source, word};
use serde_json::Value;

/// With `lockdown=confidentiality` the kernel gives its events to no process: the measurement is still reported, with
/// the reason why no culprit is named.
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
    steps.ended(
        finding,
        &[
            ("record", 0),
            ("required", 4),
            ("attach", 4),
            ("selftest", 4),
            ("doctor", 0),
        ],
    );
    let report = steps.json("record")?;
    let stalls = report["attribution"]["stalls"]
        .as_u64()
        .or(report["probe"]["total"]["stalls"].as_u64());
    finding.check(
        stalls.is_some_and(|stalls| stalls > 0),
        format!("stalls are still measured ({stalls:?})"),
    );
    let tracefs = source(&report, "tracefs").cloned().unwrap_or_default();
    let message = format!("{}: {}", word(&tracefs, "status"), word(&tracefs, "reason"));
    finding.check(
        word(&tracefs, "status") == "denied",
        format!("tracefs is denied, and why: {message}"),
    );
    finding.check(
        message.contains("lockdown"),
        format!("the reason is the lockdown: {message}"),
    );
    for step in ["required", "attach", "selftest"] {
        let error = steps.err(step);
        finding.check(
            error.contains("lockdown"),
            format!("{step} says why: {:.300}", error.trim()),
        );
    }
    Ok(())
}

/// The HPET as clock source, and a TSC marked unstable: the probe falls back to the kernel's clock and reports it, and
/// events still fall into stalls.
pub fn wrong(finding: &mut Finding) -> anyhow::Result<()> {
    for (name, append) in [
        ("hpet", "tsc=reliable clocksource=hpet"),
        ("unstable", "tsc=unstable"),
    ] {
        let script = r#"
cat /sys/devices/system/clocksource/clocksource0/current_clocksource >/out/source
step record jitterscope record --cpus 1 -d 2s -q --json
step text jitterscope report latest --full
cp -r /tmp/runs /out/runs
step tsc jitterscope record --cpus 1 -d 1s -q --clock tsc
"#;
        let steps = steps::run(
            finding,
            name,
            &Guest::new(Kernel::V6_1).append(append),
            script,
        )?;
        let kept = steps.file("source");
        finding.check(
            kept.trim() != "tsc",
            format!("{name}: the kernel keeps time by {}", kept.trim()),
        );
        steps.ended(finding, &[("record", 0)]);
        // A clock that neither CPU nor kernel vouches for is not used.
        let refused = steps.code("tsc") == Some(4) && steps.err("tsc").contains(kept.trim());
        finding.check(
            refused,
            format!(
                "{name}: --clock tsc is refused: {}",
                steps.err("tsc").trim()
            ),
        );
        let report = steps.json("record")?;
        let clock = word(&report["probe"], "clock");
        finding.check(
            clock == "monotonic_raw",
            format!("{name}: the probe reads {clock}"),
        );
        proven(finding, name, &report, &steps.out("text"));
        let warned = report["warnings"].to_string();
        finding.check(
            warned.contains("clock-fallback"),
            format!("{name}: the fallback is reported"),
        );
    }
    Ok(())
}

/// Events of work that takes as long as a stall must lie in stalls; events of shorter work need not. Both are counted,
/// and the report states the shortest stall that it sees.
fn proven(finding: &mut Finding, name: &str, report: &Value, text: &str) {
    let attribution = &report["attribution"];
    let count = |field: &str| attribution[field].as_u64().unwrap_or_default();
    let (due, too_short) = (count("events"), count("events_too_short"));
    let inside = attribution["events_in_gaps_fraction"]
        .as_f64()
        .unwrap_or_default();
    let threshold = &report["probe"]["threshold_ns"];
    let costs = &report["probe"]["clock_costs"];
    let message = format!(
        "{name}: of {due} events that a threshold of {threshold} ns ({costs}) must show, {:.2} % lie in stalls; {too_short} \
         are of what took less",
        inside * 100.0
    );
    // A few events would prove nothing, and most must be due, or else the threshold hides what it should show.
    finding.check(due >= 300 && due > too_short && inside >= 0.99, message);
    finding.check(
        attribution["proven"] == true,
        format!("{name}: the evidence is proven"),
    );
    // Long lines are wrapped.
    let words = text.split_whitespace().collect::<Vec<_>>().join(" ");
    let said = words.contains("stalls from ")
        && (too_short == 0 || words.contains("which no stall shows"));
    finding.check(
        said,
        format!(
            "{name}: the report says from how long on it sees stalls, and what it does not show"
        ),
    );
}
