//! The parent's side: starts a disturbing child and collects its results.

use super::DisturbKind;
use super::protocol::{DisturbSettings, Header, Injection, Line};
use rustix::process::{Pid, Signal, kill_process};
use std::ffi::OsString;
use std::io::{self, BufRead, BufReader, Read, Write};
use std::os::unix::process::CommandExt;
use std::path::PathBuf;
use std::process::{Child, ChildStdin, ChildStdout, Command, ExitStatus, Stdio};
use std::sync::mpsc::{Receiver, RecvTimeoutError, Sender, channel};
use std::time::{Duration, Instant};

/// How long a child may take to end on request: it may have to finish a slow `syncfs` before it can restore its
/// changes.
const GRACE: Duration = Duration::from_secs(5);

/// The maximum length of a child's error text, in bytes.
const MAX_COMPLAINT: u64 = 4096;

/// How to start a child: the program, and the arguments before kind and settings.
#[derive(Clone, Debug)]
pub struct ChildCommand {
    pub program: PathBuf,
    /// Its arguments up to the hidden subcommand.
    pub arguments: Vec<OsString>,
}

impl ChildCommand {
    /// This program itself, with a hidden subcommand that calls [`super::run_command`].
    ///
    /// # Errors
    /// The program's own path cannot be found.
    pub fn current_exe(subcommand: &str) -> Result<ChildCommand, ChildError> {
        let program = std::env::current_exe().map_err(ChildError::Start)?;
        Ok(ChildCommand {
            program,
            arguments: vec![subcommand.into()],
        })
    }
}

/// Why a child did not complete its work.
#[derive(Debug, thiserror::Error)]
pub enum ChildError {
    /// It could not be started.
    #[error("starting a child process failed: {0}")]
    Start(#[source] io::Error),
    /// It ended before it was ready, because the machine does not allow its disturbance.
    #[error("{kind} cannot be injected here: {reason}")]
    NotReady {
        /// The kind that it should inject.
        kind: DisturbKind,
        reason: String,
    },
    /// It failed during its work.
    #[error("the child that injects {kind} failed ({status}): {reason}")]
    Failed {
        /// The kind that it should inject.
        kind: DisturbKind,
        status: String,
        reason: String,
    },
    /// It wrote nothing for too long, and was killed.
    #[error("the child that injects {kind} said nothing for {seconds} s, and was ended")]
    Silent {
        /// The kind that it should inject.
        kind: DisturbKind,
        seconds: u64,
    },
    /// It wrote a line that does not follow the protocol.
    #[error("the child that injects {kind} wrote what was not expected: {line}")]
    Garbled {
        /// The kind that it should inject.
        kind: DisturbKind,
        line: String,
    },
}

/// The results of one child.
#[derive(Clone, Debug, PartialEq)]
pub struct Disturbed {
    /// Its identity, and the expected verdict.
    pub header: Header,
    /// Its injections, in order of time.
    pub injections: Vec<Injection>,
}

/// A child that is ready or at work. Dropping it ends it.
///
/// The kernel ends the child when the *thread* that spawned it ends, not only when the process does: spawn it from a
/// thread that lives at least as long. The child, and the thread that reads its output, inherit the spawning thread's
/// CPU affinity: keep that off the measured CPUs.
#[derive(Debug)]
pub struct ChildHandle {
    kind: DisturbKind,
    child: Child,
    stdin: Option<ChildStdin>,
    lines: Receiver<io::Result<String>>,
    header: Header,
}

impl ChildHandle {
    /// Starts a child and waits, at most for `patience`, until it is ready. It does not inject yet. Fills in
    /// `settings.parent_pid`.
    ///
    /// # Errors
    /// It could not be started, or ended before it was ready: [`ChildError::NotReady`] says why.
    pub fn spawn(
        command: &ChildCommand,
        kind: DisturbKind,
        settings: &DisturbSettings,
        patience: Duration,
    ) -> Result<ChildHandle, ChildError> {
        let settings = DisturbSettings {
            parent_pid: std::process::id(),
            ..settings.clone()
        };
        let json =
            serde_json::to_string(&settings).map_err(|error| ChildError::Start(error.into()))?;
        // A process group of its own: Ctrl-C only reaches the parent, which ends its children in order.
        let mut child = Command::new(&command.program)
            .args(&command.arguments)
            .arg(kind.as_str())
            .arg(json)
            .stdin(Stdio::piped())
            .stdout(Stdio::piped())
            .stderr(Stdio::piped())
            .process_group(0)
            .spawn()
            .map_err(ChildError::Start)?;
        let stdin = child.stdin.take();
        let mut starting = Starting {
            kind,
            child: Some(child),
        };
        let lines = starting.listen()?;
        let header = match next_line(kind, &lines, patience)? {
            Some(Line::Header(header)) => header,
            Some(other) => {
                return Err(ChildError::Garbled {
                    kind,
                    line: format!("{other:?}"),
                });
            }
            None => return Err(starting.not_ready()),
        };
        match starting.child.take() {
            Some(child) => Ok(ChildHandle {
                kind,
                child,
                stdin,
                lines,
                header,
            }),
            None => Err(ChildError::Start(io::ErrorKind::NotFound.into())),
        }
    }

    /// The child's identity, and the expected verdict.
    #[must_use]
    pub fn header(&self) -> &Header {
        &self.header
    }

    #[must_use]
    pub fn pid(&self) -> u32 {
        self.child.id()
    }

    /// Starts the injections.
    ///
    /// # Errors
    /// It is gone.
    pub fn go(&mut self) -> Result<(), ChildError> {
        let written = match self.stdin.as_mut() {
            Some(stdin) => stdin.write_all(b"go\n").and_then(|()| stdin.flush()),
            None => Err(io::ErrorKind::BrokenPipe.into()),
        };
        written.map_err(|_| self.failed())
    }

    /// Ends the injections early; [`ChildHandle::finish`] still returns those made so far.
    pub fn stop(&mut self) {
        self.stdin = None;
    }

    /// Waits until the child has made all injections, and returns them. Waits at most for `patience` between two lines.
    /// `patience` must cover all injections, because the child writes nothing meanwhile.
    ///
    /// # Errors
    /// The child failed, was silent for too long, or violated the protocol.
    pub fn finish(mut self, patience: Duration) -> Result<Disturbed, ChildError> {
        let kind = self.kind;
        let mut injections = Vec::new();
        loop {
            match next_line(kind, &self.lines, patience)? {
                Some(Line::Injection(injection)) => injections.push(injection),
                Some(Line::Done { injected }) if injected == injections.len() as u64 => break,
                Some(other) => {
                    return Err(ChildError::Garbled {
                        kind,
                        line: format!("{other:?}"),
                    });
                }
                None => return Err(self.failed()),
            }
        }
        self.stdin = None;
        Ok(Disturbed {
            header: self.header.clone(),
            injections,
        })
    }

    fn failed(&mut self) -> ChildError {
        self.stdin = None;
        let (status, reason) = end(&mut self.child);
        ChildError::Failed {
            kind: self.kind,
            status,
            reason,
        }
    }
}

impl Drop for ChildHandle {
    fn drop(&mut self) {
        self.stdin = None;
        end(&mut self.child);
    }
}

/// A child that is not ready yet; dropping this kills the child, unless it was taken out.
struct Starting {
    kind: DisturbKind,
    child: Option<Child>,
}

impl Starting {
    /// Starts a thread that forwards the child's lines, so that waiting for one can time out.
    fn listen(&mut self) -> Result<Receiver<io::Result<String>>, ChildError> {
        let stdout = self.child.as_mut().and_then(|child| child.stdout.take());
        let stdout = stdout.ok_or_else(|| ChildError::Start(io::ErrorKind::BrokenPipe.into()))?;
        let (sender, lines) = channel();
        std::thread::Builder::new()
            .name("js-listen".into())
            .spawn(move || hand_on(stdout, &sender))
            .map_err(ChildError::Start)?;
        Ok(lines)
    }

    fn not_ready(&mut self) -> ChildError {
        let reason =
            self.child
                .as_mut()
                .map(end)
                .map_or_else(String::new, |(status, complaint)| {
                    if complaint.is_empty() {
                        format!("the child ended ({status})")
                    } else {
                        complaint
                    }
                });
        self.child = None;
        ChildError::NotReady {
            kind: self.kind,
            reason,
        }
    }
}

impl Drop for Starting {
    fn drop(&mut self) {
        if let Some(child) = self.child.as_mut() {
            end(child);
        }
    }
}

fn hand_on(stdout: ChildStdout, to: &Sender<io::Result<String>>) {
    for line in BufReader::new(stdout).lines() {
        let failed = line.is_err();
        if to.send(line).is_err() || failed {
            return;
        }
    }
}

/// The child's next line; `None` at the end of its output.
fn next_line(
    kind: DisturbKind,
    lines: &Receiver<io::Result<String>>,
    patience: Duration,
) -> Result<Option<Line>, ChildError> {
    match lines.recv_timeout(patience) {
        Ok(Ok(line)) => match serde_json::from_str(&line) {
            Ok(line) => Ok(Some(line)),
            Err(_) => Err(ChildError::Garbled { kind, line }),
        },
        Ok(Err(_)) | Err(RecvTimeoutError::Disconnected) => Ok(None),
        Err(RecvTimeoutError::Timeout) => Err(ChildError::Silent {
            kind,
            seconds: patience.as_secs(),
        }),
    }
}

/// Ends a child whose stdin is closed. Asks first, so that it restores its changes, and kills it if that takes too
/// long. Returns its exit status and its error output.
fn end(child: &mut Child) -> (String, String) {
    child.stdin = None;
    let pid = i32::try_from(child.id()).ok().and_then(Pid::from_raw);
    let mut status = wait(child, Duration::from_millis(500));
    if status.is_none() {
        // The child has not been waited for, so its id cannot belong to another process.
        if let Some(pid) = pid {
            let _ = kill_process(pid, Signal::TERM);
        }
        status = wait(child, GRACE);
    }
    if status.is_none() {
        let _ = child.kill();
        status = child.wait().ok();
    }
    let mut complaint = Vec::new();
    if let Some(stderr) = child.stderr.take() {
        let _ = stderr.take(MAX_COMPLAINT).read_to_end(&mut complaint);
    }
    let status = status.map_or_else(
        || "it cannot be waited for".into(),
        |status| status.to_string(),
    );
    (
        status,
        String::from_utf8_lossy(&complaint).trim().to_owned(),
    )
}

fn wait(child: &mut Child, patience: Duration) -> Option<ExitStatus> {
    let deadline = Instant::now() + patience;
    loop {
        match child.try_wait() {
            Ok(Some(status)) => return Some(status),
            Ok(None) if Instant::now() < deadline => std::thread::sleep(Duration::from_millis(2)),
            Ok(None) | Err(_) => return None,
        }
    }
}
