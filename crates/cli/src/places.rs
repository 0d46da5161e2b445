//! Where runs are kept.

use crate::exit::UsageError;
use anyhow::Context;
use clap::Args;
use etcetera::BaseStrategy;
use std::path::{Path, PathBuf};

/// Folders, from the command line or the environment.
#[derive(Args, Clone, Debug)]
pub struct Places {
    /// Folder of the runs [default: jitterscope/runs in the XDG data directory]
    #[arg(
        long = "runs",
        value_name = "DIR",
        env = "JITTERSCOPE_RUNS",
        hide_env_values = true,
        global = true,
        display_order = 900
    )]
    runs: Option<PathBuf>,
}

impl Places {
    /// The folder of the runs.
    ///
    /// # Errors
    /// None was named, and there is no home directory.
    pub fn runs(&self) -> anyhow::Result<PathBuf> {
        if let Some(runs) = &self.runs {
            return Ok(runs.clone());
        }
        default_runs()
    }

    /// The folder of reproducible data.
    ///
    /// # Errors
    /// There is no home directory.
    pub fn cache(&self) -> anyhow::Result<PathBuf> {
        let base = etcetera::choose_base_strategy()
            .context("no home directory to keep an input in; name one with --input FILE")?;
        Ok(base.cache_dir().join("jitterscope"))
    }
}

/// The variable that raises the memory bound for reading a run, in MiB.
const READ_MEMORY: &str = "JITTERSCOPE_READ_MEMORY";

/// Sets the memory bound from the environment.
///
/// # Errors
/// The value is not a number.
pub fn allow_memory() -> Result<(), UsageError> {
    let Some(text) = std::env::var_os(READ_MEMORY) else {
        return Ok(());
    };
    let mib = text.to_str().and_then(|text| text.parse::<usize>().ok());
    let bytes = mib.and_then(|mib| mib.checked_mul(1 << 20));
    let Some(bytes) = bytes.filter(|bytes| *bytes > 0) else {
        let text = text.to_string_lossy();
        return Err(UsageError(format!(
            "{READ_MEMORY}={text}: write a number of MiB"
        )));
    };
    jitterscope_store::allow_memory(bytes);
    Ok(())
}

/// The program's command line that finds a stored run by its id.
pub fn program(run: &Path) -> String {
    let folder = folder_of(run);
    let unasked = std::env::var_os("JITTERSCOPE_RUNS")
        .map(PathBuf::from)
        .or_else(|| default_runs().ok());
    if unasked.as_ref() == Some(&folder) {
        "jitterscope".into()
    } else {
        with_runs("jitterscope", &folder)
    }
}

/// The same for root: sudo drops the variable, and root has a different home.
pub fn program_as_root(run: &Path) -> String {
    let folder = folder_of(run);
    let is_roots =
        rustix::process::geteuid().is_root() && default_runs().ok().as_ref() == Some(&folder);
    if is_roots {
        "sudo jitterscope".into()
    } else {
        with_runs("sudo jitterscope", &folder)
    }
}

fn folder_of(run: &Path) -> PathBuf {
    let parent = run.parent().filter(|parent| !parent.as_os_str().is_empty());
    parent.map_or_else(|| PathBuf::from("."), Path::to_path_buf)
}

fn with_runs(program: &str, folder: &Path) -> String {
    // Relative folders only work from the current folder.
    let folder = std::path::absolute(folder).unwrap_or_else(|_| folder.to_path_buf());
    format!("{program} --runs {}", shell_word(&folder.to_string_lossy()))
}

/// The default folder of runs.
///
/// # Errors
/// There is no home directory.
pub fn default_runs() -> anyhow::Result<PathBuf> {
    let base = etcetera::choose_base_strategy()
        .context("no home directory to keep runs in; name a folder with --runs DIR")?;
    Ok(base.data_dir().join("jitterscope").join("runs"))
}

/// The text quoted as one word for a shell.
pub fn shell_word(text: &str) -> String {
    let plain = |c: char| c.is_ascii_alphanumeric() || "/._-+:@%".contains(c);
    if !text.is_empty() && text.chars().all(plain) {
        return text.to_owned();
    }
    format!("'{}'", text.replace('\'', "'\\''"))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_folder_with_spaces_is_one_word() {
        assert_eq!(shell_word("/a/b-c"), "/a/b-c");
        assert_eq!(shell_word("/a b/it's"), "'/a b/it'\\''s'");
    }
}
