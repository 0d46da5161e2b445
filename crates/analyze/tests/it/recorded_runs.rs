//! Recorded runs of every kind, end to end: their summary, picture, comparison and conditions.
//!
//! The expected results are in `tests/recorded/`, one file for each kind. After an intended change, the test rewrites
//! them: `JITTERSCOPE_WRITE_RECORDED=1 cargo test -p jitterscope-analyze --test recorded_runs`; review the diff.

use jitterscope_analyze::compare::{
    ComparedRun, ComparedRunBuilder, Design, DiffRules, Side, diff,
};
use jitterscope_analyze::gate::{evaluate, evaluate_changes, parse};
use jitterscope_analyze::periods::Effort;
use jitterscope_analyze::picture::PictureBuilder;
use jitterscope_analyze::{
    Redactor, RowSummer, RowSums, RowsOf, RunLine, RunSummary, SummaryBuilder, timer_frequency,
};
use jitterscope_model::*;
use jitterscope_store::RunReader;
use serde_json::{Value, json};
use std::fs;
use std::path::{Path, PathBuf};

/// Longer lists are compared by their length, both ends and a digest.
const LONGEST: usize = 8;
/// The relative tolerance of floating point between machines: the last digits of a Fourier transform differ.
const SAME: f64 = 1e-6;

const CONDITIONS: &str = "wait.p50>1us,wait.p99>1us,wait.p99.999>1us,stall.p50>1us,stall.p99>1us,late.p50>1us,\
    late.p99>1us,message.p50>1us,message.p99>1us,max>1us,stolen>0.1%,lost>0.1%,stalls>1/s,unexplained>1%,\
    unresolved>1%,hypervisor>1%,firmware>1%,coverage<99%,culprit(*)>1%,culprit(kworker)>1%,culprit(thread)>1%,\
    culprit(nobody-of-this-name)>1%";

struct Run {
    manifest: RunManifest,
    machine: Option<MachineState>,
    stalls: Vec<Stall>,
    attributions: Vec<Attribution>,
    intervals: Vec<IntervalRow>,
}

fn recorded(kind: &str) -> Run {
    let path = Path::new(env!("CARGO_MANIFEST_DIR"))
        .join("../recording/tests/fixtures")
        .join(kind);
    let run = RunReader::open(&path).unwrap();
    Run {
        manifest: run.manifest().clone(),
        machine: run.machine().unwrap(),
        stalls: run.stalls().unwrap().map(Result::unwrap).collect(),
        attributions: run.attributions().unwrap().map(Result::unwrap).collect(),
        intervals: run.intervals().unwrap().map(Result::unwrap).collect(),
    }
}

impl Run {
    fn pairs(&self) -> impl Iterator<Item = (&Stall, &Attribution)> {
        self.stalls
            .iter()
            .zip(&self.attributions)
            .inspect(|(stall, of)| assert_eq!(stall.id, of.stall))
    }

    fn builder(
        &self,
        set: impl FnOnce(SummaryBuilder<'_>) -> SummaryBuilder<'_>,
    ) -> SummaryBuilder<'_> {
        let mut builder = set(SummaryBuilder::new(&self.manifest).machine(self.machine.clone()));
        self.pairs().for_each(|(stall, of)| {
            builder.stall(stall);
            builder.attribution(of);
        });
        self.intervals.iter().for_each(|row| builder.interval(row));
        builder
    }

    fn summary(&self, set: impl FnOnce(SummaryBuilder<'_>) -> SummaryBuilder<'_>) -> RunSummary {
        self.builder(set).finish()
    }

    fn compared(&self) -> ComparedRun {
        let mut builder = ComparedRunBuilder::new(
            &self.manifest,
            self.machine.clone(),
            Path::new(&self.manifest.id),
        );
        self.pairs()
            .for_each(|(stall, of)| builder.stall(stall, of));
        self.intervals.iter().for_each(|row| builder.interval(row));
        builder.finish()
    }

    /// A second run of the same setting: more is stolen, and every `without`-th stall is missing.
    fn again(&self, number: u64, scale: (u64, u64), without: usize) -> Run {
        let mut manifest = self.manifest.clone();
        manifest.id = format!("{}-{number}", manifest.id);
        manifest.clock_start.realtime_ns += number * 1_000_000_000_000;
        for result in &mut manifest.results {
            result.stalled_ticks = (result.stalled_ticks + number * 1_000) * scale.0 / scale.1;
        }
        for thread in &mut manifest.threads {
            thread.waiting_ns = Nanos((thread.waiting_ns.0 + number * 1_000) * scale.0 / scale.1);
        }
        let stays = |at: usize| without == 0 || !at.is_multiple_of(without);
        let kept = |at: &usize| stays(*at);
        Run {
            manifest,
            machine: self.machine.clone(),
            stalls: (0..self.stalls.len())
                .filter(kept)
                .map(|at| self.stalls[at])
                .collect(),
            attributions: (0..self.stalls.len())
                .filter(kept)
                .map(|at| self.attributions[at].clone())
                .collect(),
            intervals: self.intervals.clone(),
        }
    }

    fn side(&self, name: &str, runs: u64, scale: (u64, u64), without: usize) -> Side {
        let all = (0..runs).map(|n| self.again(scale.0 * 100 + n, scale, without).compared());
        Side::pool(name, all.collect()).unwrap()
    }
}

fn text(value: &impl std::fmt::Debug) -> Value {
    format!("{value:?}").into()
}

fn comparisons(run: &Run) -> Value {
    let changes = parse("worse(total),worse(any),worse(culprit *)").unwrap();
    let mut all = Vec::new();
    for (runs, design) in [
        (1, Design::Unpaired),
        (4, Design::Unpaired),
        (6, Design::Paired),
    ] {
        let sides = [
            run.side("before", runs, (1, 1), 0),
            run.side("after", runs, (3, 2), 3),
        ];
        let rules = DiffRules {
            design: Some(design),
            ..DiffRules::default()
        };
        let answers = |knob: &str, subject: &Subject| {
            knob == "a knob" && subject.kind() == CulpritKind::Timer
        };
        let reported = diff(&sides, rules, &["a knob".into()], &answers);
        let against = &reported.against[0];
        let culprits = against.culprits.iter().flatten();
        all.push(json!({
            "diff": reported,
            "primary": text(&against.primary().iter().map(|(name, of)| (name, of.verdict)).collect::<Vec<_>>()),
            "verdicts": text(&culprits.map(|row| (row.title(), row.verdict)).collect::<Vec<_>>()),
            "shown": text(&against.shown_conditions().collect::<Vec<_>>()),
            "gates": text(&evaluate_changes(&changes, against)),
        }));
    }
    all.into()
}

fn picture(run: &Run, most: usize) -> Value {
    let mut builder = PictureBuilder::new(&run.manifest, run.stalls.len() as u64, most);
    run.pairs().for_each(|(stall, of)| {
        builder.stall(stall);
        builder.attribution(of);
    });
    let picture = builder.finish();
    json!({
        "facts": text(&(picture.began_realtime_ns, picture.duration, picture.measured, picture.stalls_read)),
        "stalls": picture.stalls.iter().map(text).collect::<Vec<_>>(),
        "largest": picture.stalls.iter().map(|stall| text(&stall.largest())).collect::<Vec<_>>(),
        "lanes": picture.lanes.iter().map(text).collect::<Vec<_>>(),
        "culprits": picture.culprits.iter().map(text).collect::<Vec<_>>(),
        "sorts": picture.sorts.iter().map(text).collect::<Vec<_>>(),
        "curves": picture.curves.iter().map(text).collect::<Vec<_>>(),
        "offsets": text(&picture.offsets),
    })
}

fn all(kind: &str) -> Value {
    let run = recorded(kind);
    let brief = run.summary(|builder| builder.periods(Effort::BRIEF));
    let threads = run.summary(|builder| builder.level(KeyLevel::Thread).worst(3).max_culprits(4));
    let gates = evaluate(&parse(CONDITIONS).unwrap(), &brief);
    let stored = {
        let mut summer = RowSummer::stored(RowsOf::run(&run.manifest));
        run.pairs().for_each(|(stall, of)| {
            summer.stall(stall);
            summer.attribution(of);
        });
        summer.finish(
            &run.manifest,
            run.machine.as_ref().and_then(timer_frequency),
        )
    };
    // Sums of streamed rows equal those of the stored rows; only the blame of a pipeline needs the end.
    let sums = run.builder(|builder| builder.stored()).into_sums();
    let in_words: RowSums = serde_json::from_value(serde_json::to_value(&sums).unwrap()).unwrap();
    assert_eq!(in_words, sums, "{kind}");
    assert!(stored.is_current() && sums.is_current());
    assert_eq!(stored == sums, kind != "pipeline");
    let mut totals = CulpritTotalsBuilder::default();
    let control = run.manifest.idle_control();
    run.pairs()
        .filter(|(stall, _)| Some(stall.cpu) != control)
        .for_each(|(_, of)| totals.add(of));
    assert_eq!(sums.clone().into_totals(), totals.finish(), "{kind}");
    let known = SummaryBuilder::new(&run.manifest)
        .machine(run.machine.clone())
        .known(in_words);
    let mut again = serde_json::to_value(known.finish()).unwrap();
    let mut direct = serde_json::to_value(&brief).unwrap();
    for summary in [&mut again, &mut direct] {
        summary
            .as_object_mut()
            .unwrap()
            .retain(|key, _| key != "history");
    }
    assert_eq!(again, direct, "{kind}");
    let mut redactor = Redactor::new();
    let mut reported = json!({
        "summary": brief,
        "threads": threads,
        "line": text(&RunLine::new(&RunHead::of(&run.manifest))),
        "gates": gates.iter().map(text).collect::<Vec<_>>(),
        "comparisons": comparisons(&run),
        "picture": picture(&run, 1_000_000),
        "sample": picture(&run, 40),
        "redacted": redactor.manifest(&run.manifest),
        "redacted_rows": run.pairs().take(200).map(|(stall, of)| {
            text(&(redactor.stall(stall), redactor.attribution(of)))
        }).collect::<Vec<_>>(),
    });
    without_phrases(&mut reported);
    shorten(&mut reported);
    reported
}

/// Numbers rounded to six digits.
fn rounded(value: &Value) -> String {
    match value {
        Value::Number(number) if number.is_f64() => format!("{:.5e}", number.as_f64().unwrap()),
        Value::Array(all) => all.iter().map(rounded).collect::<Vec<_>>().join(","),
        Value::Object(all) => all
            .iter()
            .map(|(key, of)| format!("{key}:{}", rounded(of)))
            .collect(),
        other => other.to_string(),
    }
}

/// FNV-1a.
fn digest(text: &str) -> String {
    let step = |hash: u64, byte| (hash ^ u64::from(byte)).wrapping_mul(0x100_0000_01b3);
    format!("{:016x}", text.bytes().fold(0xcbf2_9ce4_8422_2325, step))
}

/// Other tests cover the phrases.
fn without_phrases(value: &mut Value) {
    match value {
        Value::Array(all) => all.iter_mut().for_each(without_phrases),
        Value::Object(all) => {
            all.remove("explanation");
            all.values_mut().for_each(without_phrases);
        }
        _ => {}
    }
}

fn shorten(value: &mut Value) {
    match value {
        Value::Array(all) if all.len() > LONGEST => {
            let said = digest(&all.iter().map(rounded).collect::<String>());
            *value = json!({"length": all.len(), "first": all[0], "last": all[all.len() - 1], "digest": said});
        }
        Value::Array(all) => all.iter_mut().for_each(shorten),
        Value::Object(all) => {
            all.values_mut().for_each(shorten);
        }
        Value::String(text) if text.len() > 800 => {
            *value = json!({"length": text.len(), "digest": digest(text)});
        }
        _ => {}
    }
}

/// The first difference of two values.
fn difference(at: String, found: &Value, kept: &Value) -> Option<String> {
    let both = |key: &String| {
        (
            found.get(key).unwrap_or(&Value::Null),
            kept.get(key).unwrap_or(&Value::Null),
        )
    };
    match (found, kept) {
        (Value::Object(a), Value::Object(b)) => a.keys().chain(b.keys()).find_map(|key| {
            let (a, b) = both(key);
            difference(format!("{at}/{key}"), a, b)
        }),
        (Value::Array(a), Value::Array(b)) if a.len() == b.len() => {
            (0..a.len()).find_map(|n| difference(format!("{at}/{n}"), &a[n], &b[n]))
        }
        (Value::Number(a), Value::Number(b)) if a.is_f64() || b.is_f64() => {
            let (x, y) = (a.as_f64().unwrap(), b.as_f64().unwrap());
            ((x - y).abs() > SAME * x.abs().max(y.abs())).then(|| format!("{at}: {x}, kept is {y}"))
        }
        _ => (found != kept).then(|| format!("{at}: {found}, kept is {kept}")),
    }
}

fn check(kind: &str) {
    let path: PathBuf = Path::new(env!("CARGO_MANIFEST_DIR"))
        .join("tests/recorded")
        .join(format!("{kind}.json"));
    let found = all(kind);
    if std::env::var_os("JITTERSCOPE_WRITE_RECORDED").is_some() {
        let mut text = serde_json::to_string_pretty(&found).unwrap();
        text.push('\n');
        fs::write(&path, text).unwrap();
    }
    let kept: Value = serde_json::from_slice(&fs::read(&path).unwrap()).unwrap();
    // As it reads back from JSON.
    let found: Value = serde_json::from_str(&found.to_string()).unwrap();
    if let Some(difference) = difference(String::new(), &found, &kept) {
        panic!("{kind}: {difference}");
    }
}

#[test]
fn a_spinning_probe() {
    check("spin");
}

#[test]
fn a_wakeup_probe() {
    check("wakeup");
}

#[test]
fn a_pipeline() {
    check("pipeline");
}

#[test]
fn watched_cpus() {
    check("passive");
}

#[test]
fn followed_threads() {
    check("attach");
}
