//! Programs that some tests talk to, from the distribution's packages.

use crate::{shell, tools};

/// Program and the Debian package that has it.
const WANTED: [(&str, &str); 3] =
    [("influxd", "influxdb"), ("python3", "python3-venv"), ("perf", "linux-perf")];

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
    let install = [&["install", "--yes", "--no-install-recommends"][..], &missing[..]].concat();
    let done = shell::run("apt-get", &["update", "--quiet"]).and_then(|()| shell::run("apt-get", &install));
    if let Err(error) = done {
        eprintln!("{error:#}; tests of {} are skipped", missing.join(", "));
    }
}

fn is_there(program: &str) -> bool {
    tools::on_path(program).is_some()
}
