//! The files that a benchmark tool within COMMAND writes, and stored times to compare with.

use crate::exit::UsageError;
use crate::places::shell_word;
use anyhow::Context;
use jitterscope_analyze::guard::Baseline;
use jitterscope_analyze::guard::results::{
    Benchmark, BenchmarkTool, MOST_BENCHMARKS, criterion, distinct, hyperfine, hyperfine_times,
    pytest_benchmark,
};
use jitterscope_model::visible;
use jitterscope_platform::{AccessError, HeldDir, open_regular, read_bounded};
use std::collections::BTreeMap;
use std::fs::File;
use std::os::unix::fs::MetadataExt;
use std::path::{Path, PathBuf};

/// The largest file that is read. pytest-benchmark writes 20 bytes for every round.
const LARGEST: u64 = 64 << 20;
/// criterion's folders: group, function, parameter, `new`; a name with a slash makes no folder.
const DEEPEST: usize = 5;
/// Far more than a thousand benchmarks have.
const MOST_FOLDERS: usize = 8 * MOST_BENCHMARKS;

/// What `--results` names.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Results {
    pub tool: BenchmarkTool,
    /// The file of hyperfine or pytest-benchmark, the folder of criterion.
    pub path: PathBuf,
}

/// Parses `TOOL=PATH`; criterion needs no path.
///
/// # Errors
/// The tool is unknown, or needs a path.
pub fn results(text: &str) -> Result<Results, String> {
    let (name, path) = match text.split_once('=') {
        Some((name, path)) => (name, Some(path)),
        None => (text, None),
    };
    let known = BenchmarkTool::ALL.into_iter();
    let tool = known.clone().find(|tool| tool.as_str() == name);
    let Some(tool) = tool else {
        let names: Vec<&str> = known.map(BenchmarkTool::as_str).collect();
        return Err(format!("'{name}' is none of {}", names.join(", ")));
    };
    let path = match (tool, path) {
        (_, Some(path)) if !path.is_empty() => path.into(),
        (BenchmarkTool::Criterion, None) => criterion_folder(),
        _ => return Err(format!("name the file that it writes: {name}=FILE")),
    };
    Ok(Results { tool, path })
}

/// Where criterion writes when COMMAND is started here.
fn criterion_folder() -> PathBuf {
    let named = |name| std::env::var_os(name).filter(|path| !path.is_empty());
    match (named("CRITERION_HOME"), named("CARGO_TARGET_DIR")) {
        (Some(folder), _) => folder.into(),
        (None, Some(target)) => Path::new(&target).join("criterion"),
        (None, None) => "target/criterion".into(),
    }
}

/// What shows that a file was written: device, inode, length, and the time of its last change.
#[derive(Clone, Copy, PartialEq, Eq)]
struct Stamp(u64, u64, u64, i64, i64);

impl Stamp {
    fn of(path: &Path, file: &File) -> Result<Stamp, AccessError> {
        let of = file.metadata().map_err(|source| io(path, source))?;
        Ok(Stamp(
            of.dev(),
            of.ino(),
            of.len(),
            of.ctime(),
            of.ctime_nsec(),
        ))
    }
}

fn io(path: &Path, source: std::io::Error) -> AccessError {
    AccessError::Io {
        path: path.to_path_buf(),
        source,
    }
}

/// The files of the tool before an iteration.
pub(super) struct Before(BTreeMap<PathBuf, Stamp>);

impl Results {
    /// The files before an iteration. A later look finds those that the iteration wrote.
    ///
    /// # Errors
    /// They cannot be read.
    pub(super) fn before(&self) -> anyhow::Result<Before> {
        Ok(Before(self.stamps().with_context(|| self.name())?))
    }

    /// The benchmarks whose files were written since then.
    ///
    /// # Errors
    /// There are none, or the files cannot be read.
    pub(super) fn since(&self, before: &Before) -> anyhow::Result<Vec<Benchmark>> {
        let stamps = self.stamps().with_context(|| self.name())?;
        let written = stamps
            .iter()
            .filter(|(path, now)| before.0.get(*path) != Some(now));
        let written: Vec<&PathBuf> = written.map(|(path, _)| path).collect();
        if written.is_empty() {
            anyhow::bail!(
                "{}: COMMAND wrote no results there; let it write to this place, or name the place where it writes",
                self.name()
            );
        }
        let mut all = Vec::new();
        for path in written {
            let of = self.read(path);
            all.extend(of.with_context(|| format!("--results {}", path.display()))?);
        }
        distinct(all).with_context(|| self.name())
    }

    fn name(&self) -> String {
        format!("--results {}={}", self.tool.as_str(), self.path.display())
    }

    fn read(&self, path: &Path) -> anyhow::Result<Vec<Benchmark>> {
        let bytes = |path: &Path| read_bounded(path, LARGEST);
        Ok(match self.tool {
            BenchmarkTool::Hyperfine => hyperfine(&bytes(path)?)?,
            BenchmarkTool::PytestBenchmark => pytest_benchmark(&bytes(path)?)?,
            BenchmarkTool::Criterion => {
                let beside = |name: &str| bytes(&path.with_file_name(name));
                vec![criterion(
                    &bytes(path)?,
                    &beside("estimates.json")?,
                    &beside("sample.json")?,
                )?]
            }
        })
    }

    fn stamps(&self) -> Result<BTreeMap<PathBuf, Stamp>, AccessError> {
        let mut stamps = BTreeMap::new();
        let absent = |error: AccessError| match error.is_absent() {
            true => Ok(()),
            false => Err(error),
        };
        if self.tool == BenchmarkTool::Criterion {
            let mut left = MOST_FOLDERS;
            let found = HeldDir::open(&self.path)
                .and_then(|folder| find(&folder, DEEPEST, &mut left, &mut stamps));
            found.or_else(absent)?;
        } else {
            match open_regular(&self.path) {
                Ok(file) => {
                    stamps.insert(self.path.clone(), Stamp::of(&self.path, &file)?);
                }
                Err(error) => absent(error)?,
            }
        }
        Ok(stamps)
    }
}

/// Finds the files that criterion writes last of each benchmark, without following links.
fn find(
    folder: &HeldDir,
    deeper: usize,
    left: &mut usize,
    stamps: &mut BTreeMap<PathBuf, Stamp>,
) -> Result<(), AccessError> {
    const LAST: &str = "benchmark.json";
    for entry in folder.entries()?.into_iter().filter(|entry| entry.is_dir) {
        if *left == 0 {
            let error = std::io::Error::other(format!("it has more than {MOST_FOLDERS} folders"));
            return Err(io(folder.path(), error));
        }
        *left -= 1;
        let inner = folder.open_dir(&entry.name)?;
        if entry.name == "new" && inner.has(LAST) {
            let (path, file) = (inner.path().join(LAST), inner.open_file(LAST)?);
            stamps.insert(path.clone(), Stamp::of(&path, &file)?);
        }
        if deeper > 0 {
            find(&inner, deeper - 1, left, stamps)?;
        }
    }
    Ok(())
}

/// The stored times of COMMAND in a file: those of the same command, or the only ones.
///
/// # Errors
/// The file cannot be read, or has several commands and none of them is COMMAND.
pub(super) fn baseline(path: &Path, command: &[String]) -> anyhow::Result<Baseline> {
    let name = || format!("--baseline {}", path.display());
    let bytes = read_bounded(path, LARGEST).with_context(name)?;
    let mut all = hyperfine_times(&bytes).with_context(name)?;
    let words: Vec<_> = command.iter().map(|word| shell_word(word)).collect();
    let (quoted, plain) = (words.join(" "), command.join(" "));
    let same = all
        .iter()
        .position(|of| of.command == quoted || of.command == plain);
    let chosen = match (same, all.len()) {
        (Some(at), _) => at,
        (None, 1) => 0,
        (None, n) => {
            let first = all
                .iter()
                .take(5)
                .map(|of| format!("`{}`", visible(&of.command)));
            let first = first.collect::<Vec<_>>().join(", ");
            let text = format!(
                "{}: none of its {n} commands is `{quoted}`, but {first}{}",
                name(),
                if n > 5 { ", ..." } else { "" }
            );
            return Err(UsageError(text).into());
        }
    };
    Ok(Baseline(all.swap_remove(chosen)))
}

#[cfg(test)]
mod tests {
    use super::*;
    use std::fs;

    fn fixtures() -> PathBuf {
        Path::new(env!("CARGO_MANIFEST_DIR")).join("../analyze/tests/fixtures/benchmarks")
    }

    fn put(folder: &Path) {
        fs::create_dir_all(folder).unwrap();
        for name in ["benchmark.json", "estimates.json", "sample.json"] {
            fs::copy(fixtures().join("criterion").join(name), folder.join(name)).unwrap();
        }
    }

    #[test]
    fn tools_are_named_with_their_files() {
        let found = results("pytest-benchmark=a=b.json").unwrap();
        assert_eq!(found.tool, BenchmarkTool::PytestBenchmark);
        assert_eq!(found.path, Path::new("a=b.json"));
        assert_eq!(results("criterion").unwrap().tool, BenchmarkTool::Criterion);
        assert_eq!(results("criterion=x/y").unwrap().path, Path::new("x/y"));
        for (text, error) in [
            ("jmh=x", "none of hyperfine, criterion, pytest-benchmark"),
            ("hyperfine", "hyperfine=FILE"),
            ("criterion=", "criterion=FILE"),
        ] {
            let found = results(text).unwrap_err();
            assert!(found.contains(error), "{found}");
        }
    }

    #[test]
    fn only_what_was_written_since_is_read() {
        let folder = tempfile::tempdir().unwrap();
        let of = Results {
            tool: BenchmarkTool::Criterion,
            path: folder.path().join("criterion"),
        };
        let nothing = of.before().unwrap();
        let error = of.since(&nothing).unwrap_err();
        assert!(error.to_string().contains("wrote no results"), "{error}");
        let new = of.path.join("sum_of/100/new");
        put(&new);
        put(&of.path.join("sum_of/100/base"));
        std::os::unix::fs::symlink("/", of.path.join("link")).unwrap();
        assert_eq!(of.since(&nothing).unwrap().len(), 1);
        let first = of.before().unwrap();
        assert!(of.since(&first).is_err(), "it is as it was");
        put(&of.path.join("new/new"));
        let found = of.since(&first).unwrap();
        assert_eq!(found.len(), 1, "{found:?}");
        fs::write(new.join("benchmark.json"), "{}").unwrap();
        let error = format!("{:#}", of.since(&first).unwrap_err());
        assert!(error.contains("missing field `full_id`"), "{error}");
        fs::remove_file(new.join("benchmark.json")).unwrap();
        let pipe = new.join("benchmark.json");
        let made = std::process::Command::new("mkfifo").arg(&pipe).status();
        assert!(made.unwrap().success());
        assert!(of.before().is_err(), "a pipe is no file");
    }

    #[test]
    fn stored_times_are_those_of_the_command_or_the_only_ones() {
        let words = |text: &str| text.split(' ').map(str::to_owned).collect::<Vec<_>>();
        let file = fixtures().join("hyperfine.json");
        let found = baseline(&file, &words("sleep 0.02")).unwrap();
        assert_eq!(
            (found.0.command.as_str(), found.0.times.len()),
            ("sleep 0.02", 3)
        );
        let error = baseline(&file, &words("sleep 9")).unwrap_err();
        assert!(error.is::<UsageError>(), "{error:#}");
        assert!(error.to_string().contains("`sleep 0.01`"), "{error}");
        let folder = tempfile::tempdir().unwrap();
        let only = folder.path().join("only.json");
        let text =
            r#"{"results":[{"command":"x","mean":1,"median":1,"min":1,"max":1,"times":[1]}]}"#;
        fs::write(&only, text).unwrap();
        assert_eq!(baseline(&only, &words("sleep 9")).unwrap().0.command, "x");
        assert!(baseline(folder.path(), &[]).is_err());
    }
}
