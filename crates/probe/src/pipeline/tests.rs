use super::*;
use jitterscope_clock::MonotonicRaw;
use jitterscope_model::{JournalReader, PipelineVia, RateSource};
use jitterscope_platform::MessagePaths;
use proptest::prelude::*;
use std::cell::Cell;
use std::time::Duration;

thread_local! {
    /// Iterations of a spin that each clock read of this thread costs.
    static SLOWNESS: Cell<u32> = const { Cell::new(0) };
}

/// A clock that slows its reader down.
#[derive(Clone, Copy)]
struct SlowClock;

impl Clock for SlowClock {
    fn now(self) -> u64 {
        let turns = SLOWNESS.get();
        if turns > 0 {
            // On a machine with few CPUs, the other threads need CPU time.
            std::thread::yield_now();
        }
        for _ in 0..turns {
            std::hint::spin_loop();
        }
        MonotonicRaw.now()
    }
}

fn settings(messages: u64) -> PipelineSettings {
    PipelineSettings {
        record_length: 8,
        warm_up_messages: 50,
        length: Length::Messages(messages),
        interval: Ticks(0),
        pacing: Pacing::Schedule,
        ring: 4,
        journaller: true,
        slow_above: Some(Ticks(1)),
        slow_queue: 1 << 14,
        reporting: Ticks(1_000_000),
        reporting_queue: 4,
        producer: Place::default(),
        accumulator: Place::default(),
        journaller_place: Place::default(),
    }
}

struct Run {
    producer: ProducerResult,
    consumers: Vec<ConsumerResult>,
    slow: Vec<(Role, Vec<SlowMessage>)>,
    intervals: Vec<(Role, Vec<SlowInterval>)>,
    journal: Vec<u8>,
}

/// Runs a pipeline to its end on any machine: threads of the slow `role` spend `turns` per clock read.
fn run(settings: PipelineSettings, role: Role, turns: u32, stop_after: Option<Duration>) -> Run {
    run_with(settings, Means::default(), role, turns, stop_after)
}

fn run_with(
    settings: PipelineSettings,
    means: Means,
    role: Role,
    turns: u32,
    stop_after: Option<Duration>,
) -> Run {
    let control = Arc::new(PipelineControl::new());
    let input: Vec<u8> = (0..settings.record_length * 7).map(|n| n as u8).collect();
    let rate = TickRate {
        hz: 1_000_000_000,
        error_ppb: 0,
        source: RateSource::Exact,
    };
    let mut pipeline = Pipeline::<Vec<u8>>::with(SlowClock, rate, settings, input, means).unwrap();
    if let Some(feed) = &mut pipeline.journal {
        feed.supply(vec![0; 320]).unwrap();
    }
    let handles: Vec<_> = pipeline
        .threads
        .into_iter()
        .map(|(which, body)| {
            let control = Arc::clone(&control);
            std::thread::spawn(move || {
                SLOWNESS.set(if which == role { turns } else { 1 });
                body(&control)
            })
        })
        .collect();
    let count = handles.len() as u32;
    let mut journal = Vec::new();
    let mut feed = pipeline.journal;
    let mut tend = || {
        if let Some(feed) = &mut feed {
            let _ = feed.supply(vec![0; 320]);
            while let Some(piece) = feed.take_full() {
                journal.extend(piece);
            }
        }
        std::thread::yield_now();
    };
    while control.ready() < count {
        tend();
    }
    control.warm_up();
    while control.warm() < count {
        tend();
    }
    let start = MonotonicRaw.now();
    control.measure(Ticks(start), Ticks(u64::MAX));
    let begun = std::time::Instant::now();
    while !handles.iter().all(|h| h.is_finished()) {
        tend();
        if stop_after.is_some_and(|after| begun.elapsed() > after) {
            control.stop();
        }
    }
    tend();
    let (mut producer, mut consumers) = (None, Vec::new());
    for handle in handles {
        match handle.join().unwrap().unwrap().0 {
            ThreadResult::Producer(result) => producer = Some(result),
            ThreadResult::Consumer(result) => consumers.push(result),
        }
    }
    let (mut slow, mut intervals) = (Vec::new(), Vec::new());
    for (role, mut output) in pipeline.slow {
        slow.push((
            role,
            std::iter::from_fn(|| output.messages.pop().ok()).collect(),
        ));
        intervals.push((
            role,
            std::iter::from_fn(|| output.intervals.take()).collect(),
        ));
    }
    Run {
        producer: producer.unwrap(),
        consumers,
        slow,
        intervals,
        journal,
    }
}

fn paths(via: PipelineVia, settings: PipelineSettings, room: usize) -> Means {
    let length = Message::HEAD + settings.record_length;
    let receivers = settings.roles().len() - 1;
    let paths = MessagePaths::open(via, receivers, (length, Message::HEAD), room);
    Means {
        paths: Some(paths.unwrap()),
        journal: None,
    }
}

#[test]
fn nothing_is_lost_or_reordered_through_the_kernel() {
    for via in [PipelineVia::Unix, PipelineVia::Loopback] {
        for slow in [Role::Producer, Role::Accumulator, Role::Journaller] {
            for journaller in [false, true] {
                let settings = PipelineSettings {
                    journaller,
                    ..settings(300)
                };
                let run = run_with(settings, paths(via, settings, 4), slow, 20, None);
                assert_eq!(run.producer.sent, 300, "{via}");
                assert!(run.producer.completed && run.producer.warmed_up == 50);
                check(&run);
            }
        }
    }
}

#[test]
fn what_the_kernel_loses_is_missing_and_everything_ends() {
    let settings = PipelineSettings {
        journaller: false,
        warm_up_messages: 1_000,
        ..settings(1_000)
    };
    let mut means = paths(PipelineVia::Loopback, settings, 4);
    // More than the socket has room for.
    means.paths.as_mut().unwrap().room = 1_000_000;
    let run = run_with(settings, means, Role::Accumulator, 20, None);
    let [consumer] = run.consumers.as_slice() else {
        panic!("one consumer")
    };
    assert_eq!(run.producer.sent, 1_000);
    assert!(consumer.received < 1_000, "nothing was lost");
    assert_eq!(consumer.transit.count(), consumer.received);
}

#[test]
fn a_pipeline_through_the_kernel_stops_when_asked() {
    let settings = PipelineSettings {
        length: Length::UntilEnd,
        ..settings(0)
    };
    let means = paths(PipelineVia::Unix, settings, 4);
    let after = Some(Duration::from_millis(50));
    let run = run_with(settings, means, Role::Journaller, 20, after);
    assert!(!run.producer.completed && run.producer.sent > 0);
    check(&run);
}

fn check(run: &Run) {
    let sent = run.producer.sent;
    assert_eq!(run.producer.inter.count(), sent);
    assert_eq!(run.producer.lateness.count(), sent);
    for consumer in &run.consumers {
        assert_eq!(consumer.received, sent, "{}", consumer.role);
        assert_eq!(consumer.disordered, 0, "{}", consumer.role);
        for times in [&consumer.transit, &consumer.from_intended, &consumer.inter] {
            assert_eq!(times.count(), sent, "{}", consumer.role);
        }
        assert!(consumer.from_intended.max_ns() >= consumer.transit.max_ns());
        let (_, slow) = run
            .slow
            .iter()
            .find(|(role, _)| *role == consumer.role)
            .unwrap();
        assert_eq!(slow.len() as u64 + consumer.slow_dropped, consumer.slow);
        assert!(slow.windows(2).all(|w| w[0].sequence < w[1].sequence));
        // Intervals contain all slow messages, whatever the queue's capacity.
        let (_, intervals) = run
            .intervals
            .iter()
            .find(|(role, _)| *role == consumer.role)
            .unwrap();
        assert_eq!(
            intervals.iter().map(|row| row.count).sum::<u64>(),
            consumer.slow
        );
        assert_eq!(
            intervals.iter().map(|row| row.lengths.len()).sum::<u64>(),
            consumer.slow
        );
        assert!(intervals.windows(2).all(|two| two[0].end == two[1].start));
        let longest = intervals.iter().map(|row| row.max.0).max().unwrap_or(0);
        assert!(longest <= consumer.from_intended.max_ns());
        assert!(
            slow.iter()
                .all(|m| m.intended <= m.published && m.published <= m.received)
        );
        if let Some(account) = consumer.journal {
            assert_eq!(account.written + account.unwritten, sent);
            let entries: Vec<_> = JournalReader::new(&run.journal)
                .map(Result::unwrap)
                .collect();
            assert_eq!(entries.len() as u64, account.written);
            assert!(
                entries
                    .iter()
                    .zip(0..)
                    .all(|(entry, n)| entry.sequence == n)
            );
        }
    }
}

proptest! {
    #![proptest_config(ProptestConfig { cases: 8, ..ProptestConfig::default() })]
    #[test]
    fn nothing_is_lost_or_reordered_whoever_is_slow(
        ring in prop_oneof![Just(2usize), Just(4), Just(16)],
        messages in 1u64..250,
        slow in prop_oneof![Just(Role::Producer), Just(Role::Accumulator), Just(Role::Journaller)],
        turns in 1u32..100,
        journaller: bool,
        warm_up in 0u64..40,
    ) {
        let settings = PipelineSettings { ring, journaller, warm_up_messages: warm_up, ..settings(messages) };
        let run = run(settings, slow, turns, None);
        prop_assert_eq!(run.producer.sent, messages);
        prop_assert!(run.producer.completed);
        prop_assert_eq!(run.producer.warmed_up, warm_up);
        check(&run);
    }
}

#[test]
fn a_full_ring_is_waited_for_and_counted() {
    let settings = PipelineSettings {
        ring: 2,
        journaller: false,
        ..settings(300)
    };
    let run = run(settings, Role::Accumulator, 2000, None);
    assert!(
        run.producer.full_waits > 0,
        "a slow consumer behind a ring of two"
    );
    assert!(run.producer.full_waited >= run.producer.full_longest);
    check(&run);
}

#[test]
fn a_stop_keeps_what_was_measured() {
    let settings = PipelineSettings {
        interval: Ticks(100_000),
        ..settings(u64::MAX)
    };
    let run = run(
        settings,
        Role::Producer,
        1,
        Some(Duration::from_millis(100)),
    );
    assert!(!run.producer.completed);
    assert!(run.producer.sent > 0);
    check(&run);
}

#[test]
fn what_cannot_be_is_refused() {
    let rate = TickRate::NANOSECONDS;
    let odd = PipelineSettings {
        ring: 3,
        ..settings(1)
    };
    let refused = Pipeline::<Vec<u8>>::new(SlowClock, rate, odd, vec![0; 64]);
    assert!(matches!(refused, Err(PipelineError::Ring(3))));
    let refused = Pipeline::<Vec<u8>>::new(SlowClock, rate, settings(1), vec![0; 7]);
    assert!(matches!(
        refused,
        Err(PipelineError::Input {
            input: 7,
            record: 8
        })
    ));
}
