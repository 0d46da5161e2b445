//! The threads of a target, read from `/proc`.

use super::settings::Followed;
use jitterscope_attribute::{Following, Start};
use jitterscope_model::{Comm, CpuList, CpuSet, StoppedBy, ThreadRef};
use jitterscope_platform::Machine;
use std::process::{Child, Command, Stdio};
use std::time::{Duration, Instant};

/// Why a target cannot be followed.
#[derive(Debug, thiserror::Error)]
pub enum FollowError {
    /// No such process or thread.
    #[error("there is no {what} {id}: it has ended, or the number is of another PID namespace")]
    Gone {
        /// `process` or `thread`.
        what: &'static str,
        id: i32,
    },
    #[error(
        "no thread is called '{0}' now; names are cut at 15 bytes (ps -eLo tid,comm shows them). Use --wait to wait for one"
    )]
    NoSuchName(String),
    /// The command cannot be started.
    #[error("'{program}' cannot be started: {source}")]
    Start {
        program: String,
        source: std::io::Error,
    },
    /// The command is empty.
    #[error("no command was given")]
    NoCommand,
}

/// A thread and the CPUs that it may run on.
pub(crate) struct Found {
    pub(crate) following: Following,
    /// The real user of its process.
    user: Option<u32>,
    pub(crate) allowed: CpuSet,
}

/// The target's current threads; none for a command.
pub(crate) fn threads(machine: &Machine, target: &Followed) -> Result<Vec<Found>, FollowError> {
    match target {
        Followed::Process(pid) => {
            let found: Vec<Found> = tasks(machine, *pid)
                .into_iter()
                .filter_map(|tid| look_at(machine, *pid, tid))
                .collect();
            if found.is_empty() {
                Err(FollowError::Gone {
                    what: "process",
                    id: *pid,
                })
            } else {
                Ok(found)
            }
        }
        Followed::Thread(tid) => match look_at(machine, *tid, *tid) {
            Some(found) => Ok(vec![found]),
            None => Err(FollowError::Gone {
                what: "thread",
                id: *tid,
            }),
        },
        Followed::Named { name, user } => {
            let wanted = Comm::new(name);
            Ok(processes(machine)
                .into_iter()
                .flat_map(|pid| tasks(machine, pid).into_iter().map(move |tid| (pid, tid)))
                .filter_map(|(pid, tid)| look_at(machine, pid, tid))
                .filter(|found| found.following.thread.comm == wanted)
                .filter(|found| user.is_none_or(|user| found.user == Some(user)))
                .collect())
        }
        Followed::Command { .. } => Ok(Vec::new()),
    }
}

fn processes(machine: &Machine) -> Vec<i32> {
    machine
        .list("/proc")
        .iter()
        .filter_map(|name| name.parse().ok())
        .collect()
}

fn tasks(machine: &Machine, pid: i32) -> Vec<i32> {
    machine
        .list(format!("/proc/{pid}/task"))
        .iter()
        .filter_map(|name| name.parse().ok())
        .collect()
}

/// The current state of a thread; `None` if it has ended.
fn look_at(machine: &Machine, pid: i32, tid: i32) -> Option<Found> {
    let status = machine
        .read(format!("/proc/{pid}/task/{tid}/status"))
        .ok()?;
    let field = |name: &str| {
        let value = status
            .lines()
            .find_map(|line| line.strip_prefix(name)?.strip_prefix(':'));
        value.map(str::trim)
    };
    let start = match field("State")?.bytes().next()? {
        b'R' => Start::Unknown,
        b'T' => Start::Stopped(StoppedBy::Signal),
        b't' => Start::Stopped(StoppedBy::Tracer),
        b'Z' | b'X' => return None,
        _ => Start::Asleep,
    };
    let user = field("Uid").and_then(|ids| ids.split_whitespace().next()?.parse().ok());
    let allowed = field("Cpus_allowed_list").and_then(|list| list.parse().ok());
    Some(Found {
        following: Following {
            thread: ThreadRef {
                tid,
                comm: Comm::new(field("Name")?),
            },
            role: None,
            start,
        },
        user,
        allowed: match allowed {
            Some(CpuList::Set(set)) => set,
            _ => CpuSet::new(),
        },
    })
}

/// Whether a process still has threads.
pub(super) fn is_alive(machine: &Machine, pid: i32) -> bool {
    tasks(machine, pid)
        .into_iter()
        .any(|tid| look_at(machine, pid, tid).is_some())
}

/// A command started to be followed. It ends when this is dropped, and also when the thread that started it ends, even
/// by SIGKILL.
pub(super) struct Started {
    child: Child,
    status: Option<std::process::ExitStatus>,
}

/// How long a command has to end after SIGTERM.
const PATIENCE: Duration = Duration::from_secs(2);

impl Started {
    pub(super) fn start(
        line: &[String],
        env: &[(String, String)],
        to_stderr: bool,
    ) -> Result<Started, FollowError> {
        let (program, arguments) = line.split_first().ok_or(FollowError::NoCommand)?;
        let mut command = Command::new(program);
        command
            .args(arguments)
            .envs(env.iter().map(|(name, value)| (name, value)));
        if to_stderr {
            command.stdout(Stdio::from(std::io::stderr()));
        }
        // A killed recorder cannot end it.
        jitterscope_platform::end_with_parent(&mut command);
        let failed = |source| FollowError::Start {
            program: program.clone(),
            source,
        };
        Ok(Started {
            child: command.spawn().map_err(failed)?,
            status: None,
        })
    }

    pub(super) fn pid(&self) -> i32 {
        self.child.id().cast_signed()
    }

    /// Its exit status, if it has ended.
    pub(super) fn ended(&mut self) -> Option<std::process::ExitStatus> {
        if self.status.is_none() {
            self.status = self.child.try_wait().ok().flatten();
        }
        self.status
    }

    /// Sends SIGTERM, and kills it if it does not end in time.
    pub(super) fn end(&mut self) {
        if self.ended().is_some() {
            return;
        }
        jitterscope_platform::ask_to_end(self.pid());
        let until = Instant::now() + PATIENCE;
        while self.ended().is_none() {
            if Instant::now() > until {
                // If that fails, it has just ended.
                let _ = self.child.kill();
                let _ = self.child.wait();
                return;
            }
            std::thread::sleep(Duration::from_millis(10));
        }
    }
}

impl Drop for Started {
    fn drop(&mut self) {
        self.end();
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use std::fs;

    fn machine(threads: &[(i32, i32, &str, &str)]) -> (tempfile::TempDir, Machine) {
        let dir = tempfile::tempdir().unwrap();
        for (pid, tid, name, state) in threads {
            let task = dir.path().join(format!("proc/{pid}/task/{tid}"));
            fs::create_dir_all(&task).unwrap();
            let text = format!("Name:\t{name}\nState:\t{state}\nCpus_allowed_list:\t0-1,3\n");
            fs::write(task.join("status"), text).unwrap();
        }
        let machine = Machine::at(dir.path());
        (dir, machine)
    }

    #[test]
    fn threads_are_found_by_process_by_number_and_by_name() {
        let (_dir, machine) = machine(&[
            (10, 10, "server", "S (sleeping)"),
            (10, 11, "worker", "R (running)"),
            (20, 20, "worker", "D (disk sleep)"),
            (30, 30, "gone", "Z (zombie)"),
            (40, 40, "halted", "T (stopped)"),
            (40, 41, "halted", "t (tracing stop)"),
        ]);
        let threads_of = |target: Followed| -> Vec<(i32, Start)> {
            let mut found: Vec<_> = threads(&machine, &target)
                .unwrap()
                .iter()
                .map(|found| (found.following.thread.tid, found.following.start))
                .collect();
            found.sort_by_key(|(tid, _)| *tid);
            found
        };
        assert_eq!(
            threads_of(Followed::Process(10)),
            [(10, Start::Asleep), (11, Start::Unknown)]
        );
        assert_eq!(
            threads_of(Followed::Named {
                name: "worker".into(),
                user: None,
            }),
            [(11, Start::Unknown), (20, Start::Asleep)]
        );
        let stopped = [
            (40, Start::Stopped(StoppedBy::Signal)),
            (41, Start::Stopped(StoppedBy::Tracer)),
        ];
        assert_eq!(threads_of(Followed::Process(40)), stopped);
        assert!(
            threads(&machine, &Followed::Process(30)).is_err(),
            "a zombie has nothing to follow"
        );
        assert!(threads(&machine, &Followed::Process(99)).is_err());
        let found = threads(&machine, &Followed::Process(20)).unwrap();
        assert_eq!(found[0].allowed.to_string(), "0-1,3");
    }

    #[test]
    fn a_command_that_is_not_there_is_named() {
        let error = Started::start(&["/nowhere/at-all".into()], &[], false)
            .err()
            .unwrap();
        assert!(
            error
                .to_string()
                .starts_with("'/nowhere/at-all' cannot be started"),
            "{error}"
        );
    }

    /// Two commands differ only by a variable that one of them has in its environment.
    #[test]
    fn a_command_with_a_variable_is_started_as_one_without() {
        let of = |env: &[(String, String)]| {
            let line = ["sh", "-c", "while :; do sleep 1; done"].map(str::to_owned);
            let started = Started::start(&line, env, false).unwrap();
            let proc = std::path::PathBuf::from(format!("/proc/{}", started.pid()));
            let exe = fs::read_link(proc.join("exe")).unwrap();
            // Both files are empty until the kernel has set up the new program, some time after it replaced the old
            // one.
            let line = loop {
                let line = fs::read(proc.join("cmdline")).unwrap();
                if !line.is_empty() {
                    break line;
                }
                std::thread::sleep(Duration::from_millis(1));
            };
            let environ =
                String::from_utf8_lossy(&fs::read(proc.join("environ")).unwrap()).into_owned();
            (line, exe, environ)
        };
        let (line, exe, without) = of(&[]);
        let (same_line, same_exe, with) = of(&[("JS_ARM".into(), "a b".into())]);
        assert_eq!((line, exe), (same_line, same_exe));
        let set = |environ: &str| environ.split('\0').any(|one| one == "JS_ARM=a b");
        assert!(set(&with) && !set(&without));
    }

    #[test]
    fn a_command_is_asked_to_end_and_ends() {
        let mut started = Started::start(&["sleep".into(), "600".into()], &[], false).unwrap();
        assert!(started.ended().is_none());
        started.end();
        assert!(started.ended().is_some());
    }
}
