use anyhow::{Context, bail};
use std::io::{BufRead, BufReader, pipe};
use std::path::{Path, PathBuf};
use std::process::{Command, ExitStatus};

pub fn root() -> PathBuf {
    let manifest = Path::new(env!("CARGO_MANIFEST_DIR"));
    manifest.parent().unwrap_or(manifest).to_path_buf()
}

/// A command in the root of the workspace.
pub fn command(program: &str, args: &[&str]) -> Command {
    let mut command = Command::new(program);
    command.args(args).current_dir(root());
    command
}

/// Runs it with its output shown; fails if it fails.
pub fn run(program: &str, args: &[&str]) -> anyhow::Result<()> {
    eprintln!("+ {program} {}", args.join(" "));
    let status = command(program, args)
        .status()
        .with_context(|| format!("{program} cannot be started"))?;
    if !status.success() {
        bail!("{program} {} failed ({status})", args.join(" "));
    }
    Ok(())
}

/// Runs it and returns its standard output; fails if it fails.
pub fn output(program: &str, args: &[&str]) -> anyhow::Result<String> {
    eprintln!("+ {program} {}", args.join(" "));
    let output = command(program, args)
        .stderr(std::process::Stdio::inherit())
        .output()
        .with_context(|| format!("{program} cannot be started"))?;
    if !output.status.success() {
        bail!("{program} {} failed ({})", args.join(" "), output.status);
    }
    String::from_utf8(output.stdout).with_context(|| format!("{program} wrote no UTF-8"))
}

/// Runs it and passes on each line of its standard output and error as it arrives.
pub fn watch(mut command: Command, mut line: impl FnMut(&str)) -> anyhow::Result<ExitStatus> {
    let (reader, writer) = pipe()?;
    command.stdout(writer.try_clone()?).stderr(writer);
    let mut child = command
        .spawn()
        .with_context(|| format!("{} cannot be started", command.get_program().display()))?;
    // It holds our copies of the pipe's end, without which the pipe ends with the child.
    drop(command);
    for bytes in BufReader::new(reader).split(b'\n') {
        line(&String::from_utf8_lossy(&bytes?));
    }
    Ok(child.wait()?)
}

/// Prints a message of a test stage; a stage that runs in parallel is marked.
pub fn say(text: &str) {
    let thread = std::thread::current();
    match thread.name() {
        None | Some("main") => eprintln!("{text}"),
        Some(name) => {
            for line in text.lines() {
                eprintln!("{name} | {line}");
            }
        }
    }
}
