//! A cache of recent pages: a page of a large run takes a second or more of a CPU, and going back should not.

use jitterscope_model::PutInOrder;
use std::collections::VecDeque;
use std::fs;
use std::path::{Path, PathBuf};
use std::sync::Arc;
use std::time::SystemTime;

/// The number of pages in the cache, about one and a half megabytes each.
const MOST: usize = 8;

/// The most recent pages, each made from one or several folders of runs.
#[derive(Debug, Default)]
pub struct Kept(VecDeque<(Vec<Folder>, Arc<str>)>);

/// The state of a folder: its path, and the name, length and modification time of each file. Another run in its place,
/// or a change, is a different state.
#[derive(Debug, PartialEq, Eq)]
struct Folder {
    path: PathBuf,
    files: Vec<(PathBuf, u64, SystemTime)>,
}

impl Folder {
    /// `None` if unknown: then nothing is cached.
    fn look(path: &Path) -> Option<Folder> {
        let mut files = Vec::new();
        for entry in fs::read_dir(path).ok()? {
            let entry = entry.ok()?;
            let facts = entry.metadata().ok()?;
            files.push((entry.path(), facts.len(), facts.modified().ok()?));
        }
        files.put_in_order();
        Some(Folder {
            path: path.to_path_buf(),
            files,
        })
    }
}

impl Kept {
    /// The page of these folders, from the cache or new.
    ///
    /// # Errors
    /// The page cannot be made; it is not cached then.
    pub fn page(
        &mut self,
        folders: &[&Path],
        make: impl FnOnce() -> anyhow::Result<String>,
    ) -> anyhow::Result<Arc<str>> {
        // The state before reading: later changes show at the next request.
        let looks: Option<Vec<Folder>> = folders.iter().map(|path| Folder::look(path)).collect();
        let Some(looks) = looks else {
            return Ok(make()?.into());
        };
        if let Some(at) = self.0.iter().position(|(known, _)| *known == looks)
            && let Some(found) = self.0.remove(at)
        {
            let page = Arc::clone(&found.1);
            self.0.push_front(found);
            return Ok(page);
        }
        let page: Arc<str> = make()?.into();
        self.0.push_front((looks, Arc::clone(&page)));
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
            .to_string()
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
            assert_eq!(*page.unwrap(), *at.to_string());
        }
        assert_eq!(made, (0..=MOST).chain([1]).collect::<Vec<_>>());
        assert_eq!(kept.0.len(), MOST);
    }
}
