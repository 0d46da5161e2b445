//! The table of culprits, in bounded memory.

use crate::cpu::share;
use crate::culprit_row::{CulpritRow, SenderRow};
use crate::ours::Ours;
use jitterscope_model::{CulpritSums, KeyLevel, Nanos, Part, PutInOrder, Sender, Subject};

/// The number of separate senders of one culprit.
const MAX_SENDERS: usize = 16;

#[derive(Debug, Default)]
struct Sum {
    count: u64,
    total: Nanos,
    /// `None` before the first.
    min: Option<Nanos>,
    max: Nanos,
    senders: Vec<Senders>,
    /// The number of parts with a known trigger.
    known: u64,
}

/// The senders of one name.
#[derive(Debug)]
struct Senders {
    first: Sender,
    several_tids: bool,
    several_cpus: bool,
    count: u64,
}

/// Sums parts by culprit. Beyond `cap` distinct culprits, further ones share one row for each kind.
#[derive(Debug)]
pub(crate) struct CulpritTable {
    cap: usize,
    sums: CulpritSums<(), Sum>,
    /// The rows of the current stall, with their shares of it.
    touched: Vec<(usize, Nanos)>,
}

impl CulpritTable {
    pub(crate) fn new(level: KeyLevel, cap: usize) -> CulpritTable {
        CulpritTable {
            cap,
            sums: CulpritSums::new(level, cap),
            touched: Vec::new(),
        }
    }

    /// Adds the parts of one stall.
    pub(crate) fn add<'p>(&mut self, parts: impl IntoIterator<Item = (&'p Part, Nanos)>) {
        let mut touched = std::mem::take(&mut self.touched);
        for (part, net) in parts {
            let at = self.sums.position_of((), &part.culprit);
            if let Some(sender) = &part.culprit.sender {
                let sum = self.sums.at(at);
                sum.known += 1;
                add_sender(&mut sum.senders, sender);
            }
            match touched.iter_mut().find(|(row, _)| *row == at) {
                Some((_, sum)) => *sum += net,
                None => touched.push((at, net)),
            }
        }
        for (at, net) in touched.drain(..) {
            let sum = self.sums.at(at);
            sum.count += 1;
            sum.total += net;
            sum.min = Some(sum.min.map_or(net, |min| min.min(net)));
            sum.max = sum.max.max(net);
        }
        self.touched = touched;
    }

    /// The rows of explained kinds, then those of the others, each by total.
    pub(crate) fn finish(
        self,
        stalled: Nanos,
        per_sec: impl Fn(u64) -> f64,
        ours: &Ours,
    ) -> [Vec<CulpritRow>; 2] {
        let cap = self.cap;
        let mut rows: Vec<CulpritRow> = self
            .sums
            .into_rows()
            .into_iter()
            .map(|row| CulpritRow {
                threads: row.threads(),
                thread_names: row.thread_names().cloned().collect(),
                recorder: ours.which(&row.subject),
                told_apart: matches!(row.subject, Subject::Others(_)).then_some(cap),
                explanation: String::new(),
                subject: row.subject,
                senders_known: row.value.known,
                sender: row
                    .value
                    .senders
                    .into_iter()
                    .max_by_key(|s| s.count)
                    .map(Senders::into_row),
                count: row.value.count,
                per_sec: per_sec(row.value.count),
                total_ns: row.value.total,
                share: share(row.value.total.0, stalled.0),
                min_ns: row.value.min.unwrap_or_default(),
                mean_ns: Nanos(row.value.total.0 / row.value.count.max(1)),
                max_ns: row.value.max,
            })
            .collect();
        rows.order_by(|a, b| {
            let by_name = |row: &CulpritRow| (row.subject.kind(), row.subject.name().into_owned());
            b.total_ns
                .cmp(&a.total_ns)
                .then_with(|| by_name(a).cmp(&by_name(b)))
                .then_with(|| a.subject.cmp(&b.subject))
        });
        let (explained, rest) = rows
            .into_iter()
            .partition(|row| row.subject.kind().is_explained());
        [explained, rest]
    }
}

fn add_sender(senders: &mut Vec<Senders>, sender: &Sender) {
    let same = |known: &Senders| {
        let first = &known.first;
        let same_thread = match (&first.comm, &sender.comm) {
            (Some(a), Some(b)) => a == b,
            (None, None) => first.tid == sender.tid,
            _ => false,
        };
        let same_place = first.beneath == sender.beneath && first.via == sender.via;
        first.context == sender.context && same_place && same_thread
    };
    match senders.iter().position(same) {
        Some(at) => {
            let known = &mut senders[at];
            known.count += 1;
            known.several_tids |= known.first.tid != sender.tid;
            known.several_cpus |= known.first.cpu != sender.cpu;
        }
        None if senders.len() < MAX_SENDERS => senders.push(Senders {
            first: sender.clone(),
            several_tids: false,
            several_cpus: false,
            count: 1,
        }),
        None => {}
    }
}

impl Senders {
    fn into_row(self) -> SenderRow {
        let has_tid = !self.several_tids && self.first.is_thread();
        SenderRow {
            context: self.first.context,
            comm: self.first.comm,
            tid: has_tid.then_some(self.first.tid),
            cpu: (!self.several_cpus).then_some(self.first.cpu),
            via: self.first.via,
            beneath: self.first.beneath,
            count: self.count,
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use jitterscope_model::{
        About, CpuId, CulpritKind, Evidence, ExecutionContext, Meanwhile, SchedClass, Task, Verdict,
    };
    use std::sync::Arc;

    fn part(subject: Subject, net: u64) -> Part {
        Part::inside(subject, Nanos(net), Evidence::SwitchRecords)
    }

    fn table(cap: usize, stalls: &[Vec<Part>]) -> [Vec<CulpritRow>; 2] {
        let mut table = CulpritTable::new(KeyLevel::Program, cap);
        for parts in stalls {
            table.add(parts.iter().map(|p| (p, p.net)));
        }
        table.finish(Nanos(1000), |count| count as f64, &Ours::of_nobody())
    }

    fn thread(comm: &str, tid: i32) -> Task {
        Task {
            tid: Some(tid),
            comm: comm.into(),
            class: Some(SchedClass::RealTime(3)),
            ..Task::default()
        }
    }

    fn tid(row: &CulpritRow) -> Option<i32> {
        row.subject.task().and_then(|task| task.tid)
    }

    #[test]
    fn threads_of_a_name_are_one_culprit_and_a_stall_counts_once() {
        let bash = |tid, net| part(Subject::Thread(thread("bash", tid)), net);
        let [rows, _] = table(10, &[vec![bash(1, 100), bash(2, 50)], vec![bash(1, 10)]]);
        assert_eq!(rows.len(), 1);
        assert_eq!(
            (rows[0].count, rows[0].total_ns, rows[0].max_ns),
            (2, Nanos(160), Nanos(150))
        );
        // The parts of one stall add up before they are compared.
        assert_eq!(rows[0].min_ns, Nanos(10));
        assert_eq!(
            (rows[0].mean_ns, rows[0].share, rows[0].per_sec),
            (Nanos(80), 0.16, 2.0)
        );
        assert_eq!((rows[0].threads, tid(&rows[0])), (2, None));
        let late = |about| part(Subject::Verdict(Verdict::LateTimer, about), 1);
        let ran = |comm: &str, tid| late(About::Meanwhile(Meanwhile::Ran(thread(comm, tid))));
        let [_, rows] = table(
            10,
            &[vec![ran("a", 1), late(About::Nothing)], vec![ran("a", 1)]],
        );
        assert_eq!(
            (rows.len(), rows[0].threads, tid(&rows[0])),
            (2, 1, Some(1))
        );
        let [_, rows] = table(10, &[vec![ran("a", 1)], vec![ran("b", 2)]]);
        assert_eq!((rows.len(), rows[0].threads, tid(&rows[0])), (1, 2, None));
    }

    #[test]
    fn what_does_not_fit_shares_a_row_of_its_kind() {
        let device = |n| Subject::Interrupt {
            number: Some(n),
            action: format!("dev{n}").into(),
        };
        let stalls: Vec<_> = (0..50).map(|n| vec![part(device(n), 10)]).collect();
        let [rows, _] = table(4, &stalls);
        assert_eq!(rows.len(), 5);
        assert_eq!(
            (&rows[0].subject, rows[0].count),
            (&Subject::Others(CulpritKind::Irq), 46)
        );
        assert_eq!((rows[0].told_apart, rows[1].told_apart), (Some(4), None));
    }

    fn sender() -> Sender {
        let via = Some("try_to_wake_up".into());
        let (context, comm) = (ExecutionContext::Thread, Some("a".into()));
        Sender {
            context,
            comm,
            tid: 1,
            tgid: None,
            cpu: CpuId(0),
            via,
            beneath: None,
        }
    }

    /// The row of a culprit with these triggers in order.
    fn triggered_by(senders: impl IntoIterator<Item = Sender>) -> CulpritRow {
        let stalls: Vec<Vec<Part>> = senders
            .into_iter()
            .map(|sender| {
                let mut p = part(Subject::Call("ipi_mb".into()), 1);
                Arc::make_mut(&mut p.culprit).sender = Some(sender);
                vec![p]
            })
            .collect();
        let [mut rows, _] = table(10, &stalls);
        assert_eq!(rows.len(), 1);
        rows.remove(0)
    }

    #[test]
    fn senders_are_one_where_name_context_and_function_agree() {
        let nameless = |tid| Sender {
            comm: None,
            tid,
            ..sender()
        };
        for (first, second, same) in [
            (sender(), sender(), true),
            (sender(), Sender { tid: 2, ..sender() }, true),
            (
                sender(),
                Sender {
                    cpu: CpuId(3),
                    ..sender()
                },
                true,
            ),
            (
                sender(),
                Sender {
                    comm: Some("b".into()),
                    ..sender()
                },
                false,
            ),
            (
                sender(),
                Sender {
                    context: ExecutionContext::Softirq,
                    ..sender()
                },
                false,
            ),
            (
                sender(),
                Sender {
                    via: None,
                    beneath: None,
                    ..sender()
                },
                false,
            ),
            (sender(), nameless(1), false),
            (nameless(1), nameless(1), true),
            // Threads without names are separate culprits.
            (nameless(1), nameless(2), false),
        ] {
            let row = triggered_by([first.clone(), second.clone()]);
            let count = row.sender.map(|sender| sender.count);
            assert_eq!(
                (row.senders_known, count),
                (2, Some(1 + u64::from(same))),
                "{first:?} {second:?}"
            );
        }
    }

    #[test]
    fn a_thread_and_a_cpu_are_named_if_they_were_always_the_same() {
        let at = |tid, cpu| Sender {
            tid,
            cpu: CpuId(cpu),
            ..sender()
        };
        for (senders, tid, cpu) in [
            ([at(1, 0), at(1, 0), at(1, 0)], Some(1), Some(CpuId(0))),
            ([at(1, 0), at(2, 0), at(1, 0)], None, Some(CpuId(0))),
            ([at(1, 0), at(1, 3), at(1, 0)], Some(1), None),
        ] {
            let row = triggered_by(senders).sender.unwrap();
            assert_eq!((row.count, row.tid, row.cpu), (3, tid, cpu));
        }
    }

    #[test]
    fn senders_beyond_those_told_apart_are_counted_and_not_named() {
        let named = |n: usize| Sender {
            comm: Some(format!("sender {n}").into()),
            ..sender()
        };
        let most_frequent = |n: usize, last: usize| {
            let row = triggered_by((0..n).map(named).chain((0..last).map(|_| named(n))));
            (row.senders_known, row.sender.map(|sender| sender.count))
        };
        assert_eq!(
            most_frequent(MAX_SENDERS - 1, 5),
            (MAX_SENDERS as u64 + 4, Some(5))
        );
        assert_eq!(
            most_frequent(MAX_SENDERS, 5),
            (MAX_SENDERS as u64 + 5, Some(1))
        );
    }

    #[test]
    fn interrupts_are_one_sender_and_have_no_thread() {
        let from = |context, tid| Sender {
            context,
            comm: None,
            tid,
            via: None,
            ..sender()
        };
        let (interrupt, softirq) = (ExecutionContext::Interrupt, ExecutionContext::Softirq);
        let sender = triggered_by([from(softirq, 1), from(interrupt, 0), from(interrupt, 0)])
            .sender
            .unwrap();
        assert_eq!(
            (sender.context, sender.count, sender.tid),
            (interrupt, 2, None)
        );
        assert_eq!(sender.cpu, Some(CpuId(0)));
    }

    #[test]
    fn the_most_frequent_sender_is_named() {
        let named = |comm: &str, tid| Sender {
            comm: Some(comm.into()),
            tid,
            ..sender()
        };
        let sender = triggered_by([named("a", 1), named("b", 2), named("b", 3)])
            .sender
            .unwrap();
        assert_eq!(
            (sender.comm.as_deref(), sender.count, sender.tid),
            (Some("b"), 2, None)
        );
        assert_eq!(sender.cpu, Some(CpuId(0)));
    }
}
