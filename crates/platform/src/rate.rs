//! Which clock is reliable here, and how fast it runs.

use crate::clock;
use crate::machine::Machine;
use jitterscope_model::{
    ClockFailure, ClockKind, ClockReading, Nanos, RateSource, SourceProblem, TickRate, TscFlaw,
};
use std::io::Read;
use std::os::unix::fs::OpenOptionsExt;
use std::time::{Duration, Instant};

/// The clock for a recording.
#[derive(Clone, Debug)]
pub struct ClockChoice {
    pub kind: ClockKind,
    pub rate: TickRate,
    /// Why the TSC is not used, if it is not.
    pub fallback_reason: Option<TscFlaw>,
    /// What the CPU does not guarantee about the TSC, if the user chose it anyway.
    pub doubt: Option<TscFlaw>,
}

/// Why there is no clock.
#[derive(Debug, thiserror::Error)]
pub enum ClockError {
    /// The user insisted on the TSC.
    #[error("the TSC cannot be trusted here")]
    TscUnusable(TscFlaw),
    /// The clock does not advance.
    #[error("the clock did not advance during calibration")]
    Stuck,
}

impl From<ClockError> for SourceProblem {
    fn from(error: ClockError) -> SourceProblem {
        match error {
            ClockError::TscUnusable(because) => SourceProblem::NoTsc {
                because: because.into(),
            },
            ClockError::Stuck => SourceProblem::NoClock {
                because: ClockFailure::Stuck.into(),
            },
        }
    }
}

/// How long to check a stated rate: the width of the two readings is some 20 ppm of this.
const CHECK: Duration = Duration::from_millis(20);
/// A stated rate that differs from our own calibration by more than this is dropped.
const MAX_DISAGREEMENT_PPB: u64 = 500_000;

/// Chooses the TSC if it is constant, never stops and is the kernel's own clock source, else `CLOCK_MONOTONIC_RAW`.
/// `wanted` forces one: then the TSC is used even if the CPU does not guarantee that it is constant, as long as the
/// kernel keeps time by it. Takes `calibration` of real time.
///
/// # Errors
/// The user chose the TSC and it is not reliable, or the clock stands still.
pub fn choose_clock(
    machine: &Machine,
    wanted: Option<ClockKind>,
    calibration: Duration,
) -> Result<ClockChoice, ClockError> {
    ClockCheck::begin(machine, wanted, calibration)?.finish()
}

/// A chosen clock whose rate is being checked. The check takes time, in which the caller can do other work.
#[derive(Debug)]
pub struct ClockCheck {
    kind: ClockKind,
    fallback_reason: Option<TscFlaw>,
    doubt: Option<TscFlaw>,
    /// `None` if the rate is known without a check.
    rate: Option<RateCheck>,
}

impl ClockCheck {
    /// Chooses as [`choose_clock`] does, and reads the clock for the first time.
    ///
    /// # Errors
    /// The user chose the TSC and it is not reliable.
    pub fn begin(
        machine: &Machine,
        wanted: Option<ClockKind>,
        calibration: Duration,
    ) -> Result<ClockCheck, ClockError> {
        let monotonic_raw = |reason| ClockCheck {
            kind: ClockKind::MonotonicRaw,
            fallback_reason: Some(reason),
            doubt: None,
            rate: None,
        };
        let tsc = |doubt| ClockCheck {
            kind: ClockKind::Tsc,
            fallback_reason: None,
            doubt,
            rate: Some(RateCheck::begin(calibration)),
        };
        if wanted == Some(ClockKind::MonotonicRaw) {
            return Ok(monotonic_raw(TscFlaw::NotWanted));
        }
        match (wanted, tsc_trust(machine)) {
            (_, TscTrust::Sure) => Ok(tsc(None)),
            (Some(_), TscTrust::KernelOnly(flaw)) => Ok(tsc(Some(flaw))),
            (Some(_), TscTrust::None(flaw)) => Err(ClockError::TscUnusable(flaw)),
            (None, TscTrust::KernelOnly(flaw) | TscTrust::None(flaw)) => Ok(monotonic_raw(flaw)),
        }
    }

    #[must_use]
    pub fn kind(&self) -> ClockKind {
        self.kind
    }

    /// The rate, measured up to now: good enough for timeouts, not for measurements.
    ///
    /// # Errors
    /// The clock stands still.
    pub fn rough_rate(&self) -> Result<TickRate, ClockError> {
        self.rate
            .as_ref()
            .map_or(Ok(TickRate::NANOSECONDS), RateCheck::measured)
    }

    /// Waits for the end of the check. Returns the clock and its rate.
    ///
    /// # Errors
    /// The clock stands still.
    pub fn finish(self) -> Result<ClockChoice, ClockError> {
        let ClockCheck {
            kind,
            fallback_reason,
            doubt,
            rate,
        } = self;
        let rate = rate.map_or(Ok(TickRate::NANOSECONDS), RateCheck::finish)?;
        Ok(ClockChoice {
            kind,
            rate,
            fallback_reason,
            doubt,
        })
    }
}

enum TscTrust {
    /// The CPU guarantees that it is constant, and the kernel keeps time by it.
    Sure,
    /// Only the kernel, which compares it with other clocks where it can. Holds what the CPU does not guarantee.
    KernelOnly(TscFlaw),
    None(TscFlaw),
}

fn tsc_trust(machine: &Machine) -> TscTrust {
    if !cfg!(target_arch = "x86_64") {
        return TscTrust::None(TscFlaw::NoTsc);
    }
    match machine.read_trimmed("/sys/devices/system/clocksource/clocksource0/current_clocksource") {
        Ok(source) if source == "tsc" => {}
        Ok(source) => return TscTrust::None(TscFlaw::OtherClockSource { source }),
        Err(error) => {
            return TscTrust::None(TscFlaw::ClockSourceUnreadable {
                system: error.source.to_string(),
            });
        }
    }
    let cpuinfo = machine.read("/proc/cpuinfo").unwrap_or_default();
    let flags = cpuinfo
        .lines()
        .find(|l| l.starts_with("flags"))
        .unwrap_or_default();
    let has = |flag: &str| flags.split_whitespace().any(|f| f == flag);
    if !has("constant_tsc") {
        return TscTrust::KernelOnly(TscFlaw::NotConstant);
    }
    if !has("nonstop_tsc") {
        return TscTrust::KernelOnly(TscFlaw::StopsInIdle);
    }
    TscTrust::Sure
}

/// The TSC's rate while it is being checked.
#[derive(Debug)]
struct RateCheck {
    first: ClockReading,
    began: Instant,
    /// The stated rate in Hz, and its source.
    stated: Option<(u64, RateSource)>,
    length: Duration,
}

impl RateCheck {
    fn begin(calibration: Duration) -> RateCheck {
        let (first, began) = (clock::read_all(ClockKind::Tsc), Instant::now());
        // Read during the check, because the kernel's log may be long.
        let stated = stated_rate();
        let length = if stated.is_some() {
            calibration.min(CHECK)
        } else {
            calibration
        };
        RateCheck {
            first,
            began,
            stated,
            length,
        }
    }

    fn measured(&self) -> Result<TickRate, ClockError> {
        let (hz, error_ppb) = calibrate(self.first)?;
        Ok(TickRate {
            hz,
            error_ppb,
            source: RateSource::Calibrated,
        })
    }

    fn finish(self) -> Result<TickRate, ClockError> {
        std::thread::sleep(self.length.saturating_sub(self.began.elapsed()));
        let measured = self.measured()?;
        let Some((hz, source)) = self.stated else {
            return Ok(measured);
        };
        let disagreement = ppb(hz.abs_diff(measured.hz), measured.hz);
        if disagreement > MAX_DISAGREEMENT_PPB {
            return Ok(measured);
        }
        Ok(TickRate {
            hz,
            error_ppb: disagreement + measured.error_ppb,
            source,
        })
    }
}

fn ppb(part: u64, whole: u64) -> u64 {
    u64::try_from(u128::from(part) * 1_000_000_000 / u128::from(whole.max(1))).unwrap_or(u64::MAX)
}

/// Ticks per second since `first`, against `CLOCK_MONOTONIC_RAW`, and the bound of its error in parts per billion, from
/// the width of the two readings.
fn calibrate(first: ClockReading) -> Result<(u64, u64), ClockError> {
    let last = clock::read_all(ClockKind::Tsc);
    let ticks = last.ticks.since(first.ticks).0;
    let nanos = Nanos(last.monotonic_raw_ns.saturating_sub(first.monotonic_raw_ns)).0;
    if ticks == 0 || nanos == 0 {
        return Err(ClockError::Stuck);
    }
    let hz = u128::from(ticks) * 1_000_000_000 / u128::from(nanos);
    let hz = u64::try_from(hz).unwrap_or(u64::MAX);
    Ok((hz, ppb(first.width_ticks + last.width_ticks, ticks)))
}

/// The rate that the CPU, the hypervisor or the kernel states; the most exact source first.
fn stated_rate() -> Option<(u64, RateSource)> {
    cpuid_rate().or_else(|| kernel_log_rate().map(|hz| (hz, RateSource::Kernel)))
}

#[cfg(target_arch = "x86_64")]
fn cpuid_rate() -> Option<(u64, RateSource)> {
    use core::arch::x86_64::__cpuid;
    let highest = __cpuid(0).eax;
    if highest >= 0x15 {
        // Intel SDM volume 2, CPUID leaf 15H: TSC = crystal (ECX) * numerator (EBX) / denominator (EAX).
        let leaf = __cpuid(0x15);
        if leaf.eax != 0 && leaf.ebx != 0 && leaf.ecx != 0 {
            let hz = u64::from(leaf.ecx) * u64::from(leaf.ebx) / u64::from(leaf.eax);
            return Some((hz, RateSource::Cpuid));
        }
    }
    let hypervisor = __cpuid(1).ecx & (1 << 31) != 0;
    if hypervisor && (0x4000_0010..0x4001_0000).contains(&__cpuid(0x4000_0000).eax) {
        // The timing leaf that VMware introduced and KVM shares: EAX is the TSC rate in kHz.
        let khz = __cpuid(0x4000_0010).eax;
        if khz != 0 {
            return Some((u64::from(khz) * 1000, RateSource::HypervisorCpuid));
        }
    }
    None
}

#[cfg(not(target_arch = "x86_64"))]
fn cpuid_rate() -> Option<(u64, RateSource)> {
    None
}

/// Reads the kernel's log, record by record, up to the boot messages that state the TSC rate.
fn kernel_log_rate() -> Option<u64> {
    let mut log = std::fs::OpenOptions::new()
        .read(true)
        .custom_flags(libc::O_NONBLOCK)
        .open("/dev/kmsg")
        .ok()?;
    let mut record = [0u8; 8192];
    let mut best = None;
    // The buffer holds a bounded log; the limit only guards against a log that grows during the read.
    for _ in 0..20_000 {
        match log.read(&mut record) {
            Ok(0) => break,
            Ok(n) => best = rate_in_message(&String::from_utf8_lossy(&record[..n])).or(best),
            // EPIPE: records were overwritten meanwhile; reading goes on with the oldest left.
            Err(error) if error.raw_os_error() == Some(libc::EPIPE) => {}
            Err(_) => break,
        }
    }
    best
}

/// The rate in a message such as `tsc: Refined TSC clocksource calibration: 2600.001 MHz`, in Hz.
fn rate_in_message(message: &str) -> Option<u64> {
    let text = message.lines().next()?.split_once(';')?.1;
    let rest = text
        .strip_prefix("tsc: Refined TSC clocksource calibration: ")
        .or_else(|| text.strip_prefix("tsc: Detected ")?.strip_suffix(" TSC"))
        .or_else(|| {
            text.strip_prefix("tsc: Detected ")?
                .strip_suffix(" processor")
        })?;
    let mhz = rest.strip_suffix(" MHz")?;
    let (whole, fraction) = mhz.split_once('.').unwrap_or((mhz, "0"));
    let whole: u64 = whole.parse().ok()?;
    let thousandths: u64 = format!("{fraction:0<3}").get(..3)?.parse().ok()?;
    whole
        .checked_mul(1_000_000)?
        .checked_add(thousandths * 1000)
}

#[cfg(test)]
mod tests {
    use super::*;
    use std::fs;

    #[test]
    fn the_kernel_log_states_the_rate() {
        let hz = |m| rate_in_message(m);
        assert_eq!(
            hz("6,1,0,-;tsc: Refined TSC clocksource calibration: 2600.001 MHz"),
            Some(2_600_001_000)
        );
        assert_eq!(
            hz("6,1,0,-;tsc: Detected 3333.3 MHz processor"),
            Some(3_333_300_000)
        );
        assert_eq!(
            hz("6,1,0,-;tsc: Detected 2600.000 MHz TSC\n SUBSYSTEM=x"),
            Some(2_600_000_000)
        );
        assert_eq!(hz("6,1,0,-;usb: tsc: Detected 3333.3 MHz processor"), None);
        assert_eq!(
            hz("6,1,0,-;tsc: Detected 99999999999999999999 MHz processor"),
            None
        );
        assert_eq!(hz("tsc"), None);
    }

    fn fake(flags: &str, clocksource: &str) -> tempfile::TempDir {
        let dir = tempfile::tempdir().unwrap();
        let cs = dir
            .path()
            .join("sys/devices/system/clocksource/clocksource0");
        fs::create_dir_all(&cs).unwrap();
        fs::create_dir_all(dir.path().join("proc")).unwrap();
        fs::write(cs.join("current_clocksource"), clocksource).unwrap();
        fs::write(
            dir.path().join("proc/cpuinfo"),
            format!("processor : 0\nflags\t\t: {flags}\n"),
        )
        .unwrap();
        dir
    }

    #[test]
    fn the_tsc_is_passed_over_unless_constant_nonstop_and_current() {
        for (flags, source, flaw) in [
            ("fpu nonstop_tsc", "tsc", TscFlaw::NotConstant),
            ("fpu constant_tsc", "tsc", TscFlaw::StopsInIdle),
            (
                "constant_tsc nonstop_tsc",
                "hpet",
                TscFlaw::OtherClockSource {
                    source: "hpet".into(),
                },
            ),
        ] {
            let dir = fake(flags, source);
            let machine = Machine::at(dir.path());
            let choice = choose_clock(&machine, None, Duration::from_millis(1)).unwrap();
            assert_eq!(choice.kind, ClockKind::MonotonicRaw);
            assert_eq!(choice.fallback_reason.as_ref(), Some(&flaw));
            let asked = choose_clock(&machine, Some(ClockKind::Tsc), Duration::from_millis(1));
            if source == "tsc" {
                let asked = asked.unwrap();
                assert_eq!((asked.kind, asked.fallback_reason), (ClockKind::Tsc, None));
                assert_eq!(asked.doubt, Some(flaw));
                assert!(asked.rate.hz > 100_000_000);
            } else {
                assert!(matches!(asked, Err(ClockError::TscUnusable(found)) if found == flaw));
            }
        }
    }

    #[test]
    fn without_the_kernel_the_tsc_is_refused_even_if_it_is_asked_for() {
        let dir = fake("fpu", "hpet");
        let asked = choose_clock(
            &Machine::at(dir.path()),
            Some(ClockKind::Tsc),
            Duration::from_millis(1),
        );
        let hpet = TscFlaw::OtherClockSource {
            source: "hpet".into(),
        };
        assert!(matches!(asked, Err(ClockError::TscUnusable(found)) if found == hpet));
    }

    #[test]
    fn a_good_tsc_is_calibrated_to_a_stated_error() {
        let dir = fake("constant_tsc nonstop_tsc", "tsc");
        let choice =
            choose_clock(&Machine::at(dir.path()), None, Duration::from_millis(20)).unwrap();
        assert_eq!((choice.kind, choice.doubt), (ClockKind::Tsc, None));
        assert!(choice.rate.hz > 100_000_000 && choice.rate.error_ppb < MAX_DISAGREEMENT_PPB * 2);
    }
}
