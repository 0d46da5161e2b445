//! The shell that runs a command of the user's, and the process group that it leads.
//!
//! A killed experiment cannot end what it started. Who undoes the change must: a command that still runs would
//! change the machine after it was put back. It is known by its leader, which is noted before the command begins.
//! The kernel is not asked to end the leader with its parent: with it would go what tells that its group still runs.

use crate::{CommandFailure, ExperimentError};
use jitterscope_platform::{Machine, TaskStat};
use jitterscope_tune::boot_id;
use rustix::process::{Pid, Signal, WaitId, WaitIdOptions, kill_process_group, waitid};
use serde::{Deserialize, Serialize};
use std::io::{Read, Write};
use std::os::unix::process::CommandExt;
use std::path::Path;
use std::process::{Child, ChildStderr, Command, ExitStatus, Stdio};
use std::sync::mpsc::{Receiver, channel};
use std::time::{Duration, Instant};

/// How long what was killed may take to go: it finishes the system call that it is in.
const GOING: Duration = Duration::from_secs(10);
/// How often it is looked for.
const LOOK: Duration = Duration::from_millis(10);
/// How long what a command said is waited for once it has failed: what it left running may keep that open.
const SAID: Duration = Duration::from_secs(1);
/// As much of what a command says is kept, bytes: what it left running may say more for days.
const KEPT: u64 = 64 << 10;
/// Waits for a line, then is the user's command. Without the line, for whoever was to write it is gone, it ends.
const GATE: &str = r#"IFS= read -r go && exec sh -c "$1" </dev/null"#;

/// The leader of a command's process group.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub struct Leader {
    /// Its process id, which is that of its group.
    pub pid: i32,
    /// When it was started, in clock ticks since boot: tells it from a later one with its id.
    pub start_time: u64,
    /// The kernel's id of that boot.
    pub boot_id: String,
}

impl Leader {
    fn of(child: &Child) -> Option<Leader> {
        let (machine, pid) = (Machine::host(), child.id().cast_signed());
        let found = TaskStat::of(&machine, pid).filter(|stat| stat.group() == Some(pid))?;
        Some(Leader {
            pid,
            start_time: found.start_time()?,
            boot_id: boot_id(&machine),
        })
    }

    /// Whether it still is that process, and has not ended.
    #[must_use]
    pub fn is_alive(&self) -> bool {
        let machine = Machine::host();
        self.boot_id == boot_id(&machine)
            && TaskStat::of(&machine, self.pid).is_some_and(|now| {
                self.has_in_group(&now) && now.start_time() == Some(self.start_time)
            })
    }

    /// Ends its group and waits until nobody of it is left; nothing where the leader has ended. What a command left
    /// running in the background, when it ended by itself, is part of the change and is left to what undoes that.
    ///
    /// # Errors
    /// It may not be ended, or does not end.
    pub fn end_group(&self) -> Result<(), ExperimentError> {
        let Some(group) = Pid::from_raw(self.pid).filter(|_| self.pid > 1 && self.is_alive())
        else {
            return Ok(());
        };
        let failed = |refused| ExperimentError::StillRuns {
            group: self.pid,
            refused,
        };
        match kill_process_group(group, Signal::KILL) {
            Ok(()) | Err(rustix::io::Errno::SRCH) => {}
            Err(error) => return Err(failed(Some(error.into()))),
        }
        let begun = Instant::now();
        while self.group_runs() {
            if begun.elapsed() >= GOING {
                return Err(failed(None));
            }
            std::thread::sleep(LOOK);
        }
        Ok(())
    }

    /// Whether anybody of the group has not ended; who has may be there for as long as nobody asks for its status.
    fn group_runs(&self) -> bool {
        let machine = Machine::host();
        let pids = machine.list("/proc");
        let mut of = pids
            .iter()
            .filter_map(|name| TaskStat::of(&machine, name.parse::<i32>().ok()?));
        of.any(|stat| self.has_in_group(&stat))
    }

    /// Whether it is one of the group that has not ended.
    fn has_in_group(&self, stat: &TaskStat) -> bool {
        stat.group() == Some(self.pid) && stat.has_ended() == Some(false)
    }
}

/// Runs a command of the user's, here or in a folder, as a process group of its own. `begins` is called with its leader
/// before any of the command runs; where it fails, none does.
pub(crate) fn shell_in(
    command: &str,
    folder: Option<&Path>,
    begins: &mut dyn FnMut(&Leader) -> Result<(), ExperimentError>,
) -> Result<(), ExperimentError> {
    let failed = |failure| ExperimentError::Command {
        command: command.to_owned(),
        failure,
    };
    let mut shell = Command::new("sh");
    // What it prints is no result of ours.
    shell
        .args(["-c", GATE, "sh", command])
        .stdin(Stdio::piped())
        .stdout(Stdio::null())
        .stderr(Stdio::piped());
    if let Some(folder) = folder {
        shell.current_dir(folder);
    }
    let mut child = shell
        .process_group(0)
        .spawn()
        .map_err(|error| failed(CommandFailure::NotStarted(error)))?;
    let told = match Leader::of(&child) {
        Some(leader) => begins(&leader),
        None => Err(failed(CommandFailure::NotSeen)),
    };
    let gate = child.stdin.take();
    let opened = told.and_then(|()| {
        gate.map_or(Ok(()), |mut gate| gate.write_all(b"\n"))
            .map_err(|error| failed(CommandFailure::NotStarted(error)))
    });
    // Closed without a line, the gate lets nothing through.
    let said = child.stderr.take().map(listen);
    let ended = match ended(&mut child) {
        Ok(Ended::WantsTerminal) => {
            // The whole group is stopped, and would stay so.
            if let Some(group) = Pid::from_raw(child.id().cast_signed()) {
                let _ = kill_process_group(group, Signal::KILL);
            }
            let _ = child.wait();
            Err(ExperimentError::WantsTerminal {
                command: command.to_owned(),
            })
        }
        Ok(Ended::With(status)) => Ok(status),
        Err(error) => Err(failed(CommandFailure::NotWaitedFor(error))),
    };
    opened?;
    let status = ended?;
    if status.success() {
        return Ok(());
    }
    let said = said
        .and_then(|said| said.recv_timeout(SAID).ok())
        .unwrap_or_default();
    let said = String::from_utf8_lossy(&said).trim().to_owned();
    Err(failed(CommandFailure::Ended { status, said }))
}

/// The beginning of what a command says, once it and all that it left running are silent.
fn listen(mut from: ChildStderr) -> Receiver<Vec<u8>> {
    let (say, said) = channel();
    std::thread::spawn(move || {
        let mut all = Vec::new();
        // What was read before an error is reported all the same.
        let _ = from.by_ref().take(KEPT).read_to_end(&mut all);
        // The rest is read too: a full or closed pipe would stop or end whoever writes to it.
        let _ = std::io::copy(&mut from, &mut std::io::sink());
        let _ = say.send(all);
    });
    said
}

/// How a command ended.
enum Ended {
    With(ExitStatus),
    /// It was stopped, for it read from the terminal or set it while another group has it.
    WantsTerminal,
}

/// Waits for a group's leader. The kernel stops all of a group of which one reads from the terminal that is not its
/// own: nobody would ever start it again.
fn ended(child: &mut Child) -> std::io::Result<Ended> {
    let Some(pid) = Pid::from_raw(child.id().cast_signed()) else {
        return child.wait().map(Ended::With);
    };
    loop {
        // It is left to be waited for, so that its number stays its own.
        let how = waitid(
            WaitId::Pid(pid),
            WaitIdOptions::EXITED | WaitIdOptions::STOPPED | WaitIdOptions::NOWAIT,
        );
        match how {
            Ok(Some(status)) if status.stopped() => {
                let by = |signal: Signal| status.stopping_signal() == Some(signal.as_raw());
                if by(Signal::TTIN) || by(Signal::TTOU) {
                    return Ok(Ended::WantsTerminal);
                }
                // Somebody else stopped it, who will let it go on. Taken, it is not told again.
                waitid(
                    WaitId::Pid(pid),
                    WaitIdOptions::STOPPED | WaitIdOptions::NOHANG,
                )?;
            }
            Ok(_) => return child.wait().map(Ended::With),
            Err(rustix::io::Errno::INTR) => {}
            Err(error) => return Err(error.into()),
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_command_begins_once_its_leader_is_known_and_not_before() {
        let dir = tempfile::tempdir().unwrap();
        let folder = Some(dir.path());
        let mut leaders = Vec::new();
        let mut noted = |leader: &Leader| {
            // The first command makes it.
            assert!(leader.is_alive() && dir.path().join("x").exists() != leaders.is_empty());
            leaders.push(leader.clone());
            Ok(())
        };
        // It reads nothing, and what it says on its way out is reported.
        shell_in("test -z \"$(cat)\" && touch x", folder, &mut noted).unwrap();
        assert!(dir.path().join("x").exists());
        let error = shell_in("echo no >&2; exit 3", folder, &mut noted)
            .unwrap_err()
            .to_string();
        assert!(error.contains("no") && error.contains("exit 3"), "{error}");
        assert!(leaders.len() == 2 && leaders.iter().all(|leader| !leader.is_alive()));
        let mut refused = |_: &Leader| Err(ExperimentError::NotApplied("the disk is full".into()));
        let error = shell_in("touch y", folder, &mut refused)
            .unwrap_err()
            .to_string();
        assert!(
            error.contains("the disk is full") && !dir.path().join("y").exists(),
            "{error}"
        );
    }

    /// What the kernel does to a group that reads from the terminal of another.
    #[test]
    fn a_command_that_wants_the_terminal_is_ended_and_one_that_is_only_stopped_goes_on() {
        let dir = tempfile::tempdir().unwrap();
        let folder = Some(dir.path());
        for signal in ["TTIN", "TTOU"] {
            let mut of = None;
            let mut noted = |leader: &Leader| {
                of = Some(leader.clone());
                Ok(())
            };
            let error =
                shell_in(&format!("kill -{signal} $$; touch x"), folder, &mut noted).unwrap_err();
            assert!(
                matches!(error, ExperimentError::WantsTerminal { .. }),
                "{error}"
            );
            assert!(
                error.to_string().contains("sudo -n") && error.to_string().contains(signal),
                "{error}"
            );
            assert!(
                !of.unwrap().group_runs() && !dir.path().join("x").exists(),
                "{signal}"
            );
        }
        shell_in(
            "(sleep 0.2; kill -CONT $$) & kill -STOP $$; touch y",
            folder,
            &mut |_| Ok(()),
        )
        .unwrap();
        assert!(dir.path().join("y").exists());
    }

    #[test]
    fn of_a_command_that_says_very_much_the_beginning_is_kept_and_it_is_heard_to_its_end() {
        let dir = tempfile::tempdir().unwrap();
        let long =
            "echo first >&2; head -c 1000000 /dev/zero | tr '\\0' x >&2 && touch heard; exit 3";
        let error = shell_in(long, Some(dir.path()), &mut |_| Ok(()))
            .unwrap_err()
            .to_string();
        assert!(error.contains("first\nxxx"), "{}", error.len());
        assert!(error.len() as u64 <= KEPT + 1_000, "{}", error.len());
        assert!(
            dir.path().join("heard").exists(),
            "whoever writes is not stopped"
        );
    }

    #[test]
    fn what_a_command_leaves_running_is_not_waited_for() {
        let begun = Instant::now();
        let mut left = Vec::new();
        let mut noted = |leader: &Leader| {
            left.push(leader.clone());
            Ok(())
        };
        // It keeps open what errors are written to.
        shell_in("sleep 60 &", None, &mut noted).unwrap();
        let error = shell_in("sleep 60 & exit 3", None, &mut noted).unwrap_err();
        assert!(error.to_string().contains("exit status: 3"), "{error}");
        assert!(begun.elapsed() < Duration::from_secs(30));
        for leader in left {
            let _ = kill_process_group(Pid::from_raw(leader.pid).unwrap(), Signal::KILL);
        }
    }

    #[test]
    fn a_group_is_ended_only_if_its_leader_still_is_that_process() {
        let group = |script: &str| {
            let child = Command::new("sh")
                .args(["-c", script])
                .process_group(0)
                .spawn()
                .unwrap();
            (Leader::of(&child).unwrap(), child)
        };
        let dir = tempfile::tempdir().unwrap();
        let late = dir.path().join("late");
        let (leader, mut child) = group(&format!("(sleep 1; touch {}) & wait", late.display()));
        for other in [
            Leader {
                start_time: leader.start_time + 1,
                ..leader.clone()
            },
            Leader {
                boot_id: "another".into(),
                ..leader.clone()
            },
        ] {
            other.end_group().unwrap();
            assert!(
                !other.is_alive() && child.try_wait().unwrap().is_none(),
                "it is not meant"
            );
        }
        leader.end_group().unwrap();
        assert!(!leader.is_alive() && !leader.group_runs());
        child.wait().unwrap();
        std::thread::sleep(Duration::from_millis(1_300));
        assert!(!late.exists(), "what the leader started goes with it");
        leader.end_group().unwrap();
    }
}
