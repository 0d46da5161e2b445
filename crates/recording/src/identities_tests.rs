use super::*;

fn proc_of(root: &std::path::Path, tid: i32, comm: &str, started: u64, uid: u32) {
    proc_with(root, (tid, comm), started, uid, 0x40_0000);
}

fn pinned(root: &std::path::Path, tid: i32, cpus: &str) {
    let path = root.join(format!("proc/{tid}/status"));
    let status = std::fs::read_to_string(&path).unwrap();
    let rest = status.lines().filter(|line| !line.starts_with("Cpus_"));
    let rest: String = rest.map(|line| format!("{line}\n")).collect();
    std::fs::write(path, format!("{rest}Cpus_allowed_list:\t{cpus}\n")).unwrap();
}

#[test]
fn allowed_cpus_are_those_of_the_last_look() {
    let dir = tempfile::tempdir().unwrap();
    proc_of(dir.path(), 42, "hog", 100, 1000);
    let mut identities = Identities::new(Machine::at(dir.path()));
    let comm = Comm::new("hog");
    pinned(dir.path(), 42, "0-3");
    assert_eq!(identities.of(42, comm).allowed.as_deref(), Some("0-3"));
    pinned(dir.path(), 42, "1");
    assert_eq!(identities.of(42, comm).allowed.as_deref(), Some("0-3"));
    identities.known.get_mut(&(42, comm)).unwrap().asked -= 2 * ASK_AGAIN;
    assert_eq!(identities.of(42, comm).allowed.as_deref(), Some("1"));
    // Another user can make it arbitrarily long.
    let every_other: Vec<String> = (0..400).map(|cpu| (2 * cpu).to_string()).collect();
    pinned(dir.path(), 42, &every_other.join(","));
    identities.known.get_mut(&(42, comm)).unwrap().asked -= 2 * ASK_AGAIN;
    assert_eq!(identities.of(42, comm).allowed, None);
    // A thread that ended before it was read may have been pinned to other CPUs than its maker.
    pinned(dir.path(), 42, "1");
    identities.born(43, 42, comm, true, false);
    let born = identities.of(43, Comm::new("worker"));
    assert_eq!((born.tgid, born.allowed), (Some(7), None));
}

fn proc_with(root: &std::path::Path, (tid, comm): (i32, &str), started: u64, uid: u32, flags: u64) {
    let dir = root.join(format!("proc/{tid}"));
    std::fs::create_dir_all(&dir).unwrap();
    let (before, after) = ("0 ".repeat(5), "0 ".repeat(12));
    let stat = format!("{tid} ({comm}) S {before}{flags} {after}{started} 0 0\n");
    let task = dir.join(format!("task/{tid}"));
    std::fs::create_dir_all(&task).unwrap();
    std::fs::write(task.join("stat"), stat).unwrap();
    let status = format!("Name:\t{comm}\nTgid:\t7\nPid:\t{tid}\nUid:\t{uid}\t0\t0\t0\n");
    std::fs::write(dir.join("status"), status).unwrap();
    std::fs::write(dir.join("cgroup"), "1:cpu:/\n0::/system.slice/x.service\n").unwrap();
}

#[test]
fn a_thread_is_known_by_id_and_name_as_long_as_it_is_the_same_one() {
    let dir = tempfile::tempdir().unwrap();
    proc_of(dir.path(), 42, "a) (b", 100, 1000);
    let mut identities = Identities::new(Machine::at(dir.path()));
    let comm = Comm::new("a) (b");
    let found = identities.of(42, comm);
    assert_eq!(found.tgid, Some(7));
    let owner = found.owner.unwrap();
    assert_eq!(
        (owner.uid, owner.cgroup.as_deref()),
        (Some(1000), Some("/system.slice/x.service"))
    );
    // Another thread's name, an idle thread, and an ended thread.
    let of_user = TaskIdentity {
        kernel: Some(false),
        ..TaskIdentity::default()
    };
    assert_eq!(identities.of(42, Comm::new("other")), of_user);
    assert_eq!(
        identities.of(0, Comm::new("swapper/0")),
        TaskIdentity::default()
    );
    assert_eq!(identities.of(43, comm), TaskIdentity::default());
    // Another thread of the same name reuses the id.
    proc_of(dir.path(), 42, "a) (b", 200, 33);
    identities.known.get_mut(&(42, comm)).unwrap().asked -= 2 * ASK_AGAIN;
    assert_eq!(identities.of(42, comm).owner.unwrap().uid, Some(33));
    // It has ended, but its last records are still being attributed.
    std::fs::remove_dir_all(dir.path().join("proc/42")).unwrap();
    identities.known.get_mut(&(42, comm)).unwrap().asked -= 2 * ASK_AGAIN;
    assert_eq!(identities.of(42, comm).owner.unwrap().uid, Some(33));
    let known = identities.known.get_mut(&(42, comm)).unwrap();
    (known.asked, known.confirmed) = (known.asked - 2 * ASK_AGAIN, known.confirmed - 2 * FORGET);
    assert_eq!(identities.of(42, comm), of_user);
}

#[test]
fn a_thread_that_took_another_name_is_still_whose_it_was() {
    let dir = tempfile::tempdir().unwrap();
    proc_of(dir.path(), 42, "c", 100, 1000);
    let mut identities = Identities::new(Machine::at(dir.path()));
    let name = Comm::new;
    for (old, new) in [("a", "b"), ("b", "a"), ("a", "c")] {
        identities.renamed(42, name(old), name(new));
    }
    for comm in ["a", "b", "c"] {
        assert_eq!(identities.of(42, name(comm)).tgid, Some(7), "{comm}");
    }
    assert_eq!(identities.of(42, name("d")).tgid, None);
    // The names of the id's last thread do not apply to the next one.
    identities.born(42, 9, name("x"), false, false);
    assert_eq!(identities.of(42, name("b")).tgid, Some(42));
}

#[test]
fn who_has_ended_before_it_was_asked_for_is_known_by_its_birth() {
    let dir = tempfile::tempdir().unwrap();
    std::fs::create_dir_all(dir.path().join("proc/self")).unwrap();
    std::fs::write(dir.path().join("proc/self/cgroup"), "0::/\n").unwrap();
    proc_of(dir.path(), 7, "rustc", 100, 1000);
    let mut identities = Identities::new(Machine::at(dir.path()));
    let rustc = Comm::new("rustc");
    // The first thread of process 7 creates another, which creates a third; only the first is alive.
    identities.born(42, 7, rustc, true, false);
    identities.born(43, 42, rustc, true, false);
    for (tid, comm) in [(42, "opt cgu.3"), (43, "lto cgu.9")] {
        let found = identities.of(tid, Comm::new(comm));
        assert_eq!(
            (found.tgid, found.process.as_deref()),
            (Some(7), Some("rustc")),
            "{comm}"
        );
        assert_eq!(found.owner.and_then(|owner| owner.uid), Some(1000));
    }
    // A process of its own with the same user: only root can give it to another.
    identities.born(44, 7, rustc, false, false);
    let found = identities.of(44, Comm::new("ld"));
    let of_user = TaskIdentity {
        kernel: Some(false),
        ..TaskIdentity::default()
    };
    let made = TaskIdentity {
        tgid: Some(44),
        ..of_user.clone()
    };
    let group = Owner {
        cgroup: Some("/system.slice/x.service".into()),
        ..Owner::default()
    };
    let hers = TaskIdentity {
        owner: Some(Owner {
            uid: Some(1000),
            ..group.clone()
        }),
        ..made.clone()
    };
    assert_eq!(found, hers);
    proc_of(dir.path(), 9, "cron", 100, 0);
    identities.born(45, 9, Comm::new("cron"), false, false);
    let by_root = TaskIdentity {
        tgid: Some(45),
        owner: Some(group),
        ..made
    };
    assert_eq!(identities.of(45, Comm::new("job")), by_root);
    // It moves to another group, and a process of its own begins in yet another one.
    identities.moved(0, 45, &"/system.slice/job.service".into());
    let mut group_of = |tid, comm| {
        let owner = identities.of(tid, Comm::new(comm)).owner;
        owner.and_then(|owner| owner.cgroup)
    };
    assert_eq!(
        group_of(45, "more").as_deref(),
        Some("/system.slice/job.service")
    );
    identities.born(46, 45, Comm::new("more"), false, true);
    identities.born(47, 45, Comm::new("more"), false, false);
    let mut group_of = |tid, comm| {
        let owner = identities.of(tid, Comm::new(comm)).owner;
        owner.and_then(|owner| owner.cgroup)
    };
    assert_eq!(group_of(46, "new"), None);
    assert_eq!(
        group_of(47, "new").as_deref(),
        Some("/system.slice/job.service")
    );
    // Nothing is known about the maker, so nothing is known about the thread: its name at creation is not reported
    // as its process's.
    identities.born(51, 50, Comm::new("gone"), true, false);
    assert_eq!(identities.of(51, Comm::new("worker")), of_user);
    // The id is reused.
    identities.born(42, 1, rustc, false, false);
    assert_eq!(identities.of(42, Comm::new("cc")).tgid, Some(42));
}

#[test]
fn who_renames_itself_all_the_time_is_known_by_its_id() {
    let dir = tempfile::tempdir().unwrap();
    proc_of(dir.path(), 42, "n0", 1000, 1000);
    proc_of(dir.path(), 43, "young", 4900, 1000);
    std::os::unix::fs::symlink("/opt/thief", dir.path().join("proc/42/exe")).unwrap();
    std::fs::write(dir.path().join("proc/uptime"), "50.00 80.00\n").unwrap();
    let mut identities = Identities::new(Machine::at(dir.path()));
    // It has none of these names when it is read, and its reads must not use up the limit for other threads.
    for n in 1..20 * MOST_ASKED {
        let found = identities.of(42, Comm::new(&format!("n{n}")));
        assert_eq!((found.tgid, found.kernel), (Some(7), Some(false)));
        let owner = found.owner.unwrap();
        assert_eq!(
            (owner.uid, owner.executable.as_deref()),
            (Some(1000), Some("/opt/thief"))
        );
    }
    assert!(identities.asked < MOST_ASKED / 2, "{}", identities.asked);
    // A thread that started just now may not be the one in the record.
    assert_eq!(identities.of(43, Comm::new("other")).tgid, None);
    assert_eq!(identities.of(43, Comm::new("young")).tgid, Some(7));
    // Its id is reused.
    proc_of(dir.path(), 9, "sh", 100, 33);
    identities.born(42, 9, Comm::new("sh"), false, false);
    std::fs::remove_dir_all(dir.path().join("proc/42")).unwrap();
    let next = identities.of(42, Comm::new("m1"));
    let owner = next.owner.unwrap();
    assert_eq!((next.tgid, owner.uid), (Some(42), Some(33)));
}

#[test]
fn the_kernels_own_threads_are_known_by_their_flags_whatever_their_names() {
    let dir = tempfile::tempdir().unwrap();
    proc_with(
        dir.path(),
        (50, "kworker/1:2-events_freezable"),
        9,
        0,
        0x0420_8060,
    );
    proc_of(dir.path(), 51, "kworker/1:9", 9, 1000);
    proc_with(dir.path(), (52, "rcu_preempt"), 9, 0, 0x0020_8040);
    let mut identities = Identities::new(Machine::at(dir.path()));
    let mut kernel = |tid, comm| identities.of(tid, Comm::new(comm)).kernel;
    assert_eq!(kernel(50, "kworker/1:2"), Some(true));
    assert_eq!(kernel(51, "kworker/1:9"), Some(false));
    assert_eq!(kernel(52, "rcu_preempt"), Some(true));
    assert_eq!(kernel(53, "gone"), None);
    // A name that it had too briefly to be found under it.
    proc_of(dir.path(), 54, "sleeps", 9, 1000);
    assert_eq!(kernel(54, "kworker/0:3"), Some(false));
    // A worker reuses its id.
    proc_with(dir.path(), (51, "kworker/1:8"), 10, 0, 0x0420_8060);
    assert_eq!(kernel(51, "kworker/1:8"), Some(true));
    assert_eq!(kernel(51, "kworker/1:7"), None);
}

#[test]
fn who_made_a_thread_shows_whether_it_is_one_of_the_kernels_own() {
    let dir = tempfile::tempdir().unwrap();
    let mut identities = Identities::new(Machine::at(dir.path()));
    let comm = Comm::new("kworker/1:7");
    // All of them ended before they could be read.
    identities.born(60, 4711, comm, false, false);
    identities.born(61, 4711, comm, true, false);
    identities.born(62, KTHREADD, comm, false, false);
    let mut kernel = |tid| identities.of(tid, comm).kernel;
    assert_eq!(
        [kernel(60), kernel(61), kernel(62)],
        [Some(false), Some(false), Some(true)]
    );
}

#[test]
fn a_late_name_turns_no_known_thread_into_a_kernel_thread() {
    let dir = tempfile::tempdir().unwrap();
    proc_of(dir.path(), 51, "sleeps", 9, 1000);
    let mut identities = Identities::new(Machine::at(dir.path()));
    assert_eq!(identities.of(51, Comm::new("sleeps")).kernel, Some(false));
    (identities.window, identities.asked) = (Instant::now() + Duration::from_secs(60), MOST_ASKED);
    assert_eq!(
        identities.of(51, Comm::new("kworker/1:9")).kernel,
        Some(false)
    );
    assert_eq!(identities.of(52, Comm::new("kworker/1:9")).kernel, None);
}

#[test]
fn a_storm_of_threads_is_not_asked_for_one_by_one() {
    let dir = tempfile::tempdir().unwrap();
    for tid in 1..200 {
        proc_of(dir.path(), tid, "bash", 1, 0);
    }
    let mut identities = Identities::new(Machine::at(dir.path()));
    identities.window = Instant::now() + Duration::from_secs(60);
    let known = (1..200)
        .filter(|tid| identities.of(*tid, Comm::new("bash")).tgid.is_some())
        .count();
    assert_eq!(known, MOST_ASKED as usize);
}
