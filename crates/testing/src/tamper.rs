//! Imitates another root process that writes to the controls of our tracing instances, as `trace-cmd reset -a` does.

use std::path::{Path, PathBuf};
use std::thread::sleep;
use std::time::{Duration, Instant};
use std::{fs, io};

/// How long to wait for instances.
const PATIENCE: Duration = Duration::from_secs(10);

#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Tamper {
    Off,
    /// Switches all events off.
    NoEvents,
    /// Stamps records with another clock.
    Clock,
    /// Records on no CPU.
    NoCpu,
    /// Records only a process that does not exist.
    OnePid,
    /// Sets everything to the values of a new instance, and switches recording on again at the end.
    Reset,
}

impl Tamper {
    pub const ALL: [Tamper; 6] = [
        Tamper::Off,
        Tamper::NoEvents,
        Tamper::Clock,
        Tamper::NoCpu,
        Tamper::OnePid,
        Tamper::Reset,
    ];

    /// The writes, in order.
    fn writes(self) -> &'static [(&'static str, &'static str)] {
        match self {
            Tamper::Off => &[("tracing_on", "0")],
            Tamper::NoEvents => &[("set_event", "")],
            Tamper::Clock => &[("trace_clock", "global")],
            Tamper::NoCpu => &[("tracing_cpumask", "0")],
            Tamper::OnePid => &[("set_event_pid", "999999")],
            Tamper::Reset => &[
                ("tracing_on", "0"),
                ("current_tracer", "nop"),
                ("events/enable", "0"),
                ("set_event_pid", ""),
                ("trace", ""),
                ("tracing_on", "1"),
            ],
        }
    }

    /// The first file written.
    #[must_use]
    pub fn file(self) -> &'static str {
        self.writes()[0].0
    }

    /// Applies it to an instance.
    ///
    /// # Errors
    /// The kernel refuses, or the instance is gone.
    pub fn on(self, instance: &Path) -> io::Result<()> {
        self.writes().iter().try_for_each(|(file, value)| {
            let mut options = fs::OpenOptions::new();
            // Writes as a shell does: opening a list file with truncation clears it first.
            let mut file = options
                .write(true)
                .truncate(true)
                .open(instance.join(file))?;
            io::Write::write_all(&mut file, value.as_bytes())
        })
    }
}

/// The path of tracefs, as this process sees it.
#[must_use]
pub fn tracefs() -> Option<PathBuf> {
    let mounts = fs::read_to_string("/proc/self/mountinfo").ok()?;
    let line = mounts.lines().find(|line| line.contains(" - tracefs "))?;
    Some(line.split(' ').nth(4)?.into())
}

/// The tracing instances of one of our processes.
#[must_use]
pub fn instances_of(pid: u32) -> Vec<PathBuf> {
    let folder = tracefs().and_then(|root| fs::read_dir(root.join("instances")).ok());
    let is_its = |path: &PathBuf| {
        path.file_name().is_some_and(|name| {
            name.to_string_lossy()
                .starts_with(&format!("jitterscope-{pid}-"))
        })
    };
    let entries = folder.into_iter().flatten().flatten();
    entries.map(|entry| entry.path()).filter(is_its).collect()
}

/// Waits until there are `count` instances and all of them record.
///
/// # Errors
/// The instances do not appear in time.
pub fn recording_instances_of(pid: u32, count: usize) -> io::Result<Vec<PathBuf>> {
    let until = Instant::now() + PATIENCE;
    loop {
        let found = instances_of(pid);
        let is_on = |path: &PathBuf| {
            fs::read_to_string(path.join("tracing_on")).is_ok_and(|text| text.trim() == "1")
        };
        if found.len() >= count && found.iter().all(is_on) {
            return Ok(found);
        }
        if Instant::now() > until {
            return Err(io::ErrorKind::TimedOut.into());
        }
        sleep(Duration::from_millis(5));
    }
}
