//! The report formats of perf-workshop, byte for byte, for scripts that read them.

use jitterscope_analyze::{MESSAGE_LEVELS, PipelineSummary, TimesSummary};
use jitterscope_model::{Nanos, PipelineRole};

/// The names of the percentiles in the long form.
const LONG_NAMES: [&str; 7] = [
    "50.00%", "90.00%", "99.00%", "99.90%", "99.99%", "99.999%", "99.9999%",
];
/// The number of percentiles in the short form.
const SHORT_LEVELS: usize = 5;

/// A report format of perf-workshop.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub enum Format {
    /// One table for each kind of time.
    #[default]
    Long,
    /// One line for each kind of time: min, mean, 50, 90, 99, 99.9, 99.99, max, count.
    Short,
}

/// The listed kinds of time, in perf-workshop's order and with its titles; the producer's, which perf-workshop does not
/// have, comes last.
#[must_use]
pub fn titled(pipeline: &PipelineSummary) -> Vec<(String, &TimesSummary)> {
    let mut titled = Vec::new();
    for consumer in &pipeline.consumers {
        titled.push((inter_title(consumer.role), &consumer.inter));
        titled.push((transit_title(consumer.role), &consumer.transit));
    }
    titled.push((
        inter_title(PipelineRole::Producer),
        &pipeline.producer.inter,
    ));
    titled
}

/// The title of the times between a thread's messages.
#[must_use]
pub fn inter_title(role: PipelineRole) -> String {
    format!("{} Inter-Message Latency (ns)", name(role))
}

/// The title of the times from publication to reception.
#[must_use]
pub fn transit_title(role: PipelineRole) -> String {
    format!("{} Message Transit Latency (ns)", name(role))
}

/// perf-workshop's name of a role.
#[must_use]
pub fn name(role: PipelineRole) -> &'static str {
    match role {
        PipelineRole::Producer => "Producer",
        PipelineRole::Accumulator => "Accumulator",
        PipelineRole::Journaller => "Journaller",
    }
}

fn levels(times: &TimesSummary) -> Vec<Nanos> {
    let at = |name: &str| times.percentiles_ns.get(name).copied().unwrap_or_default();
    MESSAGE_LEVELS.iter().map(|(name, _)| at(name)).collect()
}

/// The long form, followed by an empty line.
#[must_use]
pub fn long(title: &str, times: &TimesSummary) -> String {
    let mut text = format!("== {title} ==\n");
    let mut row = |name: &str, value: u64| text.push_str(&format!("{name:<8}{value:>20}\n"));
    row("mean", times.mean_ns.0);
    row("min", times.min_ns.0);
    for (name, value) in LONG_NAMES.iter().zip(levels(times)) {
        row(name, value.0);
    }
    row("max", times.max_ns.0);
    row("count", times.count);
    text.push('\n');
    text
}

/// The short form, followed by an empty line.
#[must_use]
pub fn short(times: &TimesSummary) -> String {
    let mut fields = vec![times.min_ns.0, times.mean_ns.0];
    fields.extend(levels(times).iter().take(SHORT_LEVELS).map(|level| level.0));
    fields.extend([times.max_ns.0, times.count]);
    let fields: Vec<String> = fields.iter().map(u64::to_string).collect();
    format!("{}\n\n", fields.join(","))
}

/// Every kind of time in the requested formats.
#[must_use]
pub fn render(pipeline: &PipelineSummary, formats: &[Format]) -> String {
    let mut text = String::new();
    for (title, times) in titled(pipeline) {
        for format in formats {
            text.push_str(&match format {
                Format::Long => long(&title, times),
                Format::Short => short(times),
            });
        }
    }
    text
}

#[cfg(test)]
mod tests {
    use super::*;

    /// The first table of document 000.
    fn baseline() -> TimesSummary {
        let levels = [
            168, 256, 2_228_239, 8_126_495, 10_485_823, 11_534_399, 11_534_399,
        ];
        let names = MESSAGE_LEVELS.iter().map(|(name, _)| *name);
        TimesSummary {
            count: 3_595_101,
            min_ns: Nanos(76),
            mean_ns: Nanos(60_879),
            max_ns: Nanos(11_534_399),
            percentiles_ns: names.zip(levels.map(Nanos)).collect(),
        }
    }

    #[test]
    fn the_long_form_is_that_of_document_000() {
        let expected = "\
== Accumulator Message Transit Latency (ns) ==
mean                   60879
min                       76
50.00%                   168
90.00%                   256
99.00%               2228239
99.90%               8126495
99.99%              10485823
99.999%             11534399
99.9999%            11534399
max                 11534399
count                3595101

";
        assert_eq!(
            long("Accumulator Message Transit Latency (ns)", &baseline()),
            expected
        );
    }

    #[test]
    fn the_short_form_is_a_line_of_nine_numbers() {
        let expected = "76,60879,168,256,2228239,8126495,10485823,11534399,3595101\n\n";
        assert_eq!(short(&baseline()), expected);
    }
}
