//! A run's rows as a page holds them: a head of JSON and columns of small numbers, deflated, in base64.
//!
//! After inflating come the length of the head (four bytes, the lowest first), the head, and the columns one
//! after another. A column is a sequence of LEB128 numbers; where the head calls it `delta`, each is what must
//! be added to the one before; of a `split` one the lowest bytes stand first, and `zigzag` numbers have their sign in the lowest bit. The last part of a stall is in `net` by what it differs from
//! what the others leave of the stall. `web/src/data.ts` reads
//! it; the two have one version.

use crate::chart::words as chart_words;
use crate::drawn::Drawn;
use crate::text::headline;
use crate::words;
use base64::Engine;
use flate2::Compression;
use flate2::write::DeflateEncoder;
use jitterscope_analyze::picture::{DrawnStall, PartSort};
use jitterscope_analyze::{WorstStall, explain};
use jitterscope_model::{Nanos, Part, StallId, TimelineRow};
use serde::Serialize;
use std::collections::BTreeMap;
use std::io::Write;

/// Of the form above; `web/src/data.ts` refuses another.
const VERSION: u32 = 1;
/// Lanes, culprits and sorts of parts are far fewer than rows; names in them are cut to so many columns.
const NAME: usize = 96;

/// What ran within one stall.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Frames {
    /// Which stall.
    pub stall: StallId,
    /// From its start.
    pub rows: Vec<TimelineRow>,
}

#[derive(Serialize)]
struct Header {
    version: u32,
    /// Whether more of the run can be had from where the page came from: [`stall`].
    served: bool,
    run: Run,
    lanes: Vec<String>,
    culprits: Vec<CulpritRow>,
    sorts: Vec<SortRow>,
    curves: Vec<CurveRow>,
    frames: Vec<FramesRow>,
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
    /// Stalls that were read, of which `rows` are here.
    stalls: u64,
    /// Why who did it cannot be said, where the run's evidence fails its own proof.
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
}

#[derive(Serialize)]
struct SortRow {
    culprit: usize,
    text: String,
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

#[derive(Serialize)]
struct FramesRow {
    stall: u64,
    frames: Vec<FrameRow>,
}

#[derive(Serialize)]
struct FrameRow {
    #[serde(skip_serializing_if = "Option::is_none")]
    cpu: Option<u32>,
    depth: usize,
    start_ns: u64,
    end_ns: Option<u64>,
    name: String,
    #[serde(skip_serializing_if = "String::is_empty")]
    note: String,
}

#[derive(Serialize)]
struct Place {
    from: usize,
    bytes: usize,
    delta: bool,
    zigzag: bool,
    /// Whether the lowest bytes of all numbers stand first, and then what is above them: of lengths the lowest
    /// bits are noise, which the others are not to be mixed with.
    split: bool,
}

/// The rows of a run and the frames of some stalls, in base64.
pub(super) fn encoded(run: &Drawn, frames: &[Frames], served: bool) -> String {
    base64::engine::general_purpose::STANDARD.encode(deflated(&plain(run, frames, served)))
}

fn deflated(plain: &[u8]) -> Vec<u8> {
    let mut encoder = DeflateEncoder::new(Vec::new(), Compression::best());
    // Writing to memory does not fail; should it, the page says that its data are damaged.
    let _ = encoder.write_all(plain);
    encoder.finish().unwrap_or_default()
}

#[derive(Default)]
struct Columns {
    bytes: Vec<u8>,
    places: BTreeMap<&'static str, Place>,
}

impl Columns {
    /// Numbers of which many are the same.
    fn few(&mut self, name: &'static str, values: impl Iterator<Item = u64>) {
        self.add(name, values, Form::default());
    }

    /// Values that lie near one another.
    fn near(&mut self, name: &'static str, values: impl Iterator<Item = u64>) {
        let mut last = 0u64;
        let deltas = values.map(|value| {
            let delta = zigzag(value.wrapping_sub(last));
            last = value;
            delta
        });
        self.add(name, deltas, Form { delta: true, zigzag: true, ..Form::default() });
    }

    /// Values that never fall.
    fn rising(&mut self, name: &'static str, values: impl Iterator<Item = u64>) {
        let mut last = 0u64;
        let deltas = values.map(|value| {
            let delta = value.saturating_sub(last);
            last = value;
            delta
        });
        self.add(name, deltas, Form { delta: true, split: true, ..Form::default() });
    }

    fn add(&mut self, name: &'static str, values: impl Iterator<Item = u64>, form: Form) {
        let Form { delta, zigzag, split } = form;
        let from = self.bytes.len();
        let mut values: Vec<u64> = values.collect();
        if split {
            self.bytes.extend(values.iter().map(|value| *value as u8));
            values.iter_mut().for_each(|value| *value >>= 8);
        }
        for mut value in values {
            while value >= 0x80 {
                self.bytes.push((value as u8) | 0x80);
                value >>= 7;
            }
            self.bytes.push(value as u8);
        }
        self.places.insert(name, Place { from, bytes: self.bytes.len() - from, delta, zigzag, split });
    }
}

/// How the numbers of a column stand in it.
#[derive(Clone, Copy, Default)]
struct Form {
    delta: bool,
    zigzag: bool,
    split: bool,
}

fn plain(run: &Drawn, frames: &[Frames], served: bool) -> Vec<u8> {
    let picture = &run.picture;
    let stalls = || picture.stalls.iter();
    let parts = || stalls().flat_map(|stall| &stall.parts);
    let mut columns = Columns::default();
    columns.rising("start", stalls().map(|stall| stall.start.0));
    columns.add("length", stalls().map(|stall| stall.length.0), Form { split: true, ..Form::default() });
    columns.near("id", stalls().map(|stall| stall.id.0));
    columns.few("lane", stalls().map(|stall| stall.lane as u64));
    columns.few("cpu", stalls().map(|stall| u64::from(stall.cpu.0)));
    columns.few("parts", stalls().map(|stall| stall.parts.len() as u64));
    columns.few("sort", parts().map(|part| part.sort as u64));
    columns.add("net", stalls().flat_map(nets), Form { zigzag: true, split: true, ..Form::default() });
    columns.few("around", parts().map(|part| part.gross.saturating_sub(part.net).0));
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
            stalls: picture.stalls_read,
            doubt: headline::unproven(&run.summary),
        },
        lanes: picture.lanes.iter().map(chart_words::lane).collect(),
        culprits: picture
            .culprits
            .iter()
            .map(|culprit| CulpritRow {
                name: chart_words::culprit(&culprit.subject, NAME),
                about: explain(&culprit.subject),
                explained: culprit.subject.kind().is_explained(),
                total_ns: culprit.total.0,
                stalls: culprit.count,
                max_ns: culprit.max.0,
            })
            .collect(),
        sorts: picture.sorts.iter().map(|sort| SortRow { culprit: sort.culprit, text: told(sort) }).collect(),
        curves: picture
            .curves
            .iter()
            .map(|curve| CurveRow {
                name: chart_words::curve(curve.of),
                measured: chart_words::measured(curve.of),
                points: curve.nines().into_iter().map(rounded).collect(),
                longest: rounded(curve.longest()),
            })
            .collect(),
        frames: frames.iter().map(frames_row).collect(),
        rows: picture.stalls.len(),
        parts: parts().count(),
        columns: columns.places,
    };
    // No map of it has keys that are not text, and no number is infinite: JSON can hold it.
    let head = serde_json::to_vec(&header).unwrap_or_default();
    let mut out = u32::try_from(head.len()).unwrap_or_default().to_le_bytes().to_vec();
    out.extend_from_slice(&head);
    out.extend_from_slice(&columns.bytes);
    out
}

/// As near as an eye can tell.
fn rounded((nines, ns): (f64, f64)) -> (f64, f64) {
    ((nines * 1e4).round() / 1e4, ns)
}

/// The parts' times, of the last only what its stall's length does not say already: nothing, where the parts
/// sum to it as they should.
fn nets(stall: &DrawnStall) -> impl Iterator<Item = u64> + '_ {
    let last = stall.parts.len().saturating_sub(1);
    let mut left = stall.length.0;
    stall.parts.iter().enumerate().map(move |(at, part)| {
        let expected = if at == last { left } else { 0 };
        left = left.saturating_sub(part.net.0);
        zigzag(part.net.0.wrapping_sub(expected))
    })
}

/// The sign in the lowest bit.
fn zigzag(difference: u64) -> u64 {
    let signed = difference as i64;
    ((signed << 1) ^ (signed >> 63)) as u64
}

/// What else is known of parts of a sort, beside whose they are.
fn told(sort: &PartSort) -> String {
    sort.part.as_ref().map_or_else(|| "one of many, which are not told apart".into(), told_of)
}

fn told_of(part: &Part) -> String {
    let mut told = Vec::new();
    told.extend(part.phase.as_ref().map(|phase| format!("phase {phase}")));
    told.extend(Some(words::detail(&part.culprit.subject, 1)).filter(|detail| !detail.is_empty()));
    if let Some(sender) = &part.culprit.sender {
        let via = sender.via.as_deref().map(|via| format!(" through {via}")).unwrap_or_default();
        let pid = if sender.involves_thread() { format!(" (pid {})", sender.tid) } else { String::new() };
        told.push(format!("triggered by {}{pid} on CPU {}{via}", sender.who(), sender.cpu));
    }
    told.extend(part.moved_from.map(|cpu| format!("the victim was moved from CPU {cpu}")));
    told.extend(part.others_stalled.map(|n| format!("{n} other CPUs stalled at the same instant")));
    told.push(format!(
        "{} the stall",
        match part.placement.as_str() {
            "inside" => "inside",
            "lead" => "at the beginning of",
            "hole" => "between the events of",
            "trail" => "at the end of",
            "whole" => "all of",
            _ => "somewhere in",
        }
    ));
    told.push(format!("{} confidence: {}", part.confidence.as_str(), part.evidence));
    crate::style::tame(&told.join("; "))
}

fn frames_row(frames: &Frames) -> FramesRow {
    FramesRow { stall: frames.stall.0, frames: frames.rows.iter().map(frame).collect() }
}

fn frame(row: &TimelineRow) -> FrameRow {
    let (name, note) = words::timeline_item(&row.item);
    FrameRow {
        cpu: row.cpu.map(|cpu| cpu.0),
        depth: row.depth,
        start_ns: row.start.0,
        end_ns: row.end.map(|end: Nanos| end.0),
        name,
        note,
    }
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
    about: String,
    explained: bool,
    text: String,
    net_ns: u64,
    around_ns: u64,
}

/// One stall with its parts and frames as JSON, for a page that is served and has not all of them.
#[must_use]
pub fn stall(of: &WorstStall, rows: &[TimelineRow]) -> String {
    let part = |part: &Part| {
        let subject = &part.culprit.subject;
        StallPart {
            name: crate::style::fit(&words::kind_and_name(subject), NAME),
            about: explain(subject),
            explained: subject.kind().is_explained(),
            text: told_of(part),
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
        frames: rows.iter().map(frame).collect(),
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
        columns.few("a", [0, 127, 128, u64::MAX].into_iter());
        columns.add("d", [0x1ff, 3, 0x10000].into_iter(), Form { split: true, ..Form::default() });
        columns.rising("b", [5, 5, 300].into_iter());
        columns.near("c", [10, 9, 11].into_iter());
        let of = |name| {
            let Place { from, bytes, .. } = columns.places[name];
            columns.bytes[from..from + bytes].to_vec()
        };
        assert_eq!(of("a"), [&[0, 127, 0x80, 1][..], &[0xff; 9], &[1]].concat());
        assert_eq!(of("b"), [5, 0, 0x27, 0, 0, 1]);
        assert_eq!(of("d"), [0xff, 3, 0, 1, 0, 0x80, 2]);
        assert_eq!(of("c"), [20, 1, 4]);
    }
}
