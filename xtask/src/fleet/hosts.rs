//! The hosts of a generated fleet, and what is planted in it.

use jitterscope_model::CpuSet;
use jitterscope_store::rollup::RollupHost;
use jitterscope_testing::SplitMix64;
use serde_json::{Value, json};

/// Hours of a day.
pub const DAY: u64 = 24;
/// 2 November 2026, 00:00 UTC, in hours since the epoch.
pub const FIRST_HOUR: u64 = 498_216;
pub const CLUSTERS: [&str; 3] = ["ams", "iad", "sin"];
/// The culprit that takes longer on the last kernel, and by how much.
pub const SLOWER: (&str, &str, f64) = ("softirq", "NET_RX", 1.3);
/// How far the wrong clock is ahead, hours.
pub const AHEAD: u64 = 3;
/// The hours in which it is, from the fleet's first.
pub const AHEAD_HOURS: std::ops::Range<u64> = 30..42;
/// From this hour on, a host has another name.
pub const RENAMED_AT: u64 = 36;
/// From this hour on, the noisy pod runs.
pub const NOISY_FROM: u64 = DAY;
pub const NOISY: &str = "pod:5d1c0ffe-0bad-4a11-8a00-000000000001";
/// The thread of that pod.
pub const NOISY_THREAD: &str = "transcode";

/// Processors, products, and the CPUs that are measured on each NUMA node.
const MACHINES: [(&str, &str, &[&str]); 4] = [
    ("AMD EPYC 9354P", "Dell PowerEdge R6615", &["2-31"]),
    ("AMD EPYC 7443P", "Supermicro AS-1114S", &["2-23"]),
    (
        "Intel Xeon Gold 6430",
        "HPE ProLiant DL360",
        &["2-31", "34-63"],
    ),
    ("Intel Xeon Silver 4314", "Lenovo SR630", &["2-15"]),
];
const KERNELS: [&str; 3] = ["6.1.0-37-amd64", "6.12.48-amd64", "6.12.57-amd64"];
const TUNINGS: [&str; 2] = ["isolated-4f1a09c2", "default-90b3d7e1"];

/// A host that stays the same over the days.
pub struct Host {
    pub number: u64,
    pub cluster: &'static str,
    pub groups: Vec<CpuSet>,
    /// How much more than an average host it loses.
    pub level: f64,
    pub is_slower: bool,
    pub is_tuned: bool,
    pub machine: usize,
    described: RollupHost,
}

/// The numbers of the hosts with planted causes.
pub struct Planted {
    pub firmware: u64,
    pub noisy: Vec<u64>,
    pub renamed: u64,
    pub ahead: u64,
}

impl Planted {
    pub fn new(hosts: u64) -> Planted {
        Planted {
            firmware: hosts / 3,
            noisy: (0..3).map(|of| hosts / 2 + of * 17).collect(),
            renamed: 5,
            ahead: 7,
        }
    }

    /// What a question must find, for the evidence.
    pub fn to_json(&self, hosts: u64, days: u64, host_hours: u64) -> Value {
        json!({
            "hosts": hosts,
            "days": days,
            "host_hours": host_hours,
            "firmware_host": id(self.firmware),
            "noisy_pod": NOISY,
            "noisy_hosts": self.noisy.len(),
            "slower_kernel": KERNELS[KERNELS.len() - 1],
            "slower_culprit": [SLOWER.0, SLOWER.1, SLOWER.2],
            "renamed_host": id(self.renamed),
            "host_ahead": id(self.ahead),
            "ahead_s": AHEAD * 3600,
        })
    }
}

fn id(number: u64) -> String {
    format!("{:016x}", SplitMix64(number).bits())
}

impl Host {
    /// Machines, kernels and tunings are spread evenly, so that a group of twins has as many hosts as another.
    pub fn new(number: u64, seed: u64) -> Host {
        let mut random = SplitMix64(seed ^ (number + 1).wrapping_mul(0x1000_0000_01b3));
        let pick = |step: u64, of: usize| (number / step) as usize % of;
        let machine = pick(1, MACHINES.len());
        let kernel = pick(4, KERNELS.len());
        let tuning = pick(12, TUNINGS.len());
        let (cpu_model, product, groups) = MACHINES[machine];
        let cluster = CLUSTERS[pick(24, CLUSTERS.len())];
        let firmware = (machine != 1).then(|| format!("2.{}", 1 + number % 3));
        Host {
            number,
            cluster,
            groups: groups.iter().filter_map(|cpus| cpus.parse().ok()).collect(),
            level: (0.25 * random.normal()).exp(),
            is_slower: kernel == KERNELS.len() - 1,
            is_tuned: tuning == 0,
            machine,
            described: RollupHost {
                id: id(number),
                name: format!("{cluster}-node-{number:04}"),
                boot: format!("{:08x}-0000-4000-8000-{number:012x}", random.bits() >> 32),
                kernel: KERNELS[kernel].to_owned(),
                cpu_model: cpu_model.to_owned(),
                machine: product.to_owned(),
                firmware,
                tuning: TUNINGS[tuning].to_owned(),
                version: env!("CARGO_PKG_VERSION").to_owned(),
                probe: "spin".to_owned(),
            },
        }
    }

    /// An hour of the fleet by the clock of the host, from the epoch.
    pub fn clock_hour(&self, hour: u64, planted: &Planted) -> u64 {
        let is_ahead = self.number == planted.ahead && AHEAD_HOURS.contains(&hour);
        FIRST_HOUR + hour + if is_ahead { AHEAD } else { 0 }
    }

    /// How it describes itself in an hour of the fleet.
    pub fn described(&self, hour: u64, planted: &Planted) -> RollupHost {
        let mut described = self.described.clone();
        if self.number == planted.renamed && hour >= RENAMED_AT {
            described.name = format!("{}-db-01", self.cluster);
        }
        described
    }
}
