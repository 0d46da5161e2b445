//! An experiment across a reboot: two boots of one machine, its runs kept on the shared folder between them.

use super::super::options::{Guest, Kernel};
use super::Finding;
use super::steps;

/// CPU 1 is measured; hogs share it, which `isolcpus` keeps away. What lives in the guest's memory is brought from
/// the shared folder and back.
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

/// What every boot ends with.
const KEEP: &str = "\nrm -rf /out/runs && cp -r /tmp/runs /out/runs\n";

/// Without, with another change beside, with.
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
    let told = ["isolcpus=domain,1", "--persist", "reboot", "same command"];
    let says = told.iter().all(|word| text.contains(word));
    finding.check(says, format!("the first boot says what to do next: {:.600}", text.trim()));
    let again = first.json("again")?;
    finding.check(
        again["ended"] == "awaits_reboot",
        format!("in the same boot it measures nothing more ({})", again["ended"]),
    );
    let unready = script("step unready across --resume\n");
    let unready = steps::continued(folder.clone(), &guest(""), &unready)?;
    let (code, error) = (unready.code("unready"), unready.err("unready"));
    let told = code == Some(1) && error.contains("not in force") && error.contains("isolcpus=domain,1");
    finding.check(told, format!("a boot that lacks it is told so ({code:?}): {:.400}", error.trim()));
    let other = guest("isolcpus=domain,1 mitigations=off");
    let other = steps::continued(folder.clone(), &other, &script("step other across\n"))?;
    let (code, error) = (other.code("other"), other.err("other"));
    let refused = code == Some(1) && error.contains("mitigations=off");
    finding.check(refused, format!("another change beside is refused ({code:?}): {:.400}", error.trim()));
    let last = steps::continued(folder, &guest("isolcpus=domain,1"), &script("step last across --json\n"))?;
    last.ended(finding, &[("last", 0)]);
    let outcome = last.json("last")?;
    finding.check(
        outcome["ended"] == "last_look" && outcome["pairs"] == 8,
        format!("the second boot compares eight runs of each ({}, {})", outcome["ended"], outcome["pairs"]),
    );
    finding.check(outcome["across_reboot"] == true, "and says that a reboot lies between them");
    let decided = outcome["decisions"].as_array().map_or(0, Vec::len);
    finding.check(decided > 0, format!("something is decided: {}", outcome["decisions"]));
    let back = outcome["next"].to_string();
    finding.check(back.contains("rollback"), format!("it tells how to put it back: {back}"));
    Ok(())
}
