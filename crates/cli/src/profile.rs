//! `record --profile NAME`: a limit, a probe and its settings from a file, for one kind of work.

mod computed;
mod expand;
mod names;
mod variable;

pub use expand::expand;
pub use names::{LIST, is_listed, list, names};

use crate::exit::UsageError;
use crate::toml_options;
use crate::units::some_duration;
use crate::user_file;
use etcetera::BaseStrategy;
use jitterscope_model::{Nanos, ProfileLimit, PutInOrder};
use jitterscope_view::toml_file;
use std::path::PathBuf;
use toml::de::DeValue;

/// The profiles of this program that have a file, by name; the others are [`computed`].
const OURS: [(&str, &str); 4] = [
    ("cloud-vm", include_str!("../profiles/cloud-vm.toml")),
    (
        "openshift-latency",
        include_str!("../profiles/openshift-latency.toml"),
    ),
    ("trading", include_str!("../profiles/trading.toml")),
    ("vran-slot", include_str!("../profiles/vran-slot.toml")),
];
/// The version of the file that this program reads.
const VERSION: i64 = 1;
/// The probes whose stalls a limit judges.
const PROBES: [&str; 3] = ["none", "spin", "wakeup"];
/// The options that a profile may set: how is measured, and nothing about where anything is written. Root may read a
/// file that another user made.
const OPTIONS: [&str; 15] = [
    "clock",
    "cpus",
    "duration",
    "events",
    "fail-if",
    "for",
    "hold-latency",
    "idle-control",
    "interval",
    "no-trace",
    "period",
    "priority",
    "require",
    "threshold",
    "warmup",
];

/// What one kind of work needs of a CPU.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Profile {
    /// The work, for a sentence: `a 1 kHz servo`.
    pub title: String,
    /// The longest time that a CPU may be away, or a wake-up may be late.
    pub limit: Nanos,
    /// The largest share of the time that stalls may take, in parts per million.
    taken_ppm: Option<u32>,
    pub probe: String,
    /// Options of `record` for that probe.
    options: Vec<ProfileOption>,
}

#[derive(Clone, Debug, PartialEq, Eq)]
struct ProfileOption {
    /// Its long name, without dashes.
    name: String,
    /// `None` for an option without a value.
    value: Option<String>,
    /// Its line in the file, from 1.
    line: usize,
}

/// The profile of this name: the user's, else ours; or a file, if the name is a path.
///
/// # Errors
/// There is none, it cannot be read, or it is wrong.
pub fn load(name: &str) -> Result<Profile, UsageError> {
    let wrong = |from: &str, why: String| UsageError(format!("--profile {from}: {why}"));
    let path = if name.contains('/') || name.ends_with(".toml") {
        Some(PathBuf::from(name))
    } else {
        users(name).filter(|path| path.exists())
    };
    if let Some(path) = path {
        let from = path.display().to_string();
        let text = user_file::text(&path).map_err(|error| wrong(&from, error.to_string()))?;
        return parse(&text).map_err(|why| wrong(&from, why));
    }
    let file = OURS.iter().find(|(ours, _)| *ours == name);
    let file = file.map(|(_, text)| Ok((*text).to_owned()));
    match file.or_else(|| computed::file(name)) {
        Some(text) => text.and_then(|text| parse(&text)),
        None => Err(names::unknown(name)),
    }
    .map_err(|why| wrong(name, why))
}

impl Profile {
    /// The limits, with the user's own in place of the profile's.
    pub fn limit(&self, own: Option<Nanos>) -> ProfileLimit {
        let limit = own.unwrap_or(self.limit);
        ProfileLimit {
            title: self.title.clone(),
            limit_ns: limit,
            replaces_ns: (limit != self.limit).then_some(self.limit),
            taken_ppm: self.taken_ppm,
        }
    }
}

/// The file of a user's profile.
fn users(name: &str) -> Option<PathBuf> {
    let base = etcetera::choose_base_strategy().ok()?;
    let folder = base.config_dir().join("jitterscope").join("profiles");
    Some(folder.join(format!("{name}.toml")))
}

/// Reads a profile; the error names the line.
fn parse(text: &str) -> Result<Profile, String> {
    let line = |at: usize| toml_file::line(text, at);
    let file = toml_file::table(text).map_err(|(at, says)| format!("line {at}: {says}"))?;
    let [mut title, mut probe, mut version] = [const { None }; 3];
    let (mut limit, mut taken_ppm) = (None, None);
    let mut options = Vec::new();
    for (key, value) in file.get_ref() {
        let at = line(key.span().start);
        let bad = |why: &str| format!("line {at}: {why}");
        match (key.get_ref().as_ref(), value.get_ref()) {
            ("version", DeValue::Integer(number)) => version = Some(number.as_str().to_owned()),
            ("title", DeValue::String(text)) => title = Some(text.to_string()),
            ("probe", DeValue::String(text)) if PROBES.contains(&text.as_ref()) => {
                probe = Some(text.to_string());
            }
            ("probe", DeValue::String(text)) => {
                let why = format!("probe '{text}': there are {}", PROBES.join(", "));
                return Err(bad(&why));
            }
            ("limit", given @ (DeValue::String(_) | DeValue::Table(_))) => {
                let of_limit = |why: String| bad(&format!("limit: {why}"));
                for text in values(given).map_err(of_limit)?.into_iter().flatten() {
                    limit = Some(some_duration(&text).map_err(of_limit)?);
                }
            }
            ("taken", DeValue::String(text)) => {
                taken_ppm = Some(share(text).map_err(|why| bad(&format!("taken: {why}")))?);
            }
            ("record", DeValue::Table(table)) => {
                for (key, value) in table {
                    let at = line(key.span().start);
                    if !OPTIONS.contains(&key.get_ref().as_ref()) {
                        let (key, all) = (key.get_ref(), OPTIONS.join(", "));
                        return Err(format!(
                            "line {at}: a profile does not set '{key}', but {all}"
                        ));
                    }
                    let values = values(value.get_ref())
                        .map_err(|why| format!("line {at}: '{}' {why}", key.get_ref()))?;
                    options.extend(values.into_iter().map(|value| ProfileOption {
                        name: key.get_ref().to_string(),
                        value,
                        line: at,
                    }));
                }
            }
            (key @ ("version" | "title" | "probe" | "limit" | "taken" | "record"), _) => {
                return Err(bad(&format!("{key} has a value of the wrong type")));
            }
            (key, _) => {
                return Err(bad(&format!(
                    "unknown key '{key}': there are version, title, limit, taken, probe and [record]"
                )));
            }
        }
    }
    match version.as_deref() {
        Some(found) if found == VERSION.to_string() => {}
        Some(found) => {
            return Err(format!(
                "version {found} is unknown; this program reads version {VERSION}"
            ));
        }
        None => return Err(format!("there is no line `version = {VERSION}`")),
    }
    let missing = |key: &str| format!("there is no line `{key} = \"...\"`");
    options.order_by_key(|option| option.line);
    if taken_ppm.is_some() && probe.as_deref() != Some("spin") {
        return Err(
            "taken is a share of the time, which only probe = \"spin\" measures".to_owned(),
        );
    }
    Ok(Profile {
        taken_ppm,
        title: title.ok_or_else(|| missing("title"))?,
        limit: limit.ok_or_else(|| missing("limit"))?,
        probe: probe.ok_or_else(|| missing("probe"))?,
        options,
    })
}

/// A share of `0.5%` in parts per million.
fn share(text: &str) -> Result<u32, String> {
    let number = text
        .strip_suffix('%')
        .and_then(|number| number.trim().parse::<f64>().ok());
    let share = number.filter(|percent| (0.0001..=100.0).contains(percent));
    let share = share.ok_or(format!("'{text}' is no share from 0.0001% to 100%"))?;
    Ok((share * 1e4).round() as u32)
}

/// The values of an option; none for one that is off, or that rests on a variable that is not set.
fn values(value: &DeValue<'_>) -> Result<Vec<Option<String>>, String> {
    Ok(match value {
        DeValue::Array(all) => {
            let each = all.iter().map(|value| values(value.get_ref()));
            each.collect::<Result<Vec<_>, _>>()?.concat()
        }
        DeValue::Table(table) => {
            let set = variable::value(table, |name| std::env::var(name).ok())
                .map_err(|why| format!("cannot be set: {why}"))?;
            set.map(Some).into_iter().collect()
        }
        plain => toml_options::values(plain)?,
    })
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn our_profiles_are_read_and_expanded() {
        let ours = OURS.iter().map(|(name, _)| (*name).to_owned());
        for name in ours.chain(computed::usual()) {
            let profile = load(&name).unwrap();
            let given = ["jitterscope", "record", "--profile", &name].map(Into::into);
            let expanded = expand(&given).unwrap().unwrap();
            assert!(!profile.title.is_empty());
            let cli = <crate::args::Cli as clap::Parser>::try_parse_from(&expanded);
            assert!(cli.is_ok(), "{name}: {expanded:?}");
        }
    }

    #[test]
    fn a_wrong_profile_names_the_line() {
        let head = "version = 1\ntitle = 'x'\nprobe = 'spin'\n";
        for (text, says) in [
            (
                "version = 1\ntitle = 'x'\nlimit = '50'\n",
                "line 3: limit: '50' has no unit",
            ),
            (
                "version = 1\nlimits = '50us'\n",
                "line 2: unknown key 'limits'",
            ),
            ("version = 2\n", "version 2 is unknown"),
            ("title = 3\n", "line 1: title has a value of the wrong type"),
            (
                "version = 1\nprobe = 'pipeline'\n",
                "line 2: probe 'pipeline': there are none, spin, wakeup",
            ),
            (
                "version = 1\n[record]\noutput = 'csv:///etc/x'\n",
                "line 3: a profile does not set 'output', but clock, ",
            ),
            (
                "version = 1\n[record]\nduration = 1.5\n",
                "line 3: 'duration' is no option",
            ),
            ("version = 1\n[rec", "line 2: "),
            (head, "there is no line `limit = \"...\"`"),
            (
                "version = 1\ntaken = '1'\n",
                "line 2: taken: '1' is no share from ",
            ),
            (
                "version = 1\nprobe = 'wakeup'\ntaken = '1%'\n",
                "taken is a share of the time, which only ",
            ),
        ] {
            let error = parse(text).unwrap_err();
            assert!(error.starts_with(says), "{text}: {error}");
        }
    }
}
