//! What a Kubernetes node adds to a container's own rights: the runtime's default filter of system calls, and the limits
//! of the manifest.

use crate::{lab, shell, tools};
use anyhow::{Context, bail, ensure};
use serde_json::{Value, json};
use std::fs;

/// Debian's package with the default filter of podman and CRI-O, and the file.
const FILTER: (&str, &str) = (
    "golang-github-containers-common",
    "usr/share/containers/seccomp.json",
);
/// The period of a CPU limit, in microseconds: the kubelet's.
const PERIOD: u64 = 100_000;

/// Puts the Job's limits and the default filter into a container's settings.
pub fn limit(spec: &mut Value) -> anyhow::Result<()> {
    let manifest = shell::root().join("packaging/kubernetes/latency-test.yaml");
    let manifest = fs::read_to_string(&manifest).with_context(|| manifest.display().to_string())?;
    let (cpus, mib) = limits(&manifest)?;
    spec["linux"]["resources"]["cpu"] = json!({ "period": PERIOD, "quota": cpus * PERIOD });
    spec["linux"]["resources"]["memory"] = json!({ "limit": mib << 20 });
    let (package, file) = FILTER;
    let place = tools::target().join("tools/seccomp");
    lab::unpack(package, &[&format!("./{file}")], &place)?;
    let profile: Value = serde_json::from_slice(&fs::read(place.join(file))?)?;
    let of_container = spec["process"]["capabilities"]["bounding"].clone();
    let capabilities = of_container.as_array().context("no capabilities")?;
    spec["linux"]["seccomp"] = filter(&profile, capabilities)?;
    Ok(())
}

/// The bytes of memory that the Job may use.
pub fn memory_limit() -> anyhow::Result<u64> {
    Ok(limits(&manifest()?)?.1 << 20)
}

fn manifest() -> anyhow::Result<String> {
    let path = shell::root().join("packaging/kubernetes/latency-test.yaml");
    fs::read_to_string(&path).with_context(|| path.display().to_string())
}

/// The whole CPUs and the MiB of memory that a manifest limits its container to.
fn limits(manifest: &str) -> anyhow::Result<(u64, u64)> {
    let mut lines = manifest
        .lines()
        .map(str::trim)
        .skip_while(|line| *line != "limits:")
        .skip(1);
    let mut value = |name: &str| {
        let line = lines.next().with_context(|| format!("no limit {name}"))?;
        let value = line
            .strip_prefix(name)
            .and_then(|rest| rest.strip_prefix(": "));
        let value = value.with_context(|| format!("{line} is not the limit {name}"))?;
        let digits = value.trim_matches('"').trim_end_matches("Mi");
        digits.parse().with_context(|| line.to_owned())
    };
    Ok((value("cpu")?, value("memory")?))
}

/// The filter that a runtime makes of a profile for a container with these capabilities on this architecture.
fn filter(profile: &Value, capabilities: &[Value]) -> anyhow::Result<Value> {
    // Go's name and the filter's.
    let (architecture, native) = match std::env::consts::ARCH {
        "x86_64" => ("amd64", "SCMP_ARCH_X86_64"),
        "aarch64" => ("arm64", "SCMP_ARCH_AARCH64"),
        other => bail!("the filter's name of {other} is not known"),
    };
    let meets = |rule: &Value, of: &str, any: &[Value]| {
        let listed = rule[of].as_array();
        listed.map(|listed| listed.iter().any(|one| any.contains(one)))
    };
    let this = [json!(architecture)];
    let applies = |rule: &Value| {
        let (wanted, unwanted) = (&rule["includes"], &rule["excludes"]);
        meets(wanted, "caps", capabilities).unwrap_or(true)
            && meets(wanted, "arches", &this).unwrap_or(true)
            && !meets(unwanted, "caps", capabilities).unwrap_or(false)
            && !meets(unwanted, "arches", &this).unwrap_or(false)
    };
    let rules = profile["syscalls"].as_array().context("no rules")?;
    let kept: Vec<Value> = rules
        .iter()
        .filter(|rule| applies(rule))
        .map(|rule| {
            let mut kept = json!({ "names": rule["names"], "action": rule["action"] });
            for field in ["args", "errnoRet"] {
                if !rule[field].is_null() {
                    kept[field] = rule[field].clone();
                }
            }
            kept
        })
        .collect();
    ensure!(
        !kept.is_empty(),
        "the filter has no rule for this container"
    );
    let machines = profile["archMap"].as_array();
    let machine = machines
        .and_then(|all| all.iter().find(|one| one["architecture"] == native))
        .with_context(|| format!("the filter does not know {native}"))?;
    let more = machine["subArchitectures"].as_array().into_iter().flatten();
    let architectures: Vec<&Value> = [&machine["architecture"]].into_iter().chain(more).collect();
    Ok(json!({
        "defaultAction": profile["defaultAction"],
        "defaultErrnoRet": profile["defaultErrnoRet"],
        "architectures": architectures,
        "syscalls": kept,
    }))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn limits_are_those_of_the_manifest() {
        let text = "requests:\n cpu: \"1\"\n memory: 1Mi\nlimits:\n  cpu: \"3\"\n  memory: 512Mi\n";
        assert_eq!(limits(text).unwrap(), (3, 512));
        assert!(limits("limits:\n  memory: 512Mi\n").is_err());
        assert!(limits("").is_err());
    }

    #[test]
    fn a_rule_holds_only_for_its_capabilities_and_architecture() {
        let profile = json!({
            "defaultAction": "SCMP_ACT_ERRNO",
            "defaultErrnoRet": 38,
            "archMap": [
                { "architecture": "SCMP_ARCH_X86_64", "subArchitectures": ["SCMP_ARCH_X86"] },
                { "architecture": "SCMP_ARCH_AARCH64", "subArchitectures": ["SCMP_ARCH_ARM"] },
                { "architecture": "SCMP_ARCH_S390X", "subArchitectures": [] },
            ],
            "syscalls": [
                { "names": ["read"], "action": "SCMP_ACT_ALLOW", "args": null, "includes": {}, "excludes": {} },
                { "names": ["syslog"], "action": "SCMP_ACT_ALLOW", "includes": { "caps": ["CAP_SYSLOG"] } },
                { "names": ["syslog"], "action": "SCMP_ACT_ERRNO", "excludes": { "caps": ["CAP_SYSLOG"] } },
                { "names": ["bpf"], "action": "SCMP_ACT_ALLOW", "includes": { "caps": ["CAP_BPF"] } },
                { "names": ["bpf"], "action": "SCMP_ACT_ERRNO", "excludes": { "caps": ["CAP_BPF"] }, "errnoRet": 1 },
                { "names": ["swapcontext"], "action": "SCMP_ACT_ALLOW", "includes": { "arches": ["ppc64le"] } },
            ],
        });
        let made = filter(&profile, &[json!("CAP_SYSLOG")]).unwrap();
        assert_eq!(
            made["syscalls"],
            json!([
                { "names": ["read"], "action": "SCMP_ACT_ALLOW" },
                { "names": ["syslog"], "action": "SCMP_ACT_ALLOW" },
                { "names": ["bpf"], "action": "SCMP_ACT_ERRNO", "errnoRet": 1 },
            ])
        );
        let architectures = made["architectures"].as_array().unwrap();
        assert_eq!(architectures.len(), 2, "{architectures:?}");
        assert_eq!(made["defaultErrnoRet"], 38);
    }
}
