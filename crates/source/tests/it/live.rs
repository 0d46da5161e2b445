//! Recordings on this machine. They need root and tracefs, and report when they are skipped; run them when no other
//! recording runs.

use crate::load;

use jitterscope_model::{
    ClockKind, CpuId, EventGrain, EventKind, KernelEvent, SourceStatus, Ticks,
};
use jitterscope_platform::{Machine, OwnName, clock};
use jitterscope_source::tracefs::Leftover;
use jitterscope_source::{
    Decoder, Recorder, RecorderSettings, Role, Symbols, TraceError, Tracefs, counters,
};
use jitterscope_testing::{name_of_test, turn};
use std::collections::BTreeMap;
use std::io::{BufRead, BufReader};
use std::path::PathBuf;
use std::process::{Command, Stdio};
use std::time::Duration;

/// Set for the child process that will be killed.
const CHILD: &str = "JITTERSCOPE_TEST_CHILD";

/// tracefs and the settings for CPU 1, or why there is nothing to test.
fn ready() -> Option<(Tracefs, RecorderSettings)> {
    let machine = Machine::host();
    let online = machine
        .read_trimmed("/sys/devices/system/cpu/online")
        .ok()?;
    let settings = RecorderSettings {
        measured: "1".parse().ok()?,
        online: online.parse().ok()?,
        clock: ClockKind::Tsc,
        buffer_kb_per_cpu: 4096,
        follow_threads: false,
        charges_later: false,
        grain: EventGrain::All,
        asked: Vec::new(),
    };
    if !settings.online.contains(CpuId(1)) {
        jitterscope_testing::skip("this machine has no CPU 1");
        return None;
    }
    match Tracefs::open(&machine) {
        Ok(tracefs)
            if tracefs
                .clocks()
                .ok()?
                .offered
                .iter()
                .any(|clock| clock == "x86-tsc") =>
        {
            Some((tracefs, settings))
        }
        Ok(_) => {
            jitterscope_testing::skip("no x86-tsc trace clock");
            None
        }
        Err(error) => {
            jitterscope_testing::skip(&format!("{error}; {}", error.problem().id()));
            None
        }
    }
}

fn drain(recorder: &mut Recorder, role: Role) -> Vec<KernelEvent> {
    let mut decoder = Decoder::new(recorder.context()).unwrap();
    let mut events = Vec::new();
    for cpu in recorder.cpus(role).iter() {
        let sink = &mut |page: &[u8]| {
            decoder.page(cpu, page, |event| events.push(event)).unwrap();
        };
        while recorder.drain(role, cpu, sink).unwrap().more {}
    }
    let counts = decoder.counts();
    assert_eq!(
        (counts.unknown, counts.malformed, counts.damaged_pages),
        (0, 0, 0)
    );
    events
}

/// Any thread may rename itself as often as it likes, and would fill the buffers.
#[test]
fn a_thread_that_renames_itself_for_ever_is_left_out() {
    let _turn = turn();
    let Some((tracefs, settings)) = ready() else {
        return;
    };
    // The smallest buffer: it has no room for a tenth of a second's renames.
    let settings = RecorderSettings {
        buffer_kb_per_cpu: 64,
        ..settings
    };
    let over = std::sync::atomic::AtomicBool::new(false);
    let (tell, tid) = std::sync::mpsc::channel();
    std::thread::scope(|scope| {
        let renames = || {
            tell.send(jitterscope_platform::current_tid()).unwrap();
            let name = OwnName::read().unwrap();
            let mut times = 0_u64;
            while !over.load(std::sync::atomic::Ordering::Relaxed) {
                name.give_again();
                times += 1;
            }
            times
        };
        let flood = scope.spawn(renames);
        let flooding = tid.recv().unwrap();
        let mut recorder = Recorder::start(&tracefs, &settings).unwrap();
        assert!(recorder.is_priced());
        std::thread::sleep(Duration::from_millis(100));
        recorder.end_pricing().unwrap();
        recorder.leave_out_renames(&[flooding].into());
        // All pending records are read and counted by now.
        drain(&mut recorder, Role::Senders);
        let lost = recorder.reports().remove(1).lost;
        std::thread::sleep(Duration::from_millis(300));
        OwnName::read().unwrap().give_again();
        recorder.stop().unwrap();
        over.store(true, std::sync::atomic::Ordering::Relaxed);
        let times = flood.join().unwrap();
        assert!(times > 10_000, "{times}");
        let senders = drain(&mut recorder, Role::Senders);
        let renamed = senders.iter().filter_map(|event| match event.kind {
            EventKind::TaskRename { tid, old, comm } => Some((tid, old == comm)),
            _ => None,
        });
        let renamed: Vec<_> = renamed.collect();
        assert!(renamed.contains(&(jitterscope_platform::current_tid(), true)));
        assert!(
            renamed.iter().all(|(tid, _)| *tid != flooding),
            "{renamed:?}"
        );
        assert_eq!(recorder.reports().remove(1).lost, lost);
    });
}

/// A thread that is woken and gets no CPU seems to wait: if a wake-up is kept, none of its consequences may be
/// discarded.
#[test]
fn what_is_kept_begins_with_the_effects_and_not_with_their_causes() {
    let _turn = turn();
    let Some((tracefs, settings)) = ready() else {
        return;
    };
    let settings = RecorderSettings {
        measured: settings.online.clone(),
        ..settings
    };
    std::thread::scope(|scope| {
        scope.spawn(|| load::run(1, 0, Duration::from_millis(1500)));
        let mut recorder = Recorder::start(&tracefs, &settings).unwrap();
        recorder.end_pricing().unwrap();
        std::thread::sleep(Duration::from_millis(100));
        recorder.stop().unwrap();
        let first = |events: &[KernelEvent]| events.iter().map(|event| event.time).min();
        let local = first(&drain(&mut recorder, Role::Local)).unwrap();
        let senders = first(&drain(&mut recorder, Role::Senders)).unwrap();
        assert!(local < senders, "{local:?} {senders:?}");
    });
}

/// Instances that process `pid` made.
fn instances(tracefs: &Tracefs, pid: u32) -> Vec<String> {
    let mut names = tracefs
        .machine()
        .list(format!("{}/instances", tracefs.root()));
    names.retain(|name| name.starts_with(&format!("jitterscope-{pid}-")));
    names
}

#[test]
fn a_recording_sees_the_load_and_who_sent_it_on_the_probes_clock() {
    let _turn = turn();
    let Some((tracefs, settings)) = ready() else {
        return;
    };
    let before = clock::now(ClockKind::Tsc);
    let mut recorder = Recorder::start(&tracefs, &settings).unwrap();
    load::run(1, 0, Duration::from_millis(1500));
    recorder.stop().unwrap();
    let local = drain(&mut recorder, Role::Local);
    let senders = drain(&mut recorder, Role::Senders);
    let after = clock::now(ClockKind::Tsc);

    for event in local.iter().chain(&senders) {
        assert!(
            before < event.time && event.time < after,
            "{event:?} lies outside {before:?}..{after:?}"
        );
    }
    assert!(local.is_sorted_by_key(|event| event.time));
    assert!(local.iter().all(|event| event.cpu == CpuId(1)));
    let to = |name: &str| {
        local.iter().any(|event| match &event.kind {
            EventKind::SchedSwitch { next, .. } => next.comm.as_bytes() == name.as_bytes(),
            _ => false,
        })
    };
    assert!(
        to("js-spin") && to("js-sleep") && to("js-receive"),
        "the load's threads are switched to"
    );
    let ticks = local.iter().filter(|event| match &event.kind {
        EventKind::VectorEntry { vector } => &**vector == "local_timer",
        _ => false,
    });
    assert!(ticks.count() > 10, "a busy CPU's timer ticks");

    let woken = senders.iter().find_map(|event| match &event.kind {
        EventKind::SchedWaking { task, target } if task.comm.as_bytes() == b"js-receive" => {
            Some((event.cpu, *target))
        }
        _ => None,
    });
    assert_eq!(
        woken.map(|(_, target)| target),
        Some(CpuId(1)),
        "who wakes a thread of CPU 1 is seen"
    );
    let interrupted = senders.iter().any(|event| match &event.kind {
        EventKind::IpiSendCpu { target, .. } => *target == CpuId(1) && event.cpu == CpuId(0),
        EventKind::IpiSendCpumask { targets, .. } => targets & 2 != 0,
        _ => false,
    });
    assert!(interrupted, "CPU 0 interrupts CPU 1");

    let symbols = Symbols::load(tracefs.machine()).unwrap();
    assert!(
        symbols.memory() < 3 << 20,
        "{} bytes of symbols",
        symbols.memory()
    );
    let timer = local.iter().find_map(|event| match event.kind {
        EventKind::HrtimerEntry { function, .. } => symbols.name(function),
        _ => None,
    });
    assert!(timer.is_some(), "timer functions have names");

    let saved = tracefs.saved_comms();
    assert!(
        saved.iter().any(|(_, comm)| comm.as_bytes() == b"js-send"),
        "the senders' names are noted"
    );

    for report in recorder.reports() {
        assert_eq!(
            (&report.status, report.lost),
            (&SourceStatus::Available, 0),
            "{report:?}"
        );
    }
    drop(recorder);
    assert_eq!(instances(&tracefs, std::process::id()), [""; 0]);
}

#[test]
fn without_the_tsc_events_are_stamped_with_the_raw_monotonic_clock() {
    let _turn = turn();
    let Some((tracefs, mut settings)) = ready() else {
        return;
    };
    settings.clock = ClockKind::MonotonicRaw;
    let now = || {
        let time = rustix::time::clock_gettime(rustix::time::ClockId::MonotonicRaw);
        Ticks(time.tv_sec as u64 * 1_000_000_000 + time.tv_nsec as u64)
    };
    let before = now();
    let mut recorder = Recorder::start(&tracefs, &settings).unwrap();
    load::run(1, 0, Duration::from_millis(200));
    recorder.stop().unwrap();
    let events = drain(&mut recorder, Role::Local);
    let after = now();
    assert!(!events.is_empty());
    assert!(
        events
            .iter()
            .all(|event| before < event.time && event.time < after)
    );
}

/// Puts a CPU back online when it is dropped.
struct Online<'a>(&'a Machine, &'static str);

impl Drop for Online<'_> {
    fn drop(&mut self) {
        let _ = self.0.write(self.1, "1");
    }
}

/// Takes CPU 1 offline for a moment: `cargo test -- --ignored`, when that disturbs no other work.
#[test]
#[ignore = "takes CPU 1 offline for a moment"]
fn a_cpu_that_goes_offline_keeps_what_it_recorded() {
    let _turn = turn();
    let Some((tracefs, settings)) = ready() else {
        return;
    };
    let mut recorder = Recorder::start(&tracefs, &settings).unwrap();
    load::run(1, 0, Duration::from_millis(300));
    let path = "/sys/devices/system/cpu/cpu1/online";
    let back = Online(tracefs.machine(), path);
    if let Err(error) = tracefs.machine().write(path, "0") {
        jitterscope_testing::skip(&format!("{error}"));
        return;
    }
    let mut pages = 0;
    let result = recorder.drain(Role::Local, CpuId(1), &mut |_| pages += 1);
    match result {
        Ok(drained) => assert_eq!(drained.pages, pages),
        Err(error) => assert!(
            matches!(error, TraceError::NoCpu { cpu: CpuId(1), .. }),
            "{error}"
        ),
    }
    eprintln!("offline: {pages} pages");
    drop(back);
    load::run(1, 0, Duration::from_millis(300));
    recorder.stop().unwrap();
    let events = drain(&mut recorder, Role::Local);
    eprintln!(
        "online again: {} events; {:?}",
        events.len(),
        recorder.reports()
    );
    drop(recorder);
    assert_eq!(instances(&tracefs, std::process::id()), [""; 0]);
}

#[test]
fn a_full_buffer_says_how_many_events_are_missing() {
    let _turn = turn();
    let Some((tracefs, mut settings)) = ready() else {
        return;
    };
    settings.buffer_kb_per_cpu = 8;
    let mut recorder = Recorder::start(&tracefs, &settings).unwrap();
    load::run(1, 0, Duration::from_millis(700));
    recorder.stop().unwrap();
    drain(&mut recorder, Role::Local);
    let loss = recorder.loss(Role::Local, CpuId(1));
    let stats = loss.stats.unwrap();
    assert!(stats.overrun > 0, "{loss:?}");
    // A completely full page has no room for the number, only for the flag.
    assert!(
        loss.in_pages == stats.overrun || loss.unknown > 0 && loss.in_pages < stats.overrun,
        "{loss:?}"
    );
    assert!(loss.total() >= stats.overrun);
    let report = recorder.reports().remove(0);
    assert_eq!(
        (report.status, report.lost),
        (SourceStatus::Degraded, loss.total())
    );
}

/// Every setting of the top-level instance that a recording could change by mistake.
fn top_level(tracefs: &Tracefs) -> BTreeMap<String, String> {
    let machine = tracefs.machine();
    let root = tracefs.root();
    let mut files: Vec<String> = [
        "tracing_on",
        "trace_clock",
        "set_event",
        "set_event_pid",
        "current_tracer",
        "buffer_size_kb",
        "buffer_percent",
        "buffer_subbuf_size_kb",
        "tracing_cpumask",
        "trace_options",
        "events/enable",
    ]
    .map(|name| format!("{root}/{name}"))
    .to_vec();
    files.extend(
        machine
            .list(format!("{root}/options"))
            .iter()
            .map(|name| format!("{root}/options/{name}")),
    );
    for event in [
        "sched/sched_switch",
        "sched/sched_waking",
        "ipi/ipi_send_cpu",
        "irq/softirq_entry",
    ] {
        files.extend(["enable", "filter"].map(|file| format!("{root}/events/{event}/{file}")));
    }
    files
        .into_iter()
        .filter_map(|file| Some((file.clone(), machine.read(&file).ok()?)))
        .collect()
}

#[test]
fn the_machines_own_tracing_is_not_touched() {
    let _turn = turn();
    let mounts = std::fs::read_to_string("/proc/self/mountinfo").unwrap();
    let Some((tracefs, settings)) = ready() else {
        return;
    };
    let before = top_level(&tracefs);
    assert!(before.len() > 10);
    let mut recorder = Recorder::start(&tracefs, &settings).unwrap();
    assert_eq!(top_level(&tracefs), before, "while recording");
    recorder.stop().unwrap();
    drop(recorder);
    assert_eq!(top_level(&tracefs), before, "afterwards");
    drop(tracefs);
    assert_eq!(
        std::fs::read_to_string("/proc/self/mountinfo").unwrap(),
        mounts
    );
}

#[test]
fn a_panic_leaves_no_instance() {
    let _turn = turn();
    let Some((tracefs, settings)) = ready() else {
        return;
    };
    let panicking = tracefs.clone();
    let thread = std::thread::spawn(move || {
        let _recorder = Recorder::start(&panicking, &settings).unwrap();
        panic!("on purpose");
    });
    assert!(thread.join().is_err());
    assert_eq!(instances(&tracefs, std::process::id()), [""; 0]);
}

/// Not a test of its own: the process that the next test kills.
#[test]
fn child_that_records_until_it_is_killed() {
    if std::env::var_os(CHILD).is_none() {
        return;
    }
    let (tracefs, settings) = ready().unwrap();
    let _recorder = Recorder::start(&tracefs, &settings).unwrap();
    println!("\nrecording");
    std::thread::sleep(Duration::from_secs(60));
}

#[test]
fn what_a_killed_recording_leaves_is_found_and_removed() {
    let _turn = turn();
    let Some((tracefs, _)) = ready() else { return };
    let mut child = Command::new(std::env::current_exe().unwrap())
        .args([
            "--exact",
            &name_of_test!(child_that_records_until_it_is_killed),
            "--nocapture",
        ])
        .env(CHILD, "1")
        .stdout(Stdio::piped())
        .spawn()
        .unwrap();
    let lines = BufReader::new(child.stdout.take().unwrap()).lines();
    assert!(lines.map_while(Result::ok).any(|line| line == "recording"));
    let left_by = |pid| {
        tracefs
            .leftovers()
            .into_iter()
            .filter(|l| l.pid == pid)
            .collect::<Vec<Leftover>>()
    };
    assert_eq!(instances(&tracefs, child.id()).len(), 2);
    assert!(
        left_by(child.id()).is_empty(),
        "a living process's instances are its own"
    );
    child.kill().unwrap();
    // Not waited for yet: it is a zombie, which still has its id and its start time.
    let process = PathBuf::from(format!("/proc/{}", child.id()));
    let is_zombie = || {
        let stat = std::fs::read_to_string(process.join("stat")).unwrap();
        // Files are closed when its last thread ends.
        let threads = std::fs::read_dir(process.join("task")).unwrap().count();
        stat.contains(") Z ") && threads == 1
    };
    while !is_zombie() {
        std::thread::sleep(Duration::from_millis(5));
    }
    let left = left_by(child.id());
    assert_eq!(left.len(), 2, "{left:?}");
    let (removed, kept) = tracefs.clean_leftovers();
    assert!(
        left.iter().all(|leftover| removed.contains(leftover)),
        "{removed:?} {kept:?}"
    );
    assert_eq!(instances(&tracefs, child.id()), [""; 0]);
    child.wait().unwrap();
}

#[test]
fn a_survey_leaves_the_machine_as_it_was() {
    let _turn = turn();
    let mounts = std::fs::read_to_string("/proc/self/mountinfo").unwrap();
    let reports = jitterscope_source::survey(&Machine::host(), ClockKind::Tsc);
    for report in &reports {
        let is_whole = report.status == SourceStatus::Available;
        assert_eq!(report.problems.is_empty(), is_whole, "{report:?}");
        assert_eq!(report.losses.is_empty(), is_whole, "{report:?}");
    }
    assert_eq!(
        std::fs::read_to_string("/proc/self/mountinfo").unwrap(),
        mounts
    );
}

#[test]
fn the_counters_of_this_machine_rise() {
    let machine = Machine::host();
    let cpus = machine
        .read_trimmed("/sys/devices/system/cpu/online")
        .unwrap()
        .parse()
        .unwrap();
    let before = counters::Snapshot::take(&machine, &cpus);
    std::thread::sleep(Duration::from_millis(300));
    let deltas = before.deltas(&counters::Snapshot::take(&machine, &cpus));
    assert!(
        !deltas.is_empty(),
        "a third of a second without any interrupt"
    );
    assert!(
        deltas
            .iter()
            .all(|delta| cpus.contains(delta.cpu) && delta.count > 0)
    );
}
