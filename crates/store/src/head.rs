//! The two files of the manifest (a head for lists of runs, and the details) and the machine's file.

use crate::budget;
use crate::error::StoreError;
use crate::reserved::ReservedFile;
use jitterscope_model::{MachineState, RUN_SCHEMA_VERSION, RunHead, RunManifest};
use jitterscope_platform::HeldDir;
use serde::de::DeserializeOwned;
use serde::{Deserialize, Serialize};
use std::io::{Seek, Write};
use std::path::{Path, PathBuf};

pub(crate) const MANIFEST: &str = "manifest.json";
/// The head's name until the run is complete.
const MANIFEST_PARTIAL: &str = ".manifest.json";
/// The rest of the manifest.
const DETAILS: &str = "details.json";
pub(crate) const MACHINE: &str = "machine.json";
/// Room on disk reserved for each file, bytes, so that a run can be closed on a full disk.
const HEAD_AHEAD: u64 = 64 << 10;
const DETAILS_AHEAD: u64 = 8 << 20;
const MACHINE_AHEAD: u64 = 1 << 20;
/// The largest accepted manifest, bytes. That of a pipeline with full histograms has about 5 MiB.
const LARGEST_MANIFEST: u64 = 64 << 20;

/// The three files while they are written.
pub(crate) struct ManifestFiles {
    head: ReservedFile,
    details: ReservedFile,
    machine: ReservedFile,
    /// Whether the machine's file has its content, and whether all of it is on disk.
    machine_given: bool,
    machine_whole: bool,
}

impl ManifestFiles {
    pub(crate) fn create(folder: &HeldDir) -> Result<ManifestFiles, StoreError> {
        let make = |name, ahead| {
            let mut file = ReservedFile::create(folder, name)?;
            file.reserve(ahead).map(|()| file)
        };
        Ok(ManifestFiles {
            head: make(MANIFEST_PARTIAL, HEAD_AHEAD)?,
            details: make(DETAILS, DETAILS_AHEAD)?,
            machine: make(MACHINE, MACHINE_AHEAD)?,
            machine_given: false,
            machine_whole: false,
        })
    }

    /// Writes the machine, once. After a full disk, another call writes the rest.
    pub(crate) fn machine(&mut self, state: &MachineState) -> Result<(), StoreError> {
        if !self.machine_given {
            self.machine_given = true;
            put(&mut self.machine, state, serde_json::to_vec)?;
        }
        self.machine.finish()?;
        self.machine_whole = true;
        Ok(())
    }

    /// Writes the details, then the head: a folder without a head is not a run.
    pub(crate) fn finish(
        mut self,
        folder: &HeldDir,
        manifest: &RunManifest,
    ) -> Result<(), StoreError> {
        if !self.machine_whole {
            folder.remove_file(MACHINE).map_err(StoreError::writing)?;
        }
        put(&mut self.details, manifest, serde_json::to_vec)?;
        self.details.finish()?;
        // Indented, because people read it too.
        let head = RunHead::of(manifest);
        put(&mut self.head, &head, serde_json::to_vec_pretty)?;
        self.head.finish()?;
        folder
            .rename(MANIFEST_PARTIAL, MANIFEST)
            .map_err(StoreError::writing)
    }
}

/// Writes the manifest of a run whose writer was killed, in place of what it left of it. Nothing is reserved: if there
/// is no room, the folder stays what it was.
pub(crate) fn write_manifest(folder: &HeldDir, manifest: &RunManifest) -> Result<(), StoreError> {
    for name in [MANIFEST, MANIFEST_PARTIAL, DETAILS] {
        let _ = folder.remove_file(name);
    }
    let mut details = ReservedFile::create(folder, DETAILS)?;
    put(&mut details, manifest, serde_json::to_vec)?;
    details.finish()?;
    let mut head = ReservedFile::create(folder, MANIFEST_PARTIAL)?;
    put(&mut head, &RunHead::of(manifest), serde_json::to_vec_pretty)?;
    head.finish()?;
    folder
        .rename(MANIFEST_PARTIAL, MANIFEST)
        .map_err(StoreError::writing)
}

/// Reads the manifest of the beginning of a run.
pub(crate) fn read_beginning(folder: &HeldDir, name: &str) -> Result<RunManifest, StoreError> {
    Document::open(folder, name)?.parse()
}

fn put<T: Serialize>(
    file: &mut ReservedFile,
    value: &T,
    json: fn(&T) -> serde_json::Result<Vec<u8>>,
) -> Result<(), StoreError> {
    let mut text = json(value).map_err(|e| StoreError::damaged(file.path(), e))?;
    text.push(b'\n');
    file.write_all(&text)
        .map_err(|e| StoreError::write(file.path(), e))
}

/// The version alone: a manifest of another version may lack the other fields.
#[derive(Deserialize)]
struct Version {
    #[serde(default)]
    schema_version: u64,
}

/// Reads the head of the run in a folder.
pub(crate) fn read_head(run: &HeldDir) -> Result<RunHead, StoreError> {
    let document = Document::open(run, MANIFEST)?;
    match document.parse::<Version>()?.schema_version {
        found if found == u64::from(RUN_SCHEMA_VERSION) => document.parse(),
        found => Err(StoreError::Version {
            path: document.path,
            found,
            known: RUN_SCHEMA_VERSION,
        }),
    }
}

/// Reads the whole manifest.
pub(crate) fn read_manifest(run: &HeldDir) -> Result<RunManifest, StoreError> {
    let head = read_head(run)?;
    let document = Document::open(run, DETAILS)?;
    let manifest = document.parse()?;
    of_head(&document.path, manifest, head)
}

/// Returns `manifest` if it belongs to the run in a folder.
pub(crate) fn checked(
    run: &HeldDir,
    path: &Path,
    manifest: RunManifest,
) -> Result<RunManifest, StoreError> {
    of_head(path, manifest, read_head(run)?)
}

fn of_head(path: &Path, manifest: RunManifest, head: RunHead) -> Result<RunManifest, StoreError> {
    // A user may change the label; the id never changes.
    if manifest.id != head.id {
        return Err(StoreError::damaged(
            path,
            format!("it belongs to run {}, not {}", manifest.id, head.id),
        ));
    }
    Ok(RunManifest {
        label: head.label,
        ..manifest
    })
}

/// A file that is parsed into one of several types.
struct Document {
    file: std::fs::File,
    path: PathBuf,
}

impl Document {
    fn open(run: &HeldDir, name: &str) -> Result<Document, StoreError> {
        let file = run.open_file(name).map_err(StoreError::reading)?;
        let path = run.path().join(name);
        Ok(Document { file, path })
    }

    fn parse<T: DeserializeOwned>(&self) -> Result<T, StoreError> {
        let mut file = &self.file;
        file.rewind().map_err(|e| StoreError::read(&self.path, e))?;
        budget::document(file, &self.path, LARGEST_MANIFEST)
    }
}
