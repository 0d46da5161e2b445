//! The table of culprits, in bounded memory.

use crate::cpu::share;
use crate::culprit_row::{CulpritRow, SenderRow};
use crate::ours::Ours;
use crate::phrase::explain;
use jitterscope_model::{CulpritSums, KeyLevel, Nanos, Part, Sender, Subject};

/// Senders of one culprit that are told apart.
const MAX_SENDERS: usize = 16;

#[derive(Debug, Default)]
struct Sum {
    count: u64,
    total: Nanos,
    max: Nanos,
    senders: Vec<Senders>,
    /// Parts of which it is known who triggered the culprit.
    known: u64,
}

/// What is known of the senders of one name.
#[derive(Debug)]
struct Senders {
    first: Sender,
    several_tids: bool,
    several_cpus: bool,
    count: u64,
}

/// Adds up parts by culprit. Beyond `cap` distinct culprits, further ones share a row a kind.
#[derive(Debug)]
pub(crate) struct CulpritTable {
    cap: usize,
    sums: CulpritSums<(), Sum>,
    /// Rows that the stall at hand has touched, with their share of it.
    touched: Vec<(usize, Nanos)>,
}

impl CulpritTable {
    pub(crate) fn new(level: KeyLevel, cap: usize) -> CulpritTable {
        CulpritTable { cap, sums: CulpritSums::new(level, cap), touched: Vec::new() }
    }

    /// The parts of one stall.
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
            sum.max = sum.max.max(net);
        }
        self.touched = touched;
    }

    /// Rows of explained kinds, then of the others, each by total.
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
                explanation: match &row.subject {
                    Subject::Others(_) => format!("culprits beyond the {cap} that are told apart"),
                    subject => ours.explain(subject).map_or_else(|| explain(subject), str::to_owned),
                },
                subject: row.subject,
                senders_known: row.value.known,
                sender: row.value.senders.into_iter().max_by_key(|s| s.count).map(Senders::into_row),
                count: row.value.count,
                per_sec: per_sec(row.value.count),
                total_ns: row.value.total,
                share: share(row.value.total.0, stalled.0),
                mean_ns: Nanos(row.value.total.0 / row.value.count.max(1)),
                max_ns: row.value.max,
            })
            .collect();
        rows.sort_by(|a, b| {
            let by_name = |row: &CulpritRow| (row.subject.kind(), row.subject.name().into_owned());
            b.total_ns
                .cmp(&a.total_ns)
                .then_with(|| by_name(a).cmp(&by_name(b)))
                .then_with(|| a.subject.cmp(&b.subject))
        });
        let (explained, rest) = rows.into_iter().partition(|row| row.subject.kind().is_explained());
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
        first.context == sender.context && first.via == sender.via && same_thread
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
        let has_tid = !self.several_tids && self.first.involves_thread();
        SenderRow {
            context: self.first.context,
            comm: self.first.comm,
            tid: has_tid.then_some(self.first.tid),
            cpu: (!self.several_cpus).then_some(self.first.cpu),
            via: self.first.via,
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
        Task { tid: Some(tid), comm: comm.into(), class: Some(SchedClass::RealTime(3)), ..Task::default() }
    }

    fn tid(row: &CulpritRow) -> Option<i32> {
        row.subject.task().and_then(|task| task.tid)
    }

    #[test]
    fn threads_of_a_name_are_one_culprit_and_a_stall_counts_once() {
        let bash = |tid, net| part(Subject::Thread(thread("bash", tid)), net);
        let [rows, _] = table(10, &[vec![bash(1, 100), bash(2, 50)], vec![bash(1, 10)]]);
        assert_eq!(rows.len(), 1);
        assert_eq!((rows[0].count, rows[0].total_ns, rows[0].max_ns), (2, Nanos(160), Nanos(150)));
        assert_eq!((rows[0].threads, tid(&rows[0])), (2, None));
        let late = |about| part(Subject::Verdict(Verdict::LateTimer, about), 1);
        let ran = |comm: &str, tid| late(About::Meanwhile(Meanwhile::Ran(thread(comm, tid))));
        let [_, rows] = table(10, &[vec![ran("a", 1), late(About::Nothing)], vec![ran("a", 1)]]);
        assert_eq!((rows.len(), rows[0].threads, tid(&rows[0])), (2, 1, Some(1)));
        let [_, rows] = table(10, &[vec![ran("a", 1)], vec![ran("b", 2)]]);
        assert_eq!((rows.len(), rows[0].threads, tid(&rows[0])), (1, 2, None));
    }

    #[test]
    fn what_does_not_fit_shares_a_row_of_its_kind() {
        let device = |n| Subject::Interrupt { number: Some(n), action: format!("dev{n}").into() };
        let stalls: Vec<_> = (0..50).map(|n| vec![part(device(n), 10)]).collect();
        let [rows, _] = table(4, &stalls);
        assert_eq!(rows.len(), 5);
        assert_eq!((&rows[0].subject, rows[0].count), (&Subject::Others(CulpritKind::Irq), 46));
    }

    #[test]
    fn interrupts_are_one_sender_and_have_no_thread() {
        let sent = |context, tid| {
            let mut p = part(Subject::Thread(thread("noise", 9)), 1);
            Arc::make_mut(&mut p.culprit).sender =
                Some(Sender { context, comm: None, tid, tgid: None, cpu: CpuId(0), via: None });
            vec![p]
        };
        let (interrupt, softirq) = (ExecutionContext::Interrupt, ExecutionContext::Softirq);
        let [rows, _] = table(10, &[sent(softirq, 1), sent(interrupt, 0), sent(interrupt, 0)]);
        let sender = rows[0].sender.as_ref().unwrap();
        assert_eq!((sender.context, sender.count, sender.tid), (interrupt, 2, None));
        assert_eq!(sender.cpu, Some(CpuId(0)));
    }

    #[test]
    fn the_most_frequent_sender_is_named() {
        let sent = |comm: &str, tid| {
            let mut p = part(Subject::Call("ipi_mb".into()), 1);
            Arc::make_mut(&mut p.culprit).sender = Some(Sender {
                context: ExecutionContext::Thread,
                comm: Some(comm.into()),
                tid,
                tgid: None,
                cpu: CpuId(0),
                via: None,
            });
            vec![p]
        };
        let [rows, _] = table(10, &[sent("a", 1), sent("b", 2), sent("b", 3)]);
        let sender = rows[0].sender.as_ref().unwrap();
        assert_eq!((sender.comm.as_deref(), sender.count, sender.tid), (Some("b"), 2, None));
        assert_eq!(sender.cpu, Some(CpuId(0)));
    }
}
