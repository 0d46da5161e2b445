//! The table of culprits, in bounded memory.

use crate::cpu::share;
use crate::phrase::explain;
use crate::summary::{CulpritRow, SenderRow};
use jitterscope_model::{Culprit, CulpritKind, Name, Nanos, Part, Sender};
use std::collections::{BTreeSet, HashMap};

/// Pids of one culprit that are told apart; more are "64+".
const MANY: usize = 64;
/// Senders of one culprit that are told apart.
const MAX_SENDERS: usize = 16;
/// What the row is called that takes in the culprits that did not fit.
pub(crate) const OVERFLOW: &str = "(others)";

/// A culprit's identity: what is left of it when pids are left out.
#[derive(Clone, Debug, PartialEq, Eq, Hash)]
struct Key {
    kind: CulpritKind,
    name: Name,
    detail: Name,
}

#[derive(Debug, Default)]
struct Row {
    count: u64,
    total: Nanos,
    max: Nanos,
    pids: BTreeSet<String>,
    senders: Vec<Senders>,
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
    index: HashMap<Key, usize>,
    rows: Vec<(Key, Row)>,
    /// Rows that the stall at hand has touched, with their share of it.
    touched: Vec<(usize, Nanos)>,
}

impl CulpritTable {
    pub(crate) fn new(cap: usize) -> CulpritTable {
        CulpritTable { cap, index: HashMap::new(), rows: Vec::new(), touched: Vec::new() }
    }

    /// The parts of one stall.
    pub(crate) fn add<'p>(&mut self, parts: impl IntoIterator<Item = (&'p Part, Nanos)>) {
        let mut touched = std::mem::take(&mut self.touched);
        for (part, net) in parts {
            let at = self.row(&part.culprit);
            if let Some(sender) = &part.culprit.sender {
                add_sender(&mut self.rows[at].1.senders, sender);
            }
            match touched.iter_mut().find(|(row, _)| *row == at) {
                Some((_, sum)) => *sum += net,
                None => touched.push((at, net)),
            }
        }
        for (at, net) in touched.drain(..) {
            let row = &mut self.rows[at].1;
            row.count += 1;
            row.total += net;
            row.max = row.max.max(net);
        }
        self.touched = touched;
    }

    /// Where the culprit's row is; made when there is none.
    fn row(&mut self, culprit: &Culprit) -> usize {
        let (detail, pid) = without_pid(&culprit.detail);
        let detail = detail.map_or_else(|| culprit.detail.clone(), Name::from);
        let mut key = Key { kind: culprit.kind, name: culprit.name.clone(), detail };
        let known = self.index.get(&key).copied();
        let at = known.unwrap_or_else(|| {
            if self.rows.len() >= self.cap {
                key = Key { kind: culprit.kind, name: OVERFLOW.into(), detail: "".into() };
                if let Some(at) = self.index.get(&key) {
                    return *at;
                }
            }
            self.rows.push((key.clone(), Row::default()));
            self.index.insert(key, self.rows.len() - 1);
            self.rows.len() - 1
        });
        let pids = &mut self.rows[at].1.pids;
        if let Some(pid) = pid.filter(|pid| pids.len() < MANY && !pids.contains(*pid)) {
            pids.insert(pid.to_owned());
        }
        at
    }

    /// Rows of explained kinds, then of the others, each by total.
    pub(crate) fn finish(self, stalled: Nanos, per_sec: impl Fn(u64) -> f64) -> [Vec<CulpritRow>; 2] {
        let cap = self.cap;
        let mut rows: Vec<CulpritRow> = self
            .rows
            .into_iter()
            .map(|(key, row)| CulpritRow {
                kind: key.kind,
                explanation: if &*key.name == OVERFLOW {
                    format!("culprits beyond the {cap} that are told apart")
                } else {
                    explain(key.kind, &key.name)
                },
                detail: with_pids(&key.detail, &row.pids),
                name: key.name,
                sender: row.senders.into_iter().max_by_key(|s| s.count).map(Senders::into_row),
                count: row.count,
                per_sec: per_sec(row.count),
                total_ns: row.total,
                share: share(row.total.0, stalled.0),
                mean_ns: Nanos(row.total.0 / row.count.max(1)),
                max_ns: row.max,
            })
            .collect();
        rows.sort_by(|a, b| {
            b.total_ns
                .cmp(&a.total_ns)
                .then_with(|| (a.kind, &a.name, &a.detail).cmp(&(b.kind, &b.name, &b.detail)))
        });
        let (explained, rest) = rows.into_iter().partition(|row| row.kind.is_explained());
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

/// Whether a component of a detail tells one thread from another of the same name, or what ran meanwhile.
fn is_pid(component: &str) -> bool {
    component.starts_with("kworker/")
        || (component.starts_with("while ") && component.ends_with(" ran"))
        || component
            .strip_prefix("pid ")
            .is_some_and(|n| !n.is_empty() && n.bytes().all(|b| b.is_ascii_digit()))
}

/// Placeholders for such components.
const PID: &str = "pid *";
const WORKER: &str = "kworker/*";
const WHILE: &str = "while * ran";

/// A detail with the first pid or worker replaced by a placeholder, and what was replaced.
fn without_pid(detail: &str) -> (Option<String>, Option<&str>) {
    let Some(pid) = detail.split(", ").find(|component| is_pid(component)) else { return (None, None) };
    let placeholder = match pid {
        _ if pid.starts_with("pid ") => PID,
        _ if pid.starts_with("while ") => WHILE,
        _ => WORKER,
    };
    let rest = detail.split(", ").map(|component| if component == pid { placeholder } else { component });
    (Some(rest.collect::<Vec<_>>().join(", ")), Some(pid))
}

/// The inverse, for all that were replaced: `pid 12` when it was one, else `4 pids`.
fn with_pids(detail: &str, pids: &BTreeSet<String>) -> String {
    let many = if pids.len() >= MANY { "+" } else { "" };
    let shown = |placeholder: &str, noun: &str| match pids.first() {
        Some(only) if pids.len() == 1 => only.clone(),
        Some(_) => format!("{}{many} {noun}", pids.len()),
        None => placeholder.to_owned(),
    };
    let components = detail.split(", ").map(|component| match component {
        PID => shown(PID, "pids"),
        WORKER => shown(WORKER, "workers"),
        WHILE if pids.len() > 1 => format!("while {} ran", shown(WHILE, "threads")),
        WHILE => shown(WHILE, ""),
        other => other.to_owned(),
    });
    components.collect::<Vec<_>>().join(", ")
}

#[cfg(test)]
mod tests {
    use super::*;
    use jitterscope_model::{Confidence, CpuId, ExecutionContext, Placement};

    fn part(kind: CulpritKind, name: &str, detail: &str, net: u64) -> Part {
        Part {
            culprit: Culprit { kind, name: name.into(), detail: detail.into(), sender: None },
            net: Nanos(net),
            gross: Nanos(net),
            placement: Placement::Inside,
            confidence: Confidence::High,
            evidence: String::new(),
        }
    }

    fn table(cap: usize, stalls: &[Vec<Part>]) -> [Vec<CulpritRow>; 2] {
        let mut table = CulpritTable::new(cap);
        for parts in stalls {
            table.add(parts.iter().map(|p| (p, p.net)));
        }
        table.finish(Nanos(1000), |count| count as f64)
    }

    #[test]
    fn threads_of_a_name_are_one_culprit_and_a_stall_counts_once() {
        let thread =
            |pid: u32, net| part(CulpritKind::Thread, "bash", &format!("pid {pid}, real-time 3"), net);
        let [rows, _] = table(10, &[vec![thread(1, 100), thread(2, 50)], vec![thread(1, 10)]]);
        assert_eq!(rows.len(), 1);
        assert_eq!((rows[0].count, rows[0].total_ns, rows[0].max_ns), (2, Nanos(160), Nanos(150)));
        assert_eq!(rows[0].detail, "2 pids, real-time 3");
        let work = |worker: &str| part(CulpritKind::Kworker, "f", &format!("{worker}, workqueue events"), 1);
        let [rows, _] = table(10, &[vec![work("kworker/1:0")], vec![work("kworker/1:0")]]);
        assert_eq!(rows[0].detail, "kworker/1:0, workqueue events");
        let late = |detail: &str| part(CulpritKind::Unresolved, "late timer", detail, 1);
        let [_, rows] = table(10, &[vec![late("while a ran"), late("")], vec![late("while a ran")]]);
        assert_eq!((rows.len(), &*rows[0].detail), (2, "while a ran"));
        let [_, rows] = table(10, &[vec![late("while a ran")], vec![late("while b ran")]]);
        assert_eq!((rows.len(), &*rows[0].detail), (1, "while 2 threads ran"));
    }

    #[test]
    fn what_does_not_fit_shares_a_row_of_its_kind() {
        let stalls: Vec<_> =
            (0..50).map(|n| vec![part(CulpritKind::Irq, &format!("dev{n}"), "", 10)]).collect();
        let [rows, _] = table(4, &stalls);
        assert_eq!(rows.len(), 5);
        assert_eq!((&*rows[0].name, rows[0].count, rows[0].kind), (OVERFLOW, 46, CulpritKind::Irq));
    }

    #[test]
    fn interrupts_are_one_sender_and_have_no_thread() {
        let sent = |context, tid| {
            let mut p = part(CulpritKind::Thread, "noise", "", 1);
            p.culprit.sender = Some(Sender { context, comm: None, tid, cpu: CpuId(0), via: None });
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
            let mut p = part(CulpritKind::Ipi, "ipi_mb", "", 1);
            p.culprit.sender = Some(Sender {
                context: ExecutionContext::Thread,
                comm: Some(comm.into()),
                tid,
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
