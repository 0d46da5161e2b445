//! Several targets of one run: each needs its own place.

use crate::destination::Destination;
use crate::error::DestinationError;
use std::path::{Path, PathBuf};

/// Checks that every target has its own place.
///
/// # Errors
/// Two targets are the same file, folder, stream or server.
pub fn distinct(targets: &[Destination]) -> Result<(), DestinationError> {
    for (index, target) in targets.iter().enumerate() {
        if targets[..index]
            .iter()
            .any(|earlier| same_place(earlier, target))
        {
            return Err(DestinationError::Twice(target.to_string()));
        }
    }
    Ok(())
}

fn same_place(a: &Destination, b: &Destination) -> bool {
    match (a.path(), b.path()) {
        (Some(a), Some(b)) => same_file(a, b),
        _ => a == b,
    }
}

/// Whether two paths name one file, which exists or not. A device such as `/dev/null` takes any number of results.
#[must_use]
pub fn same_file(a: &Path, b: &Path) -> bool {
    Place::of(a) == Place::of(b) && !is_special(a)
}

/// A file under any of its names: its folder with links resolved, and its own name.
#[derive(PartialEq, Eq)]
struct Place(PathBuf);

impl Place {
    fn of(path: &Path) -> Place {
        if let Ok(real) = path.canonicalize() {
            return Place(real);
        }
        // The file does not exist yet: its folder identifies it.
        let path = std::path::absolute(path).unwrap_or_else(|_| path.to_path_buf());
        let folder = path.parent().unwrap_or(Path::new("/"));
        let folder = folder
            .canonicalize()
            .unwrap_or_else(|_| folder.to_path_buf());
        Place(
            path.file_name()
                .map_or(folder.clone(), |name| folder.join(name)),
        )
    }
}

/// Devices and pipes accept several writers.
fn is_special(path: &Path) -> bool {
    std::fs::metadata(path).is_ok_and(|m| !m.is_file() && !m.is_dir())
}

#[cfg(test)]
mod tests {
    use super::*;

    fn targets(texts: &[&str]) -> Vec<Destination> {
        texts.iter().map(|text| text.parse().unwrap()).collect()
    }

    #[test]
    fn one_place_takes_one_target() {
        let dir = tempfile::tempdir().unwrap();
        let file = dir.path().join("a");
        std::fs::write(&file, "").unwrap();
        std::os::unix::fs::symlink(&file, dir.path().join("link")).unwrap();
        let d = dir.path().display();
        for (one, other) in [
            (format!("csv://{d}/a"), format!("json://{d}/a")),
            (
                format!("csv://{d}/a"),
                format!("csv://{d}/link?rows=series"),
            ),
            (
                format!("csv://{d}/new"),
                format!("csv://{d}/../{}/new", file_name(dir.path())),
            ),
            ("csv://new".into(), "hlog://./new".into()),
            (
                "csv://no/folder/new".into(),
                "hlog://./no/folder/new".into(),
            ),
            ("influx://localhost:1".into(), "influx://localhost:1".into()),
            ("csv://-".into(), "csv://-".into()),
        ] {
            let error = distinct(&targets(&[&one, &other])).unwrap_err().to_string();
            assert!(error.contains("given twice"), "{one} {other}: {error}");
        }
        let apart = [
            &format!("csv://{d}/a"),
            &format!("csv://{d}/b"),
            "influx://localhost:1",
            "influx://localhost:2",
        ];
        distinct(&targets(&apart)).unwrap();
        distinct(&targets(&["csv:///dev/null", "json:///dev/null"])).unwrap();
    }

    fn file_name(path: &Path) -> String {
        path.file_name().unwrap().to_string_lossy().into_owned()
    }
}
