//! `cargo test` of the whole workspace, with its output read as it arrives.

use super::Found;
use super::output::Output;
use crate::{program, shell, tools};
use anyhow::{Context, bail};
use rustix::process::setpriority_process;
use std::collections::BTreeSet;
use std::fs::{self, File};
use std::io::Write;
use std::path::Path;
use std::thread;

/// All tests of the workspace, with the additional features of releases. Always the whole workspace: cargo unites
/// features over the requested packages, so single packages would be compiled again.
const EVERYTHING: [&str; 4] = ["--workspace", "--features", program::FEATURES, "--locked"];

/// Tests at once: more than two CPUs, because tests that record take turns, and wait most of the time.
const AT_ONCE: &str = "4";

/// The tests that record on this machine, all others, and examples in documentation.
const LIVE: [&str; 2] = ["--test", "live*"];
const OTHERS: [&str; 5] = ["--lib", "--bins", "--examples", "--test", "[!l]*"];
const DOCUMENTED: [&str; 1] = ["--doc"];

/// Runs all tests: those that record wait most of the time, so the others run meanwhile, with a lower priority.
///
/// # Errors
/// As for [`test()`].
pub fn live_and_others(found: &mut Found) -> anyhow::Result<()> {
    let args = |targets: &[&'static str]| [&["--no-fail-fast"], targets].concat();
    thread::scope(|scope| {
        let named = thread::Builder::new().name("others".to_owned());
        let others = named.spawn_scoped(scope, move || {
            if let Err(error) = setpriority_process(None, 10) {
                eprintln!("tests beside those that record may disturb them: {error}");
            }
            let mut found = Found::default();
            let others = test(&args(&OTHERS), "others", &mut found);
            let documented = test(&args(&DOCUMENTED), "documented", &mut found);
            (found, others.and(documented))
        });
        let others = others.context("no thread can be started")?;
        let live = test(&args(&LIVE), "live", found);
        let Ok((of_others, others)) = others.join() else {
            bail!("the thread of the other tests panicked");
        };
        found.add(of_others);
        live.and(others)
    })
}

/// Runs them one binary after the other, as cargo does; recording tests share the measured CPU and take turns through
/// their own lock. All output is kept in `target/test`; passing tests are not shown.
///
/// # Errors
/// A test failed, or nothing was built; `found` has the failures.
pub fn test(args: &[&str], name: &str, found: &mut Found) -> anyhow::Result<()> {
    let folder = tools::target().join("test");
    fs::create_dir_all(&folder).with_context(|| folder.display().to_string())?;
    let skips = folder.join(format!("{name}.skipped"));
    let log = folder.join(format!("{name}.log"));
    File::create(&skips).with_context(|| skips.display().to_string())?;
    let mut log = File::create(&log).with_context(|| log.display().to_string())?;

    // A shell's background job ignores SIGINT, and one under nohup ignores SIGHUP: recordings honour that, and tests
    // that send such signals would wait forever.
    let signals = "--default-signal=HUP,INT,QUIT,TERM";
    let args = [&[signals, "cargo", "test"][..], &EVERYTHING, args].concat();
    shell::say(&format!("+ env {}", args.join(" ")));
    let mut command = shell::command("env", &args);
    command
        .env("RUST_BACKTRACE", "0")
        .env("RUST_TEST_THREADS", AT_ONCE)
        .env(jitterscope_testing::SKIPS, &skips);
    let (mut output, mut written) = (Output::default(), Ok(()));
    let status = shell::watch(command, |line| {
        written = writeln!(log, "{line}");
        if output.line(line) {
            shell::say(line);
        }
    })?;
    written?;
    found.passed += output.passed;
    found.failures.extend(output.failures);
    for what in skipped(&skips)? {
        found.skipped.add(what);
    }
    if !status.success() {
        bail!("cargo test failed ({status})");
    }
    Ok(())
}

/// The reported skips of tests, without duplicates.
fn skipped(path: &Path) -> anyhow::Result<BTreeSet<String>> {
    let text = fs::read_to_string(path).with_context(|| path.display().to_string())?;
    Ok(text.lines().map(str::to_owned).collect())
}
