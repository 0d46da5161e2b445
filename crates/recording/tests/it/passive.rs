//! Watched CPUs compared with threads that know the truth: a thread that spins there and keeps its own gaps, and one
//! whose CPU time the kernel charges. Records live, so it needs root and tracefs; without them the tests are skipped.

use jitterscope_attribute::{Attributor, AttributorSettings, EdgeCosts, OutsideHints};
use jitterscope_model::{
    Attribution, ClockKind, Comm, CpuId, CulpritKind, EventGrain, EventKind, Evidence,
    ExecutionContext, KernelEvent, Nanos, Part, PassiveCpu, Stall, StallId, Subject, ThreadRef,
    Ticks, Verdict,
};
use jitterscope_platform::{
    CpuChoice, Machine, Topology, clock, current_affinity, current_tid, name_current_thread,
    pin_current_thread, select_cpus, set_fifo,
};
use jitterscope_recording::{
    Owners, PassiveRecordSettings, RecordError, Replayed, RunSettings, StoredNames, WriterThread,
    record_passive, replay,
};
use jitterscope_source::{Decoder, TraceContext, Tracefs};
use jitterscope_store::{RunReader, TraceRole};
use jitterscope_testing::{is_root, turn};
use std::collections::{BTreeMap, BTreeSet};
use std::path::Path;
use std::sync::Arc;
use std::sync::atomic::{AtomicBool, AtomicI32, Ordering};
use std::thread::JoinHandle;
use std::time::Duration;

fn can_trace() -> bool {
    match Tracefs::open(&Machine::host()) {
        Ok(_) => true,
        Err(error) => {
            jitterscope_testing::skip(&format!("no kernel events here: {error}"));
            false
        }
    }
}

fn measured() -> CpuChoice {
    select_cpus(
        None,
        &Topology::read(&Machine::host()),
        &current_affinity().unwrap(),
    )
    .unwrap()
}

fn settings(runs: &Path, owners: Owners) -> PassiveRecordSettings {
    PassiveRecordSettings {
        run: RunSettings {
            clock: None,
            trace_buffer_kib: 8192,
            trace_limit_bytes: 64 << 20,
            asked: Vec::new(),
            tuning: None,
            writer: WriterThread::default(),
            label: "PASSIVE".into(),
            runs_dir: runs.to_path_buf(),
            command_line: vec!["test".into()],
            profile: None,
        },
        cpus: measured(),
        owners,
        duration: Nanos(1_500_000_000),
        look: Nanos(300_000_000),
        threshold: Nanos(0),
        interval: Nanos(100_000_000),
        events: EventGrain::All,
    }
}

/// A thread that reads the clock back to back on a CPU and keeps its gaps.
struct Spinner {
    stop: Arc<AtomicBool>,
    tid: i32,
    thread: Option<JoinHandle<Vec<(Ticks, Ticks)>>>,
}

impl Spinner {
    /// Deltas above this many ticks are gaps: longer than many reads, shorter than any interrupt.
    const GAP: u64 = 800;

    fn start(cpu: CpuId, name: &'static str, kind: ClockKind) -> Spinner {
        let (stop, tid) = (
            Arc::new(AtomicBool::new(false)),
            Arc::new(AtomicI32::new(0)),
        );
        let (its_stop, its_tid) = (stop.clone(), tid.clone());
        let spin = move || {
            name_current_thread(name);
            pin_current_thread(cpu).unwrap();
            // Faults its memory in.
            let mut gaps = vec![(Ticks(1), Ticks(1)); 1 << 20];
            let mut count = 0;
            its_tid.store(current_tid(), Ordering::Release);
            let mut before = clock::now(kind);
            while !its_stop.load(Ordering::Relaxed) {
                let now = clock::now(kind);
                if now.since(before) > Ticks(Spinner::GAP) && count < gaps.len() {
                    gaps[count] = (before, now);
                    count += 1;
                }
                before = now;
            }
            gaps.truncate(count);
            gaps
        };
        let thread = std::thread::spawn(spin);
        while tid.load(Ordering::Acquire) == 0 {
            std::thread::sleep(Duration::from_millis(1));
        }
        Spinner {
            stop,
            tid: tid.load(Ordering::Acquire),
            thread: Some(thread),
        }
    }

    fn gaps(mut self) -> Vec<(Ticks, Ticks)> {
        self.stop.store(true, Ordering::Relaxed);
        self.thread.take().unwrap().join().unwrap()
    }
}

impl Drop for Spinner {
    fn drop(&mut self) {
        self.stop.store(true, Ordering::Relaxed);
    }
}

type Rows = Vec<(Stall, Attribution)>;

fn stored(run: &RunReader) -> Rows {
    let attributions = run.attributions().unwrap().map(Result::unwrap);
    let rows: Rows = run
        .stalls()
        .unwrap()
        .map(Result::unwrap)
        .zip(attributions)
        .collect();
    assert!(
        rows.iter()
            .all(|(stall, attribution)| stall.id == attribution.stall)
    );
    rows
}

fn watch(settings: &PassiveRecordSettings) -> RunReader {
    let stop = AtomicBool::new(false);
    let outcome = record_passive(&Machine::host(), settings, Vec::new(), &stop, &mut ()).unwrap();
    let run = RunReader::open(&outcome.path).unwrap();
    assert_eq!(run.manifest(), &outcome.manifest);
    run
}

/// Checks every such run: parts add up to stalls, sums add up to the watched time, and the stolen time equals the
/// stalls if all of them are kept.
fn assert_whole(run: &RunReader, threshold: Nanos) {
    let manifest = run.manifest();
    let rows = stored(run);
    let mut lengths: BTreeMap<CpuId, (u64, u64)> = BTreeMap::new();
    for (stall, attribution) in &rows {
        let length = manifest.rate.nanos(stall.length());
        assert_eq!(attribution.total(), length, "{stall:?}");
        let sum = lengths.entry(stall.cpu).or_default();
        *sum = (sum.0 + 1, sum.1 + length.0);
    }
    for cpu in &manifest.passive {
        let watched = manifest.rate.nanos(cpu.until_ticks.since(cpu.from_ticks));
        assert!(
            cpu.watched_ns().0.abs_diff(watched.0) <= 6,
            "{cpu:?} of {watched}"
        );
        let (count, sum) = lengths.get(&cpu.cpu).copied().unwrap_or_default();
        assert_eq!(count, cpu.stalls, "CPU {}", cpu.cpu);
        let by_culprit: u64 = cpu.ran_instead.iter().map(|row| row.total_ns.0).sum();
        assert!(
            by_culprit.abs_diff(cpu.stolen_ns().0) <= 2 + cpu.ran_instead.len() as u64,
            "{cpu:?}"
        );
        if threshold == Nanos::ZERO {
            assert_eq!(count, cpu.stretches);
            // Each is rounded down separately.
            assert!(
                cpu.stolen_ns().0 >= sum && cpu.stolen_ns().0 - sum <= 2 + count,
                "{cpu:?} of {sum}"
            );
        }
    }
}

fn again(run: &RunReader) -> (Vec<(Stall, Option<Attribution>)>, Replayed) {
    let mut rows = Vec::new();
    let replayed = replay(run, &mut |stall, attribution| {
        rows.push((*stall, attribution))
    })
    .unwrap();
    (rows, replayed)
}

fn assert_replays(run: &RunReader) {
    assert!(run.manifest().trace.complete);
    let live: Vec<_> = stored(run)
        .into_iter()
        .map(|(stall, a)| (stall, Some(a)))
        .collect();
    let (again, replayed) = again(run);
    let differing: Vec<_> = live
        .iter()
        .zip(&again)
        .filter(|(live, again)| live != again)
        .collect();
    for (live, again) in differing.iter().take(3) {
        eprintln!("live:     {live:#?}\nreplayed: {again:#?}");
    }
    assert!(
        differing.is_empty(),
        "{} of {} stalls differ in replay",
        differing.len(),
        live.len()
    );
    assert_eq!(live.len(), again.len());
    assert_eq!(replayed.passive.as_deref(), Some(&*run.manifest().passive));
    let intervals: Vec<_> = run.intervals().unwrap().map(Result::unwrap).collect();
    assert_eq!(replayed.intervals, Some(intervals));
}

/// Whether both its entry and its exit are recorded.
fn has_entry_and_exit(kind: CulpritKind) -> bool {
    matches!(
        kind,
        CulpritKind::Thread
            | CulpritKind::Kworker
            | CulpritKind::Irq
            | CulpritKind::Timer
            | CulpritKind::Softirq
            | CulpritKind::Ipi
            | CulpritKind::Nmi
    )
}

/// Time of each culprit per gap, nanoseconds.
type Sums = BTreeMap<(CulpritKind, String), BTreeMap<usize, u64>>;

fn add(sums: &mut Sums, gap: usize, attribution: &Attribution) {
    for part in attribution
        .parts
        .iter()
        .filter(|part| has_entry_and_exit(part.culprit.kind()))
    {
        let key = (part.culprit.kind(), part.culprit.subject.name().to_string());
        *sums.entry(key).or_default().entry(gap).or_default() += part.net.0;
    }
}

/// The sums of a spinner's gaps, from a run's records.
struct Spun {
    sums: Sums,
    /// Gaps with a switch that left no record: the thread that had the CPU is not the one that the last switch put on.
    unrecorded: BTreeSet<usize>,
}

/// A spinner's own gaps, attributed by a run's records as if a probe had found them. No edge cost is granted to any
/// culprit: records bound the time inside.
fn of_gaps(run: &RunReader, cpu: CpuId, tid: i32, gaps: &[(Ticks, Ticks)]) -> Spun {
    let context: TraceContext = run.trace_context().unwrap().unwrap();
    let manifest = run.manifest();
    let settings = AttributorSettings {
        rate: manifest.rate,
        virtual_machine: true,
        measured: 1,
    };
    let mut attributor = Attributor::new(settings);
    let mut decoder = Decoder::new(&context).unwrap();
    let mut on_cpu: Vec<KernelEvent> = Vec::new();
    for page in run.trace_pages(Ticks(0), Ticks(u64::MAX)).unwrap() {
        let mut events: Vec<KernelEvent> = Vec::new();
        decoder
            .page(page.cpu, &page.bytes, |event| events.push(event))
            .unwrap();
        for event in events {
            match page.role {
                TraceRole::Local => {
                    if event.cpu == cpu {
                        on_cpu.push(event.clone());
                    }
                    attributor.event(&event);
                }
                TraceRole::Senders => attributor.sender_event(&event),
                TraceRole::Graph | TraceRole::Stacks => {}
            }
        }
    }
    let names = StoredNames::new(&context);
    let victim = ThreadRef {
        tid,
        comm: Comm::default(),
    };
    let mut spun = Spun {
        sums: Sums::new(),
        unrecorded: BTreeSet::new(),
    };
    for (n, (start, end)) in gaps.iter().enumerate() {
        let stall = Stall {
            id: StallId(n as u64),
            cpu,
            victim,
            start: *start,
            end: *end,
        };
        add(
            &mut spun.sums,
            n,
            &attributor.attribute(&stall, &OutsideHints::default(), &names),
        );
        attributor.set_costs(EdgeCosts::default());
        let first = on_cpu.partition_point(|event| event.time < *start);
        let inside = on_cpu[first..]
            .iter()
            .take_while(|event| event.time <= *end);
        if !records_each_switch(inside, tid) {
            spun.unrecorded.insert(n);
        }
    }
    spun
}

/// Whether the records of a CPU lead from a thread back to it, each naming the thread that the last switch put on.
fn records_each_switch<'a>(records: impl Iterator<Item = &'a KernelEvent>, tid: i32) -> bool {
    let mut has = tid;
    for record in records {
        // During a switch the scheduler still names the previous thread, and in an NMI it may name any.
        let amid = matches!(record.kind, EventKind::TlbFlush { .. });
        if amid || record.context == ExecutionContext::Nmi {
            continue;
        }
        if record.tid != has {
            eprintln!(
                "thread {has} was put on, and thread {} has the CPU at {record:?}",
                record.tid
            );
            return false;
        }
        if let EventKind::SchedSwitch { next, .. } = &record.kind {
            has = next.tid;
        }
    }
    if has != tid {
        eprintln!("thread {has} was put on last");
    }
    has == tid
}

fn is_unrecorded_switch(part: &Part) -> bool {
    matches!(
        part.culprit.subject,
        Subject::Verdict(Verdict::UnrecordedSwitch, _)
    )
}

#[test]
fn a_spinner_that_keeps_its_gaps_agrees_on_who_took_its_time() {
    const NAME: &str = "own-spinner";
    let _turn = turn();
    if !can_trace() {
        return;
    }
    let kind =
        jitterscope_platform::choose_clock(&Machine::host(), None, Duration::from_millis(50));
    let kind = kind.unwrap().kind;
    let dir = tempfile::tempdir().unwrap();
    let cpu = measured().cpus.first().unwrap();
    let spinner = Spinner::start(cpu, NAME, kind);
    let tid = spinner.tid;
    let settings = settings(dir.path(), Owners::Named(NAME.into()));
    let run = watch(&settings);
    let gaps = spinner.gaps();
    let manifest = run.manifest();
    assert!(
        manifest.sources.iter().all(|source| source.lost == 0),
        "{:?}",
        manifest.sources
    );
    assert_whole(&run, settings.threshold);
    let of = &manifest.passive[0];
    assert_eq!(
        (of.threads[0].tid, of.thread_count),
        (tid, 1),
        "{:?}",
        of.threads
    );

    // Gaps that lie entirely in the measurement.
    let inside = |(start, end): &&(Ticks, Ticks)| of.from_ticks <= *start && *end <= of.until_ticks;
    let gaps: Vec<_> = gaps.iter().filter(inside).copied().collect();
    let (first, last) = (gaps.first().unwrap().0, gaps.last().unwrap().1);
    let mut passive = Sums::new();
    let (mut stalls, mut outside) = (0, 0);
    let mut amid = BTreeSet::new();
    for (stall, attribution) in stored(&run) {
        if stall.start < first || last < stall.end {
            continue;
        }
        stalls += 1;
        match gaps
            .iter()
            .position(|(start, end)| *start <= stall.start && stall.end <= *end)
        {
            Some(gap) => add(&mut passive, gap, &attribution),
            // The spinner ran before its first record, because a switch to it left none; that is reported.
            None if attribution.parts.iter().any(is_unrecorded_switch) => {
                let touches =
                    |(start, end): &(Ticks, Ticks)| *start <= stall.end && stall.start <= *end;
                amid.extend((0..gaps.len()).filter(|gap| touches(&gaps[*gap])));
            }
            None => outside += 1,
        }
    }
    let Spun {
        sums: spun,
        mut unrecorded,
    } = of_gaps(&run, cpu, tid, &gaps);
    unrecorded.extend(amid);
    eprintln!(
        "{stalls} stretches, {} gaps, {} with an unrecorded switch",
        gaps.len(),
        unrecorded.len()
    );
    assert_eq!(
        outside, 0,
        "the spinner ran while time is said to be stolen from it"
    );
    for key in spun.keys().chain(passive.keys()).collect::<BTreeSet<_>>() {
        let of = |sums: &Sums, gap| {
            sums.get(key)
                .and_then(|by_gap| by_gap.get(gap))
                .copied()
                .unwrap_or(0)
        };
        for gap in &unrecorded {
            let (ns, found_ns) = (of(&spun, gap), of(&passive, gap));
            if ns.abs_diff(found_ns) as f64 > 0.05 * ns as f64 {
                eprintln!(
                    "{key:?} in gap {gap}, with an unrecorded switch: {ns} and {found_ns} ns"
                );
            }
        }
    }
    // A thread that came or went by an unrecorded switch has no entry or exit. The spinner knows that it had the CPU at
    // both ends of its gap; the records do not show it.
    let shown = |sums: &Sums| {
        let mut shown = sums.clone();
        shown
            .values_mut()
            .for_each(|by_gap| by_gap.retain(|gap, _| !unrecorded.contains(gap)));
        shown.retain(|_, by_gap| !by_gap.is_empty());
        shown
    };
    let (spun, passive) = (shown(&spun), shown(&passive));
    let sum = |by_gap: &BTreeMap<usize, u64>| by_gap.values().sum::<u64>();
    for (key, in_gaps) in &spun {
        let found = passive.get(key).cloned().unwrap_or_default();
        let (ns, found_ns) = (sum(in_gaps), sum(&found));
        eprintln!(
            "{key:?}: {} and {} gaps, {ns} and {found_ns} ns",
            in_gaps.len(),
            found.len()
        );
    }
    // A spinner that is off its CPU for long has few stretches, each with many culprits.
    let compared: usize = spun.values().map(BTreeMap::len).sum();
    assert!(
        compared > 100 && unrecorded.len() * 4 < gaps.len(),
        "{compared} compared, {} gaps",
        gaps.len()
    );
    let gaps_of = |sums: &Sums| -> BTreeMap<_, BTreeSet<usize>> {
        sums.iter()
            .map(|(key, by_gap)| (key.clone(), by_gap.keys().copied().collect()))
            .collect()
    };
    assert_eq!(gaps_of(&spun), gaps_of(&passive));
    for (key, in_gaps) in &spun {
        let (ns, found_ns) = (sum(in_gaps), sum(&passive[key]));
        assert!(
            ns.abs_diff(found_ns) as f64 <= 0.05 * ns as f64,
            "{key:?}: {ns} and {found_ns} ns"
        );
    }
}

/// CPU time that the kernel charged to the calling thread.
fn charged() -> u64 {
    let text = std::fs::read_to_string("/proc/thread-self/schedstat").unwrap();
    text.split_ascii_whitespace()
        .next()
        .unwrap()
        .parse()
        .unwrap()
}

#[test]
fn a_real_time_hog_is_named_and_measured() {
    const NAME: &str = "fifo-hog";
    let _turn = turn();
    if !can_trace() {
        return;
    }
    let dir = tempfile::tempdir().unwrap();
    let cpu = measured().cpus.first().unwrap();
    let kind = ClockKind::MonotonicRaw;
    let victim = Spinner::start(cpu, "hogs-victim", kind);
    let stop = Arc::new(AtomicBool::new(false));
    let its_stop = stop.clone();
    let (begin, receiver) = std::sync::mpsc::channel();
    let hog = std::thread::spawn(move || {
        name_current_thread(NAME);
        pin_current_thread(cpu).unwrap();
        if let Err(error) = set_fifo(1) {
            jitterscope_testing::skip(&format!("no SCHED_FIFO here: {error}"));
            return None;
        }
        receiver.recv().unwrap();
        let before = charged();
        let (mut bursts, mut spun) = (0, 0);
        while !its_stop.load(Ordering::Relaxed) && bursts < 25 {
            let start = clock::now(kind);
            while clock::now(kind).since(start) < Ticks(2_000_000) {}
            spun += clock::now(kind).since(start).0;
            bursts += 1;
            std::thread::sleep(Duration::from_millis(20));
        }
        Some((bursts, charged() - before, spun))
    });
    /// Starts it after the measurement has begun; it ends before the measurement does.
    struct Begin(std::sync::mpsc::Sender<()>);
    impl jitterscope_recording::Observer for Begin {
        fn progress(&mut self, progress: &jitterscope_recording::Progress) {
            if progress.elapsed > Nanos(200_000_000) {
                let _ = self.0.send(());
            }
        }
    }
    let mut settings = settings(dir.path(), Owners::Named("hogs-victim".into()));
    settings.duration = Nanos(2_500_000_000);
    let never = AtomicBool::new(false);
    let outcome = record_passive(
        &Machine::host(),
        &settings,
        Vec::new(),
        &never,
        &mut Begin(begin),
    )
    .unwrap();
    stop.store(true, Ordering::Relaxed);
    let Some((bursts, charged, spun)) = hog.join().unwrap() else {
        return;
    };
    drop(victim);
    let run = RunReader::open(&outcome.path).unwrap();
    assert_whole(&run, settings.threshold);
    let of = &run.manifest().passive[0];
    let row = of
        .ran_instead
        .iter()
        .find(|row| row.subject.name() == NAME)
        .expect("it is named");
    // The scheduler charges interrupts during the hog's turns to the hog; here they have their own names. While the
    // host has the CPU the scheduler charges nothing, but the victim waits. The hog's own clock shows that time, but
    // not the time between two bursts.
    eprintln!("{bursts} bursts of {spun} ns together, charged {charged} ns; found {row:?}");
    assert!(bursts > 5);
    assert!(row.count >= bursts, "{row:?}");
    let (least, most) = (charged.min(spun) as f64, charged.max(spun) as f64);
    let found = row.total_ns.0 as f64;
    assert!(
        0.95 * least <= found && found <= 1.05 * most,
        "{row:?}, charged {charged}, spun {spun}"
    );
}

/// A process that never sleeps, on one CPU; ended when dropped.
/// A process that takes a CPU while it exists.
pub(crate) struct BusyLoop(std::process::Child);

impl BusyLoop {
    pub(crate) fn start(cpu: CpuId) -> BusyLoop {
        let mut spin = std::process::Command::new("taskset");
        spin.args(["-c", &cpu.to_string(), "sh", "-c", "while :; do :; done"]);
        BusyLoop(spin.spawn().unwrap())
    }
}

impl Drop for BusyLoop {
    fn drop(&mut self) {
        let _ = self.0.kill();
        let _ = self.0.wait();
    }
}

#[test]
fn watched_cpus_replay_as_they_were() {
    let _turn = turn();
    if !can_trace() {
        return;
    }
    let dir = tempfile::tempdir().unwrap();
    let cpu = measured().cpus.first().unwrap();
    // A process of its own, because our own threads are never owners.
    let spinner = BusyLoop::start(cpu);
    let of_largest = settings(dir.path(), Owners::Largest);
    let run = watch(&of_largest);
    assert_whole(&run, of_largest.threshold);
    assert!(
        !stored(&run).is_empty(),
        "whoever it is on a busy machine, something is taken from it"
    );
    assert!(
        run.manifest().passive[0]
            .chosen
            .as_ref()
            .is_some_and(|chosen| chosen.share > 0.0)
    );
    assert_replays(&run);
    // A process that sleeps and wakes, on all CPUs.
    let line = "n=0; while [ $n -lt 30000 ]; do sleep 0.003; n=$((n+1)); done";
    let mut child = std::process::Command::new("sh")
        .args(["-c", line])
        .spawn()
        .unwrap();
    let cpus = CpuChoice {
        cpus: current_affinity().unwrap(),
        because: None,
    };
    for owners in [
        Owners::Process(child.id().cast_signed()),
        Owners::Named("sleep".into()),
    ] {
        let settings = PassiveRecordSettings {
            cpus: cpus.clone(),
            threshold: Nanos(2_000),
            ..settings(dir.path(), owners)
        };
        let run = watch(&settings);
        assert_whole(&run, settings.threshold);
        assert_replays(&run);
        let asleep: Nanos = run
            .manifest()
            .passive
            .iter()
            .map(|cpu| cpu.idle_ns + cpu.beside_ns)
            .sum();
        let watched: Nanos = run
            .manifest()
            .passive
            .iter()
            .map(PassiveCpu::watched_ns)
            .sum();
        assert!(
            asleep.0 > watched.0 / 4,
            "it sleeps most of the time: {asleep} of {watched}"
        );
    }
    child.kill().unwrap();
    child.wait().unwrap();
    drop(spinner);
}

#[test]
fn lost_records_withhold_verdicts() {
    let _turn = turn();
    if !can_trace() {
        return;
    }
    let dir = tempfile::tempdir().unwrap();
    let cpu = measured().cpus.first().unwrap();
    let spinner = Spinner::start(cpu, "loses", ClockKind::MonotonicRaw);
    // A thread that comes and goes fills such a small buffer before it is read.
    let stop = Arc::new(AtomicBool::new(false));
    let its_stop = stop.clone();
    let flood = std::thread::spawn(move || {
        pin_current_thread(cpu).unwrap();
        while !its_stop.load(Ordering::Relaxed) {
            std::thread::sleep(Duration::from_micros(50));
        }
    });
    let mut small = settings(dir.path(), Owners::Named("loses".into()));
    small.run.trace_buffer_kib = 8;
    let run = watch(&small);
    stop.store(true, Ordering::Relaxed);
    flood.join().unwrap();
    drop(spinner);
    assert_whole(&run, small.threshold);
    assert_replays(&run);
    let manifest = run.manifest();
    let lost: u64 = manifest.sources.iter().map(|source| source.lost).sum();
    assert!(lost > 0, "nothing was lost");
    assert!(
        manifest
            .warnings
            .iter()
            .any(|warning| warning.id() == "trace-lost")
    );
    assert!(
        manifest.passive[0].unknown_ns > Nanos::ZERO,
        "{:?}",
        manifest.passive[0]
    );
    let withheld = |part: &jitterscope_model::Part| part.evidence == Evidence::LostRecords;
    let without = stored(&run)
        .iter()
        .filter(|(_, a)| a.parts.iter().any(withheld))
        .count();
    eprintln!(
        "{lost} records lost, {without} of {} stalls without a verdict",
        stored(&run).len()
    );
}

#[test]
fn a_cpu_that_goes_offline_is_watched_up_to_then() {
    let _turn = turn();
    if !can_trace() || !is_root() {
        return jitterscope_testing::skip("no root");
    }
    let cpu = measured().cpus.first().unwrap();
    let switch = format!("/sys/devices/system/cpu/cpu{cpu}/online");
    if std::fs::read_to_string(&switch).is_ok_and(|text| text.trim() == "1") {
        /// Takes a CPU offline after a while, and always brings it back.
        struct Away(String, bool);
        impl jitterscope_recording::Observer for Away {
            fn progress(&mut self, progress: &jitterscope_recording::Progress) {
                if !self.1 && progress.elapsed > Nanos(400_000_000) {
                    self.1 = std::fs::write(&self.0, "0").is_ok();
                }
            }
        }
        impl Drop for Away {
            fn drop(&mut self) {
                std::fs::write(&self.0, "1").unwrap();
            }
        }
        let dir = tempfile::tempdir().unwrap();
        let settings = settings(dir.path(), Owners::Named("nobody-at-all".into()));
        let mut away = Away(switch, false);
        let never = AtomicBool::new(false);
        let outcome =
            record_passive(&Machine::host(), &settings, Vec::new(), &never, &mut away).unwrap();
        let gone = away.1;
        drop(away);
        if !gone {
            return jitterscope_testing::skip(&format!("CPU {cpu} cannot be taken offline"));
        }
        let run = RunReader::open(&outcome.path).unwrap();
        let of = &run.manifest().passive[0];
        assert!(
            of.ended_early.is_some() && of.unknown_ns > Nanos::ZERO,
            "{of:?}"
        );
        assert_whole(&run, settings.threshold);
        assert_replays(&run);
        let ids: Vec<String> = run
            .manifest()
            .warnings
            .iter()
            .map(|warning| warning.id())
            .collect();
        let has = |id: &str| ids.iter().any(|one| one == id);
        assert!(has("cpu-offline") && has("owner-not-met"), "{ids:?}");
    } else {
        jitterscope_testing::skip(&format!("CPU {cpu} cannot be taken offline"));
    }
}

#[test]
fn what_cannot_be_watched_is_refused() {
    let dir = tempfile::tempdir().unwrap();
    let stop = AtomicBool::new(false);
    let gone = settings(dir.path(), Owners::Process(i32::MAX));
    let error = record_passive(&Machine::host(), &gone, Vec::new(), &stop, &mut ()).unwrap_err();
    assert!(matches!(error, RecordError::Follow(_)), "{error}");
    assert!(
        std::fs::read_dir(dir.path()).unwrap().next().is_none(),
        "nothing is left"
    );
}
