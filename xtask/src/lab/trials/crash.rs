//! A killed process must leave nothing behind: a recording at random moments, `tune apply` at each of its writes, a
//! full disk, a measured CPU that goes offline.

use super::super::options::{Guest, Kernel, Program};
use super::Finding;
use super::state::{State, restored};
use super::steps;
use jitterscope_testing::SplitMix64;
use std::time::{Duration, SystemTime, UNIX_EPOCH};

/// How many recordings are killed.
const KILLS: u64 = 20;

/// SIGKILL of `record` at random moments of its start, its run and its end.
pub fn record(finding: &mut Finding) -> anyhow::Result<()> {
    let seed = SystemTime::now()
        .duration_since(UNIX_EPOCH)
        .map_or(0, |time| time.as_secs());
    eprintln!("  seed {seed}");
    let mut random = SplitMix64(seed);
    let mut script = String::from("settings >/out/before\nsettings >/out/again\n");
    script.push_str(
        "kill_after() {\n\
         jitterscope record --cpus 1 -d 1s --warmup 100ms -q >/dev/null 2>>/out/killed.err &\n\
         pid=$!; usleep $1\n\
         grep -q . /sys/kernel/tracing/instances/*/tracing_on 2>/dev/null && echo >>/out/traced\n\
         kill -9 $pid 2>/dev/null; wait $pid; echo $? >>/out/kills\n\
         }\n",
    );
    for _ in 0..KILLS {
        script.push_str(&format!("kill_after {}\n", random.below(6_000_000)));
    }
    script.push_str(
        r#"
step next jitterscope record --cpus 1 -d 1s -q --json
step clean jitterscope doctor --clean --json
step list jitterscope list --json
settings >/out/after
ls -A /tmp/runs >/out/runs
ls /sys/kernel/tracing/instances >/out/instances
ps -o comm >/out/processes
"#,
    );
    let steps = steps::run(finding, "guest", &Guest::new(Kernel::V6_1), &script)?;
    let kills = steps.file("kills");
    let struck = kills.lines().filter(|code| *code == "137").count();
    finding.check(
        struck >= 8,
        format!("{struck} of {KILLS} recordings were struck before their end"),
    );
    let traced = steps.file("traced").lines().count();
    finding.check(
        traced >= 3,
        format!("{traced} of them while their tracing instances stood"),
    );
    steps.ended(finding, &[("next", 0), ("clean", 0), ("list", 0)]);
    finding.check(
        !steps.file("killed.err").contains("panicked"),
        "none panicked",
    );
    let left = steps.file("instances");
    finding.check(
        left.trim().is_empty(),
        format!("no tracing instance is left ({})", left.trim()),
    );
    let partial: Vec<String> = steps
        .file("runs")
        .lines()
        .filter(|name| name.starts_with('.'))
        .map(str::to_owned)
        .collect();
    finding.check(
        partial.is_empty(),
        format!("no half-written run is left: {partial:?}"),
    );
    let alive = steps
        .file("processes")
        .lines()
        .filter(|name| name.starts_with("jitterscope") || name.starts_with("js-"))
        .count();
    finding.check(alive == 0, format!("no process is left ({alive})"));
    restored(finding, &steps, "after");
    Ok(())
}

/// Seven of the kills of [`apply_all`].
pub fn apply(finding: &mut Finding) -> anyhow::Result<()> {
    killed_applies(finding, 7)
}

/// SIGKILL of `tune apply` at each of its writes in turn, then `tune rollback`: every setting is restored.
pub fn apply_all(finding: &mut Finding) -> anyhow::Result<()> {
    killed_applies(finding, 1000)
}

/// Kills at `kills` of its writes, evenly spread.
fn killed_applies(finding: &mut Finding, kills: u32) -> anyhow::Result<()> {
    let script = r#"
echo 1 >/proc/sys/kernel/watchdog
settings >/out/before
settings >/out/again
step whole strace -f -qq -o /tmp/trace -e trace=write jitterscope tune apply --cpus 1 --profile isolation --yes
settings >/out/applied
writes=$(grep -c 'write(' /tmp/trace)
echo $writes >/out/writes
step undo jitterscope tune rollback --yes
settings >/out/undone
stride=$(( (writes + kills - 1) / kills ))
n=1
while [ $n -le $writes ]; do
    strace -f -qq -o /dev/null -e trace=write -e inject=write:signal=KILL:when=$n \
        jitterscope tune apply --cpus 1 --profile isolation --yes >/dev/null 2>>/out/killed.err
    echo "$n $?" >>/out/kills
    step rollback-$n jitterscope tune rollback --yes
    settings >/out/after-$n
    n=$((n + stride))
done
step status jitterscope tune status --json
"#;
    let script = format!("kills={kills}\n{script}");
    let mut guest = Guest::new(Kernel::V6_1).with(Program::Strace);
    guest.limit = Duration::from_secs(if kills > 100 { 1200 } else { 600 });
    let steps = steps::run(finding, "guest", &guest, &script)?;
    steps.ended(finding, &[("whole", 0), ("undo", 0), ("status", 0)]);
    let (before, again) = (steps.file("before"), steps.file("again"));
    let changed = State::of(&before)
        .until(&State::of(&again), &State::of(&steps.file("applied")))
        .other
        .len();
    finding.check(
        changed >= 10,
        format!("the profile changes {changed} settings"),
    );
    restored(finding, &steps, "undone");
    let kills = steps.file("kills");
    let mut struck = 0;
    for line in kills.lines() {
        let Some((number, code)) = line.split_once(' ') else {
            continue;
        };
        struck += usize::from(code == "137");
        let rollback = steps.code(&format!("rollback-{number}"));
        let message = format!(
            "rollback after a kill at write {number} ends with 0: {:.200}",
            steps.err(&format!("rollback-{number}")).trim()
        );
        finding.check(rollback == Some(0), message);
        restored(finding, &steps, &format!("after-{number}"));
    }
    finding.check(
        struck >= 4,
        format!(
            "{struck} of {} were struck in mid-apply",
            kills.lines().count()
        ),
    );
    Ok(())
}

/// A disk that fills up, and a measured CPU that goes offline and comes back.
pub fn resources(finding: &mut Finding) -> anyhow::Result<()> {
    let script = r#"
settings >/out/before
settings >/out/again
mount -t tmpfs -o size=300k tmpfs /mnt
step full jitterscope --runs /mnt/runs record --cpus 1 -d 3s --threshold 1us -q
ls -A /mnt/runs >/out/full-runs
umount /mnt
# It fills up while it is written to: by then the measurement has begun.
mount -t tmpfs -o size=80m tmpfs /mnt
jitterscope --runs /mnt/runs record --cpus 1 -d 60s --threshold 1us -q --json >/out/filled.out 2>/out/filled.err &
pid=$!
while kill -0 $pid 2>/dev/null && ! ls /mnt/runs/.partial-*/trace/segments/*.seg >/dev/null 2>&1; do usleep 100000; done
usleep 3000000
dd if=/dev/zero of=/mnt/rest bs=64k 2>/dev/null
wait $pid; echo "filled $?" >>/out/codes
step filled-report jitterscope --runs /mnt/runs report latest --json
ls -A /mnt/runs >/out/filled-runs
umount /mnt
jitterscope record --cpus 1 -d 6s -q --json >/out/offline.out 2>/out/offline.err &
pid=$!
usleep 5000000
echo 0 >/sys/devices/system/cpu/cpu1/online; echo "went $?" >/out/offline
usleep 1000000
echo 1 >/sys/devices/system/cpu/cpu1/online; echo "came $?" >>/out/offline
wait $pid; echo "offline $?" >>/out/codes
jitterscope attach -q --json -d 6s -- sh -c 'i=0; while [ $i -lt 90 ]; do usleep 20000; i=$((i+1)); done' >/out/attached.out 2>/out/attached.err &
pid=$!
usleep 5000000
echo 0 >/sys/devices/system/cpu/cpu1/online
usleep 500000
echo 1 >/sys/devices/system/cpu/cpu1/online
wait $pid; echo "attached $?" >>/out/codes
step next jitterscope record --cpus 1 -d 1s -q --json
settings >/out/after
"#;
    let steps = steps::run(finding, "guest", &Guest::new(Kernel::V6_1), script)?;
    let full = steps.err("full");
    finding.check(
        steps
            .code("full")
            .is_some_and(|code| code != 0 && code != 101),
        format!("a full disk is an error: {:.300}", full.trim()),
    );
    let says = full.contains("space") || full.contains("room") || full.contains("full");
    finding.check(says, "and it says that there is no room");
    let (code, error) = (steps.code("filled"), steps.err("filled"));
    finding.check(
        code.is_some_and(|code| code < 101) && !error.contains("panicked"),
        format!(
            "a disk that fills up ends the recording in order ({code:?}): {:.300}",
            error.trim()
        ),
    );
    let kept = steps.json("filled-report")?;
    let stalls = kept["attribution"]["stalls"]
        .as_u64()
        .or(kept["probe"]["total"]["stalls"].as_u64());
    finding.check(
        stalls.is_some_and(|stalls| stalls > 0),
        format!("what was measured by then is kept ({stalls:?} stalls)"),
    );
    let said = kept["warnings"].to_string();
    finding.check(
        said.contains("space") || said.contains("room") || said.contains("full"),
        format!("and the run says why it ended: {said:.300}"),
    );
    let partial: Vec<String> = steps
        .file("filled-runs")
        .lines()
        .filter(|name| name.starts_with('.'))
        .map(str::to_owned)
        .collect();
    finding.check(
        partial.is_empty(),
        format!("nothing half-written lies beside it: {partial:?}"),
    );
    let message = format!(
        "CPU 1 went offline and came back ({})",
        steps.file("offline").replace('\n', " ")
    );
    finding.check(steps.file("offline") == "went 0\ncame 0\n", message);
    for step in ["offline", "attached"] {
        let code = steps.code(step);
        let message = format!(
            "{step} ends in order ({code:?}): {:.300}",
            steps.err(step).trim()
        );
        finding.check(code.is_some_and(|code| code < 101), message);
    }
    // A probe that was moved from its CPU reports it, in its report or as its error.
    let message = steps.out("offline") + &steps.err("offline");
    finding.check(
        message.contains("offline") || message.contains("moved") || message.contains("another CPU"),
        "the recording says that its CPU was taken away",
    );
    steps.ended(finding, &[("next", 0)]);
    restored(finding, &steps, "after");
    Ok(())
}
