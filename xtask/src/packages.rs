//! Programs that some checks need, from the distribution's packages.

use crate::consent::Consent;
use crate::{shell, tools};
use std::path::Path;

/// A program that some check calls, and the Debian packages that have it.
pub struct Wanted {
    program: &'static str,
    packages: &'static [&'static str],
}

/// What the Rust tests call: a database to write to, pyarrow in an environment of its own, perf to compare
/// with.
pub const RUST_TESTS: [Wanted; 3] = [
    Wanted {
        program: "influxd",
        packages: &["influxdb"],
    },
    Wanted {
        program: "python3",
        packages: &["python3-venv"],
    },
    Wanted {
        program: "perf",
        packages: &["linux-perf"],
    },
];

/// What the interactive part of pages is built with.
pub const BUNDLE: [Wanted; 1] = [NPM];

/// What pages are built with, and looked at with.
pub const WEB: [Wanted; 2] = [
    NPM,
    Wanted {
        program: "chromium",
        packages: &["chromium"],
    },
];

const NPM: Wanted = Wanted {
    program: "npm",
    packages: &["nodejs", "npm"],
};

/// What guests run in.
pub const LAB: [Wanted; 1] = [Wanted {
    program: "qemu-system-x86_64",
    packages: &["qemu-system-x86", "util-linux", "binutils"],
}];

/// What `bench attach` measures with.
pub const BENCH: [Wanted; 2] = [
    Wanted {
        program: "perf",
        packages: &["linux-perf"],
    },
    Wanted {
        program: "redis-benchmark",
        packages: &["redis-server", "redis-tools"],
    },
];

/// What `bench probe` measures beside.
pub const BENCH_PROBE: [Wanted; 1] = [Wanted {
    program: "oslat",
    packages: &["rt-tests"],
}];

/// The C compiler for aarch64, which build scripts of libraries with C code call even for a check, and the C
/// library's headers.
pub const CROSS_COMPILER: [Wanted; 1] = [Wanted {
    program: "aarch64-linux-gnu-gcc",
    packages: &["gcc-aarch64-linux-gnu", "libc6-dev-arm64-cross"],
}];

/// Services that these packages bring. Debian enables and starts them as it installs; the tests start a
/// server of their own.
const SERVICES: [(&str, &str); 2] = [
    ("influxdb", "influxdb.service"),
    ("redis-server", "redis-server.service"),
];

impl Wanted {
    fn is_missing(&self) -> bool {
        tools::on_path(self.program).is_none()
    }
}

/// The packages of what is not there.
pub fn missing(wanted: &[Wanted]) -> Vec<&'static str> {
    wanted
        .iter()
        .filter(|wanted| wanted.is_missing())
        .flat_map(|wanted| wanted.packages)
        .copied()
        .collect()
}

/// Installs what is not there, when that is allowed and can be had.
///
/// # Errors
/// What is still missing, and why.
pub fn install(wanted: &[Wanted], consent: Consent) -> Result<(), String> {
    let missing = missing(wanted);
    if missing.is_empty() {
        return Ok(());
    }
    let names = missing.join(", ");
    if !consent.is_given() {
        return Err(format!("{names} not installed (--yes installs it)"));
    }
    if tools::on_path("apt-get").is_none() {
        return Err(format!("{names} not installed, and there is no apt-get"));
    }
    let installed = apt(&missing);
    // Also after an error: apt may have come as far as the service.
    for service in services_of(&missing) {
        if let Err(error) = switch_off(service) {
            eprintln!("{error:#}; {service} may be running, and start at boot: disable it by hand");
        }
    }
    installed.map_err(|error| format!("{names} not installed: {error:#}"))
}

fn services_of(packages: &[&str]) -> impl Iterator<Item = &'static str> {
    SERVICES
        .iter()
        .filter(|(package, _)| packages.contains(package))
        .map(|(_, service)| *service)
}

/// Stops a service and keeps it from starting at boot.
fn switch_off(service: &str) -> anyhow::Result<()> {
    if tools::on_path("systemctl").is_none() {
        return Ok(());
    }
    // Without a running systemd nothing was started, and asking it to stop something fails.
    if Path::new("/run/systemd/system").is_dir() {
        shell::run("systemctl", &["stop", service])?;
    }
    shell::run("systemctl", &["disable", service])
}

fn apt(packages: &[&str]) -> anyhow::Result<()> {
    let install = [
        &["install", "--yes", "--no-install-recommends"][..],
        packages,
    ]
    .concat();
    shell::run("apt-get", &["update", "--quiet"]).and_then(|()| shell::run("apt-get", &install))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn only_what_was_installed_is_switched_off() {
        let of = |wanted: &[Wanted]| -> Vec<&str> {
            wanted
                .iter()
                .flat_map(|wanted| wanted.packages)
                .copied()
                .collect()
        };
        assert_eq!(
            services_of(&of(&RUST_TESTS)).collect::<Vec<_>>(),
            ["influxdb.service"]
        );
        let all = [of(&RUST_TESTS), of(&BENCH)].concat();
        assert_eq!(services_of(&all).count(), SERVICES.len());
        assert_eq!(services_of(&["python3-venv"]).count(), 0);
        assert!(SERVICES.iter().all(|(package, _)| all.contains(package)));
    }

    #[test]
    fn nothing_is_installed_without_consent() {
        let wanted = [Wanted {
            program: "jitterscope-no-such-program",
            packages: &["no-such-package"],
        }];
        assert_eq!(missing(&wanted), ["no-such-package"]);
        let refused = install(&wanted, Consent::given(false)).unwrap_err();
        assert!(
            refused.contains("no-such-package") && refused.contains("--yes"),
            "{refused}"
        );
        assert!(
            install(
                &[Wanted {
                    program: "sh",
                    packages: &["x"]
                }],
                Consent::given(false)
            )
            .is_ok()
        );
    }
}
