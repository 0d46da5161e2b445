//! One guest from boot to power-off.

use super::emulator::Emulator;
use super::options::Guest;
use super::{folder, initramfs, kernel};
use anyhow::{Context, bail};
use std::fs::{self, File};
use std::io::{Read, Write};
use std::path::{Path, PathBuf};
use std::process::{Child, Command, Stdio};
use std::sync::{Mutex, PoisonError};
use std::thread::sleep;
use std::time::{Duration, Instant};

/// How often the guest's output and exit are checked.
const LOOK: Duration = Duration::from_millis(50);

/// Timeout for a guest to come up: 5 s on this idle machine, several times that under load.
const COMING_UP: Duration = Duration::from_secs(150);

/// How often a guest is started that does not come up, or that a known defect of the emulator crashed: neither says
/// anything about the tested command.
const STARTS: u32 = 3;

/// Why guests were restarted, since the last query.
static STARTED_AGAIN: Mutex<Vec<String>> = Mutex::new(Vec::new());

/// Why guests were restarted since the last call.
pub fn started_again() -> Vec<String> {
    std::mem::take(&mut *STARTED_AGAIN.lock().unwrap_or_else(PoisonError::into_inner))
}

/// A CPU that the kernel reports stuck for this many seconds does not recover.
const STUCK: u64 = 50;

pub struct Outcome {
    pub code: u8,
    pub stdout: String,
    pub stderr: String,
}

/// Whether the guest's output is shown live.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Show {
    /// Its standard output and error go to ours.
    Live,
    Kept,
}

/// Boots the guest, runs a script in its shell with `out` shared as /out, and powers it off.
///
/// # Errors
/// The guest cannot be created, did not reach the script's end, or exceeded its time limit.
pub fn run(guest: &Guest, script: &str, out: &Path, show: Show) -> anyhow::Result<Outcome> {
    match come_up(guest, script, out, show)? {
        Ended::Itself(outcome) => Ok(outcome),
        Ended::PowerWent(why) => bail!("the guest ended before the command did ({why})"),
    }
}

/// Boots the guest for a script that cuts its own power.
///
/// # Errors
/// The guest cannot be created, reached the script's end, or exceeded its time limit.
pub fn until_power_goes(guest: &Guest, script: &str, out: &Path) -> anyhow::Result<()> {
    match come_up(guest, script, out, Show::Kept)? {
        Ended::Itself(outcome) => bail!(
            "the power never went ({}): {}",
            outcome.code,
            outcome.stderr
        ),
        Ended::PowerWent(_) => Ok(()),
    }
}

/// How a started guest ended.
enum Ended {
    Itself(Outcome),
    /// The machine ended first; contains its last output.
    PowerWent(String),
}

/// Starts the guest until it comes up.
///
/// # Errors
/// See [`run`].
fn come_up(guest: &Guest, script: &str, out: &Path, show: Show) -> anyhow::Result<Ended> {
    // Output already shown cannot be withdrawn.
    let before = (show == Show::Kept)
        .then(|| Before::of(guest, out))
        .transpose()?;
    for start in 1..=STARTS {
        let why = match (boot(guest, script, out, show)?, &before) {
            (Boot::Up(ended), _) => return Ok(ended),
            (Boot::Struck(why), None) => bail!("the emulator struck the guest down: {why}"),
            (Boot::Struck(why), Some(before)) => {
                before.put_back()?;
                why
            }
            (Boot::Never(why), _) => why,
        };
        if start == STARTS {
            bail!("{STARTS} guests came to nothing, the last: {why}");
        }
        eprintln!("lab: the guest came to nothing and is started again: {why}");
        let first = why.lines().next().unwrap_or_default().to_owned();
        STARTED_AGAIN
            .lock()
            .unwrap_or_else(PoisonError::into_inner)
            .push(first);
    }
    bail!("the guest was never started")
}

/// The earlier contents of everything that a guest writes to: a shared folder, a disk.
struct Before<'a> {
    out: &'a Path,
    disk: Option<&'a Path>,
    copy: tempfile::TempDir,
}

impl Before<'_> {
    fn of<'a>(guest: &'a Guest, out: &'a Path) -> anyhow::Result<Before<'a>> {
        fs::create_dir_all(out)?;
        let before = Before {
            out,
            disk: guest.disk.as_deref(),
            copy: tempfile::tempdir_in(folder()?)?,
        };
        copy(&out.join("."), &before.copied_folder())?;
        if let Some(disk) = before.disk {
            copy(disk, &before.copied_disk())?;
        }
        Ok(before)
    }

    fn copied_folder(&self) -> PathBuf {
        self.copy.path().join("out")
    }

    fn copied_disk(&self) -> PathBuf {
        self.copy.path().join("disk")
    }

    fn put_back(&self) -> anyhow::Result<()> {
        fs::remove_dir_all(self.out)?;
        copy(&self.copied_folder().join("."), self.out)?;
        self.disk
            .map_or(Ok(()), |disk| copy(&self.copied_disk(), disk))
    }
}

fn copy(from: &Path, to: &Path) -> anyhow::Result<()> {
    let copied = Command::new("cp")
        .args(["-a", "--sparse=always"])
        .arg(from)
        .arg(to)
        .status();
    if !copied.is_ok_and(|status| status.success()) {
        bail!("{} cannot be copied to {}", from.display(), to.display());
    }
    Ok(())
}

enum Boot {
    /// It ran the script, or a part of it.
    Up(Ended),
    /// It ended, or hung, before the script began; contains its last output.
    Never(String),
    /// The emulator crashed it.
    Struck(String),
}

/// Whether the emulator appears to have crashed the kernel that wrote this console. The kernel changes its own code
/// (for every tracepoint that is switched) through a temporary breakpoint. If the emulator continues with its old
/// translation, a CPU dies of a breakpoint that no longer exists, or retries it forever. With qemu 7.2 this appeared as
/// a crash in the idle loop at a tracepoint, and as two CPUs, one of them idle, that were both stuck for minutes.
fn struck(console: &str) -> bool {
    let stuck = |line: &str| {
        let (_, rest) = line.split_once("soft lockup - CPU#")?;
        let (seconds, _) = rest.split_once("stuck for ")?.1.split_once('s')?;
        seconds.parse::<u64>().ok()
    };
    console.contains("int3: 0000 [#1]")
        || console
            .lines()
            .filter_map(stuck)
            .any(|seconds| seconds >= STUCK)
}

fn boot(guest: &Guest, script: &str, out: &Path, show: Show) -> anyhow::Result<Boot> {
    // One guest at a time: two would only slow each other down.
    let lock = File::create(folder()?.join("lock"))?;
    lock.lock()?;
    let kernel = kernel::get(guest.kernel)?;
    let scratch = tempfile::tempdir_in(folder()?)?;
    let initramfs = initramfs::pack(guest, &kernel, scratch.path())?;
    let shared = scratch.path().join("shared");
    fs::create_dir_all(&shared)?;
    fs::create_dir_all(out)?;
    fs::write(shared.join("command"), script)?;
    let console = scratch.path().join("console");
    let mut qemu = Command::new("setpriv");
    // It ends with this process in any case.
    qemu.args(["--pdeathsig", "KILL"]);
    let emulator = Emulator::get()?;
    emulator.arguments(&mut qemu);
    let struck = |console: &str| emulator.strikes_down() && struck(console);
    qemu.args([
        "-accel",
        "tcg,thread=multi",
        "-cpu",
        "max",
        "-m",
        "1536",
        "-smp",
        &guest.smp,
    ]);
    qemu.arg("-kernel")
        .arg(&kernel.image)
        .arg("-initrd")
        .arg(&initramfs);
    qemu.args(["-append", &guest.command_line()]);
    qemu.args([
        "-display",
        "none",
        "-monitor",
        "none",
        "-no-reboot",
        "-nodefaults",
    ]);
    qemu.arg("-serial")
        .arg(format!("file:{}", console.display()));
    for (tag, path) in [("lab", shared.as_path()), ("out", out)] {
        let path = path.display();
        qemu.arg("-virtfs").arg(format!(
            "local,path={path},mount_tag={tag},security_model=none"
        ));
    }
    qemu.args(&guest.qemu)
        .stdin(Stdio::null())
        .stdout(Stdio::null());
    let mut process = Process(qemu.spawn().context("setpriv cannot be started")?);
    let mut streams = Streams::of(&shared, show);
    let booted = shared.join("booted");
    let began = Instant::now();
    let mut looked = began;
    let ended = loop {
        streams.forward()?;
        if let Some(status) = process.0.try_wait()? {
            break Some(status);
        }
        let limit = if booted.exists() {
            guest.limit
        } else {
            COMING_UP.min(guest.limit)
        };
        if began.elapsed() > limit {
            break None;
        }
        if looked.elapsed() > LOOK * 100 {
            looked = Instant::now();
            if struck(&read(&console)) {
                break None;
            }
        }
        sleep(LOOK);
    };
    drop(process);
    streams.forward()?;
    let code = fs::read_to_string(shared.join("exit"))
        .ok()
        .and_then(|text| text.trim().parse().ok());
    let (stdout, stderr) = (streams.stdout.text(), streams.stderr.text());
    let console = read(&console);
    let seen = || format!("its console:\n{}", tail(&console));
    let said = || after("its standard output", &stdout) + &after("its standard error", &stderr);
    Ok(match (ended, code) {
        (Some(_), Some(code)) => Boot::Up(Ended::Itself(Outcome {
            code,
            stdout,
            stderr,
        })),
        (Some(status), _) if !booted.exists() => Boot::Never(format!("qemu: {status}; {}", seen())),
        (None, _) if !booted.exists() => Boot::Never(format!(
            "it was ended after {:?}; {}",
            began.elapsed(),
            seen()
        )),
        _ if struck(&console) => Boot::Struck(seen()),
        (Some(status), None) => Boot::Up(Ended::PowerWent(format!(
            "qemu: {status}; {}{}",
            seen(),
            said()
        ))),
        (None, _) => bail!(
            "the guest was ended after {:?}; {}{}",
            guest.limit,
            seen(),
            said()
        ),
    })
}

/// Prefixes of kernel error messages.
const COMPLAINTS: [&str; 5] = [
    "Oops",
    "BUG:",
    "int3:",
    "invalid opcode",
    "general protection",
];

fn read(console: &Path) -> String {
    fs::read(console)
        .map(|bytes| String::from_utf8_lossy(&bytes).into_owned())
        .unwrap_or_default()
}

/// The kernel's first error message, and the last lines of its console.
fn tail(console: &str) -> String {
    let lines: Vec<&str> = console.lines().collect();
    let complains = |line: &&str| COMPLAINTS.iter().any(|complaint| line.contains(complaint));
    let first = lines.iter().position(complains).unwrap_or(lines.len());
    let first = &lines[first..lines.len().min(first + 8)];
    [&first.join("\n"), "\n...\n", &last_lines(console)].concat()
}

fn last_lines(text: &str) -> String {
    let lines: Vec<&str> = text.lines().collect();
    lines[lines.len().saturating_sub(30)..].join("\n")
}

fn after(name: &str, text: &str) -> String {
    if text.trim().is_empty() {
        String::new()
    } else {
        format!("\n{name}:\n{}", last_lines(text))
    }
}

/// An emulator process; dropping this ends it by its id.
struct Process(Child);

impl Drop for Process {
    fn drop(&mut self) {
        // If it has already ended and was reaped, both have no effect.
        let _ = self.0.kill();
        let _ = self.0.wait();
    }
}

/// The script's output: files on the shared folder, not changed by a terminal.
struct Streams {
    stdout: Stream,
    stderr: Stream,
}

struct Stream {
    path: PathBuf,
    file: Option<File>,
    seen: Vec<u8>,
    to: Option<Box<dyn Write>>,
}

impl Streams {
    fn of(shared: &Path, show: Show) -> Streams {
        let live = show == Show::Live;
        let stream = |name: &str, to: Box<dyn Write>| Stream {
            path: shared.join(name),
            file: None,
            seen: Vec::new(),
            to: live.then_some(to),
        };
        Streams {
            stdout: stream("stdout", Box::new(std::io::stdout())),
            stderr: stream("stderr", Box::new(std::io::stderr())),
        }
    }

    fn forward(&mut self) -> anyhow::Result<()> {
        self.stdout.forward()?;
        self.stderr.forward()
    }
}

impl Stream {
    fn forward(&mut self) -> anyhow::Result<()> {
        if self.file.is_none() {
            self.file = File::open(&self.path).ok();
        }
        let Some(file) = &mut self.file else {
            return Ok(());
        };
        let before = self.seen.len();
        file.read_to_end(&mut self.seen)?;
        if let Some(to) = &mut self.to {
            to.write_all(&self.seen[before..])?;
            to.flush()?;
        }
        Ok(())
    }

    fn text(&self) -> String {
        String::from_utf8_lossy(&self.seen).into_owned()
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_kernel_that_the_emulator_ended_differs_from_one_that_we_ended() {
        assert!(struck(
            "[  136.3] Oops: int3: 0000 [#1] PREEMPT SMP NOPTI\n[  136.3] CPU: 1"
        ));
        assert!(struck(
            "[  371.6] watchdog: BUG: soft lockup - CPU#0 stuck for 71s! [writer:2980]"
        ));
        assert!(!struck(
            "[  371.6] watchdog: BUG: soft lockup - CPU#0 stuck for 23s! [writer:2980]"
        ));
        assert!(!struck(
            "[  136.3] Kernel panic - not syncing: Fatal exception"
        ));
        assert!(!struck("[  136.3] BUG: kernel NULL pointer dereference"));
    }
}
