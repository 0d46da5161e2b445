//! perf-workshop's properties file, created on first use.

use crate::exit::UsageError;
use anyhow::Context;
use jitterscope_model::PipelineProperties;
use jitterscope_platform::{OutputPlace, read_bounded};
use std::io::Write;
use std::path::Path;

/// The largest accepted file, bytes: it has a dozen short lines.
const LARGEST: u64 = 1 << 20;

/// Reads the file; if it is missing, creates it without pinning and without a journaller, as the ancestor does. Returns
/// whether it was created.
///
/// # Errors
/// The file cannot be read or created, or a value is invalid.
pub fn load_or_make(path: &Path) -> anyhow::Result<(PipelineProperties, bool)> {
    let (text, made) = match read_bounded(path, LARGEST) {
        Ok(bytes) => (String::from_utf8_lossy(&bytes).into_owned(), false),
        Err(error) if error.is_absent() => {
            let text = PipelineProperties::template();
            make(path, &text).with_context(|| format!("{} cannot be made", path.display()))?;
            (text, true)
        }
        Err(error) => {
            return Err(error.into_io())
                .with_context(|| format!("{} cannot be read", path.display()));
        }
    };
    let properties = PipelineProperties::parse(&text)
        .map_err(|bad| UsageError(format!("{}: {bad}", path.display())))?;
    Ok((properties, made))
}

fn make(path: &Path, text: &str) -> anyhow::Result<()> {
    let (_, mut opened) = OutputPlace::find(path)
        .and_then(OutputPlace::open)
        .map_err(jitterscope_platform::AccessError::into_io)?;
    Ok(opened.file.write_all(text.as_bytes())?)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn an_absent_file_is_made_and_read_the_next_time() {
        let dir = tempfile::tempdir().unwrap();
        let path = dir.path().join("perf-workshop.properties");
        let (made, was_made) = load_or_make(&path).unwrap();
        let (read, made_again) = load_or_make(&path).unwrap();
        assert_eq!((was_made, made_again), (true, false));
        assert_eq!(made, read);
        assert_eq!(made.journaller, Some(false));
        let text = std::fs::read_to_string(&path).unwrap();
        for key in [
            "affinity.producer=",
            "affinity.journaller=",
            "affinity.accumulator=",
        ] {
            assert!(text.contains(&format!("perf.workshop.{key}\n")), "{text}");
        }
        assert!(load_or_make(&dir.path().join("no/where")).is_err());
        let endless = load_or_make(Path::new("/dev/zero")).unwrap_err();
        assert!(
            format!("{endless:#}").contains("not a regular file"),
            "{endless:#}"
        );
    }
}
