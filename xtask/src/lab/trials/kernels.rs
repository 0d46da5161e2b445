//! Other kernels: their events, formats and names differ, and so do their missing features.

use super::super::options::{Guest, Kernel};
use super::Finding;
use super::steps::{self, Steps, culprits, source, stalls_of, word};
use serde_json::Value;
use std::time::Duration;

/// Every kind of recording, the commands that inspect the machine, and the selftest. For `interrupts` the devices
/// interrupt CPU 1, while the other CPU uses the shared folder.
const SCRIPT: &str = r#"
step doctor jitterscope doctor --json
jitterscope doctor >/out/verdict
step audit jitterscope audit --json
step record jitterscope record --cpus 1 -d 3s -q --json
step attach jitterscope attach -q --json -- sh -c 'i=0; while [ $i -lt 30 ]; do usleep 20000; i=$((i+1)); done'
# Two CPUs have no room for three busy threads.
step pipeline jitterscope record pipeline --two-thread -q --json --duration 2s
step wakeup jitterscope record wakeup --cpus 1 -q --json -d 2s
taskset 2 sh -c 'while :; do :; done' &
owner=$!
step passive jitterscope record none --cpus 1 -q --json -d 2s
kill $owner
step selftest jitterscope selftest --cpus 1 --json
for file in /proc/irq/*/smp_affinity_list; do echo 1 >$file; done 2>/dev/null
taskset 1 sh -c 'while :; do ls /lab; usleep 10000; done' >/dev/null 2>&1 &
asker=$!
step interrupts jitterscope record --cpus 1 -d 2s -q --json
kill $asker
ls /sys/kernel/tracing/instances >/out/instances
"#;

pub fn v6_1(finding: &mut Finding) -> anyhow::Result<()> {
    let steps = everything(finding, Kernel::V6_1)?;
    let record = steps.json("record")?;
    has(finding, &record, "timer", "tick_sched_timer");
    lacks_csd(finding, &record);
    skips_membarrier(finding, &steps.json("selftest")?);
    has(finding, &steps.json("interrupts")?, "irq", "virtio");
    Ok(())
}

pub fn v6_12(finding: &mut Finding) -> anyhow::Result<()> {
    let steps = everything(finding, Kernel::V6_12)?;
    let record = steps.json("record")?;
    // Renamed in 6.9.
    has(finding, &record, "timer", "tick_nohz_handler");
    let tracefs = source(&record, "tracefs").map(|source| word(source, "status"));
    finding.check(
        tracefs.as_deref() == Some("available"),
        format!("6.12 has every event that is wanted: {tracefs:?}"),
    );
    has(finding, &steps.json("interrupts")?, "irq", "virtio");
    finding.check(
        steps.code("selftest") == Some(0),
        "the selftest passes where the kernel has every event",
    );
    Ok(())
}

pub fn rt(finding: &mut Finding) -> anyhow::Result<()> {
    let steps = everything(finding, Kernel::Rt)?;
    let record = steps.json("record")?;
    has(finding, &record, "timer", "tick_sched_timer");
    lacks_csd(finding, &record);
    skips_membarrier(finding, &steps.json("selftest")?);
    // There, sleeping timers run in one thread and RCU's callbacks in another: each softirq is named after the thread
    // that does its work.
    has(finding, &record, "thread", "ktimers/1");
    has(finding, &record, "thread", "rcuc/1");
    let softirqs = stalls_of(&record, "softirq", "RCU");
    finding.check(
        softirqs == 0,
        format!("no RCU softirq where a thread does its work ({softirqs})"),
    );
    // A device's handler also runs in a thread.
    has(finding, &steps.json("interrupts")?, "thread", "irq/");
    let doctor = steps.json("doctor")?;
    let osnoise = capability(&doctor, "osnoise");
    finding.check(
        osnoise.as_deref() == Some("available"),
        format!("doctor knows the tracer osnoise: {osnoise:?}"),
    );
    Ok(())
}

/// Checks that apply to every kernel.
fn everything(finding: &mut Finding, kernel: Kernel) -> anyhow::Result<Steps> {
    let mut guest = Guest::new(kernel);
    // Busy threads in an emulator whose host lacks a CPU for them: up to three minutes for a pipeline were seen.
    guest.limit = Duration::from_secs(900);
    let steps = steps::run(finding, "all", &guest, SCRIPT)?;
    let expected = [
        "doctor",
        "audit",
        "record",
        "attach",
        "pipeline",
        "wakeup",
        "passive",
        "interrupts",
    ];
    steps.ended(finding, &expected.map(|step| (step, 0)));
    for step in ["record", "wakeup", "interrupts"] {
        proven(finding, step, &steps.json(step)?);
    }
    let verdict = steps.file("verdict").replace('\n', " ");
    let message = format!("doctor does not call the kernel blind: {verdict:.100}");
    finding.check(
        verdict.contains("Stalls can be measured")
            && !verdict.contains("their causes cannot be named"),
        message,
    );
    let attach = steps.json("attach")?;
    let threads = attach["threads"].as_array().map_or(0, Vec::len);
    finding.check(
        threads >= 1,
        format!("attach follows the command's threads ({threads})"),
    );
    let followed = culprits(&attach);
    finding.check(
        !followed.is_empty(),
        format!("attach names who took their time: {followed:?}"),
    );
    let pipeline = steps.json("pipeline")?;
    finding.check(
        pipeline["pipeline"].is_object(),
        "record pipeline measures messages",
    );
    selftest(finding, &steps.json("selftest")?);
    let left = steps.file("instances");
    finding.check(
        left.trim().is_empty(),
        format!("no tracing instance is left: {left:?}"),
    );
    Ok(steps)
}

/// The kernel's events match the gaps, and every limited source gives its reason.
fn proven(finding: &mut Finding, step: &str, report: &Value) {
    let attribution = &report["attribution"];
    let events = attribution["events"].as_u64().unwrap_or_default();
    if report["probe"]["kind"] == "spin" {
        let inside = attribution["events_in_gaps_fraction"]
            .as_f64()
            .unwrap_or_default();
        finding.check(
            events > 100 && inside > 0.99,
            format!(
                "{step}: {:.2} % of {events} events lie in stalls",
                inside * 100.0
            ),
        );
    }
    finding.check(
        attribution["proven"] == true,
        format!("{step}: the evidence is proven"),
    );
    for source in report["sources"].as_array().into_iter().flatten() {
        if source["status"] != "available" {
            let typed = !word(source, "reason").is_empty() && !word(source, "loses").is_empty();
            finding.check(
                typed,
                format!("{step}: {} says why and what is lost", word(source, "name")),
            );
        }
    }
}

fn has(finding: &mut Finding, report: &Value, kind: &str, name: &str) {
    let count = stalls_of(report, kind, name);
    finding.check(
        count > 0,
        format!(
            "{kind} {name} is named ({count} stalls) among {:?}",
            culprits(report)
        ),
    );
}

fn lacks_csd(finding: &mut Finding, report: &Value) {
    let lost = source(report, "tracefs")
        .map(|source| word(source, "reason"))
        .unwrap_or_default();
    finding.check(
        lost.contains("csd:csd_function_entry"),
        format!("what the kernel lacks is named: {lost}"),
    );
}

/// Every disturbance is named more often than anything else is reported, or was not injected for a reported reason.
fn selftest(finding: &mut Finding, score: &Value) {
    let rows = score["rows"]
        .as_array()
        .map(Vec::as_slice)
        .unwrap_or_default();
    let kinds: Vec<String> = rows.iter().map(|row| word(row, "kind")).collect();
    for wanted in ["fifo", "fair", "timer", "softirq", "kworker", "quota"] {
        finding.check(
            kinds.iter().any(|kind| kind == wanted),
            format!("selftest injects {wanted}"),
        );
    }
    for one in score["skipped"].as_array().into_iter().flatten() {
        finding.skip(format!(
            "selftest {}: {}",
            word(one, "kind"),
            word(one, "reason")
        ));
    }
    for row in rows {
        let kind = word(row, "kind");
        let count = |name: &str| row[name].as_u64().unwrap_or_default();
        let instead = row["wrong"].as_array().into_iter().flatten();
        let instead = instead.filter_map(|wrong| wrong["count"].as_u64()).max();
        let message = format!(
            "selftest {kind}: named {} of {} found of {} {}",
            count("named"),
            count("found"),
            count("injected"),
            word(row, "reason")
        );
        // The number depends on the emulator's speed and is tested on real machines; the name does not.
        finding.check(count("named") > instead.unwrap_or_default(), message);
    }
}

/// If the kernel has no event for the sender of a function call (before Linux 6.5), no membarrier is injected, and the
/// selftest says which event is missing.
fn skips_membarrier(finding: &mut Finding, score: &Value) {
    let skipped = score["skipped"]
        .as_array()
        .and_then(|all| all.iter().find(|one| one["kind"] == "membarrier"));
    let reason = skipped.map(|one| word(one, "reason")).unwrap_or_default();
    finding.check(
        reason.contains("csd:csd_queue_cpu"),
        format!("selftest membarrier is skipped: {reason:?}"),
    );
}

/// The state of a capability in doctor's report.
fn capability(doctor: &Value, name: &str) -> Option<String> {
    let all = doctor["sources"].as_array().or_else(|| doctor.as_array())?;
    all.iter()
        .find(|one| one["name"] == name)
        .map(|one| word(one, "status"))
}
