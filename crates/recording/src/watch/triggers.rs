//! Which moments are saved: pure decisions on requests and times.

use super::settings::WatchSettings;
use jitterscope_model::{AskedBy, Nanos, PutInOrder, SavedMoment, TickRate, Ticks};
use schemars::JsonSchema;
use serde::{Deserialize, Serialize};
use std::collections::VecDeque;

/// The time that the daily cap counts.
pub(super) const DAY: Nanos = Nanos(86_400_000_000_000);
/// The longest text of a request that is kept, bytes.
const LONGEST_TEXT: usize = 256;

/// A request to save a moment.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(super) struct Asked {
    pub(super) by: AskedBy,
    pub(super) text: String,
    /// The moment: the seconds before count from `from`, those after from `to`.
    pub(super) from: Ticks,
    pub(super) to: Ticks,
    /// The moment, nanoseconds since the epoch.
    pub(super) realtime_ns: u64,
}

/// What became of a request.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum Answer {
    /// It begins a save.
    Begins,
    /// It is part of the save that is under way.
    Joins,
    /// The last save is too recent.
    TooSoon,
    /// As many were saved in a day as may be.
    OverCap,
}

/// The limits, in ticks of the measuring clock.
#[derive(Clone, Copy, Debug)]
pub(super) struct Limits {
    pub(super) before: Ticks,
    pub(super) after: Ticks,
    /// From the request of one save to that of the next.
    pub(super) apart: Ticks,
    pub(super) day: Ticks,
    pub(super) daily: usize,
}

impl Limits {
    pub(super) fn of(settings: &WatchSettings, rate: TickRate) -> Limits {
        Limits {
            before: rate.ticks(settings.before),
            after: rate.ticks(settings.after),
            apart: rate.ticks(settings.apart),
            day: rate.ticks(DAY),
            daily: usize::try_from(settings.daily).unwrap_or(usize::MAX),
        }
    }
}

/// How many requests had which outcome.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
pub struct TriggerCounts {
    /// Moments that were saved, or are being saved.
    pub taken: u64,
    /// Requests that joined the save under way.
    pub joined: u64,
    /// Requests that came too soon after a saved moment.
    pub too_soon: u64,
    /// Requests beyond the daily cap.
    pub over_cap: u64,
    /// Moments that could not be saved.
    pub failed: u64,
}

/// A moment whose seconds after it are still to come, or that is being written.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub(super) struct Pending {
    /// The window to save, on the measuring clock.
    pub(super) from: Ticks,
    pub(super) to: Ticks,
    pub(super) moment: SavedMoment,
}

/// Decides on requests.
#[derive(Debug)]
pub(super) struct Triggers {
    limits: Limits,
    pending: Option<Pending>,
    /// When each save of the last day leaves the daily cap.
    leave: VecDeque<Ticks>,
    /// Before this, no other save is begun.
    rest: Ticks,
    counts: TriggerCounts,
}

impl Triggers {
    pub(super) fn new(limits: Limits) -> Triggers {
        Triggers {
            limits,
            pending: None,
            leave: VecDeque::new(),
            rest: Ticks(0),
            counts: TriggerCounts::default(),
        }
    }

    /// Counts saves of an earlier watch of the same CPUs: how long ago each was.
    pub(super) fn remember(&mut self, now: Ticks, ago: &[Ticks]) {
        let mut ago = ago.to_vec();
        ago.order_by(|a, b| b.cmp(a));
        for ago in ago.into_iter().filter(|ago| *ago < self.limits.day) {
            self.leave.push_back(now + (self.limits.day - ago));
            if ago < self.limits.apart {
                self.rest = self.rest.max(now + (self.limits.apart - ago));
            }
        }
    }

    /// Other limits hold from the next request on.
    pub(super) fn limit(&mut self, limits: Limits) {
        self.limits = limits;
    }

    /// Decides on a request that arrives `now`. What a person asks for is not limited.
    pub(super) fn ask(&mut self, now: Ticks, asked: Asked) -> Answer {
        if let Some(pending) = &mut self.pending {
            pending.moment.joined += 1;
            self.counts.joined += 1;
            return Answer::Joins;
        }
        while self.leave.front().is_some_and(|leave| now >= *leave) {
            self.leave.pop_front();
        }
        let is_person = asked.by == AskedBy::Person;
        if !is_person && now < self.rest {
            self.counts.too_soon += 1;
            return Answer::TooSoon;
        }
        if !is_person && self.leave.len() >= self.limits.daily {
            self.counts.over_cap += 1;
            return Answer::OverCap;
        }
        self.counts.taken += 1;
        if !is_person {
            self.leave.push_back(now + self.limits.day);
            self.rest = now + self.limits.apart;
        }
        self.pending = Some(Pending {
            from: asked.from - self.limits.before,
            to: asked.to + self.limits.after,
            moment: SavedMoment {
                realtime_ns: asked.realtime_ns,
                by: asked.by,
                text: tidy(&asked.text),
                joined: 0,
            },
        });
        Answer::Begins
    }

    /// The moment that is to be saved or being saved.
    pub(super) fn pending(&self) -> Option<&Pending> {
        self.pending.as_ref()
    }

    /// The save is over.
    pub(super) fn over(&mut self, failed: bool) {
        self.pending = None;
        self.counts.failed += u64::from(failed);
    }

    pub(super) fn counts(&self) -> TriggerCounts {
        self.counts
    }
}

/// One line of limited length without control characters.
pub(super) fn tidy(text: &str) -> String {
    let mut tidy = String::new();
    for letter in text.trim().chars() {
        if tidy.len() + letter.len_utf8() > LONGEST_TEXT {
            break;
        }
        tidy.push(if letter.is_control() { ' ' } else { letter });
    }
    tidy
}

#[cfg(test)]
mod tests {
    use super::*;
    use proptest::prelude::*;

    const LIMITS: Limits = Limits {
        before: Ticks(10),
        after: Ticks(2),
        apart: Ticks(60),
        day: Ticks(1000),
        daily: 3,
    };

    fn asked(by: AskedBy, at: u64) -> Asked {
        Asked {
            by,
            text: "late\n".into(),
            from: Ticks(at),
            to: Ticks(at),
            realtime_ns: at,
        }
    }

    #[test]
    fn a_request_begins_a_save_and_the_others_join_it_until_it_is_written() {
        let mut triggers = Triggers::new(LIMITS);
        let app = |at| asked(AskedBy::Application, at);
        assert_eq!(triggers.ask(Ticks(100), app(100)), Answer::Begins);
        assert_eq!(triggers.ask(Ticks(101), app(101)), Answer::Joins);
        assert_eq!(triggers.ask(Ticks(190), app(190)), Answer::Joins);
        let pending = triggers.pending().unwrap();
        assert_eq!((pending.from, pending.to), (Ticks(90), Ticks(102)));
        assert_eq!(
            (pending.moment.text.as_str(), pending.moment.joined),
            ("late", 2)
        );
        triggers.over(false);
        assert_eq!(triggers.ask(Ticks(191), app(191)), Answer::Begins);
    }

    #[test]
    fn a_moment_near_the_start_of_the_clock_has_what_there_is_before() {
        let mut triggers = Triggers::new(LIMITS);
        triggers.ask(Ticks(4), asked(AskedBy::Signal, 4));
        assert_eq!(triggers.pending().unwrap().from, Ticks(0));
    }

    #[test]
    fn a_person_is_not_limited() {
        let mut triggers = Triggers::new(LIMITS);
        for at in [100, 101, 102, 103, 104] {
            assert_eq!(
                triggers.ask(Ticks(at), asked(AskedBy::Person, at)),
                Answer::Begins
            );
            triggers.over(false);
        }
        let answer = triggers.ask(Ticks(105), asked(AskedBy::Condition, 105));
        assert_eq!(
            answer,
            Answer::Begins,
            "nor do they count against the limits"
        );
    }

    #[test]
    fn saves_of_an_earlier_process_count() {
        let mut triggers = Triggers::new(LIMITS);
        // The clock may be younger than the saves.
        triggers.remember(Ticks(5), &[Ticks(900), Ticks(30), Ticks(1000)]);
        let app = |triggers: &mut Triggers, at| {
            let answer = triggers.ask(Ticks(at), asked(AskedBy::Application, at));
            triggers.over(false);
            answer
        };
        assert_eq!(app(&mut triggers, 34), Answer::TooSoon);
        assert_eq!(app(&mut triggers, 35), Answer::Begins);
        assert_eq!(app(&mut triggers, 99), Answer::OverCap);
        assert_eq!(app(&mut triggers, 105), Answer::Begins, "one is a day old");
    }

    #[test]
    fn texts_are_one_line_of_limited_length() {
        assert_eq!(tidy(" a\tb\u{7}c \n"), "a b c");
        assert_eq!(tidy(&"\u{e9}".repeat(1000)).len(), LONGEST_TEXT);
    }

    proptest! {
        /// Whatever arrives when: no two saves but a person's are closer than the limit, no day has more than its cap,
        /// and every request is counted once.
        #[test]
        fn limits_hold_for_any_requests(
            requests in proptest::collection::vec((0u64..50, 0u8..3, any::<bool>()), 1..200)
        ) {
            let mut triggers = Triggers::new(LIMITS);
            let (mut now, mut begun, mut answers) = (1000, Vec::new(), 0);
            for (later, by, over) in requests {
                now += later;
                let by = [AskedBy::Condition, AskedBy::Application, AskedBy::Person][usize::from(by)];
                let answer = triggers.ask(Ticks(now), asked(by, now));
                answers += 1;
                if answer == Answer::Begins && by != AskedBy::Person {
                    begun.push(now);
                }
                if over {
                    triggers.over(false);
                }
            }
            for pair in begun.windows(2) {
                prop_assert!(pair[1] - pair[0] >= LIMITS.apart.0);
            }
            for (n, first) in begun.iter().enumerate() {
                let within = begun[n..].iter().filter(|at| *at - first < LIMITS.day.0).count();
                prop_assert!(within <= LIMITS.daily);
            }
            let counts = triggers.counts();
            let counted = counts.taken + counts.joined + counts.too_soon + counts.over_cap;
            prop_assert_eq!(counted, answers);
        }
    }
}
