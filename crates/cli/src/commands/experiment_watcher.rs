//! Reports the progress of an experiment, and its remaining time.

use crate::output;
use jitterscope_analyze::compare::Looks;
use jitterscope_experiment::{Arm, Observer, Pace, VoidReason};
use jitterscope_view::experiment::{time_left, void_reason};
use std::time::{Duration, Instant};

/// The interval between two lines about a wait.
const EVERY: Duration = Duration::from_secs(30);

pub struct Watcher {
    quiet: bool,
    last: Option<(Arm, Instant)>,
    looks: Looks,
    begun: Instant,
    pace: Pace,
}

impl Watcher {
    pub fn new(quiet: bool, looks: Looks) -> Watcher {
        Watcher {
            quiet,
            last: None,
            looks,
            begun: Instant::now(),
            pace: Pace::default(),
        }
    }

    fn left(&self, made: usize) -> String {
        self.pace
            .left(self.begun.elapsed(), made)
            .map_or_else(String::new, time_left)
    }
}

impl Observer for Watcher {
    fn settling(&mut self, arm: Arm, left: Duration) {
        let reported = |(of, last): (Arm, Instant)| of == arm && last.elapsed() < EVERY;
        if self.quiet || self.last.is_some_and(reported) {
            return;
        }
        self.last = Some((arm, Instant::now()));
        let what = match arm {
            Arm::A => "the undoing of the change is",
            Arm::B => "the change is",
        };
        output::talk(format_args!(
            "waiting up to {} s until {what} in force",
            left.as_secs() + 1
        ));
    }

    fn paired(&mut self, counted: usize) {
        self.pace.made_one();
        if self.quiet {
            return;
        }
        let due = self.looks.due(counted).pairs;
        let (look, all) = (
            due.saturating_sub(counted),
            self.looks.last().pairs.saturating_sub(counted),
        );
        output::talk(format_args!(
            "pair {counted} of {due}; the next look in about {}, the end in {} at most",
            self.left(look),
            self.left(all)
        ));
    }

    fn measured(&mut self, arm: Arm, counted: usize, of: usize) {
        self.pace.made_one();
        if self.quiet {
            return;
        }
        let (which, others) = match arm {
            Arm::A => ("without", of),
            Arm::B => ("with", 0),
        };
        let left = self.left(of.saturating_sub(counted) + others);
        output::talk(format_args!(
            "run {counted} of {of} {which} the change; about {left} left"
        ));
    }

    fn void(&mut self, why: &VoidReason) {
        if !self.quiet {
            output::talk(format_args!(
                "this one does not count: {}",
                void_reason(why)
            ));
        }
    }
}
