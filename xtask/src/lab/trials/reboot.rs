//! The power fails during the apply of a permanent change: after the boot, one rollback restores everything.

use super::super::boot;
use super::super::options::{Guest, Kernel};
use super::steps;
use super::{Finding, walk};

/// Milliseconds from the first line of the journal to the cut.
const CUTS: [u32; 3] = [0, 300, 1500];

/// The folders of drop-ins, on a persistent disk.
const MOUNTS: &str = r#"
mount -t ext4 /dev/vda /mnt || exit 9
mkdir -p /mnt/etc
mount -o bind /mnt/etc /etc
mkdir -p /etc/default/grub.d /etc/sysctl.d /etc/tmpfiles.d
drop_ins() { cd /etc; find . -type f | sort | xargs -r md5sum; cd /root; }
"#;

pub fn persist(finding: &mut Finding) -> anyhow::Result<()> {
    for cut in CUTS {
        let folder = finding.folder(&format!("cut-{cut}"))?;
        let disk = folder.with_extension("disk");
        walk::make_disk(&disk)?;
        let guest = Guest::new(Kernel::V6_1)
            .disk(&disk)
            .qemu(&["-device", "virtio-blk-pci,drive=disk"]);
        let pause = u64::from(cut) * 1000;
        let before = format!(
            "{}{MOUNTS}\nsync\nsettings >/out/before\nsettings >/out/again\ndrop_ins >/out/drop-ins-before\n\
             jitterscope tune apply --cpus 1 --profile isolation --persist --yes --state-dir /mnt/state \
             >/out/apply.out 2>/out/apply.err &\n\
             while ! grep -q . /mnt/state/*.jsonl /mnt/state/journal* 2>/dev/null; do usleep 1000; done\n\
             usleep {pause}\n\
             ls -l /mnt/state >/out/state\necho o >/proc/sysrq-trigger\nsleep 60\n",
            steps::PREAMBLE
        );
        boot::until_power_goes(&guest, &before, &folder)?;
        let after = format!(
            "{MOUNTS}\nstep status jitterscope tune status --json --state-dir /mnt/state\n\
             step rollback jitterscope tune rollback --yes --json --state-dir /mnt/state\n\
             step again jitterscope tune status --json --state-dir /mnt/state\n\
             drop_ins >/out/drop-ins-after\nsettings >/out/after\n"
        );
        let steps = steps::continued(folder, &guest, &after)?;
        std::fs::remove_file(&disk)?;
        steps.ended(finding, &[("status", 0), ("rollback", 0), ("again", 0)]);
        let report = steps.json("rollback")?;
        let undone = report["steps"].as_array().map_or(0, Vec::len);
        finding.check(
            undone > 0,
            format!("cut after {cut} ms: the journal lists {undone} changes"),
        );
        let rebooted = &report["rebooted"];
        finding.check(
            rebooted == true,
            format!("cut after {cut} ms: the reboot is noticed ({rebooted})"),
        );
        let (was, is) = (steps.file("drop-ins-before"), steps.file("drop-ins-after"));
        finding.check(
            was == is,
            format!("cut after {cut} ms: no drop-in is left ({is:?})"),
        );
    }
    Ok(())
}
