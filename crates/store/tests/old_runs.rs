//! Runs that were recorded by earlier versions stay readable: one of each kind, as its recorder wrote it
//! (host name, kernel command line and program path apart, which are made up).
//!
//! `format-1` was recorded before runs kept what their recorder did beside reading pages. The facts below
//! are those that the recorder's own report stated.

use jitterscope_model::{Attribution, CulpritKind, IntervalRow, Nanos, Stall, Subject, Ticks};
use jitterscope_store::{RunReader, StoredHistogram, TraceRole, culprit_of_version_1};
use std::collections::BTreeMap;
use std::path::Path;

struct Facts {
    folder: &'static str,
    id: &'static str,
    probe: &'static str,
    /// Number of stalls, and the sum of their lengths in nanoseconds.
    stalls: (u64, u64),
    /// The culprit that took most: kind, name, detail, nanoseconds.
    top: (CulpritKind, &'static str, &'static str, u64),
    intervals: usize,
    /// Pages of the measured CPUs' buffers and of the senders'.
    pages: (usize, usize),
    threads: usize,
}

const FACTS: [Facts; 4] = [
    Facts {
        folder: "format-1/spin",
        id: "8a62mf",
        probe: "spin",
        stalls: (1002, 224_862_152),
        top: (CulpritKind::Thread, "opt cgu.08", "pid 21158", 210_041_120),
        intervals: 4,
        pages: (22, 14),
        threads: 0,
    },
    Facts {
        folder: "format-1/wakeup",
        id: "9po92u",
        probe: "wakeup",
        stalls: (96, 3_295_472),
        top: (CulpritKind::Timer, "local_timer", "", 1_102_379),
        intervals: 2,
        pages: (49, 9),
        threads: 0,
    },
    Facts {
        folder: "format-1/attach",
        id: "oz2bq0",
        probe: "attach",
        stalls: (10, 7_676_322),
        top: (CulpritKind::Thread, "rustc", "pid 21238", 3_968_087),
        intervals: 1,
        pages: (73, 5),
        threads: 1,
    },
    Facts {
        folder: "format-1/pipeline",
        id: "8kjt0h",
        probe: "pipeline",
        stalls: (60, 893_011_232),
        top: (CulpritKind::Thread, "opt cgu.15", "pid 21461", 187_513_764),
        intervals: 1,
        pages: (48, 6),
        threads: 2,
    },
];

fn open(folder: &str) -> RunReader {
    let path = Path::new(env!("CARGO_MANIFEST_DIR"))
        .join("tests/fixtures")
        .join(folder);
    RunReader::open(&path).unwrap()
}

#[test]
fn every_kind_of_run_reads_as_its_recorder_told_it() {
    for facts in FACTS {
        let run = open(facts.folder);
        let manifest = run.manifest();
        let at = facts.folder;
        assert_eq!(
            (manifest.schema_version, &*manifest.id),
            (1, facts.id),
            "{at}"
        );
        assert_eq!(
            (&*manifest.probe.kind, manifest.attributed),
            (facts.probe, true),
            "{at}"
        );
        assert_eq!(manifest.threads.len(), facts.threads, "{at}");
        assert_eq!(manifest.rate.hz, 2_596_136_000, "{at}");
        assert!(
            manifest.trace.complete && !manifest.sources.is_empty(),
            "{at}"
        );

        let stalls: Vec<Stall> = run.stalls().unwrap().map(Result::unwrap).collect();
        let attributions: Vec<Attribution> =
            run.attributions().unwrap().map(Result::unwrap).collect();
        assert_eq!(
            (stalls.len() as u64, attributions.len()),
            (facts.stalls.0, stalls.len()),
            "{at}"
        );
        let mut culprits: BTreeMap<Subject, Nanos> = BTreeMap::new();
        let mut stalled = Nanos::ZERO;
        for (stall, attribution) in stalls.iter().zip(&attributions) {
            let length = manifest.rate.nanos(stall.length());
            assert_eq!(
                (attribution.stall, attribution.total()),
                (stall.id, length),
                "{at}"
            );
            stalled += length;
            for part in &attribution.parts {
                *culprits.entry(part.culprit.subject.clone()).or_default() += part.net;
            }
        }
        assert_eq!(stalled, Nanos(facts.stalls.1), "{at}");
        let top = culprits.iter().max_by_key(|(_, net)| **net).unwrap();
        let (kind, name, detail, net) = facts.top;
        let expected = culprit_of_version_1(kind.as_str(), name, detail);
        assert!(!matches!(expected, Subject::Unknown { .. }), "{at}");
        assert_eq!(top, (&expected, &Nanos(net)), "{at}");
        let unknown = culprits
            .keys()
            .find(|culprit| matches!(culprit, Subject::Unknown { .. }));
        assert_eq!(
            unknown, None,
            "{at}: all that version 1 wrote is understood"
        );

        let intervals: Vec<IntervalRow> = run.intervals().unwrap().map(Result::unwrap).collect();
        let histograms: Vec<StoredHistogram> = run
            .interval_histograms()
            .unwrap()
            .map(Result::unwrap)
            .collect();
        assert_eq!(intervals.len(), facts.intervals, "{at}");
        for (row, histogram) in intervals.iter().zip(&histograms) {
            assert_eq!(histogram.histogram.len(), row.count, "{at}");
        }
        let counted: u64 = intervals.iter().map(|row| row.count).sum();
        assert_eq!(counted, facts.stalls.0, "{at}");

        let context: serde_json::Value = run.trace_context().unwrap().unwrap();
        assert!(context["formats"].as_array().unwrap().len() > 20, "{at}");
        let pages = run.trace_pages(Ticks(0), Ticks(u64::MAX)).unwrap();
        let of = |role| pages.iter().filter(|page| page.role == role).count();
        assert_eq!(
            (of(TraceRole::Local), of(TraceRole::Senders)),
            facts.pages,
            "{at}"
        );
        assert!(
            pages
                .iter()
                .all(|page| page.first <= page.last && !page.bytes.is_empty()),
            "{at}"
        );
    }
}
