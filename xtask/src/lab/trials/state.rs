//! A guest's settings before and after: everything that can be written, and the affinity of each thread.

use super::Finding;
use super::steps::Steps;
use std::collections::{BTreeMap, BTreeSet};

/// Limit on threads that began or ended meanwhile: with more of them, the comparison would say little about threads.
const MOST_NOT_IN_BOTH: usize = 8;

/// A thread's pid and start time, which are unique within a boot.
type Thread<'a> = (&'a str, &'a str);

/// The allowed CPUs of a thread, and its name.
type Place<'a> = (&'a str, &'a str);

/// One snapshot of a guest: the output of `settings` in `steps.sh`.
#[derive(Debug, Default)]
pub struct State<'a> {
    /// By path; each entry of a folder has its own path.
    settings: BTreeMap<&'a str, Vec<&'a str>>,
    threads: BTreeMap<Thread<'a>, Place<'a>>,
}

/// The comparison of two states.
#[derive(Debug, Default)]
pub struct Change {
    /// Changed settings, with the change.
    pub other: Vec<String>,
    /// Names of the threads that exist in only one of the two, whose affinity cannot be compared.
    pub not_in_both: Vec<String>,
    /// Number of compared settings, including threads.
    pub compared: usize,
    /// Number of threads among them.
    pub threads: usize,
}

impl<'a> State<'a> {
    pub fn of(text: &'a str) -> State<'a> {
        let mut state = State::default();
        for line in text.lines() {
            if let Some((key, value)) = thread(line) {
                state.threads.insert(key, value);
            } else {
                let (key, value) = line.split_once(':').unwrap_or((line, ""));
                state.settings.entry(key).or_default().push(value);
            }
        }
        state
    }

    /// What differs after something was done and undone. `again` was taken before that, too: what differs from it
    /// changes by itself, which says nothing about an undoing.
    pub fn until(&self, again: &State<'_>, after: &State<'_>) -> Change {
        let mut change = Change::default();
        let keys = self
            .settings
            .keys()
            .chain(after.settings.keys())
            .collect::<BTreeSet<_>>();
        for key in keys {
            let (was, is) = (self.settings.get(key), after.settings.get(key));
            if was != again.settings.get(key) {
                continue;
            }
            change.compared += 1;
            if was != is {
                change.other.push(format!("{key}: {was:?} -> {is:?}"));
            }
        }
        let threads = self
            .threads
            .keys()
            .chain(after.threads.keys())
            .collect::<BTreeSet<_>>();
        for key in threads {
            let (was, is) = (self.threads.get(key), after.threads.get(key));
            let (Some((was, name)), Some((is, _))) = (was, is) else {
                change
                    .not_in_both
                    .extend(was.or(is).map(|(_, name)| (*name).to_owned()));
                continue;
            };
            if again
                .threads
                .get(key)
                .is_some_and(|(again, _)| again != was)
            {
                continue;
            }
            change.threads += 1;
            if was != is {
                change
                    .other
                    .push(format!("CPUs of {name} (thread {}): {was} -> {is}", key.0));
            }
        }
        change.compared += change.threads;
        change
    }
}

/// Parses `thread PID START CPUS NAME`.
fn thread(line: &str) -> Option<(Thread<'_>, Place<'_>)> {
    let mut words = line.strip_prefix("thread ")?.splitn(4, ' ');
    Some((
        (words.next()?, words.next()?),
        (words.next()?, words.next()?),
    ))
}

/// Checks that no steady setting has changed.
pub fn restored(finding: &mut Finding, steps: &Steps, name: &str) {
    let (before, again, after) = (steps.file("before"), steps.file("again"), steps.file(name));
    let change = State::of(&before).until(&State::of(&again), &State::of(&after));
    let Change {
        other,
        not_in_both,
        compared,
        threads,
    } = &change;
    let left_out = match not_in_both.as_slice() {
        [] => "none ended or began".to_owned(),
        names => format!(
            "{} that ended or began are left out ({})",
            names.len(),
            names.join(", ")
        ),
    };
    let message = format!(
        "{name}: of {compared} settings all are as before, where {threads} threads may run among them; {left_out} {:.600}",
        other.join("; ")
    );
    let enough = *compared > 500 && *threads > 15 && not_in_both.len() <= MOST_NOT_IN_BOTH;
    finding.check(enough && other.is_empty(), message);
}

#[cfg(test)]
mod tests {
    use super::*;

    fn change(before: &str, again: &str, after: &str) -> Change {
        State::of(before).until(&State::of(again), &State::of(after))
    }

    #[test]
    fn only_what_was_steady_and_is_other_is_reported() {
        let (before, again) = ("/a:1\n/b:1\n/c:1\n", "/a:1\n/b:2\n/c:1\n");
        assert_eq!(change(before, again, "/a:1\n/b:3\n/c:1\n").other, [""; 0]);
        assert_eq!(change(before, again, "/a:2\n/b:1\n").other.len(), 2);
        let found = change(before, again, "/a:1\n/c:1\n/d:1\n");
        assert_eq!(found.other, ["/d: None -> Some([\"1\"])"]);
        assert_eq!((found.compared, found.threads), (3, 0));
    }

    #[test]
    fn a_thread_is_compared_where_it_is_in_both_and_counted_where_it_is_not() {
        let before =
            "thread 7 10 0-3 kswapd0\nthread 8 10 0-3 ext4lazyinit\nthread 9 10 0-3 a b:c\n";
        // Pid 8 belongs to another thread now.
        let found = change(
            before,
            before,
            "thread 7 10 0-3 kswapd0\nthread 8 90 0 sh\nthread 9 10 2 a b:c\n",
        );
        assert_eq!(found.other, ["CPUs of a b:c (thread 9): 0-3 -> 2"]);
        assert_eq!(found.not_in_both, ["ext4lazyinit", "sh"]);
        assert_eq!((found.compared, found.threads), (2, 2));
    }

    #[test]
    fn a_thread_that_moved_by_itself_says_nothing() {
        let found = change(
            "thread 7 10 0 x\n",
            "thread 7 10 1 x\n",
            "thread 7 10 2 x\n",
        );
        assert_eq!((found.other.len(), found.threads), (0, 0));
        // A thread that is missing in the second snapshot counts as steady.
        let found = change("thread 7 10 0 x\n", "", "thread 7 10 2 x\n");
        assert_eq!((found.other.len(), found.threads), (1, 1));
    }
}
