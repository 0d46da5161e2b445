//! Screens as a terminal receives them, and their allowed contents.

use rustix::pty::{OpenptFlags, grantpt, openpt, ptsname, unlockpt};
use std::ffi::OsString;
use std::fs::{File, OpenOptions};
use std::io::{Read, Write};
use std::path::Path;
use std::process::{Command, Stdio};

/// The output of a command.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Place {
    /// To pipes, with colours anyway.
    Pipes,
    /// To a terminal whose user answers no.
    Terminal,
}

/// The output of a command: for pipes, stdout and then stderr.
pub fn screen(place: Place, args: &[OsString], folder: &Path) -> String {
    let mut command = Command::new(env!("CARGO_BIN_EXE_jitterscope"));
    command
        .args(args)
        .current_dir(folder)
        .env("JITTERSCOPE_RUNS", folder.join("runs"));
    // The user to whom a change of the machine is attributed.
    command.env("SUDO_USER", crate::hostile_runs::NAME);
    command
        .env("TERM", "xterm-256color")
        .env_remove("NO_COLOR")
        .env_remove("INFLUX_TOKEN");
    let bytes = match place {
        Place::Pipes => {
            let output = command
                .arg("--color=always")
                .stdin(Stdio::null())
                .output()
                .unwrap();
            [output.stdout, output.stderr].concat()
        }
        Place::Terminal => on_terminal(command),
    };
    String::from_utf8(bytes).unwrap_or_else(|e| panic!("{args:?} writes what is no UTF-8: {e}"))
}

fn on_terminal(mut command: Command) -> Vec<u8> {
    let master = openpt(OpenptFlags::RDWR | OpenptFlags::NOCTTY).unwrap();
    grantpt(&master).unwrap();
    unlockpt(&master).unwrap();
    let name = ptsname(&master, Vec::new()).unwrap().into_string().unwrap();
    let slave = OpenOptions::new()
        .read(true)
        .write(true)
        .open(name)
        .unwrap();
    let side = || Stdio::from(slave.try_clone().unwrap());
    command.stdin(side()).stdout(side()).stderr(side());
    let mut child = command.spawn().unwrap();
    // Only the command keeps the terminal open; closing it ends the reading.
    drop((command, slave));
    let mut master = File::from(master);
    master.write_all(b"n\n").unwrap();
    let mut bytes = Vec::new();
    let mut part = [0; 4096];
    while let Ok(n @ 1..) = master.read(&mut part) {
        bytes.extend_from_slice(&part[..n]);
    }
    child.wait().unwrap();
    // The terminal driver ends lines this way.
    String::from_utf8_lossy(&bytes)
        .replace("\r\n", "\n")
        .into_bytes()
}

/// Colours of jitterscope and its argument parser, and their ends.
const COLOURS: [&str; 17] = [
    "\u{1b}[0m",
    "\u{1b}[1m",
    "\u{1b}[2m",
    "\u{1b}[4m",
    "\u{1b}[22m",
    "\u{1b}[31m",
    "\u{1b}[32m",
    "\u{1b}[33m",
    "\u{1b}[36m",
    "\u{1b}[39m",
    "\u{1b}[36;1m",
    "\u{1b}[31;1m",
    "\u{1b}[32;1m",
    "\u{1b}[1;31m",
    "\u{1b}[1;32m",
    "\u{1b}[1;33m",
    "\u{1b}[1;36m",
];

/// What is wrong with a screen; `None` if it has only text, lines and known colours.
pub fn harm(screen: &str) -> Option<String> {
    // No known colour precedes this word, but a hostile one does.
    if screen.contains("\u{1b}[31mRED") {
        return Some("a name gives itself a colour".into());
    }
    // The progress line is erased and drawn again.
    let mut text = screen.replace("\r\u{1b}[2K", "\n");
    for colour in COLOURS {
        text = text.replace(colour, "");
    }
    if let Some(line) = text
        .lines()
        .find(|line| line.trim_start().starts_with("FORGED"))
    {
        return Some(format!("a name has begun a line: {line}"));
    }
    let bad = |c: &char| {
        (c.is_control() && *c != '\n')
            || matches!(c, '\u{200b}'..='\u{200f}' | '\u{2028}'..='\u{202e}' | '\u{2060}'..='\u{206f}')
            || matches!(
                c,
                '\u{ad}' | '\u{61c}' | '\u{feff}' | '\u{e0000}'..='\u{e007f}'
            )
    };
    text.chars().find(bad).map(|c| {
        let at = text.find(c).unwrap_or(0);
        let around: String = text[at..].chars().take(30).collect();
        format!("{} gets out: {around:?}", c.escape_unicode())
    })
}
