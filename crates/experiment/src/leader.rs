//! The shell that runs a command of the user, and the process group that it leads.
//!
//! A killed experiment cannot end the processes that it started. The process that undoes the change must end them: a
//! command that still runs would change the machine again after it was restored. The group is known by its leader,
//! which is noted before the command begins. The leader is not set to end with its parent (`PR_SET_PDEATHSIG`), because
//! it is the only evidence that its group still runs.

use crate::{CommandFailure, ExperimentError};
use jitterscope_platform::{Machine, TaskStat, boot_id};
use rustix::process::{Pid, Signal, WaitId, WaitIdOptions, kill_process_group, waitid};
use serde::{Deserialize, Serialize};
use std::io::{Read, Write};
use std::os::unix::process::CommandExt;
use std::path::Path;
use std::process::{Child, ChildStderr, Command, ExitStatus, Stdio};
use std::sync::mpsc::{Receiver, channel};
use std::time::{Duration, Instant};

/// How long killed processes may take to end: they finish their current system call.
const GOING: Duration = Duration::from_secs(10);
/// How often they are checked.
const LOOK: Duration = Duration::from_millis(10);
/// How long to wait for a failed command's output: a child that it left running may keep the pipe open.
const SAID: Duration = Duration::from_secs(1);
/// Maximum bytes kept of a command's output: a child that it left running may write for days.
const KEPT: u64 = 64 << 10;
/// Waits for a line, and then becomes the user's command. Without the line, because its writer is gone, it ends.
const GATE: &str = r#"IFS= read -r go && exec sh -c "$1" </dev/null"#;

/// The leader of a command's process group.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub struct Leader {
    /// Its process id, which is also the group's id.
    pub pid: i32,
    /// Its start time in clock ticks since boot: distinguishes it from a later process with the same id.
    pub start_time: u64,
    /// The kernel's boot id at that time.
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

    /// Whether it still is that process and has not ended.
    #[must_use]
    pub fn is_alive(&self) -> bool {
        let machine = Machine::host();
        self.boot_id == boot_id(&machine)
            && TaskStat::of(&machine, self.pid).is_some_and(|now| {
                self.has_in_group(&now) && now.start_time() == Some(self.start_time)
            })
    }

    /// Ends its group and waits until no process of it is left; does nothing if the leader has ended. Processes that a
    /// command left running in the background when it ended are part of the change, and its undoing must end them.
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

    /// Whether a process of the group still runs; an ended one may stay listed until its parent reaps it.
    fn group_runs(&self) -> bool {
        let machine = Machine::host();
        let pids = machine.list("/proc");
        let mut of = pids
            .iter()
            .filter_map(|name| TaskStat::of(&machine, name.parse::<i32>().ok()?));
        of.any(|stat| self.has_in_group(&stat))
    }

    /// Whether the process belongs to the group and has not ended.
    fn has_in_group(&self, stat: &TaskStat) -> bool {
        stat.group() == Some(self.pid) && stat.has_ended() == Some(false)
    }
}

/// Runs a command of the user in a process group of its own, here or in a folder. Calls `begins` with the group's
/// leader before the command runs; if that fails, the command does not run.
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
    // Its output is not part of our result.
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
    let reported = match Leader::of(&child) {
        Some(leader) => begins(&leader),
        None => Err(failed(CommandFailure::NotSeen)),
    };
    let gate = child.stdin.take();
    let opened = reported.and_then(|()| {
        gate.map_or(Ok(()), |mut gate| gate.write_all(b"\n"))
            .map_err(|error| failed(CommandFailure::NotStarted(error)))
    });
    // Closed without a line, the gate does not run the command.
    let said = child.stderr.take().map(listen);
    let ended = match ended(&mut child) {
        Ok(Ended::WantsTerminal) => {
            // The whole group is stopped and would stay so.
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

/// The beginning of a command's output, once it and its children have closed the pipe.
fn listen(mut from: ChildStderr) -> Receiver<Vec<u8>> {
    let (say, said) = channel();
    std::thread::spawn(move || {
        let mut all = Vec::new();
        // Output before a read error is still reported.
        let _ = from.by_ref().take(KEPT).read_to_end(&mut all);
        // Reads the rest, too: a full or closed pipe would stop or end its writer.
        let _ = std::io::copy(&mut from, &mut std::io::sink());
        let _ = say.send(all);
    });
    said
}

enum Ended {
    With(ExitStatus),
    /// It was stopped because it read from the terminal, or changed its settings, from a background group.
    WantsTerminal,
}

/// Waits for a group's leader. If a process reads from a terminal that its group does not own, the kernel stops the
/// whole group, and no process would continue it.
fn ended(child: &mut Child) -> std::io::Result<Ended> {
    let Some(pid) = Pid::from_raw(child.id().cast_signed()) else {
        return child.wait().map(Ended::With);
    };
    loop {
        // It stays unreaped, so that its id stays its own.
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
                // Another process stopped it and will continue it. Consumes the event, so that it is not reported
                // again.
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
            // The first command creates it.
            assert!(leader.is_alive() && dir.path().join("x").exists() != leaders.is_empty());
            leaders.push(leader.clone());
            Ok(())
        };
        // It reads nothing, and its last output is reported.
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

    /// What the kernel does to a group that reads from another group's terminal.
    #[test]
    fn a_command_that_reads_the_terminal_ends_and_a_stopped_one_goes_on() {
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
    fn long_output_of_a_command_keeps_its_beginning_and_is_read_fully() {
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
        // It keeps the pipe of standard error open.
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
