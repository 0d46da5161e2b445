//! The count of system management interrupts, which belong to firmware, from model-specific register 0x34.

use jitterscope_model::{CpuId, SourceLoss, SourceProblem, SourceReport, SourceStatus};
use jitterscope_platform::Machine;
use rustix::io::Errno;
use std::fs::File;
use std::os::unix::fs::FileExt;

/// `MSR_SMI_COUNT` (Intel SDM volume 4): SMIs since reset, in the low 32 bits.
const REGISTER: u64 = 0x34;

/// Why SMIs cannot be counted.
#[derive(Debug, thiserror::Error)]
pub enum SmiError {
    /// There is no register device.
    #[error("/dev/cpu/{0}/msr is not there: the kernel has no msr driver, or it is not loaded")]
    NoDevice(CpuId),
    /// The register device exists, but this user may not read it.
    #[error(
        "/dev/cpu/{0}/msr is refused: reading it needs root with CAP_SYS_RAWIO and no kernel lockdown"
    )]
    Denied(CpuId),
    /// The processor has no such register.
    #[error("CPU {0} has no SMI counter (Intel processors since Nehalem have it)")]
    NoRegister(CpuId),
    #[error("/dev/cpu/{cpu}/msr: {source}")]
    Read { cpu: CpuId, source: std::io::Error },
}

impl SmiError {
    /// The source for a report.
    #[must_use]
    pub fn report(&self, virtual_machine: bool) -> SourceReport {
        let problem = match self {
            SmiError::NoDevice(cpu) => SourceProblem::NoMsrDevice {
                cpu: *cpu,
                virtual_machine,
            },
            SmiError::Denied(cpu) => SourceProblem::MsrDenied {
                cpu: *cpu,
                virtual_machine,
            },
            SmiError::NoRegister(cpu) => SourceProblem::NoSmiCount {
                cpu: *cpu,
                virtual_machine,
            },
            SmiError::Read { cpu, source } => SourceProblem::MsrUnreadable {
                cpu: *cpu,
                virtual_machine,
                system: source.to_string(),
            },
        };
        // In a virtual machine, even an accessible register would not count the host's firmware.
        let status = match self {
            SmiError::Denied(_) if !virtual_machine => SourceStatus::Denied,
            _ => SourceStatus::Absent,
        };
        SourceReport::limited("smi", status, problem, SourceLoss::Firmware)
    }
}

/// Whether `/proc/cpuinfo` says that this is a virtual machine.
pub(crate) fn virtual_machine(machine: &Machine) -> bool {
    let text = machine.read("/proc/cpuinfo").unwrap_or_default();
    let flags = text.lines().find(|line| line.starts_with("flags"));
    flags.is_some_and(|flags| {
        flags
            .split_ascii_whitespace()
            .any(|flag| flag == "hypervisor")
    })
}

/// An open register device.
#[derive(Debug)]
pub struct SmiCounter {
    cpu: CpuId,
    file: File,
}

impl SmiCounter {
    /// Opens the device of `cpu` and reads it once as a check.
    ///
    /// # Errors
    /// There is no such device or register, or this user may not read it.
    pub fn open(machine: &Machine, cpu: CpuId) -> Result<SmiCounter, SmiError> {
        let file =
            File::open(machine.path(format!("/dev/cpu/{cpu}/msr"))).map_err(|e| error(cpu, e))?;
        let counter = SmiCounter { cpu, file };
        counter.read()?;
        Ok(counter)
    }

    /// SMIs since reset. The read interrupts that CPU unless it is the current one, so do not call it during a
    /// measurement.
    ///
    /// # Errors
    /// As [`SmiCounter::open`].
    pub fn read(&self) -> Result<u32, SmiError> {
        let mut value = [0; 8];
        self.file
            .read_exact_at(&mut value, REGISTER)
            .map_err(|e| error(self.cpu, e))?;
        let [a, b, c, d, ..] = value;
        Ok(u32::from_le_bytes([a, b, c, d]))
    }
}

fn error(cpu: CpuId, source: std::io::Error) -> SmiError {
    match source.raw_os_error().map(Errno::from_raw_os_error) {
        Some(Errno::NOENT | Errno::NXIO | Errno::NODEV) => SmiError::NoDevice(cpu),
        Some(Errno::ACCESS | Errno::PERM) => SmiError::Denied(cpu),
        Some(Errno::IO) => SmiError::NoRegister(cpu),
        _ => SmiError::Read { cpu, source },
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use std::fs;

    #[test]
    fn the_low_half_of_the_register_counts() {
        let dir = tempfile::tempdir().unwrap();
        let machine = Machine::at(dir.path());
        assert!(matches!(
            SmiCounter::open(&machine, CpuId(1)),
            Err(SmiError::NoDevice(CpuId(1)))
        ));
        fs::create_dir_all(dir.path().join("dev/cpu/1")).unwrap();
        let mut registers = vec![0u8; 0x34];
        registers.extend(0x1_0000_0007u64.to_le_bytes());
        fs::write(dir.path().join("dev/cpu/1/msr"), registers).unwrap();
        assert_eq!(
            SmiCounter::open(&machine, CpuId(1))
                .unwrap()
                .read()
                .unwrap(),
            7
        );
        fs::write(dir.path().join("dev/cpu/1/msr"), "").unwrap();
        assert!(matches!(
            SmiCounter::open(&machine, CpuId(1)),
            Err(SmiError::Read { .. })
        ));
    }
}
