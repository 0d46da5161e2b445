//! `watch`: a run is saved around a moment, by a condition, by the application, by a person and after a SIGKILL. Real
//! recordings need root and tracefs; without them, the tests print a note and are skipped.

use crate::live;
use crate::schema_check::conforms;

use jitterscope_model::{AskedBy, Nanos};
use jitterscope_store::RunReader;
use jitterscope_testing::{Tmpfs, highest_cpu, instances_of};
use live::{can_trace, jitterscope, json, program, stderr, turn};
use serde_json::Value;
use std::io::{BufRead, BufReader, Write};
use std::os::unix::net::UnixStream;
use std::path::{Path, PathBuf};
use std::process::{Child, Command, ExitStatus, Stdio};
use std::sync::mpsc::{Receiver, channel};
use std::time::{Duration, Instant};

pub(crate) const PATIENCE: Duration = Duration::from_secs(60);
pub(crate) const THIEF: &str = "wt-thief";
pub(crate) const SECOND: u64 = 1_000_000_000;

/// A running watch and what it says.
pub(crate) struct Watching {
    pub(crate) child: Child,
    lines: Receiver<String>,
}

impl Watching {
    /// Starts it with the words of a line.
    pub(crate) fn start(runs: &Path, line: &str) -> Watching {
        let mut command = Command::new(program());
        command
            .env("JITTERSCOPE_RUNS", runs)
            .arg("watch")
            .args(line.split_whitespace());
        Watching::run(command)
    }

    /// Starts a command that watches.
    pub(crate) fn run(mut command: Command) -> Watching {
        let mut child = command
            .stdin(Stdio::null())
            .stdout(Stdio::null())
            .stderr(Stdio::piped())
            .spawn()
            .unwrap();
        let (tell, lines) = channel();
        let talk = BufReader::new(child.stderr.take().unwrap());
        std::thread::spawn(move || {
            for line in talk.lines().map_while(Result::ok) {
                if tell.send(line).is_err() {
                    break;
                }
            }
        });
        Watching { child, lines }
    }

    /// Waits for a line with this text.
    pub(crate) fn says(&self, text: &str) -> String {
        let until = Instant::now() + PATIENCE;
        let mut heard = Vec::new();
        while let Ok(line) = self
            .lines
            .recv_timeout(until.saturating_duration_since(Instant::now()))
        {
            if line.contains(text) {
                return line;
            }
            heard.push(line);
        }
        panic!("it did not say '{text}', but {heard:#?}");
    }

    /// Waits for a saved run.
    pub(crate) fn saves(&self) -> PathBuf {
        let line = self.says("saved /");
        line.split_once("saved ").unwrap().1.into()
    }

    /// Waits until moments are saved whose condition was met meanwhile: a request would join them.
    fn rests(&self) {
        while let Ok(line) = self.lines.try_recv() {
            if line.contains("a condition was met") {
                self.saves();
            }
        }
    }

    pub(crate) fn signal(&self, name: &str) {
        let pid = self.child.id().to_string();
        let sent = Command::new("kill").args(["-s", name, &pid]).status();
        assert!(sent.unwrap().success());
    }

    pub(crate) fn ends(mut self) -> ExitStatus {
        let until = Instant::now() + PATIENCE;
        loop {
            if let Some(status) = self.child.try_wait().unwrap() {
                return status;
            }
            assert!(Instant::now() < until, "it does not end");
            std::thread::sleep(Duration::from_millis(20));
        }
    }
}

impl Drop for Watching {
    fn drop(&mut self) {
        let _ = self.child.kill();
        let _ = self.child.wait();
    }
}

/// A program of the thief's name: it takes a CPU from all threads of the fair class for more than half of this time.
pub(crate) fn steal(dir: &Path, cpu: u32, time: Duration) {
    let program = dir.join(THIEF);
    if !program.exists() {
        std::fs::copy("/bin/sh", &program).unwrap();
    }
    let burn = "while :; do i=0; while [ $i -lt 8000 ]; do i=$((i+1)); done; sleep 0.003; done";
    let mut thief = Command::new("chrt")
        .args(["-f", "50", "taskset", "-c", &cpu.to_string()])
        .arg(&program)
        .args(["-c", burn])
        .spawn()
        .unwrap();
    std::thread::sleep(time);
    thief.kill().unwrap();
    thief.wait().unwrap();
}

/// The time of the thief in a report, nanoseconds.
fn stolen_by_the_thief(report: &Value) -> u64 {
    let rows = report["attribution"]["culprits"].as_array().unwrap();
    let name = |row: &&Value| row["name"] == THIEF;
    let row = rows.iter().find(name);
    row.unwrap_or_else(|| panic!("{THIEF} is not in {rows:#?}"))["total_ns"]
        .as_u64()
        .unwrap()
}

fn report(runs: &Path, run: &Path) -> Value {
    json(&jitterscope(
        runs,
        &["report", run.to_str().unwrap(), "--json"],
    ))
}

pub(crate) fn status(runs: &Path) -> Value {
    let all = json(&jitterscope(runs, &["watch", "status", "--json"]));
    conforms("watch-status", &all);
    all["watches"][0].clone()
}

/// A run has its moment, the seconds before it, and every interval without a gap.
pub(crate) fn holds(run: &Path, by: AskedBy, before: u64) -> RunReader {
    let reader = RunReader::open(run).unwrap();
    let manifest = reader.manifest();
    let moment = manifest.moment.clone().unwrap();
    assert_eq!(moment.by, by);
    let start = manifest.clock_start.realtime_ns;
    let reach = moment.realtime_ns.saturating_sub(start);
    assert!(
        reach >= before - SECOND / 10,
        "{reach} ns before the moment"
    );
    assert!(manifest.clock_end.realtime_ns > moment.realtime_ns);
    assert!(!manifest.killed && !manifest.interrupted);
    let rows: Vec<_> = reader.intervals().unwrap().map(Result::unwrap).collect();
    assert!(rows.len() >= 2, "{rows:?}");
    reader
}

/// The intervals of a spinning probe follow one another to the tick, whatever lies between.
fn is_without_gap(run: &RunReader) {
    let rows: Vec<_> = run.intervals().unwrap().map(Result::unwrap).collect();
    for pair in rows.windows(2) {
        assert_eq!(pair[0].end, pair[1].start, "{rows:?}");
    }
    let stalls: Vec<_> = run.stalls().unwrap().map(Result::unwrap).collect();
    let ids: Vec<u64> = stalls.iter().map(|stall| stall.id.0).collect();
    let expected: Vec<u64> = (0..ids.len() as u64).collect();
    assert_eq!(ids, expected);
}

#[test]
fn a_moment_is_saved_by_a_condition_by_the_application_by_a_signal_and_by_a_person() {
    let _turn = turn();
    if !can_trace() {
        return;
    }
    let dir = tempfile::tempdir().unwrap();
    let (runs, socket) = (dir.path().join("runs"), dir.path().join("app"));
    let cpu = highest_cpu();
    let condition = format!("culprit({THIEF})>5%");
    let args = format!(
        "--cpus {cpu} --probe spin --keep 20s --disk 64MiB --section 2s --before 3s \
         --after 1s --apart 0s --label BOX --socket {} --save-if {condition}",
        socket.display()
    );
    let watch = Watching::start(&runs, &args);
    watch.says("watching CPU");
    std::thread::sleep(Duration::from_secs(5));

    steal(dir.path(), cpu, Duration::from_secs(2));
    let said = watch.says("culprit(");
    let met = format!("a condition was met: {condition}");
    assert!(said.contains(&met), "{said}");
    let by_condition = watch.saves();
    let run = holds(&by_condition, AskedBy::Condition, 3 * SECOND);
    is_without_gap(&run);
    let found = report(&runs, &by_condition);
    assert_eq!(found["run"]["label"], "BOX");
    assert_eq!(found["run"]["moment"]["by"], "condition");
    let stolen = stolen_by_the_thief(&found);
    assert!(stolen > SECOND / 5, "{stolen} ns");
    // The trace of its stalls is there, and this version's attribution finds the same.
    let name = by_condition.to_str().unwrap();
    let worst = jitterscope(&runs, &["report", name, "--worst", "1"]);
    let text = String::from_utf8_lossy(&worst.stdout).into_owned();
    assert!(worst.status.success(), "{}", stderr(&worst));
    assert!(!text.contains("was not kept"), "{text}");
    let again = jitterscope(&runs, &["report", name, "--json", "--reattribute"]);
    let again = stolen_by_the_thief(&json(&again));
    assert!(again.abs_diff(stolen) < stolen / 20, "{again} and {stolen}");
    let page = dir.path().join("page.html");
    let html = jitterscope(&runs, &["report", name, "--html", page.to_str().unwrap()]);
    assert!(html.status.success(), "{}", stderr(&html));
    assert!(page.metadata().unwrap().len() > 10_000);

    watch.rests();
    let mut app = UnixStream::connect(&socket).unwrap();
    app.write_all(b"order 42 was late\n").unwrap();
    watch.says("order 42 was late");
    // These join it.
    app.write_all(b"again\nand again\n").unwrap();
    let by_app = watch.saves();
    let run = holds(&by_app, AskedBy::Application, 3 * SECOND);
    let moment = run.manifest().moment.clone().unwrap();
    assert_eq!(
        (moment.text.as_str(), moment.joined),
        ("order 42 was late", 2)
    );
    is_without_gap(&run);

    watch.signal("USR1");
    let by_signal = watch.saves();
    holds(&by_signal, AskedBy::Signal, 3 * SECOND);

    let instance = instances_of(watch.child.id())
        .into_iter()
        .find(|path| path.to_string_lossy().ends_with("-senders"))
        .unwrap();
    std::fs::write(instance.join("trace_marker"), "step 7 took too long").unwrap();
    watch.says("step 7 took too long");
    holds(&watch.saves(), AskedBy::Marker, 3 * SECOND);

    let saved = jitterscope(&runs, &["watch", "save"]);
    assert!(saved.status.success(), "{}", stderr(&saved));
    let by_person = PathBuf::from(String::from_utf8_lossy(&saved.stdout).trim());
    holds(&by_person, AskedBy::Person, 3 * SECOND);
    let past = json(&jitterscope(&runs, &["watch", "status", "--json"]));
    assert!(past["schema_version"].is_u64());
    let reaches = status(&runs)["history"]["reaches_ns"].as_u64().unwrap();
    assert!(reaches > 8 * SECOND, "{reaches}");
    let now = std::time::SystemTime::now()
        .duration_since(std::time::UNIX_EPOCH)
        .unwrap();
    let ago = (now - Duration::from_secs(6)).as_millis().to_string();
    let saved = jitterscope(&runs, &["watch", "save", "--at", &ago]);
    assert!(saved.status.success(), "{}", stderr(&saved));
    let earlier = PathBuf::from(String::from_utf8_lossy(&saved.stdout).trim());
    holds(&earlier, AskedBy::Person, 3 * SECOND);
    let refused = jitterscope(&runs, &["watch", "save", "--at", "1000000000"]);
    assert_eq!(refused.status.code(), Some(2), "{}", stderr(&refused));
    assert!(
        stderr(&refused).contains("reaches back"),
        "{}",
        stderr(&refused)
    );

    let counts = status(&runs)["triggers"].clone();
    assert_eq!(counts["failed"], 0, "{counts}");
    assert!(counts["joined"].as_u64().unwrap() >= 2, "{counts}");
    let pid = watch.child.id();
    assert!(jitterscope(&runs, &["watch", "stop"]).status.success());
    assert!(watch.ends().success());
    assert!(instances_of(pid).is_empty());
    assert!(!socket.exists(), "the socket went with it");
    let list = json(&jitterscope(&runs, &["list", "--json"]));
    assert!(
        list["runs"].as_array().unwrap().len() >= 5,
        "saved runs stay"
    );
    let none = jitterscope(&runs, &["watch", "status"]);
    assert_eq!(none.status.code(), Some(1), "{}", stderr(&none));
    let advice = "no watch runs; start one: jitterscope watch --save-if 'max>200us'";
    assert!(stderr(&none).contains(advice), "{}", stderr(&none));
}

#[test]
fn the_history_stays_within_its_limits_and_watched_cpus_need_no_probe() {
    let _turn = turn();
    if !can_trace() {
        return;
    }
    let dir = tempfile::tempdir().unwrap();
    let cpu = highest_cpu().to_string();
    let start = |disk: &str| {
        let args = format!(
            "--cpus {cpu} --for {THIEF} --probe none --keep 6s \
             --disk {disk} --section 1s --before 2s --after 500ms"
        );
        let watch = Watching::start(dir.path(), &args);
        watch.says("watching CPU");
        watch
    };
    let watch = start("40MiB");
    // Its owner runs and is interrupted.
    for _ in 0..4 {
        steal(dir.path(), highest_cpu(), Duration::from_secs(3));
        let history = status(dir.path())["history"].clone();
        let of = |name: &str| history[name].as_u64().unwrap();
        assert!(of("bytes") <= of("limit_bytes"), "{history}");
        assert!(of("sections") <= 10, "{history}");
        assert!(of("reaches_ns") < 12 * SECOND, "{history}");
    }
    watch.signal("INT");
    assert!(watch.ends().success());
    // Accounts need the whole trace. On a busy machine that of a second exceeds a section's share of 40 MiB.
    let watch = start("512MiB");
    steal(dir.path(), highest_cpu(), Duration::from_secs(3));
    let saved = jitterscope(dir.path(), &["watch", "save"]);
    assert!(saved.status.success(), "{}", stderr(&saved));
    let run = PathBuf::from(String::from_utf8_lossy(&saved.stdout).trim());
    let reader = RunReader::open(&run).unwrap();
    let account = &reader.manifest().passive[0];
    assert!(account.wanted_ns() > Nanos(SECOND / 2), "{account:?}");
    assert_eq!(report(dir.path(), &run)["probe"]["kind"], "passive");
    watch.signal("INT");
    assert!(watch.ends().success());
    let hidden = dir.path().join(".watch").join(format!("cpus-{cpu}"));
    let left = std::fs::read_dir(&hidden).unwrap().flatten();
    let runs: Vec<_> = left
        .filter(|entry| entry.path().join("manifest.json").exists())
        .collect();
    assert!(runs.is_empty(), "{runs:?}");
}

#[test]
fn what_cannot_be_watched_is_refused_with_the_reason() {
    let _turn = turn();
    if !can_trace() {
        return;
    }
    let dir = tempfile::tempdir().unwrap();
    let cpu = highest_cpu().to_string();
    let open = dir.path().join("open");
    std::fs::create_dir(&open).unwrap();
    std::fs::set_permissions(&open, std::os::unix::fs::PermissionsExt::from_mode(0o777)).unwrap();
    let open = open.join("s");
    let refused = |args: &[&str], code: i32, parts: &[&str]| {
        let all = [&["watch", "--cpus", &cpu, "--probe", "spin"], args].concat();
        let output = jitterscope(dir.path(), &all);
        let text = stderr(&output);
        assert_eq!(output.status.code(), Some(code), "{args:?}: {text}");
        for part in parts {
            assert!(text.contains(part), "{args:?}: {part} is not in {text}");
        }
    };
    refused(
        &["--save-if", "late.p99>1ms"],
        2,
        &["late.p99>1ms", "record wakeup"],
    );
    refused(&["--save-if", "coverage<99%"], 2, &["coverage<99%"]);
    refused(&["--save-if", "worse(total)"], 2, &["only diff"]);
    refused(
        &["--threshold", "100us", "--save-if", "wait.p99>50us"],
        2,
        &["--threshold"],
    );
    refused(&["--disk", "1MiB"], 2, &["--disk", "MiB or more"]);
    refused(&["--keep", "5s"], 2, &["--keep"]);
    refused(&["--on-trigger", "save,fly"], 2, &["'fly' is no action"]);
    refused(&["--socket", open.to_str().unwrap()], 2, &["--socket"]);
    refused(&["--socket", "/etc/passwd"], 2, &["/etc/passwd"]);
    let passive = [
        "watch",
        "--cpus",
        &cpu,
        "--probe",
        "none",
        "--save-if",
        "wait.p99>1ms",
    ];
    let output = jitterscope(dir.path(), &passive);
    assert_eq!(output.status.code(), Some(2));
    assert!(
        stderr(&output).contains("--probe spin"),
        "{}",
        stderr(&output)
    );

    let watch = Watching::start(dir.path(), &format!("--cpus {cpu} --probe spin"));
    watch.says("watching CPU");
    let pid = format!("process {}", watch.child.id());
    refused(&[], 1, &["another watch", &pid]);
    watch.signal("INT");
    assert!(watch.ends().success());
}

#[test]
fn a_disk_that_fills_up_costs_the_oldest_history_and_nothing_that_was_saved() {
    let _turn = turn();
    if !can_trace() {
        return;
    }
    let Some(disk) = Tmpfs::mount_or_run_where_it_can(200 << 20) else {
        return;
    };
    let cpu = highest_cpu().to_string();
    let args = format!(
        "--cpus {cpu} --probe spin --keep 1m --disk 100MiB \
         --section 1s --before 2s --after 500ms"
    );
    let watch = Watching::start(disk.path(), &args);
    watch.says("watching CPU");
    std::thread::sleep(Duration::from_secs(6));
    let save = || {
        let saved = jitterscope(disk.path(), &["watch", "save"]);
        assert!(saved.status.success(), "{}", stderr(&saved));
        PathBuf::from(String::from_utf8_lossy(&saved.stdout).trim())
    };
    let first = save();
    let before = status(disk.path())["history"]["sections"].as_u64().unwrap();
    assert!(before >= 4, "{before}");
    // Others fill it.
    let mut filler = std::fs::File::create(disk.path().join("filler")).unwrap();
    let block = vec![7; 1 << 20];
    for _ in 0..100 {
        filler.write_all(&block).unwrap();
    }
    watch.says("the disk is nearly full");
    let history = status(disk.path())["history"].clone();
    assert!(
        history["dropped_for_room"].as_u64().unwrap() >= 3,
        "{history}"
    );
    let second = save();
    for run in [first, second] {
        assert_eq!(report(disk.path(), &run)["run"]["moment"]["by"], "person");
    }
    watch.signal("INT");
    assert!(watch.ends().success());
}
