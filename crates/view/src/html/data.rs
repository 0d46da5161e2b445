//! A run's rows as a page holds them: a head of JSON and columns of small numbers, deflated, in base64.
//!
//! After inflating come the length of the head (four bytes, the lowest first), the head, and the columns one
//! after another. A column stands in planes: the lowest bytes of all its numbers, then the next higher ones, as
//! many as its largest number has. The lowest bits of lengths are noise, and each plane is coded by itself.
//! Where the head calls a column `delta`, each number is what must be added to the one before; `zigzag` numbers
//! have their sign in the lowest bit. `length` is by what it differs from the sum of the stall's parts: nothing,
//! where they sum to it as they should. `net` and `around` are in order of the culprits, and of each culprit in
//! order of the parts: what one culprit takes is alike. `cpu` is by what it differs from the lane's. `web/src/data.ts` reads it; the two have one version.

use super::frames::{FrameRow, key_of};
use super::packing::packed;
use crate::chart::words as chart_words;
use crate::drawn::Drawn;
use crate::text::headline;
use crate::timeline::{Noun, StallKind};
use crate::words;
use jitterscope_analyze::WorstStall;
use jitterscope_analyze::picture::{DrawnPart, DrawnStall, Lane, OffsetMap, PartSort};
use jitterscope_model::{Part, TimelineRow};
use serde::Serialize;
use std::collections::{BTreeMap, HashMap};

/// Of the form above; `web/src/data.ts` refuses another.
const VERSION: u32 = 3;
/// Lanes, culprits and sorts of parts are far fewer than rows; names in them are cut to so many columns.
const NAME: usize = 96;

#[derive(Serialize)]
struct Header {
    version: u32,
    /// Whether more of the run can be had from where the page came from: [`stall`].
    served: bool,
    run: Run,
    lanes: Vec<String>,
    /// The CPU of each lane; 0 of a thread's.
    lane_cpus: Vec<u32>,
    culprits: Vec<CulpritRow>,
    /// What is said of sorts of parts, each once.
    texts: Vec<String>,
    /// Of each the culprit, and then which texts say what else is known.
    sorts: Vec<Vec<usize>>,
    curves: Vec<CurveRow>,
    /// When within a unit of time all stalls of the run begin: where not all are here.
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
    /// Nanoseconds since the epoch: more than a number of JavaScript holds.
    began_ns: String,
    duration_ns: u64,
    threshold_ns: u64,
    /// What they are called.
    noun: Noun,
    /// Stalls that were read, of which `rows` are here.
    stalls: u64,
    /// Slow messages in all, where only some of them were recorded one by one.
    #[serde(skip_serializing_if = "Option::is_none")]
    slow: Option<u64>,
    /// Why who did it cannot be said, where the run's evidence fails its own proof.
    #[serde(skip_serializing_if = "Option::is_none")]
    doubt: Option<String>,
}

#[derive(Serialize)]
struct CulpritRow {
    name: String,
    about: &'static str,
    explained: bool,
    total_ns: u64,
    stalls: u64,
    max_ns: u64,
    /// In a page that is served: what frames that it asks for have, too.
    #[serde(skip_serializing_if = "Option::is_none")]
    key: Option<u64>,
}

#[derive(Serialize)]
struct CurveRow {
    name: String,
    measured: &'static str,
    /// Nines and nanoseconds.
    points: Vec<(f64, f64)>,
    /// The longest of all, in the same way.
    longest: (f64, f64),
}

/// As [`jitterscope_analyze::picture::OffsetMap`] has them.
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
    /// Numbers as they are.
    fn plain(&mut self, name: &'static str, values: impl Iterator<Item = u64>) {
        self.add(name, values.collect(), false, false);
    }

    /// Values that lie near one another.
    fn near(&mut self, name: &'static str, values: impl Iterator<Item = u64>) {
        let mut last = 0u64;
        let deltas = values.map(|value| {
            let delta = zigzag(value.wrapping_sub(last));
            last = value;
            delta
        });
        self.add(name, deltas.collect(), true, true);
    }

    /// Values that never fall.
    fn rising(&mut self, name: &'static str, values: impl Iterator<Item = u64>) {
        let mut last = 0u64;
        let deltas = values.map(|value| {
            let delta = value.saturating_sub(last);
            last = value;
            delta
        });
        self.add(name, deltas.collect(), true, false);
    }

    /// Differences, which may be below nothing.
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
    grouped.sort_by_key(|part| picture.sorts[part.sort].culprit);
    columns.plain("net", grouped.iter().map(|part| part.net.0));
    columns.plain(
        "around",
        grouped
            .iter()
            .map(|part| part.gross.saturating_sub(part.net).0),
    );
    let noun = chart_words::noun(run);
    let (texts, sorts) = sorts(&picture.sorts, noun);
    let header = Header {
        version: VERSION,
        served,
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
                about: words::explain(&culprit.subject),
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
    // No map of it has keys that are not text, and no number is infinite: JSON can hold it.
    let head = serde_json::to_vec(&header).unwrap_or_default();
    let mut out = u32::try_from(head.len())
        .unwrap_or_default()
        .to_le_bytes()
        .to_vec();
    out.extend_from_slice(&head);
    out.extend_from_slice(&columns.bytes);
    out
}

/// As near as an eye can tell.
fn rounded((nines, ns): (f64, f64)) -> (f64, f64) {
    ((nines * 1e4).round() / 1e4, ns)
}

/// Its parts together.
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

/// The sign in the lowest bit.
fn zigzag(difference: u64) -> u64 {
    let signed = difference as i64;
    ((signed << 1) ^ (signed >> 63)) as u64
}

/// The CPU of a lane; 0 of a thread's.
fn cpu_of(lane: &Lane) -> u32 {
    match lane {
        Lane::Cpu(cpu) => cpu.0,
        Lane::Thread { .. } | Lane::Others => 0,
    }
}

/// What is said of sorts, each text once, and which of them are of which sort: sorts differ in one of several
/// texts mostly.
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

/// What else is known of parts of a sort, beside whose they are.
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
        let pid = if sender.involves_thread() {
            format!(" (pid {})", sender.tid)
        } else {
            String::new()
        };
        lines.push(format!(
            "triggered by {}{pid} on CPU {}{via}",
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

/// One stall of a run, as a served page asks for it.
#[derive(Serialize)]
struct StallRow {
    stall: u64,
    start_ns: u64,
    length_ns: u64,
    cpu: u32,
    victim: String,
    parts: Vec<StallPart>,
    frames: Vec<FrameRow>,
}

#[derive(Serialize)]
struct StallPart {
    name: String,
    about: &'static str,
    explained: bool,
    text: String,
    net_ns: u64,
    around_ns: u64,
}

/// One stall with its parts and frames as JSON, for a page that is served and has not all of them. `probe`: of the
/// run, by its word.
#[must_use]
pub fn stall(probe: &str, of: &WorstStall, rows: &[TimelineRow]) -> String {
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
        }
    };
    let row = StallRow {
        stall: of.stall.0,
        start_ns: of.start_offset_ns.0,
        length_ns: of.duration_ns.0,
        cpu: of.cpu.0,
        victim: crate::style::tame(&of.victim),
        parts: of.parts.iter().map(part).collect(),
        frames: rows.iter().map(FrameRow::with_key).collect(),
    };
    // It has nothing that JSON cannot hold.
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
