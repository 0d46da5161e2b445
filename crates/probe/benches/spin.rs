//! The spin probe compared with a bare chained loop that only tests a threshold, alternating on one CPU in one run.
//! Prints one JSON line, whose ratios `cargo xtask bench probe` checks.

#[cfg(target_arch = "x86_64")]
fn main() {
    bench::main();
}

#[cfg(not(target_arch = "x86_64"))]
fn main() {
    eprintln!("skipped: this bench compares TSC loops");
}

#[cfg(target_arch = "x86_64")]
mod bench {
    use jitterscope_clock::{Clock, Tsc};
    use jitterscope_model::{CpuList, Ticks};
    use jitterscope_platform::{self as platform, Machine, Topology};
    use jitterscope_probe::{ProbeControl, SpinProbe, SpinSettings};
    use std::hint::black_box;
    use std::sync::Arc;
    use std::time::Duration;

    const ROUNDS: usize = 7;

    struct Measured {
        samples_per_tick: f64,
        floor: u64,
        coverage: f64,
    }

    /// Reads the clock back to back and tests a threshold: the lower bound for a probe.
    fn bare(threshold: u64, length: u64) -> Measured {
        let first = Tsc.now();
        let end = first + length;
        let (mut previous, mut floor, mut turns) = (first, u64::MAX, 0u64);
        while previous < end {
            for _ in 0..8 {
                let now = Tsc.now();
                let delta = now - previous;
                if delta >= threshold {
                    black_box(delta);
                }
                previous = now;
            }
            turns += 1;
        }
        let samples_per_tick = (turns * 8) as f64 / (previous - first) as f64;
        // A separate loop for the floor: the bare loop keeps no minimum.
        for _ in 0..1_000_000 {
            let now = Tsc.now();
            floor = floor.min(now - previous);
            previous = now;
        }
        Measured {
            samples_per_tick,
            floor,
            coverage: 1.0,
        }
    }

    fn probe(settings: SpinSettings, length: u64) -> Measured {
        let (probe, mut output) = SpinProbe::new(Tsc, settings).expect("the settings are valid");
        let control = Arc::new(ProbeControl::new());
        let start = Tsc.now() + length / 10;
        control.measure(Ticks(start), Ticks(start + length));
        let result = probe
            .run(&control)
            .expect("the CPU was chosen from the allowed ones");
        while output.gaps.pop().is_ok() {}
        let wall = result.end.since(result.start).0;
        Measured {
            samples_per_tick: result.samples as f64 / wall as f64,
            floor: result.min_ticks,
            coverage: result.sum_ticks as f64 / wall as f64,
        }
    }

    /// Ticks by which the counter advances: the smallest difference, above the rounding of one tick, between two deltas
    /// that each make up at least a hundredth of a million reads. `None` if nearly all deltas are equal.
    fn step() -> Option<u64> {
        const READS: usize = 1_000_000;
        let reads: Vec<u64> = (0..READS).map(|_| Tsc.now()).collect();
        let mut counts = std::collections::BTreeMap::<u64, usize>::new();
        for pair in reads.windows(2) {
            *counts.entry(pair[1] - pair[0]).or_default() += 1;
        }
        let frequent: Vec<u64> = counts
            .into_iter()
            .filter(|(_, count)| *count >= READS / 100)
            .map(|(delta, _)| delta)
            .collect();
        let differences = frequent.windows(2).map(|pair| pair[1] - pair[0]);
        differences.filter(|difference| *difference > 1).min()
    }

    fn median(mut values: Vec<f64>) -> f64 {
        values.sort_by(f64::total_cmp);
        values[values.len() / 2]
    }

    pub fn main() {
        let machine = Machine::host();
        let topology = Topology::read(&machine);
        let allowed = platform::current_affinity().expect("the affinity mask can be read");
        let wanted: Option<CpuList> = std::env::var("JITTERSCOPE_BENCH_CPUS")
            .ok()
            .and_then(|l| l.parse().ok());
        let choice =
            platform::select_cpus(wanted.as_ref(), &topology, &allowed).expect("a CPU to measure");
        let cpu = choice.cpus.last().expect("the choice is never empty");
        platform::pin_current_thread(cpu).expect("the chosen CPU is allowed");
        let clock =
            platform::choose_clock(&machine, None, Duration::from_millis(100)).expect("a clock");
        let rate = clock.rate;
        let threshold = rate.ticks(jitterscope_model::Nanos(300));
        let length = rate.ticks(jitterscope_model::Nanos(300_000_000)).0;
        let settings = SpinSettings {
            cpu,
            threshold,
            interval: Ticks(rate.hz),
            poll: Ticks(rate.hz / 100),
            fifo_priority: None,
            queue: 1 << 16,
            own: Ticks(0),
        };
        let (mut ratios, mut coverages, mut rates, mut bare_rates) =
            (vec![], vec![], vec![], vec![]);
        let (mut floor, mut bare_floor) = (u64::MAX, u64::MAX);
        for round in 0..ROUNDS {
            // Alternating order, so that a drift of the machine favours neither.
            let (b, p) = if round % 2 == 0 {
                let b = bare(threshold.0, length);
                (b, probe(settings, length))
            } else {
                let p = probe(settings, length);
                (bare(threshold.0, length), p)
            };
            ratios.push(p.samples_per_tick / b.samples_per_tick);
            coverages.push(p.coverage);
            rates.push(p.samples_per_tick * rate.hz as f64);
            bare_rates.push(b.samples_per_tick * rate.hz as f64);
            floor = floor.min(p.floor);
            bare_floor = bare_floor.min(b.floor);
        }
        let coverage = coverages.iter().copied().fold(f64::INFINITY, f64::min);
        let line = serde_json::json!({
            "bench": "probe",
            "cpu": cpu.0,
            "rounds": ROUNDS,
            "samples_per_sec": median(rates),
            "bare_samples_per_sec": median(bare_rates),
            "samples_ratio": median(ratios),
            "coverage": coverage,
            "floor_ticks": floor,
            "bare_floor_ticks": bare_floor,
            "cpu_model": platform::host_facts(&machine, &topology).cpu_model,
            "tsc_step": step(),
        });
        println!("{line}");
    }
}
