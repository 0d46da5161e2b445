//! An experiment across a reboot: two boots of one machine, with its runs on the shared folder in between.

use super::super::options::{Guest, Kernel};
use super::Finding;
use super::state::restored;
use super::steps;

/// CPU 1 is measured; hogs share it, and `isolcpus` keeps them away. The guest's memory contents are loaded from the
/// shared folder and stored there again.
const BOOT: &str = r#"
mkdir -p /tmp/runs && chmod 700 /tmp/runs
[ -e /out/runs ] && cp -r /out/runs/. /tmp/runs && chmod -R go= /tmp/runs
cat >/bin/hog <<'X'
#!/bin/sh
while :; do i=0; while [ $i -lt 20000 ]; do i=$((i+1)); done; usleep 5000; done
X
chmod 755 /bin/hog
hog & hog & hog &
across() {
    jitterscope experiment --knob isolcpus-domain --cpus 1 --across-reboot -d 1s --threshold 10us -q "$@"
}
"#;

/// Resumed in a boot that still lacks the parameter; keeps the data and every setting, before and after.
const UNREADY: &str = r#"
kept() { cd /tmp/runs && find . -type f | sort | xargs md5sum; cd /root; }
kept >/out/kept-before
settings >/out/before
settings >/out/again
step unready across --resume
settings >/out/after
kept >/out/kept-after
"#;

/// The end of every boot.
const KEEP: &str = "\nrm -rf /out/runs && cp -r /tmp/runs /out/runs\n";

/// Four boots: without the parameter, again without it, with another change too, with it.
pub fn reboot(finding: &mut Finding) -> anyhow::Result<()> {
    let guest = |append: &str| {
        let mut guest = Guest::new(Kernel::V6_1).append(append);
        guest.limit = std::time::Duration::from_secs(900);
        guest
    };
    let script = |lines: &str| format!("{BOOT}{lines}{KEEP}");
    let folder = finding.folder("guest")?;
    let first = script("step first across\nstep again across --json\n");
    let first = steps::continued(folder.clone(), &guest(""), &first)?;
    first.ended(finding, &[("first", 0), ("again", 0)]);
    let text = first.out("first");
    let message = ["isolcpus=domain,1", "--persist", "reboot", "same command"];
    let says = message.iter().all(|word| text.contains(word));
    finding.check(
        says,
        format!("the first boot says what to do next: {:.600}", text.trim()),
    );
    let again = first.json("again")?;
    finding.check(
        again["ended"] == "awaits_reboot",
        format!(
            "in the same boot it measures nothing more ({})",
            again["ended"]
        ),
    );
    unready(
        finding,
        &steps::continued(folder.clone(), &guest(""), &script(UNREADY))?,
    );
    let other = guest("isolcpus=domain,1 mitigations=off");
    let other = steps::continued(folder.clone(), &other, &script("step other across\n"))?;
    let (code, error) = (other.code("other"), other.err("other"));
    let refused = code == Some(1) && error.contains("mitigations=off");
    finding.check(
        refused,
        format!(
            "another change beside is refused ({code:?}): {:.400}",
            error.trim()
        ),
    );
    let last = steps::continued(
        folder,
        &guest("isolcpus=domain,1"),
        &script("step last across --json\n"),
    )?;
    last.ended(finding, &[("last", 0)]);
    let outcome = last.json("last")?;
    finding.check(
        outcome["ended"] == "last_look" && outcome["pairs"] == 8,
        format!(
            "the second boot compares eight runs of each ({}, {})",
            outcome["ended"], outcome["pairs"]
        ),
    );
    finding.check(
        outcome["across_reboot"] == true,
        "and says that a reboot lies between them",
    );
    let decided = outcome["decisions"].as_array().map_or(0, Vec::len);
    finding.check(
        decided > 0,
        format!("something is decided: {}", outcome["decisions"]),
    );
    let back = outcome["next"].to_string();
    finding.check(
        back.contains("rollback"),
        format!("it says how to put it back: {back}"),
    );
    Ok(())
}

/// A boot that lacks the expected parameter: it reports what is missing and what to do, keeps the plan and the runs,
/// and changes nothing.
fn unready(finding: &mut Finding, steps: &steps::Steps) {
    // Long lines are wrapped.
    let error = steps
        .err("unready")
        .split_whitespace()
        .collect::<Vec<_>>()
        .join(" ");
    let code = steps.code("unready");
    let missing = error.contains("not in force") && error.contains("isolcpus=domain,1");
    let message = format!("a boot that lacks it is shown what is missing ({code:?}): {error:.400}");
    finding.check(code == Some(1) && missing, message);
    let to_do = ["kernel's command line", "reboot", "same command"];
    finding.check(
        to_do.iter().all(|word| error.contains(word)),
        "and what to do",
    );
    let (before, after) = (steps.file("kept-before"), steps.file("kept-after"));
    let sessions = before
        .lines()
        .filter(|line| line.contains("/experiments/"))
        .count();
    let message = format!(
        "the plan is kept: {sessions} files of it among {} are as before",
        before.lines().count()
    );
    finding.check(sessions > 0 && before == after, message);
    restored(finding, steps, "after");
}
