//! Runs of version 1, whose culprits were described in words. The only place that reads those words. They are
//! recognised by their columns and fields, not by their number.

use jitterscope_model::{
    About, CpuId, CulpritKind, CulpritSums, Evidence, KeyLevel, Meanwhile, Name, Nanos, Part,
    Phase, ProbeKind, RunManifest, SchedClass, Subject, Task, TimerSource, Verdict, Work, Worker,
    softirq_name,
};
use serde_json::{Map, Value};

/// What the words for evidence meant depended on what was recorded.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Wording {
    /// Of a spinning victim.
    Spin,
    /// Of late wake-ups.
    Wakeup,
    /// Of slow messages, and of threads that were followed.
    Follow,
}

impl Wording {
    pub(crate) fn of(manifest: &RunManifest) -> Wording {
        match (manifest.wakeups.is_empty(), manifest.probe.kind()) {
            (false, _) => Wording::Wakeup,
            (true, Some(ProbeKind::Pipeline | ProbeKind::Attach)) => Wording::Follow,
            (true, _) => Wording::Spin,
        }
    }

    /// Phase, evidence and where the victim was moved from, of a part whose culprit is known.
    pub(crate) fn rest(self, text: &str, part: &mut Part) {
        if self == Wording::Spin {
            (part.evidence, part.others_stalled) = evidence(text);
            return;
        }
        let (phase, from) = match text.split_once(", moved from CPU ") {
            Some((phase, cpu)) => (phase, cpu.parse().ok().map(CpuId)),
            None => (text, None),
        };
        part.phase = Some(phase)
            .filter(|phase| !phase.is_empty())
            .map(Phase::from_word);
        part.moved_from = from;
        part.evidence = match (&part.phase, part.culprit.subject.as_verdict()) {
            (None, _) => Evidence::Nothing,
            (Some(Phase::LostRecords), _) => Evidence::LostRecords,
            _ if self == Wording::Wakeup => Evidence::WakeupRecords,
            (_, Some(Verdict::RingFull | Verdict::EarlierMessages | Verdict::NoRecord)) => {
                Evidence::MessageTimes
            }
            _ => Evidence::ThreadRecords,
        };
    }
}

/// `SMI count rose, 2 other CPUs stalled too`.
fn evidence(text: &str) -> (Evidence, Option<u32>) {
    let counted = text
        .strip_suffix(" other CPUs stalled too")
        .and_then(|rest| {
            let (words, count) = rest.rsplit_once([',', ';'])?;
            Some((words, count.trim().parse().ok()?))
        });
    match counted {
        Some((words, count)) => (Evidence::from_word(words), Some(count)),
        None if text.is_empty() => (Evidence::Nothing, None),
        None => (Evidence::from_word(text), None),
    }
}

/// A culprit as version 1 described it. What its description does not say is not known; a description that makes
/// no sense is kept as it is.
#[must_use]
pub fn subject(kind: &str, name: &str, detail: &str) -> Subject {
    let known = CulpritKind::from_word(kind).and_then(|kind| match (name, detail) {
        ("(others)" | "others", "") => Some(Subject::Others(kind)),
        _ => described(kind, name, detail).filter(|subject| subject.name() == name),
    });
    known.unwrap_or_else(|| Subject::Unknown {
        kind: kind.into(),
        name: name.into(),
        detail: detail.into(),
    })
}

fn described(kind: CulpritKind, name: &str, detail: &str) -> Option<Subject> {
    let named = || Name::from(name);
    if let Some(verdict) = Verdict::parse(kind, name) {
        return Some(Subject::Verdict(verdict, about(verdict, detail)));
    }
    Some(match kind {
        CulpritKind::Thread => {
            let (tid, class) = thread(detail)?;
            Subject::Thread(Task {
                tid,
                comm: named(),
                class,
                ..Task::default()
            })
        }
        CulpritKind::Kworker => Subject::Work(work(name, detail)?),
        CulpritKind::Irq if detail == "interrupt vector" => Subject::Vector(named()),
        CulpritKind::Irq => Subject::Interrupt {
            number: number(detail, "irq ")?,
            action: named(),
        },
        CulpritKind::Timer => {
            let (function, source) = match detail {
                "hrtimer, local_timer interrupt" => {
                    (Some(named()), Some(TimerSource::HighResolution))
                }
                "timer wheel, TIMER softirq" => (Some(named()), Some(TimerSource::Wheel)),
                "interrupt that ran no timer function" => (None, Some(TimerSource::Interrupt)),
                // Of any other name it is refused by its name.
                "" => (None, None),
                _ => return None,
            };
            Subject::Timer { function, source }
        }
        CulpritKind::Softirq => Subject::Softirq(match number(detail, "vector ")? {
            Some(vec) => vec,
            None => (0..16).find(|vec| softirq_name(*vec) == Some(name))?,
        }),
        CulpritKind::Ipi => match name {
            "reschedule" | "call_function" | "call_function_single" | "irq_work" => {
                Subject::Ipi(named())
            }
            _ => Subject::Call(named()),
        },
        CulpritKind::PageFault => match name {
            "page_fault_user" => Subject::PageFault { user: true },
            "page_fault_kernel" => Subject::PageFault { user: false },
            _ => return None,
        },
        CulpritKind::Nmi => Subject::Nmi(named()),
        CulpritKind::Mce => Subject::MachineCheck {
            bank: number(detail, "bank ")?,
        },
        CulpritKind::RtThrottle => {
            let comm = detail.strip_prefix("let ")?.strip_suffix(" run")?;
            Subject::Throttle(Task {
                comm: comm.into(),
                ..Task::default()
            })
        }
        // Kinds that came after that version have no words in it.
        _ => return None,
    })
}

/// The number behind `before`; `Some(None)` when there is nothing.
fn number(detail: &str, before: &str) -> Option<Option<u32>> {
    if detail.is_empty() {
        return Some(None);
    }
    detail.strip_prefix(before)?.parse().ok().map(Some)
}

/// `pid 12`, `pid 12, real-time 3`, `pid 12, deadline`, and of wake-ups `pid 12, priority 120`.
fn thread(detail: &str) -> Option<(Option<i32>, Option<SchedClass>)> {
    if detail.is_empty() {
        return Some((None, None));
    }
    let (pid, class) = detail
        .strip_prefix("pid ")?
        .split_once(", ")
        .unwrap_or((&detail[4..], ""));
    let tid = pid.parse().ok()?;
    let class = match class {
        "" => SchedClass::Fair(None),
        "deadline" => SchedClass::Deadline,
        other => match (
            other.strip_prefix("real-time "),
            other.strip_prefix("priority "),
        ) {
            (Some(priority), _) => SchedClass::RealTime(priority.parse().ok()?),
            (_, Some(priority)) => SchedClass::of_priority(priority.parse().ok()?),
            _ => return None,
        },
    };
    let class = if tid == 0 { SchedClass::Idle } else { class };
    Some((Some(tid), Some(class)))
}

/// `kworker/1:2, workqueue events`; of a worker without an item `pid 12`.
fn work(name: &str, detail: &str) -> Option<Work> {
    if name.starts_with("kworker/") {
        let (tid, class) = thread(detail)?;
        let worker = Worker {
            tid,
            comm: Some(name.into()),
            class,
        };
        return Some(Work {
            function: None,
            workqueue: None,
            worker: Some(worker),
            unbound: None,
        });
    }
    let (worker, queue) = match detail.strip_prefix("workqueue ") {
        Some(queue) => ("", Some(queue)),
        None => match detail.split_once(", workqueue ") {
            Some((worker, queue)) => (worker, Some(queue)),
            None => (detail, None),
        },
    };
    let worker = Some(worker).filter(|worker| !worker.is_empty());
    Some(Work {
        function: Some(name.into()),
        workqueue: queue.map(Name::from),
        worker: worker.map(|comm| Worker {
            comm: Some(comm.into()),
            ..Worker::default()
        }),
        unbound: None,
    })
}

fn about(verdict: Verdict, detail: &str) -> About {
    let about = match verdict {
        Verdict::IdleExit => number(detail, "idle state ")
            .flatten()
            .map(About::IdleState),
        Verdict::LateTimer => match detail {
            "after idle had ended" => Some(About::Meanwhile(Meanwhile::IdleEnded)),
            "while the CPU idled or a thread ran, not recorded" => {
                Some(About::Meanwhile(Meanwhile::Unrecorded))
            }
            _ => detail
                .strip_prefix("while ")
                .and_then(|rest| rest.strip_suffix(" ran"))
                .map(|comm| {
                    About::Meanwhile(Meanwhile::Ran(Task {
                        comm: comm.into(),
                        ..Task::default()
                    }))
                }),
        },
        Verdict::UntracedInterrupt if !detail.is_empty() => {
            Some(About::Vectors(detail.split(", ").map(Name::from).collect()))
        }
        Verdict::FrameLeftOpen if !detail.is_empty() => {
            Some(About::Frame(Evidence::from_word(detail)))
        }
        Verdict::NotSeen => detail
            .strip_prefix("no record of CPU ")
            .and_then(|rest| rest.strip_suffix(" says what ran")?.parse().ok())
            .map(|cpu| About::Cpu(CpuId(cpu))),
        _ => None,
    };
    about.unwrap_or_default()
}

/// Puts the threads' sums of a manifest, where they are in the words of version 1, into today's form: typed culprits, a program's threads
/// together.
pub(crate) fn manifest(value: &mut Value) {
    for thread in value["threads"].as_array_mut().into_iter().flatten() {
        let Some(ran) = thread.get_mut("ran_instead").and_then(Value::as_array_mut) else {
            continue;
        };
        if ran.iter().any(|row| row.get("sum_ns").is_some()) {
            *ran = joined(ran);
        }
    }
}

#[derive(Default)]
struct Sum {
    count: u64,
    min: Option<Nanos>,
    max: Nanos,
    total: Nanos,
}

fn joined(rows: &[Value]) -> Vec<Value> {
    let mut sums: CulpritSums<(), Sum> = CulpritSums::new(KeyLevel::Program, usize::MAX);
    for row in rows {
        let text = |name: &str| row[name].as_str().unwrap_or_default();
        let number = |name: &str| row[name].as_u64().unwrap_or_default();
        let sum = sums.of((), &subject(text("kind"), text("name"), text("detail")));
        let min = Nanos(number("min_ns"));
        sum.count += number("count");
        sum.min = Some(sum.min.map_or(min, |known| known.min(min)));
        sum.max = sum.max.max(Nanos(number("max_ns")));
        sum.total += Nanos(number("sum_ns"));
    }
    let mut rows = sums.into_rows();
    rows.sort_by_key(|row| std::cmp::Reverse(row.value.total));
    rows.iter()
        .map(|row| {
            let mut fields = match serde_json::to_value(&row.subject) {
                Ok(Value::Object(fields)) => fields,
                _ => Map::new(),
            };
            let sum = &row.value;
            fields.extend([
                ("threads".to_owned(), row.threads().into()),
                ("count".to_owned(), sum.count.into()),
                ("min_ns".to_owned(), sum.min.unwrap_or_default().0.into()),
                ("max_ns".to_owned(), sum.max.0.into()),
                ("total_ns".to_owned(), sum.total.0.into()),
            ]);
            Value::Object(fields)
        })
        .collect()
}

#[cfg(test)]
mod tests {
    use super::*;
    use proptest::prelude::*;

    /// What today's form keeps of a description, as JSON.
    fn read_as(kind: &str, name: &str, detail: &str) -> String {
        serde_json::to_string(&subject(kind, name, detail)).unwrap()
    }

    #[test]
    fn descriptions_of_version_1_become_data() {
        for (kind, name, detail, expected) in [
            (
                "thread",
                "evil",
                "pid 12, real-time 3",
                r#""tid":12,"comm":"evil","class":"real_time","priority":3"#,
            ),
            (
                "thread",
                "a, b",
                "pid 12",
                r#""tid":12,"comm":"a, b","class":"fair""#,
            ),
            (
                "thread",
                "d",
                "pid 12, deadline",
                r#""tid":12,"comm":"d","class":"deadline""#,
            ),
            (
                "thread",
                "late",
                "pid 9, priority 100",
                r#""tid":9,"comm":"late","class":"fair","nice":-20"#,
            ),
            (
                "thread",
                "swapper/1",
                "pid 0",
                r#""tid":0,"comm":"swapper/1","class":"idle""#,
            ),
            (
                "kworker",
                "f",
                "kworker/1:2, workqueue events",
                r#""comm":"kworker/1:2","function":"f","workqueue":"events""#,
            ),
            (
                "kworker",
                "f",
                "workqueue events",
                r#""function":"f","workqueue":"events""#,
            ),
            (
                "kworker",
                "kworker/0:1",
                "pid 7",
                r#""tid":7,"comm":"kworker/0:1","class":"fair""#,
            ),
            ("irq", "virtio0", "irq 25", r#""irq":25"#),
            (
                "irq",
                "thermal_apic",
                "interrupt vector",
                r#""vector":"thermal_apic""#,
            ),
            (
                "timer",
                "t",
                "timer wheel, TIMER softirq",
                r#""function":"t","timer":"wheel""#,
            ),
            (
                "timer",
                "local_timer",
                "interrupt that ran no timer function",
                r#""timer":"interrupt""#,
            ),
            ("softirq", "NET_RX", "", r#""softirq":3"#),
            ("softirq", "softirq 11", "vector 11", r#""softirq":11"#),
            (
                "ipi",
                "ipi_mb",
                "function call interrupt",
                r#""function":"ipi_mb""#,
            ),
            (
                "ipi",
                "reschedule",
                "a task was woken for this CPU",
                r#""vector":"reschedule""#,
            ),
            (
                "nmi",
                "perf_event_nmi_handler",
                "non-maskable interrupt",
                r#""function":"perf_event_nmi_handler""#,
            ),
            ("mce", "machine_check", "bank 4", r#""bank":4"#),
            (
                "rt_throttle",
                "RT throttling",
                "let make run",
                r#""comm":"make""#,
            ),
            ("switch", "idle exit", "idle state 3", r#""idle_state":3"#),
            (
                "unresolved",
                "late timer",
                "while a ran b ran",
                r#""comm":"a ran b","meanwhile":"thread""#,
            ),
            (
                "unresolved",
                "late timer",
                "after idle had ended",
                r#""meanwhile":"idle_ended""#,
            ),
            (
                "unresolved",
                "untraced interrupt",
                "HYP, PIN",
                r#""untraced":["HYP","PIN"]"#,
            ),
            (
                "unresolved",
                "not seen",
                "no record of CPU 3 says what ran",
                r#""unseen_cpu":3"#,
            ),
            (
                "unresolved",
                "frame left open",
                "softirq_entry/exit",
                r#""frame":"softirq_entry/exit""#,
            ),
            // What makes no sense is kept.
            ("thread", "x", "process 12", r#""detail":"process 12""#),
            ("gremlin", "x", "y", r#""detail":"y""#),
        ] {
            let expected = format!(r#"{{"kind":"{kind}","name":"{name}",{expected}}}"#);
            assert_eq!(read_as(kind, name, detail), expected);
        }
        assert_eq!(
            read_as(
                "hypervisor",
                "before first event",
                "the CPU stood still before the kernel was entered"
            ),
            r#"{"kind":"hypervisor","name":"before first event"}"#
        );
        assert_eq!(
            subject("irq", "(others)", ""),
            Subject::Others(CulpritKind::Irq)
        );
        for (name, user) in [("page_fault_user", true), ("page_fault_kernel", false)] {
            assert_eq!(subject("page_fault", name, ""), Subject::PageFault { user });
        }
    }

    #[test]
    fn evidence_of_version_1_becomes_phases_and_records() {
        let rest = |wording: Wording, text: &str| {
            let culprit = Subject::verdict(Verdict::LateTimer);
            let mut part = Part::inside(culprit, Nanos(1), Evidence::Nothing);
            wording.rest(text, &mut part);
            (
                part.phase,
                part.moved_from,
                part.evidence,
                part.others_stalled,
            )
        };
        let moved = rest(Wording::Follow, "producer stalled, moved from CPU 1");
        assert_eq!(
            moved,
            (
                Some(Phase::ProducerStalled),
                Some(CpuId(1)),
                Evidence::ThreadRecords,
                None
            )
        );
        let late = rest(Wording::Wakeup, "late timer");
        assert_eq!(
            late,
            (Some(Phase::LateTimer), None, Evidence::WakeupRecords, None)
        );
        let lost = rest(Wording::Wakeup, "lost records");
        assert_eq!(
            lost,
            (Some(Phase::LostRecords), None, Evidence::LostRecords, None)
        );
        assert_eq!(
            rest(Wording::Spin, "lost records"),
            (None, None, Evidence::LostRecords, None)
        );
        let taken = rest(
            Wording::Spin,
            "no event; hypervisor present; 2 other CPUs stalled too",
        );
        assert_eq!(taken, (None, None, Evidence::HypervisorPresent, Some(2)));
        let smi = rest(Wording::Spin, "SMI count rose, 0 other CPUs stalled too");
        assert_eq!(smi, (None, None, Evidence::SmiCount, Some(0)));
        assert_eq!(
            rest(Wording::Spin, "a dream").2,
            Evidence::Other("a dream".into())
        );
        for wording in [Wording::Spin, Wording::Wakeup, Wording::Follow] {
            assert_eq!(rest(wording, ""), (None, None, Evidence::Nothing, None));
        }
    }

    #[test]
    fn what_the_times_of_messages_say_rests_on_them_and_nothing_else_does() {
        let evidence = |wording: Wording, verdict| {
            let mut part = Part::inside(Subject::verdict(verdict), Nanos(1), Evidence::Nothing);
            wording.rest("late timer", &mut part);
            part.evidence
        };
        for verdict in [
            Verdict::RingFull,
            Verdict::EarlierMessages,
            Verdict::NoRecord,
        ] {
            assert_eq!(evidence(Wording::Follow, verdict), Evidence::MessageTimes);
            assert_eq!(evidence(Wording::Wakeup, verdict), Evidence::WakeupRecords);
        }
        assert_eq!(
            evidence(Wording::Follow, Verdict::IdleExit),
            Evidence::ThreadRecords
        );
    }

    #[test]
    fn a_verdict_that_told_nothing_more_has_nothing_about_it() {
        for (verdict, detail, expected) in [
            (Verdict::UntracedInterrupt, "", About::default()),
            (Verdict::FrameLeftOpen, "", About::default()),
            (
                Verdict::LateTimer,
                "while the CPU idled or a thread ran, not recorded",
                About::Meanwhile(Meanwhile::Unrecorded),
            ),
        ] {
            assert_eq!(about(verdict, detail), expected, "{verdict:?}");
        }
    }

    #[test]
    fn sums_of_threads_of_one_program_become_one() {
        let mut value = serde_json::json!({"threads": [{"ran_instead": [
            {"kind": "thread", "name": "bash", "detail": "pid 1", "count": 2, "min_ns": 3, "max_ns": 9, "sum_ns": 12},
            {"kind": "thread", "name": "bash", "detail": "pid 2", "count": 1, "min_ns": 2, "max_ns": 2, "sum_ns": 2},
            {"kind": "timer", "name": "others", "detail": "", "count": 1, "min_ns": 1, "max_ns": 1, "sum_ns": 1},
        ]}]});
        manifest(&mut value);
        let expected = serde_json::json!([
            {"kind": "thread", "name": "bash", "comm": "bash", "class": "fair", "threads": 2, "count": 3,
             "min_ns": 2, "max_ns": 9, "total_ns": 14},
            {"kind": "timer", "name": "(others)", "threads": 0, "count": 1, "min_ns": 1, "max_ns": 1,
             "total_ns": 1},
        ]);
        assert_eq!(value["threads"][0]["ran_instead"], expected);
    }

    proptest! {
        #[test]
        fn no_description_panics_or_changes_kind_or_name(
            kind in proptest::sample::select(&CulpritKind::ALL[..15]),
            name in "[a-z/ ]{1,9}",
            detail in "(pid |irq |vector |let |while |bank |idle state |no record of CPU )?\\PC{0,12}( ran| run)?",
        ) {
            let subject = subject(kind.as_str(), &name, &detail);
            prop_assert_eq!(subject.kind(), kind);
            prop_assert_eq!(subject.name(), name);
        }
    }
}
