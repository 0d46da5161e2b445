//! The state of the machine, read for a run's `machine.json`: one file per topic.
//!
//! Everything is bounded. Many CPUs are grouped; lists of interrupts or cgroups are cut, and state by how much. Names
//! that any user can choose (cgroups) are cut, too.

mod cpusets;
mod firmware;
mod interrupts;
mod kernel;
mod load;
mod memory;
mod processors;
mod workqueues;

pub use load::CpuTimes;

use crate::machine::{FileError, Machine};
use crate::topology::Topology;
use jitterscope_model::{CpuSet, HostFacts, MachineState, Reading, ReadingFlaw};

/// The longest text kept of one file, in bytes: a boot line can have 4 KiB.
const LONGEST: usize = 8192;

/// Reads the state of the machine; leaves absent what other modules provide (load, tuning).
#[must_use]
pub fn machine_state(machine: &Machine, topology: &Topology, host: &HostFacts) -> MachineState {
    MachineState {
        firmware: firmware::read(machine),
        processors: processors::read(machine, topology),
        kernel: kernel::read(machine, host),
        memory: memory::read(machine),
        interrupts: interrupts::read(machine),
        workqueues: workqueues::read(machine),
        cpusets: cpusets::read(machine, topology),
        load: Reading::Absent,
        tuning: Reading::Absent,
    }
}

/// Why a file could not be read.
fn missing<T>(error: &FileError) -> Reading<T> {
    use std::io::ErrorKind::{NotADirectory, NotFound, PermissionDenied, Unsupported};
    match error.source.kind() {
        NotFound | NotADirectory | Unsupported => Reading::Absent,
        PermissionDenied => Reading::Denied,
        // The device exists and does not support this.
        _ if matches!(
            error.source.raw_os_error(),
            Some(libc::ENODEV | libc::ENXIO | libc::EOPNOTSUPP)
        ) =>
        {
            Reading::Absent
        }
        _ => Reading::refused(error.source.to_string()),
    }
}

/// A file's text without surrounding white space, cut to a length that no real one exceeds; an empty text is absent.
fn text(machine: &Machine, path: &str) -> Reading<String> {
    match machine.read_trimmed(path) {
        Ok(text) if text.is_empty() => Reading::Absent,
        Ok(text) => Reading::Value(cut(text, LONGEST)),
        Err(error) => missing(&error),
    }
}

/// At most `longest` bytes, cut at a character boundary.
fn cut(mut text: String, longest: usize) -> String {
    if text.len() > longest {
        let end = (0..=longest)
            .rev()
            .find(|at| text.is_char_boundary(*at))
            .unwrap_or(0);
        text.truncate(end);
    }
    text
}

fn unreadable<T>(flaw: ReadingFlaw) -> Reading<T> {
    Reading::Unreadable(flaw.into())
}

fn number(machine: &Machine, path: &str) -> Reading<u64> {
    text(machine, path).and_then(|text| match text.parse() {
        Ok(number) => Reading::Value(number),
        Err(_) => unreadable(ReadingFlaw::NoNumber {
            text: cut(text, 40),
        }),
    })
}

/// `0` and `1`, `N` and `Y`.
fn switch(machine: &Machine, path: &str) -> Reading<bool> {
    text(machine, path).and_then(|text| match text.as_str() {
        "1" | "Y" => Reading::Value(true),
        "0" | "N" => Reading::Value(false),
        _ => unreadable(ReadingFlaw::NoSwitch {
            text: cut(text, 40),
        }),
    })
}

/// A CPU list. An empty file is the empty set.
fn cpu_list(machine: &Machine, path: &str) -> Reading<CpuSet> {
    cpus(machine, path, |text| text.parse().ok())
}

fn cpu_mask(machine: &Machine, path: &str) -> Reading<CpuSet> {
    cpus(machine, path, CpuSet::from_mask)
}

fn cpus(machine: &Machine, path: &str, parse: impl Fn(&str) -> Option<CpuSet>) -> Reading<CpuSet> {
    match machine.read_trimmed(path) {
        Ok(text) => match parse(&text) {
            Some(cpus) => Reading::Value(cpus),
            None => unreadable(ReadingFlaw::NoCpus {
                text: cut(text, 40),
            }),
        },
        Err(error) => missing(&error),
    }
}

/// The word in brackets of `always [madvise] never`, or the whole text.
fn chosen(text: String) -> String {
    let word = text
        .split_once('[')
        .and_then(|(_, rest)| rest.split_once(']'))
        .map(|(word, _)| word.to_owned());
    word.unwrap_or(text)
}

#[cfg(test)]
pub(crate) mod fake {
    use crate::machine::Machine;
    use std::fs;

    /// A tree of files that resembles a machine.
    pub(crate) fn machine(files: &[(&str, &str)]) -> (tempfile::TempDir, Machine) {
        let dir = tempfile::tempdir().unwrap();
        for (path, text) in files {
            let path = dir.path().join(path.trim_start_matches('/'));
            fs::create_dir_all(path.parent().unwrap()).unwrap();
            fs::write(path, text).unwrap();
        }
        let machine = Machine::at(dir.path());
        (dir, machine)
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::host_facts;

    #[test]
    fn nothing_there_is_absent_not_empty() {
        let (_dir, machine) = fake::machine(&[("/proc/sys/kernel/hostname", "x\n")]);
        let topology = Topology::read(&machine);
        let state = machine_state(&machine, &topology, &host_facts(&machine, &topology));
        assert_eq!(state.firmware.bios_version, Reading::Absent);
        assert_eq!(state.processors.frequency, Reading::Absent);
        assert_eq!(state.kernel.clocksource, Reading::Absent);
        assert_eq!(state.interrupts.rows, []);
        assert_eq!(state.tuning, Reading::Absent);
    }

    #[test]
    fn this_machine_is_read_within_bounds() {
        let machine = Machine::host();
        let topology = Topology::read(&machine);
        let state = machine_state(&machine, &topology, &host_facts(&machine, &topology));
        assert!(!state.kernel.release.is_empty());
        assert!(!state.processors.online.is_empty());
        let text = serde_json::to_string(&state).unwrap();
        assert_eq!(serde_json::from_str::<MachineState>(&text).unwrap(), state);
        assert!(text.len() < 1 << 20, "{} bytes", text.len());
    }

    #[test]
    fn nonsense_is_told_apart_from_absence() {
        let (_dir, machine) = fake::machine(&[("/a", "many\n"), ("/b", "\n"), ("/c", "0-x\n")]);
        assert_eq!(
            number(&machine, "/a"),
            unreadable(ReadingFlaw::NoNumber {
                text: "many".into()
            })
        );
        assert_eq!(number(&machine, "/none"), Reading::Absent);
        assert_eq!(cpu_list(&machine, "/b"), Reading::Value(CpuSet::new()));
        assert_eq!(
            cpu_list(&machine, "/c"),
            unreadable(ReadingFlaw::NoCpus { text: "0-x".into() })
        );
        assert_eq!(cut("h\u{e9}".into(), 2), "h");
    }
}
