//! One guest from boot to power-off.

use super::options::Guest;
use super::{folder, initramfs, kernel};
use anyhow::{Context, bail};
use std::fs::{self, File};
use std::io::{Read, Write};
use std::path::{Path, PathBuf};
use std::process::{Child, Command, Stdio};
use std::thread::sleep;
use std::time::{Duration, Instant};

/// How often we look whether the guest has written or ended.
const LOOK: Duration = Duration::from_millis(50);

/// How long a guest may take to come up: 5 s here, several times that where others load the machine.
const COMING_UP: Duration = Duration::from_secs(150);

/// How often a guest is started that does not come up, or that the emulator struck down: neither says anything
/// about what is tried. An emulated CPU that waited for the host at a bad moment can hang or panic as it boots.
const STARTS: u32 = 3;

/// What the kernel says where the emulator struck it down. The kernel changes its own code (every tracepoint that
/// is switched on or off) by way of a breakpoint, which is gone before the change is over; qemu before 8.1
/// translates code without a lock on its page, and can keep the breakpoint for good.
const STALE_BREAKPOINT: &str = "int3: 0000 [#1]";

/// How a command in a guest ended.
pub struct Outcome {
    /// Its exit code.
    pub code: u8,
    /// Its standard output.
    pub stdout: String,
    /// Its standard error.
    pub stderr: String,
}

/// Whether what the guest writes is shown as it comes.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Show {
    /// Its standard output and error go to ours.
    Live,
    /// It is only kept.
    Kept,
}

/// Boots it, runs a script for its shell with `out` shared as /out, and powers it off.
///
/// # Errors
/// The guest cannot be made, never came as far as the script's end, or took longer than its limit.
pub fn run(guest: &Guest, script: &str, out: &Path, show: Show) -> anyhow::Result<Outcome> {
    match come_up(guest, script, out, show)? {
        Ended::Itself(outcome) => Ok(outcome),
        Ended::PowerWent(why) => bail!("the guest ended before the command did ({why})"),
    }
}

/// Boots it for a script that cuts its own power.
///
/// # Errors
/// The guest cannot be made, came as far as the script's end, or took longer than its limit.
pub fn until_power_goes(guest: &Guest, script: &str, out: &Path) -> anyhow::Result<()> {
    match come_up(guest, script, out, Show::Kept)? {
        Ended::Itself(outcome) => bail!("the power never went ({}): {}", outcome.code, outcome.stderr),
        Ended::PowerWent(_) => Ok(()),
    }
}

/// How a guest ended that came up.
enum Ended {
    /// The command came to its end.
    Itself(Outcome),
    /// The machine ended first; what was to be seen of that.
    PowerWent(String),
}

/// Starts it until it comes up.
///
/// # Errors
/// As [`run`].
fn come_up(guest: &Guest, script: &str, out: &Path, show: Show) -> anyhow::Result<Ended> {
    // What was shown cannot be taken back, nor what was written to a disk.
    let again = show == Show::Kept && !guest.has_disk();
    let before = again.then(|| Before::of(out)).transpose()?;
    for start in 1..=STARTS {
        let why = match (boot(guest, script, out, show)?, &before) {
            (Boot::Up(Ended::PowerWent(why)), Some(before)) if why.contains(STALE_BREAKPOINT) => {
                before.put_back()?;
                why
            }
            (Boot::Up(ended), _) => return Ok(ended),
            (Boot::Never(why), _) => why,
        };
        if start == STARTS {
            bail!("{STARTS} guests came to nothing, the last: {why}");
        }
        eprintln!("lab: the guest came to nothing and is started again: {why}");
    }
    bail!("the guest was never started")
}

/// A shared folder as it was before a guest wrote to it.
struct Before<'a> {
    out: &'a Path,
    copy: tempfile::TempDir,
}

impl Before<'_> {
    fn of(out: &Path) -> anyhow::Result<Before<'_>> {
        fs::create_dir_all(out)?;
        let copy = tempfile::tempdir_in(folder()?)?;
        copy_files(out, copy.path())?;
        Ok(Before { out, copy })
    }

    fn put_back(&self) -> anyhow::Result<()> {
        fs::remove_dir_all(self.out)?;
        fs::create_dir_all(self.out)?;
        copy_files(self.copy.path(), self.out)
    }
}

fn copy_files(from: &Path, to: &Path) -> anyhow::Result<()> {
    let copied = Command::new("cp").arg("-a").arg(from.join(".")).arg(to).status();
    if !copied.is_ok_and(|status| status.success()) {
        bail!("{} cannot be copied", from.display());
    }
    Ok(())
}

/// How one start of a guest ended.
enum Boot {
    /// It ran the command, or a part of it.
    Up(Ended),
    /// It ended, or hung, before the command began; what was to be seen of that.
    Never(String),
}

fn boot(guest: &Guest, script: &str, out: &Path, show: Show) -> anyhow::Result<Boot> {
    // One at a time: two would only slow one another down.
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
    // It ends with us, however we end.
    qemu.args(["--pdeathsig", "KILL", "qemu-system-x86_64"]);
    qemu.args(["-accel", "tcg,thread=multi", "-cpu", "max", "-m", "1536", "-smp", &guest.smp]);
    qemu.arg("-kernel").arg(&kernel.image).arg("-initrd").arg(&initramfs);
    qemu.args(["-append", &guest.command_line()]);
    qemu.args(["-display", "none", "-monitor", "none", "-no-reboot", "-nodefaults"]);
    qemu.arg("-serial").arg(format!("file:{}", console.display()));
    for (tag, path) in [("lab", shared.as_path()), ("out", out)] {
        let path = path.display();
        qemu.arg("-virtfs").arg(format!("local,path={path},mount_tag={tag},security_model=none"));
    }
    qemu.args(&guest.qemu).stdin(Stdio::null()).stdout(Stdio::null());
    let mut process = Process(qemu.spawn().context("setpriv cannot be started")?);
    let mut streams = Streams::of(&shared, show);
    let booted = shared.join("booted");
    let began = Instant::now();
    let ended = loop {
        streams.forward()?;
        if let Some(status) = process.0.try_wait()? {
            break Some(status);
        }
        let limit = if booted.exists() { guest.limit } else { COMING_UP.min(guest.limit) };
        if began.elapsed() > limit {
            break None;
        }
        sleep(LOOK);
    };
    drop(process);
    streams.forward()?;
    let code = fs::read_to_string(shared.join("exit")).ok().and_then(|text| text.trim().parse().ok());
    let (stdout, stderr) = (streams.stdout.text(), streams.stderr.text());
    let seen = || format!("its console:\n{}", tail(&console));
    let said = || after("its standard output", &stdout) + &after("its standard error", &stderr);
    Ok(match (ended, code) {
        (Some(_), Some(code)) => Boot::Up(Ended::Itself(Outcome { code, stdout, stderr })),
        (Some(status), _) if !booted.exists() => Boot::Never(format!("qemu: {status}; {}", seen())),
        (None, _) if !booted.exists() => {
            Boot::Never(format!("it was ended after {:?}; {}", began.elapsed(), seen()))
        }
        (Some(status), None) => Boot::Up(Ended::PowerWent(format!("qemu: {status}; {}{}", seen(), said()))),
        (None, _) => bail!("the guest was ended after {:?}; {}{}", guest.limit, seen(), said()),
    })
}

/// What a kernel's complaint begins with.
const COMPLAINTS: [&str; 5] = ["Oops", "BUG:", "int3:", "invalid opcode", "general protection"];

/// What the kernel first complained of, and the last lines of its console.
fn tail(console: &Path) -> String {
    let text =
        fs::read(console).map(|bytes| String::from_utf8_lossy(&bytes).into_owned()).unwrap_or_default();
    let lines: Vec<&str> = text.lines().collect();
    let complains = |line: &&str| COMPLAINTS.iter().any(|complaint| line.contains(complaint));
    let first = lines.iter().position(|line| complains(&line)).unwrap_or(lines.len());
    let first = &lines[first..lines.len().min(first + 8)];
    [&first.join("\n"), "\n...\n", &last_lines(&text)].concat()
}

fn last_lines(text: &str) -> String {
    let lines: Vec<&str> = text.lines().collect();
    lines[lines.len().saturating_sub(30)..].join("\n")
}

fn after(name: &str, text: &str) -> String {
    if text.trim().is_empty() { String::new() } else { format!("\n{name}:\n{}", last_lines(text)) }
}

/// An emulator, which is ended when we are done with it, by its own number.
struct Process(Child);

impl Drop for Process {
    fn drop(&mut self) {
        // One that has ended by itself was waited for: both are then without effect.
        let _ = self.0.kill();
        let _ = self.0.wait();
    }
}

/// What the command writes: files on the shared folder, which no line discipline has changed.
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
        let Some(file) = &mut self.file else { return Ok(()) };
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
