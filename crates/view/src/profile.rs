//! The verdict of a profile in one sentence: whether a CPU does what one kind of work needs.

use crate::doubts::doubts_text;
use crate::lines::cpus_text;
use crate::words;
use jitterscope_model::{CpuSet, Nanos, StallId};
use jitterscope_store::{RunReader, StoreError};
use std::collections::{BTreeMap, HashSet};

/// The culprits that a sentence names.
const NAMED: usize = 3;

/// Judges the stored stalls of `cpus` by a limit. `title`: the work, such as `a 1 kHz servo`.
///
/// # Errors
/// The run cannot be read.
pub fn verdict(
    run: &RunReader,
    cpus: &CpuSet,
    title: &str,
    limit: Nanos,
) -> Result<String, StoreError> {
    let manifest = run.manifest();
    let mut above: HashSet<StallId> = HashSet::new();
    let mut longest = Nanos::ZERO;
    for stall in run.stalls()? {
        let stall = stall?;
        if !cpus.contains(stall.cpu) {
            continue;
        }
        let length = manifest.rate.nanos(stall.length());
        longest = longest.max(length);
        if length > limit {
            above.insert(stall.id);
        }
    }
    let mut by_culprit: BTreeMap<String, usize> = BTreeMap::new();
    for attribution in run.attributions()? {
        let attribution = attribution?;
        if !above.contains(&attribution.stall) {
            continue;
        }
        if let Some(largest) = attribution.parts.iter().max_by_key(|part| part.net) {
            *by_culprit
                .entry(words::name(&largest.culprit.subject))
                .or_default() += 1;
        }
    }
    let judged = Judged {
        cpus: cpus_text(cpus),
        title,
        limit,
        above: above.len(),
        longest,
        measured: manifest.duration(),
        late: manifest.probe.wakeup.is_some(),
        culprits: by_culprit.into_iter().collect(),
        unknown: match (manifest.attributed, manifest.doubts()) {
            (false, _) => Some("no kernel events were recorded".into()),
            (true, doubts) if doubts.is_empty() => None,
            (true, doubts) => Some(doubts_text(&doubts)),
        },
    };
    Ok(judged.sentence())
}

struct Judged<'t> {
    cpus: String,
    title: &'t str,
    limit: Nanos,
    /// Stalls above the limit.
    above: usize,
    longest: Nanos,
    measured: Nanos,
    /// Whether the stalls are late wake-ups.
    late: bool,
    /// Names, and how many of those stalls each has most of.
    culprits: Vec<(String, usize)>,
    /// Why nobody is named.
    unknown: Option<String>,
}

impl Judged<'_> {
    fn sentence(self) -> String {
        let what = if self.late { "late by" } else { "away for" };
        let (cpus, title, limit, measured) = (&self.cpus, self.title, self.limit, self.measured);
        if self.above == 0 {
            return format!(
                "{cpus} held {title} for {measured}: never {what} more than {limit}, at most {}; so with 95 % \
                 confidence less than {}.",
                self.longest,
                bound(measured)
            );
        }
        let names = match &self.unknown {
            Some(why) => format!("who is unknown: {why}"),
            None => self.names(),
        };
        format!(
            "{cpus} does not hold {title}: {} in {measured} it was {what} more than {limit}, up to {}; {names}.",
            times(self.above),
            self.longest
        )
    }

    fn names(&self) -> String {
        let mut culprits: Vec<&(String, usize)> = self.culprits.iter().collect();
        culprits.sort_by(|a, b| b.1.cmp(&a.1).then(a.0.cmp(&b.0)));
        match culprits.as_slice() {
            [] => "nobody was seen".into(),
            [(name, _)] if self.above == 1 => format!("that was {name}"),
            [(name, _)] if self.above == 2 => format!("both times {name}"),
            [(name, all)] if *all == self.above => format!("each time {name}"),
            several => {
                let named = several.iter().take(NAMED);
                let each: Vec<String> = named
                    .map(|(name, count)| format!("{} {name}", times(*count)))
                    .collect();
                let rest: usize = several.iter().skip(NAMED).map(|(_, count)| count).sum();
                match rest {
                    0 => each.join(", "),
                    rest => format!("{}, {} others", each.join(", "), times(rest)),
                }
            }
        }
    }
}

/// Once, twice, or how many times.
fn times(count: usize) -> String {
    match count {
        1 => "once".into(),
        2 => "twice".into(),
        n => format!("{n} times"),
    }
}

/// The rate that a time without an event excludes: `-ln(0.05)`, about 3, in that time.
fn bound(measured: Nanos) -> String {
    let seconds = (measured.0 as f64 / 1e9).max(1e-9);
    let in_hour = 3.0 / seconds * 3600.0;
    match in_hour {
        rate if rate >= 3600.0 => format!("{:.2} a second", rate / 3600.0),
        rate if rate >= 60.0 => format!("{:.1} a minute", rate / 60.0),
        rate => format!("{rate:.2} an hour"),
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn judged(above: usize, culprits: &[(&str, usize)]) -> Judged<'static> {
        Judged {
            cpus: "CPU 1".into(),
            title: "a 1 kHz servo",
            limit: Nanos(50_000),
            above,
            longest: Nanos(61_000),
            measured: Nanos(10_000_000_000),
            late: false,
            culprits: culprits
                .iter()
                .map(|(name, count)| ((*name).into(), *count))
                .collect(),
            unknown: None,
        }
    }

    #[test]
    fn a_sentence_says_how_often_and_who() {
        assert_eq!(
            judged(2, &[("virtio0-stats", 2)]).sentence(),
            "CPU 1 does not hold a 1 kHz servo: twice in 10.0 s it was away for more than 50.0 us, up to 61.0 us; both \
             times virtio0-stats."
        );
        let several = judged(9, &[("a", 1), ("b", 4), ("c", 2), ("d", 1), ("e", 1)]).sentence();
        assert!(
            several.ends_with("4 times b, twice c, once a, twice others."),
            "{several}"
        );
        let unknown = Judged {
            unknown: Some("no kernel events were recorded".into()),
            ..judged(1, &[])
        };
        assert!(
            unknown
                .sentence()
                .ends_with("who is unknown: no kernel events were recorded.")
        );
    }

    #[test]
    fn what_was_not_seen_is_bounded_by_the_time() {
        assert_eq!(
            judged(0, &[]).sentence(),
            "CPU 1 held a 1 kHz servo for 10.0 s: never away for more than 50.0 us, at most 61.0 us; so with 95 % \
             confidence less than 18.0 a minute."
        );
        let late = Judged {
            late: true,
            measured: Nanos(4 * 3600 * 1_000_000_000),
            ..judged(0, &[])
        };
        assert!(late.sentence().ends_with("less than 0.75 an hour."));
    }
}
