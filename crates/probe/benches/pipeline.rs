//! A minimal ping between two pinned threads through the pipeline's ring: the producer stamps, the consumer records the
//! difference, and nothing else. What `record pipeline` takes beyond this is the cost of its own work. Prints one JSON
//! line, which `cargo xtask bench pipeline` compares with the tool and with Java.
//!
//! Settings are `name=number` arguments: `ring`, `warm_up`, `messages`, `interval_ns`, `pause_ns`, `producer_cpu`,
//! `accumulator_cpu`.

#[cfg(target_arch = "x86_64")]
fn main() {
    bench::main();
}

#[cfg(not(target_arch = "x86_64"))]
fn main() {
    eprintln!("skipped: this bench stamps with the TSC");
}

#[cfg(target_arch = "x86_64")]
mod bench {
    use disruptor::{BusySpin, Polling, Producer, build_single_producer};
    use jitterscope_clock::{Clock, Tsc};
    use jitterscope_model::{CpuId, Nanos, TickRate, Ticks};
    use jitterscope_platform::{self as platform, Machine};
    use std::sync::Barrier;
    use std::time::Duration;

    #[derive(Clone, Copy)]
    struct Settings {
        ring: u64,
        warm_up: u64,
        messages: u64,
        interval_ns: u64,
        pause_ns: u64,
        producer_cpu: u64,
        accumulator_cpu: u64,
    }

    /// A slot: only the stamp, on its own cache line.
    #[repr(align(64))]
    struct Ping(u64);

    fn settings() -> Settings {
        let mut settings = Settings {
            ring: 16384,
            warm_up: 50_000,
            messages: 200_000,
            interval_ns: 10_000,
            pause_ns: 0,
            producer_cpu: 0,
            accumulator_cpu: 1,
        };
        for argument in std::env::args().skip(1) {
            // Skips cargo's own flags, such as `--bench`.
            let Some((name, value)) = argument.split_once('=') else {
                continue;
            };
            let field = match name {
                "ring" => &mut settings.ring,
                "warm_up" => &mut settings.warm_up,
                "messages" => &mut settings.messages,
                "interval_ns" => &mut settings.interval_ns,
                "pause_ns" => &mut settings.pause_ns,
                "producer_cpu" => &mut settings.producer_cpu,
                "accumulator_cpu" => &mut settings.accumulator_cpu,
                _ => panic!("no setting is called {name}"),
            };
            *field = value.parse().expect("a setting is a number");
        }
        settings
    }

    /// Transit of every measured message in ticks, in order.
    fn ping(settings: Settings, rate: TickRate) -> Vec<u64> {
        let ring = usize::try_from(settings.ring).expect("a ring fits in memory");
        let builder = build_single_producer(ring, || Ping(0), BusySpin);
        let (mut poller, builder) = builder.new_event_poller();
        let producer = builder.build();
        let interval = rate.ticks(Nanos(settings.interval_ns)).0;
        let together = Barrier::new(2);
        std::thread::scope(|scope| {
            scope.spawn(|| {
                let mut producer = {
                    pin(settings.producer_cpu);
                    producer
                };
                together.wait();
                let mut send = |messages: u64| {
                    for _ in 0..messages {
                        producer.publish(|ping| ping.0 = Tsc.now_after_loads());
                        let next = Tsc.now() + interval;
                        while Tsc.now() < next {}
                    }
                };
                send(settings.warm_up);
                std::thread::sleep(Duration::from_nanos(settings.pause_ns));
                send(settings.messages);
            });
            let receiver = scope.spawn(|| {
                pin(settings.accumulator_cpu);
                // Written once, so that no page faults later.
                let all = usize::try_from(settings.warm_up + settings.messages)
                    .expect("they fit in memory");
                let mut transits = vec![1u64; all];
                let mut received = 0;
                together.wait();
                loop {
                    match poller.poll() {
                        Ok(mut pings) => {
                            for ping in &mut pings {
                                transits[received] = Tsc.now_after_loads().saturating_sub(ping.0);
                                received += 1;
                            }
                        }
                        Err(Polling::NoEvents) => {}
                        Err(Polling::Shutdown) => break,
                    }
                }
                assert_eq!(received, all, "every message arrives");
                transits
            });
            let all = receiver.join().expect("the receiver ends");
            all[usize::try_from(settings.warm_up).expect("it fits in memory")..].to_vec()
        })
    }

    fn pin(cpu: u64) {
        let cpu = u32::try_from(cpu).expect("a CPU's number is small");
        platform::pin_current_thread(CpuId(cpu)).expect("the CPU is there and allowed");
    }

    pub fn main() {
        let settings = settings();
        let clock = platform::choose_clock(&Machine::host(), None, Duration::from_millis(100))
            .expect("a clock");
        let rate = clock.rate;
        let mut transits = ping(settings, rate);
        transits.sort_unstable();
        let at = |share: f64| -> u64 {
            let rank = (share * transits.len() as f64).ceil() as usize;
            transits
                .get(rank.max(1) - 1)
                .map_or(0, |ticks| rate.nanos(Ticks(*ticks)).0)
        };
        let line = serde_json::json!({
            "bench": "pipeline",
            "count": transits.len(),
            "min": at(0.0),
            "p50": at(0.5),
            "p99": at(0.99),
            "p99_9": at(0.999),
            "max": at(1.0),
            "peak_rss_kib": platform::peak_rss_bytes() / 1024,
        });
        println!("{line}");
    }
}
