//! What a generated host loses in one hour.

use super::hosts::{DAY, FIRST_HOUR, Host, NOISY, NOISY_FROM, NOISY_THREAD, Planted, SLOWER};
use jitterscope_model::{CpuSet, Nanos, exponential_bucket};
use jitterscope_store::rollup::{
    GroupHour, HostHour, OTHERS, RollupBucket, RollupCulprit, RollupPart, RollupStall, STALLS_KEY,
    hour_start_s, key_of_kind,
};
use jitterscope_testing::SplitMix64;
use std::cmp::Reverse;
use std::collections::BTreeMap;

/// Nanoseconds of an hour.
const HOUR_NS: u64 = 3_600_000_000_000;
const LONGEST: usize = 8;

/// A culprit that each host has: kind, name, owner, parts per CPU and hour, mean part in nanoseconds.
type Usual = (&'static str, &'static str, Option<&'static str>, f64, f64);

const USUAL: [Usual; 17] = [
    ("timer", "tick_nohz_handler", None, 3600.0, 2_400.0),
    ("timer", "hrtimer_wakeup", None, 900.0, 3_100.0),
    ("softirq", "TIMER", None, 1200.0, 2_900.0),
    ("softirq", "NET_RX", None, 800.0, 21_000.0),
    ("softirq", "RCU", None, 1500.0, 3_500.0),
    ("softirq", "SCHED", None, 700.0, 4_800.0),
    ("softirq", "BLOCK", None, 60.0, 9_000.0),
    ("ipi", "reschedule", None, 200.0, 1_700.0),
    ("ipi", "call function", None, 90.0, 5_200.0),
    ("kworker", "vmstat_update", None, 300.0, 6_500.0),
    ("kworker", "wb_workfn", None, 4.0, 180_000.0),
    (
        "thread",
        "kubelet",
        Some("unit:kubelet.service"),
        25.0,
        95_000.0,
    ),
    (
        "thread",
        "containerd",
        Some("unit:containerd.service"),
        18.0,
        70_000.0,
    ),
    (
        "thread",
        "node_exporter",
        Some("unit:node-exporter.service"),
        12.0,
        60_000.0,
    ),
    (
        "thread",
        "systemd-journal",
        Some("unit:systemd-journald.service"),
        9.0,
        88_000.0,
    ),
    ("firmware", "SMI", None, 0.3, 110_000.0),
    ("unresolved", "under 1 us", None, 5000.0, 500.0),
];

/// Interrupts of the hardware of each machine.
const INTERRUPTS: [[&str; 2]; 4] = [
    ["nvme0q3", "mlx5_comp2"],
    ["nvme1q1", "ixgbe-TxRx-4"],
    ["megasas9", "i40e-eth0-7"],
    ["ahci", "tg3-rx-1"],
];
const POD_THREADS: [&str; 7] = [
    "java",
    "nginx",
    "python3",
    "postgres",
    "node",
    "redis-server",
    "envoy",
];

fn culprit(kind: &str, name: &str, owner: Option<&str>, count: f64, mean: f64) -> RollupCulprit {
    let count = count.round().max(1.0);
    RollupCulprit {
        kind: kind.to_owned(),
        name: name.to_owned(),
        owner: owner.map(str::to_owned),
        count: count as u64,
        time_ns: (count * mean) as u64,
        longest_ns: (mean * (2.0 + count.ln())) as u64,
    }
}

/// One hour of a host, counted from the fleet's first.
pub fn hour(host: &Host, hour: u64, seed: u64, planted: &Planted) -> HostHour {
    let mut random = SplitMix64(seed ^ (host.number << 20) ^ (hour + 1).wrapping_mul(0x9e37_79b9));
    let by_its_clock = host.clock_hour(hour, planted);
    let ahead_s = (by_its_clock - FIRST_HOUR - hour) * 3600;
    let mut groups: Vec<GroupHour> = host
        .groups
        .iter()
        .map(|cpus| group(host, cpus, hour, by_its_clock, &mut random, planted))
        .collect();
    if random.below(2000) == 0 {
        groups[0].lost = 1 + random.below(500);
    }
    HostHour {
        host: host.described(hour, planted),
        hour: by_its_clock,
        clock_ahead_s: i32::try_from(ahead_s).ok(),
        groups,
    }
}

fn group(
    host: &Host,
    cpus: &CpuSet,
    hour: u64,
    by_its_clock: u64,
    random: &mut SplitMix64,
    planted: &Planted,
) -> GroupHour {
    let cpu_count = cpus.len() as f64;
    // Busiest at 15:00 UTC.
    let phase = (hour % DAY) as f64 / DAY as f64 - 15.0 / 24.0;
    let day = 1.0 + 0.4 * (std::f64::consts::TAU * phase).cos();
    let tuned = if host.is_tuned { 0.4 } else { 1.0 };
    let busy = cpu_count * host.level * tuned * day;
    let mut culprits = Vec::new();
    for (kind, name, owner, count, mean) in USUAL {
        let is_planted = host.number == planted.firmware && kind == "firmware";
        let slower = host.is_slower && (kind, name) == (SLOWER.0, SLOWER.1);
        let count = count * if is_planted { 4000.0 } else { 1.0 };
        let mean = mean * if slower { SLOWER.2 } else { 1.0 };
        let count = busy * count * (0.1 * random.normal()).exp();
        if count >= 1.0 || random.uniform() < count {
            culprits.push(culprit(
                kind,
                name,
                owner,
                count,
                mean * (0.05 * random.normal()).exp(),
            ));
        }
    }
    for name in INTERRUPTS[host.machine] {
        let count = busy * 250.0 * (0.1 * random.normal()).exp();
        culprits.push(culprit("irq", name, None, count, 3_800.0));
    }
    if host.number % 4 == 1 && hour % DAY == 2 {
        let owner = Some("unit:backup.service");
        culprits.push(culprit("thread", "restic", owner, busy * 900.0, 240_000.0));
    }
    pods(host, busy, random, &mut culprits);
    if planted.noisy.contains(&host.number) && hour >= NOISY_FROM {
        culprits.push(culprit(
            "thread",
            NOISY_THREAD,
            Some(NOISY),
            busy * 4000.0,
            310_000.0,
        ));
    }
    culprits.sort_by(|a, b| b.time_ns.cmp(&a.time_ns).then_with(|| a.name.cmp(&b.name)));
    for (kind, mean) in [("thread", 30_000.0), ("kworker", 5_000.0)] {
        culprits.push(culprit(
            kind,
            OTHERS,
            None,
            busy * (5.0 + random.exponential(10.0)),
            mean,
        ));
    }
    let buckets = buckets(&culprits);
    let stalls = buckets
        .iter()
        .filter(|of| of.key == STALLS_KEY)
        .map(|of| of.count)
        .sum();
    let longest = longest(cpus, by_its_clock, random, &culprits);
    GroupHour {
        cpus: cpus.clone(),
        stalls,
        stalled_ns: culprits.iter().map(|of| of.time_ns).sum(),
        longest_ns: longest[0].length_ns,
        measured_ns: cpus.len() as u64 * HOUR_NS,
        lost: 0,
        culprits,
        buckets,
        longest,
    }
}

/// The pods of a host: always the same, the first the busiest, as in a long tail.
fn pods(host: &Host, busy: f64, random: &mut SplitMix64, culprits: &mut Vec<RollupCulprit>) {
    for rank in 0..8 {
        let mut pod = SplitMix64(host.number * 8 + rank);
        // Few pods run on very many hosts, most on one.
        let owner = match rank {
            0 | 1 => format!("pod:daemon-{}-{}", host.cluster, rank),
            _ => format!("pod:{:08x}-{:04x}", pod.bits() >> 32, pod.below(1 << 16)),
        };
        let name = POD_THREADS[pod.below(POD_THREADS.len() as u64) as usize];
        let count = busy * 60.0 / (rank + 1) as f64 * (0.5 * random.normal()).exp();
        culprits.push(culprit("thread", name, Some(&owner), count, 120_000.0));
    }
}

/// Histograms of the parts of each kind, and their sum as that of stalls.
fn buckets(culprits: &[RollupCulprit]) -> Vec<RollupBucket> {
    let mut counts: BTreeMap<(String, i32), u64> = BTreeMap::new();
    for of in culprits {
        let middle = exponential_bucket(Nanos(of.time_ns / of.count.max(1)));
        for step in -5..=10 {
            // A bell with a longer upper side.
            let width = if step < 0 { 2.0 } else { 3.0 };
            let share = 0.16 * (-0.5 * (f64::from(step) / width).powi(2)).exp();
            let count = (share * of.count as f64).round() as u64;
            if count > 0 {
                for key in [STALLS_KEY.to_owned(), key_of_kind(&of.kind)] {
                    *counts.entry((key, middle + step)).or_default() += count;
                }
            }
        }
    }
    let row = |((key, bucket), count)| RollupBucket { key, bucket, count };
    counts.into_iter().map(row).collect()
}

/// The longest stalls: each of two or three of the largest culprits.
fn longest(
    cpus: &CpuSet,
    by_its_clock: u64,
    random: &mut SplitMix64,
    culprits: &[RollupCulprit],
) -> Vec<RollupStall> {
    let numbers: Vec<u32> = cpus.iter().map(|cpu| cpu.0).collect();
    let mut stalls: Vec<RollupStall> = (0..LONGEST)
        .map(|_| {
            let parts: Vec<RollupPart> = (0..2 + random.below(2))
                .map(|_| {
                    let of = &culprits[random.below(culprits.len().min(12) as u64) as usize];
                    RollupPart {
                        kind: of.kind.clone(),
                        name: of.name.clone(),
                        owner: of.owner.clone(),
                        phase: (of.kind == "timer").then(|| "interrupt".to_owned()),
                        time_ns: 1 + (of.longest_ns as f64 * (0.5 + random.uniform())) as u64,
                    }
                })
                .collect();
            RollupStall {
                cpu: numbers[random.below(numbers.len() as u64) as usize],
                start_ns: hour_start_s(by_its_clock) * 1_000_000_000 + random.below(HOUR_NS),
                length_ns: parts.iter().map(|part| part.time_ns).sum(),
                parts,
            }
        })
        .collect();
    stalls.sort_by_key(|of| Reverse(of.length_ns));
    stalls
}
