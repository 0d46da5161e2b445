//! Writes runs for browser tests of pages: many stalls, many CPUs, names that are markup, an audit with findings; and a
//! page with the largest number of frames.
//!
//! `generated_run FOLDER STALLS [CPUS]`, or with one of these words instead of CPUS: `hostile`, `hostile-wakeup` (late
//! wake-ups), `findings`, `page=FILE`.
#![forbid(unsafe_code)]

#[path = "../tests/common/mod.rs"]
mod common;

use common::{Scenario, late, part, sent_by, thread, timer, verdict, work};
use jitterscope_analyze::periods::Effort;
use jitterscope_model::{
    Culprit, CulpritKind, KnobFinding, KnobVerdict, MachineState, Nanos, Reading, Subject,
    TimelineItem, TimelineRow, TuningState,
};
use jitterscope_store::{RunReader, RunWriter};
use jitterscope_testing::SplitMix64;
use jitterscope_view::html::{self, Frames};
use jitterscope_view::{Wanted, load_drawn};
use std::fs;
use std::path::{Path, PathBuf};

/// Names that a hostile thread may have: 15 arbitrary bytes.
const HOSTILE: [&str; 5] = [
    "<script>a()//",
    "\"><img src=x>",
    "</script><b>",
    "'\";alert(1)//",
    "&lt;\u{202e}x",
];
/// Hostile labels in a manifest.
const LABELS: [&str; 4] = [
    "<script>document.title='got in'</script>",
    "\"><img src=x onerror=alert(1)>'",
    "\u{202e}gnp.exe\u{202c}\u{2066}x",
    "long-",
];

fn main() {
    let args: Vec<String> = std::env::args().skip(1).collect();
    let [folder, stalls, rest @ ..] = &args[..] else {
        eprintln!(
            "usage: generated_run FOLDER STALLS [CPUS | hostile | hostile-wakeup | findings | page=FILE]"
        );
        std::process::exit(2);
    };
    let folder = Path::new(folder);
    let stalls: u64 = stalls.parse().expect("a number of stalls");
    match rest.first().map(String::as_str) {
        Some("hostile") => {
            for (at, label) in LABELS.iter().enumerate() {
                let run = store(&scenario(stalls, 2, "hostile", true), folder, None);
                relabel(
                    &run,
                    &if at == 3 {
                        label.repeat(800)
                    } else {
                        (*label).to_owned()
                    },
                );
                println!("{}", run.display());
            }
        }
        Some("hostile-wakeup") => println!("{}", store(&hostile_wakeups(), folder, None).display()),
        Some("findings") => {
            let run = scenario(stalls, 2, "findings", false);
            println!("{}", store(&run, folder, Some(&machine(&run))).display());
        }
        Some(word) if word.starts_with("page=") => {
            let run = store(&scenario(stalls, 2, "framed", false), folder, None);
            write_page(&run, Path::new(&word["page=".len()..]));
        }
        Some(cpus) => {
            let cpus = cpus.parse().expect("a number of CPUs");
            let run = scenario(stalls, cpus, &format!("generated-{stalls}-{cpus}"), false);
            println!("{}", store(&run, folder, None).display());
        }
        None => {
            let run = scenario(stalls, 2, &format!("generated-{stalls}"), false);
            println!("{}", store(&run, folder, None).display());
        }
    }
}

/// A machine with an audit: a useful setting, a useless one, an unreadable one and a correct one.
fn machine(run: &Scenario) -> MachineState {
    let finding = |knob: &str, verdict, current: &str, wanted: &str| KnobFinding {
        knob: knob.into(),
        reason: if verdict == KnobVerdict::Unreadable {
            "<b>it is guarded</b>".into()
        } else {
            String::new()
        },
        verdict,
        current: current.into(),
        wanted: wanted.into(),
    };
    let tuning = TuningState {
        cpus: run.manifest.probe.cpus.clone(),
        findings: vec![
            finding(
                "writeback",
                KnobVerdict::Wrong,
                "dirty_background_ratio 10",
                "at most 5",
            ),
            finding(
                "vmstat",
                KnobVerdict::Wrong,
                "stat_interval 1 <script>",
                "at least 10",
            ),
            finding("tlb", KnobVerdict::Unreadable, "", ""),
            finding("swap", KnobVerdict::Fine, "0", "0"),
        ],
        ..TuningState::default()
    };
    MachineState {
        tuning: Reading::Value(tuning),
        ..MachineState::default()
    }
}

/// Writes a label that no command would accept into the manifest's head.
fn relabel(run: &Path, label: &str) {
    let file = run.join("manifest.json");
    let text = fs::read_to_string(&file).expect("a manifest");
    let mut manifest: serde_json::Value = serde_json::from_str(&text).expect("JSON");
    manifest["label"] = label.into();
    fs::write(&file, manifest.to_string()).expect("a manifest");
}

/// Writes the page of a run with frames like a recording's: two hundred stalls, forty frames each.
fn write_page(run: &Path, file: &Path) {
    let wanted = Wanted {
        worst: 60,
        effort: Effort::BRIEF,
        stalls: 100_000,
        redact: false,
    };
    let run = load_drawn(&RunReader::open(run).expect("a run"), wanted).expect("a run");
    let mut random = SplitMix64(7);
    let mut rows = |length: u64| -> Vec<TimelineRow> {
        let each = length / 41;
        let row = |at: u64| {
            let start = at * each + random.below(each.max(1));
            let culprit = match at % 3 {
                0 => timer("tick_nohz_handler"),
                1 => Subject::Softirq(1),
                _ => {
                    let (name, pid) = (
                        format!("worker-{}", random.below(40)),
                        100 + random.below(300),
                    );
                    thread(&name, pid as i32)
                }
            };
            let end = start + random.below(each.max(1)) + 1;
            let culprit = Culprit::from(culprit);
            let item = TimelineItem::Frame {
                culprit,
                ended: true,
                named_inside: false,
            };
            TimelineRow {
                cpu: None,
                depth: (at % 3) as usize,
                start: Nanos(start),
                end: Some(Nanos(end)),
                item,
            }
        };
        (0..40).map(row).collect()
    };
    let lengths: std::collections::HashMap<_, _> = run
        .picture
        .stalls
        .iter()
        .map(|stall| (stall.id, stall.length.0))
        .collect();
    let framed = |stall| Frames {
        stall,
        rows: rows(lengths[&stall]),
    };
    let frames: Vec<Frames> = html::frames_wanted(&run, 200)
        .into_iter()
        .map(framed)
        .collect();
    let written = html::render(&html::Page {
        run: &run,
        frames: &frames,
        settings: &[],
        list: None,
    });
    fs::write(file, &written.html).expect("a page");
    println!(
        "{} of {} stalls frame by frame",
        written.framed,
        frames.len()
    );
}

/// Late wake-ups caused by threads with hostile names.
fn hostile_wakeups() -> Scenario {
    let mut run = late(&[0, 1], None);
    run.manifest.label = "hostile-wakeup".into();
    for (at, attribution) in run.attributions.iter_mut().enumerate() {
        for of in attribution
            .parts
            .iter_mut()
            .filter(|of| of.culprit.subject.kind() == CulpritKind::Thread)
        {
            let (name, tid) = (HOSTILE[at % HOSTILE.len()], 900 + at % HOSTILE.len());
            of.culprit = thread(name, tid as i32).into();
        }
    }
    run
}

fn scenario(stalls: u64, cpus: u32, label: &str, hostile: bool) -> Scenario {
    let mut run = Scenario::new(&(1..=cpus).collect::<Vec<_>>());
    let seconds = 60u64;
    run.manifest.probe.duration_ns = Nanos(seconds * 1_000_000_000);
    run.manifest.label = label.into();
    let mut random = SplitMix64(42);
    let others = stalls.saturating_sub(1);
    let step = 58_000_000_000 / others.max(1);
    for at in 0..others {
        let net = |random: &mut SplitMix64, mean: f64| {
            200 + random.exponential(mean).min(mean * 12.0) as u64
        };
        let tick = part(timer("tick_nohz_handler"), net(&mut random, 3_000.0));
        let soft = part(Subject::Softirq(1), net(&mut random, 1_200.0));
        let lead = part(
            verdict(CulpritKind::Hypervisor, "late interrupt"),
            net(&mut random, 900.0),
        );
        let mut parts = vec![lead, tick, soft];
        if at % 7 == 0 {
            let name = match hostile {
                true => HOSTILE[random.below(HOSTILE.len() as u64) as usize].to_owned(),
                false => format!("worker-{}", random.below(40)),
            };
            let tid = 100 + random.below(300) as i32;
            let taken = part(thread(&name, tid), net(&mut random, 20_000.0));
            parts.push(sent_by(
                taken,
                if hostile { HOSTILE[0] } else { "waker" },
                tid,
                0,
                None,
            ));
        }
        let jitter = random.below((step / 2).max(1));
        run.stall_at(
            1 + random.below(u64::from(cpus)) as u32,
            Nanos(at * step + jitter),
            parts,
        );
    }
    // A stall that every test can look for: the longest.
    let known = part(work("vmstat_update", None, Some("events")), 30_000_000);
    run.stall(1, 58_500_000, vec![known]);
    run.finish()
}

fn store(run: &Scenario, folder: &Path, machine: Option<&MachineState>) -> PathBuf {
    let manifest = &run.manifest;
    let mut writer = RunWriter::create(folder, &manifest.label, manifest.clock_start.realtime_ns)
        .expect("a folder");
    writer
        .begin(manifest.clock_start, manifest.rate)
        .expect("a run");
    if let Some(machine) = machine {
        writer.machine(machine).expect("a machine");
    }
    for (stall, attribution) in run.stalls.iter().zip(&run.attributions) {
        writer.stall(stall).expect("a stall");
        writer.attribution(attribution).expect("its parts");
    }
    for row in &run.intervals {
        writer.interval(row).expect("an interval");
    }
    writer.finish(manifest.clone()).expect("the end")
}
