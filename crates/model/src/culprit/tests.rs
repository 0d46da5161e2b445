use super::*;
use crate::{CpuId, Name, Nanos};
use proptest::prelude::*;

fn name() -> impl Strategy<Value = Name> {
    "[a-z(/:_0-9 é]{0,12}".prop_map(Name::from)
}

fn class() -> impl Strategy<Value = SchedClass> {
    prop_oneof![
        (-1i32..140).prop_map(SchedClass::of_priority),
        Just(SchedClass::Idle),
        Just(SchedClass::Other("ext".into())),
    ]
}

fn task() -> impl Strategy<Value = Task> {
    let owner = (
        proptest::option::of(any::<u32>()),
        proptest::option::of(name()),
        proptest::option::of(name()),
    );
    let owner = owner.prop_map(|(uid, cgroup, executable)| {
        let owner = Owner {
            uid,
            cgroup,
            executable,
        };
        owner.known()
    });
    let ids = (
        proptest::option::of(0i32..9),
        proptest::option::of(0i32..9),
        any::<Option<bool>>(),
    );
    let cpus = prop_oneof![Just(None), Just(Some(Name::from("1,4-7")))];
    let names = (
        proptest::option::of(name()),
        name(),
        proptest::option::of(name()),
        cpus,
    );
    (ids, names, proptest::option::of(class()), owner).prop_map(
        |((tid, tgid, kernel), (process, comm, was, allowed), class, owner)| Task {
            tid,
            tgid,
            process,
            comm,
            was,
            class,
            owner,
            kernel,
            allowed,
        },
    )
}

fn worker() -> impl Strategy<Value = Worker> {
    (
        proptest::option::of(0i32..9),
        name(),
        proptest::option::of(class()),
    )
        .prop_map(|(tid, comm, class)| Worker {
            tid,
            comm: Some(comm),
            class,
        })
}

fn about() -> impl Strategy<Value = About> {
    prop_oneof![
        Just(About::Nothing),
        (0u32..9).prop_map(About::IdleState),
        Just(About::Meanwhile(Meanwhile::IdleEnded)),
        Just(About::Meanwhile(Meanwhile::Unrecorded)),
        task().prop_map(|task| About::Meanwhile(Meanwhile::Ran(task))),
        (name(), worker()).prop_map(|(function, worker)| {
            let work = Work {
                function: Some(function),
                worker: Some(worker),
                ..Work::default()
            };
            About::Meanwhile(Meanwhile::Worked(work))
        }),
        proptest::collection::vec(name(), 1..3).prop_map(|names| About::Vectors(names.into())),
        (0u32..9).prop_map(|cpu| About::Cpu(CpuId(cpu))),
        Just(About::Frame(Evidence::SoftirqRecords)),
    ]
}

fn subject() -> impl Strategy<Value = Subject> {
    let work = (
        proptest::option::of(name()),
        proptest::option::of(name()),
        worker(),
    );
    prop_oneof![
        task().prop_map(Subject::Thread),
        task().prop_map(Subject::Throttle),
        (
            name(),
            proptest::option::of((any::<u64>(), any::<u64>())),
            proptest::option::of(task()),
        )
            .prop_map(|(cgroup, limit, beside)| {
                let limit = limit.map(|(quota_us, period_us)| QuotaLimit {
                    quota_us,
                    period_us,
                });
                // The columns hold the group of the quota, not the thread's.
                let beside = beside.map(|task| Task {
                    owner: None,
                    ..task
                });
                Subject::Quota(Quota {
                    cgroup,
                    limit,
                    beside,
                })
            }),
        work.prop_map(|(function, workqueue, worker)| {
            Subject::Work(Work {
                function,
                workqueue,
                worker: Some(worker),
                unbound: None,
            })
        }),
        (proptest::option::of(0u32..99), name())
            .prop_map(|(number, action)| Subject::Interrupt { number, action }),
        name().prop_map(Subject::Vector),
        (0u32..12).prop_map(Subject::Softirq),
        (
            proptest::option::of(name()),
            proptest::option::of(Just(TimerSource::Wheel))
        )
            .prop_map(|(function, source)| Subject::Timer { function, source }),
        name().prop_map(Subject::Call),
        name().prop_map(Subject::Ipi),
        any::<bool>().prop_map(|user| Subject::PageFault { user }),
        name().prop_map(Subject::Nmi),
        proptest::option::of(0u32..9).prop_map(|bank| Subject::MachineCheck { bank }),
        (proptest::sample::select(Verdict::ALL), about())
            .prop_map(|(verdict, about)| Subject::Verdict(verdict, about)),
        Just(Subject::Others(CulpritKind::Irq)),
        (name(), name()).prop_map(|(name, detail)| Subject::Unknown {
            kind: "accelerator".into(),
            name,
            detail
        }),
    ]
}

proptest! {
    #[test]
    fn what_is_written_reads_back_as_it_was(subject in subject()) {
        let json = serde_json::to_string(&subject).unwrap();
        prop_assert_eq!(serde_json::from_str::<Subject>(&json).unwrap(), subject.clone(), "{}", json);
        let fields = SubjectFields::from(&subject);
        prop_assert_eq!(Subject::from(fields), subject);
    }

    #[test]
    fn finer_keys_never_join_what_coarser_ones_part(a in subject(), b in subject()) {
        for (fine, coarse) in [(KeyLevel::Thread, KeyLevel::Process), (KeyLevel::Process, KeyLevel::Program)] {
            let same = |level| CulpritKey::of(&a, level) == CulpritKey::of(&b, level);
            // Threads of a process may have different names, and threads of one name may differ in class.
            let one_thread = matches!((&a, &b), (Subject::Thread(_), Subject::Thread(_)));
            prop_assert!(!same(fine) || same(coarse) || one_thread);
        }
    }

    #[test]
    fn a_sum_has_all_that_was_added(subjects in proptest::collection::vec(subject(), 0..40), cap in 1usize..9) {
        let mut sums: CulpritSums<(), u64> = CulpritSums::new(KeyLevel::Program, cap);
        for subject in &subjects {
            *sums.of((), subject) += 1;
        }
        let rows = sums.into_rows();
        prop_assert_eq!(rows.iter().map(|row| row.value).sum::<u64>(), subjects.len() as u64);
        prop_assert!(rows.len() <= cap + CulpritKind::ALL.len());
    }
}

fn bash(tid: i32, class: SchedClass) -> Subject {
    Subject::Thread(Task {
        tid: Some(tid),
        tgid: Some(tid),
        process: None,
        comm: "bash".into(),
        was: None,
        class: Some(class),
        owner: Some(Owner::user(1000)),
        kernel: None,
        allowed: None,
    })
}

#[test]
fn a_program_is_one_row_however_many_threads_ran_it() {
    let mut sums: CulpritSums<(), Nanos> = CulpritSums::new(KeyLevel::Program, 4);
    for tid in 1..=778 {
        *sums.of((), &bash(tid, SchedClass::Fair(Some((tid % 3) as i8)))) += Nanos(10);
    }
    *sums.of((), &bash(1, SchedClass::RealTime(5))) += Nanos(1);
    let rows = sums.into_rows();
    assert_eq!(rows.len(), 2);
    assert_eq!(
        (rows[0].value, rows[0].threads()),
        (Nanos(7780), SumRow::<(), Nanos>::MOST_THREADS)
    );
    let Subject::Thread(task) = &rows[0].subject else {
        panic!("{:?}", rows[0].subject)
    };
    // The facts that they share are still shown.
    assert_eq!(
        (task.tid, &task.class),
        (None, &Some(SchedClass::Fair(None)))
    );
    assert_eq!(task.owner.as_ref().and_then(|owner| owner.uid), Some(1000));
    assert_eq!(rows[1].threads(), 1);
}

#[test]
fn a_thread_is_pinned_where_all_of_its_known_cpus_lie() {
    let within = |allowed: Option<&str>, cpus: &str| {
        let task = Task {
            allowed: allowed.map(Name::from),
            ..Task::default()
        };
        task.is_pinned_within(&cpus.parse().unwrap())
    };
    assert!(within(Some("1"), "1") && within(Some("1,3"), "1-3"));
    assert!(!within(Some("0-1"), "1") && !within(Some("1"), "") && !within(None, "0-7"));
    assert!(!within(Some("no list"), "0-7"));
}

#[test]
fn allowed_cpus_part_rows_by_name_and_join_in_those_by_program() {
    let part = |allowed: &str| {
        Subject::Thread(Task {
            comm: "hog".into(),
            allowed: Some(allowed.into()),
            ..Task::default()
        })
    };
    let allowed = |level| {
        let mut sums: CulpritSums<(), u64> = CulpritSums::new(level, 9);
        for cpus in ["1", "0-1", "1"] {
            *sums.of((), &part(cpus)) += 1;
        }
        let rows = sums.into_rows();
        let of = |row: &SumRow<(), u64>| row.subject.task().unwrap().allowed.clone();
        rows.iter()
            .map(|row| (of(row), row.value))
            .collect::<Vec<_>>()
    };
    let [one, both] = ["1", "0-1"].map(|cpus| Some(Name::from(cpus)));
    assert_eq!(allowed(KeyLevel::Name), [(one, 2), (both, 1)]);
    assert_eq!(allowed(KeyLevel::Program), [(None, 3)]);
}

#[test]
fn threads_go_by_the_name_of_their_process() {
    let part = |tid, tgid, comm: &str, process: Option<&str>| {
        Subject::Thread(Task {
            tid: Some(tid),
            tgid: Some(tgid),
            process: process.map(Name::from),
            comm: comm.into(),
            class: Some(SchedClass::Fair(Some(0))),
            ..Task::default()
        })
    };
    let compiler = [
        part(70, 70, "rustc", None),
        part(71, 70, "lto cgu.00", Some("rustc")),
        part(72, 70, "lto cgu.01", Some("rustc")),
    ];
    let summed = |level, subjects: &[Subject]| {
        let mut sums: CulpritSums<(), u64> = CulpritSums::new(level, 9);
        for subject in subjects {
            *sums.of((), subject) += 1;
        }
        sums.into_rows()
    };
    let task = |row: &SumRow<(), u64>| row.subject.task().cloned().unwrap();
    for level in [KeyLevel::Process, KeyLevel::Program] {
        for order in [[0, 1, 2], [1, 2, 0], [2, 0, 1]] {
            let rows = summed(level, &order.map(|at| compiler[at].clone()));
            assert_eq!((rows.len(), rows[0].value, rows[0].threads()), (1, 3, 3));
            assert_eq!(
                (
                    &*task(&rows[0]).comm,
                    task(&rows[0]).tid,
                    task(&rows[0]).tgid
                ),
                ("rustc", None, Some(70))
            );
        }
    }
    // At the finest level each keeps its own name; a single thread is still shown as its process.
    let rows = summed(KeyLevel::Program, &compiler);
    assert_eq!(
        rows[0]
            .thread_names()
            .map(|name| &**name)
            .collect::<Vec<_>>(),
        ["lto cgu.00", "lto cgu.01"]
    );
    let names: Vec<String> = summed(KeyLevel::Name, &compiler)
        .iter()
        .map(|row| row.subject.name().into())
        .collect();
    assert_eq!(names, ["rustc", "lto cgu.00", "lto cgu.01"]);
    let rows = summed(KeyLevel::Program, &compiler[1..2]);
    assert_eq!(
        (
            &*rows[0].subject.name(),
            rows[0].threads(),
            task(&rows[0]).tgid
        ),
        ("rustc", 1, Some(70))
    );
    // Another process of the same program is the same culprit, without a process id.
    let second = part(81, 80, "lto cgu.00", Some("rustc"));
    let rows = summed(KeyLevel::Program, &[compiler[1].clone(), second]);
    assert_eq!(
        (rows.len(), rows[0].threads(), task(&rows[0]).tgid),
        (1, 2, None)
    );
    // A sum of rows adds up like the parts did.
    assert_eq!(
        CulpritKey::of(&rows[0].subject, KeyLevel::Program),
        CulpritKey::of(&compiler[0], KeyLevel::Program)
    );
}

#[test]
fn workers_merge_by_work_item_or_else_by_name() {
    let work = |function: Option<&str>, tid, comm: &str| {
        Subject::Work(Work {
            function: function.map(Name::from),
            workqueue: Some("events".into()),
            worker: Some(Worker {
                tid: Some(tid),
                comm: Some(comm.into()),
                class: None,
            }),
            unbound: None,
        })
    };
    let mut sums: CulpritSums<(), u64> = CulpritSums::new(KeyLevel::Program, 9);
    for (function, tid, comm) in [
        (Some("vmstat_update"), 1, "kworker/0:1"),
        (Some("vmstat_update"), 2, "kworker/0:2"),
        (None, 3, "kworker/0:3"),
        (None, 4, "kworker/0:4"),
    ] {
        *sums.of((), &work(function, tid, comm)) += 1;
    }
    let rows: Vec<(String, u64, u64)> = sums
        .into_rows()
        .iter()
        .map(|row| (row.subject.name().into(), row.value, row.threads()))
        .collect();
    let expected = [
        ("vmstat_update", 2, 2),
        ("kworker/0:3", 1, 1),
        ("kworker/0:4", 1, 1),
    ];
    assert_eq!(
        rows,
        expected.map(|(name, sum, threads)| (name.to_owned(), sum, threads))
    );
}

#[test]
fn merged_workers_keep_their_binding_while_they_agree() {
    let work = |tid, comm: &str| Work {
        function: Some("gc_worker".into()),
        worker: Some(Worker {
            tid: Some(tid),
            comm: Some(comm.into()),
            class: None,
        }),
        ..Work::default()
    };
    let summed = |comms: &[&str]| {
        let mut sums: CulpritSums<(), u64> = CulpritSums::new(KeyLevel::Program, 9);
        for (tid, comm) in (1..).zip(comms) {
            *sums.of((), &Subject::Work(work(tid, comm))) += 1;
        }
        let json = serde_json::to_string(&sums.into_rows()[0].subject).unwrap();
        match serde_json::from_str(&json).unwrap() {
            Subject::Work(of) => of.is_unbound(),
            other => panic!("{other:?}"),
        }
    };
    assert_eq!(summed(&["kworker/u4:1"]), Some(true));
    assert_eq!(
        summed(&["kworker/u4:1", "kworker/u4:2", "kworker/u4:0"]),
        Some(true)
    );
    assert_eq!(summed(&["kworker/0:1", "kworker/1:2"]), Some(false));
    assert_eq!(
        summed(&["kworker/0:1", "kworker/u4:2", "kworker/0:3"]),
        None
    );
    assert_eq!(summed(&["kworker/u4:1", "kworker/R-events"]), None);
    assert_eq!(summed(&["kworker/R-events"]), None);
    assert_eq!(work(1, "kworker/").is_unbound(), None);
}

#[test]
fn who_ran_while_a_timer_was_late_is_not_part_of_the_program_key() {
    let late = |comm: &str| {
        let task = Task {
            comm: comm.into(),
            ..Task::default()
        };
        Subject::Verdict(Verdict::LateTimer, About::Meanwhile(Meanwhile::Ran(task)))
    };
    let same = |level| CulpritKey::of(&late("a"), level) == CulpritKey::of(&late("b"), level);
    assert!(same(KeyLevel::Program) && same(KeyLevel::Process) && !same(KeyLevel::Thread));
}

#[test]
fn what_a_newer_version_wrote_is_kept() {
    for json in [
        r#"{"kind":"accelerator","name":"gpu0","detail":"queue 3"}"#,
        r#"{"kind":"unresolved","name":"a verdict of 2030"}"#,
        // A softirq without its number.
        r#"{"kind":"softirq","name":"NET_RX"}"#,
    ] {
        let subject: Subject = serde_json::from_str(json).unwrap();
        assert!(matches!(subject, Subject::Unknown { .. }), "{subject:?}");
        assert_eq!(serde_json::to_string(&subject).unwrap(), json);
    }
    let unresolved: Subject = serde_json::from_str(r#"{"kind":"unresolved","name":"x"}"#).unwrap();
    assert_eq!(unresolved.kind(), CulpritKind::Unresolved);
    let accelerator: Subject =
        serde_json::from_str(r#"{"kind":"accelerator","name":"x"}"#).unwrap();
    assert_eq!(
        (accelerator.kind(), accelerator.kind_word()),
        (CulpritKind::Unknown, "accelerator")
    );
    for (word, known) in [("dispatch", true), ("teleported", false)] {
        assert_eq!(!matches!(Phase::from_word(word), Phase::Other(_)), known);
        assert_eq!(Phase::from_word(word).as_str(), word);
    }
}

#[test]
fn a_priority_of_the_kernels_becomes_what_the_user_set() {
    for (kernel, expected) in [
        (-1, SchedClass::Deadline),
        (0, SchedClass::RealTime(99)),
        (49, SchedClass::RealTime(50)),
        (98, SchedClass::RealTime(1)),
        (100, SchedClass::Fair(Some(-20))),
        (120, SchedClass::Fair(Some(0))),
        (139, SchedClass::Fair(Some(19))),
    ] {
        assert_eq!(SchedClass::of_priority(kernel), expected);
    }
}

/// A thread of a process: its name, and the process's executable.
fn renamed(tgid: i32, comm: &str, kernel: bool) -> Subject {
    Subject::Thread(Task {
        tid: Some(tgid),
        tgid: Some(tgid),
        comm: comm.into(),
        owner: Some(Owner {
            executable: (!kernel).then(|| "/opt/thief".into()),
            ..Owner::user(if kernel { 0 } else { 1000 })
        }),
        kernel: Some(kernel),
        ..Task::default()
    })
}

fn sums_of(level: KeyLevel, subjects: &[Subject]) -> Vec<SumRow<(), u64>> {
    let mut sums: CulpritSums<(), u64> = CulpritSums::new(level, 4096);
    for subject in subjects {
        *sums.of((), subject) += 1;
    }
    let mut rows = sums.into_rows();
    rows.sort_by_key(|row| std::cmp::Reverse(row.value));
    rows
}

#[test]
fn a_thief_that_renames_itself_is_one_row() {
    let mut subjects: Vec<Subject> = (0..2000)
        .map(|n| renamed(70 + n % 2, &format!("n{n}"), false))
        .collect();
    subjects.extend((0..50).map(|_| bash(1, SchedClass::Fair(None))));
    let rows = sums_of(KeyLevel::Program, &subjects);
    for (row, process) in rows.iter().zip([70, 71]) {
        assert!(row.value > 980, "{row:?}");
        assert_eq!((&*row.subject.name(), row.threads()), ("thief", 1));
        assert_eq!(row.subject.task().unwrap().tgid, Some(process));
        assert_eq!(
            row.thread_names().count() as u64,
            SumRow::<(), u64>::MOST_THREADS
        );
    }
    assert_eq!((rows[2].value, &*rows[2].subject.name()), (50, "bash"));
    for (level, name) in [
        (KeyLevel::Executable, "thief"),
        (KeyLevel::User, "user 1000"),
    ] {
        let rows = sums_of(level, &subjects);
        assert_eq!(&*rows[0].subject.name(), name);
        assert!(rows[0].value >= 2000, "{rows:?}");
    }
}

#[test]
fn who_takes_a_kernel_threads_name_does_not_add_up_with_it() {
    let subjects = [
        renamed(17, "rcu_preempt", true),
        renamed(4711, "rcu_preempt", false),
        renamed(17, "rcu_preempt", true),
    ];
    for level in [
        KeyLevel::Thread,
        KeyLevel::Process,
        KeyLevel::Name,
        KeyLevel::Program,
        KeyLevel::User,
    ] {
        let rows = sums_of(level, &subjects);
        let kernels: Vec<_> = rows
            .iter()
            .map(|row| (row.value, row.subject.task().unwrap().kernel))
            .collect();
        assert_eq!(kernels, [(2, Some(true)), (1, Some(false))], "{level:?}");
    }
}
