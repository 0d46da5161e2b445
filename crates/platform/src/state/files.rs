//! Files that [`MACHINE_SETTINGS`](jitterscope_model::MACHINE_SETTINGS) declares.

use super::{LONGEST, missing};
use crate::machine::Machine;
use crate::topology::Topology;
use jitterscope_model::{
    CpuId, CpuSet, FileForm, MachineEntry, MachineSettings, PutInOrder, Reading, ReadingFlaw,
    Scalar,
};

/// Names kept at most of one setting: a kernel has some dozen workqueues.
const MOST: usize = 256;

/// The first of these files that exists; `{cpu}` is each online CPU, `*` each name in its folder.
pub(super) fn read(
    machine: &Machine,
    topology: &Topology,
    name: &str,
    files: &[(&str, FileForm)],
    settings: &mut MachineSettings,
) {
    for (path, form) in files {
        if let Some((before, after)) = path.split_once("{cpu}") {
            let one = |cpu: CpuId| {
                let is = value(machine, &format!("{before}{cpu}{after}"), *form);
                (cpu, MachineEntry::from(is))
            };
            settings.put_each(name, topology.online.iter().map(one));
        } else if path.contains('*') {
            settings.put(name, of_each_name(machine, path, *form));
        } else {
            match value(machine, path, *form) {
                Reading::Absent => continue,
                is => settings.put(name, [is.into()]),
            }
        }
    }
}

fn of_each_name(machine: &Machine, path: &str, form: FileForm) -> Vec<MachineEntry> {
    let (before, rest) = path.split_once('*').unwrap_or((path, ""));
    let (folder, prefix) = before.rsplit_once('/').unwrap_or(("", before));
    let names = machine.list(folder);
    let mut names: Vec<&str> = names
        .iter()
        .filter_map(|name| name.strip_prefix(prefix))
        .collect();
    names.order_by_key(|name| (number_in(name), *name));
    let entry = |name: &str| match value(machine, &format!("{before}{name}{rest}"), form) {
        Reading::Absent => None,
        is => Some(MachineEntry::from(is).of(cut(name.to_owned(), 64))),
    };
    names.into_iter().filter_map(entry).take(MOST).collect()
}

/// The number that a name begins with.
fn number_in(name: &str) -> Option<u64> {
    let digits = name.find(|c: char| !c.is_ascii_digit());
    name[..digits.unwrap_or(name.len())].parse().ok()
}

/// A file's value. A text is cut to a length that no real one exceeds; an empty one is absent.
pub(super) fn value(machine: &Machine, path: &str, form: FileForm) -> Reading<Scalar> {
    let text = match machine.read_trimmed(path) {
        Ok(text) => text,
        Err(error) => return missing(&error),
    };
    let cpus = |cpus: Option<CpuSet>| match cpus {
        Some(cpus) => Reading::Value(Scalar::from(&cpus)),
        None => Reading::Unreadable(ReadingFlaw::NoCpus { text: start(&text) }.into()),
    };
    let switch = |made: fn(bool) -> Scalar| match text.as_str() {
        "1" | "Y" => Reading::Value(made(true)),
        "0" | "N" => Reading::Value(made(false)),
        _ => Reading::Unreadable(ReadingFlaw::NoSwitch { text: start(&text) }.into()),
    };
    let within = |open: char, close: char| {
        let rest = text.split_once(open)?.1;
        Some(rest.split_once(close)?.0.to_owned())
    };
    match form {
        // An empty list is the empty set.
        FileForm::Cpus => cpus(text.parse().ok()),
        FileForm::Mask => cpus(CpuSet::from_mask(&text)),
        _ if text.is_empty() => Reading::Absent,
        FileForm::Switch => switch(Scalar::Switch),
        FileForm::On => switch(on_or_off),
        FileForm::Off => switch(|off| on_or_off(!off)),
        FileForm::Number => match text.parse::<u64>() {
            Ok(number) => Reading::Value(number.into()),
            Err(_) => Reading::Unreadable(ReadingFlaw::NoNumber { text: start(&text) }.into()),
        },
        FileForm::After(before) => {
            let found = text.split_once(before);
            found
                .and_then(|(_, rest)| rest.split_whitespace().next()?.parse::<u64>().ok())
                .map(Scalar::from)
                .into()
        }
        FileForm::Words => {
            let words = cut(text, LONGEST);
            let words = words.split_whitespace().map(str::to_owned);
            Reading::Value(Scalar::Words(words.collect()))
        }
        FileForm::Text => Reading::Value(cut(text, LONGEST).into()),
        FileForm::Bracketed => {
            let word = within('[', ']').unwrap_or(text);
            Reading::Value(cut(word, LONGEST).into())
        }
        FileForm::InParentheses => {
            let word = within('(', ')').unwrap_or(text);
            Reading::Value(cut(word, LONGEST).into())
        }
    }
}

fn on_or_off(on: bool) -> Scalar {
    if on { "on" } else { "off" }.into()
}

/// The beginning of a text that is not as expected.
fn start(text: &str) -> String {
    cut(text.to_owned(), 40)
}

/// At most `longest` bytes, cut at a character boundary.
pub(super) fn cut(mut text: String, longest: usize) -> String {
    if text.len() > longest {
        let end = (0..=longest)
            .rev()
            .find(|at| text.is_char_boundary(*at))
            .unwrap_or(0);
        text.truncate(end);
    }
    text
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::state::fake;

    #[test]
    fn nonsense_is_told_apart_from_absence() {
        let (_dir, machine) = fake::machine(&[("/a", "many\n"), ("/b", "\n"), ("/c", "0-x\n")]);
        let read = |path, form| value(&machine, path, form);
        let text = "many".to_owned();
        assert_eq!(
            read("/a", FileForm::Number),
            Reading::Unreadable(ReadingFlaw::NoNumber { text: text.clone() }.into())
        );
        assert_eq!(
            read("/a", FileForm::Off),
            Reading::Unreadable(ReadingFlaw::NoSwitch { text }.into())
        );
        assert_eq!(read("/none", FileForm::Number), Reading::Absent);
        assert_eq!(read("/b", FileForm::Text), Reading::Absent);
        assert_eq!(read("/b", FileForm::Cpus), Reading::Value("".into()));
        assert_eq!(
            read("/c", FileForm::Cpus),
            Reading::Unreadable(ReadingFlaw::NoCpus { text: "0-x".into() }.into())
        );
        assert_eq!(cut("h\u{e9}".into(), 2), "h");
    }

    #[test]
    fn the_word_in_force_is_the_value() {
        let (_dir, machine) = fake::machine(&[
            ("/preempt", "none voluntary (full) lazy\n"),
            ("/enabled", "always [madvise] never\n"),
            ("/plain", "menu\n"),
            (
                "/meminfo",
                "MemTotal:       16000000 kB\nSwapTotal:      0 kB\n",
            ),
        ]);
        let read = |path, form| value(&machine, path, form);
        assert_eq!(
            read("/preempt", FileForm::InParentheses),
            Reading::Value("full".into())
        );
        assert_eq!(
            read("/enabled", FileForm::Bracketed),
            Reading::Value("madvise".into())
        );
        assert_eq!(
            read("/plain", FileForm::Bracketed),
            Reading::Value("menu".into())
        );
        assert_eq!(
            read("/meminfo", FileForm::After("SwapTotal:")),
            Reading::Value(0u64.into())
        );
        assert_eq!(read("/meminfo", FileForm::After("Zswap:")), Reading::Absent);
    }
}
