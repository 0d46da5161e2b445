use super::testing::{fleet_at, host_hour};
use super::*;
use std::fs;
use std::os::unix::fs::PermissionsExt;

const HOUR: u64 = 495_000;

/// A time so many minutes after the hour has begun.
fn at(minutes: u64) -> SystemTime {
    UNIX_EPOCH + Duration::from_secs(hour_start_s(HOUR) + 60 * minutes)
}

fn watch(dir: &Path) -> std::path::PathBuf {
    let watch = dir.join("cpus-1");
    fs::create_dir_all(watch.join(HOURS)).unwrap();
    watch
}

fn write(watch: &Path, hour: &HostHour) {
    let name = HourFile::new(hour.hour, &hour.host.boot).name();
    fs::write(
        watch.join(HOURS).join(name),
        serde_json::to_vec(hour).unwrap(),
    )
    .unwrap();
}

fn uploader(watch: &Path, store: &Path) -> Uploader {
    Uploader::new(fleet_at(store), "c", watch, None).unwrap()
}

#[test]
fn an_hour_is_sent_once_it_is_over() {
    let dir = tempfile::tempdir().unwrap();
    let (watch, store) = (watch(dir.path()), dir.path().join("store"));
    write(&watch, &host_hour("h", HOUR));
    write(&watch, &host_hour("h", HOUR - 1));
    let mut uploader = uploader(&watch, &store);
    let state = uploader.turn(at(30)).clone();
    assert_eq!(
        (state.sent_hours, state.waiting_hours, &state.problem),
        (1, 0, &None)
    );
    // It has just ended: the watch may still write it.
    assert_eq!(uploader.turn(at(61)).sent_hours, 1);
    assert_eq!(uploader.turn(at(63)).sent_hours, 2);
    assert_eq!(uploader.turn(at(64)).sent_hours, 2, "each is sent once");
    let raw = uploader.location.list("v1/raw").unwrap();
    let names: Vec<&str> = raw.iter().map(|of| &*of.path).collect();
    assert_eq!(names.len(), 2);
    assert_eq!(
        names[1],
        "v1/raw/cluster=c/day=2026-06-21/0000495000-abcdef01-h-cpus-1.parquet"
    );
}

#[test]
fn what_a_full_or_missing_store_did_not_take_is_sent_later() {
    let dir = tempfile::tempdir().unwrap();
    let (watch, store) = (watch(dir.path()), dir.path().join("store"));
    let mut uploader = uploader(&watch, &store);
    for hour in 1..=3 {
        write(&watch, &host_hour("h", HOUR - hour));
    }
    // A file where a folder must be: no rights help, root has them all.
    fs::write(store.join("v1"), "").unwrap();
    let state = uploader.turn(at(30)).clone();
    assert_eq!(
        (state.sent_hours, state.waiting_hours, state.problems),
        (0, 3, 1)
    );
    assert!(state.problem.is_some() && state.complete_s.is_none());
    fs::remove_file(store.join("v1")).unwrap();
    let state = uploader.turn(at(31)).clone();
    assert_eq!(
        (state.sent_hours, state.waiting_hours, state.problem),
        (3, 0, None)
    );
}

#[test]
fn a_file_that_is_no_hour_stays_and_holds_up_nothing() {
    let dir = tempfile::tempdir().unwrap();
    let (watch, store) = (watch(dir.path()), dir.path().join("store"));
    fs::write(watch.join(HOURS).join("0000000001-ab.json"), "{").unwrap();
    write(&watch, &host_hour("h", HOUR - 1));
    let mut uploader = uploader(&watch, &store);
    let state = uploader.turn(at(30));
    assert_eq!((state.sent_hours, state.unreadable_hours), (1, 1));
    assert!(watch.join(HOURS).join("0000000001-ab.json").exists());
}

#[test]
fn two_machines_with_one_name_are_told_and_both_keep_their_rows() {
    let dir = tempfile::tempdir().unwrap();
    let store = dir.path().join("store");
    let of = |id: &str, boot: &str, hour: u64| {
        let mut hour = host_hour("h", hour);
        hour.host.id = id.into();
        hour.host.boot = boot.into();
        hour
    };
    let place = |name: &str| watch(&dir.path().join(name));
    let (one, two) = (place("one"), place("two"));
    let mut first = uploader(&one, &store);
    let mut second = uploader(&two, &store);
    write(&one, &of("id1", "aa", HOUR - 2));
    assert_eq!(first.turn(at(1)).problem, None);
    write(&two, &of("id2", "bb", HOUR - 2));
    let problem = second.turn(at(2)).problem.clone().unwrap();
    assert_eq!(problem.kind, "two_hosts");
    assert!(
        problem
            .text
            .contains("machine id1 has the name of this one, id2"),
        "{problem:?}"
    );
    // The first learns it with its next hour.
    write(&one, &of("id1", "aa", HOUR - 1));
    assert!(first.turn(at(3)).problem.is_some());
    assert_eq!(first.location.list("v1/raw").unwrap().len(), 3);
    // A clone has the machine id as well; its boot is another.
    let three = place("three");
    let mut clone = uploader(&three, &store);
    write(&three, &of("id1", "cc", HOUR - 1));
    assert_eq!(
        clone.turn(at(4)).problem,
        None,
        "it may be the same machine after a reboot"
    );
    write(&one, &of("id1", "aa", HOUR - 3));
    let problem = first.turn(at(5)).problem.clone().unwrap();
    assert!(
        problem.text.contains("another machine has the machine id"),
        "{problem:?}"
    );
}

#[test]
fn a_folder_that_another_user_could_change_is_refused() {
    let dir = tempfile::tempdir().unwrap();
    let watch = watch(dir.path());
    fs::set_permissions(watch.join(HOURS), fs::Permissions::from_mode(0o777)).unwrap();
    let refused = Uploader::new(fleet_at(&dir.path().join("s")), "c", &watch, None);
    let refused = refused.unwrap_err().to_string();
    assert!(
        refused.contains("could replace what is written below it"),
        "{refused}"
    );
}

#[test]
fn saved_runs_are_sent_once_and_other_runs_stay() {
    let dir = tempfile::tempdir().unwrap();
    let (watch, store) = (watch(dir.path()), dir.path().join("store"));
    let fixture = Path::new(env!("CARGO_MANIFEST_DIR")).join("../recording/tests/fixtures/spin");
    let runs = dir.path().join("runs");
    for name in [
        "2026-06-21T10-00-00Z-watch-aaaaaa",
        "2026-06-21T11-00-00Z-run-bbbbbb",
    ] {
        copy(&fixture, &runs.join(name));
    }
    let details = runs.join("2026-06-21T10-00-00Z-watch-aaaaaa/details.json");
    let mut manifest: serde_json::Value =
        serde_json::from_slice(&fs::read(&details).unwrap()).unwrap();
    manifest["moment"] = serde_json::json!({
        "realtime_ns": 1_782_000_000_000_000_000_u64, "by": "person", "text": "x", "joined": 0
    });
    fs::write(&details, manifest.to_string()).unwrap();
    write(&watch, &host_hour("h", HOUR - 1));
    let open = || Uploader::new(fleet_at(&store), "c", &watch, Some(&runs)).unwrap();
    let status = open().turn(at(30)).clone();
    assert_eq!(
        (status.sent_hours, status.sent_runs, status.problem),
        (1, 1, None)
    );
    let sent = store.join("v1/runs/cluster=c/day=2026-06-21/host=h");
    let sent = sent.join("2026-06-21T10-00-00Z-watch-aaaaaa");
    for file in ["manifest.json", "stalls.parquet", "trace/context.json"] {
        let there = runs.join("2026-06-21T10-00-00Z-watch-aaaaaa").join(file);
        assert_eq!(
            fs::read(sent.join(file)).unwrap(),
            fs::read(there).unwrap(),
            "{file}"
        );
    }
    // A new uploader asks the store what it has.
    write(&watch, &host_hour("h", HOUR - 2));
    assert_eq!(open().turn(at(31)).sent_runs, 0);
}

fn copy(from: &Path, to: &Path) {
    fs::create_dir_all(to).unwrap();
    for entry in fs::read_dir(from).unwrap() {
        let path = entry.unwrap().path();
        let target = to.join(path.file_name().unwrap());
        match path.is_dir() {
            true => copy(&path, &target),
            false => drop(fs::copy(&path, &target).unwrap()),
        }
    }
}

/// Whatever is killed when: after the last turn, the store has every row of every hour once.
#[test]
fn kills_and_outages_lose_and_double_nothing() {
    let mut random = fastrand::Rng::with_seed(37);
    let dir = tempfile::tempdir().unwrap();
    let (watch, store) = (watch(dir.path()), dir.path().join("store"));
    let hours: Vec<u64> = (0..200).map(|n| HOUR - 200 + n).collect();
    let mut written = 0;
    for _ in 0..100 {
        let more = random.usize(0..5).min(hours.len() - written);
        for hour in &hours[written..written + more] {
            write(&watch, &host_hour("h", *hour));
        }
        written += more;
        let mut uploader = uploader(&watch, &store);
        match random.u8(0..3) {
            // An outage.
            0 => {
                let gone = dir.path().join("gone");
                fs::rename(&store, &gone).unwrap();
                fs::write(&store, "").unwrap();
                assert!(written == 0 || uploader.turn(at(30)).sent_hours == 0);
                fs::remove_file(&store).unwrap();
                fs::rename(&gone, &store).unwrap();
            }
            // Killed after the store has an hour, and before the file has its new name.
            1 => {
                let waiting = uploader.waiting(at(30)).unwrap();
                if let Some(first) = waiting.first() {
                    let name = watch.join(HOURS).join(first.name());
                    let kept = fs::read(&name).unwrap();
                    uploader.send(first).unwrap();
                    let sent = first.clone().sent().name();
                    fs::remove_file(watch.join(HOURS).join(sent)).unwrap();
                    fs::write(&name, kept).unwrap();
                }
            }
            _ => {
                uploader.turn(at(30));
            }
        }
        if random.u8(0..10) == 0 {
            let grace = Duration::from_secs(3600 * u64::from(random.bool()));
            let location = fleet_at(&store);
            let now = if random.bool() { 4_000_000_000 } else { 0 };
            crate::compact::compact(&location, "2027", grace, now).unwrap();
        }
    }
    for hour in &hours[written..] {
        write(&watch, &host_hour("h", *hour));
    }
    let mut last = uploader(&watch, &store);
    assert_eq!(last.turn(at(30)).problem, None);
    let mut now = 0;
    for _ in 0..2 {
        let grace = Duration::from_secs(3600);
        crate::compact::compact(&last.location, "2027", grace, now).unwrap();
        now = 4_000_000_000;
    }
    assert!(last.location.list("v1/raw").unwrap().is_empty());
    let merged = last.location.list("v1/days").unwrap();
    let files = merged.iter().map(|of| {
        let file = fs::File::open(store.join(&of.path)).unwrap();
        (file, Path::new(&of.path))
    });
    let one_by_one: u64 = files
        .clone()
        .map(|file| {
            jitterscope_store::rollup::merge(vec![file], &|_| false)
                .unwrap()
                .rows
        })
        .sum();
    let all = jitterscope_store::rollup::merge(files.collect(), &|_| false).unwrap();
    // An hour has two rows: its own and its culprit's.
    assert_eq!((all.batches.len(), all.rows, one_by_one), (200, 400, 400));
    if let Some(counted) = counted_by_duckdb(&store) {
        assert_eq!(counted, "200,200,200");
    }
}

/// DuckDB's counts of a store: hours, different hours, and rows of culprits. `None`, visibly, without DuckDB.
fn counted_by_duckdb(store: &Path) -> Option<String> {
    let program = std::env::current_exe().unwrap();
    // Below the folder of compiled tests, as of any test that makes files to keep.
    let kept = program.ancestors().nth(3)?.join("tmp");
    fs::create_dir_all(&kept).unwrap();
    let tools = jitterscope_testing::python(&kept, &["duckdb-cli==1.5.6"])?;
    let views =
        crate::schema::schema(crate::schema::Dialect::Duckdb, &store.to_string_lossy()).unwrap();
    let query = "SELECT count(*), count(DISTINCT (host_id, hour)), (SELECT count(*) FROM culprits) FROM hours";
    let answer = std::process::Command::new(tools.join("bin/duckdb"))
        .args(["-init", "/dev/null", "-csv", "-noheader"])
        .args(["-cmd", &views, "-c", query])
        .output()
        .unwrap();
    let said = String::from_utf8_lossy(&answer.stdout).trim().to_owned();
    assert!(answer.status.success(), "{answer:?}");
    Some(said)
}
