//! The arguments of a recording with the settings of its profile.

use super::{LIST, Profile, ProfileOption, load};
use crate::args::{Cli, PROBES};
use crate::exit::UsageError;
use crate::toml_options;
use clap::{CommandFactory, Parser};
use std::ffi::{OsStr, OsString};

const OPTION: &str = "--profile";

/// The arguments with the probe and the options of the profile that they name; what the user gave stays as it is. `None`
/// if they name no profile.
///
/// # Errors
/// The profile does not exist, is wrong, or has an option that its probe does not have.
pub fn expand(given: &[OsString]) -> Result<Option<Vec<OsString>>, UsageError> {
    let own = given
        .iter()
        .position(|arg| arg == "--")
        .unwrap_or(given.len());
    let given_here = &given[..own];
    let Some(record) = given_here.iter().position(|arg| arg == "record") else {
        return Ok(None);
    };
    let after = &given_here[record + 1..];
    let Some(name) = named(after) else {
        return Ok(None);
    };
    if name == LIST {
        return Ok(None);
    }
    let profile = load(&name)?;
    let wrong = |why: String| UsageError(format!("{OPTION} {name}: {why}"));
    // Elsewhere such a word is the value of an option: a label.
    let is_probe = |arg: &&OsString| PROBES.iter().any(|probe| arg == probe);
    let probe = after.first().filter(is_probe);
    if let Some(other) = probe.filter(|probe| **probe != *profile.probe) {
        let why = format!(
            "it measures with the probe {}: leave out {}",
            profile.probe,
            other.display()
        );
        return Err(wrong(why));
    }
    let mut expanded = given[..=record].to_vec();
    expanded.push(profile.probe.clone().into());
    for option in settings(&profile) {
        check(&profile, &option).map_err(|why| wrong(format!("line {}: {why}", option.line)))?;
        if !gives(after, &profile.probe, &option.name) {
            expanded.push(argument(&option));
        }
    }
    expanded.extend(taken(&profile).iter().map(argument));
    expanded.extend(after.iter().skip(probe.iter().len()).cloned());
    expanded.extend_from_slice(&given[own..]);
    Ok(Some(expanded))
}

/// The value of `--profile`.
pub(super) fn named(args: &[OsString]) -> Option<String> {
    let mut args = args.iter();
    while let Some(arg) = args.next() {
        if arg == OPTION {
            return args.next().map(|name| name.to_string_lossy().into_owned());
        }
        let value = arg
            .to_str()
            .and_then(|arg| arg.strip_prefix(OPTION)?.strip_prefix('='));
        if let Some(name) = value {
            return Some(name.to_owned());
        }
    }
    None
}

/// The options of the file, and the limit as a condition.
fn settings(profile: &Profile) -> Vec<ProfileOption> {
    let limit = condition("fail-above", format!("{}ns", profile.limit.0));
    let own = profile.options.iter().cloned();
    own.chain(std::iter::once(limit)).collect()
}

/// The limit of the taken share as a condition. It holds beside the user's own conditions.
fn taken(profile: &Profile) -> Option<ProfileOption> {
    let percent = f64::from(profile.taken_ppm?) / 1e4;
    Some(condition("fail-if", format!("stolen>{percent}%")))
}

fn condition(name: &str, value: String) -> ProfileOption {
    ProfileOption {
        name: name.into(),
        value: Some(value),
        line: 0,
    }
}

fn argument(option: &ProfileOption) -> OsString {
    toml_options::argument(&option.name, option.value.as_deref()).into()
}

/// Parses an option of a profile alone.
fn check(profile: &Profile, option: &ProfileOption) -> Result<(), String> {
    let line = ["jitterscope", "record", &profile.probe].map(OsString::from);
    match Cli::try_parse_from(line.into_iter().chain([argument(option)])) {
        Ok(_) => Ok(()),
        Err(error) => Err(toml_options::first_line(&error)),
    }
}

/// Whether the user gave this option, by its long or short name.
fn gives(args: &[OsString], probe: &str, long: &str) -> bool {
    let mut cli = Cli::command();
    cli.build();
    let of_probe = cli
        .find_subcommand("record")
        .and_then(|record| record.find_subcommand(probe));
    let option = of_probe
        .into_iter()
        .flat_map(clap::Command::get_arguments)
        .find(|option| option.get_long() == Some(long));
    let short = option.and_then(clap::Arg::get_short);
    args.iter()
        .map(OsString::as_os_str)
        .any(|arg| is(arg, long, short))
}

fn is(arg: &OsStr, long: &str, short: Option<char>) -> bool {
    let Some(arg) = arg.to_str() else {
        return false;
    };
    if let Some(name) = arg.strip_prefix("--") {
        return name.split('=').next() == Some(long);
    }
    let first = arg.strip_prefix('-').and_then(|rest| rest.chars().next());
    first.is_some() && first == short
}

#[cfg(test)]
mod tests {
    use super::*;

    fn expanded(line: &str) -> Result<String, String> {
        let given: Vec<OsString> = line.split(' ').map(OsString::from).collect();
        let words = |all: Vec<OsString>| {
            let words = all.iter().map(|word| word.to_string_lossy().into_owned());
            words.collect::<Vec<String>>().join(" ")
        };
        expand(&given)
            .map(|all| all.map_or_else(String::new, words))
            .map_err(|error| error.to_string())
    }

    #[test]
    fn the_users_own_options_take_precedence() {
        assert_eq!(
            expanded("js record --profile servo-1khz").unwrap(),
            "js record wakeup --period=1ms --threshold=20us --duration=60s --fail-above=50000ns --profile servo-1khz"
        );
        assert_eq!(
            expanded("js --runs x record wakeup --profile=servo-1khz -d5s --threshold 1us")
                .unwrap(),
            "js --runs x record wakeup --period=1ms --fail-above=50000ns --profile=servo-1khz -d5s --threshold 1us"
        );
        assert_eq!(
            expanded("js record --label spin --profile trading").unwrap(),
            "js record spin --duration=60s --fail-above=10000ns --label spin --profile trading"
        );
        assert_eq!(
            expanded("js record --profile cloud-vm --fail-if max>1s").unwrap(),
            "js record spin --duration=60s --fail-above=1000000ns --fail-if=stolen>1% --profile cloud-vm --fail-if max>1s"
        );
        assert_eq!(expanded("js record -d 5s").unwrap(), "");
        assert_eq!(expanded("js attach -- record --profile x").unwrap(), "");
    }

    #[test]
    fn what_is_impossible_is_refused() {
        let other = expanded("js record spin --profile servo-1khz").unwrap_err();
        assert!(
            other.contains("the probe wakeup: leave out spin"),
            "{other}"
        );
        let unknown = expanded("js record --profile servo").unwrap_err();
        assert!(
            unknown.contains("there are audio-RATE-FRAMES, "),
            "{unknown}"
        );
        let folder = tempfile::tempdir().unwrap();
        let file = folder.path().join("own.toml");
        for (option, says) in [
            (
                "perod = '1ms'",
                "line 6: a profile does not set 'perod', but ",
            ),
            ("period = '1'", "line 6: invalid value '1'"),
            ("idle-control = 'yes'", "line 6: unexpected value 'yes'"),
        ] {
            let text = format!(
                "version = 1\ntitle = 'x'\nlimit = '1ms'\nprobe = 'wakeup'\n[record]\n{option}\n"
            );
            std::fs::write(&file, text).unwrap();
            let error = expanded(&format!("js record --profile {}", file.display())).unwrap_err();
            assert!(error.contains(says), "{error}");
        }
    }
}
