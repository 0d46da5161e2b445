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
        let base = etcetera::choose_base_strategy()
            .context("no home directory to keep runs in; name a folder with --runs DIR")?;
        Ok(base.data_dir().join("jitterscope").join("runs"))
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
