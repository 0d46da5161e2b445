//! Pages that were made lately: one of a large run takes a second or more of a CPU, and going back to it should not.

use std::collections::VecDeque;
use std::fs;
use std::path::{Path, PathBuf};
use std::time::SystemTime;

/// Pages that are kept: of one and a half megabytes each, mostly.
const MOST: usize = 8;

/// The pages made last, each of one or several folders of runs.
#[derive(Debug, Default)]
pub struct Kept(VecDeque<(Vec<Folder>, String)>);

/// A folder as it was found: where, and of each file in it the name, the length and when it was written. Another run in
/// its place, or a change of one, is another folder.
#[derive(Debug, PartialEq, Eq)]
struct Folder {
    path: PathBuf,
    files: Vec<(PathBuf, u64, SystemTime)>,
}

impl Folder {
    /// `None` where it is not known: then nothing is kept.
    fn look(path: &Path) -> Option<Folder> {
        let mut files = Vec::new();
        for entry in fs::read_dir(path).ok()? {
            let entry = entry.ok()?;
            let facts = entry.metadata().ok()?;
            files.push((entry.path(), facts.len(), facts.modified().ok()?));
        }
        files.sort();
        Some(Folder {
            path: path.to_path_buf(),
            files,
        })
    }
}

impl Kept {
    /// The page of these folders: the one that is kept, or one that is made now.
    ///
    /// # Errors
    /// It cannot be made; then none is kept.
    pub fn page(
        &mut self,
        folders: &[&Path],
        make: impl FnOnce() -> anyhow::Result<String>,
    ) -> anyhow::Result<String> {
        // As they are before they are read: what changes meanwhile is seen the next time.
        let looks: Option<Vec<Folder>> = folders.iter().map(|path| Folder::look(path)).collect();
        let Some(looks) = looks else { return make() };
        if let Some(at) = self.0.iter().position(|(known, _)| *known == looks)
            && let Some(found) = self.0.remove(at)
        {
            let page = found.1.clone();
            self.0.push_front(found);
            return Ok(page);
        }
        let page = make()?;
        self.0.push_front((looks, page.clone()));
        self.0.truncate(MOST);
        Ok(page)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_page_is_made_once_for_as_long_as_its_runs_are_what_they_were() {
        let dir = tempfile::tempdir().unwrap();
        let file = dir.path().join("manifest.json");
        fs::write(&file, "a").unwrap();
        let (mut kept, mut made) = (Kept::default(), 0);
        let mut ask = |kept: &mut Kept, folders: &[&Path]| {
            kept.page(folders, || {
                made += 1;
                Ok(format!("{made}"))
            })
            .unwrap()
        };
        assert_eq!(
            [ask(&mut kept, &[dir.path()]), ask(&mut kept, &[dir.path()])],
            ["1", "1"]
        );
        assert_eq!(
            ask(&mut kept, &[dir.path(), dir.path()]),
            "2",
            "a comparison is another page"
        );
        fs::write(&file, "longer").unwrap();
        assert_eq!(ask(&mut kept, &[dir.path()]), "3", "another label, say");
        fs::write(dir.path().join("journal"), "").unwrap();
        assert_eq!(ask(&mut kept, &[dir.path()]), "4", "a file more");
        assert_eq!(ask(&mut kept, &[dir.path()]), "4");
        assert!(
            kept.page(&[dir.path(), Path::new("/none")], || anyhow::bail!(
                "damaged"
            ))
            .is_err()
        );
    }

    #[test]
    fn no_more_than_so_many_are_kept_and_those_asked_for_last_stay() {
        let dirs: Vec<_> = (0..=MOST).map(|_| tempfile::tempdir().unwrap()).collect();
        let mut kept = Kept::default();
        let mut made = Vec::new();
        for at in (0..MOST).chain([0, MOST, 0, 1]) {
            let page = kept.page(&[dirs[at].path()], || {
                made.push(at);
                Ok(at.to_string())
            });
            assert_eq!(page.unwrap(), at.to_string());
        }
        assert_eq!(made, (0..=MOST).chain([1]).collect::<Vec<_>>());
        assert_eq!(kept.0.len(), MOST);
    }
}
