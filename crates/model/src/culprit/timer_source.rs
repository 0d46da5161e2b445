//! What ran a timer function.

use crate::words::open_words;

open_words! {
    /// What ran a timer function.
    TimerSource {
        /// A high-resolution timer, run by the local timer interrupt or the HRTIMER softirq.
        HighResolution = "hrtimer",
        /// The timer wheel, run by the TIMER softirq.
        Wheel = "wheel",
        /// The local timer interrupt itself, without a function.
        Interrupt = "interrupt",
    }
}
