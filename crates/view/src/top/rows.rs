//! The rows of the two tables, in order.

use super::state::{Sort, TopState};
use crate::words::kind_and_name;
use jitterscope_model::PutInOrder;
use jitterscope_recording::watch::{LiveCulprit, LiveStall, LiveSum, LiveView};
use std::cmp::Reverse;

/// Culprits that took time in the window and match the filter, the largest first.
pub(super) fn culprits<'v>(
    live: &'v LiveView,
    state: &TopState,
) -> Vec<(&'v LiveCulprit, LiveSum)> {
    let mut rows: Vec<_> = live
        .culprits
        .iter()
        .map(|of| (of, of.sums.before(live.second, state.window.seconds())))
        .filter(|(of, sum)| sum.count > 0 && state.matches(&kind_and_name(&of.subject)))
        .collect();
    rows.order_by_key(|(_, sum)| {
        Reverse(match state.sort {
            Sort::Time => (sum.time.0, sum.count),
            Sort::Count => (sum.count, sum.time.0),
            Sort::Worst => (sum.longest.0, sum.time.0),
        })
    });
    rows
}

/// Stalls in which a culprit matches the filter; by their start if sorted by count, else the longest first.
pub(super) fn stalls<'v>(live: &'v LiveView, state: &TopState) -> Vec<&'v LiveStall> {
    let is_wanted = |of: &&LiveStall| {
        let named = |name: String| state.matches(&name);
        state.filter.is_empty()
            || of
                .parts
                .iter()
                .any(|(subject, _)| named(kind_and_name(subject)))
    };
    let mut rows: Vec<&LiveStall> = live.stalls.iter().filter(is_wanted).collect();
    if state.sort == Sort::Count {
        rows.order_by_key(|of| Reverse(of.realtime_ns));
    }
    rows
}
