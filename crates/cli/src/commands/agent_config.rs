//! The file of `agent`: the options of `watch` by their long names, in TOML.

use super::watch_args::WatchArgs;
use crate::args::{Cli, Command};
use crate::places::Places;
use crate::toml_options::{argument, first_line, values};
use clap::error::ErrorKind;
use clap::{CommandFactory, Parser};
use jitterscope_model::{PutInOrder, visible};
use jitterscope_platform::{TrustError, TrustedFolder};
use jitterscope_view::toml_file;
use std::path::{Path, PathBuf};
use std::rc::Rc;

/// The longest file, bytes.
const LONGEST: usize = 64 << 10;
/// Options that name no property of a watch.
const NO_OPTIONS: [&str; 3] = ["help", "version", "color"];
/// The folder of runs, which is an option of every command.
const RUNS: &str = "runs";
/// What a running watch cannot change.
const FIXED: [&str; 13] = [
    "cpus",
    "for",
    "probe",
    "socket",
    RUNS,
    "threshold",
    "clock",
    "events",
    "trace-buffer",
    "quiet",
    "upload",
    "cluster",
    "upload-runs",
];

/// Why a file is not used.
#[derive(Debug, thiserror::Error)]
pub enum ConfigError {
    #[error(transparent)]
    Trust(#[from] TrustError),
    #[error("{}: there is no such file", .0.display())]
    Missing(PathBuf),
    #[error("{}: {why}", path.display())]
    Wrong { path: PathBuf, why: String },
}

/// A file that was read.
#[derive(Debug)]
pub struct AgentConfig {
    pub args: Rc<WatchArgs>,
    places: Option<Places>,
    options: Vec<ConfigOption>,
}

/// An option with its values, `None` for one without.
#[derive(Clone, Debug, PartialEq, Eq)]
struct ConfigOption {
    name: String,
    values: Vec<Option<String>>,
    /// Its line in the file, from 1.
    line: usize,
}

impl AgentConfig {
    /// Reads a file that no other user can change.
    ///
    /// # Errors
    /// Another user could change it or a folder above it, there is none, or it is wrong.
    pub fn read(path: &Path) -> Result<AgentConfig, ConfigError> {
        let wrong = |why: &str| ConfigError::Wrong {
            path: path.to_path_buf(),
            why: visible(why).into_owned(),
        };
        let missing = || ConfigError::Missing(path.to_path_buf());
        let folder = match path.parent() {
            Some(parent) if !parent.as_os_str().is_empty() => parent,
            _ => Path::new("."),
        };
        let name = path.file_name().and_then(|name| name.to_str());
        let name = name.ok_or_else(|| wrong("the name of the file is no text"))?;
        let folder = TrustedFolder::open(folder)?.ok_or_else(missing)?;
        let bytes = folder.read(name)?.ok_or_else(missing)?;
        if bytes.len() > LONGEST {
            return Err(wrong("it is longer than any such file"));
        }
        let text = String::from_utf8(bytes).map_err(|_| wrong("it is no text"))?;
        AgentConfig::parse(&text).map_err(|why| wrong(&why))
    }

    /// The options in a text; the error names the line.
    fn parse(text: &str) -> Result<AgentConfig, String> {
        let options = options(text)?;
        for option in &options {
            check(option).map_err(|why| format!("line {}: {why}", option.line))?;
        }
        let arguments = options.iter().flat_map(arguments);
        let cli = Cli::try_parse_from(
            ["jitterscope", "watch"]
                .map(String::from)
                .into_iter()
                .chain(arguments),
        )
        .map_err(|error| first_line(&error))?;
        let Command::Watch(args) = cli.command else {
            return Err("these are no options of watch".to_owned());
        };
        let names_runs = options.iter().any(|option| option.name == RUNS);
        Ok(AgentConfig {
            args: args.into(),
            places: names_runs.then_some(cli.places),
            options,
        })
    }

    /// The folders that the file names, or else `given`.
    pub fn places<'p>(&'p self, given: &'p Places) -> &'p Places {
        self.places.as_ref().unwrap_or(given)
    }

    /// Checks that a watch can go on with this file after another one.
    ///
    /// # Errors
    /// An option differs that only a new start can change.
    pub fn follows(&self, before: &AgentConfig) -> Result<(), String> {
        let of = |config: &AgentConfig, name: &str| {
            let option = config.options.iter().find(|option| option.name == name);
            option.map(|option| (option.values.clone(), option.line))
        };
        for name in FIXED {
            let (old, new) = (of(before, name), of(self, name));
            if old.as_ref().map(|of| &of.0) != new.as_ref().map(|of| &of.0) {
                let place = match new {
                    Some((_, line)) => format!("line {line}: '{name}' differs"),
                    None => format!("'{name}' is missing"),
                };
                return Err(format!(
                    "{place}, and only a new start changes it (systemctl restart)"
                ));
            }
        }
        Ok(())
    }
}

fn options(text: &str) -> Result<Vec<ConfigOption>, String> {
    let file = toml_file::table(text).map_err(|(at, says)| format!("line {at}: {says}"))?;
    let mut cli = Cli::command();
    cli.build();
    let watch = cli.find_subcommand("watch");
    let known: Vec<&str> = watch
        .into_iter()
        .flat_map(clap::Command::get_arguments)
        .filter_map(clap::Arg::get_long)
        .filter(|name| !NO_OPTIONS.contains(name))
        .collect();
    let mut options = Vec::new();
    for (key, value) in file.get_ref() {
        let line = toml_file::line(text, key.span().start);
        let name = key.get_ref().as_ref();
        if !known.contains(&name) {
            return Err(format!(
                "line {line}: 'watch' has no option '{}'; there are {}",
                name,
                known.join(", ")
            ));
        }
        let values =
            values(value.get_ref()).map_err(|why| format!("line {line}: '{name}' {why}"))?;
        options.push(ConfigOption {
            name: name.to_owned(),
            values,
            line,
        });
    }
    options.order_by_key(|option| option.line);
    Ok(options)
}

fn arguments(option: &ConfigOption) -> impl Iterator<Item = String> {
    let values = option.values.iter();
    values.map(|value| argument(&option.name, value.as_deref()))
}

/// Parses an option alone, so that the error has its line. What it requires is checked with all of them.
fn check(option: &ConfigOption) -> Result<(), String> {
    let line = ["jitterscope", "watch"].map(String::from);
    match Cli::try_parse_from(line.into_iter().chain(arguments(option))) {
        Err(error) if error.kind() != ErrorKind::MissingRequiredArgument => Err(first_line(&error)),
        _ => Ok(()),
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use jitterscope_model::Nanos;
    use std::os::unix::fs::PermissionsExt;

    #[test]
    fn every_option_of_watch_can_be_set() {
        let text = r#"
            cpus = "1"
            for = "rx"
            probe = "none"
            keep = "20m"
            disk = "1GiB"
            before = "5s"
            after = "1s"
            save-if = ["max>200us", "culprit(kworker)>1ms/s over 10s"]
            over = "2s"
            socket = "/run/x/s"
            on-trigger = "save,shell=logger a\\, b"
            apart = "10s"
            daily = 7
            section = "10s"
            metrics = "127.0.0.1:9750"
            metrics-open = true
            metrics-file = "/var/lib/x/js.prom"
            upload = "s3://bucket/x"
            cluster = "c"
            upload-runs = true
            threshold = "1us"
            clock = "tsc"
            label = "BOX"
            events = "all"
            trace-buffer = "4MiB"
            quiet = true
            runs = "/var/lib/jitterscope/runs"
        "#;
        let config = AgentConfig::parse(text).unwrap();
        let args = &config.args;
        assert_eq!((args.keep, args.daily), (Nanos(1_200_000_000_000), 7));
        assert_eq!(args.save_if.len(), 2);
        assert_eq!(args.on_trigger.0.len(), 2);
        assert!(args.quiet && args.metrics.metrics_open);
        let runs = config.places.as_ref().unwrap().runs().unwrap();
        assert_eq!(runs, Path::new("/var/lib/jitterscope/runs"));
        // A new option of watch is one of the file, and belongs into this test.
        let mut cli = Cli::command();
        cli.build();
        let watch = cli.find_subcommand("watch").unwrap();
        for option in watch.get_arguments().filter_map(clap::Arg::get_long) {
            let is_set = config.options.iter().any(|of| of.name == option);
            assert!(is_set || NO_OPTIONS.contains(&option), "{option}");
        }
    }

    #[test]
    fn a_wrong_file_names_the_line() {
        for (text, says) in [
            (
                "cpus = '1'\nkepp = '5m'\n",
                "line 2: 'watch' has no option 'kepp'; there are ",
            ),
            (
                "cpus = '1'\nkeep = '5'\n",
                "line 2: invalid value '5' for '--keep",
            ),
            ("\n\nkeep = ['5m', '6m']\n", "line 3: "),
            ("keep = 1.5\n", "line 1: 'keep' is no option"),
            (
                "[watch]\nkeep = '5m'\n",
                "line 1: 'watch' has no option 'watch'",
            ),
            ("help = true\n", "line 1: 'watch' has no option 'help'"),
            ("keep = true\n", "line 1: "),
            ("quiet = 'x'\n", "line 1: "),
            ("a = \n", "line 1: "),
            ("save-if = 'mx>1ms'\n", "line 1: invalid value 'mx>1ms'"),
            ("keep = '5m'\nkeep = '6m'\n", "line 2: "),
            ("metrics-open = true\n", "the following required arguments"),
        ] {
            let error = AgentConfig::parse(text).unwrap_err();
            assert!(error.starts_with(says), "{text}: {error}");
        }
        assert!(AgentConfig::parse("").is_ok(), "every option has a default");
    }

    #[test]
    fn only_what_a_running_watch_can_change_may_differ() {
        let of = |text: &str| AgentConfig::parse(text).unwrap();
        let before = of("cpus = '1'\nkeep = '5m'\n");
        assert!(
            of("keep = '9m'\ncpus = '1'\nsave-if = 'max>1ms'\n")
                .follows(&before)
                .is_ok()
        );
        let other = of("keep = '5m'\ncpus = '2'\n")
            .follows(&before)
            .unwrap_err();
        assert!(other.starts_with("line 2: 'cpus' differs"), "{other}");
        let missing = of("keep = '5m'\n").follows(&before).unwrap_err();
        assert!(missing.starts_with("'cpus' is missing"), "{missing}");
    }

    #[test]
    fn a_file_that_another_user_could_change_is_refused() {
        let dir = tempfile::tempdir().unwrap();
        let mode = |path: &Path, mode| {
            std::fs::set_permissions(path, std::fs::Permissions::from_mode(mode)).unwrap();
        };
        let file = dir.path().join("agent.toml");
        std::fs::write(&file, "cpus = '1'\n").unwrap();
        mode(&file, 0o644);
        assert!(AgentConfig::read(&file).is_ok());
        mode(&file, 0o664);
        let refused = AgentConfig::read(&file).unwrap_err().to_string();
        assert!(refused.contains("others may write to it"), "{refused}");
        mode(&file, 0o644);
        mode(dir.path(), 0o777);
        let refused = AgentConfig::read(&file).unwrap_err().to_string();
        assert!(refused.contains("others may write to it"), "{refused}");
        mode(dir.path(), 0o755);
        let link = dir.path().join("link.toml");
        std::os::unix::fs::symlink(&file, &link).unwrap();
        let refused = AgentConfig::read(&link).unwrap_err().to_string();
        assert!(refused.contains("link"), "{refused}");
        let missing = AgentConfig::read(&dir.path().join("none/x.toml")).unwrap_err();
        assert!(matches!(missing, ConfigError::Missing(_)), "{missing}");
        std::fs::write(&file, vec![b'#'; LONGEST + 1]).unwrap();
        let long = AgentConfig::read(&file).unwrap_err().to_string();
        assert!(long.contains("longer"), "{long}");
    }
}
