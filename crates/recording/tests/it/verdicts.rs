//! Golden verdicts: the pages of a recorded run of each kind go through attribution into a new stored run, and the rows
//! read back from that are compared with `verdicts.json`.
//!
//! No sentence is compared. [`as_json`] defines what a verdict is: if its types change, only this place changes, and
//! its output should stay the same. After an intended change of verdicts, run
//! `JITTERSCOPE_UPDATE_VERDICTS=1 cargo test -p jitterscope-recording --test live verdicts`, and read the difference.
//! `tests/fixtures/README.md` says how the runs were recorded.

use jitterscope_model::{
    About, Attribution, Culprit, Meanwhile, Part, Phase, SchedClass, Stall, Subject, ThreadAccount,
};
use jitterscope_recording::replay;
use jitterscope_store::{RunReader, RunWriter};
use serde_json::{Map, Value, json};
use std::fs;
use std::path::{Path, PathBuf};

fn fixture(kind: &str) -> PathBuf {
    Path::new(env!("CARGO_MANIFEST_DIR"))
        .join("tests/fixtures")
        .join(kind)
}

/// A stall and its verdict as data: ticks, nanoseconds, kinds and names.
mod as_json {
    use super::*;

    /// `kind`: the kind of recording, which decides which numbers of a part are included.
    pub(super) fn stall(stall: &Stall, attribution: Option<&Attribution>, kind: &str) -> Value {
        let parts = attribution.map(|attribution| &attribution.parts);
        let parts: Option<Vec<Value>> =
            parts.map(|parts| parts.iter().map(|p| part(p, kind)).collect());
        json!({
            "stall": stall.id.0,
            "cpu": stall.cpu.0,
            "victim": [stall.victim.tid, stall.victim.comm.to_string()],
            "ticks": [stall.start.0, stall.end.0],
            "parts": parts,
        })
    }

    fn part(part: &Part, kind: &str) -> Value {
        let mut shown = Map::new();
        culprit(&part.culprit, kind, &mut shown);
        shown.insert("net_ns".into(), part.net.0.into());
        shown.insert("gross_ns".into(), part.gross.0.into());
        if part.turns != 1 {
            shown.insert("turns".into(), part.turns.into());
        }
        shown.insert("placement".into(), part.placement.as_str().into());
        shown.insert("confidence".into(), part.confidence.as_str().into());
        if kind != "spin" {
            let phase = part.phase.as_ref().map_or("", Phase::as_str);
            let moved = part.moved_from.filter(|_| kind == "pipeline");
            let moved = moved.map_or_else(String::new, |cpu| format!(", moved from CPU {cpu}"));
            shown.insert("phase".into(), format!("{phase}{moved}").into());
        }
        Value::Object(shown)
    }

    fn culprit(culprit: &Culprit, kind: &str, shown: &mut Map<String, Value>) {
        shown.insert("kind".into(), culprit.kind().as_str().into());
        shown.insert("name".into(), culprit.subject.name().into());
        shown.insert("numbers".into(), numbers(&culprit.subject, kind).into());
        if let Some(by) = &culprit.sender {
            let mut sender = json!({
                "context": by.context.as_str(),
                "comm": by.comm.as_deref(),
                "tid": by.tid,
                "cpu": by.cpu.0,
                "via": by.via.as_deref(),
            });
            if let Some(beneath) = &by.beneath {
                sender["beneath"] = beneath[..].into();
            }
            shown.insert("sender".into(), sender);
        }
    }

    /// Thread ids, interrupt numbers, priorities, states.
    fn numbers(subject: &Subject, kind: &str) -> Vec<i64> {
        let wakeup = kind == "wakeup";
        let class = |class: Option<&SchedClass>| match class {
            Some(SchedClass::RealTime(priority)) if wakeup => Some(99 - i64::from(*priority)),
            Some(SchedClass::RealTime(priority)) => Some(i64::from(*priority)),
            Some(SchedClass::Fair(nice)) if wakeup => Some(120 + i64::from(nice.unwrap_or(0))),
            _ => None,
        };
        let thread = |tid: Option<i32>, of: Option<&SchedClass>| {
            tid.map(i64::from).into_iter().chain(class(of)).collect()
        };
        match subject {
            Subject::Thread(task) => thread(task.tid, task.class.as_ref()),
            Subject::Work(work) => {
                let worker = work.worker.clone().unwrap_or_default();
                match work.function {
                    None => thread(worker.tid, worker.class.as_ref()),
                    Some(_) => words(worker.comm.as_deref().unwrap_or_default()),
                }
            }
            Subject::Interrupt { number, .. } => number
                .filter(|_| !wakeup)
                .map(i64::from)
                .into_iter()
                .collect(),
            Subject::Softirq(vec) if !wakeup => vec![i64::from(*vec)],
            Subject::MachineCheck { bank } => bank.map(i64::from).into_iter().collect(),
            Subject::Verdict(_, About::IdleState(state)) => vec![i64::from(*state)],
            Subject::Verdict(_, About::Cpu(cpu)) => vec![i64::from(cpu.0)],
            Subject::Verdict(_, About::Meanwhile(Meanwhile::Ran(task))) => words(&task.comm),
            _ => Vec::new(),
        }
    }

    /// The numbers in a name.
    fn words(name: &str) -> Vec<i64> {
        let words = name.split(|c: char| !c.is_ascii_alphanumeric() && c != '_' && c != '-');
        words.filter_map(|word| word.parse().ok()).collect()
    }

    pub(super) fn thread(account: &ThreadAccount) -> Value {
        serde_json::to_value(account).unwrap()
    }
}

/// Replays a run into another one, and returns the latter's verdicts.
fn verdicts(kind: &str) -> Value {
    let run = RunReader::open(&fixture(kind)).unwrap();
    let manifest = run.manifest();
    let dir = tempfile::tempdir().unwrap();
    let mut writer =
        RunWriter::create(dir.path(), "AGAIN", manifest.clock_start.realtime_ns).unwrap();
    writer.limit_trace(0);
    writer.begin(manifest.clock_start, manifest.rate).unwrap();
    let replayed = replay(&run, &mut |stall, attribution| {
        writer.stall(stall).unwrap();
        writer
            .attribution(&attribution.expect("all of its trace is there"))
            .unwrap();
    })
    .unwrap();
    let mut again = manifest.clone();
    again.threads = replayed.threads.unwrap_or_default();
    again.passive = replayed.passive.unwrap_or_default();
    again.events_in_gaps = replayed.events_in_gaps.unwrap_or_default();
    let again = RunReader::open(&writer.finish(again).unwrap()).unwrap();

    let mut attributions = again.attributions().unwrap().map(Result::unwrap).peekable();
    let stalls = again.stalls().unwrap().map(|stall| {
        let stall = stall.unwrap();
        let attribution = attributions.next_if(|attribution| attribution.stall == stall.id);
        as_json::stall(&stall, attribution.as_ref(), kind)
    });
    let stalls: Vec<Value> = stalls.collect();
    let mut shown = json!({
        "stalls": stalls,
        "threads": again.manifest().threads.iter().map(as_json::thread).collect::<Vec<_>>(),
        "events_in_gaps": again.manifest().events_in_gaps,
    });
    if !again.manifest().passive.is_empty() {
        shown["passive"] = serde_json::to_value(&again.manifest().passive).unwrap();
    }
    shown
}

/// A line for each stall, part and thread, for readable differences.
fn lines(verdicts: &Value) -> String {
    let mut text = String::from("{\n\"stalls\": [\n");
    let stalls = verdicts["stalls"].as_array().unwrap();
    for (n, stall) in stalls.iter().enumerate() {
        let mut stall = stall.clone();
        let parts = stall.as_object_mut().unwrap().remove("parts").unwrap();
        let head = stall.to_string();
        text += &format!("{},\"parts\":[\n", head.strip_suffix('}').unwrap());
        let parts: Vec<String> = parts
            .as_array()
            .into_iter()
            .flatten()
            .map(|part| format!(" {part}"))
            .collect();
        text += &parts.join(",\n");
        text += if n + 1 < stalls.len() {
            "]},\n"
        } else {
            "]}\n"
        };
    }
    text += "],\n\"threads\": [\n";
    let threads: Vec<String> = verdicts["threads"]
        .as_array()
        .unwrap()
        .iter()
        .map(|t| serde_json::to_string_pretty(t).unwrap())
        .collect();
    text += &threads.join(",\n");
    text += &format!("],\n\"events_in_gaps\": {}", verdicts["events_in_gaps"]);
    if let Some(cpus) = verdicts.get("passive") {
        text += &format!(
            ",\n\"passive\": {}",
            serde_json::to_string_pretty(cpus).unwrap()
        );
    }
    text + "\n}\n"
}

fn check(kind: &str) {
    let again = verdicts(kind);
    let path = fixture(kind).join("verdicts.json");
    if std::env::var_os("JITTERSCOPE_UPDATE_VERDICTS").is_some() {
        fs::write(&path, lines(&again)).unwrap();
        return;
    }
    let golden: Value = serde_json::from_slice(&fs::read(&path).unwrap()).unwrap();
    let (old, new) = (
        golden["stalls"].as_array().unwrap(),
        again["stalls"].as_array().unwrap(),
    );
    let differing: Vec<_> = old
        .iter()
        .zip(new)
        .filter(|(old, new)| old != new)
        .collect();
    for (old, new) in differing.iter().take(5) {
        eprintln!("golden: {old:#}\nnow:    {new:#}");
    }
    assert!(
        differing.is_empty(),
        "{kind}: {} of {} verdicts differ",
        differing.len(),
        old.len()
    );
    assert_eq!(old.len(), new.len(), "{kind}: number of stalls");
    assert_eq!(golden, again, "{kind}");
}

#[test]
fn spin() {
    check("spin");
}

#[test]
fn wakeup() {
    check("wakeup");
}

#[test]
fn attach() {
    check("attach");
}

#[test]
fn pipeline() {
    check("pipeline");
}

#[test]
fn passive() {
    check("passive");
}

/// Stalls with another verdict today than when the fixtures were recorded, and why.
fn changed(kind: &str, stall: u64) -> Option<&'static str> {
    match (kind, stall) {
        ("spin", 37) | ("pipeline", 20..=49) => Some(
            "tokio-rt-worker left the CPU by a switch that has no record: not all of that time was its",
        ),
        ("spin", 31 | 86 | 123 | 150 | 153) => Some(
            "rcu_preempt came from another CPU: the wake-up that was named was that of an earlier stay",
        ),
        ("wakeup", 26 | 37 | 45) => Some("who woke the thread that had the CPU is named now"),
        _ => None,
    }
}

/// These recorders attributed time without an event, and time before an entry that is no interrupt, to the host. Today
/// that needs evidence of the host, and these recorders kept no counts of stolen time.
fn not_the_hosts(shown: &mut Value) {
    for part in shown["parts"].as_array_mut().into_iter().flatten() {
        let (name, of) = (part["name"].clone(), part["kind"].clone());
        let now = match (of.as_str(), name.as_str()) {
            (Some("hypervisor"), Some("CPU taken")) => "no kernel event",
            (Some("hypervisor"), Some("before first event")) => "before first event",
            _ => continue,
        };
        (part["kind"], part["name"], part["confidence"]) =
            ("unresolved".into(), now.into(), "low".into());
    }
}

/// These recorders did not count turns.
fn without_turns(shown: &mut Value) {
    for part in shown["parts"].as_array_mut().into_iter().flatten() {
        part.as_object_mut().unwrap().remove("turns");
    }
}

/// These recorders attributed all time before an interrupt to the host. Today only the time since the interrupt was due
/// belongs to the host: the two parts are merged here.
fn whole_lead(shown: &mut Value) {
    let Some(parts) = shown["parts"].as_array_mut() else {
        return;
    };
    let is_lead = |part: &Value| {
        matches!(
            part["name"].as_str(),
            Some("late interrupt" | "before first event")
        )
    };
    let sum = |field: &str| {
        let of = |part: &Value| part[field].as_u64().unwrap();
        parts
            .iter()
            .filter(|part| is_lead(part))
            .map(of)
            .sum::<u64>()
    };
    let (net, gross) = (sum("net_ns"), sum("gross_ns"));
    let Some(first) = parts.iter().position(is_lead) else {
        return;
    };
    let lead = &mut parts[first];
    (lead["kind"], lead["name"], lead["confidence"]) = (
        "unresolved".into(),
        "before first event".into(),
        "low".into(),
    );
    (lead["net_ns"], lead["gross_ns"]) = (net.into(), gross.into());
    let mut at = 0;
    parts.retain(|part| {
        at += 1;
        at - 1 == first || !is_lead(part)
    });
}

/// The live verdicts equal those of the pages.
#[test]
fn the_fixtures_replay_as_they_were_recorded() {
    for kind in ["spin", "wakeup", "attach", "pipeline", "passive"] {
        let run = RunReader::open(&fixture(kind)).unwrap();
        let mut attributions = run.attributions().unwrap().map(Result::unwrap);
        let mut stalls = run.stalls().unwrap().map(Result::unwrap);
        replay(&run, &mut |stall, attribution| {
            // The recorder of these runs stored less about culprits than a replay does today.
            let mut recorded =
                as_json::stall(&stalls.next().unwrap(), attributions.next().as_ref(), kind);
            not_the_hosts(&mut recorded);
            let mut replayed = as_json::stall(stall, attribution.as_ref(), kind);
            without_turns(&mut replayed);
            [&mut recorded, &mut replayed]
                .into_iter()
                .for_each(whole_lead);
            match changed(kind, stall.id.0) {
                Some(why) => assert_ne!(recorded, replayed, "{kind}: no more? {why}"),
                None => assert_eq!(recorded, replayed, "{kind}"),
            }
        })
        .unwrap();
        assert!(
            stalls.next().is_none() && attributions.next().is_none(),
            "{kind}"
        );
    }
}
