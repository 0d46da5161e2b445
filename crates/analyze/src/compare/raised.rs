//! Counts the stalls of a run from a longer threshold on, so that runs of different thresholds can be compared.

use jitterscope_model::{Nanos, RunManifest};

/// Turns stalls below `threshold` into ordinary deltas, as if the run had been recorded with it. Their total is that of
/// the histogram, to three digits.
pub(super) fn raise(manifest: &mut RunManifest, threshold: Nanos) {
    let least = manifest.rate.ticks(threshold).0;
    manifest.probe.threshold_ns = threshold;
    for result in &mut manifest.results {
        let (below, above): (Vec<_>, Vec<_>) =
            result.above.iter().partition(|(ticks, _)| *ticks < least);
        for (ticks, count) in below {
            let ticks = ticks.min(result.max_ticks);
            result.stalls = result.stalls.saturating_sub(count);
            let time = ticks.saturating_mul(count);
            result.stalled_ticks = result.stalled_ticks.saturating_sub(time);
            result
                .below
                .push((u32::try_from(ticks).unwrap_or(u32::MAX), count));
        }
        result.above = above;
        result.threshold_ticks = result.threshold_ticks.max(least);
    }
}
