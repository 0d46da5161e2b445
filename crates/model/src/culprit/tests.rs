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
    let owner = (any::<u32>(), proptest::option::of(name()))
        .prop_map(|(uid, cgroup)| Owner { uid, cgroup });
    let ids = (
        proptest::option::of(0i32..9),
        proptest::option::of(0i32..9),
        any::<Option<bool>>(),
    );
    let names = (proptest::option::of(name()), name());
    (
        ids,
        names,
        proptest::option::of(class()),
        proptest::option::of(owner),
    )
        .prop_map(
            |((tid, tgid, kernel), (process, comm), class, owner)| Task {
                tid,
                tgid,
                process,
                comm,
                class,
                owner,
                kernel,
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
        (name(), proptest::option::of((any::<u64>(), any::<u64>()))).prop_map(|(cgroup, limit)| {
            let limit = limit.map(|(quota_us, period_us)| QuotaLimit {
                quota_us,
                period_us,
            });
            Subject::Quota(Quota { cgroup, limit })
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
            // Threads of a process may bear different names, and those of a name differ in class.
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
        class: Some(class),
        owner: Some(Owner {
            uid: 1000,
            cgroup: None,
        }),
        kernel: None,
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
    // What they all have in common is still shown.
    assert_eq!(
        (task.tid, &task.class),
        (None, &Some(SchedClass::Fair(None)))
    );
    assert_eq!(task.owner.as_ref().map(|owner| owner.uid), Some(1000));
    assert_eq!(rows[1].threads(), 1);
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
    // Each by itself keeps its own name; a lone thread goes by its process all the same.
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
    // Another process of the same program is the same culprit, and the process of none.
    let second = part(81, 80, "lto cgu.00", Some("rustc"));
    let rows = summed(KeyLevel::Program, &[compiler[1].clone(), second]);
    assert_eq!(
        (rows.len(), rows[0].threads(), task(&rows[0]).tgid),
        (1, 2, None)
    );
    // A sum of rows adds up as the parts did.
    assert_eq!(
        CulpritKey::of(&rows[0].subject, KeyLevel::Program),
        CulpritKey::of(&compiler[0], KeyLevel::Program)
    );
}

#[test]
fn workers_are_joined_by_what_they_ran_and_by_their_own_name_where_that_is_not_known() {
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
fn whether_workers_were_bound_to_a_cpu_outlasts_their_sum_while_they_agree() {
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
