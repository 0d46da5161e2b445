//! Everything that a release has: the archives of `dist`, packages made from them, images, and one list of checksums.
//!
//! Packages hold the very files of an archive, so nothing is built twice. `--try` installs each in a fresh root, uses it
//! there, and holds it against the linters of its distribution.

mod deb;
mod image;
mod layout;
mod rpm;
mod trials;

use crate::consent::Consent;
use crate::dist::{self, DistArgs};
use crate::{packages, shell};
use anyhow::{Context, anyhow, ensure};
use clap::Args;
use layout::Unpacked;
use std::fs;
use std::path::{Path, PathBuf};
use std::process::Command;

/// The revision of packages of a version.
const REVISION: u32 = 1;
/// The list of checksums, in the format of `sha256sum --check`.
const SUMS: &str = "SHA256SUMS";

/// Arguments of `cargo xtask release`.
#[derive(Args)]
pub struct ReleaseArgs {
    #[command(flatten)]
    dist: DistArgs,
    /// Package this archive of an earlier `dist` instead of building; may be repeated
    #[arg(long, value_name = "FILE")]
    from: Vec<PathBuf>,
    /// Install each package in a fresh root, use it and remove it; check it with lintian, rpmlint, a container runtime
    /// and a validator of Kubernetes' schemas (needs root; x86-64 only)
    #[arg(long = "try")]
    trial: bool,
}

/// What is made from one archive.
struct Packages {
    unpacked: Unpacked,
    deb: PathBuf,
    rpm: PathBuf,
    image: PathBuf,
}

pub fn run(args: &ReleaseArgs) -> anyhow::Result<()> {
    let consent = Consent::given(args.dist.yes);
    packages::install(&packages::PACKERS, consent).map_err(|missing| anyhow!(missing))?;
    if args.trial {
        packages::install(&packages::TRIALS, consent).map_err(|missing| anyhow!(missing))?;
    }
    let archives = if args.from.is_empty() {
        dist::make(&args.dist)?
    } else {
        args.from.clone()
    };
    let out = shell::root().join(&args.dist.out);
    fs::create_dir_all(&out).with_context(|| out.display().to_string())?;
    let time = dist::committed_at()?;
    let mut made = Vec::new();
    let mut all = Vec::new();
    for archive in archives {
        let unpacked = Unpacked::of(&archive)?;
        let packages = Packages {
            deb: deb::make(&unpacked, REVISION, time, &out)?,
            rpm: rpm::make(&unpacked, REVISION, time, &out)?,
            image: image::make(&unpacked, time, &out)?,
            unpacked,
        };
        made.push(archive);
        made.extend([&packages.deb, &packages.rpm, &packages.image].map(PathBuf::clone));
        all.push(packages);
    }
    let sums = sums(&made, &out)?;
    for path in made.iter().chain([&sums]) {
        println!("{}", path.display());
    }
    if args.trial {
        for packages in &all {
            trials::run(packages, time)?;
        }
    }
    Ok(())
}

/// Makes a deb of any program of this machine's architecture, for trials.
pub fn deb_of(program: &Path, out: &Path) -> anyhow::Result<PathBuf> {
    let unpacked = Unpacked::of(&dist::pretended(program, out)?)?;
    deb::pack(&unpacked, REVISION, dist::committed_at()?, "none", out)
}

/// Writes the checksums of all files, which lie in `out`.
fn sums(made: &[PathBuf], out: &Path) -> anyhow::Result<PathBuf> {
    let mut names = Vec::new();
    for path in made {
        let name = path.file_name().context("a file has a name")?;
        let there = out.join(name);
        ensure!(
            there.is_file(),
            "{} is not in {}: give --out its folder",
            path.display(),
            out.display()
        );
        names.push(name);
    }
    let sum = Command::new("sha256sum")
        .args(&names)
        .current_dir(out)
        .output();
    let sum = sum.context("sha256sum cannot be started")?;
    ensure!(sum.status.success(), "the checksums were not made");
    let path = out.join(SUMS);
    fs::write(&path, sum.stdout)?;
    Ok(path)
}
