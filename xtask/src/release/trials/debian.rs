//! The Debian package in a fresh Debian: installed, used, upgraded, purged.

use super::super::layout::{SETTINGS, UNIT};
use super::root::Root;
use anyhow::ensure;
use std::fs;
use std::path::Path;

pub fn run(older: &Path, package: &Path) -> anyhow::Result<()> {
    let root = Root::new()?;
    crate::fresh_debian::make(root.path(), &[])?;
    let before = root.files()?;
    for (package, name) in [(older, "older.deb"), (package, "newer.deb")] {
        fs::copy(package, root.path().join("tmp").join(name))?;
    }

    let took = root.answers(|| root.run(&["dpkg", "--install", "/tmp/older.deb"]).map(drop))?;
    let settings = root.path().join(SETTINGS);
    let defaults = fs::read_to_string(&settings)?;
    let first = version(&root)?;
    root.run(&["apt-get", "install", "--yes", "/tmp/newer.deb"])?;
    let second = version(&root)?;
    ensure!(
        first != second,
        "{second} is what was there before the upgrade"
    );
    let unchanged = fs::read_to_string(&settings)?;
    ensure!(
        unchanged != defaults,
        "settings that nobody changed did not get the new defaults"
    );
    let changed = format!("# Mine.\n{unchanged}");
    fs::write(&settings, &changed)?;
    // Where settings and defaults both changed, dpkg asks; this answer keeps the settings.
    for (package, defaults) in [("older.deb", &defaults), ("newer.deb", &unchanged)] {
        let package = format!("/tmp/{package}");
        root.run(&["dpkg", "--force-confold", "--install", &package])?;
        ensure!(
            fs::read_to_string(&settings)? == changed,
            "{package} replaced a user's settings"
        );
        let beside = root.path().join(format!("{SETTINGS}.dpkg-dist"));
        ensure!(
            fs::read_to_string(&beside)? == *defaults,
            "the defaults of {package} are not beside the user's settings"
        );
    }
    root.run(&[
        "/usr/bin/jitterscope",
        "agent",
        "check",
        "/etc/jitterscope/agent.toml",
    ])?;
    root.run(&["dpkg", "--verify", "jitterscope"])?;
    for file in [
        "usr/share/man/man1/jitterscope-record.1.gz",
        "usr/share/bash-completion/completions/jitterscope",
        "usr/share/man/man1/jitterscope-agent.1.gz",
        "usr/share/jitterscope/grafana/jitterscope.json",
        "usr/share/jitterscope/grafana/watch.json",
        "usr/share/jitterscope/grafana/watch.rules.yml",
        UNIT,
    ] {
        ensure!(root.path().join(file).is_file(), "{file} was not installed");
    }
    let started = root
        .path()
        .join("etc/systemd/system/multi-user.target.wants")
        .join(Path::new(UNIT).file_name().unwrap_or_default());
    ensure!(
        !started.is_symlink(),
        "a package that was installed starts its agent at boot"
    );
    root.run(&["dpkg", "--purge", "jitterscope"])?;
    for name in ["older.deb", "newer.deb"] {
        fs::remove_file(root.path().join("tmp").join(name))?;
    }
    let after = root.files()?;
    let left: Vec<_> = after.symmetric_difference(&before).collect();
    ensure!(left.is_empty(), "a purge leaves or takes {left:?}");
    println!(
        "deb: installed and asked in {:.0} s without a network, upgraded from {first} to {second} with other defaults, and purged in a fresh Debian",
        took.as_secs_f64()
    );
    Ok(())
}

fn version(root: &Root) -> anyhow::Result<String> {
    root.run(&[
        "dpkg-query",
        "--show",
        "--showformat=${Version}",
        "jitterscope",
    ])
}
