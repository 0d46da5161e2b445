//! The image in a container runtime, with the rights that the Kubernetes Job asks for and no others.

use super::root::{is_answer, succeeded};
use anyhow::{Context, ensure};
use serde_json::{Value, json};
use std::fs;
use std::path::Path;
use std::process::Command;
use std::time::Instant;

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
    fs::write(&config, serde_json::to_vec(&spec)?)?;
    let _turn = jitterscope_testing::turn();
    let begun = Instant::now();
    let name = format!("jitterscope-trial-{}", std::process::id());
    let ran = Command::new("runc")
        .arg("--root")
        .arg(stage.path().join("state"))
        .args(["run", "--bundle"])
        .arg(&bundle)
        .arg(&name)
        .output()
        .context("runc cannot be started")?;
    succeeded(&ran, "runc run")?;
    let took = is_answer(&String::from_utf8_lossy(&ran.stdout), begun.elapsed())?;
    drop(mounted);
    ensure!(
        fs::read_dir(&runs)?.next().is_some(),
        "no run is in the volume"
    );
    println!(
        "image: unpacked by umoci and run by runc; record answered in {:.0} s",
        took.as_secs_f64()
    );
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
