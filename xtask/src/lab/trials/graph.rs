//! Inside kernel functions: the calls of a work item and of an interrupt in their stalls; and nothing of it stays
//! behind.

use super::super::options::{Guest, Kernel};
use super::Finding;
use super::steps::{self, Steps, word};
use serde_json::Value;

/// CPU 1 is measured; a program there allocates memory, so that its counters are folded each second.
const SCRIPT: &str = r#"
tracing=/sys/kernel/tracing
stall_of() {
    awk -F, -v what="$2" 'NR == 1 { for (i = 1; i <= NF; i++) at[$i] = i; next }
        $at["culprit"] == what { print $at["stall_id"]; exit }' "$1"
}
cat $tracing/set_graph_function >/out/functions-before
step doctor jitterscope doctor --json
taskset 2 sh -c 'while :; do ls -R /etc /bin; usleep 200000; done' >/dev/null 2>&1 &
touching=$!
step work jitterscope record --cpus 1 -d 5s --graph vmstat_update -q --json
step work-csv jitterscope export latest --to csv:///out/work.csv
step work-stall jitterscope report latest --stall "$(stall_of /out/work.csv vmstat_update)" --json
step work-text jitterscope report latest --stall "$(stall_of /out/work.csv vmstat_update)"
step work-full jitterscope report latest --full
mkdir /out/run && cp -r /tmp/runs/*/* /out/run
step all jitterscope record --cpus 1 -d 2s --graph culprit -q --json
step all-csv jitterscope export latest --to csv:///out/all.csv
step all-stall jitterscope report latest --stall "$(stall_of /out/all.csv tick_nohz_handler)" --json
step unknown jitterscope record --cpus 1 -d 1s --graph no_such_function -q
kill $touching
echo vfs_read >$tracing/set_graph_function
step taken jitterscope record --cpus 1 -d 1s --graph vmstat_update -q
cat $tracing/set_graph_function >/out/functions-taken
echo >$tracing/set_graph_function
jitterscope record --cpus 1 -d 60s --graph vmstat_update -q >/dev/null 2>/out/killed.err &
pid=$!
while kill -0 $pid 2>/dev/null && ! grep -q vmstat_update $tracing/set_graph_function; do usleep 100000; done
kill -9 $pid; wait $pid
cat $tracing/set_graph_function >/out/functions-killed
step clean jitterscope doctor --clean
cat $tracing/set_graph_function >/out/functions-after
ls $tracing/instances >/out/instances
cat $tracing/current_tracer >/out/tracer
"#;

/// On 6.12, where an instance can have the tracer; on 6.1, where it cannot.
pub fn functions(finding: &mut Finding) -> anyhow::Result<()> {
    let steps = steps::run(finding, "guest", &Guest::new(Kernel::V6_12), SCRIPT)?;
    steps.ended(
        finding,
        &[
            ("work", 0),
            ("work-stall", 0),
            ("work-text", 0),
            ("all", 0),
            ("all-stall", 0),
            ("clean", 0),
        ],
    );
    let doctor = steps.json("doctor")?.to_string();
    finding.check(
        doctor.contains("function_graph"),
        "doctor says whether functions can be looked into",
    );
    let work = steps.json("work-stall")?;
    let depth = deepest(&work, "vmstat_update");
    finding.check(depth.is_some(), "vmstat_update is shown as a call");
    finding.check(
        depth.is_some_and(|depth| depth >= 1),
        format!("calls lie in it ({depth:?} deep)"),
    );
    let inner = called(&work, "refresh_cpu_vm_stats");
    finding.check(
        inner,
        format!("among them refresh_cpu_vm_stats: {:?}", names(&work)),
    );
    adds_up(finding, &work, "vmstat_update");
    let text = steps.out("work-text");
    let printed = text.contains("vmstat_update()") && text.contains("self ");
    finding.check(printed, "the timeline shows calls with their own times");
    let price = steps.json("work")?["trust"]["price"]["graph"].clone();
    let records = price["records"].as_u64().unwrap_or_default();
    finding.check(records > 0, format!("its price is reported: {price}"));
    let full = steps.out("work-full");
    finding.check(
        full.contains("looking into kernel functions took"),
        "in the full report, too",
    );
    let all = steps.json("all-stall")?;
    let tick = called(&all, "tick_nohz_handler");
    finding.check(
        tick,
        format!(
            "a tick is looked into, too: {:.300}",
            format!("{:?}", names(&all))
        ),
    );
    refused(
        finding,
        &steps,
        "unknown",
        &["no_such_function", "available_filter_functions"],
    );
    refused(
        finding,
        &steps,
        "taken",
        &["vfs_read", "set_graph_function"],
    );
    let (before, after) = (
        steps.file("functions-before"),
        steps.file("functions-after"),
    );
    finding.check(
        steps.file("functions-taken").trim() == "vfs_read",
        "what somebody else chose stays",
    );
    finding.check(
        steps.file("functions-killed").contains("vmstat_update"),
        "a kill leaves the choice",
    );
    finding.check(
        before == after && !before.is_empty(),
        format!("doctor --clean puts it right: {after:?}"),
    );
    let (instances, tracer) = (steps.file("instances"), steps.file("tracer"));
    finding.check(
        instances.trim().is_empty(),
        format!("no tracing instance is left ({})", instances.trim()),
    );
    finding.check(
        tracer.trim() == "nop",
        format!("nor a tracer ({})", tracer.trim()),
    );
    let old = steps::run(
        finding,
        "old",
        &Guest::new(Kernel::V6_1),
        "step graph jitterscope record --cpus 1 -d 1s --graph vmstat_update -q\n\
         step doctor jitterscope doctor --json\n\
         ls /sys/kernel/tracing/instances >/out/instances\n",
    )?;
    refused(finding, &old, "graph", &["instance", "6.11"]);
    let doctor = old.json("doctor")?.to_string();
    finding.check(
        doctor.contains("6.11"),
        "doctor names the first release that has it",
    );
    finding.check(
        old.file("instances").trim().is_empty(),
        "the refusal leaves no instance",
    );
    Ok(())
}

/// The tracer was requested and is unavailable: exit code 4, with the reason.
fn refused(finding: &mut Finding, steps: &Steps, step: &str, why: &[&str]) {
    let (code, error) = (steps.code(step), steps.err(step));
    let printed = code == Some(4) && why.iter().all(|word| error.contains(word));
    finding.check(
        printed,
        format!(
            "{step} is refused, and why ({code:?}): {:.400}",
            error.trim()
        ),
    );
}

fn calls(stall: &Value) -> impl Iterator<Item = &Value> {
    stall["frames"]
        .as_array()
        .into_iter()
        .flatten()
        .filter(|row| row["item"] == "call")
}

fn names(stall: &Value) -> Vec<String> {
    calls(stall).map(|row| word(row, "function")).collect()
}

fn called(stall: &Value, function: &str) -> bool {
    calls(stall).any(|row| row["function"] == function)
}

/// The depth of the calls inside a function.
fn deepest(stall: &Value, function: &str) -> Option<u64> {
    let (outer, inner) = inside(stall, function)?;
    let depth = |row: &Value| row["depth"].as_u64().unwrap_or_default();
    Some(
        inner
            .iter()
            .map(|row| depth(row))
            .max()
            .unwrap_or(depth(outer))
            - depth(outer),
    )
}

/// The first call of a function, and the calls within it.
fn inside<'s>(stall: &'s Value, function: &str) -> Option<(&'s Value, Vec<&'s Value>)> {
    let outer = calls(stall).find(|row| row["function"] == function)?;
    let (from, to) = (outer["start_ns"].as_u64()?, outer["end_ns"].as_u64()?);
    let within = |row: &&Value| {
        let at = row["start_ns"].as_u64();
        at.is_some_and(|at| at > from && at < to)
    };
    Some((outer, calls(stall).filter(within).collect()))
}

/// The own times of a call and of all calls within it add up to its length, except for rounding.
fn adds_up(finding: &mut Finding, stall: &Value, function: &str) {
    let Some((outer, inner)) = inside(stall, function) else {
        return;
    };
    let own = |row: &Value| row["self_ns"].as_u64().unwrap_or_default();
    let sum: u64 = own(outer) + inner.iter().map(|row| own(row)).sum::<u64>();
    let length = outer["end_ns"].as_u64().unwrap_or_default()
        - outer["start_ns"].as_u64().unwrap_or_default();
    let off = sum.abs_diff(length);
    finding.check(
        off <= 2 * (inner.len() as u64 + 1),
        format!("own times sum to the length of {function}: {sum} of {length} ns"),
    );
}
