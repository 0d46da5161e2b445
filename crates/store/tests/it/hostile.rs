//! Folders and files that another user made, or changes while the run is written.

use crate::common;

use common::{clean, manifest, stall, writer};
use jitterscope_model::{CpuId, Ticks};
use jitterscope_platform::AccessError;
use jitterscope_store::{
    RunReader, RunWriter, StoreError, TraceRole, list, partials, remove, resolve,
};
use jitterscope_testing::{is_root, name_of_test};
use rustix::fs::{CWD, Mode, mkfifoat};
use std::fs;
use std::os::unix::fs::{PermissionsExt, chown, symlink};
use std::path::{Path, PathBuf};
use std::process::Command;
use std::time::Duration;

/// A user other than that of this process.
const OTHER: u32 = 65_533;

fn chmod(path: &Path, mode: u32) {
    fs::set_permissions(path, fs::Permissions::from_mode(mode)).unwrap();
}

/// The result of `look`; panics if it blocks.
fn in_time<T: Send + 'static>(look: impl FnOnce() -> T + Send + 'static) -> T {
    let (tell, reported) = std::sync::mpsc::channel();
    std::thread::spawn(move || tell.send(look()));
    reported
        .recv_timeout(Duration::from_secs(30))
        .expect("it hangs")
}

/// The hidden folder of the only unfinished run.
fn partial(runs: &Path) -> PathBuf {
    let names = fs::read_dir(runs)
        .unwrap()
        .map(|entry| entry.unwrap().path());
    names
        .into_iter()
        .find(|path| {
            path.file_name()
                .unwrap()
                .to_string_lossy()
                .starts_with(".partial-")
        })
        .unwrap()
}

fn small_run(runs: &Path) -> PathBuf {
    let mut w = writer(runs);
    w.stall(&stall(0, 10, 5, "x")).unwrap();
    w.trace_page(TraceRole::Local, CpuId(1), Ticks(1), Ticks(2), &[0; 64])
        .unwrap();
    w.trace_context(br#"{"symbols": []}"#).unwrap();
    w.finish(manifest()).unwrap()
}

#[test]
fn a_run_renamed_away_in_mid_run_does_not_lead_its_writer_elsewhere() {
    let dir = tempfile::tempdir().unwrap();
    let runs = dir.path().join("runs");
    let precious = dir.path().join("precious");
    fs::write(&precious, "kept").unwrap();
    let mut w = writer(&runs);
    w.stall(&stall(0, 10, 5, "x")).unwrap();
    let hidden = partial(&runs);
    fs::rename(&hidden, runs.join("away")).unwrap();
    fs::create_dir_all(hidden.join("trace/segments")).unwrap();
    for name in [
        "manifest.json",
        ".manifest.json",
        ".reserve",
        "trace/context.json",
        "trace/segments/000001.seg",
    ] {
        symlink(&precious, hidden.join(name)).unwrap();
    }
    w.trace_page(TraceRole::Local, CpuId(1), Ticks(1), Ticks(2), &[0; 64])
        .unwrap();
    w.trace_context(b"{}").unwrap();
    match w.finish(manifest()) {
        Err(StoreError::Moved { path }) => assert_eq!(path, hidden),
        other => panic!("{other:?}"),
    }
    assert_eq!(fs::read_to_string(&precious).unwrap(), "kept");
    assert!(
        hidden.join("manifest.json").is_symlink(),
        "what another one put there is not ours to remove"
    );
    assert_eq!(
        RunReader::open(&runs.join("away"))
            .unwrap()
            .stalls()
            .unwrap()
            .count(),
        1,
        "nothing is lost"
    );
}

#[test]
fn root_records_neither_in_another_users_folder_nor_where_all_may_write() {
    if !is_root() {
        return;
    }
    let dir = tempfile::tempdir().unwrap();
    let hers = dir.path().join("hers");
    fs::create_dir(&hers).unwrap();
    chown(&hers, Some(OTHER), Some(OTHER)).unwrap();
    let open = dir.path().join("open");
    fs::create_dir(&open).unwrap();
    chmod(&open, 0o777);
    for (runs, component) in [
        (hers.clone(), &hers),
        (hers.join("deep/runs"), &hers),
        (open.join("runs"), &open),
        (open.clone(), &open),
    ] {
        let error = RunWriter::create(&runs, "L", common::EPOCH).err().unwrap();
        let text = error.to_string();
        assert!(
            matches!(
                error,
                StoreError::Folder {
                    source: AccessError::Changeable { .. },
                    ..
                }
            ),
            "{text}"
        );
        assert!(
            text.contains(&format!("{} ", component.display())) && text.contains("--runs"),
            "{text}"
        );
    }
    assert!(
        fs::read_dir(&hers).unwrap().next().is_none()
            && fs::read_dir(&open).unwrap().next().is_none()
    );
    // Like /tmp: other users cannot remove this user's files there.
    chmod(&open, 0o1777);
    assert!(small_run(&open).exists());
}

#[test]
fn another_user_records_into_her_own_folder() {
    use std::os::unix::process::CommandExt;
    if let Some(runs) = std::env::var_os("HER_RUNS") {
        small_run(Path::new(&runs));
        return;
    }
    if !is_root() {
        return;
    }
    let dir = tempfile::tempdir().unwrap();
    chmod(dir.path(), 0o755);
    let home = dir.path().join("home");
    fs::create_dir(&home).unwrap();
    chown(&home, Some(OTHER), Some(OTHER)).unwrap();
    // As on distributions with umask 002: the group has only this user.
    chmod(&home, 0o775);
    // A copy in a folder that the other user can reach.
    let program = dir.path().join("program");
    fs::copy(std::env::current_exe().unwrap(), &program).unwrap();
    let status = Command::new(&program)
        .args([
            "--exact",
            &name_of_test!(another_user_records_into_her_own_folder),
        ])
        .env("HER_RUNS", home.join("runs"))
        .current_dir(dir.path())
        .gid(OTHER)
        .uid(OTHER)
        .status();
    assert!(status.unwrap().success());
    assert_eq!(
        list(&home.join("runs")).unwrap().0.len(),
        1,
        "and root may read it"
    );
}

#[test]
fn what_is_written_is_for_its_owner_alone_whatever_the_umask() {
    if let Some(runs) = std::env::var_os("RUNS_OF_UMASK_ZERO") {
        rustix::process::umask(Mode::empty());
        small_run(Path::new(&runs));
        return;
    }
    let dir = tempfile::tempdir().unwrap();
    let runs = dir.path().join("a/runs");
    let test = name_of_test!(what_is_written_is_for_its_owner_alone_whatever_the_umask);
    let again = Command::new(std::env::current_exe().unwrap())
        .args(["--exact", &test])
        .env("RUNS_OF_UMASK_ZERO", &runs)
        .status();
    assert!(again.unwrap().success());
    let mut left = vec![dir.path().join("a")];
    let mut files = 0;
    while let Some(path) = left.pop() {
        let found = fs::symlink_metadata(&path).unwrap();
        let wanted = if found.is_dir() { 0o700 } else { 0o600 };
        assert_eq!(
            found.permissions().mode() & 0o7777,
            wanted,
            "{}",
            path.display()
        );
        if found.is_dir() {
            left.extend(
                fs::read_dir(&path)
                    .unwrap()
                    .map(|entry| entry.unwrap().path()),
            );
        } else {
            files += 1;
        }
    }
    assert_eq!(
        files, 12,
        "tables and their views, histograms, manifest and details, context, a segment and its times"
    );
}

#[test]
fn a_run_that_others_may_read_stays_readable() {
    let dir = tempfile::tempdir().unwrap();
    let run = small_run(&dir.path().join("runs"));
    for path in [&dir.path().join("runs"), &run] {
        chmod(path, 0o755);
    }
    chmod(&run.join("manifest.json"), 0o644);
    assert_eq!(RunReader::open(&run).unwrap().stalls().unwrap().count(), 1);
    assert_eq!(list(&dir.path().join("runs")).unwrap().0.len(), 1);
}

#[test]
fn a_folder_without_a_run_is_reported_and_reading_it_is_bounded() {
    let dir = tempfile::tempdir().unwrap();
    let runs = dir.path().join("runs");
    let good = small_run(&runs);
    let bad = |name: &str| {
        let run = runs.join(name);
        fs::create_dir(&run).unwrap();
        run.join("manifest.json")
    };
    mkfifoat(CWD, bad("fifo"), Mode::RUSR | Mode::WUSR).unwrap();
    fs::create_dir(bad("folder")).unwrap();
    symlink("manifest.json", bad("loop")).unwrap();
    symlink("nowhere", bad("dangling")).unwrap();
    symlink("/dev/zero", bad("device")).unwrap();
    symlink(good.join("manifest.json"), bad("link")).unwrap();
    fs::File::create(bad("sparse"))
        .unwrap()
        .set_len(10 << 30)
        .unwrap();
    symlink("itself", runs.join("itself")).unwrap();
    mkfifoat(CWD, runs.join("a-fifo-itself"), Mode::RUSR | Mode::WUSR).unwrap();
    fs::write(runs.join("a-file"), "").unwrap();
    let looked = runs.clone();
    let (found, problems) = in_time(move || list(&looked).unwrap());
    assert_eq!(found.len(), 1);
    let reported: Vec<String> = problems
        .iter()
        .map(|problem| problem.error.to_string())
        .collect();
    let expected = [
        ("dangling", "a symbolic link, not a regular file"),
        ("device", "a symbolic link, not a regular file"),
        ("fifo", "a named pipe, not a regular file"),
        ("folder", "a folder, not a regular file"),
        ("link", "a symbolic link, not a regular file"),
        ("loop", "a symbolic link, not a regular file"),
        ("sparse", "is larger than 64 MiB"),
    ];
    assert_eq!(reported.len(), expected.len(), "{reported:?}");
    for ((problem, reported), (name, why)) in problems.iter().zip(&reported).zip(expected) {
        assert_eq!(problem.path, runs.join(name));
        assert!(reported.contains(why), "{reported}");
    }
    let fifo = runs.clone();
    assert!(in_time(move || resolve(
        &fifo,
        fifo.join("fifo").to_str().unwrap()
    )
    .is_err()));
}

#[test]
fn files_of_a_run_that_are_no_files_are_errors() {
    let replaced = |name: &str, with: &dyn Fn(&Path)| {
        let dir = tempfile::tempdir().unwrap();
        let run = small_run(&dir.path().join("runs"));
        let path = run.join(name);
        fs::remove_file(&path).unwrap();
        with(&path);
        in_time(move || {
            let run = RunReader::open(&run)?;
            run.stalls()?.try_for_each(|row| row.map(drop))?;
            run.attributions()?.try_for_each(|row| row.map(drop))?;
            run.intervals()?.try_for_each(|row| row.map(drop))?;
            run.interval_histograms()?
                .try_for_each(|row| row.map(drop))?;
            run.trace_context::<serde_json::Value>()?;
            run.trace_pages(Ticks(0), Ticks(u64::MAX)).map(drop)
        })
    };
    let files = [
        "manifest.json",
        "stalls.parquet",
        "parts.parquet",
        "culprits.parquet",
        "remarks.parquet",
        "intervals.parquet",
        "histograms.hlog",
        "trace/context.json",
        "trace/segments/000001.seg",
    ];
    for file in files {
        let fifo = replaced(file, &|path| {
            mkfifoat(CWD, path, Mode::RUSR | Mode::WUSR).unwrap()
        });
        assert!(
            matches!(
                fifo,
                Err(StoreError::Access(AccessError::NotRegular { .. }))
            ),
            "{file}: {fifo:?}"
        );
        let link = replaced(file, &|path| symlink("/dev/zero", path).unwrap());
        assert!(
            matches!(
                link,
                Err(StoreError::Access(AccessError::NotRegular { .. }))
            ),
            "{file}: {link:?}"
        );
        // Like `/dev/zero`: it has no end.
        let zeros = replaced(file, &|path| {
            fs::File::create(path).unwrap().set_len(64 << 30).unwrap()
        });
        let refused = matches!(
            zeros,
            Err(StoreError::Damaged { .. } | StoreError::Access(AccessError::TooLarge { .. }))
        );
        assert!(refused, "{file}: {zeros:?}");
    }
    // A footer may claim at most 8 MiB.
    for (length, impossible) in [(8 << 20, false), ((8 << 20) + 1, true), (i32::MAX, true)] {
        let footer = replaced("stalls.parquet", &|path| {
            let file = fs::File::create(path).unwrap();
            file.set_len(64 << 30).unwrap();
            let tail = [&length.to_le_bytes()[..], b"PAR1"].concat();
            std::os::unix::fs::FileExt::write_all_at(&file, &tail, (64 << 30) - 8).unwrap();
        });
        let why = footer.unwrap_err().to_string();
        assert_eq!(
            why.contains("bytes of footer"),
            impossible,
            "{length}: {why}"
        );
    }
}

#[test]
fn sweeping_up_removes_what_is_ours_and_follows_nothing() {
    let dir = tempfile::tempdir().unwrap();
    let runs = dir.path().join("runs");
    fs::create_dir(&runs).unwrap();
    let outside = dir.path().join("outside");
    fs::create_dir(&outside).unwrap();
    fs::write(outside.join("file"), "kept").unwrap();
    let dead = |name: &str| runs.join(format!(".partial-4194305-1-{name}"));
    fs::create_dir_all(dead("a").join("trace/segments")).unwrap();
    symlink(&outside, dead("a").join("trace/segments/link")).unwrap();
    symlink(outside.join("file"), dead("a").join("manifest.json")).unwrap();
    symlink(&outside, dead("b")).unwrap();
    assert_eq!(partials(&runs).unwrap().len(), 1);
    assert_eq!(clean(&runs).unwrap(), (1, 0));
    assert!(!dead("a").exists() && dead("b").is_symlink());
    assert_eq!(fs::read_to_string(outside.join("file")).unwrap(), "kept");
    if is_root() {
        chmod(&runs, 0o1777);
        fs::create_dir(dead("hers")).unwrap();
        chown(dead("hers"), Some(OTHER), Some(OTHER)).unwrap();
        assert!(clean(&runs).unwrap() == (0, 0) && dead("hers").exists());
        chown(&runs, Some(OTHER), Some(OTHER)).unwrap();
        fs::create_dir(dead("c")).unwrap();
        let error = clean(&runs).unwrap_err();
        assert!(
            matches!(error, StoreError::Access(AccessError::Changeable { .. })),
            "{error}"
        );
        assert!(dead("c").exists());
    }
}

#[test]
fn a_run_is_removed_and_what_it_links_to_is_not() {
    let dir = tempfile::tempdir().unwrap();
    let runs = dir.path().join("runs");
    let run = small_run(&runs);
    symlink(dir.path(), run.join("up")).unwrap();
    remove(&run).unwrap();
    assert!(!run.exists() && runs.exists());
    symlink(dir.path(), runs.join("link")).unwrap();
    remove(&runs.join("link")).unwrap();
    assert!(!runs.join("link").is_symlink() && dir.path().exists() && runs.exists());
}
