//! The cost of attribution compared with decoding the same pages.

use super::claim::Claim;
use super::{bench_json, number};

/// Maximum ratio of decoding with attribution to decoding alone.
const MOST_ATTRIBUTION: f64 = 12.0;
/// Maximum allocations of attribution per event.
const MOST_ALLOCATIONS: f64 = 1.5;

pub fn claims() -> anyhow::Result<Vec<Claim>> {
    let json = bench_json("jitterscope-recording", "attribute", &[])?;
    let of = |field: &str| number(&json, field);
    println!(
        "attribution of {} stalls of {} events: {:.0} ns an event beside {:.0} of decoding, {:.0} ns and {:.1} \
         allocations a stall",
        of("stalls")?,
        of("events")?,
        of("attribute_ns_per_event")?,
        of("decode_ns_per_event")?,
        of("attribute_ns_per_stall")?,
        of("allocations_per_stall")?,
    );
    Ok(vec![
        Claim::at_most(
            "decoding and attribution to decoding alone",
            of("ratio")?,
            MOST_ATTRIBUTION,
        ),
        Claim::at_most(
            "allocations of attribution an event",
            of("allocations_per_event")?,
            MOST_ALLOCATIONS,
        ),
    ])
}
