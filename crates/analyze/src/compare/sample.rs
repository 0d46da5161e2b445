//! Mean and scatter of figures.

/// Mean and standard deviation (of n - 1) of some figures.
#[derive(Clone, Copy, Debug, PartialEq)]
pub(super) struct Moments {
    pub(super) count: usize,
    pub(super) mean: f64,
    pub(super) deviation: f64,
}

impl Moments {
    /// The moments of at least two figures; fewer have no scatter.
    pub(super) fn of(figures: &[f64]) -> Option<Moments> {
        if figures.len() < 2 {
            return None;
        }
        let mean = mean(figures);
        let squares: f64 = figures.iter().map(|figure| (figure - mean).powi(2)).sum();
        Some(Moments {
            count: figures.len(),
            mean,
            deviation: (squares / (figures.len() - 1) as f64).sqrt(),
        })
    }

    /// The standard error of the mean.
    pub(super) fn error(&self) -> f64 {
        self.deviation / (self.count as f64).sqrt()
    }
}

/// The mean; NaN for no figures.
pub(super) fn mean(figures: &[f64]) -> f64 {
    figures.iter().sum::<f64>() / figures.len() as f64
}
