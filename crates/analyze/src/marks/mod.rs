//! An application's marks against a run's stalls: which stalls lie in which mark, what they explain of it, and how much
//! of that chance would give.
//!
//! A mark without a length is a moment: [`MOMENT`] before it counts, because a program writes down what has just
//! happened. A stall that reaches beyond a mark counts with the time inside, and its culprits in proportion.

mod chance;

use crate::cpu::share;
use chance::StalledOverTime;
use jitterscope_model::{
    Attribution, CpuId, CulpritSums, KeyLevel, MarkForm, MarkLog, Nanos, PutInOrder, RunManifest,
    Stall, StallId, Subject,
};
use schemars::JsonSchema;
use serde::Serialize;
use std::cmp::Reverse;
use std::collections::BTreeMap;
use std::ops::Range;

/// What counts before a mark without a length.
const MOMENT: Nanos = Nanos(1_000_000);
/// Rows by name; further names share the last row.
const NAMES: usize = 50;
/// Marks that are listed one by one.
const LISTED: usize = 10;
/// Culprits of a row.
const CULPRITS: usize = 3;
/// Separate culprits.
const MOST_CULPRITS: usize = 4096;
/// Marks that lie on each moment on average; a stall is compared with each that it meets.
const CROWD: u64 = 64;
/// Separate culprits of a mark; the time of further ones is not listed.
const MOST_OF_MARK: usize = 256;
/// Separate victims of a mark; the time of further ones is not compared with its length.
const MOST_VICTIMS: usize = 64;

/// The marks of a run.
#[derive(Clone, Debug, PartialEq, Serialize, JsonSchema)]
pub struct MarksSummary {
    pub logs: Vec<MarkLogSummary>,
    /// The number of marks that are left out because too many lie on one moment: the longest ones.
    pub crowded: u64,
    /// By name, most stalled time first.
    pub names: Vec<MarkRow>,
    /// The marks with the most stalled time, most first.
    pub worst: Vec<MarkShown>,
}

/// A log that was read.
#[derive(Clone, Debug, PartialEq, Serialize, JsonSchema)]
pub struct MarkLogSummary {
    /// The name of its file.
    pub file: String,
    pub form: MarkForm,
    /// The number of marks within the run's time.
    pub marks: u64,
    /// The number of marks outside of it.
    pub outside: u64,
    /// The number of lines whose time could not be read.
    pub unread: u64,
    /// The number of marks that were too many to keep: the shortest ones.
    pub beyond: u64,
}

/// All marks of one name.
#[derive(Clone, Debug, PartialEq, Serialize, JsonSchema)]
pub struct MarkRow {
    /// The name; `others` for names beyond the fiftieth.
    pub name: String,
    /// The number of marks.
    pub count: u64,
    /// How many of them have no length.
    pub moments: u64,
    /// Their summed length; moments count one millisecond each.
    pub total_ns: Nanos,
    pub longest_ns: Nanos,
    /// The number of marks with a stall in them.
    pub with_stalls: u64,
    /// The time of all victims' stalls inside them.
    pub stalled_ns: Nanos,
    /// What as many marks of these lengths have inside on average, wherever they lie.
    pub expected_ns: Nanos,
    /// How often chance gives as much: of 999 shifts of all these marks by one random time, the share that has at least
    /// as much inside, the marks as they are included. 0.001 is the least.
    pub chance: f64,
    /// The culprits with the most time inside, at most three.
    pub culprits: Vec<MarkCulprit>,
}

/// A mark with the stalls in it.
#[derive(Clone, Debug, PartialEq, Serialize, JsonSchema)]
pub struct MarkShown {
    pub name: String,
    /// Nanoseconds since the epoch.
    pub start_realtime_ns: u64,
    /// From the start of the run; 0 for a mark that began before it.
    pub offset_ns: Nanos,
    /// 0 for a moment.
    pub length_ns: Nanos,
    /// The number of stalls that meet it.
    pub stalls: u64,
    /// The time of all victims' stalls inside.
    pub stalled_ns: Nanos,
    /// The share of its length that the most stalled victim's stalls explain.
    pub explained: f64,
    /// The longest stall in it.
    pub stall: u64,
    /// The culprits with the most time inside, at most three.
    pub culprits: Vec<MarkCulprit>,
}

/// A culprit and its time inside marks.
#[derive(Clone, Debug, PartialEq, Serialize, JsonSchema)]
pub struct MarkCulprit {
    #[serde(flatten)]
    #[schemars(with = "jitterscope_model::SubjectFields")]
    pub subject: Subject,
    pub total_ns: Nanos,
}

/// What a mark has so far.
#[derive(Debug, Default)]
struct Inside {
    stalls: u64,
    stalled: Nanos,
    /// Its time inside and its number.
    longest: (Nanos, u64),
    victims: Vec<((CpuId, i32), Nanos)>,
    culprits: Vec<(usize, Nanos)>,
}

/// A stall that meets marks.
#[derive(Debug)]
struct Met {
    stall: StallId,
    length: Nanos,
    /// The marks' numbers, and its time in each.
    marks: Vec<(usize, Nanos)>,
}

/// Takes a run's stalls, each followed by its attribution.
#[derive(Debug)]
pub struct MarkFold<'m> {
    manifest: &'m RunManifest,
    logs: Vec<MarkLogSummary>,
    crowded: u64,
    /// Nanoseconds from the start of the run.
    span: Range<u64>,
    marks: Vec<Spanned>,
    inside: BTreeMap<usize, Inside>,
    culprits: CulpritSums<(), ()>,
    time: StalledOverTime,
    /// The stall whose attribution comes next, if it meets a mark.
    last: Option<Met>,
}

/// A mark as nanoseconds from the start of the run.
#[derive(Debug)]
struct Spanned {
    name: String,
    start_realtime_ns: u64,
    length: Nanos,
    at: Range<u64>,
    /// The latest end of the marks of its half of the list: see [`meeting`].
    latest: u64,
}

impl<'m> MarkFold<'m> {
    #[must_use]
    pub fn new(logs: Vec<MarkLog>, manifest: &'m RunManifest) -> MarkFold<'m> {
        let start = manifest.started_realtime_ns();
        let span = 0..manifest.duration().0;
        let mut marks: Vec<Spanned> = Vec::new();
        let mut read = Vec::new();
        for log in logs {
            read.push(MarkLogSummary {
                file: log.file,
                form: log.form,
                marks: log.marks.len() as u64 + log.beyond,
                outside: log.outside,
                unread: log.unread,
                beyond: log.beyond,
            });
            marks.extend(log.marks.into_iter().map(|mark| {
                let end = mark.end_realtime_ns();
                let from = match mark.length_ns {
                    Nanos::ZERO => end.saturating_sub(MOMENT.0),
                    _ => mark.start_realtime_ns,
                };
                let within = |time: u64| time.saturating_sub(start).min(span.end);
                Spanned {
                    name: mark.name,
                    start_realtime_ns: mark.start_realtime_ns,
                    length: mark.length_ns,
                    at: within(from)..within(end),
                    latest: 0,
                }
            }));
        }
        marks.order_by_key(|mark| mark.at.end - mark.at.start);
        let most = span.end.saturating_mul(CROWD);
        let covered = marks.iter().scan(0u64, |sum, mark| {
            *sum = sum.saturating_add(mark.at.end - mark.at.start);
            Some(*sum)
        });
        let kept = covered.take_while(|covered| *covered <= most).count();
        let crowded = (marks.len() - kept) as u64;
        marks.truncate(kept);
        marks.order_by_key(|mark| mark.at.start);
        index(&mut marks);
        MarkFold {
            crowded,
            manifest,
            logs: read,
            time: StalledOverTime::new(span.end),
            span,
            marks,
            inside: BTreeMap::new(),
            culprits: CulpritSums::new(KeyLevel::Program, MOST_CULPRITS),
            last: None,
        }
    }

    /// Adds a stall.
    pub fn stall(&mut self, stall: &Stall) {
        if self.manifest.idle_control() == Some(stall.cpu) {
            return;
        }
        let started = self.manifest.started_realtime_ns();
        let offset = |ticks| {
            let time = self.manifest.realtime_ns(ticks);
            time.saturating_sub(started).min(self.span.end)
        };
        let at = offset(stall.start)..offset(stall.end);
        self.time.add(&at);
        let mut shares = Vec::new();
        meeting(&self.marks, &at, &mut |mark| {
            let of = &self.marks[mark].at;
            shares.push((mark, Nanos(at.end.min(of.end) - at.start.max(of.start))));
        });
        for (mark, time) in &shares {
            let inside = self.inside.entry(*mark).or_default();
            inside.stalls += 1;
            inside.stalled += *time;
            inside.longest = inside.longest.max((*time, stall.id.0));
            let victim = (stall.cpu, stall.victim.tid);
            let known = inside.victims.iter_mut().find(|(of, _)| *of == victim);
            if let Some((_, sum)) = known {
                *sum += *time;
            } else if inside.victims.len() < MOST_VICTIMS {
                inside.victims.push((victim, *time));
            }
        }
        let length = self.manifest.rate.nanos(stall.length());
        self.last = (!shares.is_empty()).then_some(Met {
            stall: stall.id,
            length,
            marks: shares,
        });
    }

    /// Adds the attribution of the last stall.
    pub fn attribution(&mut self, attribution: &Attribution) {
        let last = self.last.take();
        let Some(met) = last.filter(|met| met.stall == attribution.stall) else {
            return;
        };
        let length = u128::from(met.length.0).max(1);
        for part in &attribution.parts {
            let row = self.culprits.position_of((), &part.culprit);
            for (mark, time) in &met.marks {
                let net = u128::from(part.net.0) * u128::from(time.0) / length;
                let net = Nanos(u64::try_from(net).unwrap_or(u64::MAX));
                let Some(inside) = self.inside.get_mut(mark) else {
                    continue;
                };
                let known = inside.culprits.iter_mut().find(|(of, _)| *of == row);
                if let Some((_, sum)) = known {
                    *sum += net;
                } else if inside.culprits.len() < MOST_OF_MARK {
                    inside.culprits.push((row, net));
                }
            }
        }
    }

    #[must_use]
    pub fn finish(self) -> MarksSummary {
        let subjects: Vec<Subject> = self
            .culprits
            .into_rows()
            .into_iter()
            .map(|row| row.subject)
            .collect();
        let largest = |mut sums: Vec<(usize, Nanos)>| -> Vec<MarkCulprit> {
            sums.order_by_key(|(_, net)| Reverse(*net));
            sums.into_iter()
                .take(CULPRITS)
                .filter(|(_, net)| *net > Nanos::ZERO)
                .map(|(row, total_ns)| MarkCulprit {
                    subject: subjects[row].clone(),
                    total_ns,
                })
                .collect()
        };
        let mut worst: Vec<(&usize, &Inside)> = self.inside.iter().collect();
        worst.order_by_key(|(_, inside)| Reverse(inside.stalled));
        let worst = worst.into_iter().take(LISTED).map(|(mark, inside)| {
            let mark = &self.marks[*mark];
            let length = mark.at.end - mark.at.start;
            let longest = inside.victims.iter().map(|(_, time)| *time).max();
            MarkShown {
                name: mark.name.clone(),
                start_realtime_ns: mark.start_realtime_ns,
                offset_ns: Nanos(mark.at.start),
                length_ns: mark.length,
                stalls: inside.stalls,
                stalled_ns: inside.stalled,
                explained: share(longest.unwrap_or_default().0, length).min(1.0),
                stall: inside.longest.1,
                culprits: largest(inside.culprits.clone()),
            }
        });
        let worst = worst.collect();
        let time = self.time.finish();
        let rows = named(&self.marks, &self.inside).into_iter();
        let mut names: Vec<MarkRow> = rows
            .map(|(name, numbers)| {
                let at: Vec<Range<u64>> = numbers
                    .iter()
                    .map(|mark| self.marks[*mark].at.clone())
                    .collect();
                let (mut stalled, mut with_stalls, mut sums) = (Nanos::ZERO, 0, BTreeMap::new());
                for inside in numbers.iter().filter_map(|mark| self.inside.get(mark)) {
                    stalled += inside.stalled;
                    with_stalls += 1;
                    for (row, net) in &inside.culprits {
                        *sums.entry(*row).or_insert(Nanos::ZERO) += *net;
                    }
                }
                let moments = numbers
                    .iter()
                    .filter(|mark| self.marks[**mark].length == Nanos::ZERO);
                let lengths = at.iter().map(|at| at.end - at.start);
                let total = lengths.clone().sum::<u64>();
                MarkRow {
                    name,
                    count: numbers.len() as u64,
                    moments: moments.count() as u64,
                    total_ns: Nanos(total),
                    longest_ns: Nanos(lengths.max().unwrap_or(0)),
                    with_stalls,
                    stalled_ns: stalled,
                    expected_ns: Nanos((time.mean() * total as f64) as u64),
                    chance: time.chance(&at),
                    culprits: largest(sums.into_iter().collect()),
                }
            })
            .collect();
        names.order_by_key(|row| Reverse((row.stalled_ns, row.total_ns)));
        MarksSummary {
            logs: self.logs,
            crowded: self.crowded,
            names,
            worst,
        }
    }
}

/// The numbers of the marks by name. Names beyond [`NAMES`], those with the least stalled time, share one entry.
fn named(marks: &[Spanned], inside: &BTreeMap<usize, Inside>) -> Vec<(String, Vec<usize>)> {
    let mut by_name: BTreeMap<&str, (Nanos, Vec<usize>)> = BTreeMap::new();
    for (number, mark) in marks.iter().enumerate() {
        let (stalled, numbers) = by_name.entry(&mark.name).or_default();
        *stalled += inside.get(&number).map_or(Nanos::ZERO, |of| of.stalled);
        numbers.push(number);
    }
    let mut rows: Vec<_> = by_name.into_iter().collect();
    rows.order_by_key(|(_, (stalled, numbers))| Reverse((*stalled, numbers.len())));
    let rest = rows.split_off(rows.len().min(NAMES));
    let mut rows: Vec<(String, Vec<usize>)> = rows
        .into_iter()
        .map(|(name, (_, numbers))| (name.to_owned(), numbers))
        .collect();
    if !rest.is_empty() {
        let rest = rest.into_iter().flat_map(|(_, (_, numbers))| numbers);
        rows.push(("others".to_owned(), rest.collect()));
    }
    rows
}

/// Notes in each mark the latest end within its subtree: the list in order of start is a balanced tree, whose root is
/// the middle of the list.
fn index(marks: &mut [Spanned]) -> u64 {
    if marks.is_empty() {
        return 0;
    }
    let middle = marks.len() / 2;
    let (before, rest) = marks.split_at_mut(middle);
    let Some((root, after)) = rest.split_first_mut() else {
        return 0;
    };
    root.latest = root.at.end.max(index(before)).max(index(after));
    root.latest
}

/// Calls `each` with the number of every mark that has time in common with `at`.
fn meeting(marks: &[Spanned], at: &Range<u64>, each: &mut impl FnMut(usize)) {
    fn visit(marks: &[Spanned], first: usize, at: &Range<u64>, each: &mut impl FnMut(usize)) {
        let middle = marks.len() / 2;
        let Some(root) = marks.get(middle).filter(|root| root.latest > at.start) else {
            return;
        };
        visit(&marks[..middle], first, at, each);
        if root.at.start >= at.end {
            return;
        }
        if root.at.end > at.start {
            each(first + middle);
        }
        visit(&marks[middle + 1..], first + middle + 1, at, each);
    }
    visit(marks, 0, at, each);
}

#[cfg(test)]
mod tests;
