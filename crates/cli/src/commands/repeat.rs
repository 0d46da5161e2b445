//! Several runs of one setting, one after the other.

use crate::exit::Exit;
use std::sync::atomic::{AtomicBool, Ordering};

/// Makes this many runs. Ctrl-C ends the run that it reaches and makes no further one; all are kept. See [`Exit::and`]
/// for the outcome.
///
/// # Errors
/// That of a run; the earlier ones are kept.
pub(super) fn repeated(
    times: u32,
    stop: &AtomicBool,
    mut one: impl FnMut() -> anyhow::Result<Exit>,
) -> anyhow::Result<Exit> {
    let mut outcome = Exit::Ok;
    for _ in 0..times {
        outcome = outcome.and(one()?);
        if stop.load(Ordering::Relaxed) {
            break;
        }
    }
    Ok(outcome)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_stop_ends_the_runs_and_the_worst_outcome_counts() {
        let stop = AtomicBool::new(false);
        let mut made = 0;
        let mut run = |stops_at: u32, exits: &[Exit]| {
            made = 0;
            stop.store(false, Ordering::Relaxed);
            let exit = repeated(5, &stop, || {
                made += 1;
                stop.store(made == stops_at, Ordering::Relaxed);
                Ok(exits.get(made as usize - 1).copied().unwrap_or(Exit::Ok))
            });
            (made, exit.unwrap())
        };
        assert_eq!(run(9, &[]), (5, Exit::Ok));
        assert_eq!(run(2, &[]), (2, Exit::Ok));
        let exits = [Exit::Ok, Exit::Exceeded, Exit::Unavailable];
        assert_eq!(run(9, &exits), (5, Exit::Exceeded));
        let exits = [Exit::Unavailable, Exit::Exceeded];
        assert_eq!(run(9, &exits), (5, Exit::Exceeded));
        let exits = [Exit::Failed, Exit::Exceeded];
        assert_eq!(run(9, &exits), (5, Exit::Failed));
        let failed = repeated(3, &stop, || Err(anyhow::anyhow!("no clock")));
        assert!(failed.is_err());
    }
}
