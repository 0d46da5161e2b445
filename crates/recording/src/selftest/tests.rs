use super::*;
use jitterscope_inject::{
    DisturbKind, DisturbSettings, Expectation, ExpectedSender, Header, Injection,
};
use jitterscope_model::{
    Attribution, ClockKind, Confidence, CpuId, CulpritKind, Evidence, ExecutionContext, Nanos,
    Part, Quota, Sender, Stall, StallId, Subject, Task, ThreadRef, TickRate, Ticks, Verdict,
};

/// In these tests a tick is 1 ns and a period 10 ms.
const PERIOD: u64 = 10_000_000;

fn header(
    kind: DisturbKind,
    culprit: CulpritKind,
    name: &str,
    sender: Option<(&str, i32)>,
) -> Header {
    Header {
        kind,
        tid: 77,
        comm: "js-x-004d".into(),
        expected: Expectation {
            kind: culprit,
            name: name.into(),
            sender: sender.map(|(comm, tid)| ExpectedSender {
                comm: comm.into(),
                tid,
            }),
        },
        settings: DisturbSettings {
            cpu: CpuId(1),
            helper_cpu: Some(CpuId(0)),
            period: Nanos(PERIOD),
            length: Nanos(200_000),
            count: 100,
            clock: ClockKind::MonotonicRaw,
            rate: TickRate::NANOSECONDS,
            threshold: Nanos(300),
            victim_tid: None,
            parent_pid: 1,
            work_dir: "/".into(),
        },
    }
}

fn fifo() -> Header {
    header(DisturbKind::Fifo, CulpritKind::Thread, "js-fifo-004d", None)
}

fn window(start: u64, end: u64, length: Option<u64>) -> Injection {
    Injection {
        start_ticks: Ticks(start),
        end_ticks: Ticks(end),
        length_ticks: length.map(Ticks),
    }
}

fn part(kind: CulpritKind, name: &str, net: u64) -> Part {
    // Only kind and name matter.
    let subject = Subject::Unknown {
        kind: kind.as_str().into(),
        name: name.into(),
        detail: "".into(),
    };
    Part::inside(subject, Nanos(net), Evidence::SwitchRecords)
}

fn sent(mut part: Part, comm: Option<&str>, tid: i32) -> Part {
    std::sync::Arc::make_mut(&mut part.culprit).sender = Some(Sender {
        context: ExecutionContext::Thread,
        comm: comm.map(Into::into),
        tid,
        tgid: None,
        cpu: CpuId(0),
        via: None,
        beneath: None,
    });
    part
}

/// Collects stalls with their parts and numbers them.
#[derive(Default)]
struct Recorded {
    stalls: Vec<Stall>,
    attributions: Vec<Attribution>,
}

impl Recorded {
    fn stall(&mut self, cpu: u32, start: u64, end: u64, parts: Vec<Part>) {
        let id = StallId(self.stalls.len() as u64);
        let victim = ThreadRef {
            tid: 5,
            comm: Default::default(),
        };
        self.stalls.push(Stall {
            id,
            cpu: CpuId(cpu),
            victim,
            start: Ticks(start),
            end: Ticks(end),
        });
        self.attributions.push(Attribution { stall: id, parts });
    }

    fn score(&self, header: &Header, injections: &[Injection]) -> SelftestRow {
        let Recorded {
            stalls,
            attributions,
        } = self;
        let rate = TickRate::NANOSECONDS;
        super::score(&Episode {
            header,
            injections,
            stalls,
            attributions,
            rate,
        })
    }
}

fn thread(net: u64) -> Part {
    part(CulpritKind::Thread, "js-fifo-004d", net)
}

/// A hundred injections of 200 us, and the stalls that they cause.
fn textbook() -> (Recorded, Vec<Injection>) {
    let mut recorded = Recorded::default();
    let mut injections = Vec::new();
    for n in 1..=100 {
        let at = n * PERIOD;
        injections.push(window(at, at + 200_000, Some(200_000)));
        let parts = vec![part(CulpritKind::Switch, "switch", 2_000), thread(204_000)];
        recorded.stall(1, at - 3_000, at + 203_000, parts);
    }
    (recorded, injections)
}

#[test]
fn all_found_and_named_passes_with_its_length_error() {
    let (recorded, injections) = textbook();
    let row = recorded.score(&fifo(), &injections);
    assert_eq!(
        (row.injected, row.found, row.named, row.named_when_shifted),
        (100, 100, 100, 0)
    );
    assert!((row.length_error.unwrap() - 0.02).abs() < 1e-9);
    assert!(row.passed && row.shortfall.is_none() && row.wrong.is_empty());
}

#[test]
fn the_order_of_the_inputs_does_not_matter() {
    let (mut recorded, mut injections) = textbook();
    let sorted = recorded.score(&fifo(), &injections);
    recorded.stalls.reverse();
    recorded.attributions.rotate_left(33);
    injections.reverse();
    assert_eq!(recorded.score(&fifo(), &injections), sorted);
}

#[test]
fn what_cannot_reach_a_victim_that_is_switched_out_does_not_count() {
    let (mut recorded, injections) = textbook();
    // Another thread had the CPU during all of one injection, and during a part of another.
    let at = 7 * PERIOD;
    recorded.stalls[6].start = Ticks(at - 1_000_000);
    recorded.stalls[6].end = Ticks(at + 1_000_000);
    recorded.attributions[6].parts = vec![part(CulpritKind::Thread, "make", 2_000_000)];
    recorded.attributions[7].parts = vec![
        part(CulpritKind::Thread, "make", 1_000),
        part(CulpritKind::Timer, "x", 2_000),
    ];
    let mut header = fifo();
    assert_eq!(
        recorded.score(&header, &injections).out_of_reach,
        0,
        "a thread reaches any CPU"
    );
    header.kind = DisturbKind::Membarrier;
    let row = recorded.score(&header, &injections);
    assert_eq!(
        (row.out_of_reach, row.injected, row.found, row.named),
        (1, 99, 99, 98)
    );
}

#[test]
fn ninety_five_percent_is_the_bar() {
    for (kept, passes) in [(95, true), (94, false)] {
        let (mut recorded, injections) = textbook();
        recorded.stalls.truncate(kept);
        let row = recorded.score(&fifo(), &injections);
        assert_eq!((row.found, row.passed), (kept as u64, passes));
        assert_eq!(
            row.wrong,
            [WrongVerdict {
                instead: Instead::NoStall,
                count: 100 - kept as u64
            }]
        );
        assert_eq!(row.shortfall, (!passes).then_some(Shortfall::TooFewFound));
    }
}

#[test]
fn nothing_injected_is_no_pass() {
    let (recorded, _) = textbook();
    let row = recorded.score(&fifo(), &[]);
    assert!(!row.passed && row.length_error.is_none());
    assert_eq!(row.shortfall, Some(Shortfall::NothingInjected));
    assert!(!SelftestReport::new(vec![row], vec![]).passed);
    assert!(!SelftestReport::new(vec![], vec![]).passed, "nothing ran");
}

#[test]
fn a_wrong_name_or_kind_is_found_but_not_named() {
    let mut recorded = Recorded::default();
    let injections: Vec<_> = (1..=10)
        .map(|n| window(n * PERIOD, n * PERIOD + 100, Some(100)))
        .collect();
    for n in 1..=10 {
        let parts = match n {
            1..=6 => vec![
                part(CulpritKind::Thread, "js-fifo-0000", 90),
                part(CulpritKind::Timer, "t", 10),
            ],
            7..=9 => vec![part(CulpritKind::Unresolved, "no kernel event", 100)],
            // The right name with the wrong kind.
            _ => vec![part(CulpritKind::Irq, "js-fifo-004d", 100)],
        };
        recorded.stall(1, n * PERIOD, n * PERIOD + 100, parts);
    }
    let row = recorded.score(&fifo(), &injections);
    assert_eq!((row.found, row.named, row.length_error), (10, 0, None));
    let other = |kind, name: &str| Instead::OtherCulprit {
        kind,
        name: name.into(),
    };
    let wrong = [
        (other(CulpritKind::Thread, "js-fifo-0000"), 6),
        (other(CulpritKind::Unresolved, "no kernel event"), 3),
        (other(CulpritKind::Irq, "js-fifo-004d"), 1),
    ];
    assert_eq!(
        row.wrong,
        wrong.map(|(instead, count)| WrongVerdict { instead, count })
    );
    assert_eq!(row.shortfall, Some(Shortfall::TooFewNamed));
}

#[test]
fn an_injection_split_among_stalls_is_found_once_and_summed() {
    let mut recorded = Recorded::default();
    let header = header(DisturbKind::Fair, CulpritKind::Thread, "js-fifo-004d", None);
    // The first piece is named; an unrelated tick precedes the second piece.
    recorded.stall(1, 1_000, 1_600, vec![thread(600)]);
    recorded.stall(
        1,
        1_700,
        1_750,
        vec![part(CulpritKind::Timer, "tick_nohz_handler", 50)],
    );
    recorded.stall(1, 1_900, 2_400, vec![thread(500)]);
    let row = recorded.score(&header, &[window(1_010, 2_390, Some(1_000))]);
    assert_eq!((row.injected, row.found, row.named), (1, 1, 1));
    assert!((row.length_error.unwrap() - 0.1).abs() < 1e-9);
}

#[test]
fn overlapping_windows_share_a_stall_but_not_its_time() {
    let mut recorded = Recorded::default();
    recorded.stall(1, 1_000, 2_000, vec![thread(1_000)]);
    // Two injections in one stall with overlapping windows: the sum of their lengths is the stall's length.
    let injections = [
        window(1_000, 1_600, Some(500)),
        window(1_500, 2_000, Some(500)),
    ];
    let row = recorded.score(&fifo(), &injections);
    assert_eq!((row.injected, row.found, row.named), (2, 2, 2));
    assert_eq!(row.length_error, Some(0.0));
}

#[test]
fn a_chain_of_stalls_and_injections_is_one_group() {
    let mut recorded = Recorded::default();
    recorded.stall(1, 0, 100, vec![thread(100)]);
    recorded.stall(1, 200, 300, vec![thread(100)]);
    recorded.stall(1, 5_000, 5_100, vec![thread(50)]);
    let injections = [
        window(50, 210, Some(120)),
        window(220, 300, Some(80)),
        window(5_000, 5_100, Some(100)),
    ];
    let row = recorded.score(&fifo(), &injections);
    // 200 of 200 in the first group, 50 of 100 in the second: the median lies between.
    assert!((row.length_error.unwrap() - 0.25).abs() < 1e-9);
}

#[test]
fn stalls_of_other_cpus_and_of_other_times_do_not_count() {
    let mut recorded = Recorded::default();
    recorded.stall(0, 1_000, 2_000, vec![thread(1_000)]);
    recorded.stall(1, 2_001, 2_500, vec![thread(499)]);
    let row = recorded.score(&fifo(), &[window(1_000, 2_000, Some(1_000))]);
    assert_eq!((row.found, row.named), (0, 0));
    // The border belongs to the window.
    let row = recorded.score(&fifo(), &[window(1_000, 2_001, Some(1_000))]);
    assert_eq!((row.found, row.named), (1, 1));
}

#[test]
fn a_long_stall_before_short_ones_is_not_overlooked() {
    let mut recorded = Recorded::default();
    recorded.stall(1, 0, 10_000, vec![thread(10_000)]);
    recorded.stall(1, 100, 200, vec![]);
    recorded.stall(1, 300, 400, vec![]);
    let row = recorded.score(&fifo(), &[window(5_000, 5_001, None)]);
    assert_eq!((row.found, row.named, row.length_error), (1, 1, None));
}

#[test]
fn a_stall_without_attribution_is_found_and_not_named() {
    let mut recorded = Recorded::default();
    recorded.stall(1, 0, 100, vec![thread(100)]);
    recorded.attributions.clear();
    let row = recorded.score(&fifo(), &[window(0, 100, Some(100))]);
    assert_eq!((row.found, row.named), (1, 0));
    assert_eq!(
        row.wrong,
        [WrongVerdict {
            instead: Instead::NoAttribution,
            count: 1
        }]
    );
}

#[test]
fn an_interrupt_needs_the_right_sender() {
    let header = header(
        DisturbKind::Membarrier,
        CulpritKind::Ipi,
        "ipi_mb",
        Some(("js-mb-004d", 77)),
    );
    let ipi = || part(CulpritKind::Ipi, "ipi_mb", 100);
    let named = |culprit: Part| {
        let mut recorded = Recorded::default();
        recorded.stall(1, 0, 100, vec![culprit]);
        let row = recorded.score(&header, &[window(0, 100, None)]);
        assert_eq!(row.named == 1, row.wrong.is_empty());
        row.wrong.into_iter().map(|wrong| wrong.instead).next()
    };
    let other = |context, comm: Option<&str>, tid| {
        Some(Instead::OtherSender {
            context,
            comm: comm.map(Into::into),
            tid,
        })
    };
    assert_eq!(named(sent(ipi(), Some("js-mb-004d"), 77)), None);
    assert_eq!(
        named(sent(ipi(), None, 77)),
        None,
        "the thread id serves where the name is unknown"
    );
    assert_eq!(
        named(sent(ipi(), Some("js-mb-004d"), 9_077)),
        None,
        "ids differ outside of a PID namespace"
    );
    let thread = ExecutionContext::Thread;
    assert_eq!(
        named(sent(ipi(), Some("chrome"), 77)),
        other(thread, Some("chrome"), None)
    );
    assert_eq!(named(sent(ipi(), None, 78)), other(thread, None, Some(78)));
    let mut interrupt = sent(ipi(), Some("js-mb-004d"), 77);
    std::sync::Arc::make_mut(&mut interrupt.culprit)
        .sender
        .as_mut()
        .unwrap()
        .context = ExecutionContext::Interrupt;
    let beneath = other(ExecutionContext::Interrupt, None, None);
    assert_eq!(named(interrupt), beneath, "whose thread was only beneath");
    assert_eq!(named(ipi()), Some(Instead::NoSender));
}

#[test]
fn what_leaves_no_record_is_named_when_nobody_is_blamed_for_it() {
    let header = header(
        DisturbKind::Trap,
        CulpritKind::Unresolved,
        "no kernel event",
        None,
    );
    let whole = |verdict| {
        Part::whole(
            Subject::verdict(verdict),
            Nanos(10),
            Confidence::Low,
            Evidence::Nothing,
        )
    };
    // Verdicts on stalls of the same length, one after the other, from 100 up to this time.
    let named_up_to = |until: u64, verdicts: &[Verdict]| {
        let mut recorded = Recorded::default();
        // The interrupt that sets the breakpoint, which the host may delay.
        recorded.stall(
            1,
            0,
            100,
            vec![
                part(CulpritKind::Ipi, "remote_function", 50),
                whole(Verdict::LateInterrupt),
            ],
        );
        let each = (until - 100)
            .checked_div(verdicts.len() as u64)
            .unwrap_or(0);
        for (n, verdict) in (0..).zip(verdicts) {
            let start = 100 + n * each;
            recorded.stall(1, start, start + each, vec![whole(*verdict)]);
        }
        // An unrelated stall: it extends beyond the window.
        recorded.stall(1, 900, 5_000, vec![whole(Verdict::CpuTaken)]);
        recorded.score(&header, &[window(0, 1_000, None)]).named == 1
    };
    let named = |verdicts: &[Verdict]| named_up_to(880, verdicts);
    assert!(named(&[Verdict::NoEventInVm, Verdict::NoEventInVm]));
    assert!(
        !named_up_to(300, &[Verdict::NoEventInVm, Verdict::NoEventInVm]),
        "such stalls come by themselves, too"
    );
    assert!(named(&[Verdict::OutsideThisKernel]), "no virtual machine");
    assert!(
        named(&[
            Verdict::NoEventInVm,
            Verdict::NoEventInVm,
            Verdict::CpuTaken
        ]),
        "the host may be busy, too"
    );
    assert!(!named(&[
        Verdict::CpuTaken,
        Verdict::CpuTaken,
        Verdict::NoEventInVm
    ]));
    assert!(!named(&[Verdict::VirtualMachinePaused]));
    assert!(!named(&[]), "it was not seen at all");
}

#[test]
fn a_quota_is_named_whoever_had_the_cpu_meanwhile() {
    let header = header(DisturbKind::Quota, CulpritKind::Quota, "CPU quota", None);
    let named = |beside: Option<Task>| {
        let mut recorded = Recorded::default();
        let quota = Subject::Quota(Quota {
            cgroup: "/box".into(),
            limit: None,
            beside,
        });
        let part = Part::inside(quota, Nanos(100), Evidence::QuotaCount);
        recorded.stall(1, 0, 100, vec![part]);
        let row = recorded.score(&header, &[window(0, 100, None)]);
        (row.out_of_reach, row.injected, row.named)
    };
    let make = Task {
        comm: "make".into(),
        ..Task::default()
    };
    assert_eq!([named(None), named(Some(make))], [(0, 1, 1); 2]);
}

#[test]
fn naming_by_chance_shows_in_the_control() {
    let mut recorded = Recorded::default();
    // The culprit is reported all the time.
    recorded.stall(1, 0, 100 * PERIOD, vec![thread(100 * PERIOD)]);
    let injections: Vec<_> = (1..=50)
        .map(|n| window(n * PERIOD, n * PERIOD + 100, Some(100)))
        .collect();
    let row = recorded.score(&fifo(), &injections);
    assert_eq!(
        (row.named, row.controls),
        (50, 0),
        "nothing tells it from chance"
    );
    assert!(row.length_error.unwrap() > 1_000.0);
    // In every stall, with or without an injection.
    let mut recorded = Recorded::default();
    for n in 2..=120 {
        let start = n * PERIOD / 2;
        recorded.stall(1, start, start + 100, vec![thread(100)]);
    }
    let row = recorded.score(&fifo(), &injections);
    assert_eq!(
        (row.named, row.controls, row.named_when_shifted),
        (50, 50, 50)
    );
}
