//! One static program on four kernels: what it records on each, and what each kernel hides from it.

use super::super::options::{Guest, Kernel, Program};
use super::Finding;
use super::document::{self, Table};
use super::steps::{self, Steps, culprits, word};
use crate::dist::is_static;
use crate::program;
use anyhow::ensure;
use serde_json::Value;
use std::fs;
use std::time::Duration;

const KERNELS: [Kernel; 4] = [Kernel::V6_1, Kernel::V6_12, Kernel::Rt, Kernel::Newest];

/// The last recording is by a user who was given the folder of instances, but no capability.
const SCRIPT: &str = r#"
uname -r >/out/release
step doctor jitterscope doctor --json
step record jitterscope record --cpus 1 -d 3s -q --json
step priority jitterscope record --cpus 1 --priority 10 -d 1s -q --json
step attach jitterscope attach -q --json -- sh -c 'i=0; while [ $i -lt 30 ]; do usleep 20000; i=$((i+1)); done'
step selftest jitterscope selftest --cpus 1 --json
echo service:x:1000:1000::/tmp:/bin/sh >>/etc/passwd
echo service:x:1000: >>/etc/group
chmod o+x /sys/kernel/tracing
chown service /sys/kernel/tracing/instances
export JITTERSCOPE_RUNS=/tmp/service
step service /bin/setpriv --reuid 1000 --regid 1000 --clear-groups jitterscope record --cpus 1 -d 2s -q --json
ls /sys/kernel/tracing/instances >/out/instances
"#;

/// Sources that depend on the machine and not on its kernel.
const OF_THE_MACHINE: [&str; 2] = ["tsc", "smi"];

pub fn kernels(finding: &mut Finding) -> anyhow::Result<()> {
    let program = program::get()?;
    ensure!(
        is_static(&fs::read(&program)?)?,
        "{} is not static: build one with cargo xtask dist --arch x86_64, and name it with --program",
        program.display()
    );
    let mut columns = Vec::new();
    for kernel in KERNELS {
        columns.push(tried(finding, kernel)?);
    }
    document::compare(finding, "docs/kernels.md", "kernels", &table(&columns))
}

/// The functions that work on every kernel.
const WORKS: [&str; 3] = [
    "stalls and their culprits: `record`, `attach`",
    "`--priority`, in the static program",
    "a user without privilege who was given the instances ([rights.md](rights.md))",
];

/// The results on one kernel.
struct Column {
    name: String,
    /// Whether each of [`WORKS`] did.
    works: [bool; 3],
    lost: Vec<String>,
    selftest: String,
}

fn tried(finding: &mut Finding, kernel: Kernel) -> anyhow::Result<Column> {
    let mut guest = Guest::new(kernel).with(Program::Setpriv);
    guest.limit = Duration::from_secs(900);
    let steps = steps::run(finding, kernel.name(), &guest, SCRIPT)?;
    let release = steps.file("release");
    let release = release.trim();
    eprintln!("  on {release}");
    let ends = ["doctor", "record", "priority", "attach", "service"];
    steps.ended(finding, &ends.map(|step| (step, 0)));
    let [record, priority, service] =
        ["record", "priority", "service"].map(|step| recorded(finding, release, step, &steps));
    let attach = steps.json("attach")?;
    let named = culprits(&attach);
    let follows = attach["threads"]
        .as_array()
        .is_some_and(|all| !all.is_empty());
    let attached = follows && !named.is_empty();
    finding.check(
        attached,
        format!("{release}: attach names who took the threads' time: {named:?}"),
    );
    let left = steps.file("instances");
    finding.check(
        left.trim().is_empty(),
        format!("{release}: no tracing instance is left: {left:?}"),
    );
    Ok(Column {
        name: named_by(release),
        works: [record? && attached, priority?, service?],
        lost: lost(&steps.json("doctor")?),
        selftest: selftest(finding, release, &steps.json("selftest")?),
    })
}

fn recorded(
    finding: &mut Finding,
    release: &str,
    step: &str,
    steps: &Steps,
) -> anyhow::Result<bool> {
    let report = steps.json(step)?;
    let attribution = &report["attribution"];
    let events = attribution["events"].as_u64().unwrap_or_default();
    let proven = events > 20 && attribution["proven"] == true;
    finding.check(
        proven,
        format!("{release}: {step} has {events} events, and its evidence is proven"),
    );
    Ok(proven)
}

/// `6.12` from `6.12.95+deb12-amd64`, followed by `RT` for a PREEMPT_RT kernel.
fn named_by(release: &str) -> String {
    let mut numbers = release.split(|c: char| !c.is_ascii_digit());
    let [major, minor] = [(); 2].map(|()| numbers.next().unwrap_or_default());
    let rt = if release.contains("-rt-") { " RT" } else { "" };
    format!("{major}.{minor}{rt}")
}

/// What doctor reports as lost because the kernel lacks something.
fn lost(doctor: &Value) -> Vec<String> {
    let sources = doctor["sources"].as_array().into_iter().flatten();
    sources
        .filter(|source| !OF_THE_MACHINE.contains(&word(source, "name").as_str()))
        .filter(|source| source["status"] != "available")
        .flat_map(|source| {
            let loses = word(source, "loses");
            loses.split("; ").map(str::to_owned).collect::<Vec<_>>()
        })
        .collect()
}

/// Which kinds of disturbance the guest cannot have. A kind whose disturbance is shorter than the emulator's shortest
/// stall depends on the emulator's speed, and is in no cell.
fn selftest(finding: &mut Finding, release: &str, score: &Value) -> String {
    let rows = score["rows"].as_array().map_or(&[][..], Vec::as_slice);
    for row in rows.iter().filter(|row| row["passed"] != true) {
        let (kind, why) = (word(row, "kind"), word(row, "reason"));
        finding.check(false, format!("{release}: selftest finds {kind}: {why}"));
    }
    finding.check(
        rows.len() >= 5,
        format!("{release}: selftest injects {} kinds", rows.len()),
    );
    let skipped = score["skipped"].as_array().into_iter().flatten();
    let (not_ready, impossible): (Vec<&Value>, Vec<&Value>) =
        skipped.partition(|one| one["cause"]["id"] == "not-ready");
    for one in not_ready {
        let (kind, why) = (word(one, "kind"), word(one, "reason"));
        finding.check(
            why.contains("the shortest stall that is recorded here"),
            format!("{release}: {kind} is shorter than the shortest stall: {why}"),
        );
    }
    let impossible: Vec<String> = impossible.iter().map(|one| word(one, "kind")).collect();
    match impossible.is_empty() {
        true => "all".to_owned(),
        false => format!("all but {}", impossible.join(", ")),
    }
}

fn table(columns: &[Column]) -> String {
    let mut head = vec!["what".to_owned()];
    head.extend(
        columns
            .iter()
            .map(|column| format!("Linux {}", column.name)),
    );
    let mut table = Table::new(&head);
    let said = |yes: bool| if yes { "yes" } else { "**no**" }.to_owned();
    let mut row = |what: &str, has: &dyn Fn(&Column) -> bool| {
        let cells = columns.iter().map(|column| said(has(column)));
        table.row(std::iter::once(what.to_owned()).chain(cells).collect());
    };
    for (at, what) in WORKS.iter().enumerate() {
        row(what, &|column| column.works[at]);
    }
    let mut all: Vec<&String> = Vec::new();
    for what in columns.iter().flat_map(|column| &column.lost) {
        if !all.contains(&what) {
            all.push(what);
        }
    }
    for what in all {
        row(what, &|column| !column.lost.contains(what));
    }
    let mut cells = vec!["kinds that `selftest` injects and finds".to_owned()];
    cells.extend(columns.iter().map(|column| column.selftest.clone()));
    table.row(cells);
    table.text()
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_kernel_is_named_by_its_first_two_numbers() {
        assert_eq!(named_by("6.12.95+deb12-amd64"), "6.12");
        assert_eq!(named_by("6.1.0-50-rt-amd64"), "6.1 RT");
    }

    #[test]
    fn what_one_kernel_lacks_has_a_row_with_the_others_beside() {
        let column = |name: &str, lost: &[&str]| Column {
            name: name.into(),
            works: [true; 3],
            lost: lost.iter().map(|what| (*what).to_owned()).collect(),
            selftest: "all".into(),
        };
        let text = table(&[column("6.1", &["who called"]), column("7.2", &[])]);
        assert!(text.contains("| who called | **no** | yes |\n"), "{text}");
    }
}
