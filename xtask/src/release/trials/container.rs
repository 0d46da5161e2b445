//! The image in a container runtime, with the rights and limits of the Kubernetes manifests and no others.

use super::MINUTE;
use super::rights;
use super::root::{is_answer, succeeded};
use anyhow::{Context, bail, ensure};
use serde_json::{Value, json};
use std::collections::BTreeSet;
use std::ffi::OsString;
use std::fs;
use std::io::{Read, Write};
use std::net::TcpStream;
use std::path::{Path, PathBuf};
use std::process::{Command, Output, Stdio};
use std::thread::sleep;
use std::time::{Duration, Instant};

/// The port of the DaemonSet's metrics.
const PORT: u16 = 9750;
/// Where the machine's tracefs is.
const TRACEFS: &str = "/sys/kernel/tracing";

pub fn run(image: &Path, version: &str) -> anyhow::Result<()> {
    let stage = tempfile::Builder::new()
        .prefix("jitterscope-bundle-")
        .tempdir()?;
    let [layout, bundle, runs] = ["layout", "bundle", "runs"].map(|name| stage.path().join(name));
    fs::create_dir(&layout)?;
    fs::create_dir(&runs)?;
    let tar = Command::new("tar")
        .arg("-xf")
        .arg(image)
        .arg("-C")
        .arg(&layout)
        .output();
    succeeded(&tar.context("tar cannot be started")?, "tar")?;
    let named = format!("{}:jitterscope:{version}", layout.display());
    let unpacked = Command::new("umoci")
        .args(["unpack", "--image", &named])
        .arg(&bundle)
        .output()
        .context("umoci cannot be started")?;
    succeeded(&unpacked, "umoci unpack")?;
    let config = bundle.join("config.json");
    let mut spec: Value = serde_json::from_slice(&fs::read(&config)?)?;
    ensure!(
        spec["process"]["args"] == json!(["/usr/bin/jitterscope", "record"]),
        "the image starts {}",
        spec["process"]["args"]
    );

    let mounted = Mounted::new()?;
    confine(&mut spec, &runs)?;
    rights::limit(&mut spec)?;
    fs::write(&config, serde_json::to_vec(&spec)?)?;
    let _turn = jitterscope_testing::turn();
    let begun = Instant::now();
    let bundle = Bundle {
        state: stage.path().join("state"),
        folder: bundle,
        name: format!("jitterscope-trial-{}", std::process::id()),
    };
    let ran = bundle.run()?;
    let took = is_answer(&String::from_utf8_lossy(&ran.stdout), begun.elapsed())?;
    ensure!(
        fs::read_dir(&runs)?.next().is_some(),
        "no run is in the volume"
    );
    println!(
        "image: unpacked by umoci and run by runc with the Job's rights, limits and filter of system calls; record answered in {:.0} s",
        took.as_secs_f64()
    );

    latency_test(&mut spec)?;
    fs::write(&config, serde_json::to_vec(&spec)?)?;
    let said = bundle.judges()?;
    println!("image: the Job's latency test said: {said}");

    // The agent of the DaemonSet has the same rights, and its settings as one file.
    let settings = stage.path().join("agent.toml");
    fs::write(&settings, daemon_settings()?)?;
    watching(&mut spec, &settings)?;
    fs::write(&config, serde_json::to_vec(&spec)?)?;
    let metrics = bundle.watches()?;
    drop(mounted);
    println!(
        "image: the DaemonSet's agent served {metrics} lines of metrics and ended when it was asked to"
    );
    Ok(())
}

/// A container that runc runs.
struct Bundle {
    /// Where runc keeps its state.
    state: PathBuf,
    folder: PathBuf,
    name: String,
}

impl Bundle {
    fn runc(&self, verb: &str) -> Command {
        let mut runc = Command::new("runc");
        runc.arg("--root").arg(&self.state).arg(verb);
        runc
    }

    /// Runs the container until it ends.
    fn run(&self) -> anyhow::Result<Output> {
        let ran = self
            .runc("run")
            .arg("--bundle")
            .arg(&self.folder)
            .arg(&self.name)
            .output()
            .context("runc cannot be started")?;
        succeeded(&ran, "runc run")?;
        Ok(ran)
    }

    /// Runs the latency test and returns its verdict.
    fn judges(&self) -> anyhow::Result<String> {
        let ran = self.run()?;
        let said =
            [ran.stdout, ran.stderr].map(|bytes| String::from_utf8_lossy(&bytes).into_owned());
        let verdict = said
            .iter()
            .flat_map(|text| text.lines())
            .find(|line| line.contains("OpenShift's latency test"));
        Ok(verdict
            .context("the latency test gave no verdict")?
            .to_owned())
    }

    /// The bytes of memory that the running container may use.
    fn memory_limit(&self) -> anyhow::Result<u64> {
        let asked = self.runc("events").arg("--stats").arg(&self.name).output();
        let asked = asked.context("runc cannot be started")?;
        succeeded(&asked, "runc events")?;
        let stats: Value = serde_json::from_slice(&asked.stdout)?;
        let limit = stats["data"]["memory"]["usage"]["limit"].as_u64();
        limit.with_context(|| format!("runc states no limit: {stats}"))
    }

    /// Runs the agent until its metrics answer, ends it as Kubernetes does, and returns the number of lines.
    fn watches(&self) -> anyhow::Result<usize> {
        let before = instances()?;
        let mut agent = self
            .runc("run")
            .arg("--bundle")
            .arg(&self.folder)
            .arg(&self.name)
            .stdout(Stdio::null())
            .spawn()
            .context("runc cannot be started")?;
        let begun = Instant::now();
        let answer = loop {
            if let Some(ended) = agent.try_wait()? {
                bail!("the agent ended by itself ({ended})");
            }
            // It answers before it watches, with no line of its own.
            match metrics() {
                Ok(lines) if lines > 0 => break Ok(lines),
                answer if begun.elapsed() > MINUTE => break answer,
                _ => sleep(Duration::from_millis(200)),
            }
        };
        let limit = self.memory_limit();
        let asked = self.runc("kill").arg(&self.name).arg("TERM").output();
        succeeded(&asked.context("runc cannot be started")?, "runc kill")?;
        let ended = agent.wait()?;
        let lines = answer.context("the agent's metrics did not answer in a minute")?;
        let (limit, wanted) = (limit?, rights::memory_limit()?);
        ensure!(
            limit == wanted,
            "the agent may use {limit} bytes of memory, not {wanted}"
        );
        ensure!(ended.success(), "the agent ended with {ended}");
        let after = instances()?;
        ensure!(
            before == after,
            "the agent left tracing instances: {after:?}"
        );
        ensure!(lines > 0, "the agent had no metrics after a minute");
        Ok(lines)
    }
}

/// The number of lines that the agent answers on the port of the DaemonSet.
fn metrics() -> std::io::Result<usize> {
    let mut connection = TcpStream::connect(("127.0.0.1", PORT))?;
    connection.set_read_timeout(Some(Duration::from_secs(10)))?;
    connection.write_all(b"GET /metrics HTTP/1.0\r\n\r\n")?;
    let mut answer = String::new();
    connection.read_to_string(&mut answer)?;
    let ours = |line: &&str| line.starts_with("jitterscope_");
    Ok(answer.lines().filter(ours).count())
}

fn instances() -> anyhow::Result<BTreeSet<OsString>> {
    let entries = fs::read_dir(Path::new(TRACEFS).join("instances"))?;
    Ok(entries.flatten().map(|entry| entry.file_name()).collect())
}

/// The agent's settings in the manifest of the DaemonSet.
fn daemon_settings() -> anyhow::Result<String> {
    let path = crate::shell::root().join("packaging/kubernetes/agent.yaml");
    let manifest = fs::read_to_string(&path).with_context(|| path.display().to_string())?;
    let settings: String = manifest
        .lines()
        .skip_while(|line| line.trim() != "agent.toml: |")
        .skip(1)
        .take_while(|line| line.is_empty() || line.starts_with("    "))
        .map(|line| format!("{}\n", line.trim_start()))
        .collect();
    ensure!(
        settings.contains(&format!(":{PORT}\"")),
        "{} has no settings with port {PORT}",
        path.display()
    );
    Ok(settings)
}

/// What the Job has beside: its command, and the variables of OpenShift with a limit that every machine holds.
fn latency_test(spec: &mut Value) -> anyhow::Result<()> {
    spec["process"]["args"] = json!([
        "/usr/bin/jitterscope",
        "record",
        "--profile",
        "openshift-latency"
    ]);
    let env = spec["process"]["env"].as_array_mut();
    env.context("no variables")?.extend([
        json!("MAXIMUM_LATENCY=60000000"),
        json!("LATENCY_TEST_RUNTIME=2"),
        json!("LATENCY_TEST_CPUS=1"),
    ]);
    Ok(())
}

/// What the DaemonSet has beside the Job: its command, a place for claims, its settings. The network is the machine's,
/// so that the trial reaches the metrics.
fn watching(spec: &mut Value, settings: &Path) -> anyhow::Result<()> {
    const PLACE: &str = "/etc/jitterscope/agent.toml";
    spec["process"]["args"] = json!(["/usr/bin/jitterscope", "agent", "--config", PLACE]);
    let mounts = spec["mounts"].as_array_mut().context("no mounts")?;
    mounts.push(
        json!({ "type": "tmpfs", "source": "tmpfs", "destination": "/run", "options": ["nosuid"] }),
    );
    mounts.push(json!({
        "type": "bind", "source": settings, "destination": PLACE, "options": ["bind", "ro"],
    }));
    let namespaces = spec["linux"]["namespaces"].as_array_mut();
    namespaces
        .context("no namespaces")?
        .retain(|namespace| namespace["type"] != "network");
    Ok(())
}

/// What `packaging/kubernetes` asks for: the machine's process ids, root's tracefs, a folder for runs, one capability, a
/// read-only root.
fn confine(spec: &mut Value, runs: &Path) -> anyhow::Result<()> {
    let bind = |from: &str, to: &str| json!({ "type": "bind", "source": from, "destination": to, "options": ["rbind", "rw"] });
    let mounts = spec["mounts"].as_array_mut().context("no mounts")?;
    mounts.push(bind(TRACEFS, TRACEFS));
    mounts.push(bind(
        runs.to_str().context("the path is no UTF-8")?,
        "/runs",
    ));
    let namespaces = spec["linux"]["namespaces"].as_array_mut();
    namespaces
        .context("no namespaces")?
        .retain(|namespace| namespace["type"] != "pid");
    let one = json!(["CAP_SYSLOG"]);
    spec["process"]["capabilities"] = json!({
        "bounding": one, "effective": one, "permitted": one, "inheritable": [], "ambient": [],
    });
    spec["process"]["noNewPrivileges"] = json!(true);
    spec["process"]["terminal"] = json!(false);
    spec["root"]["readonly"] = json!(true);
    Ok(())
}

/// tracefs at its own place: mounted here if it was not, and then unmounted again.
struct Mounted {
    ours: bool,
}

impl Mounted {
    fn new() -> anyhow::Result<Mounted> {
        if Path::new(TRACEFS).join("instances").is_dir() {
            return Ok(Mounted { ours: false });
        }
        let mount = Command::new("mount")
            .args(["-t", "tracefs", "tracefs", TRACEFS])
            .output();
        succeeded(&mount.context("mount cannot be started")?, "mount")?;
        Ok(Mounted { ours: true })
    }
}

impl Drop for Mounted {
    fn drop(&mut self) {
        if self.ours
            && !Command::new("umount")
                .arg(TRACEFS)
                .status()
                .is_ok_and(|s| s.success())
        {
            eprintln!("{TRACEFS} could not be unmounted");
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_settings_of_the_daemon_set_are_its_manifests() {
        let settings = daemon_settings().unwrap();
        assert!(settings.contains("\nmetrics-open = true\n"), "{settings}");
        assert!(!settings.contains("apiVersion"), "{settings}");
    }
}
