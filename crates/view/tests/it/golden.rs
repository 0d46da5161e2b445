//! The look of the reports.

use crate::common;

use crate::full_text;
use common::{
    Scenario, busy, interrupt, late, of_class, part, sent_by, source, thread, timer, verdict, work,
};
use jitterscope_analyze::RunSummary;
use jitterscope_model::*;
use jitterscope_view::timeline::{StallKind, TimelineView};
use jitterscope_view::{Style, text, timeline};
use std::sync::Arc;

/// The text, after checks for every report.
fn shown(scenario: &Scenario) -> String {
    shown_as(&scenario.summary(), Style::default())
}

fn shown_as(summary: &RunSummary, style: Style) -> String {
    one_screen(summary);
    let plain = full_text(summary, style);
    for line in plain.lines() {
        assert!(
            unicode_width::UnicodeWidthStr::width(line) <= 80,
            "{} columns: {line}",
            line.len()
        );
        assert!(line.is_ascii(), "{line}");
        assert_eq!(line.trim_end(), line);
    }
    let colored = full_text(
        summary,
        Style {
            color: true,
            ..style
        },
    );
    assert_eq!(
        without_colors(&colored),
        plain,
        "colours change nothing but colours"
    );
    plain
}

/// The brief report: a screen of 80 by 24, with one line for the prompt.
fn one_screen(summary: &RunSummary) -> String {
    let mut summary = summary.clone();
    summary.run.path = "/runs/stored".into();
    let advice = text::Step {
        command: "jitterscope tune plan --run 7k2m1q".into(),
        purpose: "vmstat: up to 1.40 s, 4 more knobs than fit into this line".into(),
    };
    let next = text::Next {
        program: "jitterscope".into(),
        advice: Some(advice),
        ..text::Next::default()
    };
    let brief = text::brief(&summary, &next, Style::default());
    assert!(
        brief.lines().count() <= 23,
        "{} lines:\n{brief}",
        brief.lines().count()
    );
    assert!(
        brief.lines().all(|line| line.chars().count() <= 80),
        "{brief}"
    );
    assert!(
        brief.contains("Trust: ") && brief.contains("Next: "),
        "{brief}"
    );
    brief
}

#[test]
fn the_answer_on_one_screen() {
    insta::assert_snapshot!(one_screen(&busy(&[1]).summary()));
}

fn without_colors(text: &str) -> String {
    let mut out = String::new();
    let mut chars = text.chars();
    while let Some(c) = chars.next() {
        if c == '\u{1b}' {
            chars.by_ref().find(|c| *c == 'm');
        } else {
            out.push(c);
        }
    }
    // A coloured space at the end of a line does not matter.
    out.lines()
        .map(|line| format!("{}\n", line.trim_end()))
        .collect()
}

#[test]
fn a_busy_machine() {
    insta::assert_snapshot!(shown(&busy(&[1])));
}

#[test]
fn the_headline_says_why_a_threshold_is_unusual() {
    let headline = |threshold, decide_threshold, read_tail, store| {
        let mut run = busy(&[1]);
        run.manifest.probe.threshold_ns = Nanos(threshold);
        let (read_tail_ns, store_ns) = (Nanos(read_tail), Nanos(store));
        run.manifest.probe.clock_costs = Some(ClockCosts {
            read_tail_ns,
            store_ns,
            decide_threshold,
        });
        shown(&run)
            .lines()
            .skip(1)
            .take(3)
            .collect::<Vec<_>>()
            .join(" ")
    };
    let raised = headline(2000, true, 450, 700);
    assert!(
        raised.contains(
            "stalls from 2.00 us (this clock's own reads take up to 450 ns, storing a stall 700 ns);"
        ),
        "{raised}"
    );
    let too_short = headline(500, false, 450, 700);
    assert!(
        too_short.contains("stalls from 500 ns, as asked, though this clock's own reads"),
        "{too_short}"
    );
    for usual in [headline(300, true, 30, 90), headline(5000, false, 450, 700)] {
        assert!(!usual.contains("own reads"), "{usual}");
    }
}

#[test]
fn evidence_that_fails_its_own_proof_names_nobody() {
    let mut run = busy(&[1]);
    run.manifest.events_in_gaps.inside = run.manifest.events_in_gaps.events / 5;
    let text = shown(&run);
    let headline = text.split("OVER TIME").next().unwrap();
    assert!(
        headline.contains("The culprits are unknown: only 19.9 %"),
        "{headline}"
    );
    assert!(
        text.contains("WORST STALLS") && text.contains("PERCENTILES"),
        "what was measured holds"
    );
    let named = shown(&busy(&[1]));
    let culprits: Vec<&str> = ["evil", "late interrupt", "tick_nohz_handler"]
        .into_iter()
        .filter(|culprit| named.contains(culprit))
        .collect();
    assert!(culprits.len() > 1);
    for culprit in culprits {
        assert!(!text.contains(culprit), "{culprit} is named:\n{text}");
    }
}

#[test]
fn a_quiet_machine_without_any_stall() {
    let mut quiet = Scenario::new(&[3]).finish();
    quiet.manifest.probe.cpus_chosen_because = Some(
        CpusBecause::Isolated {
            cpus: "3".parse().unwrap(),
        }
        .into(),
    );
    quiet.manifest.probe.fifo_priority = Some(90);
    quiet.manifest.host.hypervisor = None;
    quiet.manifest.events_in_gaps = EventsInGaps::default();
    quiet.manifest.self_noise.cost_samples = 0;
    insta::assert_snapshot!(shown(&quiet));
}

fn limited(name: &str, status: SourceStatus, problem: SourceProblem, loses: &str) -> SourceReport {
    SourceReport::limited(name, status, problem, SourceLoss::Other(loses.into()))
}

/// A recording of an unprivileged user where root's tracefs is not mounted.
fn without_privilege(cpus: &[u32]) -> RunSummary {
    let mut run = busy(cpus);
    run.manifest.attributed = false;
    run.manifest.events_in_gaps = EventsInGaps::default();
    run.manifest.self_noise.cost_samples = 0;
    run.manifest.trace = StoredTrace::default();
    let problem = SourceProblem::MountDenied;
    run.manifest.sources = vec![SourceReport::limited(
        "tracefs",
        SourceStatus::Denied,
        problem.clone(),
        SourceLoss::Causes,
    )];
    let stolen = |cpu: &u32| CounterTotal {
        cpu: CpuId(*cpu),
        name: "stat steal (clock ticks of 10 ms)".into(),
        total: 3,
        correlation: Some(0.91),
    };
    run.manifest.counters = cpus.iter().map(stolen).collect();
    run.manifest.warnings = vec![Warning::NoKernelEvents(NoKernelEvents {
        wanted: true,
        problem: Some(problem),
    })];
    run.summary()
}

#[test]
fn the_answer_without_privilege() {
    insta::assert_snapshot!(one_screen(&without_privilege(&[1])));
}

#[test]
fn without_privilege_one_sentence_has_the_hosts_share() {
    let sentence = |summary: &RunSummary| {
        let brief = one_screen(summary);
        let words: Vec<&str> = brief.split_whitespace().collect();
        let text = words.join(" ");
        let (_, from) = text.split_once("; the worst lasted ").unwrap();
        let (sentence, _) = from.split_once(". ").unwrap();
        sentence.to_owned()
    };
    let mut run = without_privilege(&[0, 1]);
    let of_two = sentence(&run);
    // 60 ms of twice ten seconds.
    assert!(
        of_two.contains("on CPU ") && of_two.contains("; the host's share is 0.30 %, 60.0 ms ("),
        "{of_two}"
    );
    run.counters
        .iter_mut()
        .for_each(|counter| counter.total = 0);
    assert!(sentence(&run).contains("; the host's share is 0 % ("));
    run.run.hypervisor = None;
    assert!(sentence(&run).ends_with("; no host had a share: this is no virtual machine"));
    run.counters.clear();
    assert!(!one_screen(&run).contains("host"));
}

#[test]
fn a_run_without_kernel_events() {
    let mut run = busy(&[1]);
    run.manifest.attributed = false;
    run.manifest.events_in_gaps = EventsInGaps::default();
    run.manifest.self_noise.cost_samples = 0;
    run.manifest.trace = StoredTrace::default();
    run.manifest.sources = vec![
        limited(
            "tracefs",
            SourceStatus::Denied,
            SourceProblem::MountDenied,
            "who caused a stall",
        ),
        limited(
            "smi",
            SourceStatus::Absent,
            SourceProblem::NoSmiCount {
                cpu: CpuId(1),
                virtual_machine: false,
            },
            "telling firmware from other hardware",
        ),
        source("proc", SourceStatus::Available, 0),
    ];
    let counter = |name: &str, total, correlation| CounterTotal {
        cpu: CpuId(1),
        name: name.into(),
        total,
        correlation,
    };
    run.manifest.counters = vec![
        counter("interrupt LOC (Local timer interrupts)", 2511, Some(0.12)),
        counter("interrupt CAL (Function call interrupts)", 301, Some(-0.05)),
        counter("softirq SCHED", 12, None),
        counter("involuntary switches of the probe", 24, Some(0.97)),
        counter("softirq HI", 0, None),
        counter("stat system (clock ticks of 10 ms)", 4, Some(0.2)),
        counter("stat steal (clock ticks of 10 ms)", 3, Some(0.91)),
    ];
    run.manifest.warnings = vec![Warning::NoKernelEvents(NoKernelEvents {
        wanted: true,
        problem: Some(SourceProblem::MountDenied),
    })];
    insta::assert_snapshot!(shown(&run));
}

#[test]
fn a_lossy_run_with_helpers_on_the_measured_cpus() {
    let mut run = busy(&[0, 1]);
    run.manifest.results[1].dropped_records = 1234;
    run.manifest.results[1].page_faults = 1;
    let events = vec!["irq_vectors:local_timer_entry".into()];
    let why = SourceProblem::EventsMissing { events };
    let loses = "timer interrupts and calls from other CPUs have no name";
    run.manifest.sources = vec![limited("tracefs", SourceStatus::Degraded, why, loses)];
    run.manifest.sources[0].lost = 40_122;
    run.manifest.events_in_gaps.inside = 38_000;
    run.manifest.self_noise.helper_cpus = CpuSet::new();
    run.manifest.trace.complete = false;
    run.manifest.warnings = vec![
        Warning::NoFreeCpu {
            cpus: "0-1".parse().unwrap(),
            taken: jitterscope_model::CpuUse::Measured,
        },
        Warning::TraceLost { lost: 40_122 },
    ];
    insta::assert_snapshot!(shown(&run));
}

#[test]
fn sixty_four_cpus() {
    let cpus: Vec<u32> = (0..64).collect();
    let mut run = Scenario::new(&cpus);
    for cpu in 0..64u32 {
        for n in 0..u64::from(20 + cpu * 7 % 50) {
            let at = n * 130_000 + u64::from(cpu) * 31 + 1000;
            run.stall(
                cpu,
                at,
                vec![part(timer("tick_nohz_handler"), 2_000 + n * 10)],
            );
        }
        // An SMI: all CPUs stop together.
        run.stall(
            cpu,
            5_000_000,
            vec![part(
                verdict(CulpritKind::Firmware, "SMI"),
                180_000 + u64::from(cpu),
            )],
        );
    }
    let mut run = run.finish();
    run.manifest.host.hypervisor = None;
    run.manifest.results[17].ended_early = Some(EndedEarly::Offline.into());
    insta::assert_snapshot!(shown(&run));
}

#[test]
fn late_wake_ups() {
    let mut run = late(&[1], None);
    run.manifest.probe.wakeup.as_mut().unwrap().hold_latency = true;
    insta::assert_snapshot!(shown(&run));
}

#[test]
fn late_wake_ups_beside_an_idle_cpu() {
    insta::assert_snapshot!(shown(&late(&[0, 1, 3], Some(3))));
}

#[test]
fn late_wake_ups_on_sixteen_cpus() {
    let cpus: Vec<u32> = (0..16).collect();
    let mut run = late(&cpus, Some(7));
    run.manifest.attributed = false;
    insta::assert_snapshot!(shown(&run));
}

#[test]
fn wake_ups_in_time() {
    let mut run = Scenario::new(&[1]).finish_wakeups(&[(3_100, 9_000), (3_900, 999)], None);
    // A run of version 0.1 does not state its settings.
    run.manifest.probe.wakeup = None;
    insta::assert_snapshot!(shown(&run));
}

/// From the heading of a section to the blank line after it.
fn section<'t>(text: &'t str, heading: &str) -> &'t str {
    let from = text
        .find(&format!("\n{heading}"))
        .map_or(text.len(), |at| at + 1);
    let length = text[from..].find("\n\n").unwrap_or(text.len() - from);
    &text[from..from + length]
}

#[test]
fn periods_of_culprits() {
    let busy = busy(&[0, 1]).summary_with_periods();
    let brief = shown_as(&busy, Style::default());
    let all = shown_as(
        &busy,
        Style {
            periods: true,
            ..Style::default()
        },
    );
    insta::assert_snapshot!(format!(
        "{}\n\n{}",
        section(&brief, "PERIODS"),
        section(&all, "PERIODS")
    ));
}

#[test]
fn no_periods_are_reported_when_asked_for_only() {
    let mut quiet = Scenario::new(&[1]);
    for n in 0..40u64 {
        // Neither regular nor in bursts.
        let at = n * 240_000 + n * n * 7919 % 190_000;
        quiet.stall(1, at, vec![part(interrupt(30, "nvme0q1"), 4_000)]);
    }
    let quiet = quiet.finish().summary_with_periods();
    assert_eq!(section(&shown_as(&quiet, Style::default()), "PERIODS"), "");
    let asked = Style {
        periods: true,
        ..Style::default()
    };
    let text = shown_as(&quiet, asked);
    assert!(
        text.contains("No significant period in 1 series of stalls"),
        "{text}"
    );
    let text = shown_as(&late(&[1], None).summary_with_periods(), asked);
    assert!(section(&text, "PERIODS").contains("deadlines"), "{text}");
}

/// Varying ticks, a compiler on the last CPU, and a host that twice stops all.
fn many(cpus: u32) -> Scenario {
    let all: Vec<u32> = (0..cpus).collect();
    let mut run = Scenario::new(&all);
    run.manifest.probe.interval_ns = Nanos(200_000_000);
    for cpu in 0..cpus {
        for n in 0..600 + u64::from(cpu) * 29 % 97 {
            let tick = part(timer("tick_nohz_handler"), 2_100 + n * 13 % 700);
            run.stall(cpu, n * 14_000 + 11 + u64::from(cpu) * 40, vec![tick]);
        }
        for (at, length) in [(1_200_000, 7_000_000), (8_300_000, 1_200_000)] {
            let net = length - u64::from(cpu) * 1_000;
            run.stall(
                cpu,
                at,
                vec![part(
                    verdict(CulpritKind::Hypervisor, "virtual machine paused"),
                    net,
                )],
            );
        }
    }
    for n in 0..30u64 {
        let cc1 = part(thread("cc1plus", 9), 1_000_000 + n * 70_000);
        run.stall(cpus - 1, 4_000_700 + n * 12_000, vec![cc1]);
    }
    run.finish()
}

#[test]
fn two_cpus() {
    insta::assert_snapshot!(shown(&many(2)));
}

#[test]
fn four_cpus() {
    insta::assert_snapshot!(shown(&many(4)));
}

#[test]
fn eight_cpus() {
    insta::assert_snapshot!(shown(&many(8)));
}

#[test]
fn all_of_many_cpus_when_asked() {
    let summary = many(20).summary();
    let text = full_text(
        &summary,
        Style {
            all_cpus: true,
            width: 120,
            ..Style::default()
        },
    );
    assert!(text.lines().all(|line| line.len() <= 120), "{text}");
    let blocks: Vec<&str> = text
        .lines()
        .filter(|line| line.trim_start().starts_with("cpu    "))
        .collect();
    let shown: Vec<u32> = blocks
        .iter()
        .filter(|line| !line.contains("share"))
        .flat_map(|line| line.split_whitespace().filter_map(|word| word.parse().ok()))
        .collect();
    assert_eq!(shown, (0..20).collect::<Vec<u32>>(), "{text}");
    assert!(!text.contains("left out: report"), "{text}");
}

/// A tick throughout, a compiler for half a second on one CPU, and one pause of both.
#[test]
fn bursts_over_time() {
    let mut run = Scenario::new(&[2, 3]);
    run.manifest.probe.interval_ns = Nanos(200_000_000);
    for cpu in [2u32, 3] {
        let tick = |n: u64| part(timer("tick_nohz_handler"), 2_100 + n * 13 % 700);
        for n in 0..2400 {
            run.stall(cpu, n * 4000 + 11 + u64::from(cpu) * 500, vec![tick(n)]);
        }
        run.stall(
            cpu,
            1_200_000,
            vec![part(
                verdict(CulpritKind::Hypervisor, "CPU taken"),
                7_000_000,
            )],
        );
    }
    for n in 0..50u64 {
        let cc1 = part(thread("cc1plus", 9), 1_500_000 + n * 40_000);
        run.stall(3, 6_000_700 + n * 12_000, vec![cc1]);
    }
    insta::assert_snapshot!(shown(&run.finish()));
}

#[test]
fn an_interrupted_run() {
    let mut run = Scenario::new(&[1]);
    run.manifest.probe.duration_ns = Nanos(2_300_000_000);
    for n in 0..3 {
        run.stall(
            1,
            n * 700_000,
            vec![part(Subject::PageFault { user: true }, 450)],
        );
    }
    let mut run = run.finish();
    run.manifest.probe.duration_ns = Nanos(3_600_000_000_000);
    run.manifest.interrupted = true;
    insta::assert_snapshot!(shown(&run));
}

#[test]
fn nothing_was_measured() {
    let mut run = Scenario::new(&[1]).finish();
    run.manifest.results[0] = ProbeResult {
        end: run.manifest.results[0].start,
        samples: 0,
        sum_ticks: 0,
        sum_squares: 0,
        min_ticks: u64::MAX,
        max_ticks: 0,
        below: vec![],
        ..run.manifest.results[0].clone()
    };
    insta::assert_snapshot!(shown(&run));
}

#[test]
fn hostile_names_are_tamed() {
    let mut run = Scenario::new(&[1]);
    let name = "\u{1b}[2Jx\r\n\u{4e2d}\u{6587}";
    run.stall(
        1,
        5,
        vec![part(
            Subject::Unknown {
                kind: "thread".into(),
                name: name.into(),
                detail: "pid 1\u{7}".into(),
            },
            5_000,
        )],
    );
    let mut run = run.finish();
    run.manifest.label = name.into();
    run.manifest.warnings = vec![Warning::worded("x", &format!("{name} {}", "y".repeat(200)))];
    let text = full_text(&run.summary(), Style::default());
    assert!(
        text.chars().all(|c| c == '\n' || !c.is_control()),
        "{text:?}"
    );
    for line in text.lines() {
        assert!(unicode_width::UnicodeWidthStr::width(line) <= 80, "{line}");
    }
}

#[test]
fn a_stall_as_a_timeline() {
    let row = |depth, start, end: Option<u64>, item: TimelineItem| TimelineRow {
        cpu: None,
        depth,
        start: Nanos(start),
        end: end.map(Nanos),
        item,
    };
    let frame = |subject| TimelineItem::Frame {
        culprit: Culprit::from(subject),
        ended: true,
        named_inside: false,
    };
    let cron = sent_by(
        part(of_class("evil", 4242, SchedClass::RealTime(49)), 1),
        "cron",
        3,
        0,
        None,
    );
    let thread = TimelineItem::Frame {
        culprit: Arc::unwrap_or_clone(cron.culprit),
        ended: false,
        named_inside: false,
    };
    let named_inside = TimelineItem::Frame {
        culprit: Arc::unwrap_or_clone(
            part(
                Subject::Timer {
                    function: None,
                    source: Some(TimerSource::Interrupt),
                },
                1,
            )
            .culprit,
        ),
        ended: true,
        named_inside: true,
    };
    let view = TimelineView {
        stall: StallId(42),
        cpu: CpuId(1),
        kind: StallKind::of_probe("spin"),
        victim: "js-spin/1".into(),
        duration: Nanos(1_302_113),
        start_realtime_ns: 1_795_213_189_826_000_000,
        start_offset: Nanos(3_412_000_000),
        rows: vec![
            row(0, 11_204, Some(19_800), named_inside),
            row(1, 11_900, Some(19_100), frame(timer("hrtimer_wakeup"))),
            row(
                2,
                12_800,
                None,
                TimelineItem::Wakes {
                    comm: "evil".into(),
                    tid: 4242,
                    target_cpu: CpuId(1),
                },
            ),
            row(0, 21_000, Some(1_300_200), thread),
            row(
                1,
                600_000,
                Some(604_000),
                frame(interrupt(25, "a-device-with-quite-a-long-name-indeed-rx-0")),
            ),
            row(
                9,
                601_000,
                Some(602_000),
                frame(timer("tick_nohz_handler_with_a_long_suffix")),
            ),
        ],
        order_lost: false,
        parts: vec![
            part(of_class("evil", 4242, SchedClass::RealTime(49)), 1_275_200),
            part(verdict(CulpritKind::Hypervisor, "late interrupt"), 11_204),
        ],
        remarks: vec!["The trace around this stall is incomplete.".into()],
    };
    let text = timeline::render(&view, Style::default());
    for line in text.lines() {
        assert!(line.len() <= 80, "{line}");
    }
    insta::assert_snapshot!(text);
    for (probe, title, from, to) in [
        (
            "wakeup",
            "late wake-up 42 on CPU 1: 1.30 ms\n",
            " the deadline\n",
            " awake\n",
        ),
        (
            "pipeline",
            "slow message 42 on CPU 1: 1.30 ms\n",
            " intended publication\n",
            " dealt with\n",
        ),
        (
            "attach",
            "wait 42 on CPU 1: 1.30 ms\n",
            " it could run from here on\n",
            " it ran\n",
        ),
    ] {
        let view = TimelineView {
            kind: StallKind::of_probe(probe),
            ..view.clone()
        };
        let text = timeline::render(&view, Style::default());
        assert!(text.starts_with(title), "{text}");
        assert!(text.contains(from) && text.contains(to), "{text}");
        assert!(!text.contains("clock read"), "{text}");
    }
}

#[test]
fn a_stall_without_its_trace_shows_how_many_turns_each_line_sums() {
    let of = |subject, net, turns| Part {
        turns,
        ..part(subject, net)
    };
    let view = TimelineView {
        stall: StallId(7),
        cpu: CpuId(2),
        kind: StallKind::of_probe("attach"),
        victim: "worker (pid 40)".into(),
        duration: Nanos(9_000_000),
        start_realtime_ns: 1_795_213_189_826_000_000,
        start_offset: Nanos(3_412_000_000),
        rows: Vec::new(),
        order_lost: true,
        parts: vec![
            of(
                of_class("evil", 4242, SchedClass::RealTime(49)),
                5_000_000,
                1_200,
            ),
            of(
                of_class("evil", 4243, SchedClass::RealTime(49)),
                2_500_000,
                34,
            ),
            of(timer("hrtimer_wakeup"), 1_499_000, 2),
            of(Subject::Softirq(1), 1_000, 1),
        ],
        remarks: vec!["the raw trace around this stall was not kept".into()],
    };
    let text = timeline::render(&view, Style::default());
    insta::assert_snapshot!(text);
    // A single turn has no order.
    let view = TimelineView {
        parts: vec![of(Subject::Softirq(1), 9_000_000, 1)],
        ..view
    };
    let text = timeline::render(&view, Style::default());
    assert!(!text.contains("order") && !text.contains("sum"), "{text}");
    // With its trace, its lines say nothing of sums.
    let view = TimelineView {
        parts: vec![of(Subject::Softirq(1), 9_000_000, 2)],
        order_lost: false,
        ..view
    };
    let text = timeline::render(&view, Style::default());
    assert!(!text.contains("order") && !text.contains("sum"), "{text}");
}

fn message_times(plain: &[(u64, u64)]) -> MessageTimes {
    let count = plain.iter().map(|(_, n)| n).sum();
    let sum = Nanos(plain.iter().map(|(value, n)| value * n).sum());
    let (min, max) = (Nanos(plain[0].0), Nanos(plain[plain.len() - 1].0));
    MessageTimes {
        count,
        min,
        max,
        sum,
        plain: plain.to_vec(),
    }
}

/// A second of the pipeline: 100,000 messages, most within 150 ns, and one producer stall of 1.2 ms.
fn pipeline() -> Scenario {
    let mut scenario = Scenario::new(&[2, 3, 4]);
    let times = |usual: u64, tail: u64| {
        message_times(&[
            (usual - 20, 20_000),
            (usual, 78_900),
            (usual * 3, 980),
            (tail / 4, 100),
            (tail, 20),
        ])
    };
    let consumer = |role, usual| PipelineConsumer {
        role,
        received: 100_000,
        disordered: 0,
        transit: times(usual, 40_000),
        from_intended: times(usual + 60, 1_200_000),
        inter: times(10_000, 1_210_000),
        slow_above_ns: Nanos(2_000),
        slow: 120,
        slow_dropped: 0,
    };
    let thread = |role, tid: i32, cpu: Option<u32>| PipelineThread {
        role,
        tid,
        comm: format!("js-{role}"),
        cpu: cpu.map(CpuId),
        fifo_priority: (role == PipelineRole::Producer).then_some(50),
        page_faults: 0,
        involuntary_switches: 3,
        cpu_time_ns: Nanos(1_010_000_000),
    };
    let manifest = &mut scenario.manifest;
    let began = manifest.clock_start.ticks;
    manifest.probe.kind = "pipeline".into();
    manifest.attributed = false;
    manifest.pipeline = Some(PipelineResult {
        setup: PipelineSetup {
            record_length: 64,
            input: "/cache/pipeline-input-640000.bin".into(),
            input_records: 10_000,
            ring: 16_384,
            via: PipelineVia::Ring,
            journal: JournalWriting::Mapped,
            interval_ns: Nanos(10_000),
            pacing: PipelinePacing::Schedule,
            messages: None,
            warm_up_messages: 100_000,
            pause_ns: Nanos(1_000_000_000),
            journaller: true,
            memory_locked: true,
            forced: false,
        },
        threads: vec![
            thread(PipelineRole::Producer, 11370, Some(2)),
            thread(PipelineRole::Accumulator, 11372, Some(3)),
            thread(PipelineRole::Journaller, 11371, None),
        ],
        start: began,
        end: Ticks(began.0 + 2_600_000_000),
        producer: PublisherResult {
            sent: 100_000,
            completed: true,
            inter: times(10_000, 1_200_000),
            lateness: times(60, 1_190_000),
            full_waits: 0,
            full_waited_ns: Nanos(0),
            full_longest_ns: Nanos(0),
        },
        consumers: vec![
            consumer(PipelineRole::Accumulator, 150),
            consumer(PipelineRole::Journaller, 170),
        ],
        journal: Some(PipelineJournal {
            path: "journal.bin".into(),
            written: 100_000,
            unwritten: 0,
            waits: 0,
            ended: None,
        }),
    });
    for (id, tid, comm) in [
        (0, 11372, "js-accumulator"),
        (1, 11372, "js-accumulator"),
        (2, 11371, "js-journaller"),
    ] {
        let start = Ticks(began.0 + 1_000_000_000 + id * 26_000);
        let victim = ThreadRef {
            tid,
            comm: Comm::new(comm),
        };
        let end = Ticks(began.0 + 1_003_120_000);
        scenario.stalls.push(Stall {
            id: StallId(id),
            cpu: CpuId(3),
            victim,
            start,
            end,
        });
        scenario.attributions.push(Attribution {
            stall: StallId(id),
            parts: Vec::new(),
        });
    }
    scenario
}

#[test]
fn a_pipeline() {
    insta::assert_snapshot!(shown(&pipeline()));
}

#[test]
fn a_pipeline_whose_recorder_had_no_cpu_says_so_before_anything_else() {
    let said = |attributed: bool, taken: Option<CpuUse>| {
        let mut scenario = pipeline();
        scenario.manifest.attributed = attributed;
        let cpus = CpuSet::from_iter([CpuId(2), CpuId(3)]);
        scenario
            .manifest
            .warnings
            .extend(taken.map(|taken| Warning::NoFreeCpu { cpus, taken }));
        let words: Vec<String> = shown(&scenario)
            .split_whitespace()
            .map(str::to_owned)
            .collect();
        let text = words.join(" ");
        let headline = text.find("Messages reached the").expect("the headline");
        text.find("not the pipeline's alone")
            .is_some_and(|at| at < headline + 200)
    };
    assert!(said(true, Some(CpuUse::Pipeline)));
    // Without kernel events it hardly does anything; with its own CPU it disturbs no other thread.
    assert!(!said(false, Some(CpuUse::Pipeline)) && !said(true, None));
}

#[test]
fn a_pipeline_in_trouble() {
    let mut scenario = pipeline();
    scenario.manifest.interrupted = true;
    scenario.stalls.clear();
    let result = scenario.manifest.pipeline.as_mut().unwrap();
    result.setup.pacing = PipelinePacing::AfterPublication;
    result.setup.messages = Some(10_000_000);
    result.setup.memory_locked = false;
    result.producer.full_waits = 1;
    result.producer.full_waited_ns = Nanos(45_000);
    result.producer.full_longest_ns = Nanos(45_000);
    result.consumers[0].slow_dropped = 20;
    let journal = result.journal.as_mut().unwrap();
    (journal.written, journal.unwritten) = (60_000, 40_000);
    scenario.manifest.warnings.push(Warning::worded(
        "journal-disk-full",
        "The journal's disk was full.",
    ));
    insta::assert_snapshot!(shown(&scenario));
}

#[test]
fn calls_stand_among_the_frames_with_their_own_times() {
    let row = |depth, start, end, item| TimelineRow {
        cpu: None,
        depth,
        start: Nanos(start),
        end: Some(Nanos(end)),
        item,
    };
    let call = |function: &str, own, began_before, ended| TimelineItem::Call {
        function: function.into(),
        self_ns: Nanos(own),
        began_before,
        ended,
    };
    let culprit = part(work("vmstat_update", None, None), 1).culprit;
    let view = TimelineView {
        stall: StallId(1),
        cpu: CpuId(1),
        kind: StallKind::Gap,
        victim: "js-spin/1".into(),
        duration: Nanos(1000),
        start_realtime_ns: 0,
        start_offset: Nanos(0),
        rows: vec![
            row(
                0,
                0,
                1000,
                TimelineItem::Frame {
                    culprit: Arc::unwrap_or_clone(culprit),
                    ended: true,
                    named_inside: false,
                },
            ),
            row(1, 0, 100, call("earlier", 100, true, true)),
            row(1, 200, 700, call("vmstat_update", 300, false, true)),
            row(2, 300, 500, call("refresh_cpu_vm_stats", 200, false, true)),
            row(1, 900, 1000, call("later", 100, false, false)),
        ],
        order_lost: false,
        parts: Vec::new(),
        remarks: Vec::new(),
    };
    let text = timeline::render(&view, Style::default());
    let line = |what: &str| {
        text.lines()
            .find(|line| line.contains(what))
            .unwrap_or_else(|| panic!("{text}"))
    };
    assert!(
        line(" vmstat_update()").ends_with("vmstat_update()  self 300 ns"),
        "{text}"
    );
    // If all of its time is its own, its length suffices.
    assert!(
        line("refresh_cpu_vm_stats").ends_with("refresh_cpu_vm_stats()"),
        "{text}"
    );
    assert!(
        text.contains("self 100 ns; began before") && text.contains("its end was not seen"),
        "{text}"
    );
}

#[test]
fn a_timeline_of_several_cpus_says_where_each_row_was() {
    let row = |cpu, name: &str| TimelineRow {
        cpu: Some(CpuId(cpu)),
        depth: 0,
        start: Nanos(100),
        end: Some(Nanos(900)),
        item: TimelineItem::Frame {
            culprit: Arc::unwrap_or_clone(
                part(
                    Subject::Thread(Task {
                        comm: name.into(),
                        ..Task::default()
                    }),
                    1,
                )
                .culprit,
            ),
            ended: true,
            named_inside: false,
        },
    };
    let view = TimelineView {
        stall: StallId(1),
        cpu: CpuId(1),
        kind: StallKind::SlowMessage,
        victim: "reader".into(),
        duration: Nanos(1000),
        start_realtime_ns: 0,
        start_offset: Nanos(0),
        rows: vec![row(1, "reader"), row(1, "make"), row(0, "writer")],
        order_lost: false,
        parts: Vec::new(),
        remarks: Vec::new(),
    };
    let text = timeline::render(&view, Style::default());
    let printed: Vec<&str> = text
        .lines()
        .skip(4)
        .map(|line| line.rsplit("  ").next().unwrap().trim())
        .collect();
    let place = |what: &str| {
        printed
            .iter()
            .position(|line| line.contains(what))
            .expect(what)
    };
    assert!(
        place("CPU 1") < place("thread reader") && place("thread make") < place("CPU 0"),
        "{text}"
    );
    assert!(place("CPU 0") < place("thread writer"), "{text}");
    assert_eq!(
        printed.iter().filter(|line| line.contains("CPU")).count(),
        2,
        "{text}"
    );
}

/// Watched CPUs, with every possible statement.
fn watched(cpus: &[u32], whose: usize) -> RunSummary {
    let mut summary = busy(&cpus[..1]).summary();
    summary.probe.cpus.clear();
    summary.probe.kind = ProbeKind::Passive.as_str().into();
    let of = |(n, cpu): (usize, &u32)| PassiveCpu {
        cpu: CpuId(*cpu),
        threads: (0..whose as i32)
            .map(|tid| BelongingThread {
                tid: 4_194_300 - tid,
                comm: "matching-engine".into(),
                ..Default::default()
            })
            .collect(),
        thread_count: whose as u64,
        running_ns: Nanos(9_000_000_000),
        interrupted_ns: Nanos(300_000_000 - n as u64),
        waiting_ns: Nanos(300_000_000),
        beside_ns: Nanos(100_000_000),
        idle_ns: Nanos(100_000_000),
        unknown_ns: Nanos(200_000_000),
        stretches: 2600,
        stalls: 2500,
        longest_ns: Nanos(2_000_000),
        ended_early: Some(EndedEarly::Offline.into()),
        ..PassiveCpu::default()
    };
    summary.passive = cpus.iter().enumerate().map(of).collect();
    summary
}

#[test]
fn watched_cpus_on_one_screen() {
    let mut one = watched(&[1], 1);
    let screen = one_screen(&one);
    for part in [
        "The owner of CPU 1 wanted 9.60 s of 10.0 s and lost 6.25 %",
        "CPU 1 belongs to matching-engine (tid 4194300). That ran 90.0 %",
        "The longest, ",
        "of 200 ms of their time no record tells",
        "CPU 1 was not watched to the end",
        "culprit share",
    ] {
        let unfolded = screen.split_whitespace().collect::<Vec<_>>().join(" ");
        assert!(unfolded.contains(part), "{part} is not in {screen}");
    }
    assert!(
        !screen.contains("kernel events fell into stalls"),
        "{screen}"
    );
    one.passive[0].chosen = Some(ChosenThread {
        tid: 7,
        comm: "matching-engine".into(),
        share: 0.9731,
        look_ns: Nanos(1_000_000_000),
    });
    assert!(one_screen(&one).contains("matching-engine (tid 7), which had 97.3 %"));
    // Those that lost most, and the rest in a line.
    let several = one_screen(&watched(&[0, 1, 2, 3, 64, 65, 127], 5));
    assert!(several.contains(" more, which lost less"), "{several}");
    let mut quiet = watched(&[0], 1);
    quiet.passive[0] = PassiveCpu {
        threads: Vec::new(),
        idle_ns: Nanos(1_000_000),
        ..PassiveCpu::default()
    };
    (quiet.attribution, quiet.worst) = (None, Vec::new());
    assert!(one_screen(&quiet).contains("No owner of CPU 0 wanted to run"));
    let chosen = ChosenThread {
        tid: 7,
        comm: "rustc".into(),
        share: 0.9,
        look_ns: Nanos(1_000_000_000),
    };
    quiet.passive[0].chosen = Some(chosen);
    let named = one_screen(&quiet);
    assert!(
        named.contains("rustc (tid 7), the owner of CPU 0, did not want to run"),
        "{named}"
    );
}

#[test]
fn stalls_without_events_are_explained_once_if_there_are_any() {
    let printed = |name: &str, kind| {
        let mut run = Scenario::new(&[1, 2]);
        for n in 0..40 {
            let tick = part(timer("tick_nohz_handler"), 2_000);
            run.stall(1 + n % 2, u64::from(n) * 9_000, vec![tick]);
            run.stall(
                1 + n % 2,
                u64::from(n) * 9_000 + 4_000,
                vec![part(verdict(kind, name), 2_500)],
            );
        }
        let text = shown(&run.finish());
        text.split_whitespace().collect::<Vec<_>>().join(" ")
    };
    let possible =
        "debug traps, breakpoints (uprobes), a first use of the FPU (#NM), alignment checks";
    for name in ["no kernel event", "outside this kernel"] {
        let text = printed(name, CulpritKind::Unresolved);
        assert_eq!(text.matches(possible).count(), 1, "{text}");
        assert!(text.contains("of page faults it counted"), "{text}");
    }
    assert!(!printed("CPU taken", CulpritKind::Hypervisor).contains(possible));
}
