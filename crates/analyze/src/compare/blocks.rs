//! What one run shows about itself alone.

use super::Interval;
use super::distribution::t_quantile;
use super::sample::Moments;

/// The fewest blocks of a run from which its variation can be estimated.
pub const FEWEST_BLOCKS: usize = 10;

/// The error of a run with too few blocks.
#[derive(Clone, Copy, Debug, PartialEq, Eq, thiserror::Error)]
#[error("the run has {blocks} blocks, and an interval within it takes {FEWEST_BLOCKS}")]
pub struct TooFewBlocks {
    pub blocks: usize,
}

/// The confidence interval of the mean of a run's equal blocks, each long against anything that repeats in it. It
/// describes another stretch of this run, not another run.
///
/// # Errors
/// There are fewer than [`FEWEST_BLOCKS`].
pub fn within_run(blocks: &[f64], level: f64) -> Result<Interval, TooFewBlocks> {
    let few = TooFewBlocks {
        blocks: blocks.len(),
    };
    if blocks.len() < FEWEST_BLOCKS {
        return Err(few);
    }
    let moments = Moments::of(blocks).ok_or(few)?;
    let half = t_quantile(0.5 + level / 2.0, (moments.count - 1) as f64) * moments.error();
    Ok(Interval {
        low: (moments.mean - half).max(0.0),
        high: moments.mean + half,
        level,
    })
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn nine_blocks_are_refused() {
        assert_eq!(within_run(&[1.0; 9], 0.95), Err(TooFewBlocks { blocks: 9 }));
        let interval =
            within_run(&[1.0, 3.0, 1.0, 3.0, 1.0, 3.0, 1.0, 3.0, 1.0, 3.0], 0.95).unwrap();
        assert!(
            (interval.low - (2.0 - 2.262 * 1.054_09 / 10f64.sqrt())).abs() < 1e-3,
            "{interval:?}"
        );
        assert!(
            (interval.low + interval.high - 4.0).abs() < 1e-9,
            "{interval:?}"
        );
    }
}
