//! Imports of files. A stored run that is exported and imported again has the same verdicts.

use jitterscope_export::{Destination, export_run};
use jitterscope_model::{Attribution, CpuId, SourceProblem, Stall, Ticks, Warning};
use jitterscope_recording::{
    ImportError, ImportSettings, Owners, Victim, import, replay, stall_timelines,
};
use jitterscope_store::RunReader;
use std::collections::BTreeMap;
use std::fs;
use std::path::{Path, PathBuf};
use std::sync::atomic::AtomicBool;

pub fn fixture(kind: &str) -> RunReader {
    let folder = Path::new(env!("CARGO_MANIFEST_DIR")).join("tests/fixtures");
    RunReader::open(&folder.join(kind)).unwrap()
}

/// The run's trace as a `trace.dat`.
fn exported(run: &RunReader, dir: &Path) -> PathBuf {
    exported_to("tracedat", run, dir)
}

/// The run's trace in another tool's form.
pub fn exported_to(form: &str, run: &RunReader, dir: &Path) -> PathBuf {
    let file = dir.join(format!("{}.{form}", run.manifest().id));
    let target: Destination = format!("{form}://{}", file.display()).parse().unwrap();
    export_run(run, &[target]).unwrap();
    file
}

pub fn settings(file: &Path, dir: &Path, victim: Option<Victim>) -> ImportSettings {
    ImportSettings {
        file: file.to_owned(),
        victim,
        buffer: None,
        tsc_hz: None,
        virtual_machine: true,
        children: false,
        threshold: None,
        trace_limit_bytes: 256 << 20,
        label: "AGAIN".into(),
        runs_dir: dir.join("runs"),
        command_line: vec!["test".into()],
    }
}

fn imported(settings: &ImportSettings) -> Result<RunReader, ImportError> {
    let run = import(settings, &AtomicBool::new(false), &mut ())?;
    Ok(RunReader::open(&run.path).unwrap())
}

/// Nothing of a run is there, under its name or another.
pub fn is_clean(dir: &Path) -> bool {
    fs::read_dir(dir.join("runs")).map_or(true, |entries| entries.count() == 0)
}

/// The parts of a stall: culprit and nanoseconds.
pub type Parts = Vec<(String, u64)>;

/// The stalls of a run by their place: CPU, thread, start and end.
pub type Verdicts = BTreeMap<(u32, i32, u64, u64), Parts>;

/// The stalls of a run that lie between two times and do not touch them.
pub fn verdicts(run: &RunReader, (from, until): (u64, u64)) -> Verdicts {
    let mut found = Verdicts::new();
    let mut take = |stall: &Stall, attribution: Option<Attribution>| {
        let parts = attribution.into_iter().flat_map(|own| own.parts);
        let parts = parts.map(|part| {
            let subject = &part.culprit.subject;
            let name = subject.name();
            // A function without a symbol: each format has another word for it, or shows its address.
            let name = match &*name {
                name if name.starts_with("0x") || name.starts_with("unnamed") => "unnamed",
                name => name,
            };
            (format!("{:?} {name}", subject.kind()), part.net.0)
        });
        let place = (stall.cpu.0, stall.victim.tid, stall.start.0, stall.end.0);
        if from < stall.start.0 && stall.end.0 < until {
            found.insert(place, parts.collect());
        }
    };
    replay(run, &mut take).unwrap();
    found
}

/// All of a run.
const ALL: (u64, u64) = (0, u64::MAX);

/// The measured time of a run.
fn span(run: &RunReader) -> (u64, u64) {
    let (from, until) = run.manifest().span().unwrap();
    (from.0, until.0)
}

/// How many stalls of `expected` are found again, and how many of them with the same culprits for the same time.
fn alike(expected: &Verdicts, found: &Verdicts) -> (usize, usize) {
    let there = expected
        .iter()
        .filter_map(|(place, parts)| Some((parts, found.get(place)?)));
    let same = |(a, b): &(&Parts, &Parts)| {
        a.len() == b.len()
            && a.iter()
                .zip(b.iter())
                .all(|((who, ns), (other, of))| who == other && ns.abs_diff(*of) <= 2)
    };
    let there: Vec<_> = there.collect();
    (there.len(), there.iter().filter(|pair| same(pair)).count())
}

#[test]
fn watched_cpus_have_the_same_verdicts_after_an_export_and_an_import() {
    let dir = tempfile::tempdir().unwrap();
    let run = fixture("passive");
    let file = exported(&run, dir.path());
    let manifest = run.manifest();
    let victim = Victim::Cpus {
        cpus: manifest.probe.cpus.clone(),
        owners: Owners::Process(manifest.passive[0].threads[0].tid),
    };
    let mut settings = settings(&file, dir.path(), Some(victim));
    settings.threshold = Some(manifest.probe.threshold_ns);
    let again = imported(&settings).unwrap();
    assert!(again.manifest().imported.is_some());
    // The file also has the records before and after the measurement, which cut the stalls at its ends.
    let within = span(&run);
    let (expected, found) = (verdicts(&run, within), verdicts(&again, within));
    let (there, same) = alike(&expected, &found);
    assert!(expected.len() >= 7, "{expected:?}");
    assert_eq!(
        (found.len(), there, same),
        (expected.len(), expected.len(), expected.len())
    );
    // Once more, with all of them.
    let file = exported(&again, dir.path());
    settings.file = file;
    let once_more = imported(&settings).unwrap();
    let (expected, found) = (verdicts(&again, ALL), verdicts(&once_more, ALL));
    let (_, same) = alike(&expected, &found);
    assert!(expected.len() > 50);
    assert_eq!((found.len(), same), (expected.len(), expected.len()));
}

#[test]
fn followed_threads_have_the_same_verdicts_after_an_export_and_an_import() {
    let dir = tempfile::tempdir().unwrap();
    let run = fixture("attach");
    let file = exported(&run, dir.path());
    let manifest = run.manifest();
    let most = manifest
        .threads
        .iter()
        .max_by_key(|of| of.waiting_ns + of.running_ns)
        .unwrap();
    let mut settings = settings(&file, dir.path(), Some(Victim::Process(most.tid)));
    settings.threshold = Some(manifest.probe.threshold_ns);
    let again = imported(&settings).unwrap();
    let within = span(&run);
    let of_thread = |mut verdicts: Verdicts| {
        verdicts.retain(|(_, tid, ..), _| *tid == most.tid);
        verdicts
    };
    let expected = of_thread(verdicts(&run, within));
    let found = of_thread(verdicts(&again, within));
    let (there, same) = alike(&expected, &found);
    assert!(expected.len() >= 4, "{expected:?}");
    assert_eq!(
        (found.len(), there, same),
        (expected.len(), expected.len(), expected.len())
    );
}

/// A fixture as a `trace.dat` and in another form, both imported for the same victim.
fn imported_twice(dir: &Path, kind: &str, form: &str) -> [RunReader; 3] {
    let run = fixture(kind);
    let dat = exported(&run, dir);
    let other = exported_to(form, &run, dir);
    let manifest = run.manifest();
    let victim = match manifest.passive.first() {
        Some(cpu) => Victim::Cpus {
            cpus: manifest.probe.cpus.clone(),
            owners: Owners::Process(cpu.threads[0].tid),
        },
        None => {
            let of = |of: &&jitterscope_model::ThreadAccount| of.waiting_ns + of.running_ns;
            Victim::Process(manifest.threads.iter().max_by_key(of).unwrap().tid)
        }
    };
    let mut of_dat = settings(&dat, dir, Some(victim));
    of_dat.threshold = Some(manifest.probe.threshold_ns);
    let of_other = ImportSettings {
        file: other,
        ..of_dat.clone()
    };
    let found = [imported(&of_dat).unwrap(), imported(&of_other).unwrap()];
    let from = found[1].manifest().imported.clone().unwrap();
    assert!(from.states_date);
    // The measurement began then, and the file states the time of day.
    let start = found[1].manifest().clock_start;
    if form == "ctf" {
        let begun = start.realtime_of(manifest.clock_start.ticks, found[1].manifest().rate);
        assert!(begun.abs_diff(manifest.clock_start.realtime_ns) < 10_000);
    }
    let [dat, other] = found;
    [run, dat, other]
}

#[test]
fn a_ctf_trace_has_the_same_verdicts_as_a_trace_dat() {
    let dir = tempfile::tempdir().unwrap();
    for kind in ["passive", "attach"] {
        let [_, expected, found] = imported_twice(dir.path(), kind, "ctf");
        assert_eq!(
            found.manifest().imported.clone().unwrap().format,
            "CTF trace"
        );
        let (expected, found) = (verdicts(&expected, ALL), verdicts(&found, ALL));
        let (there, same) = alike(&expected, &found);
        assert!(expected.len() >= 4, "{expected:?}");
        for (key, verdict) in &expected {
            if found.get(key) != Some(verdict) {
                eprintln!("{kind} {key:?}:\n  {verdict:?}\n  {:?}", found.get(key));
            }
        }
        assert_eq!(
            (found.len(), there, same),
            (expected.len(), expected.len(), expected.len()),
            "{kind}"
        );
    }
}

/// A stall: start and length, nanoseconds, CPU, thread, and its parts.
type InTime = (u64, u64, u32, i32, Parts);

/// The stalls of a run in order of time, from the first one on.
fn in_time(run: &RunReader) -> Vec<InTime> {
    let rate = run.manifest().rate;
    let mut found: Vec<InTime> = verdicts(run, ALL)
        .into_iter()
        .map(|((cpu, tid, start, end), parts)| {
            let [start, end] = [start, end].map(|at| rate.nanos(Ticks(at)).0);
            (start, end - start, cpu, tid, parts)
        })
        .collect();
    found.sort();
    let first = found[0].0;
    found.iter_mut().for_each(|stall| stall.0 -= first);
    found
}

/// The kinds of culprits that Perfetto has no message for, or none for their name: calls from other CPUs, page faults,
/// NMIs. Their time is that of the interrupt or the thread around them.
const NOT_IN_PERFETTO: [&str; 3] = ["Ipi", "PageFault", "Nmi"];
/// How far the two forms of a time differ: nanoseconds of one clock instead of ticks of another.
const ROUNDED: u64 = 4;

fn is_near((name, ns): &(String, u64), (other, of): &(String, u64)) -> bool {
    name == other && ns.abs_diff(*of) <= ROUNDED
}

/// Every other culprit has its time, and beyond it at most that of the missing ones.
fn only_what_is_missing_differs(expected: &Parts, found: &Parts) {
    let is_missing = |name: &str| NOT_IN_PERFETTO.iter().any(|of| name.starts_with(of));
    let sums = |parts: &Parts| {
        let mut sums = BTreeMap::<String, u64>::new();
        for (name, ns) in parts {
            *sums.entry(name.clone()).or_default() += ns;
        }
        sums
    };
    let rounded = ROUNDED * (expected.len() + found.len()) as u64;
    let (expected, found) = (sums(expected), sums(found));
    let (missing, others): (Vec<_>, Vec<_>) =
        expected.iter().partition(|(name, _)| is_missing(name));
    assert!(!missing.is_empty(), "{expected:?} {found:?}");
    let most: u64 = missing.iter().map(|(_, ns)| **ns).sum();
    for (name, ns) in others {
        let of = found.get(name).copied().unwrap_or(0);
        assert!(
            of + rounded >= *ns && of <= ns + most + rounded,
            "{name} {expected:?} {found:?}"
        );
    }
}

#[test]
fn a_trace_of_perfetto_has_the_same_verdicts_as_far_as_it_has_the_events() {
    let dir = tempfile::tempdir().unwrap();
    for kind in ["passive", "attach"] {
        let [_, expected, found] = imported_twice(dir.path(), kind, "perfetto");
        assert_eq!(
            found.manifest().imported.clone().unwrap().format,
            "Perfetto trace"
        );
        let (expected, found) = (in_time(&expected), in_time(&found));
        assert!(expected.len() >= 4, "{expected:?}");
        assert_eq!(expected.len(), found.len(), "{kind}");
        let mut same = 0;
        for (expected, found) in expected.iter().zip(&found) {
            assert!(
                expected.0.abs_diff(found.0) <= ROUNDED && expected.1.abs_diff(found.1) <= ROUNDED,
                "{kind}: {expected:?} {found:?}"
            );
            assert_eq!((expected.2, expected.3), (found.2, found.3), "{kind}");
            let (expected, found) = (&expected.4, &found.4);
            let mut pairs = expected.iter().zip(found);
            if expected.len() == found.len() && pairs.all(|(a, b)| is_near(a, b)) {
                same += 1;
            } else {
                only_what_is_missing_differs(expected, found);
            }
        }
        assert!(
            same * 2 > expected.len(),
            "{kind}: {same} of {}",
            expected.len()
        );
    }
}

#[test]
fn a_folder_without_metadata_is_no_trace() {
    let dir = tempfile::tempdir().unwrap();
    let refused = imported(&settings(dir.path(), dir.path(), None))
        .err()
        .unwrap();
    assert!(matches!(refused, ImportError::NoTrace { .. }), "{refused}");
    fs::write(
        dir.path().join("metadata"),
        "trace { major = 2; minor = 0; };",
    )
    .unwrap();
    let refused = imported(&settings(dir.path(), dir.path(), None))
        .err()
        .unwrap();
    assert!(refused.to_string().contains("version 2.0"), "{refused}");
    assert!(is_clean(dir.path()));
}

#[test]
fn an_imported_run_is_replayed_and_shown_like_any_other() {
    let dir = tempfile::tempdir().unwrap();
    let file = exported(&fixture("attach"), dir.path());
    let name = fixture("attach").manifest().threads[0].comm.to_string();
    let settings = settings(&file, dir.path(), Some(Victim::Named(name.clone())));
    let run = imported(&settings).unwrap();
    let manifest = run.manifest();
    assert!(manifest.trace.complete && manifest.attributed);
    assert!(
        manifest.threads.iter().all(|of| of.comm == name),
        "{:?}",
        manifest.threads
    );
    let stored: Vec<Stall> = run.stalls().unwrap().map(Result::unwrap).collect();
    let mut attributions = run.attributions().unwrap().map(Result::unwrap);
    let mut again = Vec::new();
    let replayed = replay(&run, &mut |stall, own| {
        assert_eq!(own, attributions.next(), "{stall:?}");
        again.push(*stall);
    });
    assert_eq!(replayed.unwrap().threads.unwrap(), manifest.threads);
    assert!(!stored.is_empty());
    assert_eq!(again, stored);
    let frames = stall_timelines(&run, &stored).unwrap();
    assert_eq!(frames.len(), stored.len());
    assert!(frames.iter().any(|(_, rows)| !rows.is_empty()));
}

#[test]
fn the_owner_of_a_cpu_is_the_thread_with_most_of_it() {
    let dir = tempfile::tempdir().unwrap();
    let run = fixture("passive");
    let file = exported(&run, dir.path());
    let cpus = run.manifest().probe.cpus.clone();
    let victim = Victim::Cpus {
        cpus: cpus.clone(),
        owners: Owners::Largest,
    };
    let again = imported(&settings(&file, dir.path(), Some(victim))).unwrap();
    let watched = &again.manifest().passive[0];
    let chosen = watched.chosen.as_ref().unwrap();
    assert_eq!(watched.threads[0].tid, chosen.tid);
    assert!(chosen.share > 0.0 && chosen.share <= 1.0, "{chosen:?}");
    assert_eq!(Some(watched.cpu), cpus.iter().next());
}

#[test]
fn a_file_without_what_is_asked_for_leaves_nothing() {
    let dir = tempfile::tempdir().unwrap();
    let file = exported(&fixture("attach"), dir.path());
    let refused = |victim: Option<Victim>, change: &dyn Fn(&mut ImportSettings)| {
        let mut settings = settings(&file, dir.path(), victim);
        change(&mut settings);
        let Err(error) = imported(&settings) else {
            panic!("it is not refused");
        };
        let error = error.to_string();
        assert!(is_clean(dir.path()), "{error}");
        error
    };
    let none = &|_: &mut ImportSettings| {};
    let named = |name: &str| Some(Victim::Named(name.into()));
    let text = refused(None, none);
    assert!(
        text.contains("version 6") && text.contains("--comm") && text.contains("Most time had"),
        "{text}"
    );
    let text = refused(named("nobody"), none);
    assert!(
        text.contains("'nobody'") && text.contains("Most time had"),
        "{text}"
    );
    let text = refused(Some(Victim::Process(999_999)), none);
    assert!(text.contains("thread 999999"), "{text}");
    let cpus = [CpuId(77)].into_iter().collect();
    let victim = Victim::Cpus {
        cpus,
        owners: Owners::Largest,
    };
    let text = refused(Some(victim), none);
    assert!(text.contains("CPU 77") && text.contains("0-1"), "{text}");
    let text = refused(named("x"), &|of| of.buffer = Some("other".into()));
    assert!(
        text.contains("'other'") && text.contains("senders"),
        "{text}"
    );
    let text = refused(named("x"), &|of| of.file = dir.path().join("none"));
    assert!(text.contains("none"), "{text}");
    let text = refused(named("x"), &|of| of.file = dir.path().to_owned());
    assert!(text.contains("without a file named metadata"), "{text}");
}

#[test]
fn an_import_that_is_stopped_leaves_nothing() {
    let dir = tempfile::tempdir().unwrap();
    let file = exported(&fixture("attach"), dir.path());
    let name = fixture("attach").manifest().threads[0].comm.to_string();
    let settings = settings(&file, dir.path(), Some(Victim::Named(name)));
    let stopped = import(&settings, &AtomicBool::new(true), &mut ());
    assert!(
        matches!(stopped, Err(ImportError::Interrupted)),
        "{stopped:?}"
    );
    assert!(is_clean(dir.path()));
}

#[test]
fn a_truncated_file_yields_its_intact_part_and_says_so() {
    let dir = tempfile::tempdir().unwrap();
    let file = exported(&fixture("attach"), dir.path());
    let name = fixture("attach").manifest().threads[0].comm.to_string();
    let whole = imported(&settings(
        &file,
        dir.path(),
        Some(Victim::Named(name.clone())),
    ))
    .unwrap();
    let bytes = fs::read(&file).unwrap();
    fs::write(&file, &bytes[..bytes.len() - 10_000]).unwrap();
    let cut = imported(&settings(&file, dir.path(), Some(Victim::Named(name)))).unwrap();
    let is_cut = |warning: &Warning| matches!(warning, Warning::ImportCut { .. });
    assert!(cut.manifest().warnings.iter().any(is_cut));
    assert!(!whole.manifest().warnings.iter().any(is_cut));
    let lost = cut
        .manifest()
        .sources
        .iter()
        .map(|source| source.lost)
        .sum::<u64>();
    assert!(
        lost > 0,
        "nothing is known of the CPU from its last record on"
    );
    let events = |run: &RunReader| run.manifest().events_in_gaps.events;
    assert!(events(&cut) > events(&whole) / 2 && events(&cut) <= events(&whole));
}

/// The CPUs of which a file has records, but no switches, by its import.
fn unswitched(run: &RunReader) -> Option<String> {
    let problems = run.manifest().sources.iter().flat_map(|of| &of.problems);
    let mut cpus = problems.filter_map(|problem| match problem {
        SourceProblem::CpusWithoutSwitches { cpus } => Some(cpus.to_string()),
        _ => None,
    });
    cpus.next()
}

#[test]
fn nobody_is_said_to_run_on_a_cpu_whose_switches_the_file_lacks() {
    let dir = tempfile::tempdir().unwrap();
    // A run that measured CPU 1 alone: of CPU 0 it has what concerned CPU 1, such as wake-ups.
    let file = exported(&fixture("spin"), dir.path());
    for (name, at_least) in [("python3", 389_000_000), ("lto cgu.0", 200_000_000)] {
        let victim = Some(Victim::Named(name.into()));
        let run = imported(&settings(&file, dir.path(), victim)).unwrap();
        let manifest = run.manifest();
        for of in &manifest.threads {
            let only: Vec<u32> = of.cpus.iter().map(|share| share.cpu.0).collect();
            assert!(only.iter().all(|cpu| *cpu == 1), "{of:?}");
        }
        let unknown = manifest.threads.iter().map(|of| of.unknown_ns.0).max();
        assert!(unknown > Some(at_least), "{:?}", manifest.threads);
        assert_eq!(unswitched(&run).as_deref(), Some("0"));
        let of_cpu_0 = |warning: &Warning| matches!(warning, Warning::UnrecordedSwitches { cpus, .. } if cpus.contains(CpuId(0)));
        assert!(!manifest.warnings.iter().any(of_cpu_0));
        // A replay takes the same steps.
        let replayed = replay(&run, &mut |_, _| {}).unwrap();
        assert_eq!(replayed.threads.as_ref(), Some(&manifest.threads));
    }
}

#[test]
fn switches_of_a_cpu_count_whatever_the_buffer_in_which_they_are() {
    let dir = tempfile::tempdir().unwrap();
    let run = fixture("attach");
    let name = run.manifest().threads[0].comm.clone();
    let file = exported(&run, dir.path());
    let named = Some(Victim::Named(name));
    let direct = imported(&settings(&file, dir.path(), named.clone())).unwrap();
    assert_eq!(unswitched(&direct), None);
    // An import that watches CPU 1 makes the others senders.
    let victim = Victim::Cpus {
        cpus: [CpuId(1)].into_iter().collect(),
        owners: Owners::Largest,
    };
    let watched = imported(&settings(&file, dir.path(), Some(victim))).unwrap();
    assert_eq!(unswitched(&watched), None);
    let file = exported(&watched, dir.path());
    let again = imported(&settings(&file, dir.path(), named)).unwrap();
    assert_eq!(unswitched(&again), None);
    let cpus = |run: &RunReader| {
        let all = run.manifest().threads.iter().flat_map(|of| &of.cpus);
        all.map(|share| share.cpu).max()
    };
    assert_eq!(cpus(&again), cpus(&direct));
}
