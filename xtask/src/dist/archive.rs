//! The archive: the same files give the same bytes, independent of user and time.

use anyhow::{Context, ensure};
use std::fs::{self, File};
use std::os::unix::fs::PermissionsExt;
use std::path::{Path, PathBuf};
use std::process::{Command, Stdio};

/// Packs a folder of `stage`: owned by root, sorted by name, with one time for all files (seconds since the epoch).
pub fn pack(stage: &Path, folder: &str, archive: &Path, time: u64) -> anyhow::Result<()> {
    set_modes(&stage.join(folder))?;
    let mut tar = tar_of(stage, time)
        .args(["-cf", "-", folder])
        .stdout(Stdio::piped())
        .spawn()
        .context("tar cannot be started")?;
    let packed = tar.stdout.take().context("tar has no output")?;
    let file = File::create(archive).with_context(|| archive.display().to_string())?;
    // Without a file name and a time in the header.
    let gzip = Command::new("gzip")
        .args(["-9", "-n"])
        .stdin(packed)
        .stdout(file)
        .status();
    let (gzip, tar) = (gzip.context("gzip cannot be started")?, tar.wait()?);
    ensure!(
        gzip.success() && tar.success(),
        "the archive was not written (tar {tar}, gzip {gzip})"
    );
    Ok(())
}

/// Writes a folder of `stage` as an uncompressed archive, in the same way; with `.` it is `stage` itself.
pub fn tar(stage: &Path, folder: &str, archive: &Path, time: u64) -> anyhow::Result<()> {
    let status = tar_of(stage, time)
        .arg("-cf")
        .arg(archive)
        .arg(folder)
        .status();
    let status = status.context("tar cannot be started")?;
    ensure!(
        status.success(),
        "{} was not written ({status})",
        archive.display()
    );
    Ok(())
}

fn tar_of(stage: &Path, time: u64) -> Command {
    let mut tar = Command::new("tar");
    tar.args([
        "--sort=name",
        "--format=gnu",
        "--owner=0",
        "--group=0",
        "--numeric-owner",
    ])
    .arg(format!("--mtime=@{time}"))
    .arg("-C")
    .arg(stage);
    tar
}

/// Sets the time of every file and folder, seconds since the epoch.
pub fn set_times(root: &Path, time: u64) -> anyhow::Result<()> {
    let find = Command::new("find")
        .arg(root)
        .args(["-exec", "touch", "--no-dereference", "--date"])
        .arg(format!("@{time}"))
        .args(["{}", "+"])
        .status()
        .context("find cannot be started")?;
    ensure!(find.success(), "the files' times were not set ({find})");
    Ok(())
}

/// Sets modes independently of the umask: programs and scripts are executable, the rest readable.
pub fn set_modes(path: &Path) -> anyhow::Result<()> {
    let kind = fs::symlink_metadata(path)?;
    let runs = kind.is_dir() || kind.permissions().mode() & 0o100 != 0;
    fs::set_permissions(
        path,
        fs::Permissions::from_mode(if runs { 0o755 } else { 0o644 }),
    )?;
    if kind.is_dir() {
        for entry in fs::read_dir(path)? {
            set_modes(&entry?.path())?;
        }
    }
    Ok(())
}

/// Writes the archive's digest next to it, in the format of `sha256sum --check`.
pub fn checksum(archive: &Path) -> anyhow::Result<PathBuf> {
    let (folder, name) = (archive.parent(), archive.file_name());
    let (folder, name) = (folder.context("no folder")?, name.context("no name")?);
    let sum = Command::new("sha256sum")
        .arg(name)
        .current_dir(folder)
        .output();
    let sum = sum.context("sha256sum cannot be started")?;
    ensure!(
        sum.status.success(),
        "{} has no checksum",
        archive.display()
    );
    let path = folder.join(format!("{}.sha256", name.to_string_lossy()));
    fs::write(&path, sum.stdout)?;
    Ok(path)
}

/// The SHA-256 digest of a file, in hexadecimal digits.
pub fn digest(path: &Path) -> anyhow::Result<String> {
    let sum = Command::new("sha256sum").arg(path).output();
    let sum = sum.context("sha256sum cannot be started")?;
    ensure!(sum.status.success(), "{} has no digest", path.display());
    let text = String::from_utf8(sum.stdout)?;
    let word = text.split_whitespace().next();
    word.map(str::to_owned).context("sha256sum printed nothing")
}

#[cfg(test)]
mod tests {
    use super::*;

    fn packed(at: &Path, files: &[&str], mode: u32) -> Vec<u8> {
        let stage = at.join("stage");
        fs::create_dir_all(stage.join("x/docs")).unwrap();
        for file in files {
            let path = stage.join("x").join(file);
            fs::write(&path, file).unwrap();
            fs::set_permissions(&path, fs::Permissions::from_mode(mode)).unwrap();
        }
        let archive = at.join("x.tar.gz");
        pack(&stage, "x", &archive, 1_700_000_000).unwrap();
        fs::read(archive).unwrap()
    }

    #[test]
    fn the_same_files_are_the_same_archive() {
        let [one, two] = [(); 2].map(|()| tempfile::tempdir().unwrap());
        let first = packed(one.path(), &["a", "b", "docs/c"], 0o600);
        // Written in another order with another umask.
        assert_eq!(first, packed(two.path(), &["docs/c", "b", "a"], 0o664));
        assert_ne!(
            first,
            packed(tempfile::tempdir().unwrap().path(), &["a", "b"], 0o600)
        );
    }

    #[test]
    fn the_checksum_is_what_sha256sum_checks() {
        let dir = tempfile::tempdir().unwrap();
        packed(dir.path(), &["a"], 0o600);
        let archive = dir.path().join("x.tar.gz");
        let sum = checksum(&archive).unwrap();
        let check = || {
            let check = Command::new("sha256sum")
                .arg("--check")
                .arg(&sum)
                .current_dir(dir.path())
                .output();
            check.unwrap().status.success()
        };
        assert!(check());
        fs::write(&archive, "another").unwrap();
        assert!(!check());
    }
}
