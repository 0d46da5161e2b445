//! The harness in `benches/java`: fetched, compiled, started, its threads pinned from outside.

use super::output::{self, Transit};
use super::{Course, INTERVAL_NS, MESSAGES, PAUSE_NS, RECORD_LENGTH, WARM_UP};
use crate::shell;
use anyhow::{Context, bail};
use std::fs;
use std::io::{BufRead, BufReader, Read, Write};
use std::path::{Path, PathBuf};
use std::process::{Child, Command, Stdio};

/// These versions from Maven Central.
const ARTIFACTS: [&str; 2] = [
    "com.lmax:disruptor:4.0.0",
    "org.hdrhistogram:HdrHistogram:2.2.2",
];
/// perf-workshop's flags that today's Java still supports.
const FLAGS: [&str; 3] = [
    "-XX:+UnlockDiagnosticVMOptions",
    "-XX:GuaranteedSafepointInterval=600000",
    "-XX:+DisableExplicitGC",
];

pub struct Java {
    class_path: String,
}

fn skipped(why: &str) -> Option<Java> {
    println!("SKIPPED Java: {why}; apt-get install default-jdk-headless maven");
    None
}

impl Java {
    /// Fetches and compiles it; `None` if Java, Maven, Maven Central or taskset is missing.
    ///
    /// # Errors
    /// The harness does not compile.
    pub fn prepare(folder: &Path) -> anyhow::Result<Option<Java>> {
        for (program, argument) in [
            ("java", "-version"),
            ("javac", "-version"),
            ("taskset", "--version"),
        ] {
            if shell::command(program, &[argument]).output().is_err() {
                return Ok(skipped(&format!("there is no {program}")));
            }
        }
        let jars = folder.join("jars");
        fs::create_dir_all(&jars).with_context(|| format!("{} cannot be made", jars.display()))?;
        for artifact in ARTIFACTS {
            let copied = Command::new("mvn")
                .args([
                    "-q",
                    "-B",
                    "org.apache.maven.plugins:maven-dependency-plugin:3.6.1:copy",
                ])
                .arg(format!("-Dartifact={artifact}"))
                .arg(format!("-DoutputDirectory={}", jars.display()))
                .current_dir(&jars)
                .output();
            match copied {
                Err(_) => return Ok(skipped("there is no mvn")),
                Ok(output) if !output.status.success() => {
                    return Ok(skipped(&format!("mvn could not get {artifact}")));
                }
                Ok(_) => {}
            }
        }
        let classes = folder.join("classes");
        let jars = format!("{}/*", jars.display());
        let to = classes.display().to_string();
        shell::run(
            "javac",
            &[
                "-Xlint:all",
                "-Werror",
                "-cp",
                &jars,
                "-d",
                &to,
                "benches/java/Pipeline.java",
            ],
        )?;
        Ok(Some(Java {
            class_path: format!("{jars}:{to}"),
        }))
    }

    /// Makes one measurement with this heap size.
    pub fn run(&self, course: &Course, ring: u64, heap: &str) -> anyhow::Result<Transit> {
        let numbers = [
            RECORD_LENGTH,
            ring,
            WARM_UP,
            MESSAGES,
            INTERVAL_NS,
            PAUSE_NS,
        ]
        .map(|n| n.to_string());
        let mut child = Command::new("java")
            .args(FLAGS)
            .args([format!("-Xms{heap}"), format!("-Xmx{heap}")])
            .args(["-cp", &self.class_path, "Pipeline"])
            .arg(&course.input)
            .args(numbers)
            .stdin(Stdio::piped())
            .stdout(Stdio::piped())
            .spawn()
            .context("java cannot be started")?;
        let text = converse(&mut child, course.cpus);
        if text.is_err() {
            // It waits for a line that will not come, or spins forever.
            let _ = child.kill();
        }
        let status = child.wait().context("java cannot be waited for")?;
        let text = text?;
        if !status.success() {
            bail!("java failed ({status})");
        }
        output::of_java(&text)
    }
}

/// Pins the threads, starts the measurement, and reads the rest.
fn converse(child: &mut Child, cpus: (u32, u32)) -> anyhow::Result<String> {
    let mut stdin = child.stdin.take().context("java has no input")?;
    let mut stdout = BufReader::new(child.stdout.take().context("java has no output")?);
    let mut line = String::new();
    stdout
        .read_line(&mut line)
        .context("java's output cannot be read")?;
    let (producer, accumulator) = output::java_threads(&line)
        .with_context(|| format!("java began with '{}'", line.trim()))?;
    let tasks = PathBuf::from(format!("/proc/{}/task", child.id()));
    for (name, cpu) in [(producer, cpus.0), (accumulator, cpus.1)] {
        let thread = thread(&tasks, name)?;
        let pinned = shell::command("taskset", &["-pc", &cpu.to_string(), &thread]).output();
        let pinned = pinned.context("taskset cannot be started")?;
        if !pinned.status.success() {
            bail!(
                "{name} cannot be pinned: {}",
                String::from_utf8_lossy(&pinned.stderr).trim()
            );
        }
    }
    stdin.write_all(b"go\n").context("java does not listen")?;
    let mut rest = String::new();
    stdout
        .read_to_string(&mut rest)
        .context("java's output cannot be read")?;
    Ok(rest)
}

/// The id of the thread with this name.
fn thread(tasks: &Path, name: &str) -> anyhow::Result<String> {
    let entries =
        fs::read_dir(tasks).with_context(|| format!("{} cannot be read", tasks.display()))?;
    for entry in entries {
        let entry = entry.with_context(|| format!("{} cannot be read", tasks.display()))?;
        // A thread may have ended meanwhile.
        let comm = fs::read_to_string(entry.path().join("comm")).unwrap_or_default();
        if comm.trim_end() == name {
            return Ok(entry.file_name().to_string_lossy().into_owned());
        }
    }
    bail!("java has no thread called {name}")
}
