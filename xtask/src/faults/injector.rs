//! The injectors: compiling, starting, and reading their output.

use crate::shell;
use anyhow::{Context, ensure};
use serde_json::Value;
use std::io::{BufRead, BufReader, Write};
use std::path::{Path, PathBuf};
use std::process::{Child, ChildStdout, Command, Stdio};

pub fn compiled(folder: &Path) -> anyhow::Result<PathBuf> {
    let sources = shell::root().join("xtask/src/faults/injectors");
    let mut files: Vec<_> = std::fs::read_dir(&sources)?
        .filter_map(|entry| Some(entry.ok()?.path()))
        .filter(|path| path.extension().is_some_and(|ext| ext == "c"))
        .collect();
    files.sort();
    let to = folder.join("injector");
    let status = Command::new("cc")
        .args(["-O1", "-Wall", "-Werror", "-pthread", "-o"])
        .arg(&to)
        .args(files)
        .status()
        .context("the C compiler cannot be started")?;
    ensure!(status.success(), "the injectors cannot be compiled");
    Ok(to)
}

/// A running injector; dropping this ends it.
pub struct Injector {
    child: Child,
    lines: BufReader<ChildStdout>,
    /// The id of the disturbed thread; 0 for a probe.
    pub victim: u64,
}

impl Injector {
    /// Starts it without injecting yet.
    pub fn start(program: &Path, args: &[&str]) -> anyhow::Result<Injector> {
        let mut child = Command::new(program)
            .args(args)
            .stdin(Stdio::piped())
            .stdout(Stdio::piped())
            .spawn()
            .with_context(|| program.display().to_string())?;
        let lines = BufReader::new(child.stdout.take().context("it has no output")?);
        let mut injector = Injector {
            child,
            lines,
            victim: 0,
        };
        let first = injector.line()?.context("the injector said nothing")?;
        injector.victim = first["victim"]
            .as_u64()
            .context("the injector names no victim")?;
        Ok(injector)
    }

    /// Starts the injection, and returns the log of each fault.
    pub fn inject(&mut self) -> anyhow::Result<Vec<Value>> {
        let stdin = self.child.stdin.as_mut().context("it has no input")?;
        stdin.write_all(b"go\n")?;
        let mut faults = Vec::new();
        loop {
            let line = self.line()?.context("the injector ended early")?;
            if line["done"] == true {
                return Ok(faults);
            }
            faults.push(line);
        }
    }

    fn line(&mut self) -> anyhow::Result<Option<Value>> {
        let mut line = String::new();
        if self.lines.read_line(&mut line)? == 0 {
            return Ok(None);
        }
        serde_json::from_str(&line)
            .with_context(|| format!("the injector wrote {line:?}"))
            .map(Some)
    }
}

impl Drop for Injector {
    fn drop(&mut self) {
        // It ends when its input ends; if it hangs, it is killed.
        drop(self.child.stdin.take());
        for _ in 0..50 {
            if matches!(self.child.try_wait(), Ok(Some(_)) | Err(_)) {
                return;
            }
            std::thread::sleep(std::time::Duration::from_millis(20));
        }
        let _ = self.child.kill();
        let _ = self.child.wait();
    }
}
