//! The producer's input: a file mapped into memory.

use super::error::PipelineRecordError;
use super::settings::InputChoice;
use jitterscope_platform::{HeldDir, MappedFile, make_random_file};
use std::path::PathBuf;

/// The mapped input and its location.
pub(crate) struct Input {
    pub(crate) map: MappedFile,
    pub(crate) path: PathBuf,
}

/// Maps the input. Creates it if it is ours and is missing or has the wrong length.
///
/// # Errors
/// It cannot be read or created.
pub(crate) fn open(
    choice: &InputChoice,
    record_length: usize,
) -> Result<Input, PipelineRecordError> {
    let path = match choice {
        InputChoice::Own(path) => path.clone(),
        InputChoice::Made { folder, records } => {
            let too_much = || PipelineRecordError::InputSize {
                records: *records,
                length: record_length,
            };
            let bytes = records
                .checked_mul(record_length as u64)
                .ok_or_else(too_much)?;
            let held = HeldDir::trusted_or_made(folder).map_err(|source| {
                PipelineRecordError::InputFolder {
                    path: folder.clone(),
                    source,
                }
            })?;
            // Each length has its own file, so that concurrent runs never change each other's input.
            let name = format!("pipeline-input-{bytes}.bin");
            let path = folder.join(&name);
            let found = |held: &HeldDir| {
                held.open_file(&name)
                    .ok()
                    .filter(|file| file.metadata().is_ok_and(|m| m.len() == bytes))
            };
            let file = match found(&held) {
                Some(file) => file,
                None => {
                    make_random_file(&held, &name, bytes)?;
                    held.open_file(&name)
                        .map_err(|source| PipelineRecordError::InputFolder {
                            path: folder.clone(),
                            source,
                        })?
                }
            };
            return Ok(Input {
                map: MappedFile::of(&file, &path)?,
                path,
            });
        }
    };
    Ok(Input {
        map: MappedFile::open(&path)?,
        path,
    })
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_input_is_made_once_and_again_when_it_was_cut() {
        let dir = tempfile::tempdir().unwrap();
        let folder = dir.path().join("a/b");
        let choice = InputChoice::Made {
            folder,
            records: 10,
        };
        let first = open(&choice, 64).unwrap();
        assert_eq!(first.map.as_ref().len(), 640);
        let stamp = std::fs::metadata(&first.path).unwrap().modified().unwrap();
        let second = open(&choice, 64).unwrap();
        assert_eq!(
            std::fs::metadata(&second.path).unwrap().modified().unwrap(),
            stamp
        );
        std::fs::write(&first.path, b"cut").unwrap();
        assert_eq!(open(&choice, 64).unwrap().map.as_ref().len(), 640);
        let huge = InputChoice::Made {
            folder: dir.path().into(),
            records: u64::MAX,
        };
        assert!(matches!(
            open(&huge, 64),
            Err(PipelineRecordError::InputSize { .. })
        ));
    }
}
