//! Programs from the distribution's packages that some checks need.

use crate::consent::Consent;
use crate::{shell, tools};
use std::path::Path;
use std::sync::{Mutex, PoisonError};

/// Held while packages are installed: apt does one thing at a time.
static APT: Mutex<()> = Mutex::new(());

/// A program that a check calls, and its Debian packages.
#[derive(Clone, Copy)]
pub struct Wanted {
    pub program: &'static str,
    packages: &'static [&'static str],
}

/// For the Rust tests: a database to write to, pyarrow in its own environment, perf for comparison, trace-cmd and
/// babeltrace2 to read what is written for them, Prometheus to scrape a watch, systemd's check of a unit.
pub const RUST_TESTS: [Wanted; 7] = [
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
    Wanted {
        program: "trace-cmd",
        packages: &["trace-cmd"],
    },
    Wanted {
        program: "babeltrace2",
        packages: &["babeltrace2"],
    },
    Wanted {
        program: "prometheus",
        packages: &["prometheus"],
    },
    Wanted {
        program: "systemd-analyze",
        packages: &["systemd"],
    },
];

/// For building and viewing pages.
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

pub const LAB: [Wanted; 1] = [Wanted {
    program: "qemu-system-x86_64",
    packages: &["qemu-system-x86", "util-linux", "binutils"],
}];

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

pub const BENCH_PROBE: [Wanted; 1] = [Wanted {
    program: "oslat",
    packages: &["rt-tests"],
}];

/// The C compiler for aarch64 and the C library's headers: build scripts of libraries with C code call it even for a
/// check.
pub const CROSS_COMPILER: [Wanted; 1] = [Wanted {
    program: "aarch64-linux-gnu-gcc",
    packages: &["gcc-aarch64-linux-gnu", "libc6-dev-arm64-cross"],
}];

pub const INJECTORS: [Wanted; 1] = [Wanted {
    program: "cc",
    packages: &["gcc", "libc6-dev"],
}];

/// The C compiler for programs linked with musl on x86-64.
pub const MUSL_COMPILER: Wanted = Wanted {
    program: "musl-gcc",
    packages: &["musl-tools"],
};

/// What makes packages.
pub const PACKERS: [Wanted; 2] = [
    Wanted {
        program: "dpkg-deb",
        packages: &["dpkg"],
    },
    Wanted {
        program: "rpmbuild",
        packages: &["rpm"],
    },
];

/// Makes a fresh Debian.
pub const DEBIAN: Wanted = Wanted {
    program: "mmdebstrap",
    packages: &["mmdebstrap"],
};

/// What tries packages: a fresh Debian, linters, container runtimes, Python for a validator of Kubernetes' schemas.
pub const TRIALS: [Wanted; 7] = [
    DEBIAN,
    Wanted {
        program: "lintian",
        packages: &["lintian"],
    },
    Wanted {
        program: "rpmlint",
        packages: &["rpmlint"],
    },
    Wanted {
        program: "runc",
        packages: &["runc"],
    },
    Wanted {
        program: "umoci",
        packages: &["umoci"],
    },
    Wanted {
        program: "mandoc",
        packages: &["mandoc"],
    },
    Wanted {
        program: "python3",
        packages: &["python3-venv"],
    },
];

/// Emulators for programs of the tool's architectures: x86-64, aarch64.
pub const USER_EMULATORS: [Wanted; 2] = [
    Wanted {
        program: "qemu-x86_64",
        packages: &["qemu-user"],
    },
    Wanted {
        program: "qemu-aarch64",
        packages: &["qemu-user"],
    },
];

/// Services of these packages. Debian enables and starts them on installation; the tests start their own server.
const SERVICES: [(&str, &str); 3] = [
    ("influxdb", "influxdb.service"),
    ("prometheus", "prometheus.service"),
    ("redis-server", "redis-server.service"),
];

impl Wanted {
    fn is_missing(&self) -> bool {
        tools::on_path(self.program).is_none()
    }
}

/// The packages of the missing programs.
pub fn missing(wanted: &[Wanted]) -> Vec<&'static str> {
    wanted
        .iter()
        .filter(|wanted| wanted.is_missing())
        .flat_map(|wanted| wanted.packages)
        .copied()
        .collect()
}

/// Installs what is missing, if that is allowed and possible.
///
/// # Errors
/// What is still missing, and why.
pub fn install(wanted: &[Wanted], consent: Consent) -> Result<(), String> {
    if missing(wanted).is_empty() {
        return Ok(());
    }
    let _alone = APT.lock().unwrap_or_else(PoisonError::into_inner);
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
    // Also after an error: apt may have started the service before it.
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
    // Without a running systemd nothing was started, and stopping a service fails.
    if Path::new("/run/systemd/system").is_dir() {
        shell::run("systemctl", &["stop", service])?;
    }
    shell::run("systemctl", &["disable", service])
}

fn apt(packages: &[&str]) -> anyhow::Result<()> {
    let install = [
        &["install", "--yes", "--quiet", "--no-install-recommends"][..],
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
            ["influxdb.service", "prometheus.service"]
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
