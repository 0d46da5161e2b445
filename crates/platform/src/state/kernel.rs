//! The options of the kernel's build.

use super::files::cut;
use super::missing;
use crate::machine::Machine;
use flate2::read::GzDecoder;
use jitterscope_model::{MachineEntry, MachineSettings, Reading};
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

pub(super) fn read(machine: &Machine, release: &str, settings: &mut MachineSettings) {
    let entries = match config(machine, release) {
        Reading::Value(options) => options,
        why => vec![why.and_then(|_| Reading::Absent).into()],
    };
    settings.put("kernel.config", entries);
}

/// The configuration of the running kernel: first the kernel's own copy, then the distribution's file.
fn config(machine: &Machine, release: &str) -> Reading<Vec<MachineEntry>> {
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

fn options(text: &str) -> Vec<MachineEntry> {
    text.lines()
        .filter_map(|line| line.strip_prefix("CONFIG_")?.split_once('='))
        .filter(|(name, _)| OPTIONS.binary_search(name).is_ok())
        .map(|(name, value)| MachineEntry::new(cut(value.to_owned(), 64)).of(name))
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
        let settings = |release: &str| {
            let mut settings = MachineSettings::default();
            read(&machine, release, &mut settings);
            settings
        };
        let hz = || {
            let settings = settings("6.1");
            let all = settings.get("kernel.config").iter();
            let mut found = all.filter(|entry| entry.of.as_deref() == Some("HZ"));
            found
                .next()
                .and_then(|entry| entry.text().map(str::to_owned))
        };
        assert_eq!(hz().as_deref(), Some("100"));
        let file = std::fs::File::create(dir.path().join("proc/config.gz")).unwrap();
        let mut gz = GzEncoder::new(file, Compression::fast());
        gz.write_all(text.as_bytes()).unwrap();
        gz.finish().unwrap();
        assert_eq!(hz().as_deref(), Some("250"));
        assert_eq!(settings("6.1").get("kernel.config").len(), 2);
        std::fs::write(dir.path().join("proc/config.gz"), "no gzip").unwrap();
        assert!(matches!(
            settings("6.1").get("kernel.config")[0].is,
            Reading::Unreadable(_)
        ));
        std::fs::remove_file(dir.path().join("proc/config.gz")).unwrap();
        assert_eq!(settings("../../etc/passwd").get("kernel.config"), []);
    }
}
