//! What the path of a control group says: a unit of systemd, a container, a pod.
//!
//! systemd, the container runtimes and the kubelet name their groups by rule. Anybody who may make groups may give one
//! such a name, so these facts are as trustworthy as the group.

use std::borrow::Cow;
use std::fmt::{self, Display};

/// Ends of the names of units that have processes.
const UNITS: [&str; 5] = [".service", ".scope", ".socket", ".mount", ".swap"];
/// Hexadecimal digits of a container's id.
const CONTAINER: usize = 64;
/// Digits of it that are shown, as the runtimes do.
const SHOWN: usize = 12;

/// The path of a control group, as in `/proc/PID/cgroup`.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct GroupPath<'p>(pub &'p str);

impl<'p> GroupPath<'p> {
    fn components(self) -> impl Iterator<Item = &'p str> {
        self.0.split('/').filter(|name| !name.is_empty())
    }

    /// The unit of systemd: `cron.service`, `session-3.scope`. Below a user's manager it is the manager's unit. `None`
    /// in a container, whose group is the unit.
    #[must_use]
    pub fn unit(self) -> Option<&'p str> {
        if self.container().is_some() {
            return None;
        }
        let is_unit = |name: &&str| UNITS.iter().any(|end| name.ends_with(end));
        let mut units = self.components().filter(is_unit);
        let first = units.next()?;
        if first.starts_with("user@") {
            return Some(units.next().unwrap_or(first));
        }
        Some(first)
    }

    /// The id of the container, or its name if the runtime uses that (LXC). Of nested containers the outermost.
    #[must_use]
    pub fn container(self) -> Option<&'p str> {
        let mut above = "";
        for name in self.components() {
            if let Some(lxc) = name.strip_prefix("lxc.payload.") {
                return Some(lxc);
            }
            if above == "lxc" {
                return Some(name);
            }
            let bare = name.strip_suffix(".scope").unwrap_or(name);
            let id = bare.rsplit('-').next().unwrap_or(bare);
            if id.len() == CONTAINER && id.bytes().all(|of| of.is_ascii_hexdigit()) {
                return Some(id);
            }
            above = name;
        }
        None
    }

    /// The uid of the pod, with hyphens.
    #[must_use]
    pub fn pod(self) -> Option<Cow<'p, str>> {
        self.components().find_map(|name| {
            let bare = name.strip_suffix(".slice").unwrap_or(name);
            let uid = match bare.strip_prefix("pod") {
                Some(uid) => uid,
                None => bare.strip_prefix("kubepods-").and_then(|rest| {
                    rest.strip_prefix("pod")
                        .or_else(|| rest.split_once("-pod").map(|of| of.1))
                })?,
            };
            // A pod of the node's own files has the hash of its file.
            let digits = |of: &str| {
                of.bytes()
                    .all(|of| of.is_ascii_hexdigit() || matches!(of, b'-' | b'_'))
            };
            if !matches!(uid.len(), 32 | 36) || !digits(uid) {
                return None;
            }
            Some(match uid.contains('_') {
                true => uid.replace('_', "-").into(),
                false => uid.into(),
            })
        })
    }
}

/// What it is called: its pod and container, its container, or its unit. Otherwise its path.
impl Display for GroupPath<'_> {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let container = self.container().map(|id| match id.len() {
            CONTAINER => &id[..SHOWN],
            _ => id,
        });
        match (self.pod(), container, self.unit()) {
            (Some(pod), Some(container), _) => write!(f, "pod {pod}, container {container}"),
            (Some(pod), None, _) => write!(f, "pod {pod}"),
            (None, Some(container), _) => write!(f, "container {container}"),
            (None, None, Some(unit)) => f.write_str(unit),
            (None, None, None) if self.0 == "/" => f.write_str("no group of its own"),
            (None, None, None) => write!(f, "control group {}", self.0),
        }
    }
}

/// Control groups that a user named, each with the groups below it.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum NamedGroup {
    /// A unit of systemd.
    Unit(String),
    /// A pod's uid, with hyphens.
    Pod(String),
    /// A path, as in `/proc/PID/cgroup`.
    Cgroup(String),
}

impl NamedGroup {
    /// Reads `unit:NAME`, `pod:UID` and `cgroup:/PATH`; `None` for any other text. A unit without an ending is a
    /// service.
    #[must_use]
    pub fn parse(text: &str) -> Option<NamedGroup> {
        let (kind, name) = text.split_once(':').filter(|(_, name)| !name.is_empty())?;
        match kind {
            "unit" if UNITS.iter().any(|end| name.ends_with(end)) => {
                Some(NamedGroup::Unit(name.to_owned()))
            }
            "unit" => Some(NamedGroup::Unit(format!("{name}.service"))),
            "pod" => Some(NamedGroup::Pod(name.replace('_', "-").to_lowercase())),
            "cgroup" if name.starts_with('/') => {
                let path = name.trim_end_matches('/');
                (!path.is_empty()).then(|| NamedGroup::Cgroup(path.to_owned()))
            }
            _ => None,
        }
    }

    /// The name that tells a group best from others: of its pod, its unit, or its path. `None` for the group of all.
    #[must_use]
    pub fn of(group: GroupPath<'_>) -> Option<NamedGroup> {
        if let Some(pod) = group.pod() {
            return Some(NamedGroup::Pod(pod.into_owned()));
        }
        let unit = group.unit().map(|unit| NamedGroup::Unit(unit.to_owned()));
        unit.or_else(|| (group.0 != "/").then(|| NamedGroup::Cgroup(group.0.to_owned())))
    }

    /// Whether a group is one of them.
    #[must_use]
    pub fn contains(&self, group: GroupPath<'_>) -> bool {
        match self {
            NamedGroup::Unit(name) => group.unit() == Some(name),
            NamedGroup::Pod(uid) => group.pod().is_some_and(|pod| *pod == **uid),
            NamedGroup::Cgroup(path) => {
                let rest = group.0.strip_prefix(&**path);
                rest.is_some_and(|rest| rest.is_empty() || rest.starts_with('/'))
            }
        }
    }
}

/// As [`NamedGroup::parse`] reads it.
impl Display for NamedGroup {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            NamedGroup::Unit(name) => write!(f, "unit:{name}"),
            NamedGroup::Pod(uid) => write!(f, "pod:{uid}"),
            NamedGroup::Cgroup(path) => write!(f, "cgroup:{path}"),
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use proptest::proptest;

    const ID: &str = "0123456789abcdef0123456789abcdef0123456789abcdef0123456789abcdef";
    const UID: &str = "1b4e28ba-2fa1-11d2-883f-0016d3cca427";

    #[test]
    fn groups_of_systemd_runtimes_and_kubelets() {
        let flat = UID.replace('-', "_");
        for (path, unit, container, pod) in [
            ("/", None, None, None),
            ("/system.slice", None, None, None),
            ("/init.scope", Some("init.scope"), None, None),
            (
                "/system.slice/cron.service",
                Some("cron.service"),
                None,
                None,
            ),
            (
                "/system.slice/cron.service/job",
                Some("cron.service"),
                None,
                None,
            ),
            (
                "/user.slice/user-1000.slice/session-3.scope",
                Some("session-3.scope"),
                None,
                None,
            ),
            (
                "/user.slice/user-1000.slice/user@1000.service",
                Some("user@1000.service"),
                None,
                None,
            ),
            (
                "/user.slice/user-1000.slice/user@1000.service/app.slice/firefox.service",
                Some("firefox.service"),
                None,
                None,
            ),
            (
                &format!("/system.slice/docker-{ID}.scope"),
                None,
                Some(ID),
                None,
            ),
            (&format!("/docker/{ID}"), None, Some(ID), None),
            (
                &format!("/machine.slice/libpod-{ID}.scope/container"),
                None,
                Some(ID),
                None,
            ),
            // systemd within a container.
            (
                &format!("/machine.slice/libpod-{ID}.scope/system.slice/a.service"),
                None,
                Some(ID),
                None,
            ),
            (
                "/lxc.payload.web/system.slice/a.service",
                None,
                Some("web"),
                None,
            ),
            ("/lxc/web", None, Some("web"), None),
            (
                &format!("/kubepods/burstable/pod{UID}/{ID}"),
                None,
                Some(ID),
                Some(UID),
            ),
            (&format!("/kubepods/pod{UID}"), None, None, Some(UID)),
            (
                &format!(
                    "/kubepods.slice/kubepods-burstable.slice/kubepods-burstable-pod{flat}.slice/cri-containerd-{ID}.scope"
                ),
                None,
                Some(ID),
                Some(UID),
            ),
            (
                &format!("/kubepods.slice/kubepods-pod{flat}.slice/crio-{ID}.scope"),
                None,
                Some(ID),
                Some(UID),
            ),
            (
                "/kubepods/besteffort/pod0123456789abcdef0123456789abcdef/x",
                None,
                None,
                Some("0123456789abcdef0123456789abcdef"),
            ),
            (
                "/system.slice/podman.service",
                Some("podman.service"),
                None,
                None,
            ),
            ("/pod-of-peas", None, None, None),
        ] {
            let group = GroupPath(path);
            assert_eq!(
                (group.unit(), group.container(), group.pod().as_deref()),
                (unit, container, pod),
                "{path}"
            );
        }
    }

    #[test]
    fn a_group_is_called_by_what_its_user_knows() {
        let called = |path: &str| GroupPath(path).to_string();
        assert_eq!(called("/system.slice/cron.service/job"), "cron.service");
        assert_eq!(called("/backup"), "control group /backup");
        assert_eq!(called("/"), "no group of its own");
        assert_eq!(called(&format!("/docker/{ID}")), "container 0123456789ab");
        let in_pod = format!("pod {UID}, container 0123456789ab");
        assert_eq!(called(&format!("/kubepods/pod{UID}/{ID}")), in_pod);
    }

    proptest! {
        #[test]
        fn any_path_is_read(path in "(/|pod|kubepods-|[0-9a-f]{64}|\\.scope|\\.slice|lxc|\\PC){0,12}") {
            let group = GroupPath(&path);
            let _ = (group.unit(), group.container(), group.pod(), group.to_string());
        }
    }

    #[test]
    fn a_named_group_contains_itself_and_what_is_below_it() {
        let pod = "/kubepods.slice/kubepods-burstable.slice/kubepods-burstable-pod0a1b2c3d_0000_1111_2222_333344445555.slice/cri-containerd-x.scope";
        let of = |text: &str| NamedGroup::parse(text).unwrap();
        for (named, group, is_in) in [
            ("unit:backup", "/system.slice/backup.service", true),
            (
                "unit:backup.service",
                "/system.slice/backup.service/inner",
                true,
            ),
            (
                "unit:session-3.scope",
                "/user.slice/user-0.slice/session-3.scope",
                true,
            ),
            ("unit:backup", "/system.slice/backup-2.service", false),
            ("cgroup:/a/b", "/a/b", true),
            ("cgroup:/a/b/", "/a/b/c", true),
            ("cgroup:/a/b", "/a/bc", false),
            ("cgroup:/a/b", "/", false),
            ("pod:0A1B2C3D-0000-1111-2222-333344445555", pod, true),
            ("pod:0a1b2c3d-0000-1111-2222-333344445556", pod, false),
        ] {
            assert_eq!(
                of(named).contains(GroupPath(group)),
                is_in,
                "{named} {group}"
            );
            assert_eq!(of(&of(named).to_string()), of(named));
        }
        for text in [
            "backup", "unit:", "cgroup:a", "cgroup:/", "user:1", ":x", "12",
        ] {
            assert_eq!(NamedGroup::parse(text), None, "{text}");
        }
    }
}
