//! Programs that some checks need, from the distribution's packages.

use crate::{shell, tools};
use std::path::Path;

/// Program and the Debian package that has it.
const WANTED: [(&str, &str); 3] =
    [("influxd", "influxdb"), ("python3", "python3-venv"), ("perf", "linux-perf")];

/// Services that these packages bring. Debian enables and starts them as it installs; the tests start a
/// server of their own.
const SERVICES: [(&str, &str); 1] = [("influxdb", "influxdb.service")];

/// Installs what is missing, where that can be done. A test that still misses its program says that it
/// is skipped.
pub fn install() {
    let missing: Vec<&str> =
        WANTED.iter().filter(|(program, _)| !is_there(program)).map(|(_, package)| *package).collect();
    if missing.is_empty() {
        return;
    }
    if !is_there("apt-get") {
        eprintln!("not installed, so tests of it are skipped: {}", missing.join(", "));
        return;
    }
    if let Err(error) = apt(&missing) {
        eprintln!("{error:#}; tests of {} are skipped", missing.join(", "));
    }
    // Also after an error: apt may have come as far as the service.
    for service in services_of(&missing) {
        if let Err(error) = switch_off(service) {
            eprintln!("{error:#}; {service} may be running, and start at boot: disable it by hand");
        }
    }
}

fn services_of(packages: &[&str]) -> impl Iterator<Item = &'static str> {
    SERVICES.iter().filter(|(package, _)| packages.contains(package)).map(|(_, service)| *service)
}

/// Stops a service and keeps it from starting at boot.
fn switch_off(service: &str) -> anyhow::Result<()> {
    if !is_there("systemctl") {
        return Ok(());
    }
    // Without a running systemd nothing was started, and asking it to stop something fails.
    if Path::new("/run/systemd/system").is_dir() {
        shell::run("systemctl", &["stop", service])?;
    }
    shell::run("systemctl", &["disable", service])
}

/// A C compiler for aarch64, which build scripts of libraries with C code call even for a check.
const CROSS_COMPILER: &str = "aarch64-linux-gnu-gcc";
/// It, and the C library's headers.
const CROSS_PACKAGES: [&str; 2] = ["gcc-aarch64-linux-gnu", "libc6-dev-arm64-cross"];

/// Installs the C compiler for aarch64 where it is missing; otherwise says what is.
pub fn cross_compiler() -> Result<(), String> {
    if is_there(CROSS_COMPILER) {
        return Ok(());
    }
    let wanted = CROSS_PACKAGES.join(", ");
    if !is_there("apt-get") {
        return Err(format!("no {CROSS_COMPILER} (Debian has it in {wanted})"));
    }
    apt(&CROSS_PACKAGES).map_err(|error| format!("no {CROSS_COMPILER}, and {wanted}: {error:#}"))
}

fn apt(packages: &[&str]) -> anyhow::Result<()> {
    let install = [&["install", "--yes", "--no-install-recommends"][..], packages].concat();
    shell::run("apt-get", &["update", "--quiet"]).and_then(|()| shell::run("apt-get", &install))
}

fn is_there(program: &str) -> bool {
    tools::on_path(program).is_some()
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn only_what_was_installed_is_switched_off() {
        let all: Vec<&str> = WANTED.iter().map(|(_, package)| *package).collect();
        assert_eq!(services_of(&all).collect::<Vec<_>>(), ["influxdb.service"]);
        assert_eq!(services_of(&["python3-venv"]).count(), 0);
        assert!(SERVICES.iter().all(|(package, _)| all.contains(package)));
    }
}
