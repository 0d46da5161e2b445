//! Messages through the ring: their duration, and what delayed the slow ones.

use super::{Layout, Ranking};
use crate::number::count;
use crate::report::{Cell, Column, Row, Table};
use crate::style::Tone;
use crate::text::Page;
use jitterscope_analyze::{Blame, BlameLevel, ConsumerSummary, PipelineSummary, RunSummary};
use jitterscope_model::{CpuUse, Nanos, PipelinePacing, Warning};

pub(super) fn render<'a>(
    page: &mut Page,
    summary: &RunSummary,
    pipeline: &'a PipelineSummary,
    layout: Layout,
) -> Option<Ranking<'a>> {
    headline(page, summary, pipeline);
    if layout.rows > 0 {
        page.table(table(pipeline));
        if layout.remarks {
            page.prose(None, 0, &omission(pipeline));
        }
    }
    if pipeline.producer.full_waits > 0 {
        let waited = pipeline.producer.full_waited_ns;
        let text = match pipeline.setup.via.is_in_kernel() {
            false => format!("The ring was full for {waited} in all."),
            true => format!("The producer waited {waited} in all for room on the way."),
        };
        page.prose(Some(Tone::Warning), 0, &text);
    }
    if summary.attribution.is_none() && pipeline.blame.is_empty() {
        page.prose(
            Some(Tone::Warning),
            0,
            "Who held them up is not known: no kernel events were recorded.",
        );
        return None;
    }
    if !summary.withheld().is_empty() {
        return None;
    }
    let consumer = slowest(pipeline)?;
    let blame = pipeline.held_up(consumer.role)?;
    page.prose(None, 0, &format!("What {} were made of:", messages(blame)));
    Some(Ranking::Blame(blame))
}

/// The messages with known delays: the accumulator's messages above a time, and how many have a row.
pub(crate) fn messages(blame: &Blame) -> String {
    let role = blame.role;
    let which = match blame.level {
        BlameLevel::AboveP99 => format!(
            "the messages of the {role} that took longer than {}",
            blame.longer_than_ns
        ),
        BlameLevel::Slow => format!("the slow messages of the {role}"),
    };
    let some = match blame.split < blame.above {
        true => format!(
            " ({} of {}, the others have no row)",
            count(blame.split),
            count(blame.above)
        ),
        false => String::new(),
    };
    which + &some
}

/// The consumer with the slowest message.
fn slowest(pipeline: &PipelineSummary) -> Option<&ConsumerSummary> {
    pipeline
        .consumers
        .iter()
        .max_by_key(|consumer| consumer.from_intended.max_ns)
}

/// The message times of each consumer.
fn table(pipeline: &PipelineSummary) -> Table {
    let row = |consumer: &ConsumerSummary| {
        let times = &consumer.from_intended;
        let name = Cell::toned(format!("{} after", consumer.role), Tone::Strong);
        let levels = ["50", "99", "99.99"].map(|level| Cell::known(times.supported(level)));
        let [half, most, far] = levels;
        Row::from([name, half, most, far, times.max_ns.to_string().into()])
    };
    let heads = ["50 %", "99 %", "99.99 %", "at most"];
    let columns = [Column::text("a message reached the")].into_iter();
    Table {
        title: "Messages by time".into(),
        columns: columns.chain(Column::numbers(heads)).collect(),
        rows: pipeline.consumers.iter().map(row).collect(),
        ..Table::default()
    }
}

/// The slowest consumer's message times in a sentence, and whether details of its slowest message are known.
pub(crate) fn headline(page: &mut Page, summary: &RunSummary, pipeline: &PipelineSummary) {
    let Some(consumer) = slowest(pipeline) else {
        return;
    };
    let times = &consumer.from_intended;
    let within = |percentile: &str| {
        let time = times.supported(percentile)?;
        Some(format!("{percentile} % within {time}"))
    };
    // The highest percentile that the number of messages supports.
    let far = ["99.99", "99.9", "99"].into_iter().find_map(within);
    let reached: Vec<String> = within("50").into_iter().chain(far).collect();
    let text = match reached.as_slice() {
        [] => format!(
            "A message reached the {} {} late at worst.",
            consumer.role, times.max_ns
        ),
        reached => format!(
            "Messages reached the {}: {}, the last of them after {}.",
            consumer.role,
            reached.join(", "),
            times.max_ns
        ),
    };
    page.prose(Some(Tone::Strong), 0, &text);
    if summary.attribution.is_some() && has_no_free_cpu(summary) {
        let text = "These times are not the pipeline's alone: our own thread used its CPUs, too. How long messages \
                    take is measured with --no-trace, or with one CPU more.";
        page.prose(Some(Tone::Warning), 0, text);
    }
    let dropped: u64 = pipeline
        .consumers
        .iter()
        .map(|consumer| consumer.slow_dropped)
        .sum();
    if let Some(worst) = summary
        .worst
        .first()
        .filter(|worst| worst.duration_ns < times.max_ns && dropped > 0)
    {
        let text = format!(
            "That one came too fast behind others to be kept, as {} slow messages in all; the longest that was \
             kept took {}.",
            count(dropped),
            worst.duration_ns
        );
        page.prose(None, 0, &text);
    }
}

/// Whether the recorder's own threads had no CPU other than the pipeline's.
fn has_no_free_cpu(summary: &RunSummary) -> bool {
    let theirs = |warning: &Warning| {
        matches!(
            warning,
            Warning::NoFreeCpu {
                taken: CpuUse::Pipeline,
                ..
            }
        )
    };
    summary.warnings.iter().any(|said| theirs(&said.warning))
}

/// The moment from which these times count.
fn omission(pipeline: &PipelineSummary) -> String {
    if pipeline.setup.pacing == PipelinePacing::AfterPublication {
        return "Times are from a schedule that moves along with each publication (--pacing ancestor), which \
                hides stalls of the producer."
            .into();
    }
    let hidden = pipeline
        .consumers
        .iter()
        .filter_map(|consumer| consumer.hidden.as_ref());
    match hidden.max_by_key(|hidden| hidden.from_intended_ns.0 / hidden.transit_ns.0.max(1)) {
        Some(hidden) if hidden.transit_ns > Nanos::ZERO => format!(
            "From the intended publication; from the actual one, which omits the producer's own stalls, {} % \
             took up to {} instead of {}.",
            hidden.percentile, hidden.transit_ns, hidden.from_intended_ns
        ),
        _ => "From the intended publication; the producer kept its schedule.".into(),
    }
}
