//! The files of a series, for other tools.

use super::guard_args::GuardArgs;
use crate::exit::UsageError;
use crate::output;
use crate::places::shell_word;
use anyhow::Context;
use jitterscope_analyze::guard::Series;
use jitterscope_export::{WholeFile, same_file};
use jitterscope_view::guard;
use std::path::{Path, PathBuf};

/// A requested file, opened before anything is measured.
struct Requested {
    option: &'static str,
    path: PathBuf,
    file: WholeFile,
}

impl Requested {
    fn open(option: &'static str, path: Option<&PathBuf>) -> anyhow::Result<Option<Requested>> {
        let Some(path) = path else {
            return Ok(None);
        };
        let path = path.clone();
        let file = WholeFile::open(&path).with_context(|| said(option, &path))?;
        Ok(Some(Requested { option, path, file }))
    }

    /// Writes the text; without one there was nothing to write.
    fn write(self, text: Option<String>) -> anyhow::Result<()> {
        let name = said(self.option, &self.path);
        match text {
            Some(text) => self.file.write(text.as_bytes()).context(name),
            None => {
                output::talk(format_args!(
                    "{name} is not written: no iteration ran to its end"
                ));
                Ok(())
            }
        }
    }
}

fn said(option: &str, path: &Path) -> String {
    format!("{option} {}", path.display())
}

/// All requested files.
pub(super) struct Files {
    hyperfine: Option<Requested>,
    bencher: Option<Requested>,
    markdown: Option<Requested>,
}

impl Files {
    /// Opens the files; existing ones stay as they are until all is measured.
    ///
    /// # Errors
    /// Two of them are one, one is standard output, which has the report, or one cannot be made.
    pub(super) fn open(args: &GuardArgs) -> anyhow::Result<Files> {
        let asked = [
            ("--export-json", args.export_json.as_ref()),
            ("--bencher", args.bencher.as_ref()),
            ("--markdown", args.markdown.as_ref()),
        ];
        let read = args.results.as_ref().map(|of| ("--results", &*of.path));
        let mut named: Vec<(&str, &Path)> = read.into_iter().collect();
        for (option, path) in asked {
            let Some(path) = path else { continue };
            if path == Path::new("-") {
                let text = format!("{option} -: standard output has the report; name a file");
                return Err(UsageError(text).into());
            }
            if let Some((other, _)) = named.iter().find(|(_, other)| same_file(other, path)) {
                let text = format!("{other} and {option} name the same file");
                return Err(UsageError(text).into());
            }
            named.push((option, path));
        }
        let [hyperfine, bencher, markdown] = asked;
        Ok(Files {
            hyperfine: Requested::open(hyperfine.0, hyperfine.1)?,
            bencher: Requested::open(bencher.0, bencher.1)?,
            markdown: Requested::open(markdown.0, markdown.1)?,
        })
    }

    /// Writes them all.
    ///
    /// # Errors
    /// One cannot be written.
    pub(super) fn write(self, series: &Series) -> anyhow::Result<()> {
        if let Some(file) = self.hyperfine {
            let words: Vec<_> = series.command.iter().map(|word| shell_word(word)).collect();
            file.write(guard::hyperfine(series, words.join(" "))?)?;
        }
        if let Some(file) = self.bencher {
            file.write(guard::bencher(series)?)?;
        }
        if let Some(file) = self.markdown {
            file.write(Some(guard::markdown(series)))?;
        }
        Ok(())
    }
}
