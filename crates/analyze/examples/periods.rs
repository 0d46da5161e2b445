//! The periods in times of your own: `cargo run -p jitterscope-analyze --example periods <FILE`, with one time a line,
//! in nanoseconds, for example of each slow message.

use jitterscope_analyze::periods::{SearchSettings, find};
use jitterscope_model::Nanos;
use std::error::Error;
use std::io::{BufRead, stdin};

fn main() -> Result<(), Box<dyn Error>> {
    let mut times = Vec::new();
    for (number, line) in stdin().lock().lines().enumerate() {
        let line = line?;
        let time = line.trim().parse();
        let time: u64 = time.map_err(|error| format!("line {}: '{line}': {error}", number + 1))?;
        times.push(Nanos(time));
    }
    times.sort_unstable();
    let (Some(first), Some(last)) = (times.first().copied(), times.last().copied()) else {
        return Err("no times: write one a line, in nanoseconds".into());
    };
    let from_first: Vec<Nanos> = times
        .iter()
        .map(|time| time.saturating_sub(first))
        .collect();
    let span = last.saturating_sub(first);
    let found = find(&from_first, span, SearchSettings::default());
    if found.is_empty() {
        println!("{} times over {span}: no period", times.len());
    }
    for period in found {
        // Below 0.001 over the whole search, or it would not be here.
        println!(
            "every {}: {} of {} times, probability of chance e^{:.0}",
            period.period, period.in_pulse, period.events, period.ln_probability
        );
    }
    Ok(())
}
