//! More CPUs than this machine has, and other topologies: siblings, nodes, device queues, control groups.

use super::super::options::{Guest, Kernel};
use super::steps::{self, culprits, stalls_of};
use super::{Finding, walk};
use std::time::Duration;

/// Hyper-threads and two memory nodes; a disk with a queue and a kernel-managed interrupt for each CPU; the pipeline's
/// threads on isolated CPUs of their own.
pub fn shapes(finding: &mut Finding) -> anyhow::Result<()> {
    let folder = finding.folder("guest")?;
    let disk = folder.with_extension("disk");
    walk::make_disk(&disk)?;
    let mut guest = Guest::new(Kernel::V6_1)
        .smp("4,sockets=2,cores=1,threads=2")
        .append("isolcpus=domain,1-3")
        // The emulator gives its AMD CPUs no siblings.
        .qemu(&["-cpu", "max,vendor=GenuineIntel"])
        .qemu(&[
            "-object",
            "memory-backend-ram,id=near,size=768M",
            "-numa",
            "node,cpus=0-1,memdev=near",
        ])
        .qemu(&[
            "-object",
            "memory-backend-ram,id=far,size=768M",
            "-numa",
            "node,cpus=2-3,memdev=far",
        ])
        .disk(&disk)
        .qemu(&["-device", "virtio-blk-pci,drive=disk,num-queues=4"]);
    guest.limit = Duration::from_secs(600);
    let script = r#"
modprobe virtio_blk 2>/dev/null
step record jitterscope record --cpus 2,3 -d 3s -q --json
places="--producer-cpu 1 --accumulator-cpu 2 --journaller-cpu 3 --duration 2s"
# Two of them are siblings, and they are on two nodes.
step siblings jitterscope record pipeline $places -q
step pipeline jitterscope record pipeline $places --force -q --json
step audit jitterscope audit --cpus 3 --json
step apply jitterscope tune apply --cpus 3 --only irq-aff --yes
step rollback jitterscope tune rollback --yes
for file in /proc/irq/*/effective_affinity_list; do echo "$file $(cat $file) $(ls ${file%/*} | grep virtio)"; done >/out/interrupts
"#;
    let steps = steps::continued(folder, &guest, script)?;
    std::fs::remove_file(&disk)?;
    steps.ended(
        finding,
        &[
            ("record", 0),
            ("pipeline", 0),
            ("audit", 0),
            ("apply", 0),
            ("rollback", 0),
        ],
    );
    let (code, why) = (steps.code("siblings"), steps.err("siblings"));
    let refused = code == Some(2)
        && why.contains("hardware threads of one physical core")
        && why.contains("2-3");
    finding.check(
        refused,
        format!(
            "the pipeline is not put on siblings unasked ({code:?}): {:.200}",
            why.trim()
        ),
    );
    let record = steps.json("record")?;
    let processors = &record["machine"]["processors"];
    let nodes = processors["numa"]["value"].as_array().map_or(0, Vec::len);
    finding.check(nodes == 2, format!("two nodes are seen ({nodes})"));
    let active = &processors["smt"]["active"]["value"];
    finding.check(active == true, format!("hyper-threads are seen ({active})"));
    let measured = record["probe"]["cpus"].as_array().map_or(0, Vec::len);
    finding.check(
        measured == 2,
        format!("both CPUs are measured ({measured})"),
    );
    let pipeline = steps.json("pipeline")?;
    let text = pipeline["pipeline"].to_string();
    let cpus: Vec<u64> = numbers_of(&text, "\"cpu\":");
    let own = (1..=3).all(|cpu| cpus.contains(&cpu));
    finding.check(
        own,
        format!("each thread of the pipeline has an isolated CPU of its own ({cpus:?})"),
    );
    // Only an attempt shows which interrupts the kernel places itself; these are the only refusals.
    let (applied, interrupts) = (steps.out("apply"), steps.file("interrupts"));
    let queue = interrupts
        .lines()
        .find(|line| line.contains("_list 3 virtio") && line.contains("-req."));
    let queue = queue
        .and_then(|line| line.split('/').nth(3))
        .unwrap_or("none");
    let shown = applied.contains("left to the kernel, which manages them")
        && applied.contains(&format!("/proc/irq/{queue}/smp_affinity_list -> "));
    finding.check(
        shown,
        format!("the queue of CPU 3 (interrupt {queue}) is left to the kernel, and reported"),
    );
    Ok(())
}

fn numbers_of(text: &str, key: &str) -> Vec<u64> {
    let mut found: Vec<u64> = text
        .split(key)
        .skip(1)
        .filter_map(|rest| {
            rest.split(|c: char| !c.is_ascii_digit())
                .next()?
                .parse()
                .ok()
        })
        .collect();
    found.sort_unstable();
    found.dedup();
    found
}

/// Control groups of version 2: an isolated partition made and undone, and a quota that throttles its members.
pub fn groups(finding: &mut Finding) -> anyhow::Result<()> {
    let script = r#"
cat >/bin/worker <<'X'
#!/bin/sh
echo $$ >/sys/fs/cgroup/small/cgroup.procs
i=0; while [ $i -lt 60000 ]; do i=$((i+1)); done
X
chmod 755 /bin/worker
step apply jitterscope tune apply --cpus 1 --only cpuset-part --yes
cat /sys/fs/cgroup/jitterscope.isolated/cpuset.cpus.partition >/out/partition
# Only its members may run there, as the apply says.
step isolated sh -c 'echo $$ >/sys/fs/cgroup/jitterscope.isolated/cgroup.procs
    exec jitterscope record --cpus 1 -d 2s -q --json'
step rollback jitterscope tune rollback --yes
ls -d /sys/fs/cgroup/jitterscope* >/out/groups 2>/dev/null
echo +cpu >/sys/fs/cgroup/cgroup.subtree_control
mkdir /sys/fs/cgroup/small
echo "10000 100000" >/sys/fs/cgroup/small/cpu.max
step quota jitterscope attach -q --json --threshold 10ms -- worker
step replay jitterscope report latest --reattribute --json
rmdir /sys/fs/cgroup/small
"#;
    let steps = steps::run(finding, "guest", &Guest::new(Kernel::V6_12), script)?;
    steps.ended(
        finding,
        &[
            ("apply", 0),
            ("isolated", 0),
            ("rollback", 0),
            ("quota", 0),
            ("replay", 0),
        ],
    );
    let partition = steps.file("partition");
    finding.check(
        partition.trim() == "isolated",
        format!("the partition is isolated ({})", partition.trim()),
    );
    finding.check(
        steps.file("groups").trim().is_empty(),
        "the rollback leaves no group",
    );
    let quota = steps.json("quota")?;
    let warned = quota["warnings"].to_string().contains("cpu-quota");
    finding.check(warned, "a warning reports the quota");
    let (by_quota, unnamed) = (
        stalls_of(&quota, "quota", "CPU quota"),
        stalls_of(&quota, "unresolved", "runnable but idle"),
    );
    finding.check(
        by_quota > 10 * unnamed,
        format!(
            "the quota is named from the first wait on ({by_quota} times, {unnamed} times not)"
        ),
    );
    let (live, again) = (culprits(&quota), culprits(&steps.json("replay")?));
    finding.check(
        live == again,
        format!("a replay says the same: {live:?}, {again:?}"),
    );
    Ok(())
}

/// Eight CPUs of nine measured at once; the report stays readable.
pub fn eight(finding: &mut Finding) -> anyhow::Result<()> {
    let mut guest = Guest::new(Kernel::V6_1).smp("9");
    guest.limit = Duration::from_secs(400);
    let script = r#"
step record jitterscope record --cpus 1-8 -d 3s -q --label eight
step json jitterscope report latest --json
"#;
    let steps = steps::run(finding, "guest", &guest, script)?;
    steps.ended(finding, &[("record", 0), ("json", 0)]);
    let report = steps.json("json")?;
    let cpus = report["probe"]["cpus"]
        .as_array()
        .cloned()
        .unwrap_or_default();
    finding.check(
        cpus.len() == 8,
        format!("eight CPUs are measured ({})", cpus.len()),
    );
    let all = cpus
        .iter()
        .all(|cpu| cpu["samples"].as_u64().is_some_and(|samples| samples > 0));
    finding.check(all, "each of them has samples");
    let text = steps.out("record");
    let (lines, widest) = (
        text.lines().count(),
        text.lines()
            .map(|line| line.chars().count())
            .max()
            .unwrap_or(0),
    );
    finding.check(
        lines <= 120 && widest <= 100,
        format!("the report has {lines} lines, {widest} wide"),
    );
    Ok(())
}
