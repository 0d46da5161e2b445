//! The manifest's two files, a head that a list of runs reads and the details, and the machine's beside them.

use crate::error::StoreError;
use crate::legacy;
use crate::reserved::ReservedFile;
use jitterscope_model::{MachineState, RUN_SCHEMA_VERSION, RunHead, RunManifest};
use jitterscope_platform::HeldDir;
use serde::de::DeserializeOwned;
use serde::{Deserialize, Serialize};
use std::io::Write;
use std::path::Path;

/// The head; all of the manifest in runs of schema version 1.
pub(crate) const MANIFEST: &str = "manifest.json";
/// Its name until all is whole.
const MANIFEST_PARTIAL: &str = ".manifest.json";
/// The rest of the manifest.
const DETAILS: &str = "details.json";
/// The machine.
pub(crate) const MACHINE: &str = "machine.json";
/// Room kept on disk for each, bytes, so that a run can be closed on a disk that filled up meanwhile.
const HEAD_AHEAD: u64 = 64 << 10;
const DETAILS_AHEAD: u64 = 8 << 20;
const MACHINE_AHEAD: u64 = 1 << 20;
/// No manifest of ours is larger, bytes; one of a pipeline with full histograms has some 5 MiB.
const LARGEST_MANIFEST: u64 = 64 << 20;

/// The three on their way.
pub(crate) struct ManifestFiles {
    head: ReservedFile,
    details: ReservedFile,
    machine: Option<ReservedFile>,
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
            machine: Some(make(MACHINE, MACHINE_AHEAD)?),
        })
    }

    /// The machine, once.
    pub(crate) fn machine(&mut self, state: &MachineState) -> Result<(), StoreError> {
        let Some(file) = self.machine.take() else {
            return Ok(());
        };
        write(file, state, serde_json::to_vec)
    }

    /// The details, then their head: a run without a head is none.
    pub(crate) fn finish(self, folder: &HeldDir, manifest: &RunManifest) -> Result<(), StoreError> {
        if self.machine.is_some() {
            folder.remove_file(MACHINE).map_err(StoreError::writing)?;
        }
        write(self.details, manifest, serde_json::to_vec)?;
        // For people, too.
        write(self.head, &RunHead::of(manifest), serde_json::to_vec_pretty)?;
        folder
            .rename(MANIFEST_PARTIAL, MANIFEST)
            .map_err(StoreError::writing)
    }
}

fn write<T: Serialize>(
    mut file: ReservedFile,
    value: &T,
    json: fn(&T) -> serde_json::Result<Vec<u8>>,
) -> Result<(), StoreError> {
    let mut text = json(value).map_err(|e| StoreError::damaged(file.path(), e))?;
    text.push(b'\n');
    file.write_all(&text)
        .map_err(|e| StoreError::write(file.path(), e))?;
    file.finish()
}

/// The version alone: a manifest of another one need not have our fields.
#[derive(Deserialize)]
struct Version {
    #[serde(default)]
    schema_version: u64,
}

/// A manifest's file as its version has it.
enum File {
    /// Version 1.
    Whole(Box<RunManifest>),
    Head(Box<RunHead>),
}

fn read_file(run: &HeldDir) -> Result<File, StoreError> {
    let path = run.path().join(MANIFEST);
    let text = run
        .read(MANIFEST, LARGEST_MANIFEST)
        .map_err(StoreError::reading)?;
    match parse::<Version>(&path, &text)?.schema_version {
        1 => Ok(File::Whole(Box::new(parse_manifest(&path, &text)?))),
        found if found == u64::from(RUN_SCHEMA_VERSION) => {
            Ok(File::Head(Box::new(parse(&path, &text)?)))
        }
        found => Err(StoreError::Version {
            path,
            found,
            known: RUN_SCHEMA_VERSION,
        }),
    }
}

/// The head of the run in a folder.
pub(crate) fn read_head(run: &HeldDir) -> Result<RunHead, StoreError> {
    Ok(match read_file(run)? {
        File::Whole(manifest) => RunHead::of(&manifest),
        File::Head(head) => *head,
    })
}

/// All of its manifest.
pub(crate) fn read_manifest(run: &HeldDir) -> Result<RunManifest, StoreError> {
    let head = match read_file(run)? {
        File::Whole(manifest) => return Ok(*manifest),
        File::Head(head) => head,
    };
    let path = run.path().join(DETAILS);
    let text = run
        .read(DETAILS, LARGEST_MANIFEST)
        .map_err(StoreError::reading)?;
    of_head(&path, parse_manifest(&path, &text)?, *head)
}

/// A manifest that is known, if it is that of the run in a folder.
pub(crate) fn checked(
    run: &HeldDir,
    path: &Path,
    manifest: RunManifest,
) -> Result<RunManifest, StoreError> {
    of_head(path, manifest, read_head(run)?)
}

fn of_head(path: &Path, manifest: RunManifest, head: RunHead) -> Result<RunManifest, StoreError> {
    // A label is the user's to change, an id is not.
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

/// All of a manifest, in the words of any version.
fn parse_manifest(path: &Path, text: &[u8]) -> Result<RunManifest, StoreError> {
    // Older words lack fields that today's must have. What is not theirs is not read twice: where very many threads
    // were followed, that takes a second.
    if let Ok(manifest) = serde_json::from_slice(text) {
        return Ok(manifest);
    }
    let mut value: serde_json::Value = parse(path, text)?;
    legacy::manifest(&mut value);
    serde_json::from_value(value).map_err(|e| StoreError::damaged(path, e))
}

fn parse<T: DeserializeOwned>(path: &Path, text: &[u8]) -> Result<T, StoreError> {
    serde_json::from_slice(text).map_err(|e| StoreError::damaged(path, e))
}
