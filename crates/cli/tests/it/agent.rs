//! `agent`: what it says to systemd, what SIGHUP changes without a gap, and what is refused. A real watch needs root and
//! tracefs; without them, those tests print a note and are skipped.

use crate::live;
use crate::watch::Watching;
use crate::watch_metrics::{ask, rows};

use jitterscope_testing::{highest_cpu, instances_of};
use live::{can_trace, jitterscope, json, program, stderr, turn};
use std::os::unix::fs::PermissionsExt;
use std::os::unix::net::{UnixDatagram, UnixStream};
use std::path::{Path, PathBuf};
use std::process::Command;
use std::sync::mpsc::{self, Receiver};
use std::time::{Duration, Instant};

/// A service manager. It reads all the time, as systemd does: a full socket takes no message.
struct Manager(Receiver<String>);

impl Manager {
    fn of(socket: UnixDatagram) -> Manager {
        let (said, heard) = mpsc::channel();
        std::thread::spawn(move || {
            let mut bytes = [0; 4096];
            while let Ok(n) = socket.recv(&mut bytes) {
                let text = String::from_utf8_lossy(&bytes[..n]).into_owned();
                if said.send(text).is_err() {
                    return;
                }
            }
        });
        Manager(heard)
    }

    /// Waits for a message with this text.
    fn hears(&self, text: &str) -> String {
        let until = Instant::now() + Duration::from_secs(60);
        let mut heard = Vec::new();
        while let Ok(said) = self
            .0
            .recv_timeout(until.saturating_duration_since(Instant::now()))
        {
            if said.contains(text) {
                return said;
            }
            heard.push(said);
        }
        panic!("it did not say '{text}', but {heard:#?}");
    }
}

fn write(path: &Path, text: &str) {
    std::fs::write(path, text).unwrap();
    std::fs::set_permissions(path, std::fs::Permissions::from_mode(0o644)).unwrap();
}

#[test]
fn a_service_says_how_it_is_and_takes_other_settings_without_a_gap() {
    let _turn = turn();
    if !can_trace() {
        return;
    }
    let dir = tempfile::tempdir().unwrap();
    let (runs, file) = (dir.path().join("runs"), dir.path().join("agent.toml"));
    let (first, second) = (dir.path().join("m1"), dir.path().join("m2"));
    let manager = dir.path().join("notify");
    let manager_socket = Manager::of(UnixDatagram::bind(&manager).unwrap());
    let fixed = format!(
        "cpus = '{}'\nprobe = 'spin'\nsection = '1s'\nkeep = '20s'\ndisk = '64MiB'\nbefore = '1s'\nafter = '500ms'\n",
        highest_cpu()
    );
    let with = |metrics: &Path, more: &str| {
        format!("{fixed}metrics = 'unix:{}'\n{more}", metrics.display())
    };
    write(&file, &with(&first, "save-if = 'max>10s'\n"));
    let mut command = Command::new(program());
    command
        .env("JITTERSCOPE_RUNS", &runs)
        .env("NOTIFY_SOCKET", &manager)
        .env("WATCHDOG_USEC", "3000000")
        .args(["agent", "--config"])
        .arg(&file);
    let agent = Watching::run(command);
    agent.says("watching CPU");
    assert!(manager_socket.hears("READY=1").contains("STATUS=watching"));
    manager_socket.hears("WATCHDOG=1");
    manager_socket.hears("WATCHDOG=1");
    let status = || json(&jitterscope(&runs, &["watch", "status", "--json"]))["watches"][0].clone();
    let before = status();
    assert_eq!(before["saved_runs"], 0, "{before}");
    let stalls = |socket: &Path| {
        let stream = UnixStream::connect(socket).unwrap();
        let request = "GET /metrics HTTP/1.1\r\nAccept: application/openmetrics-text\r\n\r\n";
        let rows = rows(&ask(stream, request).1);
        let count = rows
            .iter()
            .find(|(name, _)| name.contains("duration_seconds_count"));
        *count.unwrap().1
    };
    let earlier = stalls(&first);

    // Another condition is met at once, and metrics move.
    write(
        &file,
        &with(
            &second,
            "save-if = 'stalls>0.1/s over 500ms'\napart = '1h'\n",
        ),
    );
    agent.signal("HUP");
    manager_socket.hears("RELOADING=1\nMONOTONIC_USEC=");
    assert!(manager_socket.hears("READY=1").contains("read again"));
    let said = agent.says("a condition was met");
    assert!(said.contains("stalls>0.1/s over 500ms"), "{said}");
    agent.saves();
    assert!(!first.exists(), "the old socket is gone");
    assert!(stalls(&second) >= earlier, "the counts go on");
    let after = status();
    assert_eq!(after["pid"], before["pid"]);
    assert_eq!(
        after["since_ns"], before["since_ns"],
        "the recording went on"
    );

    // What is wrong is refused, and the old settings stay.
    for (text, says) in [
        (
            with(&second, "kepp = '1m'\n"),
            "'watch' has no option 'kepp'",
        ),
        (with(&second, "save-if = 'late.p99>1ms'\n"), "record wakeup"),
        (with(&second, "daily = 0\n"), "'0'"),
        (with(&second, "label = '../x'\n"), "label"),
        (format!("{fixed}threshold = '5us'\n"), "'threshold' differs"),
        (fixed.replace("64MiB", "1MiB"), "--disk"),
        (with(&dir.path().join("none/m"), ""), "--metrics"),
    ] {
        write(&file, &text);
        agent.signal("HUP");
        let said = agent.says("refused, and the old settings stay");
        assert!(said.contains(says), "{says}: {said}");
        assert!(manager_socket.hears("READY=1").contains("refused"));
    }
    write(&file, &with(&second, ""));
    std::fs::set_permissions(&file, std::fs::Permissions::from_mode(0o666)).unwrap();
    agent.signal("HUP");
    let said = agent.says("refused");
    assert!(said.contains("others may write to it"), "{said}");
    assert!(stalls(&second) >= earlier, "metrics are still served");
    assert_eq!(status()["history"]["limit_bytes"], 64 << 20);

    let pid = agent.child.id();
    agent.signal("TERM");
    manager_socket.hears("STOPPING=1");
    assert!(agent.ends().success());
    assert!(instances_of(pid).is_empty());
    assert!(!second.exists());
}

#[test]
fn a_wrong_file_is_refused_at_the_start_and_by_check() {
    let dir = tempfile::tempdir().unwrap();
    let file = dir.path().join("agent.toml");
    let of = |args: &[&str]| {
        let output = jitterscope(dir.path(), args);
        (
            output.status.code(),
            stderr(&output),
            String::from_utf8_lossy(&output.stdout).into_owned(),
        )
    };
    let path = file.to_str().unwrap();
    let cpu = highest_cpu();
    for (text, says) in [
        (
            format!("cpus = '{cpu}'\nkepp = '5m'\n"),
            "line 2: 'watch' has no option 'kepp'",
        ),
        (format!("cpus = '{cpu}'\nkeep = '5s'\n"), "--keep"),
        (format!("cpus = '{cpu}'\ndisk = '1MiB'\n"), "--disk"),
        ("cpus = '9999'\n".to_owned(), "9999"),
        ("save-if = 'worse(total)'\n".to_owned(), "only diff"),
        ("label = '../x'\n".to_owned(), "label"),
    ] {
        write(&file, &text);
        for args in [
            ["agent", "check", path].as_slice(),
            &["agent", "--config", path],
        ] {
            let (code, said, _) = of(args);
            assert_eq!(code, Some(2), "{text}: {said}");
            assert!(said.contains(says), "{text}: {said}");
        }
    }
    for settings in [shipped("systemd/agent.toml"), of_daemon_set()] {
        write(&file, &settings);
        let (code, said, printed) = of(&["agent", "check", path]);
        assert_eq!(code, Some(0), "{settings}: {said}");
        assert_eq!(printed, format!("{path}: ok\n"));
    }
    std::fs::set_permissions(&file, std::fs::Permissions::from_mode(0o666)).unwrap();
    let (code, said, _) = of(&["agent", "--config", path]);
    assert!(
        code == Some(2) && said.contains("others may write to it"),
        "{said}"
    );
    let (code, said, _) = of(&["agent"]);
    assert!(code == Some(2) && said.contains("--config"), "{said}");
}

fn shipped(file: &str) -> String {
    let folder = Path::new(env!("CARGO_MANIFEST_DIR")).join("../../packaging");
    std::fs::read_to_string(folder.join(file)).unwrap()
}

/// The settings in the manifest for Kubernetes: the indented lines after their name.
fn of_daemon_set() -> String {
    let manifest = shipped("kubernetes/agent.yaml");
    let (_, settings) = manifest.split_once("  agent.toml: |\n").unwrap();
    let (settings, _) = settings.split_once("\n---\n").unwrap();
    settings.to_owned()
}

#[test]
fn the_shipped_unit_is_right() {
    let unit = shipped("systemd/jitterscope-agent.service");
    let installed = "/usr/bin/jitterscope";
    assert!(unit.contains(installed));
    let dir = tempfile::tempdir().unwrap();
    let path: PathBuf = dir.path().join("jitterscope-agent.service");
    // systemd-analyze looks for the program.
    std::fs::write(
        &path,
        unit.replace(installed, &program().display().to_string()),
    )
    .unwrap();
    let output = Command::new("systemd-analyze")
        .args(["verify", "--man=no"])
        .arg(&path)
        .output();
    let Ok(output) = output else {
        jitterscope_testing::skip("there is no systemd-analyze; apt-get install systemd");
        return;
    };
    // It also reports what is wrong with other units of this machine.
    let said = String::from_utf8_lossy(&output.stderr).into_owned();
    let own: Vec<&str> = said
        .lines()
        .filter(|line| line.contains("jitterscope"))
        .collect();
    assert!(own.is_empty(), "{own:#?}");
    // A check that never fails would say nothing of a wrong unit either.
    std::fs::write(&path, unit.replace("WatchdogSec", "WatchdogSecs")).unwrap();
    let output = Command::new("systemd-analyze")
        .args(["verify", "--man=no"])
        .arg(&path)
        .output()
        .unwrap();
    let said = String::from_utf8_lossy(&output.stderr).into_owned();
    assert!(said.contains("WatchdogSecs"), "{said}");
}
