//! Boot parameters and kernel settings whose effect this machine cannot show.

use super::super::options::{Guest, Kernel};
use super::Finding;
use super::steps::{self, Steps};

/// With and without each setting: the clock's watchdog, KFENCE's gate, the power-efficient work queues, and the
/// interrupts of a disk that the kernel spreads itself.
pub fn at_boot(finding: &mut Finding) -> anyhow::Result<()> {
    let script = r#"
modprobe virtio_blk 2>/dev/null
cat /sys/module/workqueue/parameters/power_efficient >/out/efficient
# Each of two queues serves one housekeeping CPU and one isolated CPU; only the former read.
for cpu in 0 2; do
    taskset $((1 << cpu)) dd if=/dev/vda of=/dev/null bs=4k count=500 skip=$((cpu * 1000)) iflag=direct 2>/dev/null
done
grep -e '-req\.' /proc/interrupts >/out/interrupts
cd /sys/kernel/tracing || { mount -t tracefs tracefs /sys/kernel/tracing && cd /sys/kernel/tracing; }
seen() {
    echo >trace; echo 1 >tracing_on; sleep 4; echo 0 >tracing_on
    grep -c "$1" trace
}
echo 1 >events/timer/timer_expire_entry/enable
echo 1 >events/workqueue/workqueue_execute_start/enable
seen clocksource_watchdog >/out/watchdog
seen toggle_allocation_gate >/out/gate
echo 0 >/sys/module/kfence/parameters/sample_interval
seen toggle_allocation_gate >/out/gate-off
step done true
"#;
    let run = |finding: &Finding, name: &str, append: &str| -> anyhow::Result<Steps> {
        let folder = finding.folder(name)?;
        let disk = folder.with_extension("disk");
        std::fs::File::create(&disk)?.set_len(32 << 20)?;
        let guest = Guest::new(Kernel::V6_12)
            .smp("4")
            .append(append)
            .disk(&disk)
            .qemu(&["-device", "virtio-blk-pci,drive=disk,num-queues=2"]);
        let steps = steps::continued(folder, &guest, script);
        std::fs::remove_file(&disk)?;
        steps
    };
    let before = run(
        finding,
        "without",
        "kfence.sample_interval=100 tsc=recalibrate isolcpus=domain,1,3",
    )?;
    let after = run(
        finding,
        "with",
        "kfence.sample_interval=100 tsc=nowatchdog workqueue.power_efficient=1 isolcpus=managed_irq,domain,1,3",
    )?;
    let number = |steps: &Steps, file: &str| steps.file(file).trim().parse::<u64>().ok();
    let (ran, rests) = (number(&before, "watchdog"), number(&after, "watchdog"));
    finding.check(
        ran.is_some_and(|times| times > 0) && rests == Some(0),
        format!("tsc=nowatchdog stops clocksource_watchdog ({ran:?}, {rests:?} times in 4 s)"),
    );
    let (gate, off) = (number(&after, "gate"), number(&after, "gate-off"));
    finding.check(
        // The work that is under way when it is switched off still runs once.
        gate.is_some_and(|times| times > 10) && off.is_some_and(|times| times <= 1),
        format!("kfence: 0 stops toggle_allocation_gate ({gate:?}, {off:?} times in 4 s)"),
    );
    let efficient = [&before, &after].map(|steps| steps.file("efficient").trim().to_owned());
    finding.check(
        efficient == ["N", "Y"],
        format!("workqueue.power_efficient=1 is in force ({efficient:?})"),
    );
    let isolated = [&before, &after].map(|steps| on_isolated(&steps.file("interrupts")));
    finding.check(
        isolated[0].is_some_and(|count| count > 500) && isolated[1] == Some(0),
        format!(
            "isolcpus=managed_irq keeps a disk's interrupts from isolated CPUs ({isolated:?} of 1000)"
        ),
    );
    Ok(())
}

/// The interrupts on CPUs 1 and 3, from lines of /proc/interrupts with four CPUs; `None` without such a line.
fn on_isolated(lines: &str) -> Option<u64> {
    let of_line = |line: &str| -> Option<u64> {
        let mut counts = line.split_whitespace().skip(1);
        let one = counts.nth(1)?.parse::<u64>().ok()?;
        Some(one + counts.nth(1)?.parse::<u64>().ok()?)
    };
    lines.lines().map(of_line).reduce(|a, b| Some(a? + b?))?
}

#[cfg(test)]
mod tests {
    use super::on_isolated;

    #[test]
    fn interrupts_of_isolated_cpus_are_summed() {
        let lines = " 29:  1  20  300  4000  PCI-MSIX-0000:00:04.0  1-edge  virtio2-req.0\n 30: 0 1 0 2 PCI x\n";
        assert_eq!(on_isolated(lines), Some(4023));
        assert_eq!(on_isolated(""), None);
        assert_eq!(on_isolated("29: x"), None);
    }
}
