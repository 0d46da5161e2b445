//! `text-order`: which functions recordings call, for the linker to put them side by side (`crates/cli/build.rs`).
//!
//! Recordings and reports of the released build are run with a breakpoint on each function, which is gone after its
//! first call.

mod order;

use crate::{program, shell, tools};
use anyhow::{Context, ensure};
use clap::Args;
use order::{Function, ordered};
use std::collections::BTreeSet;
use std::fs;
use std::path::{Path, PathBuf};

/// What is loaded into the program to see its calls.
const ENTERED: &str = include_str!("entered.c");
/// The list, below the root.
const LIST: &str = "crates/cli/text-order";
/// What stands above it.
const HEAD: &str = "# Functions that recordings call, those of most recordings first: written by `cargo xtask text-order`.\n";

/// What is run, in groups: whatever one of a group calls stands before what only the next ones call. What memory is
/// promised for is the first.
const TRAINED: [&[&[&str]]; 4] = [
    &[
        &["record", "--json", "--duration", "5s"],
        &["record", "--duration", "5s"],
        &["record", "--duration", "12s", "--full"],
    ],
    &[
        &["report"],
        &["report", "--json"],
        &["report", "--full"],
        &["list"],
    ],
    &[
        &["record", "wakeup", "--duration", "3s"],
        &["record", "none", "--duration", "3s"],
        &["attach", "--duration", "2s", "--", "sleep", "3"],
    ],
    &[&["record", "pipeline", "--force", "--duration", "3s"]],
];

/// Arguments of `cargo xtask text-order`.
#[derive(Args)]
pub struct TextOrderArgs {
    /// A released build with its symbols, instead of one that is built now
    #[arg(long, value_name = "FILE")]
    program: Option<PathBuf>,
}

/// Runs all of it and writes the list.
pub fn run(args: &TextOrderArgs) -> anyhow::Result<()> {
    ensure!(
        cfg!(target_arch = "x86_64"),
        "breakpoints are set as x86-64 has them; the list serves every machine"
    );
    let program = match &args.program {
        Some(program) => program.clone(),
        None => {
            let of = [
                "build",
                "--release",
                "--locked",
                "-p",
                "jitterscope",
                "--features",
                program::FEATURES,
            ];
            shell::run("cargo", &of)?;
            tools::target().join("release/jitterscope")
        }
    };
    let program = program
        .canonicalize()
        .with_context(|| program.display().to_string())?;
    let listed = shell::output("nm", &["--print-size", utf8(&program)?])?;
    let functions: Vec<Function> = listed.lines().filter_map(Function::parse).collect();
    ensure!(
        !functions.is_empty(),
        "{} has no symbols",
        program.display()
    );
    let folder = tempfile::tempdir().context("no temporary folder can be made")?;
    let probe = Probe::new(program, &functions, folder.path())?;
    let groups = TRAINED
        .iter()
        .map(|group| probe.entered(group))
        .collect::<anyhow::Result<Vec<_>>>()?;
    let names = ordered(&functions, &groups);
    let list = names
        .iter()
        .fold(HEAD.to_owned(), |list, name| list + name + "\n");
    fs::write(shell::root().join(LIST), list).with_context(|| LIST.to_owned())?;
    eprintln!(
        "{} functions, of {}, stand in {LIST}",
        names.len(),
        functions.len()
    );
    Ok(())
}

/// What sees a program's calls.
struct Probe<'f> {
    program: PathBuf,
    folder: &'f Path,
    library: PathBuf,
    symbols: PathBuf,
}

impl<'f> Probe<'f> {
    fn new(
        program: PathBuf,
        functions: &[Function],
        folder: &'f Path,
    ) -> anyhow::Result<Probe<'f>> {
        let (source, library) = (folder.join("entered.c"), folder.join("entered.so"));
        let symbols = folder.join("symbols");
        fs::write(&source, ENTERED).context("entered.c")?;
        let addresses: String = functions
            .iter()
            .map(|of| format!("{:x}\n", of.address))
            .collect();
        fs::write(&symbols, addresses).context("the list of symbols")?;
        let paths = [utf8(&source)?, utf8(&library)?];
        shell::run("cc", &["-O1", "-shared", "-fPIC", "-o", paths[1], paths[0]])?;
        Ok(Probe {
            program,
            folder,
            library,
            symbols,
        })
    }

    /// Addresses of the functions that one of these calls.
    fn entered(&self, group: &[&[&str]]) -> anyhow::Result<BTreeSet<u64>> {
        let out = self.folder.join("entered");
        for args in group {
            eprintln!("+ jitterscope {}", args.join(" "));
            let mut command = shell::command(utf8(&self.program)?, args);
            command
                .env("JITTERSCOPE_RUNS", self.folder.join("runs"))
                .env("LD_PRELOAD", &self.library);
            command
                .env("ENTERED_PROGRAM", &self.program)
                .env("ENTERED_SYMBOLS", &self.symbols);
            command
                .env("ENTERED_OUT", &out)
                .stdout(std::process::Stdio::null());
            let status = command.status().context("the program cannot be started")?;
            ensure!(
                status.success(),
                "jitterscope {} failed ({status})",
                args.join(" ")
            );
        }
        let mut entered = BTreeSet::new();
        for file in fs::read_dir(self.folder)
            .context("the temporary folder")?
            .flatten()
        {
            let path = file.path();
            if file.file_name().to_string_lossy().starts_with("entered.")
                && path.extension().is_some_and(of_process)
            {
                let text = fs::read_to_string(&path).with_context(|| path.display().to_string())?;
                entered.extend(
                    text.lines()
                        .filter_map(|line| u64::from_str_radix(line, 16).ok()),
                );
                fs::remove_file(&path).with_context(|| path.display().to_string())?;
            }
        }
        ensure!(!entered.is_empty(), "no call was seen");
        Ok(entered)
    }
}

/// Whether a file's name ends with the number of a process.
fn of_process(extension: &std::ffi::OsStr) -> bool {
    extension
        .to_string_lossy()
        .bytes()
        .all(|b| b.is_ascii_digit())
}

fn utf8(path: &Path) -> anyhow::Result<&str> {
    path.to_str()
        .with_context(|| format!("{} is no UTF-8", path.display()))
}
