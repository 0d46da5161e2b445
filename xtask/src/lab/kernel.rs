//! A Debian kernel: its image, and the modules that a guest needs.

use super::options::Kernel;
use super::{debian, folder};
use anyhow::{Context, bail};
use std::fs;
use std::path::{Path, PathBuf};
use std::process::Command;

pub struct Unpacked {
    /// The compressed image, in the form that qemu accepts.
    pub image: PathBuf,
    /// A folder with `lib/modules` and the modules' dependencies.
    pub modules: PathBuf,
}

/// The module folders to keep, out of about three thousand modules: for the shared folders, a disk with a file system,
/// a network card, frequencies, and their dependencies.
const MODULES: [&str; 15] = [
    "drivers/virtio",
    "drivers/net/virtio_net.ko*",
    "drivers/net/net_failover.ko*",
    "net/core/failover.ko*",
    "drivers/block/virtio_blk.ko*",
    "drivers/cpufreq/acpi-cpufreq.ko*",
    "drivers/cpufreq/cpufreq_ondemand.ko*",
    "net/9p",
    "fs/9p",
    "fs/netfs",
    "fs/fscache",
    "fs/ext4",
    "fs/jbd2",
    "fs/mbcache.ko*",
    "lib",
];

/// Modules of other folders that these need.
const OTHERS: [&str; 3] = [
    // A CPU's registers, including its count of system management interrupts.
    "arch/x86/kernel/msr.ko*",
    "crypto/crc32c_generic.ko*",
    "arch/x86/crypto/crc32c-intel.ko*",
];

/// Fetches it, or uses an earlier copy.
pub fn get(kernel: Kernel) -> anyhow::Result<Unpacked> {
    let root = folder()?.join("kernels").join(kernel.name());
    let wanted: Vec<String> = ["./boot/vmlinuz-*", "./usr/lib/modules/*/vmlinuz"]
        .map(str::to_owned)
        .into_iter()
        .chain(MODULES.iter().chain(&OTHERS).flat_map(|module| {
            // The module path depends on the release: merged /usr or not.
            ["./lib", "./usr/lib"].map(|lib| format!("{lib}/modules/*/kernel/{module}"))
        }))
        .collect();
    // The choice is stored, so that new releases are not fetched next to the existing one. The files are stored too: an
    // earlier copy may lack some that are wanted now.
    let (chosen, has) = (root.join("package"), root.join("wanted"));
    let kept = fs::read_to_string(&chosen).ok();
    let is_whole = fs::read_to_string(&has).is_ok_and(|has| has == wanted.join("\n"));
    let unpacked = root.join("unpacked");
    let package = match kept.filter(|_| is_whole) {
        Some(package) => package,
        None => {
            let package = debian::newest(kernel.release(), kernel.packages())?;
            if unpacked.exists() {
                fs::remove_dir_all(&unpacked)?;
            }
            let patterns: Vec<&str> = wanted.iter().map(String::as_str).collect();
            for part in kernel.parts(&package) {
                debian::unpack_of(kernel.release(), &part, &patterns, &unpacked)?;
            }
            depmod(&unpacked)?;
            fs::write(&chosen, &package)?;
            fs::write(&has, wanted.join("\n"))?;
            package
        }
    };
    Ok(Unpacked {
        image: image(&unpacked).with_context(|| format!("{package} has no image"))?,
        modules: unpacked,
    })
}

/// The image in an unpacked package: in `boot`, or since Linux 7 next to the modules.
fn image(unpacked: &Path) -> Option<PathBuf> {
    let list = |folder: PathBuf| {
        let entries = fs::read_dir(folder).into_iter().flatten().flatten();
        entries.map(|entry| entry.path())
    };
    let in_boot = list(unpacked.join("boot")).next();
    in_boot.or_else(|| {
        list(unpacked.join("usr/lib/modules"))
            .map(|modules| modules.join("vmlinuz"))
            .find(|image| image.is_file())
    })
}

fn depmod(root: &Path) -> anyhow::Result<()> {
    let lib = if root.join("lib/modules").is_dir() {
        root.join("lib")
    } else {
        root.join("usr/lib")
    };
    for entry in fs::read_dir(lib.join("modules"))?.flatten() {
        let base = lib.parent().unwrap_or(root);
        let status = Command::new(debian::busybox()?)
            .args(["depmod", "-b"])
            .arg(base)
            .arg(entry.file_name())
            .status()
            .context("busybox cannot be started")?;
        if !status.success() {
            bail!("depmod failed for {} ({status})", entry.path().display());
        }
    }
    Ok(())
}
