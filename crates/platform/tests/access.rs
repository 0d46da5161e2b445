//! Folders and files that another user can change.

use jitterscope_platform::{AccessError, HeldDir, OutputPlace, open_regular, read_bounded};
use jitterscope_testing::{is_root, name_of_test};
use rustix::fs::{CWD, Mode, mkfifoat};
use std::fs;
use std::io::{ErrorKind, Read, Write};
use std::os::unix::fs::{MetadataExt, PermissionsExt, chown, lchown, symlink};
use std::path::{Path, PathBuf};
use std::time::Duration;

/// A user id other than ours.
const OTHER: u32 = 65_533;

/// A temporary folder, under a path without links.
fn folder() -> (tempfile::TempDir, PathBuf) {
    let dir = tempfile::tempdir().unwrap();
    let path = dir.path().canonicalize().unwrap();
    (dir, path)
}

fn mode(path: &Path) -> u32 {
    fs::symlink_metadata(path).unwrap().permissions().mode() & 0o7777
}

fn chmod(path: &Path, mode: u32) {
    fs::set_permissions(path, fs::Permissions::from_mode(mode)).unwrap();
}

/// What `open` returns, unless it blocks.
fn in_time<T: Send + 'static>(open: impl FnOnce() -> T + Send + 'static) -> T {
    let (sender, receiver) = std::sync::mpsc::channel();
    std::thread::spawn(move || sender.send(open()));
    receiver
        .recv_timeout(Duration::from_secs(20))
        .expect("it waits for the other end of a pipe")
}

#[test]
fn what_is_made_is_for_its_owner_alone_whatever_the_umask() {
    // The umask applies to the whole process, so the test runs itself again.
    if std::env::var_os("UMASK_OF_ZERO").is_none() {
        let test = name_of_test!(what_is_made_is_for_its_owner_alone_whatever_the_umask);
        let again = std::process::Command::new(std::env::current_exe().unwrap())
            .args(["--exact", &test])
            .env("UMASK_OF_ZERO", "1")
            .status();
        assert!(again.unwrap().success());
        return;
    }
    let (_dir, path) = folder();
    rustix::process::umask(Mode::empty());
    let held = HeldDir::trusted_or_made(&path.join("a/b")).unwrap();
    held.create_new("file").unwrap().write_all(b"x").unwrap();
    held.open_own("journal").unwrap();
    held.make_dir("c").unwrap();
    for (made, wanted) in [
        ("a", 0o700),
        ("a/b", 0o700),
        ("a/b/c", 0o700),
        ("a/b/file", 0o600),
        ("a/b/journal", 0o600),
    ] {
        assert_eq!(mode(&path.join(made)), wanted, "{made}");
    }
}

#[test]
fn a_folder_that_others_can_write_to_is_refused_unless_sticky() {
    let (_dir, path) = folder();
    let runs = path.join("open/runs");
    fs::create_dir_all(&runs).unwrap();
    chmod(&path.join("open"), 0o777);
    match HeldDir::trusted(&runs) {
        Err(AccessError::Changeable { component, .. }) => assert_eq!(component, path.join("open")),
        other => panic!("{other:?}"),
    }
    assert!(matches!(
        HeldDir::trusted_or_made(&path.join("open/new")),
        Err(AccessError::Changeable { .. })
    ));
    assert!(!path.join("open/new").exists());
    chmod(&path.join("open"), 0o1777);
    HeldDir::trusted(&runs).unwrap();
    chmod(&path.join("open"), 0o775);
    if rustix::process::geteuid().is_root() {
        assert!(matches!(
            HeldDir::trusted(&runs),
            Err(AccessError::Changeable { .. })
        ));
    }
    chmod(&path.join("open"), 0o755);
    let held = HeldDir::trusted(&path.join("open/../open/./runs")).unwrap();
    held.create_new("x").unwrap();
    assert!(runs.join("x").exists());
}

#[test]
fn root_keeps_nothing_in_another_users_folder_nor_behind_her_link() {
    if !is_root() {
        return;
    }
    let (_dir, path) = folder();
    let hers = path.join("hers");
    fs::create_dir_all(hers.join("runs")).unwrap();
    chown(&hers, Some(OTHER), Some(OTHER)).unwrap();
    match HeldDir::trusted(&hers.join("runs")) {
        Err(error @ AccessError::Changeable { .. }) => {
            assert!(
                error
                    .to_string()
                    .contains(&format!("belongs to user {OTHER}")),
                "{error}"
            );
        }
        other => panic!("{other:?}"),
    }
    // In a shared sticky folder, the user's link is not followed, root's is.
    let shared = path.join("shared");
    fs::create_dir_all(path.join("target")).unwrap();
    fs::create_dir(&shared).unwrap();
    chmod(&shared, 0o1777);
    symlink(path.join("target"), shared.join("link")).unwrap();
    HeldDir::trusted(&shared.join("link"))
        .unwrap()
        .create_new("made")
        .unwrap();
    assert!(path.join("target/made").exists());
    lchown(shared.join("link"), Some(OTHER), Some(OTHER)).unwrap();
    assert!(matches!(
        HeldDir::trusted(&shared.join("link")),
        Err(AccessError::Foreign { .. })
    ));
}

#[test]
fn a_loop_of_links_ends() {
    let (_dir, path) = folder();
    symlink(path.join("b"), path.join("a")).unwrap();
    symlink("a", path.join("b")).unwrap();
    let receiver = |error: AccessError| match error {
        AccessError::Io { source, .. } => source.raw_os_error(),
        other => panic!("{other:?}"),
    };
    let looped = Some(rustix::io::Errno::LOOP.raw_os_error());
    assert_eq!(
        receiver(HeldDir::trusted(&path.join("a/runs")).unwrap_err()),
        looped
    );
    assert_eq!(receiver(open_regular(&path.join("a")).unwrap_err()), looped);
    assert_eq!(
        receiver(
            OutputPlace::find(&path.join("a"))
                .unwrap()
                .open()
                .unwrap_err()
        ),
        looped
    );
}

#[test]
fn what_is_held_stays_what_it_was_when_its_name_is_taken_away() {
    let (_dir, path) = folder();
    fs::write(path.join("precious"), "kept").unwrap();
    let runs = HeldDir::trusted(&path).unwrap();
    let run = runs.make_dir(".partial").unwrap();
    // The attack: moves the folder away, and puts another in its place whose manifest is a link.
    fs::rename(path.join(".partial"), path.join("elsewhere")).unwrap();
    fs::create_dir(path.join(".partial")).unwrap();
    symlink(path.join("precious"), path.join(".partial/manifest.json")).unwrap();
    run.create_new("manifest.json")
        .unwrap()
        .write_all(b"{}")
        .unwrap();
    assert_eq!(fs::read_to_string(path.join("precious")).unwrap(), "kept");
    assert_eq!(
        fs::read_to_string(path.join("elsewhere/manifest.json")).unwrap(),
        "{}"
    );
    assert!(matches!(
        runs.rename_held(&run, ".partial", "run"),
        Err(AccessError::Replaced { .. })
    ));
    assert!(!path.join("run").exists());
    assert!(matches!(
        runs.remove_held(&run, ".partial"),
        Err(AccessError::Replaced { .. })
    ));
    assert!(
        path.join(".partial/manifest.json").is_symlink(),
        "what is not ours is left alone"
    );
}

#[test]
fn links_are_neither_opened_nor_overwritten() {
    let (_dir, path) = folder();
    fs::write(path.join("precious"), "kept").unwrap();
    symlink(path.join("precious"), path.join("link")).unwrap();
    symlink(&path, path.join("dirlink")).unwrap();
    let held = HeldDir::trusted(&path).unwrap();
    assert_eq!(
        held.create_new("link").unwrap_err().io_kind(),
        Some(ErrorKind::AlreadyExists)
    );
    assert!(matches!(
        held.open_own("link"),
        Err(AccessError::NotRegular { .. })
    ));
    assert!(matches!(
        held.open_file("link"),
        Err(AccessError::NotRegular { .. })
    ));
    assert!(held.open_dir("dirlink").is_err());
    for name in ["", ".", "..", "a/b", "/etc/passwd"] {
        assert_eq!(
            held.open_file(name).unwrap_err().io_kind(),
            Some(ErrorKind::InvalidInput),
            "{name}"
        );
    }
    fs::hard_link(path.join("precious"), path.join("second")).unwrap();
    assert!(matches!(
        held.open_own("second"),
        Err(AccessError::NotRegular { .. })
    ));
    assert_eq!(fs::read_to_string(path.join("precious")).unwrap(), "kept");
}

#[test]
fn a_name_that_is_taken_is_not_replaced() {
    let (_dir, path) = folder();
    let runs = HeldDir::trusted(&path).unwrap();
    let run = runs.make_dir("partial").unwrap();
    fs::create_dir(path.join("run")).unwrap();
    let error = runs.rename_held(&run, "partial", "run").unwrap_err();
    assert_eq!(error.io_kind(), Some(ErrorKind::AlreadyExists), "{error}");
    runs.rename_held(&run, "partial", "run2").unwrap();
    assert!(path.join("run2").is_dir());
}

#[test]
fn removing_a_tree_removes_links_and_not_what_they_lead_to() {
    let (_dir, path) = folder();
    fs::create_dir_all(path.join("tree/trace/segments")).unwrap();
    fs::create_dir(path.join("outside")).unwrap();
    fs::write(path.join("outside/file"), "kept").unwrap();
    symlink(path.join("outside"), path.join("tree/trace/link")).unwrap();
    symlink(path.join("outside/file"), path.join("tree/file")).unwrap();
    symlink(path.join("outside"), path.join("toplink")).unwrap();
    let held = HeldDir::trusted(&path).unwrap();
    held.remove_tree("tree").unwrap();
    assert!(held.remove_tree("toplink").is_err());
    assert!(!path.join("tree").exists());
    assert_eq!(
        fs::read_to_string(path.join("outside/file")).unwrap(),
        "kept"
    );
}

#[test]
fn pipes_devices_folders_and_sockets_are_no_files_and_are_not_waited_for() {
    let (_dir, path) = folder();
    mkfifoat(CWD, path.join("fifo"), Mode::RUSR | Mode::WUSR).unwrap();
    fs::create_dir(path.join("sub")).unwrap();
    symlink("/dev/zero", path.join("zero")).unwrap();
    for (name, found) in [
        ("fifo", "a named pipe"),
        ("sub", "a folder"),
        ("zero", "a character device"),
    ] {
        let file = path.join(name);
        match in_time(move || read_bounded(&file, 1 << 20)) {
            Err(error @ AccessError::NotRegular { .. }) => {
                assert!(
                    error
                        .to_string()
                        .ends_with(&format!("{found}, not a regular file")),
                    "{error}"
                );
            }
            other => panic!("{name}: {other:?}"),
        }
    }
    let held = path.clone();
    let fifo = in_time(move || HeldDir::open(&held).unwrap().open_file("fifo").map(drop));
    assert!(matches!(fifo, Err(AccessError::NotRegular { .. })));
}

#[test]
fn a_file_that_is_too_large_is_refused_before_it_is_read() {
    let (_dir, path) = folder();
    let sparse = fs::File::create(path.join("sparse")).unwrap();
    sparse.set_len(10 << 30).unwrap();
    let error = read_bounded(&path.join("sparse"), 1 << 20).unwrap_err();
    assert!(
        error.to_string().contains("is larger than 1 MiB"),
        "{error}"
    );
    fs::write(path.join("fits"), vec![7; 1000]).unwrap();
    assert_eq!(read_bounded(&path.join("fits"), 1000).unwrap().len(), 1000);
    assert!(matches!(
        read_bounded(&path.join("fits"), 999),
        Err(AccessError::TooLarge { .. })
    ));
    // Kernel files are regular, and report a length of zero.
    assert!(
        !read_bounded(Path::new("/proc/self/stat"), 1 << 20)
            .unwrap()
            .is_empty()
    );
}

#[test]
fn an_output_goes_where_the_user_says_but_not_where_another_one_leads() {
    let (_dir, path) = folder();
    let write = |path: &Path| {
        OutputPlace::find(path)?.open().map(|(_, mut opened)| {
            opened.file.write_all(b"new").unwrap();
            (opened.made, opened.regular)
        })
    };
    assert_eq!(write(&path.join("new")).unwrap(), (true, true));
    assert_eq!(write(&path.join("new")).unwrap(), (false, true));
    assert_eq!(write(Path::new("/dev/null")).unwrap(), (false, false));
    symlink("new", path.join("link")).unwrap();
    assert_eq!(write(&path.join("link")).unwrap(), (false, true));
    let missing = write(&path.join("no/where")).unwrap_err();
    assert!(missing.is_absent());
    assert_eq!(
        write(&path).unwrap_err().io_kind(),
        Some(ErrorKind::IsADirectory)
    );
    if !is_root() {
        return;
    }
    let precious = path.join("precious");
    fs::write(&precious, "kept").unwrap();
    let shared = path.join("shared");
    fs::create_dir(&shared).unwrap();
    chmod(&shared, 0o1777);
    symlink(&precious, shared.join("x.csv")).unwrap();
    lchown(shared.join("x.csv"), Some(OTHER), Some(OTHER)).unwrap();
    mkfifoat(CWD, shared.join("fifo"), Mode::RUSR | Mode::WUSR).unwrap();
    fs::write(shared.join("file"), "hers").unwrap();
    for name in ["fifo", "file"] {
        chown(shared.join(name), Some(OTHER), Some(OTHER)).unwrap();
    }
    for name in ["x.csv", "fifo", "file"] {
        let file = shared.join(name);
        let result = in_time(move || OutputPlace::find(&file).unwrap().open().map(drop));
        match result {
            Err(AccessError::Foreign { owner, .. }) => assert_eq!(owner, OTHER),
            other => panic!("{name}: {other:?}"),
        }
    }
    assert_eq!(fs::read_to_string(&precious).unwrap(), "kept");
    // In the user's own folder, her own file may be written to, but not a second name of another user's file.
    let hers = path.join("hers");
    fs::create_dir(&hers).unwrap();
    fs::write(hers.join("own"), "").unwrap();
    fs::hard_link(&precious, hers.join("second")).unwrap();
    for name in ["", "own"] {
        chown(hers.join(name), Some(OTHER), Some(OTHER)).unwrap();
    }
    assert_eq!(write(&hers.join("own")).unwrap(), (false, true));
    assert!(matches!(
        write(&hers.join("second")),
        Err(AccessError::NotRegular { .. })
    ));
    assert_eq!(fs::metadata(hers.join("own")).unwrap().uid(), OTHER);
}

#[test]
fn a_pipe_of_our_own_can_be_written_to_by_its_number() {
    use std::os::fd::AsRawFd;
    let (mut read, write) = std::io::pipe().unwrap();
    let path = PathBuf::from(format!("/dev/fd/{}", write.as_raw_fd()));
    let (_, mut opened) = OutputPlace::find(&path).unwrap().open().unwrap();
    assert!(!opened.regular && !opened.made);
    opened.file.write_all(b"row\n").unwrap();
    drop((opened, write));
    let mut text = String::new();
    read.read_to_string(&mut text).unwrap();
    assert_eq!(text, "row\n");
}
