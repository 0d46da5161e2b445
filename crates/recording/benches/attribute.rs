//! The cost of attribution: `cargo bench -p jitterscope-recording --bench attribute`. One thread repeatedly decodes the
//! pages of a recorded run, alternately with and without attributing its stalls, and counts allocations. Prints one
//! line of JSON.

use jitterscope_attribute::{Attributor, AttributorSettings, EdgeCosts, OutsideHints};
use jitterscope_model::{Gap, Stall, Ticks};
use jitterscope_recording::StoredNames;
use jitterscope_source::{Decoder, TraceContext};
use jitterscope_store::{RunReader, StoredPage, TraceRole};
use std::error::Error;
use std::hint::black_box;
use std::path::Path;
use std::time::{Duration, Instant};

/// Rounds, each of decoding alone and of both: the median of their ratios counts.
const ROUNDS: usize = 101;
/// Passes over the run in either half of a round.
const PASSES: u32 = 20;

struct Run {
    reader: RunReader,
    context: TraceContext,
    pages: Vec<StoredPage>,
    stalls: Vec<Stall>,
}

impl Run {
    fn open() -> Result<Run, Box<dyn Error>> {
        let path = Path::new(env!("CARGO_MANIFEST_DIR")).join("tests/fixtures/spin");
        let reader = RunReader::open(&path)?;
        let context = reader.trace_context()?.ok_or("the run has no trace")?;
        let pages = reader.trace_pages(Ticks(0), Ticks(u64::MAX))?;
        let stalls: Result<Vec<Stall>, _> = reader.stalls()?.collect();
        Ok(Run {
            context,
            pages,
            stalls: stalls?,
            reader,
        })
    }

    /// Decodes every page. Returns the number of events.
    fn decode(&self, decoder: &mut Decoder) -> u64 {
        let mut events = 0;
        for page in &self.pages {
            let _ = decoder.page(page.cpu, &page.bytes, |event| {
                black_box(&event);
                events += 1;
            });
        }
        events
    }

    /// Decodes every page and attributes every stall.
    fn attribute(&self, decoder: &mut Decoder, names: &StoredNames) {
        let manifest = self.reader.manifest();
        let settings = AttributorSettings {
            rate: manifest.rate,
            virtual_machine: manifest.host.hypervisor.is_some(),
            measured: manifest.results.len(),
        };
        let mut attributor = Attributor::new(settings);
        attributor.set_costs(EdgeCosts::from_rows(&manifest.edge_costs));
        let mut pages = self.pages.iter().peekable();
        for stall in &self.stalls {
            while let Some(page) = pages.next_if(|page| page.first <= stall.end) {
                let _ = decoder.page(page.cpu, &page.bytes, |event| match page.role {
                    TraceRole::Senders => attributor.sender_event(&event),
                    TraceRole::Local => attributor.event(&event),
                    TraceRole::Graph | TraceRole::Stacks => {}
                });
            }
            attributor.announce(
                stall.cpu,
                Gap {
                    start: stall.start,
                    length: stall.length(),
                },
            );
            black_box(attributor.attribute(stall, &OutsideHints::default(), names));
        }
        for page in pages {
            let _ = decoder.page(page.cpu, &page.bytes, |event| match page.role {
                TraceRole::Senders => attributor.sender_event(&event),
                TraceRole::Local => attributor.event(&event),
                TraceRole::Graph | TraceRole::Stacks => {}
            });
        }
    }
}

fn time(mut pass: impl FnMut()) -> Duration {
    let start = Instant::now();
    (0..PASSES).for_each(|_| pass());
    start.elapsed() / PASSES
}

fn median(mut values: Vec<f64>) -> f64 {
    values.sort_by(f64::total_cmp);
    values[values.len() / 2]
}

fn main() -> Result<(), Box<dyn Error>> {
    let run = Run::open()?;
    let names = StoredNames::new(&run.context);
    let mut decoder = Decoder::new(&run.context)?;
    // The first pass looks up and caches the names.
    let events = run.decode(&mut decoder);
    run.attribute(&mut decoder, &names);
    let (mut alone, mut both, mut ratios) = (Vec::new(), Vec::new(), Vec::new());
    for _ in 0..ROUNDS {
        let decoding = time(|| {
            run.decode(&mut decoder);
        });
        let attributing = time(|| run.attribute(&mut decoder, &names));
        alone.push(decoding.as_nanos() as f64 / events as f64);
        both.push(attributing.as_nanos() as f64 / events as f64);
        ratios.push(attributing.as_secs_f64() / decoding.as_secs_f64());
    }
    let decoding = allocation_counter::measure(|| {
        run.decode(&mut decoder);
    });
    let attributing = allocation_counter::measure(|| run.attribute(&mut decoder, &names));
    let allocations = attributing.count_total.saturating_sub(decoding.count_total) as f64;
    let (alone, both) = (median(alone), median(both));
    let stalls = run.stalls.len() as f64;
    println!(
        "{}",
        serde_json::json!({
            "events": events,
            "stalls": run.stalls.len(),
            "decode_ns_per_event": alone,
            "attribute_ns_per_event": both - alone,
            "attribute_ns_per_stall": (both - alone) * events as f64 / stalls,
            "ratio": median(ratios),
            "allocations_per_event": allocations / events as f64,
            "allocations_per_stall": allocations / stalls,
            "decode_allocations_per_event": decoding.count_total as f64 / events as f64,
        })
    );
    Ok(())
}
