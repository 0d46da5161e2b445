//! A kernel of Debian's: its image, and the modules that a guest needs.

use super::options::Kernel;
use super::{debian, folder};
use anyhow::{Context, bail};
use std::fs;
use std::path::{Path, PathBuf};
use std::process::Command;

/// Where they are.
pub struct Unpacked {
    /// The compressed image, as qemu takes it.
    pub image: PathBuf,
    /// A folder with `lib/modules` in it, dependencies written down.
    pub modules: PathBuf,
}

/// The folders of modules that are kept of some three thousand: the shared folders, a disk with a file system,
/// a network card, and what these depend on.
const MODULES: [&str; 13] = [
    "drivers/virtio",
    "drivers/net/virtio_net.ko*",
    "drivers/net/net_failover.ko*",
    "net/core/failover.ko*",
    "drivers/block/virtio_blk.ko*",
    "net/9p",
    "fs/9p",
    "fs/netfs",
    "fs/fscache",
    "fs/ext4",
    "fs/jbd2",
    "fs/mbcache.ko*",
    "lib",
];

/// Those of other folders that they need.
const CRYPTO: [&str; 2] = [
    "crypto/crc32c_generic.ko*",
    "arch/x86/crypto/crc32c-intel.ko*",
];

/// Fetches it, or takes what was fetched before.
pub fn get(kernel: Kernel) -> anyhow::Result<Unpacked> {
    let root = folder()?.join("kernels").join(kernel.name());
    // The choice is kept, so that not every new release is fetched beside the one that is there.
    let chosen = root.join("package");
    let package = match fs::read_to_string(&chosen) {
        Ok(package) => package,
        Err(_) => debian::newest(kernel.packages())?,
    };
    let wanted: Vec<String> = ["./boot/vmlinuz-*".to_owned()]
        .into_iter()
        .chain(MODULES.iter().chain(&CRYPTO).flat_map(|module| {
            // Where modules are depends on the release: merged /usr or not.
            ["./lib", "./usr/lib"].map(|lib| format!("{lib}/modules/*/kernel/{module}"))
        }))
        .collect();
    let unpacked = root.join("unpacked");
    if !chosen.exists() {
        let wanted: Vec<&str> = wanted.iter().map(String::as_str).collect();
        debian::unpack(&package, &wanted, &unpacked)?;
        depmod(&unpacked)?;
        fs::write(&chosen, &package)?;
    }
    let image = fs::read_dir(unpacked.join("boot"))?
        .flatten()
        .map(|entry| entry.path())
        .next();
    Ok(Unpacked {
        image: image.with_context(|| format!("{package} has no image in boot/"))?,
        modules: unpacked,
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
