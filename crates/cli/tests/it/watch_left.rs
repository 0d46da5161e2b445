//! What a watch leaves when it is killed, and a watch that does not answer. Real recordings need root and tracefs; without
//! them, the tests print a note and are skipped.

use crate::live;
use crate::schema_check::conforms;
use crate::watch::{PATIENCE, SECOND, Watching, holds, status};

use jitterscope_model::AskedBy;
use jitterscope_testing::{highest_cpu, instances_of};
use live::{can_trace, jitterscope, json, stderr, turn};
use std::io::Write;
use std::os::unix::net::UnixStream;
use std::time::{Duration, Instant};

#[test]
fn what_a_killed_watch_was_about_to_save_is_saved_by_the_next_one() {
    let _turn = turn();
    if !can_trace() {
        return;
    }
    let dir = tempfile::tempdir().unwrap();
    let cpu = highest_cpu().to_string();
    let socket = dir.path().join("app");
    let args = format!(
        "--cpus {cpu} --probe spin --section 2s --before 3s \
         --after 30s --keep 2m --socket {}",
        socket.display()
    );
    let watch = Watching::start(dir.path(), &args);
    watch.says("watching CPU");
    std::thread::sleep(Duration::from_secs(5));
    UnixStream::connect(&socket)
        .unwrap()
        .write_all(b"it happened\n")
        .unwrap();
    watch.says("it happened");
    std::thread::sleep(Duration::from_secs(3));
    let pid = watch.child.id();
    watch.signal("KILL");
    watch.ends();
    assert!(!instances_of(pid).is_empty(), "killed, it left them");
    let left = json(&jitterscope(dir.path(), &["doctor", "--json"]))["leftovers"].to_string();
    assert!(left.contains("history of a killed watch"), "{left}");
    assert!(left.contains("with a moment to save"), "{left}");
    let next = Watching::start(dir.path(), &args);
    let run = next.saves();
    next.says("watching CPU");
    assert!(instances_of(pid).is_empty(), "the next start removes them");
    let reader = holds(&run, AskedBy::Application, 3 * SECOND);
    let manifest = reader.manifest();
    assert_eq!(manifest.moment.clone().unwrap().text, "it happened");
    let after = manifest.clock_end.realtime_ns - manifest.moment.clone().unwrap().realtime_ns;
    assert!(after > 2 * SECOND, "{after} ns until it was killed");
    // What it kept is still history.
    let reaches = status(dir.path())["history"]["reaches_ns"]
        .as_u64()
        .unwrap();
    assert!(reaches > 6 * SECOND, "{reaches}");
    next.signal("TERM");
    assert!(next.ends().success());
}

#[test]
fn the_daily_cap_outlives_the_process_and_doctor_ends_what_a_killed_watch_left() {
    let _turn = turn();
    if !can_trace() {
        return;
    }
    let dir = tempfile::tempdir().unwrap();
    let cpu = highest_cpu().to_string();
    let args = |after: &str| {
        format!(
            "--cpus {cpu} --probe spin --section 1s --before 1s --after {after} --keep 2m --disk 64MiB \
             --apart 0s --daily 1"
        )
    };
    let watch = Watching::start(dir.path(), &args("500ms"));
    watch.says("watching CPU");
    std::thread::sleep(Duration::from_secs(2));
    watch.signal("USR1");
    watch.saves();
    watch.signal("KILL");
    watch.ends();

    let next = Watching::start(dir.path(), &args("20s"));
    next.says("watching CPU");
    next.signal("USR1");
    let until = Instant::now() + PATIENCE;
    while status(dir.path())["triggers"]["over_cap"] != 1 {
        assert!(Instant::now() < until, "{}", status(dir.path()));
    }
    // A person is not limited.
    let asked = std::thread::spawn({
        let runs = dir.path().to_path_buf();
        move || jitterscope(&runs, &["watch", "save"])
    });
    next.says("'watch save' asked");
    std::thread::sleep(Duration::from_secs(2));
    next.signal("KILL");
    next.ends();
    assert!(!asked.join().unwrap().status.success());
    let cleaned = json(&jitterscope(dir.path(), &["doctor", "--clean", "--json"]));
    let removed = cleaned["removed"].to_string();
    assert!(
        removed.contains("what it was about to save is"),
        "{cleaned}"
    );
    let left = json(&jitterscope(dir.path(), &["doctor", "--json"]));
    assert_eq!(left["leftovers"].as_array().unwrap().len(), 0, "{left}");
    let list = json(&jitterscope(dir.path(), &["list", "--json"]));
    assert_eq!(list["runs"].as_array().unwrap().len(), 2, "{list}");
}

#[test]
fn a_watch_that_does_not_answer_is_a_row_of_its_own() {
    let _turn = turn();
    if !can_trace() {
        return;
    }
    let dir = tempfile::tempdir().unwrap();
    let cpu = highest_cpu();
    // Named, because nothing else may run there.
    let watch = Watching::start(dir.path(), &format!("--cpus {cpu} --probe none --for sh"));
    watch.says("watching CPU");
    watch.signal("STOP");
    let all = json(&jitterscope(dir.path(), &["watch", "status", "--json"]));
    conforms("watch-status", &all);
    let text = jitterscope(dir.path(), &["watch", "status"]);
    let stop = jitterscope(dir.path(), &["watch", "stop"]);
    watch.signal("CONT");
    assert_eq!(all["watches"].as_array().unwrap().len(), 0, "{all}");
    assert_eq!(all["silent"][0]["first_cpu"], cpu, "{all}");
    let said = String::from_utf8_lossy(&text.stdout).into_owned();
    assert!(
        text.status.success() && said.contains("does not answer"),
        "{said}"
    );
    assert_eq!(stop.status.code(), Some(1));
    assert!(
        stderr(&stop).contains("does not answer"),
        "{}",
        stderr(&stop)
    );
    watch.signal("INT");
    assert!(watch.ends().success());
}
