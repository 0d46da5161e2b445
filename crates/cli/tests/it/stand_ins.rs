//! What the commands of documents need on this machine: a thread of each name, a process for each number, programs, logs.

use crate::live::Ended;
use std::fs;
use std::os::unix::fs::PermissionsExt;
use std::path::Path;
use std::process::Command;
use std::sync::Arc;
use std::sync::atomic::{AtomicBool, Ordering};
use std::thread::JoinHandle;
use std::time::Duration;

/// The process id that documents show.
const SOME_PID: &str = "1234";
const PROGRAMS: [&str; 4] = ["bench", "benchmark", "my-server", "program"];
/// An entry each, within the run `wbstyt`.
const LOGS: [(&str, &str); 4] = [
    (
        "gc.log",
        "[2026-11-28T06:56:10.100+0000][info][gc] GC(1) Pause Young (Normal) 24M->10M(64M) 12.300ms\n",
    ),
    (
        "slow.csv",
        "time,duration_ms,name\n2026-11-28T06:56:10.200Z,12,GET /x\n",
    ),
    ("app.log", "2026-11-28T06:56:10.300Z request 7 took 12ms\n"),
    ("access.log", "28/Nov/2026:06:56:10 +0000 GET /x\n"),
];

/// Writes the programs and the logs.
pub fn files(dir: &Path) {
    for name in PROGRAMS {
        let path = dir.join(name);
        fs::write(&path, "#!/bin/sh\nsleep 0.05\n").unwrap();
        fs::set_permissions(&path, fs::Permissions::from_mode(0o755)).unwrap();
    }
    for (name, text) in LOGS {
        fs::write(dir.join(name), text).unwrap();
    }
}

/// The threads that one command follows. They end with it.
pub struct Followed {
    stop: Arc<AtomicBool>,
    threads: Vec<JoinHandle<()>>,
    _busy: Option<Ended>,
}

impl Followed {
    /// Starts them, and puts this process in the place of a document's.
    pub fn of(args: &mut [String]) -> Followed {
        let stop = Arc::new(AtomicBool::new(false));
        let follows = ["record", "attach"].contains(&args[0].as_str());
        let own = args
            .iter()
            .position(|arg| arg == "--" || !follows)
            .unwrap_or(args.len());
        let mut threads = Vec::new();
        for at in 1..own {
            if !["--comm", "--for", "--pid"].contains(&args[at - 1].as_str()) {
                continue;
            }
            if args[at] == SOME_PID {
                args[at] = std::process::id().to_string();
            } else {
                let stop = Arc::clone(&stop);
                let sleeps = move || {
                    while !stop.load(Ordering::Relaxed) {
                        std::thread::sleep(Duration::from_millis(1));
                    }
                };
                let named = std::thread::Builder::new().name(args[at].clone());
                threads.push(named.spawn(sleeps).unwrap());
            }
        }
        // Without a name, a CPU's owner is the thread that has most of it.
        let needs_owner = args.starts_with(&["record", "none"].map(String::from))
            && !args.iter().any(|arg| arg == "--for");
        let busy = needs_owner.then(|| {
            let cpu = jitterscope_testing::highest_cpu().to_string();
            let spins = ["-c", &cpu, "sh", "-c", "while :; do :; done"];
            Ended(Command::new("taskset").args(spins).spawn().unwrap())
        });
        Followed {
            stop,
            threads,
            _busy: busy,
        }
    }
}

impl Drop for Followed {
    fn drop(&mut self) {
        self.stop.store(true, Ordering::Relaxed);
        for thread in self.threads.drain(..) {
            let _ = thread.join();
        }
    }
}
