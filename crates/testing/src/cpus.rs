use std::fs;

/// The highest CPU that is online: what a recording takes where none is named and none is isolated.
///
/// # Panics
/// Without a list of CPUs in sysfs.
#[must_use]
pub fn highest_cpu() -> u32 {
    let online = fs::read_to_string("/sys/devices/system/cpu/online").expect("a list of CPUs");
    let highest = online.trim().rsplit([',', '-']).next();
    highest
        .and_then(|cpu| cpu.parse().ok())
        .expect("a number of a CPU")
}
