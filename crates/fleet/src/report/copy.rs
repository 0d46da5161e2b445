//! Fetches the days of a report: the engine then needs no access to the store, and reads no other day.

use crate::location::Location;
use crate::problem::Problem;
use std::collections::BTreeSet;
use std::fs;
use std::path::Path;

/// What was fetched.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct Copied {
    pub files: u64,
    pub bytes: u64,
}

/// Copies compacted files of the days, and the hosts' own that no compacted file has.
pub(super) fn copy(
    location: &Location,
    to_folder: &Path,
    from: &str,
    to: &str,
    cluster: Option<&str>,
) -> Result<Copied, Problem> {
    let mut copied = Copied::default();
    let wanted = cluster.map(|name| format!("cluster={name}"));
    for kind in ["v1/days", "v1/raw"] {
        for cluster in location.folders(kind)? {
            if wanted.as_ref().is_some_and(|wanted| *wanted != cluster) {
                continue;
            }
            let days: BTreeSet<String> = location
                .folders(&format!("{kind}/{cluster}"))?
                .into_iter()
                .collect();
            let within = |of: &&String| {
                let day = of.strip_prefix("day=").unwrap_or_default();
                (from..=to).contains(&day)
            };
            for day in days.iter().filter(within) {
                for object in location.list(&format!("{kind}/{cluster}/{day}"))? {
                    let Some(bytes) = location.get(&object.path)? else {
                        // Compaction has just removed it; its rows are in a compacted file.
                        continue;
                    };
                    copied.files += 1;
                    copied.bytes += bytes.len() as u64;
                    write(to_folder, &object.path, &bytes)?;
                }
            }
        }
    }
    Ok(copied)
}

fn write(folder: &Path, below: &str, bytes: &[u8]) -> Result<(), Problem> {
    // A store may name its objects as it likes.
    let is_plain = |part: &str| !part.is_empty() && part != "." && part != "..";
    if !below.split('/').all(is_plain) {
        return Err(Problem::local(format!(
            "the store has an object named '{below}'"
        )));
    }
    let path = folder.join(below);
    if let Some(parent) = path.parent() {
        fs::create_dir_all(parent).map_err(Problem::local)?;
    }
    fs::write(path, bytes).map_err(Problem::local)
}
