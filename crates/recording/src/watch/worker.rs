//! Does what follows a trigger, on a thread of its own: writes the run and takes the other actions, one after another.

use super::cut::{CutError, Destination, Window, cut};
use super::settings::Action;
use jitterscope_model::{AskedBy, SavedMoment};
use jitterscope_platform::{Machine, name_current_thread, notify, set_nice};
use std::io::Write;
use std::os::unix::process::CommandExt;
use std::path::PathBuf;
use std::process::{Child, Command, Stdio};
use std::sync::mpsc::{Receiver, Sender, channel};
use std::thread::JoinHandle;
use std::time::{Duration, Instant};

/// A command may run for this long.
const LONGEST_COMMAND: Duration = Duration::from_secs(60);
/// Between two looks at it.
const LOOK: Duration = Duration::from_millis(10);
const MARKER: &str = "/sys/kernel/tracing/trace_marker";

/// A message to the thread.
enum Order {
    /// A moment is to be saved: the actions begin.
    Begin { moment: SavedMoment, follow: Follow },
    /// The seconds after it are in these sections.
    Ready {
        sections: Vec<PathBuf>,
        window: Window,
        moment: SavedMoment,
    },
}

/// What follows a trigger, and the label of its run.
#[derive(Clone, Debug)]
pub(super) struct Follow {
    pub(super) actions: Vec<Action>,
    pub(super) label: String,
}

/// What became of a trigger.
#[derive(Debug, Default)]
pub(super) struct Done {
    /// The saved run.
    pub(super) run: Option<PathBuf>,
    /// The action that failed and ended the list, and why.
    pub(super) failed: Option<String>,
    /// Whether the watch is to end.
    pub(super) stop: bool,
}

/// The thread. Dropping it waits for what it is doing.
#[derive(Debug)]
pub(super) struct Worker {
    orders: Option<Sender<Order>>,
    done: Receiver<Done>,
    thread: Option<JoinHandle<()>>,
}

/// What the thread needs to know.
#[derive(Clone, Debug)]
pub(super) struct Errand {
    pub(super) machine: Machine,
    /// The folder in which a run is made, and that of saved runs.
    pub(super) workshop: PathBuf,
    pub(super) runs: PathBuf,
}

impl Worker {
    /// Starts the thread with the affinity of the caller and the lowest priority.
    ///
    /// # Errors
    /// The kernel refuses a thread.
    pub(super) fn start(errand: Errand) -> std::io::Result<Worker> {
        let (orders, to_do) = channel();
        let (tell, done) = channel();
        let run = move || {
            name_current_thread("js-saver");
            set_nice(19);
            while let Ok(Order::Begin { moment, follow }) = to_do.recv() {
                if tell.send(errand.follow(&follow, &moment, &to_do)).is_err() {
                    break;
                }
            }
        };
        let thread = std::thread::Builder::new()
            .name("js-saver".into())
            .spawn(run)?;
        Ok(Worker {
            orders: Some(orders),
            done,
            thread: Some(thread),
        })
    }

    pub(super) fn begin(&self, moment: SavedMoment, follow: Follow) {
        self.order(Order::Begin { moment, follow });
    }

    pub(super) fn ready(&self, sections: Vec<PathBuf>, window: Window, moment: SavedMoment) {
        self.order(Order::Ready {
            sections,
            window,
            moment,
        });
    }

    fn order(&self, order: Order) {
        // If the thread panicked, `done` says so.
        let _ = self.orders.as_ref().map(|orders| orders.send(order));
    }

    /// What has been done since the last call.
    pub(super) fn done(&self) -> Option<Done> {
        self.done.try_recv().ok()
    }

    /// Waits for what is being done.
    pub(super) fn wait(&self) -> Option<Done> {
        self.done.recv().ok()
    }
}

impl Drop for Worker {
    fn drop(&mut self) {
        self.orders = None;
        if let Some(thread) = self.thread.take() {
            // A panic was already printed.
            let _ = thread.join();
        }
    }
}

impl Errand {
    /// Takes the actions in order. The first failure ends the list.
    fn follow(&self, follow: &Follow, begun: &SavedMoment, orders: &Receiver<Order>) -> Done {
        let mut done = Done::default();
        let mut ready = None;
        for action in &follow.actions {
            let taken = match action {
                Action::Save => match orders.recv() {
                    Ok(Order::Ready {
                        sections,
                        window,
                        moment,
                    }) => {
                        ready = Some(());
                        let to = self.destination(&follow.label);
                        let saved = cut(&sections, window, to, &moment);
                        saved
                            .map(|run| done.run = Some(run))
                            .map_err(|error| error.to_string())
                    }
                    // The watch ended before.
                    Ok(Order::Begin { .. }) | Err(_) => Err(CutError::Nothing.to_string()),
                },
                Action::Shell(command) => self.shell(command, begun, done.run.as_ref()),
                Action::Signal(pid) => notify(*pid).map_err(|error| error.to_string()),
                Action::Mark => self.mark(begun).map_err(|error| error.to_string()),
                Action::Stop => {
                    done.stop = true;
                    Ok(())
                }
                Action::Continue => Ok(()),
            };
            if let Err(error) = taken {
                done.failed = Some(format!("{action}: {error}"));
                break;
            }
        }
        // The seconds after are announced in any case.
        if ready.is_none() {
            let _ = orders.recv();
        }
        done
    }

    fn destination<'d>(&'d self, label: &'d str) -> Destination<'d> {
        Destination {
            workshop: &self.workshop,
            runs: &self.runs,
            label,
        }
    }

    /// Writes a line into the machine's own trace, for other tracers.
    fn mark(&self, moment: &SavedMoment) -> std::io::Result<()> {
        let mut file = std::fs::OpenOptions::new()
            .write(true)
            .open(self.machine.path(MARKER))?;
        writeln!(file, "jitterscope: {} {}", word(moment.by), moment.text)
    }

    /// Runs a command with the facts in its environment. A command that takes too long is ended with all it started.
    fn shell(
        &self,
        command: &str,
        moment: &SavedMoment,
        run: Option<&PathBuf>,
    ) -> Result<(), String> {
        let mut shell = Command::new("/bin/sh");
        shell
            .arg("-c")
            .arg(command)
            .env("JITTERSCOPE_RUNS", &self.runs)
            .env("JITTERSCOPE_BY", word(moment.by))
            .env("JITTERSCOPE_TEXT", &moment.text)
            .env("JITTERSCOPE_AT_NS", moment.realtime_ns.to_string())
            .env_remove("JITTERSCOPE_RUN")
            // It is no part of the service.
            .env_remove("NOTIFY_SOCKET")
            .env_remove("WATCHDOG_USEC")
            .env_remove("WATCHDOG_PID")
            .stdin(Stdio::null())
            .stdout(Stdio::null())
            .process_group(0);
        if let Some(run) = run {
            shell.env("JITTERSCOPE_RUN", run);
        }
        let mut child = shell.spawn().map_err(|error| error.to_string())?;
        let begun = Instant::now();
        loop {
            match child.try_wait() {
                Ok(Some(status)) if status.success() => return Ok(()),
                Ok(Some(status)) => return Err(status.to_string()),
                Ok(None) if begun.elapsed() < LONGEST_COMMAND => std::thread::sleep(LOOK),
                Ok(None) => {
                    end(&mut child);
                    return Err(format!(
                        "it ran for more than {} s",
                        LONGEST_COMMAND.as_secs()
                    ));
                }
                Err(error) => return Err(error.to_string()),
            }
        }
    }
}

fn end(child: &mut Child) {
    if let Ok(group) = i32::try_from(child.id()) {
        jitterscope_platform::kill_group(group);
    }
    let _ = child.kill();
    let _ = child.wait();
}

fn word(by: AskedBy) -> &'static str {
    match by {
        AskedBy::Condition => "condition",
        AskedBy::Application => "application",
        AskedBy::Signal => "signal",
        AskedBy::Marker => "marker",
        AskedBy::Person => "person",
        AskedBy::Unknown => "unknown",
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn errand(runs: &std::path::Path) -> Errand {
        Errand {
            machine: Machine::host(),
            workshop: runs.to_path_buf(),
            runs: runs.to_path_buf(),
        }
    }

    fn moment() -> SavedMoment {
        SavedMoment {
            realtime_ns: 7,
            by: AskedBy::Application,
            text: "it's $(late)".into(),
            joined: 0,
        }
    }

    fn follow(actions: Vec<Action>, runs: &std::path::Path) -> Done {
        let worker = Worker::start(errand(runs)).unwrap();
        let follow = Follow {
            actions,
            label: "t".into(),
        };
        worker.begin(moment(), follow);
        let window = Window {
            from: jitterscope_model::Ticks(1),
            to: jitterscope_model::Ticks(2),
        };
        worker.ready(Vec::new(), window, moment());
        worker.wait().unwrap()
    }

    #[test]
    fn actions_are_taken_in_order_and_the_first_failure_ends_the_list() {
        let dir = tempfile::tempdir().unwrap();
        let file = dir.path().join("seen");
        let say = |word: &str| Action::Shell(format!("echo {word} >> {}", file.display()));
        let done = follow(
            vec![
                say("a"),
                say("b"),
                Action::Shell("exit 3".into()),
                say("c"),
                Action::Stop,
            ],
            dir.path(),
        );
        assert_eq!(std::fs::read_to_string(&file).unwrap(), "a\nb\n");
        let failed = done.failed.unwrap();
        assert!(
            failed.contains("exit 3") && failed.contains("exit status: 3"),
            "{failed}"
        );
        assert!(!done.stop && done.run.is_none());
        assert!(follow(vec![say("d"), Action::Stop], dir.path()).stop);
    }

    #[test]
    fn a_command_has_the_facts_in_its_environment_and_no_part_of_them_is_run() {
        let dir = tempfile::tempdir().unwrap();
        let file = dir.path().join("seen");
        let text = format!(
            "echo \"$JITTERSCOPE_BY $JITTERSCOPE_AT_NS $JITTERSCOPE_TEXT [$JITTERSCOPE_RUN]\" > {}",
            file.display()
        );
        assert!(
            follow(vec![Action::Shell(text)], dir.path())
                .failed
                .is_none()
        );
        let seen = std::fs::read_to_string(&file).unwrap();
        assert_eq!(seen, "application 7 it's $(late) []\n");
    }

    #[test]
    fn a_save_without_history_fails_and_ends_the_list() {
        let dir = tempfile::tempdir().unwrap();
        let done = follow(vec![Action::Save, Action::Stop], dir.path());
        assert!(done.failed.unwrap().contains("nothing of that time"));
        assert!(!done.stop);
    }
}
