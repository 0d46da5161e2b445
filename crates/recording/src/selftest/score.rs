//! Matches injections with stalls.

use super::report::{Instead, SelftestRow, WrongVerdict};
use jitterscope_inject::{Expectation, ExpectedSender, Header, Injection};
use jitterscope_model::{
    Attribution, Culprit, CulpritKind, ExecutionContext, Nanos, Part, PutInOrder, Sender, Stall,
    TickRate, Ticks, Verdict,
};
use std::collections::HashMap;

/// The turn of one kind and its recording.
#[derive(Clone, Copy, Debug)]
pub struct Episode<'a> {
    /// The child's announced plan.
    pub header: &'a Header,
    /// The child's injections, in any order.
    pub injections: &'a [Injection],
    /// The stalls of that time on all CPUs, in any order.
    pub stalls: &'a [Stall],
    /// Their attributions, in any order.
    pub attributions: &'a [Attribution],
    /// The rate of the clock behind all times.
    pub rate: TickRate,
}

/// Scores one kind.
///
/// An injection is *found* if a stall on the victim's CPU overlaps its window, and *named* if one of these stalls is
/// attributed, at least in part, to the expected culprit. If a sender is expected, the culprit must have it, too. Some
/// injections affect only a running victim; if another thread had the CPU all the time, they are out of reach and do
/// not count.
#[must_use]
pub fn score(episode: &Episode<'_>) -> SelftestRow {
    let header = episode.header;
    let victims = VictimStalls::new(episode);
    let mut injections = episode.injections.to_vec();
    injections.order_by_key(|injection| (injection.start_ticks, injection.end_ticks));
    let half = episode.rate.ticks(Nanos(header.settings.period.0 / 2));

    let mut row = SelftestRow::of(header.kind);
    row.expected = Some(header.expected.clone());
    let mut wrong: HashMap<Instead, u64> = HashMap::new();
    for injection in &injections {
        let met: Vec<_> = victims.meeting(injection).collect();
        let named = is_named(&met, header, injection);
        let shielded =
            || header.kind.needs_running_victim() && met.iter().any(|(_, s)| s.shields(injection));
        if !named && shielded() {
            row.out_of_reach += 1;
            continue;
        }
        row.injected += 1;
        row.found += u64::from(!met.is_empty());
        if named {
            row.named += 1;
        } else {
            *wrong.entry(instead(&met, &header.expected)).or_default() += 1;
        }
        let later = Injection {
            start_ticks: injection.start_ticks + half,
            end_ticks: injection.end_ticks + half,
            ..*injection
        };
        let then: Vec<_> = victims.meeting(&later).collect();
        // A stall that lasts from an injection until here names it correctly and says nothing about chance.
        if then.iter().all(|(_, stall)| !stall.meets_any(&injections)) {
            row.controls += 1;
            row.named_when_shifted += u64::from(is_named(&then, header, &later));
        }
    }
    row.wrong = wrong
        .into_iter()
        .map(|(instead, count)| WrongVerdict { instead, count })
        .collect();
    row.wrong.order_by(|a, b| {
        b.count
            .cmp(&a.count)
            .then_with(|| a.instead.cmp(&b.instead))
    });
    row.length_error = length_error(&injections, &victims, &header.expected, episode.rate);
    row.judge()
}

/// Whether the stalls that overlap a window name its injection.
fn is_named(met: &[(usize, &VictimStall<'_>)], header: &Header, window: &Injection) -> bool {
    if !header.kind.leaves_no_record() {
        return met.iter().any(|(_, stall)| stall.names(&header.expected));
    }
    // Most of the stalls inside without an event must be reported as such, and not be blamed on a culprit. They must also
    // cover a quarter of the time that no other stall covers, because single ones come by themselves.
    let (mut unseen, mut blamed) = ((0, 0), 0);
    let mut rest = window.end_ticks.since(window.start_ticks).0;
    for (_, stall) in met {
        let start = stall.start.max(window.start_ticks);
        let covered = stall.end.min(window.end_ticks).since(start).0;
        match stall.without_event().filter(|_| stall.lies_in(window)) {
            Some(part) if is_unseen(part) => unseen = (unseen.0 + 1, unseen.1 + covered),
            alone => {
                blamed += u64::from(alone.is_some());
                rest = rest.saturating_sub(covered);
            }
        }
    }
    let (number, covered) = unseen;
    number > blamed && covered * 4 > rest
}

/// Whether a part reports that nothing was seen, without blame.
fn is_unseen(part: &Part) -> bool {
    let none = [
        Verdict::NoEventInVm,
        Verdict::OutsideThisKernel,
        Verdict::UnderOneMicrosecond,
    ];
    part.culprit
        .subject
        .as_verdict()
        .is_some_and(|verdict| none.contains(&verdict))
}

/// A stall with its parts; no parts if it was not attributed.
struct VictimStall<'a> {
    start: Ticks,
    end: Ticks,
    parts: &'a [Part],
}

impl VictimStall<'_> {
    fn names(&self, expected: &Expectation) -> bool {
        self.parts
            .iter()
            .any(|part| is_expected(&part.culprit, expected))
    }

    /// Whether another thread ran instead of the victim during the whole injection: the stall covers it on both sides
    /// and mostly belongs to that thread.
    fn shields(&self, injection: &Injection) -> bool {
        let is_thread = |part: &&Part| {
            matches!(
                part.culprit.kind(),
                CulpritKind::Thread | CulpritKind::Kworker
            )
        };
        let others: Nanos = self
            .parts
            .iter()
            .filter(is_thread)
            .map(|part| part.net)
            .sum();
        let all: Nanos = self.parts.iter().map(|part| part.net).sum();
        self.start < injection.start_ticks && injection.end_ticks < self.end && others.0 * 2 > all.0
    }

    fn meets_any(&self, injections: &[Injection]) -> bool {
        injections
            .iter()
            .any(|one| self.start <= one.end_ticks && one.start_ticks <= self.end)
    }

    fn lies_in(&self, window: &Injection) -> bool {
        window.start_ticks <= self.start && self.end <= window.end_ticks
    }

    /// The only part, if it covers a stall without kernel events.
    fn without_event(&self) -> Option<&Part> {
        let hosts = |part: &&Part| {
            matches!(
                part.culprit.subject.as_verdict(),
                Some(
                    Verdict::CpuTaken
                        | Verdict::VirtualMachinePaused
                        | Verdict::Smi
                        | Verdict::AllCpusAtOnce
                )
            )
        };
        self.parts
            .first()
            .filter(|part| self.parts.len() == 1 && (is_unseen(part) || hosts(part)))
    }

    /// Time attributed to the expected culprit.
    fn net(&self, expected: &Expectation) -> Nanos {
        self.parts
            .iter()
            .filter(|part| is_expected(&part.culprit, expected))
            .map(|part| part.net)
            .sum()
    }
}

/// The stalls of the victim's CPU, ordered so that those within a window are found fast. They may overlap, as stalls of
/// several victims on one CPU do.
struct VictimStalls<'a> {
    stalls: Vec<VictimStall<'a>>,
    /// For each stall, the latest end up to and including it; ascending.
    latest_end: Vec<Ticks>,
}

impl<'a> VictimStalls<'a> {
    fn new(episode: &Episode<'a>) -> VictimStalls<'a> {
        let parts: HashMap<_, _> = episode
            .attributions
            .iter()
            .map(|a| (a.stall, a.parts.as_slice()))
            .collect();
        let mut stalls: Vec<VictimStall<'a>> = episode
            .stalls
            .iter()
            .filter(|stall| stall.cpu == episode.header.settings.cpu)
            .map(|stall| VictimStall {
                start: stall.start,
                end: stall.end,
                parts: parts.get(&stall.id).copied().unwrap_or_default(),
            })
            .collect();
        stalls.order_by_key(|stall| (stall.start, stall.end));
        let latest_end = stalls
            .iter()
            .scan(Ticks(0), |latest, stall| {
                *latest = (*latest).max(stall.end);
                Some(*latest)
            })
            .collect();
        VictimStalls { stalls, latest_end }
    }

    /// Stalls that overlap the window, including its borders, with their indices.
    fn meeting(&self, window: &Injection) -> impl Iterator<Item = (usize, &VictimStall<'a>)> {
        let Injection {
            start_ticks,
            end_ticks,
            ..
        } = *window;
        let first = self.latest_end.partition_point(|end| *end < start_ticks);
        let behind = self
            .stalls
            .partition_point(|stall| stall.start <= end_ticks);
        let candidates = self.stalls.get(first..behind).unwrap_or_default();
        (first..)
            .zip(candidates)
            .filter(move |(_, stall)| stall.end >= start_ticks)
    }
}

fn is_expected(culprit: &Culprit, expected: &Expectation) -> bool {
    is_same(culprit, expected)
        && expected.sender.as_ref().is_none_or(|wanted| {
            culprit
                .sender
                .as_ref()
                .is_some_and(|sender| is_sender(sender, wanted))
        })
}

fn is_same(culprit: &Culprit, expected: &Expectation) -> bool {
    let kind = match culprit.kind() {
        // The quota is named, whichever thread had the CPU meanwhile.
        CulpritKind::QuotaBeside => CulpritKind::Quota,
        kind => kind,
    };
    kind == expected.kind && culprit.subject.name() == expected.name
}

/// The name decides: it is unique, while the thread's id differs outside its PID namespace, where the kernel traces.
/// The id is used if the name is unknown.
fn is_sender(sender: &Sender, wanted: &ExpectedSender) -> bool {
    sender.context == ExecutionContext::Thread
        && match &sender.comm {
            Some(comm) => **comm == *wanted.comm,
            None => sender.tid == wanted.tid,
        }
}

/// What was reported for an injection that was not named.
fn instead(met: &[(usize, &VictimStall<'_>)], expected: &Expectation) -> Instead {
    let parts = || met.iter().flat_map(|(_, stall)| stall.parts);
    if met.is_empty() {
        return Instead::NoStall;
    }
    if let Some(part) = parts().find(|part| is_same(&part.culprit, expected)) {
        let Some(sender) = &part.culprit.sender else {
            return Instead::NoSender;
        };
        let comm = sender.comm.clone().filter(|_| sender.is_thread());
        let tid = (comm.is_none() && sender.is_thread()).then_some(sender.tid);
        return Instead::OtherSender {
            context: sender.context,
            comm,
            tid,
        };
    }
    match parts().max_by_key(|part| part.net) {
        Some(Part { culprit, .. }) => {
            let name = culprit.subject.name().as_ref().into();
            Instead::OtherCulprit {
                kind: culprit.kind(),
                name,
            }
        }
        None => Instead::NoAttribution,
    }
}

/// Median relative error of the culprit's time. A stall may contain several injections, and an injection may span
/// several stalls, so connected ones are compared by their sums.
fn length_error(
    injections: &[Injection],
    victims: &VictimStalls<'_>,
    expected: &Expectation,
    rate: TickRate,
) -> Option<f64> {
    let mut groups: Vec<Group> = Vec::new();
    for injection in injections {
        let named = || {
            victims
                .meeting(injection)
                .filter(|(_, met)| met.names(expected))
                .map(|(i, _)| i)
        };
        let (Some(length), Some(first), Some(last)) =
            (injection.length_ticks, named().min(), named().max())
        else {
            continue;
        };
        let length = rate.nanos(length);
        match groups.last_mut() {
            Some(group) if first <= group.last => {
                group.injected += length;
                group.last = group.last.max(last);
            }
            _ => groups.push(Group {
                first,
                last,
                injected: length,
            }),
        }
    }
    let mut errors: Vec<f64> = groups
        .iter()
        .filter(|group| group.injected > Nanos::ZERO)
        .map(|group| {
            let stalls = victims
                .stalls
                .get(group.first..=group.last)
                .unwrap_or_default();
            let seen: Nanos = stalls.iter().map(|stall| stall.net(expected)).sum();
            seen.0.abs_diff(group.injected.0) as f64 / group.injected.0 as f64
        })
        .collect();
    errors.sort_by(f64::total_cmp);
    match errors.len() {
        0 => None,
        n if n % 2 == 1 => errors.get(n / 2).copied(),
        n => Some((errors.get(n / 2 - 1)? + errors.get(n / 2)?) / 2.0),
    }
}

/// Connected injections and stalls.
struct Group {
    /// Index of the first stall.
    first: usize,
    /// Index of the last.
    last: usize,
    /// Sum of the injections' lengths.
    injected: Nanos,
}
