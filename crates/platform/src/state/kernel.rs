//! The kernel: its version, build options and boot settings.

use super::{chosen, cut, missing, switch, text};
use crate::machine::Machine;
use flate2::read::GzDecoder;
use jitterscope_model::{HostFacts, KernelState, Reading};
use std::collections::BTreeMap;
use std::io::Read;

/// Options that affect stalls. Options that are not set are left out.
const OPTIONS: [&str; 33] = [
    "CONTEXT_TRACKING_USER_FORCE",
    "CPU_ISOLATION",
    "CPU_MITIGATIONS",
    "DEBUG_ATOMIC_SLEEP",
    "DEBUG_PREEMPT",
    "HIGH_RES_TIMERS",
    "HZ",
    "HZ_PERIODIC",
    "IRQ_FORCED_THREADING",
    "IRQ_TIME_ACCOUNTING",
    "KASAN",
    "KFENCE",
    "LOCKDEP",
    "MITIGATION_PAGE_TABLE_ISOLATION",
    "NO_HZ_FULL",
    "NO_HZ_IDLE",
    "NUMA_BALANCING",
    "PREEMPT",
    "PREEMPT_DYNAMIC",
    "PREEMPT_LAZY",
    "PREEMPT_NONE",
    "PREEMPT_RT",
    "PREEMPT_VOLUNTARY",
    "PROVE_LOCKING",
    "RCU_BOOST",
    "RCU_NOCB_CPU",
    "RCU_NOCB_CPU_DEFAULT_ALL",
    "SCHED_CORE",
    "SCHED_DEBUG",
    "SLUB_DEBUG_ON",
    "TICK_CPU_ACCOUNTING",
    "VIRT_CPU_ACCOUNTING_GEN",
    "WQ_POWER_EFFICIENT_DEFAULT",
];
/// The largest configuration that is read, in bytes: real ones have 300 KiB.
const LARGEST: u64 = 8 << 20;
const VULNERABILITIES: &str = "/sys/devices/system/cpu/vulnerabilities";
const CLOCKSOURCE: &str = "/sys/devices/system/clocksource/clocksource0";

pub(super) fn read(machine: &Machine, host: &HostFacts) -> KernelState {
    KernelState {
        release: host.kernel_release.clone(),
        version: host.kernel_version.clone(),
        arch: host.arch.clone(),
        boot_line: text(machine, "/proc/cmdline"),
        hypervisor: host.hypervisor.clone().into(),
        preemption: text(machine, "/sys/kernel/debug/sched/preempt").map(|text| {
            // The active mode is in parentheses: `none voluntary (full)`.
            let mode = text
                .split_once('(')
                .and_then(|(_, rest)| rest.split_once(')'));
            mode.map_or_else(|| text.clone(), |(mode, _)| mode.to_owned())
        }),
        realtime: switch(machine, "/sys/kernel/realtime"),
        config: config(machine, &host.kernel_release),
        clocksource: text(machine, &format!("{CLOCKSOURCE}/current_clocksource")),
        clocksources: text(machine, &format!("{CLOCKSOURCE}/available_clocksource"))
            .map(|text| text.split_whitespace().map(str::to_owned).collect()),
        mitigations: mitigations(machine),
    }
}

fn mitigations(machine: &Machine) -> Reading<BTreeMap<String, String>> {
    let known: BTreeMap<String, String> = machine
        .list(VULNERABILITIES)
        .into_iter()
        .filter_map(|name| {
            let state = text(machine, &format!("{VULNERABILITIES}/{name}"))
                .value()?
                .clone();
            Some((name, cut(chosen(state), 256)))
        })
        .collect();
    if known.is_empty() {
        Reading::Absent
    } else {
        Reading::Value(known)
    }
}

/// The configuration of the running kernel: first the kernel's own copy, then the distribution's file.
fn config(machine: &Machine, release: &str) -> Reading<BTreeMap<String, String>> {
    let own = std::fs::File::open(machine.path("/proc/config.gz"));
    if let Ok(file) = own {
        let mut plain = String::new();
        return match GzDecoder::new(file)
            .take(LARGEST)
            .read_to_string(&mut plain)
        {
            Ok(_) => Reading::Value(options(&plain)),
            Err(error) => Reading::refused(error.to_string()),
        };
    }
    // A release names a folder; a value that leads out of that folder is not a release.
    if release.is_empty() || release.contains('/') {
        return Reading::Absent;
    }
    let mut last = Reading::Absent;
    for path in [
        format!("/boot/config-{release}"),
        format!("/lib/modules/{release}/config"),
    ] {
        match machine.read(&path) {
            Ok(text) => return Reading::Value(options(&text)),
            Err(error) => last = missing(&error),
        }
    }
    last
}

fn options(text: &str) -> BTreeMap<String, String> {
    text.lines()
        .filter_map(|line| line.strip_prefix("CONFIG_")?.split_once('='))
        .filter(|(name, _)| OPTIONS.binary_search(name).is_ok())
        .map(|(name, value)| (name.to_owned(), cut(value.to_owned(), 64)))
        .collect()
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::state::fake;
    use flate2::{Compression, write::GzEncoder};
    use std::io::Write;

    #[test]
    fn the_options_are_sorted_for_the_search() {
        assert!(OPTIONS.is_sorted());
    }

    #[test]
    fn the_kernels_own_configuration_comes_first() {
        let text =
            "# CONFIG_PREEMPT_RT is not set\nCONFIG_HZ=250\nCONFIG_NO_HZ_FULL=y\nCONFIG_FOO=m\n";
        let files = [
            ("/proc/cmdline", "nohz_full=3\n"),
            ("/boot/config-6.1", "CONFIG_HZ=100\n"),
        ];
        let (dir, machine) = fake::machine(&files);
        let host = HostFacts {
            kernel_release: "6.1".into(),
            ..HostFacts::default()
        };
        let hz = |state: &KernelState| state.config.value().and_then(|c| c.get("HZ").cloned());
        assert_eq!(hz(&read(&machine, &host)).as_deref(), Some("100"));
        let file = std::fs::File::create(dir.path().join("proc/config.gz")).unwrap();
        let mut gz = GzEncoder::new(file, Compression::fast());
        gz.write_all(text.as_bytes()).unwrap();
        gz.finish().unwrap();
        let state = read(&machine, &host);
        assert_eq!(hz(&state).as_deref(), Some("250"));
        assert_eq!(state.config.value().unwrap().len(), 2);
        std::fs::write(dir.path().join("proc/config.gz"), "no gzip").unwrap();
        assert!(matches!(
            read(&machine, &host).config,
            Reading::Unreadable(_)
        ));
        let outside = HostFacts {
            kernel_release: "../../etc/passwd".into(),
            ..HostFacts::default()
        };
        std::fs::remove_file(dir.path().join("proc/config.gz")).unwrap();
        assert_eq!(read(&machine, &outside).config, Reading::Absent);
    }

    #[test]
    fn the_mode_in_force_is_reported() {
        let (_dir, machine) = fake::machine(&[
            (
                "/sys/kernel/debug/sched/preempt",
                "none voluntary (full) lazy\n",
            ),
            (
                "/sys/devices/system/cpu/vulnerabilities/mds",
                "Mitigation: Clear CPU buffers\n",
            ),
        ]);
        let state = read(&machine, &HostFacts::default());
        assert_eq!(state.preemption, Reading::Value("full".into()));
        assert_eq!(
            state.mitigations.value().unwrap()["mds"],
            "Mitigation: Clear CPU buffers"
        );
    }
}
