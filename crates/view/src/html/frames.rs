//! The frames of some stalls, as a page holds them: of the worst and of some of each culprit, up to a size limit.
//!
//! JSON, deflated, in base64. Texts are stored once, and frames refer to them by number. For each stall: its id, and
//! its frames one after another, seven numbers each: CPU (-1 for none), depth, start (since the previous frame's
//! start), length (-1 for an instant), name, note, and the number of the page's culprit (-1 for none).
//! `web/src/frames.ts` reads it.

use super::packing::packed;
use crate::words;
use jitterscope_analyze::picture::DrawnCulprit;
use jitterscope_model::{CulpritKey, KeyLevel, Nanos, StallId, Subject, TimelineItem, TimelineRow};
use serde::Serialize;
use std::collections::HashMap;
use std::hash::{DefaultHasher, Hash, Hasher};

/// The number of stalls whose frames are in a page of any size.
const ALWAYS: usize = 16;

/// The frames of one stall.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Frames {
    pub stall: StallId,
    pub rows: Vec<TimelineRow>,
}

/// One frame in words.
#[derive(Serialize)]
pub(super) struct FrameRow {
    #[serde(skip_serializing_if = "Option::is_none")]
    cpu: Option<u32>,
    depth: usize,
    start_ns: u64,
    end_ns: Option<u64>,
    name: String,
    #[serde(skip_serializing_if = "String::is_empty")]
    note: String,
    /// The key of its culprit in a served page.
    #[serde(skip_serializing_if = "Option::is_none")]
    key: Option<u64>,
}

/// The key that links frames to the culprit of their program: as many bits as a JavaScript number has.
pub(super) fn key_of(subject: &Subject) -> u64 {
    let mut hasher = DefaultHasher::new();
    CulpritKey::of(subject, KeyLevel::Program).hash(&mut hasher);
    hasher.finish() >> (u64::BITS - 53)
}

impl FrameRow {
    /// With the key of its culprit.
    pub(super) fn with_key(row: &TimelineRow) -> FrameRow {
        let key = match &row.item {
            TimelineItem::Frame { culprit, .. } => Some(key_of(&culprit.subject)),
            _ => None,
        };
        FrameRow {
            key,
            ..FrameRow::of(row)
        }
    }

    pub(super) fn of(row: &TimelineRow) -> FrameRow {
        let (name, note) = words::timeline_item(&row.item);
        FrameRow {
            cpu: row.cpu.map(|cpu| cpu.0),
            depth: row.depth,
            start_ns: row.start.0,
            end_ns: row.end.map(|end: Nanos| end.0),
            name,
            note,
            key: None,
        }
    }
}

#[derive(Default, Serialize)]
struct Whole {
    texts: Vec<String>,
    stalls: Vec<(u64, Vec<i64>)>,
}

/// The frames of the first of these stalls, as many as fit into `room` bytes, in base64; and the number of those
/// stalls.
pub(super) fn encoded(
    frames: &[Frames],
    culprits: &[DrawnCulprit],
    room: usize,
) -> (String, usize) {
    let of = |n: usize| packed(&plain(&frames[..n], culprits));
    let all = of(frames.len());
    let least = frames.len().min(ALWAYS);
    if all.len() <= room || frames.len() == least {
        return (all, frames.len());
    }
    let (mut fits, mut too_many) = (least, frames.len());
    while too_many - fits > 1 {
        let middle = fits.midpoint(too_many);
        match of(middle).len() <= room {
            true => fits = middle,
            false => too_many = middle,
        }
    }
    (of(fits), fits)
}

fn plain(frames: &[Frames], culprits: &[DrawnCulprit]) -> Vec<u8> {
    // A frame has a thread's name, the culprit is a program: the key by program matches both.
    let key = |subject: &Subject| CulpritKey::of(subject, KeyLevel::Program);
    let numbers = culprits
        .iter()
        .enumerate()
        .map(|(at, culprit)| (key(&culprit.subject), at as i64));
    let numbers: HashMap<CulpritKey, i64> = numbers.collect();
    let number = |item: &TimelineItem| match item {
        TimelineItem::Frame { culprit, .. } => {
            numbers.get(&key(&culprit.subject)).copied().unwrap_or(-1)
        }
        _ => -1,
    };
    let mut whole = Whole::default();
    let mut known = HashMap::new();
    for of in frames {
        let mut numbers = Vec::with_capacity(of.rows.len() * 7);
        let mut last = 0i64;
        for of in &of.rows {
            let row = FrameRow::of(of);
            let start = row.start_ns as i64;
            numbers.push(row.cpu.map_or(-1, i64::from));
            numbers.push(row.depth as i64);
            numbers.push(start - last);
            numbers.push(
                row.end_ns
                    .map_or(-1, |end| end.saturating_sub(row.start_ns) as i64),
            );
            for text in [row.name, row.note] {
                let at = *known.entry(text).or_insert_with_key(|text| {
                    whole.texts.push(text.clone());
                    whole.texts.len() - 1
                });
                numbers.push(at as i64);
            }
            numbers.push(number(&of.item));
            last = start;
        }
        whole.stalls.push((of.stall.0, numbers));
    }
    // Serialising cannot fail.
    serde_json::to_vec(&whole).unwrap_or_default()
}

#[cfg(test)]
mod tests {
    use super::*;
    use jitterscope_model::{CpuId, CulpritKind, Task};

    fn row(start: u64, end: Option<u64>) -> TimelineRow {
        let item = TimelineItem::TlbFlush { pages: None };
        TimelineRow {
            cpu: Some(CpuId(3)),
            depth: 1,
            start: Nanos(start),
            end: end.map(Nanos),
            item,
        }
    }

    #[test]
    fn frames_are_numbers_and_texts_stand_once() {
        let frames = [Frames {
            stall: StallId(7),
            rows: vec![row(100, Some(250)), row(90, None)],
        }];
        let text = String::from_utf8(plain(&frames, &[])).unwrap();
        let wanted = r#"{"texts":["TLB flush","all pages"],"stalls":[[7,[3,1,100,150,0,1,-1,3,1,-10,-1,0,1,-1]]]}"#;
        assert_eq!(text, wanted);
    }

    #[test]
    fn as_many_as_have_room_and_the_worst_always() {
        let mut random = jitterscope_testing::SplitMix64(1);
        let mut rows = || {
            (0..50)
                .map(|_| row(random.below(1 << 30), Some(1 << 31)))
                .collect()
        };
        let frames: Vec<Frames> = (0..100)
            .map(|id| Frames {
                stall: StallId(id),
                rows: rows(),
            })
            .collect();
        let (all, n) = encoded(&frames, &[], usize::MAX);
        assert_eq!(n, 100);
        let (half, n) = encoded(&frames, &[], all.len() / 2);
        assert!((45..55).contains(&n) && half.len() <= all.len() / 2, "{n}");
        assert_eq!(encoded(&frames, &[], 10).1, ALWAYS);
        assert_eq!(encoded(&frames[..3], &[], 10).1, 3);
    }

    #[test]
    fn a_frame_of_a_thread_is_its_programs() {
        let task = |comm: &str| Task {
            tid: Some(8),
            tgid: Some(7),
            comm: comm.into(),
            process: Some("cc1".into()),
            ..Task::default()
        };
        let item = TimelineItem::Frame {
            culprit: Subject::Thread(task("worker")).into(),
            ended: true,
            named_inside: false,
        };
        let frames = [Frames {
            stall: StallId(7),
            rows: vec![TimelineRow {
                item,
                ..row(1, Some(2))
            }],
        }];
        let drawn = |subject: Subject| DrawnCulprit {
            subject,
            threads: 1,
            count: 1,
            total: Nanos(1),
            max: Nanos(1),
        };
        let program = Subject::Thread(Task {
            comm: "cc1".into(),
            ..Task::default()
        });
        let culprits = [drawn(Subject::Others(CulpritKind::Thread)), drawn(program)];
        let text = String::from_utf8(plain(&frames, &culprits)).unwrap();
        assert!(text.ends_with("[[7,[3,1,1,1,0,1,1]]]}"), "{text}");
        // A requested frame has the same key.
        let asked = FrameRow::with_key(&frames[0].rows[0]).key;
        assert_eq!(asked, Some(key_of(&culprits[1].subject)));
        assert_ne!(asked, Some(key_of(&culprits[0].subject)));
        assert!(asked.is_some_and(|key| key < 1 << 53));
    }
}
