//! Checks whether labels are true: injects faults with known culprits into recordings, and compares each label with the
//! injector's log.
//!
//! The injectors are separate programs (`injectors/`), written without looking at `crates/attribute`, and share no code
//! with `selftest`. `kinds.rs` has the right answer of each fault, fixed before any run; `judge.rs` defines right,
//! wrong and withheld.

mod injector;
mod judge;
mod kinds;
mod run;
mod stored;
mod table;

use crate::consent::Consent;
use crate::packages::{self, INJECTORS};
use crate::{program, tools};
use anyhow::{anyhow, bail, ensure};
use clap::Args;
use std::collections::BTreeSet;
use std::fs::File;
use std::path::PathBuf;
use std::time::{Duration, Instant};

#[derive(Args)]
pub struct FaultsArgs {
    /// Install the C compiler, where it is missing
    #[arg(long)]
    yes: bool,
    /// These kinds only, or KIND@PROBE; may be repeated
    #[arg(long, value_name = "KIND")]
    only: Vec<String>,
    /// Faults of each kind and probe
    #[arg(long, default_value_t = 12)]
    count: usize,
    /// This program instead of a debug build
    #[arg(long)]
    program: Option<PathBuf>,
    /// Judge again what was recorded, and record nothing
    #[arg(long)]
    again: bool,
}

/// How long we hold the lock at a stretch while other recordings wait.
const STRETCH: Duration = Duration::from_secs(120);

/// The lock shared by all recordings on this machine, released periodically.
#[derive(Default)]
struct Turn(Option<(File, Instant)>);

impl Turn {
    fn take(&mut self) {
        if self
            .0
            .as_ref()
            .is_some_and(|(_, since)| since.elapsed() > STRETCH)
        {
            self.0 = None;
            // So that a waiting process gets it before we ask again.
            std::thread::sleep(Duration::from_millis(200));
        }
        self.0
            .get_or_insert_with(|| (jitterscope_testing::turn(), Instant::now()));
    }
}

/// Minimum share of right or withheld labels, and of right ones among the sure; maximum share of withheld ones.
const RIGHT_OR_WITHHELD: f64 = 0.98;
const RIGHT_WHERE_SURE: f64 = 0.99;
const MOST_WITHHELD: f64 = 0.10;

pub fn run(args: &FaultsArgs) -> anyhow::Result<()> {
    let trials: Vec<_> = kinds::trials()
        .into_iter()
        .filter(|trial| args.only.is_empty() || args.only.iter().any(|only| trial.is_called(only)))
        .collect();
    ensure!(!trials.is_empty(), "no kind is called that");
    let folder = tools::target().join("faults");
    std::fs::create_dir_all(&folder)?;
    // A failed trial has no result but does not stop the others.
    let mut failed = Vec::new();
    if !args.again {
        ensure!(
            rustix::process::geteuid().is_root(),
            "injecting faults needs root"
        );
        packages::install(&INJECTORS, Consent::given(args.yes))
            .map_err(|missing| anyhow!(missing))?;
        if let Some(path) = &args.program {
            program::take(path)?;
        }
        let mut commit = table::commit()?;
        if let Some(path) = &args.program {
            commit = format!("{commit}, a given program ({})", path.display());
        }
        let (program, injector) = (program::get()?, injector::compiled(&folder)?);
        let mut turn = Turn::default();
        for trial in &trials {
            eprintln!("{trial}");
            turn.take();
            let recorded = run::record(trial, args.count, &program, &injector, &folder)
                .and_then(|()| run::keep_commit(trial, &folder, &commit));
            if let Err(error) = recorded {
                failed.push(format!("{trial}: {error:#}"));
            }
        }
    }
    let (mut judged, mut commits) = (Vec::new(), BTreeSet::new());
    for trial in &trials {
        match run::judge(trial, &folder) {
            Ok(of) => {
                judged.push((trial, of));
                commits.insert(run::commit(trial, &folder));
            }
            Err(error) => failed.push(format!("{trial}: {error:#}")),
        }
    }
    table::print(&judged, &commits);
    ensure!(
        failed.is_empty(),
        "not every kind was tried:\n{}",
        failed.join("\n")
    );
    let all = table::Tally::of(judged.iter().flat_map(|(_, of)| of));
    let missed = [
        (all.right_or_withheld() < RIGHT_OR_WITHHELD).then_some("right or withheld"),
        (all.right_where_sure() < RIGHT_WHERE_SURE).then_some("right where confidence is high"),
        (all.withheld() > MOST_WITHHELD).then_some("withheld"),
    ];
    let missed: Vec<_> = missed.into_iter().flatten().collect();
    if !missed.is_empty() {
        bail!("the labels miss their mark: {}", missed.join(", "));
    }
    Ok(())
}
