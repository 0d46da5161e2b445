//! The capabilities that each source of evidence needs, found by trying them.

use super::super::options::{Guest, Kernel, Program};
use super::Finding;
use super::document::{self, Table};
use super::steps::{self, Steps, source, word};
use super::users;
use anyhow::Context;
use serde_json::Value;
use std::collections::BTreeSet;
use std::time::Duration;

/// Runs doctor as an ordinary user with each capability alone and with each pair of the relevant ones: while tracefs is
/// mounted only below debugfs, while root owns it, while a group of the user does, and after the folder of instances was
/// given away. Does the same as root of a user namespace, who has them all. Then makes recordings with the relevant
/// ones.
const SCRIPT: &str = r#"
modprobe msr
echo service:x:1000:1000::/tmp:/bin/sh >>/etc/passwd
echo service:x:1000: >>/etc/group
groups=--clear-groups
as() {
    with="-all$1"
    shift
    /bin/setpriv --reuid 1000 --regid 1000 $groups --inh-caps "$with" --ambient-caps "$with" \
        --bounding-set "$with" env JITTERSCOPE_RUNS=/tmp/service jitterscope "$@"
}
alone=$(/bin/setpriv --list-caps)
pairs=
for one in $MATTERS; do
    for other in $MATTERS; do
        [ "$one" "<" "$other" ] && pairs="$pairs $one,+$other"
    done
done
inside() {
    /bin/setpriv --reuid 1000 --regid 1000 $groups unshare -U -r env JITTERSCOPE_RUNS=/tmp/service jitterscope "$@"
}
for state in debugfs roots group given; do
    mkdir -p /out/$state
    case $state in
    debugfs) umount /sys/kernel/tracing ;;
    roots) mount -t tracefs tracefs /sys/kernel/tracing ;;
    group)
        mount -o remount,gid=2000,mode=750 /sys/kernel/tracing && chmod g+w /sys/kernel/tracing/instances
        groups="--groups 2000"
        ;;
    given)
        mount -o remount,gid=0,mode=700 /sys/kernel/tracing && chmod g-w /sys/kernel/tracing/instances
        groups=--clear-groups
        chmod o+x /sys/kernel/tracing && chown service /sys/kernel/tracing/instances
        ;;
    esac
    as "" doctor --json >"/out/$state/none"
    for caps in $alone $pairs; do
        as ",+$caps" doctor --json >"/out/$state/$caps"
    done
    step "inside-$state" inside doctor --json
    step "inside-$state-says" inside doctor
    step "inside-$state-record" inside record -q --json -d 1s --cpus 1
    step "inside-$state-brief" inside record -q -d 1s --cpus 1
    if [ $state = group ]; then
        step member as "" record -q --json -d 1s --cpus 1
        step member-says as "" doctor
    fi
done
for caps in $alone; do
    as ",+$caps" record -q -d 100ms --warmup 50ms --priority 5 >/dev/null 2>&1 && echo "$caps" >>/out/priority
done
for caps in "" ",+dac_override" ",+dac_override,+syslog"; do
    step "record$caps" as "$caps" record -q --json -d 1s --cpus 1
done
# Another user; and what sudo does where that user may use the account.
step other-says /bin/setpriv --reuid 1001 --regid 1001 --groups 2000 jitterscope doctor
step shared as "" record -q --json -d 2s --cpus 1
step service as ",+syslog,+sys_nice" record -q --json -d 1s --cpus 1 --priority 10
chown root /sys/kernel/tracing/instances
for caps in "" ",+dac_override"; do
    step "roots$caps" as "$caps" record -q --json -d 1s --cpus 1
done
true
"#;

/// Capabilities tried in pairs.
const MATTER: [&str; 7] = [
    "dac_override",
    "dac_read_search",
    "perfmon",
    "sys_admin",
    "sys_ptrace",
    "sys_rawio",
    "syslog",
];

/// The states of tracefs: the script's name and the table's.
const STATES: [(&str, &str); 4] = [
    (
        "debugfs",
        "tracefs is mounted below debugfs alone, and root's",
    ),
    ("roots", "it is mounted at its own place, and root's"),
    (
        "group",
        "it belongs to a group of the user, who may write to `instances`",
    ),
    ("given", "its `instances` were given to the user"),
];

/// Capabilities, sorted by name.
type Set = BTreeSet<String>;

pub fn least(finding: &mut Finding) -> anyhow::Result<()> {
    let mut guest = Guest::new(Kernel::V6_12).with(Program::Setpriv);
    guest.limit = Duration::from_secs(1800);
    let script = format!("MATTERS='{}'\n{SCRIPT}", MATTER.join(" "));
    let steps = steps::run(finding, "all", &guest, &script)?;
    let mut head = vec!["source".to_owned()];
    head.extend(STATES.map(|(_, words)| words.to_owned()));
    let mut table = Table::new(&head);
    let all = STATES
        .map(|(state, _)| tried(&steps, state))
        .into_iter()
        .collect::<anyhow::Result<Vec<_>>>()?;
    for name in names(&all[0])? {
        let mut cells = vec![format!("`{name}`")];
        cells.extend(all.iter().map(|tried| in_words(&least_of(tried, &name))));
        table.row(cells);
    }
    let priority = steps.file("priority");
    let priority: Vec<Set> = priority.lines().map(set).collect();
    let mut cells = vec!["`record --priority`".to_owned()];
    cells.resize(head.len(), in_words(&priority));
    table.row(cells);
    agrees(finding, &steps)?;
    for ((state, _), tried) in STATES.iter().zip(&all) {
        users::of_namespace(finding, &steps, state, &tried[0].1)?;
    }
    users::of_group(finding, &steps)?;
    for kernel in [Kernel::V6_1, Kernel::V6_12] {
        users::inheritance(finding, kernel)?;
    }
    document::compare(finding, "docs/rights.md", "rights", &table.text())
}

/// Doctor's report for each set of capabilities.
fn tried(steps: &Steps, state: &str) -> anyhow::Result<Vec<(Set, Value)>> {
    let mut all = Vec::new();
    for name in steps.files(state)? {
        let text = steps.file(&format!("{state}/{name}"));
        let said = serde_json::from_str(&text)
            .with_context(|| format!("doctor with {name} wrote no JSON: {text:.200}"))?;
        all.push((set(&name), said));
    }
    all.sort_by(|a, b| (a.0.len(), &a.0).cmp(&(b.0.len(), &b.0)));
    Ok(all)
}

/// Parses `none`, `syslog`, `dac_override,+sys_admin`.
fn set(name: &str) -> Set {
    let names = name.split(",+").filter(|name| *name != "none");
    names.map(str::to_owned).collect()
}

fn names(tried: &[(Set, Value)]) -> anyhow::Result<Vec<String>> {
    let (_, first) = tried.first().context("doctor was never asked")?;
    let sources = first["sources"]
        .as_array()
        .context("doctor names no source")?;
    Ok(sources.iter().map(|source| word(source, "name")).collect())
}

/// The minimal sets with which a source is not denied, smaller ones first.
fn least_of(tried: &[(Set, Value)], name: &str) -> Vec<Set> {
    let mut least: Vec<Set> = Vec::new();
    for (set, said) in tried {
        let has = source(said, name).is_some_and(|source| !is_denied(source));
        if has && !least.iter().any(|smaller| smaller.is_subset(set)) {
            least.push(set.clone());
        }
    }
    least
}

/// A virtual machine's counter is reported as absent, with any capabilities.
pub fn is_denied(source: &Value) -> bool {
    source["status"] == "denied" || source["problems"][0]["id"] == "msr_denied"
}

fn in_words(least: &[Set]) -> String {
    let one = |set: &Set| {
        let names: Vec<String> = set
            .iter()
            .map(|name| format!("CAP_{}", name.to_uppercase()))
            .collect();
        match names.is_empty() {
            true => "nothing".to_owned(),
            false => names.join(" and "),
        }
    };
    match least {
        [] => "no capability alone nor two of them".to_owned(),
        _ => least.iter().map(one).collect::<Vec<_>>().join(", or "),
    }
}

/// Whether recordings see what doctor promised for the same capabilities.
fn agrees(finding: &mut Finding, steps: &Steps) -> anyhow::Result<()> {
    let priority = &steps.json("service")?["probe"]["fifo_priority"];
    finding.check(
        *priority == 10,
        format!("the service's probe has the priority that it asked for: {priority}"),
    );
    for (step, tracefs, symbols) in [
        ("record", true, false),
        ("record,+dac_override", true, false),
        ("record,+dac_override,+syslog", true, true),
        // The capabilities of the service in docs/rights.md.
        ("service", true, true),
        ("roots", false, false),
        ("roots,+dac_override", true, false),
    ] {
        let report = steps.json(step)?;
        for (name, wanted) in [("tracefs", tracefs), ("symbols", symbols)] {
            let source = source(&report, name);
            // A recording's report does not list sources that are complete.
            let denied = source.is_some_and(|source| source["status"] == "denied");
            let without_events = name == "symbols" && !tracefs;
            finding.check(
                without_events || denied != wanted,
                format!(
                    "{step}: {name} is {}: {source:?}",
                    if wanted { "there" } else { "denied" }
                ),
            );
        }
    }
    Ok(())
}

#[cfg(test)]
mod tests {
    use super::*;
    use serde_json::json;

    #[test]
    fn a_set_that_contains_a_smaller_one_is_not_reported() {
        let said = |status: &str| json!({"sources": [{"name": "tracefs", "status": status}]});
        let tried = [
            (set("none"), said("denied")),
            (set("dac_override"), said("available")),
            (set("dac_override,+sys_admin"), said("available")),
            (set("sys_admin,+syslog"), said("degraded")),
        ];
        let least = least_of(&tried, "tracefs");
        assert_eq!(
            in_words(&least),
            "CAP_DAC_OVERRIDE, or CAP_SYS_ADMIN and CAP_SYSLOG"
        );
        assert_eq!(in_words(&[set("none")]), "nothing");
        assert!(in_words(&least_of(&tried[..1], "tracefs")).starts_with("no capability"));
    }
}
