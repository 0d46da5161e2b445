//! Where runs are kept.

use anyhow::Context;
use clap::Args;
use etcetera::BaseStrategy;
use std::path::PathBuf;

/// Folders, from the command line or the environment.
#[derive(Args, Debug)]
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

    /// How this program is called so that it finds these runs again.
    pub fn program(&self) -> String {
        let named = std::env::var_os("JITTERSCOPE_RUNS").map(PathBuf::from);
        match &self.runs {
            Some(runs) if named.as_ref() != Some(runs) => {
                format!("jitterscope --runs {}", shell_word(&runs.to_string_lossy()))
            }
            _ => "jitterscope".into(),
        }
    }

    /// The folder of what can be made again.
    ///
    /// # Errors
    /// There is no home directory.
    pub fn cache(&self) -> anyhow::Result<PathBuf> {
        let base = etcetera::choose_base_strategy()
            .context("no home directory to keep an input in; name one with --input FILE")?;
        Ok(base.cache_dir().join("jitterscope"))
    }
}

/// The folder of the runs where none is named.
///
/// # Errors
/// There is no home directory.
pub fn default_runs() -> anyhow::Result<PathBuf> {
    let base = etcetera::choose_base_strategy()
        .context("no home directory to keep runs in; name a folder with --runs DIR")?;
    Ok(base.data_dir().join("jitterscope").join("runs"))
}

/// As a shell takes it for one word.
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
