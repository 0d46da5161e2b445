//! Redacts a run for others to read: removes the names of the machine's owner, of the machine and of what runs on it.
//! The allowed words are listed ([`words`]). Every struct is built anew from data known to be harmless, so a field that
//! this code does not handle is left out.
//!
//! Redaction works on data, before rendering or writing. Threads, functions and devices that are in no list get
//! pseudonyms that are constant within one [`Redactor`]: `thread-1`, in the order of their appearance. No table maps
//! them back.

mod machine;
mod probe;
mod source;
mod subject;
mod warning;
mod words;

use crate::known_names;
use jitterscope_model::{
    AddedRecords, AnyVersion, AppMark, AskedEvent, AskedEventRecords, Attribution, BelongingThread,
    BlockReason, BlockedOn, ChosenThread, Comm, CounterTotal, Culprit, EndedEarly, EventClass,
    HostFacts, Imported, JournalEnd, JournalFault, MarkLog, MetCulprits, MovedBecause, NoReason,
    Part, PassiveCpu, PipelineJournal, PipelineResult, PipelineSetup, PipelineThread, ProbeKind,
    ProbeResult, ProfileLimit, RanInstead, RunHead, RunManifest, SavedMoment, SelfNoise, Sender,
    SourceReport, Stall, ThreadAccount, ThreadRef, WakeupResult,
};
use std::collections::HashMap;
use std::sync::Arc;

/// The replacement of a removed text.
const LEFT_OUT: &str = "left out";
/// The number of separate names of one kind; the rest share one.
const MOST: usize = 65_536;

/// Redacts one run, or the runs of one list.
#[derive(Debug, Default)]
pub struct Redactor {
    labels: Pseudonyms,
    threads: Pseudonyms,
    functions: Pseudonyms,
    devices: Pseudonyms,
    counters: Pseudonyms,
    histograms: Pseudonyms,
    queues: Pseudonyms,
    groups: Pseudonyms,
    marks: Pseudonyms,
    /// Redacted culprits, so that the parts of one still share it.
    culprits: MetCulprits<Arc<Culprit>>,
}

/// The words of a moment may be an application's.
/// Keeps what the file is, not what it is called.
fn imported(from: &Imported) -> Imported {
    let known = |word: &str, of: &[&str]| match of.contains(&word) {
        true => word.to_owned(),
        false => LEFT_OUT.to_owned(),
    };
    let clocks = [&Imported::NANOSECOND_CLOCKS[..], &[Imported::TSC_CLOCK]].concat();
    Imported {
        file: String::new(),
        format: known(
            &from.format,
            &[
                Imported::TRACE_DAT,
                Imported::PERF_DATA,
                Imported::PERFETTO,
                Imported::CTF,
            ],
        ),
        format_version: from.format_version,
        program: None,
        clock: known(&from.clock, &clocks),
        states_date: from.states_date,
        unread_records: from.unread_records,
    }
}

/// An event may be a probe that a user named.
fn asked(asked: &AskedEventRecords) -> AskedEventRecords {
    AskedEventRecords {
        event: AskedEvent {
            system: LEFT_OUT.into(),
            event: LEFT_OUT.into(),
            filter: asked.event.filter.as_ref().map(|_| LEFT_OUT.to_owned()),
        },
        records: asked.records,
    }
}

fn moment(moment: &SavedMoment) -> SavedMoment {
    SavedMoment {
        realtime_ns: moment.realtime_ns,
        by: moment.by,
        text: match moment.text.as_str() {
            "" => String::new(),
            _ => LEFT_OUT.to_owned(),
        },
        joined: moment.joined,
    }
}

/// Names in the order of their appearance.
#[derive(Debug, Default)]
struct Pseudonyms(HashMap<String, usize>);

impl Pseudonyms {
    fn of(&mut self, name: &str, sort: &str) -> String {
        let (known, next) = (self.0.get(name).copied(), self.0.len() + 1);
        if known.is_none() && next <= MOST {
            self.0.insert(name.to_owned(), next);
        }
        match known.or((next <= MOST).then_some(next)) {
            Some(number) => format!("{sort}-{number}"),
            None => format!("{sort}-more"),
        }
    }
}

impl Redactor {
    #[must_use]
    pub fn new() -> Redactor {
        Redactor::default()
    }

    /// A source without its problems that may have names in them.
    #[must_use]
    pub fn source(&self, source: &SourceReport) -> SourceReport {
        source::source(source)
    }

    #[must_use]
    pub fn head(&mut self, head: &RunHead) -> RunHead {
        RunHead {
            schema_version: head.schema_version,
            tool_version: version(&head.tool_version),
            id: id(&head.id),
            label: self.labels.of(&head.label, "label"),
            hostname: String::new(),
            started_realtime_ns: head.started_realtime_ns,
            probe: probe::probe(&head.probe),
            attributed: head.attributed,
            interrupted: head.interrupted,
            killed: head.killed,
            figures: head.figures.clone(),
        }
    }

    /// The redacted manifest. Leaves out what only a replay needs (edge costs, sleeping work items).
    #[must_use]
    pub fn manifest(&mut self, manifest: &RunManifest) -> RunManifest {
        RunManifest {
            schema_version: manifest.schema_version,
            tool_version: version(&manifest.tool_version),
            recorder_pid: manifest.recorder_pid,
            id: id(&manifest.id),
            label: self.labels.of(&manifest.label, "label"),
            command_line: Vec::new(),
            host: host(&manifest.host),
            clock: manifest.clock,
            rate: manifest.rate,
            clock_start: manifest.clock_start,
            clock_end: manifest.clock_end,
            probe: probe::probe(&manifest.probe),
            // The title is a word of its user.
            profile: manifest.profile.as_ref().map(|limit| ProfileLimit {
                title: "its work".into(),
                ..limit.clone()
            }),
            results: manifest.results.iter().map(result).collect(),
            wakeups: manifest.wakeups.iter().map(wakeup).collect(),
            threads: manifest
                .threads
                .iter()
                .map(|thread| self.account(thread))
                .collect(),
            pipeline: manifest
                .pipeline
                .as_ref()
                .map(|pipeline| self.pipeline(pipeline)),
            passive: manifest
                .passive
                .iter()
                .map(|cpu| self.passive(cpu))
                .collect(),
            attributed: manifest.attributed,
            asked: manifest.asked.iter().map(asked).collect(),
            sources: manifest.sources.iter().map(source::source).collect(),
            counters: manifest
                .counters
                .iter()
                .map(|counter| self.counter(counter))
                .collect(),
            edge_costs: Vec::new(),
            sleeping_works: Vec::new(),
            senders_dropped: manifest.senders_dropped,
            events_in_gaps: manifest.events_in_gaps,
            self_noise: self_noise(&manifest.self_noise),
            trace: manifest.trace.clone(),
            interrupted: manifest.interrupted,
            killed: manifest.killed,
            moment: manifest.moment.as_ref().map(moment),
            imported: manifest.imported.as_ref().map(imported),
            added: manifest.added.as_ref().map(|added| AddedRecords {
                file: imported(&added.file),
                run: id(&added.run),
                ..added.clone()
            }),
            warnings: manifest.warnings.iter().map(warning::warning).collect(),
        }
    }

    #[must_use]
    pub fn stall(&mut self, stall: &Stall) -> Stall {
        let comm = Comm::new(&self.thread(&stall.victim.comm.to_string()));
        Stall {
            id: stall.id,
            cpu: stall.cpu,
            victim: ThreadRef {
                tid: stall.victim.tid,
                comm,
            },
            start: stall.start,
            end: stall.end,
        }
    }

    /// The redacted attribution of a stall.
    #[must_use]
    pub fn attribution(&mut self, attribution: &Attribution) -> Attribution {
        let parts = attribution
            .parts
            .iter()
            .map(|part| self.part(part))
            .collect();
        Attribution {
            stall: attribution.stall,
            parts,
        }
    }

    /// The redacted marks of a log.
    #[must_use]
    pub fn marks(&mut self, log: &MarkLog) -> MarkLog {
        MarkLog {
            file: LEFT_OUT.to_owned(),
            form: log.form,
            outside: log.outside,
            unread: log.unread,
            beyond: log.beyond,
            marks: log
                .marks
                .iter()
                .map(|mark| AppMark {
                    name: self.marks.of(&mark.name, "mark"),
                    start_realtime_ns: mark.start_realtime_ns,
                    length_ns: mark.length_ns,
                })
                .collect(),
        }
    }

    /// The redacted tag of a histogram.
    #[must_use]
    pub fn tag(&mut self, tag: &str) -> String {
        let words = [
            "pipeline", "inter", "lateness", "transit", "from", "intended",
        ];
        let known = |word: &str| {
            let cpu = word.strip_prefix("cpu").is_some_and(is_number);
            cpu || [words.as_slice(), words::ROLES]
                .iter()
                .any(|list| list.contains(&word))
                || ProbeKind::from_word(word).is_some()
        };
        if tag.split('-').all(known) {
            tag.to_owned()
        } else {
            self.histograms.of(tag, "histogram")
        }
    }

    fn part(&mut self, part: &Part) -> Part {
        Part {
            culprit: self.culprit(&part.culprit),
            phase: part.phase.as_ref().map(subject::phase),
            moved_from: part.moved_from,
            net: part.net,
            gross: part.gross,
            turns: part.turns,
            placement: part.placement,
            confidence: part.confidence,
            evidence: subject::evidence(&part.evidence),
            others_stalled: part.others_stalled,
        }
    }

    fn culprit(&mut self, culprit: &Arc<Culprit>) -> Arc<Culprit> {
        if let Some(known) = self.culprits.get(culprit) {
            return Arc::clone(known);
        }
        let redacted = Arc::new(Culprit {
            subject: subject::redacted(self, &culprit.subject),
            sender: culprit.sender.as_ref().map(|sender| self.sender(sender)),
        });
        Arc::clone(self.culprits.of(culprit, |_| redacted))
    }

    fn sender(&mut self, sender: &Sender) -> Sender {
        Sender {
            context: sender.context,
            comm: sender.comm.as_ref().map(|comm| self.thread(comm).into()),
            tid: sender.tid,
            tgid: sender.tgid,
            cpu: sender.cpu,
            via: sender.via.as_ref().map(|via| self.function(via).into()),
            beneath: sender.beneath.as_ref().map(|name| self.thread(name).into()),
        }
    }

    fn thread(&mut self, name: &str) -> String {
        if name.is_empty() || known_names::is_kernel_thread(name) {
            return name.to_owned();
        }
        self.threads.of(name, "thread")
    }

    fn function(&mut self, name: &str) -> String {
        let listed = words::SENDERS.contains(&name)
            || words::COUNTERS.contains(&name)
            || known_names::is_kernel_thread(name)
            || known_names::is_function(name);
        if name.is_empty() || listed {
            name.to_owned()
        } else {
            self.functions.of(name, "function")
        }
    }

    /// The kind of a device's interrupt; several that share one are classified by the first.
    fn device(&mut self, name: &str) -> String {
        match words::DEVICES.iter().find(|kind| name.starts_with(**kind)) {
            Some(kind) => (*kind).to_owned(),
            None => self.devices.of(name, "device"),
        }
    }

    fn account(&mut self, thread: &ThreadAccount) -> ThreadAccount {
        ThreadAccount {
            tid: thread.tid,
            comm: self.thread(&thread.comm),
            role: thread
                .role
                .clone()
                .filter(|role| words::ROLES.contains(&role.as_str())),
            from: thread.from,
            until: thread.until,
            appeared: thread.appeared,
            exited: thread.exited,
            running_ns: thread.running_ns,
            interrupted_ns: thread.interrupted_ns,
            waiting_ns: thread.waiting_ns,
            preempted_ns: thread.preempted_ns,
            stopped_ns: thread.stopped_ns,
            blocked_ns: thread.blocked_ns,
            unknown_ns: thread.unknown_ns,
            runs: thread.runs,
            voluntary_switches: thread.voluntary_switches,
            involuntary_switches: thread.involuntary_switches,
            migrations: thread.migrations,
            page_faults: thread.page_faults,
            longest_wait_ns: thread.longest_wait_ns,
            cpus: thread.cpus.clone(),
            ran_instead: thread.ran_instead.iter().map(|row| self.ran(row)).collect(),
            blocked_on: thread
                .blocked_on
                .iter()
                .map(|row| self.blocked_on(row))
                .collect(),
        }
    }

    fn blocked_on(&mut self, row: &BlockedOn) -> BlockedOn {
        BlockedOn {
            // A word of a newer version may be anything.
            reason: match &row.reason {
                BlockReason::Other(_) => BlockReason::Function,
                known => known.clone(),
            },
            function: row.function.as_ref().map(|name| self.function(name)),
            unknown_because: row
                .unknown_because
                .clone()
                .filter(|why| NoReason::KNOWN.contains(why)),
            count: row.count,
            blocked_ns: row.blocked_ns,
            max_ns: row.max_ns,
        }
    }

    fn ran(&mut self, ran: &RanInstead) -> RanInstead {
        RanInstead {
            subject: subject::redacted(self, &ran.subject),
            threads: ran.threads,
            count: ran.count,
            min_ns: ran.min_ns,
            max_ns: ran.max_ns,
            total_ns: ran.total_ns,
        }
    }

    fn passive(&mut self, cpu: &PassiveCpu) -> PassiveCpu {
        let thread = |this: &mut Redactor, thread: &BelongingThread| BelongingThread {
            tid: thread.tid,
            comm: this.thread(&thread.comm),
            runs: thread.runs,
            running_ns: thread.running_ns,
        };
        PassiveCpu {
            cpu: cpu.cpu,
            from_ticks: cpu.from_ticks,
            until_ticks: cpu.until_ticks,
            threads: cpu.threads.iter().map(|row| thread(self, row)).collect(),
            thread_count: cpu.thread_count,
            chosen: cpu.chosen.as_ref().map(|chosen| ChosenThread {
                tid: chosen.tid,
                comm: self.thread(&chosen.comm),
                share: chosen.share,
                look_ns: chosen.look_ns,
            }),
            running_ns: cpu.running_ns,
            interrupted_ns: cpu.interrupted_ns,
            waiting_ns: cpu.waiting_ns,
            beside_ns: cpu.beside_ns,
            idle_ns: cpu.idle_ns,
            unknown_ns: cpu.unknown_ns,
            stretches: cpu.stretches,
            stalls: cpu.stalls,
            longest_ns: cpu.longest_ns,
            page_faults: cpu.page_faults,
            ran_instead: cpu.ran_instead.iter().map(|row| self.ran(row)).collect(),
            ran_beside: cpu.ran_beside.iter().map(|row| self.ran(row)).collect(),
            ended_early: cpu.ended_early.as_ref().map(ended_early),
        }
    }

    fn pipeline(&mut self, pipeline: &PipelineResult) -> PipelineResult {
        let setup = &pipeline.setup;
        PipelineResult {
            setup: PipelineSetup {
                record_length: setup.record_length,
                input: String::new(),
                input_records: setup.input_records,
                ring: setup.ring,
                via: setup.via,
                journal: setup.journal,
                interval_ns: setup.interval_ns,
                pacing: setup.pacing,
                messages: setup.messages,
                warm_up_messages: setup.warm_up_messages,
                pause_ns: setup.pause_ns,
                journaller: setup.journaller,
                memory_locked: setup.memory_locked,
                forced: setup.forced,
            },
            threads: pipeline
                .threads
                .iter()
                .map(|thread| PipelineThread {
                    role: thread.role,
                    tid: thread.tid,
                    comm: self.thread(&thread.comm),
                    cpu: thread.cpu,
                    fifo_priority: thread.fifo_priority,
                    page_faults: thread.page_faults,
                    involuntary_switches: thread.involuntary_switches,
                    cpu_time_ns: thread.cpu_time_ns,
                })
                .collect(),
            start: pipeline.start,
            end: pipeline.end,
            producer: pipeline.producer.clone(),
            consumers: pipeline.consumers.clone(),
            journal: pipeline.journal.as_ref().map(|journal| PipelineJournal {
                path: String::new(),
                written: journal.written,
                unwritten: journal.unwritten,
                waits: journal.waits,
                ended: journal.ended.as_ref().map(|end| JournalEnd {
                    disk_full: end.disk_full,
                    why: journal_fault(&end.why),
                }),
            }),
        }
    }

    /// `interrupt LOC (Local timer interrupts)`, `softirq NET_RX`, `stat steal`: the code stays, the description goes.
    fn counter(&mut self, counter: &CounterTotal) -> CounterTotal {
        let mut parts = counter.name.split(' ');
        let name = match (parts.next(), parts.next()) {
            (Some(file @ ("interrupt" | "softirq" | "stat")), Some(code))
                if words::COUNTERS.contains(&code) =>
            {
                format!("{file} {code}")
            }
            _ => self.counters.of(&counter.name, "counter"),
        };
        CounterTotal {
            cpu: counter.cpu,
            name,
            total: counter.total,
            correlation: counter.correlation,
        }
    }
}

fn host(host: &HostFacts) -> HostFacts {
    HostFacts {
        hostname: String::new(),
        kernel_release: release(&host.kernel_release),
        kernel_version: kernel_version(&host.kernel_version),
        arch: listed(words::ARCHITECTURES, &host.arch).unwrap_or_default(),
        cpu_model: processor(&host.cpu_model),
        cmdline: String::new(),
        online: host.online.clone(),
        isolated: host.isolated.clone(),
        nohz_full: host.nohz_full.clone(),
        hypervisor: host.hypervisor.as_ref().map(|signature| {
            listed(words::HYPERVISORS, signature).unwrap_or_else(|| "unknown".into())
        }),
        boot_id: None,
    }
}

fn result(result: &ProbeResult) -> ProbeResult {
    ProbeResult {
        cpu: result.cpu,
        tid: result.tid,
        start: result.start,
        end: result.end,
        planned_end: result.planned_end,
        samples: result.samples,
        sum_ticks: result.sum_ticks,
        sum_squares: result.sum_squares,
        min_ticks: result.min_ticks,
        max_ticks: result.max_ticks,
        threshold_ticks: result.threshold_ticks,
        below: result.below.clone(),
        above: result.above.clone(),
        stalls: result.stalls,
        stalled_ticks: result.stalled_ticks,
        dropped_records: result.dropped_records,
        own_bookkeeping: result.own_bookkeeping,
        page_faults: result.page_faults,
        involuntary_switches: result.involuntary_switches,
        ended_early: result.ended_early.as_ref().map(ended_early),
    }
}

/// The part of a known value to keep; words of unknown origin are removed.
fn any_version<T>(of: &AnyVersion<T>, keep: impl FnOnce(&T) -> Option<T>) -> AnyVersion<T> {
    of.known()
        .and_then(keep)
        .map_or_else(AnyVersion::left_out, AnyVersion::Known)
}

/// Removes the process that moved a probe.
fn ended_early(of: &AnyVersion<EndedEarly>) -> AnyVersion<EndedEarly> {
    any_version(of, |of| match of {
        EndedEarly::Moved {
            cpu,
            to_cpu,
            because,
        } => Some(EndedEarly::Moved {
            cpu: *cpu,
            to_cpu: *to_cpu,
            because: because.as_ref().map(|of| MovedBecause {
                offline: of.offline,
                by: None,
            }),
        }),
        EndedEarly::Offline => Some(EndedEarly::Offline),
    })
}

/// The system's message may name a file.
fn journal_fault(of: &AnyVersion<JournalFault>) -> AnyVersion<JournalFault> {
    any_version(of, |of| match of {
        JournalFault::StockOverfilled => Some(JournalFault::StockOverfilled),
        JournalFault::System { .. } => None,
    })
}

fn wakeup(result: &WakeupResult) -> WakeupResult {
    WakeupResult {
        cpu: result.cpu,
        tid: result.tid,
        start: result.start,
        end: result.end,
        wakeups: result.wakeups,
        missed: result.missed,
        min: result.min,
        max: result.max,
        sum: result.sum,
        plain: result.plain.clone(),
        corrected: result.corrected.clone(),
        stalls: result.stalls,
        dropped_records: result.dropped_records,
        ended_early: result.ended_early.as_ref().map(ended_early),
    }
}

/// Unknown classes may contain anything.
fn self_noise(noise: &SelfNoise) -> SelfNoise {
    let mut noise = noise.clone();
    if let Some(price) = &mut noise.events {
        price
            .events
            .retain(|class, _| EventClass::KNOWN.contains(class));
    }
    noise
}

fn listed(list: &[&str], text: &str) -> Option<String> {
    list.contains(&text).then(|| text.to_owned())
}

fn is_number(text: &str) -> bool {
    !text.is_empty() && text.len() <= 10 && text.bytes().all(|b| b.is_ascii_digit())
}

/// Lower case, digits and hyphens, as in stable ids.
fn is_slug(text: &str) -> bool {
    text.len() <= 40
        && text
            .bytes()
            .all(|b| b.is_ascii_lowercase() || b.is_ascii_digit() || b == b'-')
}

/// The six base-36 digits of a run's id, which the recorder generates.
fn id(id: &str) -> String {
    let made_up = id.len() == 6
        && id
            .bytes()
            .all(|b| b.is_ascii_lowercase() || b.is_ascii_digit());
    if made_up {
        id.to_owned()
    } else {
        String::new()
    }
}

/// The leading numbers: `0.1.0` of `0.1.0-acme`.
fn version(text: &str) -> String {
    let end = text
        .find(|c: char| !c.is_ascii_digit() && c != '.')
        .unwrap_or(text.len());
    text.get(..end)
        .unwrap_or_default()
        .trim_end_matches('.')
        .to_owned()
}

/// `6.1.0` and, for a real-time kernel, `-rt12`: the rest is the builder's choice.
fn release(text: &str) -> String {
    let rt = text
        .split(['-', '+'])
        .find(|part| part.strip_prefix("rt").is_some_and(is_number));
    match rt {
        Some(rt) => format!("{}-{rt}", version(text)),
        None => version(text),
    }
}

fn kernel_version(text: &str) -> String {
    text.split(' ')
        .filter(|word| words::KERNEL_VERSION.contains(word))
        .collect::<Vec<_>>()
        .join(" ")
}

/// A processor's name without words that no manufacturer uses.
fn processor(text: &str) -> String {
    let model = |word: &str| {
        word.len() <= 9
            && word.bytes().any(|b| b.is_ascii_digit())
            && word
                .bytes()
                .all(|b| b.is_ascii_alphanumeric() || matches!(b, b'-' | b'.'))
    };
    let harmless = |word: &&str| words::PROCESSORS.contains(word) || model(word);
    text.split(' ')
        .filter(harmless)
        .collect::<Vec<_>>()
        .join(" ")
}

#[cfg(test)]
mod tests;
