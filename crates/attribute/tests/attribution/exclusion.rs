//! Evidence near a stall without records, and how near it must be.

use crate::common::*;
use jitterscope_attribute::{Attributor, AttributorSettings, OutsideHints};
use jitterscope_model::{CpuId, EventKind, Gap, KernelEvent, TickRate, Ticks};

const FAR: CpuId = CpuId(2);
const S: u64 = 1_000_000_000;

/// The verdict on a stall of 50 us, beginning at one second.
fn reported(attributor: &mut Attributor) -> String {
    let stall = stall(S, S + 50_000);
    attributor.announce(
        CPU,
        Gap {
            start: stall.start,
            length: stall.length(),
        },
    );
    let part = attributor
        .attribute(&stall, &OutsideHints::default(), &Names)
        .parts
        .remove(0);
    part.culprit.subject.name().to_string()
}

#[test]
fn stalls_began_together_within_five_microseconds_on_other_cpus() {
    let with = |cpu, starts: &[u64]| {
        let mut a = attributor(false);
        for start in starts {
            a.announce(
                cpu,
                Gap {
                    start: Ticks(*start),
                    length: Ticks(50_000),
                },
            );
        }
        reported(&mut a)
    };
    let (alone, together) = ("outside this kernel", "all CPUs at once");
    for (start, wanted) in [
        (S - 5001, alone),
        (S - 5000, together),
        (S + 5000, together),
        (S + 5001, alone),
    ] {
        assert_eq!(with(FAR, &[start]), wanted, "{start}");
    }
    // Another stall of its own CPU does not count; of several stalls of another CPU any may match.
    assert_eq!(with(CPU, &[S - 1000]), alone);
    assert_eq!(with(FAR, &[10, S - 1000, S + 40_000]), together);
}

/// Breakpoints and other exceptions leave no record, and can hit the threads of several CPUs at once.
#[test]
fn short_stalls_at_once_are_no_pause_of_the_virtual_machine() {
    let paused = |length: u64| {
        let mut a = attributor(true);
        let mut count = 0;
        for n in 1..4000 {
            let start = S + n * 1_003_000;
            for cpu in [CPU, FAR] {
                a.announce(
                    cpu,
                    Gap {
                        start: Ticks(start),
                        length: Ticks(length),
                    },
                );
            }
            let of = a.attribute(
                &stall(start, start + length),
                &OutsideHints::default(),
                &Names,
            );
            count += usize::from(of.parts[0].culprit.subject.name() == "virtual machine paused");
        }
        count
    };
    for length in [2_000, 5_000, 50_000, 199_000] {
        assert_eq!(paused(length), 0, "{length} ns");
    }
    // Long ones are, once enough of them show that it is no chance.
    assert!(paused(400_000) > 3000);
}

#[test]
fn what_stops_several_cpus_stops_them_for_about_as_long() {
    let with = |lengths: &[u64]| {
        let mut a = attributor(false);
        for (n, length) in lengths.iter().enumerate() {
            a.announce(
                FAR,
                Gap {
                    start: Ticks(S - 1000 + n as u64 * 500),
                    length: Ticks(*length),
                },
            );
        }
        reported(&mut a)
    };
    let (alone, together) = ("outside this kernel", "all CPUs at once");
    // The stall lasts 50 us. Any of the nearby ones may match.
    for (lengths, wanted) in [
        (&[24_999][..], alone),
        (&[25_000], together),
        (&[100_000], together),
        (&[100_003], alone),
        (&[370, 60_000], together),
        (&[370, 400], alone),
    ] {
        assert_eq!(with(lengths), wanted, "{lengths:?}");
    }
}

#[test]
fn all_is_as_many_as_are_measured() {
    for (measured, others, wanted) in [
        (1, &[][..], "outside this kernel"),
        (2, &[2], "all CPUs at once"),
        (3, &[2], "outside this kernel"),
        (3, &[2, 3], "all CPUs at once"),
    ] {
        let settings = AttributorSettings {
            rate: TickRate::NANOSECONDS,
            virtual_machine: false,
            measured,
        };
        let mut a = Attributor::new(settings);
        for cpu in others {
            a.announce(
                CpuId(*cpu),
                Gap {
                    start: Ticks(S),
                    length: Ticks(50_000),
                },
            );
        }
        assert_eq!(reported(&mut a), wanted, "{measured} {others:?}");
    }
}

#[test]
fn a_frequency_change_counts_shortly_before_a_stall_not_after_it() {
    let with = |times: &[u64], target| {
        let mut a = attributor(false);
        for time in times {
            // Any CPU may record it.
            let kind = EventKind::CpuFrequency {
                target,
                khz: 1_000_000,
            };
            a.event(&KernelEvent {
                cpu: FAR,
                ..at(*time, kind)
            });
        }
        reported(&mut a)
    };
    let (none, changed) = ("outside this kernel", "frequency change");
    for (time, wanted) in [
        (S - 100_001, none),
        (S - 100_000, changed),
        (S + 50_000, changed),
        (S + 50_001, none),
    ] {
        assert_eq!(with(&[time], CPU), wanted, "{time}");
    }
    assert_eq!(with(&[S - 1], FAR), none);
    // Any of several.
    assert_eq!(with(&[10, S - 10_000, S + 200_000], CPU), changed);
}

#[test]
fn bookkeeping_follows_at_once() {
    let after = |first: (u64, u64)| {
        let mut a = attributor(false);
        a.announce(
            CPU,
            Gap {
                start: Ticks(500),
                length: Ticks(10),
            },
        );
        attribute(&mut a, &stall(first.0, first.1), &[]);
        let next = attribute(&mut a, &stall(9000, 9400), &[]);
        shown(&next).remove(0)
    };
    assert_eq!(after((1000, 9000)), "unresolved/own bookkeeping 400");
    assert_eq!(after((1000, 8999)), "unresolved/under 1 us 400");
}

#[test]
fn a_loss_touches_a_stall_at_its_ends_and_is_never_undone() {
    let with = |losses: &[(u64, u64)]| {
        let mut a = attributor(false);
        losses
            .iter()
            .for_each(|(from, to)| a.lost(CPU, Ticks(*from), Ticks(*to)));
        reported(&mut a)
    };
    let (none, lost) = ("outside this kernel", "trace data lost");
    for (loss, wanted) in [
        ((S - 100_000, S - 1), none),
        ((S - 100_000, S), lost),
        ((S + 50_000, S + 60_000), lost),
        ((S + 50_001, S + 60_000), none),
    ] {
        assert_eq!(with(&[loss]), wanted, "{loss:?}");
        assert_eq!(with(&[(10, 20), loss, (2 * S, 3 * S)]), wanted, "{loss:?}");
    }
}

#[test]
fn events_in_gaps_count_to_the_end_of_each_probe() {
    let mut a = attributor(false);
    let events = [
        enter(100, "local_timer"),
        exit(200, "local_timer"),
        enter(900, "reschedule"),
    ];
    attribute(&mut a, &stall(90, 210), &events);
    a.finish(&[(CPU, Ticks(899))]);
    assert_eq!(
        (a.events_in_gaps().events, a.events_in_gaps().inside),
        (2, 2)
    );
    let mut a = attributor(false);
    attribute(&mut a, &stall(90, 210), &events);
    a.finish(&[(CPU, Ticks(900))]);
    assert_eq!(
        (a.events_in_gaps().events, a.events_in_gaps().inside),
        (3, 2)
    );
}
