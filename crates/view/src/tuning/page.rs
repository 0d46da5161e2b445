//! A knob as a page, and the whole catalogue as a chapter.

use jitterscope_tune::{
    CulpritPattern, Effect, Fact, Group, How, InForce, Knob, Mechanism, Place, Scope, Setting,
    Settles, Shown, Sign, ThreadFamily, Want, Workers, catalogue,
};
use std::fmt::Write;

/// The rows of a knob's page (heading, text), in order; independent of the machine.
#[must_use]
pub(super) fn rows(knob: &Knob) -> Vec<(&'static str, String)> {
    let is_manual = knob.how() == How::ByHand;
    let mut rows = vec![("removes", knob.removes.to_owned())];
    if !is_manual {
        rows.push(("control", controls(knob)));
    }
    if !knob.answers.is_empty() {
        rows.push(("culprits", answers(knob)));
    }
    rows.push(("applied by", applied(knob)));
    if !is_manual {
        rows.push(("takes effect", in_force(&knob.in_force)));
        if !matches!(knob.mechanism, Mechanism::Boot(_)) {
            rows.push(("persistent", kept(knob)));
        }
        rows.push(("rollback", reverted(knob).to_owned()));
    }
    rows.push(("manually", knob.by_hand.to_owned()));
    rows.push(("check", knob.check.to_owned()));
    rows.push(("risk", knob.risk.as_str().to_owned()));
    rows.push(("cost", knob.loses.to_owned()));
    rows.push(("kernel", knob.kernel.to_owned()));
    for conflict in knob.conflicts {
        rows.push(("conflict", format!("{}: {}", conflict.with, conflict.why)));
    }
    rows.push(fact(knob.fact));
    rows
}

fn setting_text(setting: &Setting) -> String {
    let path = match setting.place {
        Place::Files(path) => path.to_owned(),
        Place::PerCpu(path, Scope::Isolated) => {
            format!("{} (isolated CPUs)", path.replace("{cpu}", "N"))
        }
        Place::PerCpu(path, Scope::All) => format!("{} (all CPUs)", path.replace("{cpu}", "N")),
    };
    let effective = setting
        .effective
        .map_or(String::new(), |e| format!("; effective value in {e}"));
    format!("{path}: {}{effective}", want(&setting.want))
}

/// The wanted value of a setting.
fn want(of: &Want) -> String {
    match of {
        Want::OneOf([only]) => format!("`{only}`"),
        Want::OneOf(all) => {
            let names: Vec<String> = all.iter().map(|v| format!("`{v}`")).collect();
            format!(
                "{} (writes `{}`)",
                names.join(" or "),
                all.first().copied().unwrap_or_default()
            )
        }
        Want::AtLeast { enough, write } => format!("at least {enough} (writes {write})"),
        Want::AtMost { enough, write } if enough == write => format!("at most {enough}"),
        Want::AtMost { enough, write } => format!("at most {enough} (writes {write})"),
        Want::OffIsolated => "no isolated CPU".into(),
        Want::SameAs(file) => format!("same as `{file}`"),
        Want::By(words, _) => (*words).into(),
    }
}

/// What was seen of a knob: heading and text.
fn fact(of: Fact) -> (&'static str, String) {
    let heading = match of {
        Fact::Tried(_) => "tested on",
        Fact::Seen(_) => "observed",
        Fact::Unverified(_) => "unverified",
    };
    (heading, of.note().to_owned())
}

/// The usual rollbacks. The chapter states them once.
const RESTORES: &str = "restores the original value";
const REMOVES_DROP_IN: &str = "remove the drop-in and reboot";

/// When a change takes effect, and when its undoing does.
fn in_force(of: &InForce) -> String {
    let mut text = if of.apply == of.rollback {
        settles(&of.apply)
    } else {
        format!(
            "{}; rollback: {}",
            settles(&of.apply),
            settles(&of.rollback)
        )
    };
    match of.shown_by {
        Sign::ReadsBack if of.apply == Settles::Immediately => {}
        Sign::ReadsBack => text.push_str("; the file shows it"),
        Sign::File(file) => text.push_str(&format!("; {file} shows it")),
        // The row "check" describes these.
        Sign::Recording(_) | Sign::Cmdline | Sign::Check => {}
    }
    if !of.leaves.is_empty() {
        text.push_str(&format!("; after rollback, {}", of.leaves));
    }
    text
}

/// The time until a change takes effect.
pub(crate) fn settles(of: &Settles) -> String {
    match of {
        Settles::Immediately => "immediately".into(),
        Settles::Within(time) => format!("within {time}"),
        Settles::WithinReplaced { unit, slack } => format!(
            "within the old value ({unit} per unit) plus a seventh and {slack} for rounding"
        ),
        Settles::AtNextEvent(event) => format!("when {event}"),
        Settles::AfterReboot => "at the next boot".into(),
        Settles::ByHand => "manually".into(),
        Settles::Unbounded(why) => format!("no known limit: {why}"),
    }
}

/// How to change a knob, in a word or two.
pub(super) fn how(of: How) -> &'static str {
    match of {
        How::Now => "now",
        How::Reboot => "reboot",
        How::ByHand => "manual",
    }
}

/// A group of culprits: their kind and names.
fn pattern(of: &CulpritPattern) -> String {
    let names: Vec<String> = of.names().iter().map(|name| format!("`{name}`")).collect();
    let by = match of.workers() {
        None => "",
        Some(Workers::Bound) => " by workers bound to a CPU",
        Some(Workers::Unbound) => " by unbound workers",
        Some(Workers::Unknown) => " by workers of unknown binding",
    };
    format!("{} {}{by}", of.kind(), names.join(", "))
}

fn controls(knob: &Knob) -> String {
    match knob.mechanism {
        Mechanism::Files(settings) => settings
            .iter()
            .map(setting_text)
            .collect::<Vec<_>>()
            .join("; "),
        Mechanism::Threads(ThreadFamily::Kernel) => {
            "Cpus_allowed_list of kernel threads (/proc/PID/status): no isolated CPU".into()
        }
        Mechanism::Threads(ThreadFamily::User) => {
            "Cpus_allowed_list of other threads (/proc/PID/task/TID/status): no isolated CPU".into()
        }
        Mechanism::Partition => {
            "cgroup v2 cpuset.cpus.partition, or cgroup v1 cpuset.sched_load_balance".into()
        }
        Mechanism::Blink => "/sys/devices/system/cpu/cpuN/online: 0, then 1".into(),
        Mechanism::Boot(shown) => {
            let line = knob
                .boot
                .iter()
                .map(|p| p.pattern())
                .collect::<Vec<_>>()
                .join(" ");
            match shown {
                Shown::Cmdline => format!("kernel command line: {line}"),
                Shown::CpuFile(path) | Shown::Reads(path, ..) => {
                    format!("{path}; kernel command line: {line}")
                }
                Shown::Gone(path) => format!("{path} absent; kernel command line: {line}"),
            }
        }
        Mechanism::Look(_) => "-".into(),
    }
}

fn answers(knob: &Knob) -> String {
    let mut parts: Vec<String> = Vec::new();
    for (effect, verb) in [
        (Effect::Removes, "removes"),
        (Effect::Lessens, "reduces"),
        (Effect::Perhaps, "may cause"),
    ] {
        let names: Vec<String> = knob
            .answers
            .iter()
            .filter(|a| a.effect == effect)
            .map(|a| {
                let except: Vec<String> = a
                    .except
                    .iter()
                    .flat_map(|l| l.iter())
                    .map(|n| format!("`{n}`"))
                    .collect();
                let except = match except.len() {
                    0 => String::new(),
                    1..=4 => format!(" except {}", except.join(", ")),
                    _ => " except the kernel's own".to_owned(),
                };
                format!("{}{except}", pattern(&a.culprits))
            })
            .collect();
        if !names.is_empty() {
            parts.push(format!("{verb} {}", names.join("; ")));
        }
    }
    parts.join(". ")
}

fn applied(knob: &Knob) -> String {
    let profiles: Vec<&str> = knob.profiles.iter().map(|p| p.as_str()).collect();
    let named = match (knob.how(), profiles.as_slice()) {
        (How::ByHand, _) => return "the user only".into(),
        (_, []) => "`--only` or evidence (`--run`)".to_owned(),
        (_, some) => format!("profile {}", some.join(", ")),
    };
    if knob.is_tame() {
        named
    } else {
        "`--only`".into()
    }
}

fn kept(knob: &Knob) -> String {
    let line = knob
        .boot
        .iter()
        .map(|p| format!("`{}`", p.pattern()))
        .collect::<Vec<_>>()
        .join(" ");
    match knob.mechanism {
        Mechanism::Files(settings) => {
            let mut how: Vec<&str> = Vec::new();
            for setting in settings {
                let (Place::Files(path) | Place::PerCpu(path, _)) = setting.place;
                let one = match (setting.lasting, path.starts_with("/proc/sys/")) {
                    (false, _) => "kernel command line",
                    (true, true) => "sysctl.d",
                    (true, false) => "tmpfiles.d",
                };
                if !how.contains(&one) {
                    how.push(one);
                }
            }
            let also = if line.is_empty() {
                String::new()
            } else {
                format!("; at boot {line}")
            };
            format!("{}{also}", how.join(", "))
        }
        Mechanism::Boot(_) => format!("kernel command line {line}"),
        Mechanism::Threads(ThreadFamily::User) => "systemd drop-in (CPUAffinity=)".into(),
        Mechanism::Threads(ThreadFamily::Kernel) | Mechanism::Partition => {
            "no; isolcpus-domain does it from boot".into()
        }
        Mechanism::Blink | Mechanism::Look(_) => "no".into(),
    }
}

fn reverted(knob: &Knob) -> &'static str {
    match knob.mechanism {
        Mechanism::Files(_) => RESTORES,
        Mechanism::Threads(_) => "restores each thread's CPUs, also for children started since",
        Mechanism::Partition => {
            "restores the original values, moves the cgroup's members to its parent and removes it"
        }
        Mechanism::Blink => "brings back a CPU found offline",
        Mechanism::Boot(_) => REMOVES_DROP_IN,
        Mechanism::Look(_) => "-",
    }
}

/// The chapter `docs/knobs.md`.
#[must_use]
pub fn chapter() -> String {
    let mut out = String::from(
        "# The knobs\n\n<!-- Generated from crates/tune/src/catalogue by a test of crates/view \
         (JITTERSCOPE_WRITE_DOCS=1 rewrites it); edit the catalogue instead. -->\n\n\
         These are the settings that `jitterscope audit` checks and `jitterscope tune` changes. \
         `jitterscope audit --explain ID` prints one entry. ISOLATED and HOUSEKEEPING stand for CPU lists. \
         Unless an entry states otherwise, rollback restores the original value. To roll back a boot parameter, remove \
         the drop-in and reboot. Boot parameters appear in /proc/cmdline. The last line of an entry says where it was \
         tried; *unverified*: not at all, or only in part.\n\n",
    );
    for group in Group::ALL {
        let _ = writeln!(
            out,
            "- {}: {}",
            group.title(),
            catalogue::of(group)
                .map(|k| format!("[{0}](#{0})", k.id))
                .collect::<Vec<_>>()
                .join(", ")
        );
    }
    for group in Group::ALL {
        let _ = write!(out, "\n## {}\n", group.title());
        for knob in catalogue::of(group) {
            let _ = write!(out, "\n### {}\n\n**{}.**\n\n", knob.id, knob.title);
            let stated_once = [RESTORES, REMOVES_DROP_IN];
            for (heading, text) in rows(knob) {
                if heading == "rollback" && stated_once.contains(&text.as_str()) {
                    continue;
                }
                let _ = writeln!(out, "- {heading}: {text}");
            }
        }
    }
    out
}
