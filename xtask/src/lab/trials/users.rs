//! Several users of one tracefs: a group, and the root of a user namespace.

use super::super::options::{Guest, Kernel, Program};
use super::Finding;
use super::rights::is_denied;
use super::steps::{self, Steps, culprits, source, word};
use serde_json::Value;

/// The sentence of a recording without kernel events.
const SENTENCE: [&str; 3] = ["of its time", "; the worst lasted", " host's share"];

/// The root of a user namespace has every capability there, and still only what its user has outside without any
/// (`outside`). `doctor` says so, and its recording gives the same as an ordinary user's.
pub fn of_namespace(
    finding: &mut Finding,
    steps: &Steps,
    state: &str,
    outside: &Value,
) -> anyhow::Result<()> {
    let inside = steps.json(&format!("inside-{state}"))?;
    let (there, here) = (denied(outside), denied(&inside));
    finding.check(
        !here.is_empty() && there == here,
        format!(
            "{state}: root of a user namespace lacks what its user lacks outside: {here:?}, {there:?}"
        ),
    );
    let sources = inside["sources"].as_array().into_iter().flatten();
    for source in sources.filter(|source| source["status"] == "denied") {
        let problem = &source["problems"][0];
        finding.check(
            problem["id"] == "user_namespace" && problem["user"] == 1000,
            format!("{state}: doctor says why {}: {problem}", source["name"]),
        );
    }
    let says = one_line(&steps.out(&format!("inside-{state}-says")));
    finding.check(
        says.contains("in a user namespace, whose capabilities do not count"),
        format!("{state}: doctor says that a user namespace's capabilities do not count"),
    );
    let names = !here.contains(&"tracefs".to_owned());
    let report = steps.json(&format!("inside-{state}-record"))?;
    finding.check(
        named(&report) == names,
        format!("{state}: root of a user namespace gets named culprits: {names}"),
    );
    let brief = one_line(&steps.out(&format!("inside-{state}-brief")));
    let sentence = SENTENCE.iter().all(|part| brief.contains(part));
    finding.check(
        names || sentence,
        format!("{state}: its recording says what was stolen: {brief:.300}"),
    );
    Ok(())
}

/// A group that tracefs belongs to lets its members read; they record through the account that owns the folder.
pub fn of_group(finding: &mut Finding, steps: &Steps) -> anyhow::Result<()> {
    let member = steps.json("member")?;
    let problem = source(&member, "tracefs").map(|source| source["problems"][0].clone());
    let problem = problem.unwrap_or_default();
    finding.check(
        problem["id"] == "instances_of_owner" && problem["owner"] == 0 && !named(&member),
        format!("doctor names the owner of the instances to a member of the group: {problem}"),
    );
    for (step, fix) in [
        ("member-says", "for several users let USER be an account"),
        ("other-says", "sudo -u '#1000' jitterscope record"),
    ] {
        let says = one_line(&steps.out(step));
        finding.check(says.contains(fix), format!("{step}: {fix}: {says:.500}"));
    }
    let shared = steps.json("shared")?;
    finding.check(
        named(&shared),
        format!(
            "a recording through the account names culprits: {:?}",
            culprits(&shared)
        ),
    );
    Ok(())
}

/// A member of the group makes an instance in the folder of root's or of another member's.
const INHERITANCE: &str = r#"
tracing=/sys/kernel/tracing
mount -o remount,gid=2000,mode=750 $tracing && chmod g+w $tracing/instances
member() { /bin/setpriv --reuid 1001 --regid 1001 --groups 2000 "$@"; }
for owner in 0 1002; do
    chown $owner $tracing/instances
    step "make-$owner" member mkdir $tracing/instances/made
    step "folder-$owner" stat -c '%u:%g %a' $tracing/instances/made
    step "file-$owner" stat -c '%u:%g %a' $tracing/instances/made/tracing_on
    step "read-$owner" member cat $tracing/instances/made/tracing_on
    step "write-$owner" member sh -c "echo 0 >$tracing/instances/made/tracing_on"
    step "remove-$owner" member rmdir $tracing/instances/made
done
"#;

/// Which owner and group a new instance gets. The recipe for groups in docs/rights.md depends on it.
pub fn inheritance(finding: &mut Finding, kernel: Kernel) -> anyhow::Result<()> {
    let name = kernel.name();
    let guest = Guest::new(kernel).with(Program::Setpriv);
    let steps = steps::run(finding, &format!("group-{name}"), &guest, INHERITANCE)?;
    for owner in ["0", "1002"] {
        let step = |what: &str| format!("{what}-{owner}");
        steps.ended(
            finding,
            &["make", "folder", "file", "read", "remove"]
                .map(step)
                .each_ref()
                .map(|step| (step.as_str(), 0)),
        );
        for (what, mode) in [("folder", "750"), ("file", "640")] {
            let seen = steps.out(&step(what));
            finding.check(
                seen.trim() == format!("{owner}:2000 {mode}"),
                format!("{name}: owner, group and mode of an instance's {what}: {seen:?}"),
            );
        }
        finding.check(
            steps.code(&step("write")).is_some_and(|code| code != 0),
            format!("{name}: a member of the group cannot write to an instance of user {owner}"),
        );
    }
    Ok(())
}

fn denied(doctor: &Value) -> Vec<String> {
    let sources = doctor["sources"].as_array().into_iter().flatten();
    sources
        .filter(|source| is_denied(source))
        .map(|source| word(source, "name"))
        .collect()
}

/// Whether kernel events explain its stalls.
fn named(report: &Value) -> bool {
    report["attribution"]["events"]
        .as_u64()
        .is_some_and(|events| events > 20)
        && !culprits(report).is_empty()
}

fn one_line(text: &str) -> String {
    text.split_whitespace().collect::<Vec<_>>().join(" ")
}
