//! The child that sends the hours of a watch. It runs as the same user: the folder of hours is closed to others.

use super::fleet;
use super::watch_args::UploadArgs;
use crate::output;
use jitterscope_model::{UploadProblem, UploadStatus, visible};
use jitterscope_platform::{name_current_thread, set_nice};
use jitterscope_recording::watch::Published;
use std::ffi::OsString;
use std::io::{self, BufRead, BufReader, Read};
use std::path::{Path, PathBuf};
use std::process::{ChildStdin, Command, ExitStatus, Stdio};
use std::sync::atomic::{AtomicBool, Ordering};
use std::sync::{Arc, Mutex, MutexGuard, PoisonError};
use std::thread::{self, JoinHandle};
use std::time::Duration;

/// How long a child that ended stays away.
const AGAIN: Duration = Duration::from_secs(60);
/// The longest line of a child, bytes.
const LINE: u64 = 64 << 10;
/// The stack of a thread: it may be locked in memory.
const STACK: usize = 256 << 10;

/// The uploads of a watch. Dropping it ends the child.
pub struct Uploads {
    program: PathBuf,
    arguments: Vec<OsString>,
    shared: Arc<Shared>,
    thread: Option<JoinHandle<()>>,
}

/// What the thread that reads the child's lines shares with the one that ends it.
#[derive(Default)]
struct Shared {
    is_ending: AtomicBool,
    /// The child lives as long as this is open.
    alive: Mutex<Option<ChildStdin>>,
}

impl Uploads {
    /// What the arguments ask for; `None` if nothing is sent.
    ///
    /// # Errors
    /// The program that sends is missing.
    pub fn of(args: &UploadArgs, history: &Path, runs: &Path) -> anyhow::Result<Option<Uploads>> {
        let Some(url) = &args.upload else {
            return Ok(None);
        };
        let mut arguments: Vec<OsString> = ["upload", url, "--child"].map(OsString::from).into();
        if let Some(cluster) = &args.cluster {
            arguments.extend(["--cluster".into(), cluster.into()]);
        }
        arguments.extend(["--watch".into(), history.into()]);
        if args.upload_runs {
            arguments.extend(["--runs".into(), runs.into()]);
        }
        Ok(Some(Uploads {
            program: fleet::program()?,
            arguments,
            shared: Arc::default(),
            thread: None,
        }))
    }

    /// Starts the child, and again whenever it has ended, with the affinity of the caller.
    pub fn begin(&mut self, published: &Published) {
        let child = Sender {
            program: self.program.clone(),
            arguments: self.arguments.clone(),
            shared: Arc::clone(&self.shared),
            published: published.clone(),
            before: UploadStatus::default(),
        };
        let thread = thread::Builder::new().name("js-uploads".into());
        match thread.stack_size(STACK).spawn(move || child.run()) {
            Ok(thread) => self.thread = Some(thread),
            Err(error) => output::talk(format_args!("uploads: no thread: {error}")),
        }
    }
}

impl Drop for Uploads {
    fn drop(&mut self) {
        self.shared.is_ending.store(true, Ordering::Release);
        drop(self.shared.held().take());
        if let Some(thread) = self.thread.take() {
            thread.thread().unpark();
            let _ = thread.join();
        }
    }
}

impl Shared {
    fn held(&self) -> MutexGuard<'_, Option<ChildStdin>> {
        self.alive.lock().unwrap_or_else(PoisonError::into_inner)
    }

    fn is_ending(&self) -> bool {
        self.is_ending.load(Ordering::Acquire)
    }
}

/// The thread's part.
struct Sender {
    program: PathBuf,
    arguments: Vec<OsString>,
    shared: Arc<Shared>,
    published: Published,
    /// The counts of children that have ended: what is published only grows.
    before: UploadStatus,
}

impl Sender {
    fn run(mut self) {
        name_current_thread("js-uploads");
        set_nice(19);
        self.published.uploads(self.before.clone());
        while !self.shared.is_ending() {
            let why = match self.one_child() {
                Ok(ended) => ended.to_string(),
                Err(error) => error.to_string(),
            };
            if self.shared.is_ending() {
                break;
            }
            let text = format!("jitterscope-fleet: {why}");
            output::talk(format_args!("uploads: {}", visible(&text)));
            self.before.problems += 1;
            self.before.problem = Some(UploadProblem {
                kind: "local".into(),
                text,
            });
            self.published.uploads(self.before.clone());
            thread::park_timeout(AGAIN);
        }
    }

    /// Runs a child until it ends.
    fn one_child(&mut self) -> io::Result<ExitStatus> {
        let mut child = Command::new(&self.program)
            .args(&self.arguments)
            // It is no part of the service.
            .env_remove("NOTIFY_SOCKET")
            .env_remove("WATCHDOG_USEC")
            .env_remove("WATCHDOG_PID")
            .stdin(Stdio::piped())
            .stdout(Stdio::piped())
            .spawn()?;
        *self.shared.held() = child.stdin.take();
        if self.shared.is_ending() {
            drop(self.shared.held().take());
        }
        let mut last = self.before.clone();
        if let Some(out) = child.stdout.take() {
            let mut out = BufReader::new(out);
            loop {
                let mut line = Vec::new();
                let read = out.by_ref().take(LINE).read_until(b'\n', &mut line);
                if !read.is_ok_and(|bytes| bytes > 0) {
                    break;
                }
                if let Ok(status) = serde_json::from_slice::<UploadStatus>(&line) {
                    last = sum(&self.before, status);
                    self.published.uploads(last.clone());
                }
            }
        }
        self.before = last;
        child.wait()
    }
}

/// The status of a child, with the counts of those before it.
fn sum(before: &UploadStatus, now: UploadStatus) -> UploadStatus {
    UploadStatus {
        sent_hours: before.sent_hours + now.sent_hours,
        sent_runs: before.sent_runs + now.sent_runs,
        sent_bytes: before.sent_bytes + now.sent_bytes,
        problems: before.problems + now.problems,
        complete_s: now.complete_s.or(before.complete_s),
        ..now
    }
}
