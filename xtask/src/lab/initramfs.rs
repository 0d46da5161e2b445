//! The guest's only file system: busybox, our program with its libraries, modules, and an init.

use super::debian;
use super::folder;
use super::kernel::Unpacked;
use super::options::{Guest, Program};
use crate::program;
use anyhow::{Context, bail};
use std::fs;
use std::path::{Path, PathBuf};
use std::process::{Command, Stdio};

/// The guest's process 1.
const INIT: &str = include_str!("init.sh");

/// Packs it into a file and returns the path.
pub fn pack(guest: &Guest, kernel: &Unpacked, scratch: &Path) -> anyhow::Result<PathBuf> {
    let root = scratch.join("root");
    for folder in [
        "bin", "dev", "etc", "lab", "mnt", "out", "proc", "root", "run", "sys", "tmp", "var/lib",
    ] {
        fs::create_dir_all(root.join(folder))?;
    }
    let busybox = debian::busybox()?;
    fs::copy(&busybox, root.join("bin/busybox"))?;
    // Debug information would take half of the guest's memory.
    let stripped = root.join("bin/jitterscope");
    let status = Command::new("strip")
        .arg("-o")
        .arg(&stripped)
        .arg(program::get()?)
        .status();
    if !status.context("strip cannot be started")?.success() {
        bail!("strip failed: is there room below {}?", scratch.display());
    }
    libraries(&stripped, None, &root)?;
    for program in &guest.programs {
        bring(*program, &root)?;
    }
    fs::write(root.join("init"), INIT)?;
    make_executable(&root.join("init"))?;
    let modules = ["lib", "usr/lib"].map(|lib| kernel.modules.join(lib).join("modules"));
    let modules = modules
        .into_iter()
        .find(|path| path.is_dir())
        .context("the kernel has no modules")?;
    fs::create_dir_all(root.join("lib"))?;
    let status = Command::new("cp")
        .arg("-r")
        .arg(modules)
        .arg(root.join("lib/modules"))
        .status()?;
    if !status.success() {
        bail!("the modules cannot be copied");
    }
    archive(&busybox, &root, &scratch.join("initramfs"))
}

/// Adds a Debian program with its libraries.
fn bring(program: Program, root: &Path) -> anyhow::Result<()> {
    let into = folder()?.join("programs").join(program.name());
    for package in program.packages() {
        debian::unpack(package, &[], &into)?;
    }
    let file = into.join(program.path());
    fs::copy(&file, root.join("bin").join(program.name()))?;
    libraries(
        &file,
        Some(
            &into
                .join("usr/lib")
                .join(format!("{}-linux-gnu", std::env::consts::ARCH)),
        ),
        root,
    )?;
    // Cancelled threads, and those that end by pthread_exit, load it by name.
    libraries(Path::new("/bin/sh"), None, root)?;
    for folder in ["/lib", "/usr/lib"] {
        let unwinder = format!(
            "{folder}/{}-linux-gnu/libgcc_s.so.1",
            std::env::consts::ARCH
        );
        if Path::new(&unwinder).exists() {
            return place(&unwinder, "/lib/libgcc_s.so.1", root);
        }
    }
    Ok(())
}

/// Copies a program's libraries to where it will look for them.
fn libraries(program: &Path, extra: Option<&Path>, root: &Path) -> anyhow::Result<()> {
    let mut ldd = Command::new("ldd");
    if let Some(extra) = extra {
        ldd.env("LD_LIBRARY_PATH", extra);
    }
    let output = ldd
        .arg(program)
        .stderr(Stdio::inherit())
        .output()
        .context("ldd cannot be started")?;
    let text = String::from_utf8_lossy(&output.stdout).into_owned();
    if text.contains("not found") {
        bail!("libraries of {} are missing:\n{text}", program.display());
    }
    for line in text.lines() {
        let mut words = line.split_whitespace();
        let (Some(name), arrow, path) = (words.next(), words.next(), words.next()) else {
            continue;
        };
        if arrow == Some("=>") {
            let Some(path) = path.filter(|path| path.starts_with('/')) else {
                continue;
            };
            place(path, &format!("/lib/{name}"), root)?;
        } else if name.starts_with('/') {
            // The loader, at the path in the program.
            place(name, name, root)?;
        }
    }
    Ok(())
}

fn place(from: &str, to: &str, root: &Path) -> anyhow::Result<()> {
    let to = root.join(to.trim_start_matches('/'));
    if let Some(parent) = to.parent() {
        fs::create_dir_all(parent)?;
    }
    fs::copy(from, &to).with_context(|| format!("{from} cannot be copied to {}", to.display()))?;
    Ok(())
}

fn make_executable(path: &Path) -> anyhow::Result<()> {
    use std::os::unix::fs::PermissionsExt;
    Ok(fs::set_permissions(
        path,
        fs::Permissions::from_mode(0o755),
    )?)
}

/// In the kernel's own format. Not compressed: the emulator takes longer to unpack it than to load it.
fn archive(busybox: &Path, root: &Path, file: &Path) -> anyhow::Result<PathBuf> {
    let script = r#"cd "$1" && "$2" find . | "$2" cpio -o -H newc >"$3""#;
    let status = Command::new("sh")
        .args(["-c", script, "sh"])
        .args([root, busybox, file])
        .stderr(Stdio::null())
        .status()
        .context("sh cannot be started")?;
    if !status.success() {
        bail!("the guest's file system cannot be packed ({status})");
    }
    Ok(file.to_path_buf())
}
