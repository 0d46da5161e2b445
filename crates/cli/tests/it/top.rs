//! `top` in a real terminal: an emulator reads what it draws, and keys are typed. Recordings need root and tracefs;
//! without them, the tests print a note and are skipped.

use crate::endings::{in_terminal, terminal};
use crate::live;
use crate::watch::{PATIENCE, THIEF, steal};

use jitterscope_store::RunReader;
use jitterscope_testing::{highest_cpu, instances_of};
use live::{can_trace, jitterscope, json, turn};
use rustix::event::{PollFd, PollFlags, Timespec, poll};
use rustix::termios::{LocalModes, Winsize, tcgetattr, tcsetwinsize};
use std::fs::File;
use std::io::{Read, Write};
use std::num::NonZero;
use std::path::Path;
use std::process::{Child, Command};
use std::time::{Duration, Instant};

const LINES: u16 = 24;
const COLUMNS: u16 = 80;

fn at_least_one(n: u16) -> NonZero<u16> {
    NonZero::new(n).unwrap()
}

/// A program in a terminal, with the emulator of its screen.
struct Terminal {
    master: Option<File>,
    /// Keeps the terminal open when the program has ended.
    slave: Option<File>,
    child: Child,
    screen: vt100::Parser,
}

impl Terminal {
    /// Starts `top` with a spinning probe on the highest CPU, and waits until it measures.
    fn top(runs: &Path, more: &[&str]) -> Terminal {
        let (master, slave) = terminal();
        let size = Winsize {
            ws_row: LINES,
            ws_col: COLUMNS,
            ws_xpixel: 0,
            ws_ypixel: 0,
        };
        tcsetwinsize(&slave, size).unwrap();
        let cpu = highest_cpu().to_string();
        let args = ["top", "--cpus", &cpu, "--probe", "spin"];
        let mut top = Terminal {
            child: in_terminal(runs, &slave, &[], &[&args[..], more].concat()),
            master: Some(File::from(master)),
            slave: Some(slave),
            screen: vt100::Parser::new(at_least_one(LINES), at_least_one(COLUMNS), 0),
        };
        top.shows("own cost");
        top
    }

    fn text(&self) -> String {
        self.screen.screen().contents()
    }

    /// Reads what it draws until the screen contains this text.
    fn shows(&mut self, text: &str) {
        let until = Instant::now() + PATIENCE;
        while !self.text().contains(text) {
            let left = until.saturating_duration_since(Instant::now());
            assert!(
                !left.is_zero() && self.child.try_wait().unwrap().is_none(),
                "the screen does not show '{text}':\n{}",
                self.text()
            );
            self.read(Duration::from_millis(100));
        }
    }

    fn read(&mut self, patience: Duration) {
        let Some(master) = &mut self.master else {
            return std::thread::sleep(patience);
        };
        let patience = Timespec::try_from(patience).unwrap();
        let mut fds = [PollFd::new(master, PollFlags::IN)];
        if poll(&mut fds, Some(&patience)).unwrap() == 0 {
            return;
        }
        let mut part = [0; 4096];
        let n = master.read(&mut part).unwrap_or(0);
        self.screen.process(&part[..n]);
    }

    fn types(&mut self, keys: &str) {
        let master = self.master.as_mut().unwrap();
        master.write_all(keys.as_bytes()).unwrap();
    }

    fn is_raw(&self) -> bool {
        let modes = tcgetattr(self.slave.as_ref().unwrap()).unwrap().local_modes;
        !modes.contains(LocalModes::ICANON)
    }

    /// Waits for the end, and returns whether it succeeded.
    fn ends(&mut self) -> bool {
        let until = Instant::now() + PATIENCE;
        loop {
            self.read(Duration::from_millis(20));
            if let Some(status) = self.child.try_wait().unwrap() {
                self.read(Duration::from_millis(100));
                return status.success();
            }
            assert!(Instant::now() < until, "it does not end:\n{}", self.text());
        }
    }
}

impl Drop for Terminal {
    fn drop(&mut self) {
        let _ = self.child.kill();
        let _ = self.child.wait();
    }
}

#[test]
fn a_terminal_shows_the_thief_with_its_knobs_and_timeline_and_is_given_back() {
    let _turn = turn();
    if !can_trace() {
        return;
    }
    let dir = tempfile::tempdir().unwrap();
    let folder = dir.path().join("runs");
    let cpu = highest_cpu();
    let mut top = Terminal::top(&folder, &["--every", "200ms"]);
    assert!(top.is_raw() && top.screen.screen().alternate_screen());

    let thief = dir.path().to_path_buf();
    let thief = std::thread::spawn(move || steal(&thief, cpu, Duration::from_secs(12)));
    top.types("/wt-thi");
    top.types("\r");
    top.shows(&format!("thread {THIEF}"));
    top.types("\r");
    // Its owner and what helps.
    top.shows("cgroup");
    top.shows("cpuset-part: removes it");
    top.types("\u{1b}");
    top.shows("last minute");
    // The longest of its stalls.
    top.types("\t");
    top.shows("began (UTC)");
    top.types("\r");
    top.shows("a stall of");
    top.types("t");
    top.shows("saved /");
    top.shows("first clock read after");
    thief.join().unwrap();
    top.types("q");
    assert!(top.ends(), "{}", top.text());
    assert!(!top.is_raw() && !top.screen.screen().alternate_screen());
    assert!(top.text().contains("saved /"), "{}", top.text());
    assert!(instances_of(top.child.id()).is_empty());

    // What it saved is an ordinary run.
    let stored = json(&jitterscope(&folder, &["list", "--json"]));
    let [stored] = stored["runs"].as_array().unwrap().as_slice() else {
        panic!("{stored:?}");
    };
    let run = stored["id"].as_str().unwrap();
    let report = jitterscope(&folder, &["report", run]);
    let text = String::from_utf8_lossy(&report.stdout).into_owned();
    assert!(report.status.success() && text.contains(THIEF), "{text}");
}

#[test]
fn a_signal_ends_the_screen_and_gives_the_terminal_back() {
    let _turn = turn();
    if !can_trace() {
        return;
    }
    let dir = tempfile::tempdir().unwrap();
    let mut top = Terminal::top(dir.path(), &[]);
    let pid = top.child.id().to_string();
    let killed = Command::new("kill").args(["-TERM", &pid]).status();
    assert!(killed.unwrap().success());
    assert!(top.ends(), "{}", top.text());
    assert!(!top.is_raw() && !top.screen.screen().alternate_screen());
    let history = dir.path().join(".watch");
    let left = std::fs::read_dir(history).into_iter().flatten().flatten();
    let left: Vec<_> = left.map(|entry| entry.path()).collect();
    assert!(
        left.iter().all(|path| RunReader::open(path).is_err()),
        "{left:?}"
    );
}

#[test]
fn without_a_terminal_it_says_what_to_use() {
    let dir = tempfile::tempdir().unwrap();
    let refused = jitterscope(dir.path(), &["top"]);
    let text = String::from_utf8_lossy(&refused.stderr).into_owned();
    assert_eq!(refused.status.code(), Some(2), "{text}");
    assert!(text.contains("needs a terminal"), "{text}");
}

#[test]
fn a_closing_terminal_ends_it() {
    let _turn = turn();
    if !can_trace() {
        return;
    }
    let dir = tempfile::tempdir().unwrap();
    let mut top = Terminal::top(dir.path(), &[]);
    (top.master, top.slave) = (None, None);
    top.ends();
    assert!(instances_of(top.child.id()).is_empty());
}
