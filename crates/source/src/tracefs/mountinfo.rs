//! The mount points of tracefs, from `/proc/self/mountinfo`.

/// The preferred one if there are several.
const USUAL: &str = "/sys/kernel/tracing";

/// A mount of tracefs.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(super) struct Mount {
    pub(super) point: String,
    /// The name given to the mount: a free text for a file system without a device.
    pub(super) source: String,
}

/// The folder of tracefs: a tracefs mount, else `tracing` below a debugfs mount.
pub(super) fn find(mountinfo: &str) -> Option<Mount> {
    let below = |mount: Mount| Mount {
        point: format!("{}/tracing", mount.point),
        ..mount
    };
    mounts(mountinfo, "tracefs")
        .min_by_key(|mount| mount.point != USUAL)
        .or_else(|| mounts(mountinfo, "debugfs").next().map(below))
}

/// The mounts whose source `is_ours` accepts, in the order of unmounting. The kernel itself mounts tracefs on debugfs;
/// both go together.
pub(super) fn ours(mountinfo: &str, is_ours: impl Fn(&str) -> bool) -> Vec<String> {
    let mut points = Vec::new();
    for debug in mounts(mountinfo, "debugfs").filter(|mount| is_ours(&mount.source)) {
        let below = format!("{}/tracing", debug.point);
        points.push(debug.point);
        points.extend(
            mounts(mountinfo, "tracefs")
                .map(|mount| mount.point)
                .filter(|point| *point == below),
        );
    }
    points.extend(
        mounts(mountinfo, "tracefs")
            .filter(|mount| is_ours(&mount.source))
            .map(|m| m.point),
    );
    points.reverse();
    points
}

fn mounts(mountinfo: &str, kind: &'static str) -> impl Iterator<Item = Mount> {
    mountinfo.lines().filter_map(move |line| {
        // ID PARENT MAJOR:MINOR ROOT MOUNT-POINT OPTIONS [TAGS...] - KIND SOURCE OPTIONS
        let (before, after) = line.split_once(" - ")?;
        let point = unescape(before.split(' ').nth(4)?);
        let mut after = after.split(' ');
        (after.next()? == kind).then(|| Mount {
            point,
            source: after.next().map_or_else(String::new, unescape),
        })
    })
}

/// Decodes the octal escapes of blanks, tabs, newlines and backslashes.
fn unescape(text: &str) -> String {
    let mut out = Vec::with_capacity(text.len());
    let mut rest = text.as_bytes();
    while let Some((byte, tail)) = rest.split_first() {
        let octal = tail
            .first_chunk::<3>()
            .filter(|d| *byte == b'\\' && d.iter().all(|b| (b'0'..=b'7').contains(b)));
        if let Some(digits) = octal {
            out.push(
                digits
                    .iter()
                    .fold(0u8, |n, d| n.wrapping_mul(8).wrapping_add(d - b'0')),
            );
            rest = &tail[3..];
        } else {
            out.push(*byte);
            rest = tail;
        }
    }
    String::from_utf8_lossy(&out).into_owned()
}

#[cfg(test)]
mod tests {
    use super::*;
    use proptest::prelude::*;

    #[test]
    fn tracefs_is_preferred_to_debugfs_and_the_usual_place_to_others() {
        let debug = "30 23 0:7 / /sys/kernel/debug rw - debugfs nodev rw\n";
        let odd = "31 23 0:12 / /mnt/a\\040b rw,relatime shared:3 - tracefs none rw\n";
        let usual = "32 23 0:12 / /sys/kernel/tracing rw - tracefs none rw\n";
        let find = |text: &str| find(text).map(|mount| mount.point);
        assert_eq!(
            find(&format!("{debug}{odd}{usual}")).as_deref(),
            Some(USUAL)
        );
        assert_eq!(find(&format!("{debug}{odd}")).as_deref(), Some("/mnt/a b"));
        assert_eq!(find(debug).as_deref(), Some("/sys/kernel/debug/tracing"));
        assert_eq!(find("22 27 0:21 / /proc rw - proc proc rw\n"), None);
    }

    #[test]
    fn ours_are_unmounted_from_the_top() {
        let text = "30 23 0:7 / /sys/kernel/debug rw - debugfs ours rw\n\
                    31 30 0:12 / /sys/kernel/debug/tracing rw - tracefs tracefs rw\n\
                    32 23 0:12 / /sys/kernel/tracing rw - tracefs ours rw\n\
                    33 32 0:12 / /sys/kernel/tracing rw - tracefs ours rw\n\
                    34 23 0:12 / /mnt rw - tracefs none rw\n";
        let (tracing, debug) = ("/sys/kernel/tracing", "/sys/kernel/debug");
        let below = "/sys/kernel/debug/tracing";
        assert_eq!(
            ours(text, |source| source == "ours"),
            [tracing, tracing, below, debug]
        );
        assert!(ours(text, |_| false).is_empty());
    }

    proptest! {
        #[test]
        fn no_text_makes_it_panic(text in "([0-9a-z:/ -]|\\\\[0-9]{0,3}|tracefs|\n){0,80}") {
            let _ = find(&text);
        }
    }
}
