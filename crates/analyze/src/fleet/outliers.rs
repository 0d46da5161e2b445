//! Hosts that lose more than their twins, and not by chance.
//!
//! The generalised extreme studentized deviate test (Rosner, Technometrics 25, 1983), one-sided: it finds several hosts
//! without the ones hiding the others. It assumes that distances between the logarithms of the shares of twins are
//! normal, with one variance for all groups. Unlike the test of
//! one suspect host, it states the probability that any host of a group is called worse.

use crate::compare::t_quantile;

/// The fewest figures that the test judges. With fewer, its error rate is not what it states.
const FEWEST: usize = 25;
/// At most this share of the figures is worse; beyond that, the others are no reference.
const MOST_SHARE: usize = 4;
/// And at most so many.
const MOST: usize = 50;

/// The places of the figures that are too high, the highest first. With probability `alpha` at most, chance gives any.
pub(super) fn outliers(figures: &[f64], alpha: f64) -> Vec<usize> {
    if figures.len() < FEWEST {
        return Vec::new();
    }
    let mut order: Vec<usize> = (0..figures.len()).collect();
    order.sort_by(|one, other| figures[*other].total_cmp(&figures[*one]));
    let most = (figures.len() / MOST_SHARE).min(MOST);
    let mut found = 0;
    for removed in 0..most {
        let rest: Vec<f64> = order[removed..].iter().map(|at| figures[*at]).collect();
        #[allow(clippy::cast_precision_loss, reason = "far below 2^53 hosts")]
        let n = rest.len() as f64;
        let mean = rest.iter().sum::<f64>() / n;
        let squares: f64 = rest.iter().map(|of| (of - mean).powi(2)).sum();
        let deviation = (squares / (n - 1.0)).sqrt();
        if deviation <= 0.0 {
            break;
        }
        let t = t_quantile(1.0 - alpha / n, n - 2.0);
        let critical = t * (n - 1.0) / ((n - 2.0 + t * t) * n).sqrt();
        // The last one that is beyond its bound counts, and all before it.
        if (rest[0] - mean) / deviation > critical {
            found = removed + 1;
        }
    }
    order.truncate(found);
    order
}

#[cfg(test)]
mod tests {
    use super::*;

    /// A normal number.
    fn normal(random: &mut fastrand::Rng) -> f64 {
        let (u, v) = (random.f64().max(f64::MIN_POSITIVE), random.f64());
        (-2.0 * u.ln()).sqrt() * (std::f64::consts::TAU * v).cos()
    }

    fn share_of_alarms(hosts: usize, alpha: f64, rounds: usize) -> f64 {
        let mut random = fastrand::Rng::with_seed(hosts as u64);
        let alarms = (0..rounds).filter(|_| {
            let figures: Vec<f64> = (0..hosts).map(|_| normal(&mut random)).collect();
            !outliers(&figures, alpha).is_empty()
        });
        alarms.count() as f64 / rounds as f64
    }

    #[test]
    fn equal_hosts_are_called_worse_as_rarely_as_stated() {
        for hosts in [FEWEST, 60, 200] {
            let share = share_of_alarms(hosts, 0.05, 2000);
            // Four standard errors above 5 %.
            assert!(share < 0.07, "{hosts} hosts: {share}");
            assert!(share > 0.02, "{hosts} hosts: the test can fail: {share}");
        }
    }

    #[test]
    fn several_bad_hosts_do_not_hide_one_another() {
        let mut random = fastrand::Rng::with_seed(7);
        let mut missed = 0;
        for _ in 0..200 {
            let mut figures: Vec<f64> = (0..40).map(|_| 0.2 * normal(&mut random)).collect();
            // Three hosts that lose four times as much.
            (0..3).for_each(|at| figures[at] += 4_f64.ln());
            let found = outliers(&figures, 0.01);
            missed += (0..3).filter(|at| !found.contains(at)).count();
            assert!(found.len() <= 4, "{found:?}");
        }
        assert!(missed < 6, "{missed} of 600");
    }

    #[test]
    fn small_and_equal_groups_have_no_outlier() {
        assert!(outliers(&[0.0; 100], 0.05).is_empty());
        let mut few = [0.0; FEWEST - 1];
        few[0] = 100.0;
        few[1] = 0.1;
        assert!(outliers(&few, 0.05).is_empty());
    }
}
