//! Makes changes permanent with our own drop-in files, never by editing a user's file.

use crate::catalogue;
use crate::cmdline::{BootParam, compose, merge};
use crate::goal::Goal;
use crate::knob::{Mechanism, ThreadFamily};
use crate::op::{Op, exact, exact_file};
use jitterscope_platform::Machine;
use schemars::JsonSchema;
use serde::Serialize;
use std::io;

const SYSCTL: &str = "/etc/sysctl.d/99-zz-jitterscope.conf";
const TMPFILES: &str = "/etc/tmpfiles.d/zz-jitterscope.conf";
const MANAGER: &str = "/etc/systemd/system.conf.d/90-jitterscope.conf";
const GRUB: &str = "/etc/default/grub.d/90-jitterscope.cfg";

/// The knob name of such changes, in a plan and in the journal.
pub const PERSIST: &str = "persist";

/// Whether this change makes others permanent: it is one of the drop-ins, or a folder for one.
#[must_use]
pub fn may_make(op: &Op) -> bool {
    let mut drop_ins = [SYSCTL, TMPFILES, MANAGER, GRUB].into_iter();
    match op {
        Op::PutFile { path, .. } => drop_ins.any(|drop_in| drop_in == path),
        Op::MakeDir {
            path,
            cgroup: false,
        } => drop_ins.any(|drop_in| folders_of(drop_in).any(|f| f == path)),
        _ => false,
    }
}

/// The folders of a file, outermost first.
fn folders_of(path: &str) -> impl Iterator<Item = &str> {
    path.match_indices('/')
        .skip(1)
        .filter_map(|(at, _)| path.get(..at))
}

/// What must also hold after the next boot.
#[derive(Clone, Debug, Default)]
pub struct Lasting {
    /// (file under /proc/sys, value).
    pub sysctls: Vec<(String, String)>,
    /// (other control file, value).
    pub files: Vec<(String, String)>,
    /// Whether daemons must stay off the isolated CPUs.
    pub daemons: bool,
    pub boot: Vec<BootParam>,
}

/// The boot parameters, and how they are added.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, JsonSchema)]
pub struct BootLine {
    pub add: Vec<String>,
    /// The remaining manual steps.
    pub by_hand: BootByHand,
}

/// The manual steps until boot parameters are in force. In JSON it has its stable `id`.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, JsonSchema)]
#[serde(tag = "id", rename_all = "snake_case")]
pub enum BootByHand {
    /// A drop-in of GRUB contains them: GRUB's configuration must be regenerated, and the machine rebooted.
    UpdateGrub { path: &'static str },
    /// They must be added to GRUB's configuration, which has no place for drop-ins.
    EditGrub,
    /// They must be added to the boot loader's configuration: none of GRUB was found.
    EditLoader,
}

/// A drop-in without the values of some steps.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum Without {
    /// It contains none of them.
    Same,
    Text(String),
    /// It contains parameters that other knobs may need, too.
    Shared,
}

/// The drop-in `path`, with contents `text`, without what these steps (of these knobs) make permanent.
#[must_use]
pub fn without(path: &str, text: &str, steps: &[(&str, &Op)]) -> Without {
    if path == GRUB {
        let parameters = parameters_in(text);
        let holds = |knob: &str| {
            let boot = catalogue::find(knob).map_or(&[][..], |k| k.boot);
            boot.iter().any(|p| {
                parameters
                    .split(' ')
                    .any(|text| text.split('=').next() == Some(p.key))
            })
        };
        return if steps.iter().any(|(knob, _)| holds(knob)) {
            Without::Shared
        } else {
            Without::Same
        };
    }
    let theirs = |line: &&str| {
        !steps.iter().any(|(knob, op)| match (path, op) {
            (SYSCTL, Op::Write { path, .. }) if path.starts_with("/proc/sys/") => line
                .split_once(" = ")
                .is_some_and(|(name, _)| name == sysctl_name(path)),
            (TMPFILES, Op::Write { path, .. }) => line
                .strip_prefix("w ")
                .is_some_and(|rest| rest.split(' ').next() == Some(path)),
            (MANAGER, Op::Thread { .. }) => {
                let mechanism = catalogue::find(knob).map(|k| k.mechanism);
                matches!(mechanism, Some(Mechanism::Threads(ThreadFamily::User)))
                    && line.starts_with("CPUAffinity=")
            }
            _ => false,
        })
    };
    let left: String = text.split_inclusive('\n').filter(theirs).collect();
    if left == text {
        Without::Same
    } else {
        Without::Text(left)
    }
}

impl Lasting {
    pub fn add(&mut self, path: &str, value: &str) {
        let list = if path.starts_with("/proc/sys/") {
            &mut self.sysctls
        } else {
            &mut self.files
        };
        list.push((path.to_owned(), value.to_owned()));
    }

    /// The drop-ins that make it permanent, and the boot parameters.
    ///
    /// # Errors
    /// An existing drop-in of ours cannot be read.
    pub fn ops(&self, machine: &Machine, goal: &Goal) -> io::Result<(Vec<Op>, Option<BootLine>)> {
        let mut ops = Vec::new();
        if !self.sysctls.is_empty() {
            let lines = self
                .sysctls
                .iter()
                .map(|(path, value)| (sysctl_name(path), value.clone()));
            let lines: Vec<(String, String)> = lines.map(|(k, v)| (format!("{k} = "), v)).collect();
            drop_in(
                machine,
                &mut ops,
                SYSCTL,
                &["# Written by jitterscope; `jitterscope tune rollback` removes it."],
                &lines,
            )?;
        }
        if !self.files.is_empty() {
            let lines: Vec<(String, String)> = self
                .files
                .iter()
                .map(|(path, value)| (format!("w {path} - - - - "), value.clone()))
                .collect();
            drop_in(
                machine,
                &mut ops,
                TMPFILES,
                &["# Written by jitterscope; `jitterscope tune rollback` removes it."],
                &lines,
            )?;
        }
        if self.daemons {
            let lines = vec![(
                "CPUAffinity=".to_owned(),
                goal.housekeeping.to_string().replace(',', " "),
            )];
            drop_in(
                machine,
                &mut ops,
                MANAGER,
                &[
                    "# Written by jitterscope; `jitterscope tune rollback` removes it.",
                    "[Manager]",
                ],
                &lines,
            )?;
        }
        if self.boot.is_empty() {
            return Ok((ops, None));
        }
        let add = compose(&self.boot, goal);
        let by_hand = if machine.exists("/etc/default/grub.d") {
            let earlier = exact(machine, GRUB)?.unwrap_or_default();
            let line = merge(&parameters_in(&earlier), &add).join(" ");
            let lines = vec![(
                "GRUB_CMDLINE_LINUX_DEFAULT=".to_owned(),
                format!("\"$GRUB_CMDLINE_LINUX_DEFAULT {line}\""),
            )];
            drop_in(
                machine,
                &mut ops,
                GRUB,
                &["# Written by jitterscope; `jitterscope tune rollback` removes it."],
                &lines,
            )?;
            BootByHand::UpdateGrub { path: GRUB }
        } else if machine.exists("/etc/default/grub") {
            BootByHand::EditGrub
        } else {
            BootByHand::EditLoader
        };
        Ok((ops, Some(BootLine { add, by_hand })))
    }
}

/// The parameters in a GRUB drop-in of ours.
fn parameters_in(drop_in: &str) -> String {
    drop_in
        .lines()
        .filter_map(|line| {
            line.strip_prefix("GRUB_CMDLINE_LINUX_DEFAULT=\"$GRUB_CMDLINE_LINUX_DEFAULT ")
        })
        .filter_map(|rest| rest.strip_suffix('"'))
        .collect::<Vec<_>>()
        .join(" ")
}

fn sysctl_name(path: &str) -> String {
    path.trim_start_matches("/proc/sys/").replace('/', ".")
}

/// Adds the changes that install the drop-in: missing folders, and then the file. Lines of an earlier version stay
/// unless they set something else for the same thing.
fn drop_in(
    machine: &Machine,
    ops: &mut Vec<Op>,
    path: &str,
    header: &[&str],
    lines: &[(String, String)],
) -> io::Result<()> {
    let (from, access) = exact_file(machine, path)?.unzip();
    let mut text: Vec<String> = header.iter().map(|h| (*h).to_owned()).collect();
    for old in from.as_deref().unwrap_or_default().lines() {
        let replaced = lines.iter().any(|(key, _)| old.starts_with(key.as_str()));
        if !replaced && !text.iter().any(|have| have == old) {
            text.push(old.to_owned());
        }
    }
    text.extend(lines.iter().map(|(key, value)| format!("{key}{value}")));
    let to = text.join("\n") + "\n";
    if from.as_ref() == Some(&to) {
        return Ok(());
    }
    for folder in folders_of(path).filter(|folder| !machine.exists(folder)) {
        let op = Op::MakeDir {
            path: folder.to_owned(),
            cgroup: false,
        };
        if !ops.contains(&op) {
            ops.push(op);
        }
    }
    ops.push(Op::PutFile {
        path: path.to_owned(),
        from,
        to,
        access,
    });
    Ok(())
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::cmdline::BootValue;

    fn goal() -> Goal {
        Goal {
            isolated: "1".parse().unwrap(),
            housekeeping: "0,2".parse().unwrap(),
        }
    }

    #[test]
    fn drop_ins_hold_what_they_should() {
        let dir = tempfile::tempdir().unwrap();
        std::fs::create_dir_all(dir.path().join("etc/default/grub.d")).unwrap();
        std::fs::create_dir_all(dir.path().join("etc/sysctl.d")).unwrap();
        let m = Machine::at(dir.path());
        let mut lasting = Lasting {
            daemons: true,
            ..Lasting::default()
        };
        lasting.add("/proc/sys/vm/stat_interval", "3600");
        lasting.add("/sys/kernel/rcu_normal", "1");
        lasting.boot.push(BootParam {
            key: "nohz_full",
            value: BootValue::Isolated,
        });
        let (ops, line) = lasting.ops(&m, &goal()).unwrap();
        let contents: Vec<(&str, &str)> = ops
            .iter()
            .filter_map(|op| match op {
                Op::PutFile { path, to, .. } => Some((path.as_str(), to.lines().last().unwrap())),
                _ => None,
            })
            .collect();
        assert_eq!(
            contents,
            [
                (SYSCTL, "vm.stat_interval = 3600"),
                (TMPFILES, "w /sys/kernel/rcu_normal - - - - 1"),
                (MANAGER, "CPUAffinity=0 2"),
                (
                    GRUB,
                    "GRUB_CMDLINE_LINUX_DEFAULT=\"$GRUB_CMDLINE_LINUX_DEFAULT nohz_full=1\""
                ),
            ]
        );
        let folders: Vec<String> = ops
            .iter()
            .filter(|op| matches!(op, Op::MakeDir { .. }))
            .map(Op::what)
            .collect();
        assert_eq!(
            folders,
            [
                "/etc/tmpfiles.d",
                "/etc/systemd",
                "/etc/systemd/system.conf.d"
            ]
        );
        assert_eq!(line.unwrap().by_hand, BootByHand::UpdateGrub { path: GRUB });
    }

    #[test]
    fn a_second_boot_line_keeps_the_first() {
        let dir = tempfile::tempdir().unwrap();
        std::fs::create_dir_all(dir.path().join("etc/default/grub.d")).unwrap();
        let m = Machine::at(dir.path());
        for (flag, wanted) in [
            ("domain", "isolcpus=domain,1"),
            ("managed_irq", "isolcpus=domain,managed_irq,1"),
        ] {
            let boot = vec![BootParam {
                key: "isolcpus",
                value: BootValue::IsolatedWith(flag),
            }];
            let (ops, _) = Lasting {
                boot,
                ..Lasting::default()
            }
            .ops(&m, &goal())
            .unwrap();
            let [Op::PutFile { to, .. }] = ops.as_slice() else {
                panic!("{ops:?}")
            };
            assert!(to.contains(&format!("LINUX_DEFAULT {wanted}\"")), "{to}");
            std::fs::write(dir.path().join(&GRUB[1..]), to).unwrap();
        }
    }

    #[test]
    fn without_grub_the_line_is_said_and_nothing_is_written() {
        let dir = tempfile::tempdir().unwrap();
        let lasting = Lasting {
            boot: vec![BootParam {
                key: "nosmt",
                value: BootValue::Flag,
            }],
            ..Lasting::default()
        };
        let (ops, line) = lasting.ops(&Machine::at(dir.path()), &goal()).unwrap();
        assert!(ops.is_empty());
        assert_eq!(line.unwrap().add, ["nosmt"]);
    }

    #[test]
    fn an_earlier_drop_in_keeps_its_other_lines() {
        let dir = tempfile::tempdir().unwrap();
        std::fs::create_dir_all(dir.path().join("etc/sysctl.d")).unwrap();
        let old = "# Written by jitterscope; `jitterscope tune rollback` removes it.\nvm.stat_interval = 60\nkernel.numa_balancing = 0\n";
        std::fs::write(dir.path().join(&SYSCTL[1..]), old).unwrap();
        let mut lasting = Lasting::default();
        lasting.add("/proc/sys/vm/stat_interval", "3600");
        let (ops, _) = lasting.ops(&Machine::at(dir.path()), &goal()).unwrap();
        let [Op::PutFile { from, to, .. }] = ops.as_slice() else {
            panic!("{ops:?}")
        };
        assert_eq!(from.as_deref(), Some(old));
        assert!(
            to.contains("kernel.numa_balancing = 0\n") && to.contains("vm.stat_interval = 3600\n")
        );
        assert!(!to.contains("= 60"));
    }
}
