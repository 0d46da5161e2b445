//! A run's rows as a page holds them: a head of JSON and columns of small numbers, deflated, in base64.
//!
//! After inflation: the length of the head (four bytes, little-endian), the head, and the columns one after another. A
//! column is stored in planes: the lowest bytes of all its numbers, then the next higher ones, up to the width of its
//! largest number. The lowest bits of lengths are noise, and each plane compresses separately. In a `delta` column,
//! each number is the difference to the previous one; `zigzag` numbers have their sign in the lowest bit. `length` is
//! the difference to the sum of the stall's parts, normally zero. `net`, `around` and `turns` are sorted by culprit, and within
//! a culprit by part, because values of one culprit are similar. `cpu` is the difference to the lane's.
//! `web/src/data.ts` reads this format; both have the same version.

use super::frames::{FrameRow, key_of};
use super::packing::packed;
use crate::chart::words as chart_words;
use crate::drawn::Drawn;
use crate::text::headline;
use crate::timeline::{Noun, StallKind};
use crate::words;
use jitterscope_analyze::WorstStall;
use jitterscope_analyze::picture::{DrawnPart, DrawnStall, Lane, OffsetMap, PartSort, summary_row};
use jitterscope_model::{Part, PutInOrder, Subject, TimelineRow};
use serde::Serialize;
use std::collections::{BTreeMap, HashMap};

/// The version of the format above; `web/src/data.ts` refuses others.
const VERSION: u32 = 4;
/// The width of names of lanes, culprits and part properties, in columns; these are far fewer than rows.
const NAME: usize = 96;

#[derive(Serialize)]
struct Header {
    version: u32,
    /// Whether the page's server can supply more of the run: [`stall`].
    served: bool,
    /// Whether the run keeps all of its trace.
    trace_complete: bool,
    run: Run,
    lanes: Vec<String>,
    /// The CPU of each lane; 0 for a thread's.
    lane_cpus: Vec<u32>,
    culprits: Vec<CulpritRow>,
    /// The texts about part properties, without duplicates.
    texts: Vec<String>,
    /// For each combination the culprit, then the numbers of its other texts.
    sorts: Vec<Vec<usize>>,
    curves: Vec<CurveRow>,
    /// The offsets of all stalls of the run, if not all stalls are in the page.
    #[serde(skip_serializing_if = "Option::is_none")]
    offsets: Option<OffsetsRow>,
    rows: usize,
    parts: usize,
    columns: BTreeMap<&'static str, Place>,
}

#[derive(Serialize)]
struct Run {
    id: String,
    label: String,
    kind: String,
    /// Nanoseconds since the epoch, as text: it exceeds a JavaScript number.
    began_ns: String,
    duration_ns: u64,
    threshold_ns: u64,
    /// The nouns for stalls.
    noun: Noun,
    /// The number of stalls read, of which `rows` are in the page.
    stalls: u64,
    /// The number of slow messages, if only some of them have rows.
    #[serde(skip_serializing_if = "Option::is_none")]
    slow: Option<u64>,
    /// Why culprits are unknown, if the run's evidence fails its own proof.
    #[serde(skip_serializing_if = "Option::is_none")]
    doubt: Option<String>,
}

#[derive(Serialize)]
struct CulpritRow {
    name: String,
    about: String,
    explained: bool,
    total_ns: u64,
    stalls: u64,
    max_ns: u64,
    /// In a served page: the key that requested frames have, too.
    #[serde(skip_serializing_if = "Option::is_none")]
    key: Option<u64>,
}

#[derive(Serialize)]
struct CurveRow {
    name: String,
    measured: &'static str,
    /// If its values are those of moments: the time of all of them, nanoseconds.
    moments_ns: Option<u64>,
    /// Nines and nanoseconds.
    points: Vec<(f64, f64)>,
    /// The longest value, in the same units.
    longest: (f64, f64),
}

/// As in [`jitterscope_analyze::picture::OffsetMap`].
#[derive(Serialize)]
struct OffsetsRow {
    unit_ns: u64,
    units_per_column: u64,
    columns: usize,
    rows: usize,
    counts: Vec<u64>,
}

#[derive(Serialize)]
struct Place {
    from: usize,
    planes: usize,
    delta: bool,
    zigzag: bool,
}

/// The rows of a run, in base64.
pub(super) fn encoded(run: &Drawn, served: bool) -> String {
    packed(&plain(run, served))
}

#[derive(Default)]
struct Columns {
    bytes: Vec<u8>,
    places: BTreeMap<&'static str, Place>,
}

impl Columns {
    /// Adds a column of plain numbers.
    fn plain(&mut self, name: &'static str, values: impl Iterator<Item = u64>) {
        self.add(name, values.collect(), false, false);
    }

    /// Adds a column of close values, as zigzag differences.
    fn near(&mut self, name: &'static str, values: impl Iterator<Item = u64>) {
        let mut last = 0u64;
        let deltas = values.map(|value| {
            let delta = zigzag(value.wrapping_sub(last));
            last = value;
            delta
        });
        self.add(name, deltas.collect(), true, true);
    }

    /// Adds a column of non-decreasing values, as differences.
    fn rising(&mut self, name: &'static str, values: impl Iterator<Item = u64>) {
        let mut last = 0u64;
        let deltas = values.map(|value| {
            let delta = value.saturating_sub(last);
            last = value;
            delta
        });
        self.add(name, deltas.collect(), true, false);
    }

    /// Adds a column of signed differences.
    fn signed(&mut self, name: &'static str, values: impl Iterator<Item = u64>) {
        self.add(name, values.map(zigzag).collect(), false, true);
    }

    fn add(&mut self, name: &'static str, values: Vec<u64>, delta: bool, zigzag: bool) {
        let from = self.bytes.len();
        let largest = values.iter().copied().max().unwrap_or(0);
        let planes = (u64::BITS - largest.leading_zeros()).div_ceil(8) as usize;
        for plane in 0..planes {
            self.bytes
                .extend(values.iter().map(|value| (value >> (8 * plane)) as u8));
        }
        self.places.insert(
            name,
            Place {
                from,
                planes,
                delta,
                zigzag,
            },
        );
    }
}

fn plain(run: &Drawn, served: bool) -> Vec<u8> {
    let picture = &run.picture;
    let stalls = || picture.stalls.iter();
    let parts = || stalls().flat_map(|stall| &stall.parts);
    let mut columns = Columns::default();
    columns.rising("start", stalls().map(|stall| stall.start.0));
    columns.signed(
        "length",
        stalls().map(|stall| stall.length.0.wrapping_sub(sum(stall))),
    );
    columns.near("id", stalls().map(|stall| stall.id.0));
    columns.plain("lane", stalls().map(|stall| stall.lane as u64));
    let lane_cpus: Vec<u32> = picture.lanes.iter().map(cpu_of).collect();
    columns.signed(
        "cpu",
        stalls().map(|stall| u64::from(stall.cpu.0).wrapping_sub(lane_cpus[stall.lane].into())),
    );
    columns.plain("parts", stalls().map(|stall| stall.parts.len() as u64));
    columns.plain("sort", parts().map(|part| part.sort as u64));
    let mut grouped: Vec<&DrawnPart> = parts().collect();
    grouped.order_by_key(|part| picture.sorts[part.sort].culprit);
    columns.plain("net", grouped.iter().map(|part| part.net.0));
    columns.plain(
        "around",
        grouped
            .iter()
            .map(|part| part.gross.saturating_sub(part.net).0),
    );
    columns.plain("turns", grouped.iter().map(|part| part.turns.into()));
    let noun = chart_words::noun(run);
    let (texts, sorts) = sorts(&picture.sorts, noun);
    let header = Header {
        version: VERSION,
        served,
        trace_complete: run.summary.trust.raw_trace_complete,
        run: Run {
            id: run.summary.run.id.clone(),
            label: crate::style::tame(&run.summary.run.label),
            kind: run.summary.probe.kind.clone(),
            began_ns: picture.began_realtime_ns.to_string(),
            duration_ns: picture.duration.0,
            threshold_ns: run.summary.probe.threshold_ns.0,
            noun,
            stalls: picture.stalls_read,
            slow: chart_words::slow_messages(run),
            doubt: headline::unproven(&run.summary),
        },
        lanes: picture.lanes.iter().map(chart_words::lane).collect(),
        lane_cpus,
        culprits: picture
            .culprits
            .iter()
            .zip(chart_words::culprits(run, NAME))
            .map(|(culprit, name)| CulpritRow {
                name,
                about: about(run, &culprit.subject),
                explained: culprit.subject.kind().is_explained(),
                total_ns: culprit.total.0,
                stalls: culprit.count,
                max_ns: culprit.max.0,
                key: served.then(|| key_of(&culprit.subject)),
            })
            .collect(),
        texts,
        sorts,
        curves: picture
            .curves
            .iter()
            .map(|curve| CurveRow {
                name: chart_words::curve(run, curve.of),
                measured: chart_words::measured(curve.of),
                moments_ns: curve.of.is_of_moments().then_some(curve.count),
                points: curve.nines().into_iter().map(rounded).collect(),
                longest: rounded(curve.longest()),
            })
            .collect(),
        offsets: (picture.stalls_read > picture.stalls.len() as u64)
            .then(|| offsets(&picture.offsets)),
        rows: picture.stalls.len(),
        parts: parts().count(),
        columns: columns.places,
    };
    // Serialising cannot fail: all map keys are text, and no number is infinite.
    let head = serde_json::to_vec(&header).unwrap_or_default();
    let mut out = u32::try_from(head.len())
        .unwrap_or_default()
        .to_le_bytes()
        .to_vec();
    out.extend_from_slice(&head);
    out.extend_from_slice(&columns.bytes);
    out
}

/// The words for a culprit, as in the table.
fn about(run: &Drawn, subject: &Subject) -> String {
    let row = summary_row(&run.summary, subject);
    row.map_or_else(
        || words::explain(subject).to_owned(),
        words::row_explanation,
    )
}

/// Rounded to visible precision.
fn rounded((nines, ns): (f64, f64)) -> (f64, f64) {
    ((nines * 1e4).round() / 1e4, ns)
}

fn sum(stall: &DrawnStall) -> u64 {
    stall
        .parts
        .iter()
        .fold(0, |sum, part| sum.wrapping_add(part.net.0))
}

fn offsets(map: &OffsetMap) -> OffsetsRow {
    OffsetsRow {
        unit_ns: map.unit.0,
        units_per_column: map.units_per_column,
        columns: map.columns,
        rows: map.rows,
        counts: map.counts.clone(),
    }
}

/// Moves the sign to the lowest bit.
fn zigzag(difference: u64) -> u64 {
    let signed = difference as i64;
    ((signed << 1) ^ (signed >> 63)) as u64
}

/// The CPU of a lane; 0 for a thread's.
fn cpu_of(lane: &Lane) -> u32 {
    match lane {
        Lane::Cpu(cpu) => cpu.0,
        Lane::Thread { .. } | Lane::Others => 0,
    }
}

/// The distinct texts about part properties, and the texts of each combination: combinations usually differ in one
/// text.
fn sorts(all: &[PartSort], noun: Noun) -> (Vec<String>, Vec<Vec<usize>>) {
    let (mut texts, mut known) = (Vec::new(), HashMap::new());
    let mut of = |sort: &PartSort| {
        let numbers = lines_of(sort, noun).into_iter().map(|text| {
            *known.entry(text).or_insert_with_key(|text: &String| {
                texts.push(text.clone());
                texts.len() - 1
            })
        });
        std::iter::once(sort.culprit).chain(numbers).collect()
    };
    let sorts = all.iter().map(&mut of).collect();
    (texts, sorts)
}

/// The texts about a combination, beside its culprit.
fn lines_of(sort: &PartSort, noun: Noun) -> Vec<String> {
    sort.part.as_ref().map_or_else(
        || vec!["one of many, which are not told apart".into()],
        |part| told_of(part, noun),
    )
}

fn told_of(part: &Part, noun: Noun) -> Vec<String> {
    let mut lines = Vec::new();
    lines.extend(part.phase.as_ref().map(|phase| format!("phase {phase}")));
    lines.extend(Some(words::detail(&part.culprit.subject, 1)).filter(|detail| !detail.is_empty()));
    if let Some(sender) = &part.culprit.sender {
        let via = sender
            .via
            .as_deref()
            .map(|via| format!(" through {via}"))
            .unwrap_or_default();
        let pid = if sender.is_thread() {
            format!(" (pid {})", sender.tid)
        } else {
            String::new()
        };
        lines.push(format!(
            "{} by {}{pid} on CPU {}{via}",
            words::sender_verb(part.culprit.subject.kind()),
            words::sender_name(sender),
            sender.cpu
        ));
    }
    lines.extend(
        part.moved_from
            .map(|cpu| format!("the victim was moved from CPU {cpu}")),
    );
    lines.extend(
        part.others_stalled
            .map(|n| format!("{n} other CPUs stalled at the same instant")),
    );
    lines.push(format!(
        "{} the {}",
        match part.placement.as_str() {
            "inside" => "inside",
            "lead" => "at the beginning of",
            "hole" => "between the events of",
            "trail" => "at the end of",
            "whole" => "all of",
            _ => "somewhere in",
        },
        noun.one
    ));
    lines.push(format!(
        "{} confidence: {}",
        part.confidence.as_str(),
        part.evidence
    ));
    lines.iter().map(|text| crate::style::tame(text)).collect()
}

/// One stall of a run, as a served page requests it.
#[derive(Serialize)]
struct StallRow {
    stall: u64,
    start_ns: u64,
    length_ns: u64,
    cpu: u32,
    victim: String,
    parts: Vec<StallPart>,
    frames: Vec<FrameRow>,
    /// Whether its trace is gone or unreadable.
    order_lost: bool,
}

#[derive(Serialize)]
struct StallPart {
    name: String,
    about: &'static str,
    explained: bool,
    text: String,
    net_ns: u64,
    around_ns: u64,
    turns: u32,
}

/// One stall with its parts and frames as JSON, for a served page that does not have all of them. `probe`: the word of
/// the run's probe; `rows`: `None` if the trace of the stall is gone or unreadable.
#[must_use]
pub fn stall(probe: &str, of: &WorstStall, rows: Option<&[TimelineRow]>) -> String {
    let noun = StallKind::of_probe(probe).noun();
    let part = |part: &Part| {
        let subject = &part.culprit.subject;
        StallPart {
            name: crate::style::fit(&words::kind_and_name(subject), NAME),
            about: words::explain(subject),
            explained: subject.kind().is_explained(),
            text: told_of(part, noun).join("; "),
            net_ns: part.net.0,
            around_ns: part.gross.saturating_sub(part.net).0,
            turns: part.turns,
        }
    };
    let row = StallRow {
        stall: of.stall.0,
        start_ns: of.start_offset_ns.0,
        length_ns: of.duration_ns.0,
        cpu: of.cpu.0,
        victim: crate::style::tame(&of.victim),
        parts: of.parts.iter().map(part).collect(),
        frames: rows
            .unwrap_or_default()
            .iter()
            .map(FrameRow::with_key)
            .collect(),
        order_lost: rows.is_none(),
    };
    // Serialising cannot fail.
    serde_json::to_string(&row).unwrap_or_default()
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn columns_hold_what_was_put_in() {
        let mut columns = Columns::default();
        columns.plain("a", [0, 127, 128, u64::MAX].into_iter());
        columns.plain("none", [0, 0].into_iter());
        columns.plain("d", [0x1ff, 3, 0x10000].into_iter());
        columns.rising("b", [5, 5, 300].into_iter());
        columns.near("c", [10, 9, 11].into_iter());
        columns.signed("e", [0, 1, 0u64.wrapping_sub(1)].into_iter());
        let of = |name, rows: usize| {
            let Place { from, planes, .. } = columns.places[name];
            columns.bytes[from..from + planes * rows].to_vec()
        };
        assert_eq!(
            of("a", 4),
            [&[0, 127, 128, 0xff][..], &[0, 0, 0, 0xff].repeat(7)].concat()
        );
        assert_eq!(columns.places["none"].planes, 0);
        assert_eq!(of("d", 3), [0xff, 3, 0, 1, 0, 0, 0, 0, 1]);
        assert_eq!(of("b", 3), [5, 0, 0x27, 0, 0, 1]);
        assert_eq!(of("c", 3), [20, 1, 4]);
        assert_eq!(of("e", 3), [0, 2, 1]);
    }
}
