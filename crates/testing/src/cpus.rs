use std::fs;

/// The highest online CPU: the default of a recording if no CPU is named and none is isolated.
///
/// # Panics
/// If sysfs has no list of CPUs.
#[must_use]
pub fn highest_cpu() -> u32 {
    let online = fs::read_to_string("/sys/devices/system/cpu/online").expect("a list of CPUs");
    let highest = online.trim().rsplit([',', '-']).next();
    highest
        .and_then(|cpu| cpu.parse().ok())
        .expect("a number of a CPU")
}
