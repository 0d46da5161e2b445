//! `record none` as users run it. Real recordings need root and tracefs; without them, the tests print a note
//! and are skipped.

use crate::live;

use jitterscope_testing::highest_cpu;
use live::{can_trace, jitterscope, json, program, stderr, turn};
use std::os::unix::process::CommandExt;
use std::process::{Child, Command, Stdio};
use std::time::{Duration, Instant};

/// Spins on a CPU until it is dropped.
struct Spinner(Child);

impl Spinner {
    fn start(cpu: &str) -> Spinner {
        let line = format!(
            "exec taskset -c {cpu} sh -c 'n=0; while [ $n -lt 30000000 ]; do n=$((n+1)); done'"
        );
        Spinner(Command::new("sh").args(["-c", &line]).spawn().unwrap())
    }
}

impl Drop for Spinner {
    fn drop(&mut self) {
        let _ = self.0.kill();
        let _ = self.0.wait();
    }
}

#[test]
fn who_runs_beside_a_process_is_reported_in_text_and_as_json() {
    let _turn = turn();
    if !can_trace() {
        return;
    }
    let dir = tempfile::tempdir().unwrap();
    let cpu = highest_cpu().to_string();
    let spinner = Spinner::start(&cpu);
    let pid = spinner.0.id().to_string();
    let args = [
        "record", "none", "--cpus", &cpu, "--for", &pid, "-d", "1s", "-l", "MINE", "--json",
    ];
    let output = jitterscope(dir.path(), &args);
    assert!(output.status.success(), "{}", stderr(&output));
    let run = json(&output);
    assert_eq!(
        (run["run"]["label"].as_str(), run["probe"]["kind"].as_str()),
        (Some("MINE"), Some("passive"))
    );
    let watched = &run["passive"][0];
    assert_eq!(
        watched["threads"][0]["tid"].as_i64().unwrap().to_string(),
        pid,
        "{watched}"
    );
    assert_eq!(watched["chosen"], serde_json::Value::Null);
    assert!(!watched["ran_instead"].as_array().unwrap().is_empty());
    let shown = |args: &[&str], parts: &[&str]| {
        let text = String::from_utf8_lossy(&jitterscope(dir.path(), args).stdout).into_owned();
        for part in parts {
            assert!(text.contains(part), "{part} is not in {text}");
        }
        text
    };
    let full = [
        "The owner of CPU",
        "not visible passively",
        "ran instead",
        "WHO STOLE IT",
    ];
    shown(&["report", "MINE", "--full"], &full);
    let screen = [
        "The owner of CPU",
        "The longest, ",
        " belongs to sh (tid ",
        "\nculprit ",
        "Trust: ",
        "Next: ",
    ];
    let brief = shown(&["report", "MINE"], &screen);
    assert!(
        brief.lines().count() <= 23 && brief.lines().all(|line| line.chars().count() <= 80),
        "{brief}"
    );
    let stall = jitterscope(dir.path(), &["report", "MINE", "--stall", "1"]);
    assert!(
        String::from_utf8_lossy(&stall.stdout).starts_with("stolen time"),
        "{}",
        stderr(&stall)
    );
    let list = json(&jitterscope(dir.path(), &["list", "--json"]));
    let line = &list["runs"][0];
    assert!(line["stolen_fraction"].as_f64().unwrap() > 0.0, "{line}");
    assert_eq!(line["stalls"], watched["stalls"]);
    assert_eq!(line["max_ns"], watched["longest_ns"]);
    // Redacted, it names no process of the user.
    let redacted = jitterscope(dir.path(), &["report", "MINE", "--json", "--redact"]);
    assert_ne!(
        json(&redacted)["passive"][0]["threads"][0]["comm"],
        watched["threads"][0]["comm"]
    );
    let file = dir.path().join("stalls.csv");
    let to = format!("csv://{}", file.display());
    let export = jitterscope(dir.path(), &["export", "MINE", "--to", &to]);
    assert!(export.status.success() && std::fs::read_to_string(&file).unwrap().lines().count() > 1);
    let again = json(&jitterscope(
        dir.path(),
        &["report", "MINE", "--json", "--reattribute"],
    ));
    assert_eq!(again["passive"], run["passive"]);
    assert_eq!(again["attribution"], run["attribution"]);
}

#[test]
fn ctrl_c_keeps_what_was_watched() {
    let _turn = turn();
    if !can_trace() {
        return;
    }
    let dir = tempfile::tempdir().unwrap();
    let cpu = highest_cpu().to_string();
    let _spinner = Spinner::start(&cpu);
    let mut child = Command::new(program())
        .args([
            "record", "none", "--cpus", &cpu, "-d", "60s", "--json", "-q", "--runs",
        ])
        .arg(dir.path())
        .stdout(Stdio::piped())
        .spawn()
        .unwrap();
    std::thread::sleep(Duration::from_secs(4));
    let kill = Command::new("kill")
        .args(["-INT", &child.id().to_string()])
        .status()
        .unwrap();
    assert!(kill.success());
    let started = Instant::now();
    let mut out = child.stdout.take().unwrap();
    let mut text = String::new();
    std::io::Read::read_to_string(&mut out, &mut text).unwrap();
    assert!(child.wait().unwrap().success() && started.elapsed() < Duration::from_secs(30));
    let run: serde_json::Value = serde_json::from_str(&text).unwrap();
    assert_eq!(run["run"]["interrupted"].as_bool(), Some(true));
    let ids: Vec<&str> = run["warnings"]
        .as_array()
        .unwrap()
        .iter()
        .filter_map(|w| w["id"].as_str())
        .collect();
    assert!(ids.contains(&"interrupted"), "{ids:?}");
    assert!(
        run["passive"][0]["chosen"]["share"]
            .as_f64()
            .is_some_and(|share| share > 0.0)
    );
}

#[test]
fn without_root_it_says_what_is_missing_and_what_to_do() {
    if !jitterscope_testing::is_root() {
        return jitterscope_testing::skip("no root to give up");
    }
    // In a folder that the other user can reach.
    let dir = tempfile::tempdir_in("/tmp").unwrap();
    std::fs::set_permissions(
        dir.path(),
        std::os::unix::fs::PermissionsExt::from_mode(0o755),
    )
    .unwrap();
    let runs = dir.path().join("runs");
    std::fs::create_dir(&runs).unwrap();
    std::os::unix::fs::chown(&runs, Some(65_534), Some(65_534)).unwrap();
    let copy = dir.path().join("jitterscope");
    std::fs::copy(program(), &copy).unwrap();
    let output = Command::new(&copy)
        .args(["record", "none", "--for", "sh", "-d", "1s", "--runs"])
        .arg(&runs)
        .uid(65_534)
        .gid(65_534)
        .output()
        .unwrap();
    let said = stderr(&output);
    assert_eq!(output.status.code(), Some(4), "{said}");
    assert!(
        said.contains("without a probe only kernel events tell"),
        "{said}"
    );
    assert!(!runs.read_dir().is_ok_and(|mut all| all.next().is_some()));
}
