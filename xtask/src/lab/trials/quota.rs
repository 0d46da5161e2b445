//! A CPU quota beside a neighbour: throttled time is the quota's, whoever else runs meanwhile.

use super::super::options::{Guest, Kernel};
use super::Finding;
use super::steps::{self, time_of};
use std::time::Duration;

/// On each kernel, a thread limited to 20 ms in 100 ms shares its CPU with an unlimited one. Kernels before 6.18
/// throttle whole run queues, later ones single threads.
pub fn beside_a_neighbour(finding: &mut Finding) -> anyhow::Result<()> {
    let script = r#"
cat >/bin/limited <<'X'
#!/bin/sh
echo $$ >/sys/fs/cgroup/small/cgroup.procs
i=0; while [ $i -lt 60000 ]; do i=$((i+1)); done
X
chmod 755 /bin/limited
echo +cpu >/sys/fs/cgroup/cgroup.subtree_control
mkdir /sys/fs/cgroup/small
echo "20000 100000" >/sys/fs/cgroup/small/cpu.max
taskset 2 sh -c 'while :; do :; done' &
hog=$!
step beside jitterscope attach -q --json --threshold 10ms -- taskset 2 limited
kill $hog
cp /sys/fs/cgroup/small/cpu.stat /out/stat
step text jitterscope report latest
rmdir /sys/fs/cgroup/small
"#;
    for kernel in [Kernel::V6_1, Kernel::V6_12] {
        let mut guest = Guest::new(kernel);
        guest.limit = Duration::from_secs(400);
        let steps = steps::run(finding, kernel.name(), &guest, script)?;
        steps.ended(finding, &[("beside", 0), ("text", 0)]);
        let report = steps.json("beside")?;
        let stat = steps.file("stat");
        let throttled = stat
            .lines()
            .find_map(|line| line.strip_prefix("throttled_usec "))
            .and_then(|micros| micros.parse::<u64>().ok())
            .unwrap_or(0)
            * 1000;
        let (quota, neighbour) = (
            time_of(&report, "quota_beside", "") + time_of(&report, "quota", ""),
            time_of(&report, "thread", "sh"),
        );
        // The emulator's time is uneven, but both clocks are the guest's.
        finding.check(
            throttled > 0 && quota.abs_diff(throttled) * 5 < throttled,
            format!(
                "{}: the quota has {} ms of {} ms throttled, the neighbour {} ms",
                kernel.name(),
                quota / 1_000_000,
                throttled / 1_000_000,
                neighbour / 1_000_000
            ),
        );
        let text = steps.out("text");
        let at = |word: &str| text.find(word).unwrap_or(usize::MAX);
        finding.check(
            at("cfs-quota") < at("cpuset-part"),
            format!("{}: cfs-quota is the first advice", kernel.name()),
        );
    }
    Ok(())
}
