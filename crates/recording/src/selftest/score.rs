//! Matching injections with stalls.

use super::report::{Instead, SelftestRow, WrongVerdict};
use jitterscope_inject::{Expectation, ExpectedSender, Header, Injection};
use jitterscope_model::{
    Attribution, Culprit, CulpritKind, Evidence, ExecutionContext, Nanos, Part, Sender, Stall,
    TickRate, Ticks, Verdict,
};
use std::collections::HashMap;

/// One kind's turn, and what was recorded meanwhile.
#[derive(Clone, Copy, Debug)]
pub struct Episode<'a> {
    /// What the child said that it would do.
    pub header: &'a Header,
    /// What it did, in any order.
    pub injections: &'a [Injection],
    /// The stalls of that time, of any CPU, in any order.
    pub stalls: &'a [Stall],
    /// Their attributions, in any order.
    pub attributions: &'a [Attribution],
    /// The rate of the clock of all of these.
    pub rate: TickRate,
}

/// Scores one kind.
///
/// An injection is *found* when a stall on the victim's CPU overlaps its window, and *named* when one of
/// these stalls is attributed, in part, to the expected culprit. Where the expectation has a sender, it
/// must be the culprit's too. An injection that only a running victim can feel, made while another thread
/// had the CPU all along, is out of reach and does not count; nor does a quota of which only the possibility can be
/// determined, for another thread had the CPU meanwhile.
#[must_use]
pub fn score(episode: &Episode<'_>) -> SelftestRow {
    let header = episode.header;
    let victims = VictimStalls::new(episode);
    let mut injections = episode.injections.to_vec();
    injections.sort_by_key(|injection| (injection.start_ticks, injection.end_ticks));
    let half = episode.rate.ticks(Nanos(header.settings.period.0 / 2));

    let mut row = SelftestRow::of(header.kind);
    row.expected = Some(header.expected.clone());
    let mut wrong: HashMap<Instead, u64> = HashMap::new();
    for injection in &injections {
        let met: Vec<_> = victims.meeting(injection).collect();
        let named = is_named(&met, header, injection);
        let shielded =
            || header.kind.needs_running_victim() && met.iter().any(|(_, s)| s.shields(injection));
        // Which of the two kept the victim from running cannot be determined, and the report says so.
        let perhaps =
            || header.kind.needs_idle_cpu() && met.iter().any(|(_, s)| s.may_be_throttled());
        if !named && (shielded() || perhaps()) {
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
        row.named_when_shifted += u64::from(is_named(&then, header, &later));
    }
    row.wrong = wrong
        .into_iter()
        .map(|(instead, count)| WrongVerdict { instead, count })
        .collect();
    row.wrong.sort_by(|a, b| {
        b.count
            .cmp(&a.count)
            .then_with(|| a.instead.cmp(&b.instead))
    });
    row.length_error = length_error(&injections, &victims, &header.expected, episode.rate);
    row.judge()
}

/// Whether what was injected in a window is named by the stalls that meet it.
fn is_named(met: &[(usize, &VictimStall<'_>)], header: &Header, window: &Injection) -> bool {
    if !header.kind.leaves_no_record() {
        return met.iter().any(|(_, stall)| stall.names(&header.expected));
    }
    // Of what happened in it without an event, most must be reported as that, and not as somebody's doing.
    let inside = met
        .iter()
        .map(|(_, stall)| stall)
        .filter(|stall| stall.lies_in(window));
    let alone: Vec<&Part> = inside.filter_map(|stall| stall.without_event()).collect();
    let unseen = alone.iter().filter(|part| is_unseen(part)).count();
    unseen > 0 && unseen * 2 > alone.len()
}

/// Whether a part says that nothing was seen, and blames nobody.
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

/// A stall with its parts; none when it was not attributed.
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

    /// Whether another thread ran instead of the victim during the whole injection: the stall reaches
    /// over both its ends and is mostly that thread's.
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

    /// Whether another thread ran while a quota above the victim was counted, for most of it.
    fn may_be_throttled(&self) -> bool {
        let may_be = |part: &&Part| part.evidence == Evidence::SwitchRecordsWhileThrottled;
        let theirs: Nanos = self.parts.iter().filter(may_be).map(|part| part.net).sum();
        let all: Nanos = self.parts.iter().map(|part| part.net).sum();
        theirs.0 * 2 > all.0
    }

    fn lies_in(&self, window: &Injection) -> bool {
        window.start_ticks <= self.start && self.end <= window.end_ticks
    }

    /// What is said of the whole of it, where no kernel event was inside.
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

    /// Time that it gives to the expected culprit.
    fn net(&self, expected: &Expectation) -> Nanos {
        self.parts
            .iter()
            .filter(|part| is_expected(&part.culprit, expected))
            .map(|part| part.net)
            .sum()
    }
}

/// The stalls of the victim's CPU, so ordered that those within a window are quickly found. They may
/// overlap each other, as those of several victims on one CPU do.
struct VictimStalls<'a> {
    stalls: Vec<VictimStall<'a>>,
    /// The latest end among the stalls up to each, so that it ascends.
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
        stalls.sort_by_key(|stall| (stall.start, stall.end));
        let latest_end = stalls
            .iter()
            .scan(Ticks(0), |latest, stall| {
                *latest = (*latest).max(stall.end);
                Some(*latest)
            })
            .collect();
        VictimStalls { stalls, latest_end }
    }

    /// Those that overlap the window, its borders included, with their indices.
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
    culprit.kind() == expected.kind && culprit.subject.name() == expected.name
}

/// The name decides: it is unique, while a thread's id is another one outside of its PID namespace, where
/// the kernel traces. The id serves when the name is not known.
fn is_sender(sender: &Sender, wanted: &ExpectedSender) -> bool {
    sender.context == ExecutionContext::Thread
        && match &sender.comm {
            Some(comm) => **comm == *wanted.comm,
            None => sender.tid == wanted.tid,
        }
}

/// What was said of an injection that was not named.
fn instead(met: &[(usize, &VictimStall<'_>)], expected: &Expectation) -> Instead {
    let parts = || met.iter().flat_map(|(_, stall)| stall.parts);
    if met.is_empty() {
        return Instead::NoStall;
    }
    if let Some(part) = parts().find(|part| is_same(&part.culprit, expected)) {
        let Some(sender) = &part.culprit.sender else {
            return Instead::NoSender;
        };
        let comm = sender.comm.clone().filter(|_| sender.involves_thread());
        let tid = (comm.is_none() && sender.involves_thread()).then_some(sender.tid);
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

/// Median relative error of the culprit's time. One stall may hold several injections, and one injection
/// may take several stalls: those that hang together are compared by their sums.
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

/// Injections and stalls that hang together.
struct Group {
    /// Index of the first stall.
    first: usize,
    /// Index of the last.
    last: usize,
    /// Sum of the injections' lengths.
    injected: Nanos,
}
