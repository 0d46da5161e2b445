//! The documented sequence of steps: before each step its predicted culprit is present, after it the culprit is gone or
//! has fallen, and `diff` does not contradict. At the end everything is restored.

use super::super::debian::Unavailable;
use super::super::options::{Guest, Kernel};
use super::steps::{self, Steps, word};
use super::{Finding, state};
use serde_json::Value;
use std::process::Command;
use std::time::Duration;

/// A step: the culprit that it removes.
struct Taken {
    name: &'static str,
    /// Its knobs; empty if a boot parameter removes the culprit.
    knobs: &'static str,
    kind: &'static str,
    culprit: &'static str,
}

const TAKEN: [Taken; 5] = [
    Taken {
        name: "isolation",
        knobs: "cpuset-part,systemd-aff",
        kind: "thread",
        culprit: "hog",
    },
    Taken {
        name: "vmstat",
        knobs: "vmstat",
        kind: "kworker",
        culprit: "vmstat_update",
    },
    Taken {
        name: "watchdog",
        knobs: "softlockup",
        kind: "timer",
        culprit: "watchdog_timer_fn",
    },
    Taken {
        name: "interrupts",
        knobs: "irq-aff,irq-default",
        kind: "irq",
        culprit: "virtio",
    },
    Taken {
        name: "workqueues",
        knobs: "wq-named",
        kind: "kworker",
        culprit: "wb_workfn",
    },
];

/// The steps that need a reboot.
const BOOTED: [Taken; 2] = [
    Taken {
        name: "nohz_full",
        knobs: "",
        kind: "timer",
        culprit: "tick_sched_timer",
    },
    Taken {
        name: "rcu_nocbs",
        knobs: "",
        kind: "softirq",
        culprit: "RCU",
    },
];

/// The disturbances, and how a step is measured, changed and measured again. CPU 3 is the isolated one.
const SCRIPT: &str = r#"
cat >/bin/hog <<'X'
#!/bin/sh
while :; do i=0; while [ $i -lt 20000 ]; do i=$((i+1)); done; usleep 5000; done
X
cat >/bin/asker <<'X'
#!/bin/sh
while :; do ls /lab; usleep 10000; done
X
cat >/bin/writer <<'X'
#!/bin/sh
while :; do dd if=/dev/zero of=/mnt/file bs=64k count=16 conv=fsync; sync; done
X
cat >/bin/toucher <<'X'
#!/bin/sh
while :; do ls -R /etc /bin; usleep 200000; done
X
cat >/bin/stirrer <<'X'
#!/bin/sh
while :; do i=0; while [ $i -lt 5000 ]; do i=$((i+1)); done; usleep 200000; done
X
chmod 755 /bin/hog /bin/asker /bin/writer /bin/toucher /bin/stirrer
# Shorter than any record's doing, and alike in all runs: a comparison names nobody whose records lie outside of
# stalls. An emulated CPU does not promise a constant TSC, and the kernel still uses it.
reading="--clock tsc --threshold 2us"
measure() {
    # In an isolated partition only its members may run, as the apply says.
    partition=/sys/fs/cgroup/jitterscope.isolated/cgroup.procs
    sh -c "[ ! -e $partition ] || echo \$\$ >$partition
        exec jitterscope record --cpus 3 -d 5s $reading --label $1 -q --json"
}
walk() {
    step $1-before measure $1-before
    step $1-apply jitterscope tune apply --cpus 3 --only $2 --yes
    step $1-after measure $1-after
    step $1-diff jitterscope diff $1-before $1-after --json
}
# Without the thread that goes on initialising it.
mount -t ext4 -o noinit_itable /dev/vda /mnt || exit 9
echo 8 >/sys/devices/virtual/workqueue/writeback/cpumask
for file in /proc/irq/*/smp_affinity_list; do echo 3 >$file; done 2>/dev/null
settings >/out/before
settings >/out/again
pids=
# Four, on two CPUs of which the probe has one for itself: some must share that with it.
for n in 1 2 3 4; do taskset c hog & pids="$pids $!"; done
walk isolation cpuset-part,systemd-aff
kill $pids
step isolation-back jitterscope tune rollback --yes
# The counters of a CPU that allocates nothing have nothing to be folded.
taskset 8 toucher >/dev/null 2>&1 & pids=$!
# Nor are they folded while nobody asks for it: who does is a timer that an idle CPU puts off for as long as it likes
# (vmstat_shepherd, deferrable), so none of those that it may be on is idle for long.
for cpus in 1 2 4; do taskset $cpus stirrer & pids="$pids $!"; done
walk vmstat vmstat
kill $pids
walk watchdog softlockup
taskset 1 asker >/dev/null 2>&1 & asking=$!
walk interrupts irq-aff,irq-default
kill $asking
taskset 1 writer >/dev/null 2>&1 & writing=$!
walk workqueues wq-named
kill $writing
step status jitterscope tune status
step booted-before measure booted-before
step rollback jitterscope tune rollback --yes
sync
settings >/out/after
mkdir -p /out/runs && cp -r /tmp/runs/*-booted-before-* /out/runs
"#;

const BOOT_SCRIPT: &str = r#"
mkdir -p /tmp/runs && chmod 700 /tmp/runs && cp -r /out/runs/* /tmp/runs
cat /sys/devices/system/cpu/isolated /sys/devices/system/cpu/nohz_full >/out/isolated
jitterscope tune apply --cpus 3 --only vmstat,softlockup,irq-aff,wq-named --yes >/dev/null
step booted-after jitterscope record -d 5s --clock tsc --threshold 2us --label booted-after -q --json
step booted-diff jitterscope diff booted-before booted-after --json
"#;

/// Two boots: without and with boot parameters.
pub fn walk(finding: &mut Finding) -> anyhow::Result<()> {
    let folder = finding.folder("guest")?;
    let disk = folder.with_extension("disk");
    make_disk(&disk)?;
    let mut guest = Guest::new(Kernel::V6_1)
        .smp("4")
        .disk(&disk)
        .qemu(&["-device", "virtio-blk-pci,drive=disk"]);
    guest.limit = Duration::from_secs(900);
    let steps = steps::continued(folder.clone(), &guest, SCRIPT)?;
    std::fs::remove_file(&disk)?;
    for taken in &TAKEN {
        let apply = format!("{}-apply", taken.name);
        steps.ended(finding, &[(&apply, 0)]);
        let knobs = taken.knobs;
        let (before, after) = (
            format!("{}-before", taken.name),
            format!("{}-after", taken.name),
        );
        let diff = steps.json(&format!("{}-diff", taken.name))?;
        fell(finding, &steps, (&before, &after), &diff, taken, knobs)?;
    }
    steps.ended(
        finding,
        &[("isolation-back", 0), ("status", 0), ("rollback", 0)],
    );
    state::restored(finding, &steps, "after");
    let parameters = "isolcpus=domain,managed_irq,3 nohz_full=3 rcu_nocbs=3 irqaffinity=0";
    let steps = steps::continued(
        folder,
        &Guest::new(Kernel::V6_1).smp("4").append(parameters),
        BOOT_SCRIPT,
    )?;
    let isolated = steps.file("isolated");
    finding.check(
        isolated == "3\n3\n",
        format!("CPU 3 is isolated and tickless from boot on ({isolated:?})"),
    );
    let diff = steps.json("booted-diff")?;
    for taken in &BOOTED {
        fell(
            finding,
            &steps,
            ("booted-before", "booted-after"),
            &diff,
            taken,
            parameters,
        )?;
    }
    Ok(())
}

/// Checks that the culprit was present, and is gone or has fallen to a third at most.
fn fell(
    finding: &mut Finding,
    steps: &Steps,
    (before, after): (&str, &str),
    diff: &Value,
    taken: &Taken,
    by: &str,
) -> anyhow::Result<()> {
    let count = |step: &str| {
        Ok::<u64, anyhow::Error>(steps::stalls_of(
            &steps.json(step)?,
            taken.kind,
            taken.culprit,
        ))
    };
    let (was, is) = (count(before)?, count(after)?);
    let name = format!("{} {}", taken.kind, taken.culprit);
    finding.check(
        was > 0,
        format!("{}: {name} is there before {by} ({was} stalls)", taken.name),
    );
    finding.check(
        is * 3 <= was,
        format!(
            "{}: {name} is gone or has fallen after it ({was} -> {is})",
            taken.name
        ),
    );
    let rows = diff["against"][0]["culprits"]
        .as_array()
        .map(Vec::as_slice)
        .unwrap_or_default();
    let of = |row: &&Value| {
        word(row, "kind") == taken.kind && word(row, "name").starts_with(taken.culprit)
    };
    let became: Vec<String> = rows
        .iter()
        .filter(of)
        .map(|row| word(row, "became"))
        .collect();
    let agrees = !became.is_empty()
        && became
            .iter()
            .all(|word| !["grew", "appeared"].contains(&word.as_str()));
    finding.check(
        agrees,
        format!("{}: diff says of it: {became:?}", taken.name),
    );
    Ok(())
}

/// Creates a small disk with a file system that uses writeback.
pub fn make_disk(path: &std::path::Path) -> anyhow::Result<()> {
    std::fs::File::create(path)?.set_len(64 << 20)?;
    let made = Command::new("mkfs.ext4").arg("-q").arg(path).status();
    if !made.is_ok_and(|status| status.success()) {
        return Err(Unavailable("mkfs.ext4 cannot be used (package e2fsprogs)".to_owned()).into());
    }
    Ok(())
}
