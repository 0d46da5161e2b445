//! `record pipeline --two-thread` compared with a bare ping through the same ring and with Java's Disruptor: the same
//! number of messages, record length, interval and ring, on the same two CPUs, in alternating turns.

mod java;
mod output;

use super::claim::Claim;
use crate::{program, shell};
use anyhow::{Context, bail};
use java::Java;
use output::Transit;
use std::fs::{self, File, OpenOptions};
use std::io::Read;
use std::path::{Path, PathBuf};

const ROUNDS: usize = 9;
const MESSAGES: u64 = 100_000;
/// Long enough for Java's compiler to finish.
const WARM_UP: u64 = 200_000;
const RECORD_LENGTH: u64 = 64;
/// Records in the input: the tool's default.
const RECORDS: u64 = 10_000;
/// Slots: the tool's default.
const RING: u64 = 16_384;
const INTERVAL_NS: u64 = 10_000;
const PAUSE_NS: u64 = 200_000_000;
/// The default ring of perf-workshop, to compare memory.
const ANCESTORS_RING: u64 = 524_288;
/// Minimum ratio of perf-workshop's memory, with its ring and heap, to ours.
const MEMORY_PART: f64 = 7.0;
/// Maximum ratio of the p99 with kernel events to that without, on a machine with a CPU for our own thread.
const MOST_TRACED: f64 = 2.0;

/// The variants that alternate.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
enum Contender {
    /// The tool, with its interval counted from the last publication, as in Java.
    Tool,
    /// The tool with its fixed schedule, the default.
    Scheduled,
    /// The tool with kernel events.
    Traced,
    /// Two threads and the ring, without anything else.
    Ping,
    /// perf-workshop's work on LMAX's Disruptor.
    Java,
    /// The same with the ring and the heap of perf-workshop's script: not like for like, and shown for its memory.
    Ancestor,
}

impl Contender {
    /// The two compared variants are adjacent.
    const ALL: [Contender; 6] = [
        Contender::Tool,
        Contender::Java,
        Contender::Scheduled,
        Contender::Ping,
        Contender::Traced,
        Contender::Ancestor,
    ];

    fn name(self) -> &'static str {
        match self {
            Contender::Tool => "record pipeline, paced as Java",
            Contender::Scheduled => "record pipeline, on schedule",
            Contender::Traced => "record pipeline, kernel events",
            Contender::Ping => "bare ping, same ring",
            Contender::Java => "Java, LMAX Disruptor",
            Contender::Ancestor => "Java, perf-workshop's ring, heap",
        }
    }

    fn is_java(self) -> bool {
        matches!(self, Contender::Java | Contender::Ancestor)
    }
}

/// The common settings of all variants.
struct Course {
    cpus: (u32, u32),
    folder: PathBuf,
    input: PathBuf,
}

/// Runs all rounds, prints the table, and returns the claims; none if it must be skipped.
pub fn claims() -> anyhow::Result<Vec<Claim>> {
    let cpus = match cpus()? {
        Ok(cpus) => cpus,
        Err(why) => {
            return Ok(vec![Claim::skipped(
                "transit of a message",
                "<= Java's",
                why,
            )]);
        }
    };
    let folder = shell::root().join("target/bench-pipeline");
    fs::create_dir_all(&folder).with_context(|| format!("{} cannot be made", folder.display()))?;
    let course = Course {
        cpus,
        input: input(&folder)?,
        folder,
    };
    shell::run(
        "cargo",
        &[
            "build",
            "--quiet",
            "--profile",
            program::SHIPPED,
            "--locked",
            "-p",
            "jitterscope",
        ],
    )?;
    shell::run(
        "cargo",
        &[
            "bench",
            "--quiet",
            "--profile",
            program::SHIPPED,
            "--locked",
            "-p",
            "jitterscope-probe",
            "--bench",
            "pipeline",
            "--no-run",
        ],
    )?;
    let java = Java::prepare(&course.folder)?;
    let mut rounds: Vec<(Contender, Vec<Transit>)> = Contender::ALL
        .into_iter()
        .filter(|contender| java.is_some() || !contender.is_java())
        .map(|contender| (contender, Vec::new()))
        .collect();
    for round in 0..ROUNDS {
        let _alone = alone()?;
        // Each begins once, so that a drift of the machine favours none.
        let several = rounds.len();
        for turn in 0..several {
            let (contender, measured) = &mut rounds[(round + turn) % several];
            let transit = match (*contender, &java) {
                (Contender::Java, Some(java)) => java.run(&course, RING, "64m")?,
                (Contender::Ancestor, Some(java)) => java.run(&course, ANCESTORS_RING, "4g")?,
                (Contender::Java | Contender::Ancestor, None) => continue,
                (Contender::Ping, _) => ping(&course)?,
                (tool, _) => record(&course, tool)?,
            };
            eprintln!("round {}: {:<32} {transit}", round + 1, contender.name());
            if transit.count != MESSAGES {
                bail!(
                    "{}: {} of {MESSAGES} messages were measured",
                    contender.name(),
                    transit.count
                );
            }
            measured.push(transit);
        }
    }
    let medians: Vec<(Contender, Transit)> = rounds
        .iter()
        .map(|(contender, measured)| (*contender, Transit::median(measured)))
        .collect();
    print(&medians);
    let of = |wanted| {
        medians
            .iter()
            .find(|(contender, _)| *contender == wanted)
            .map(|(_, transit)| transit)
    };
    let mut claims = Vec::new();
    if let (Some(ours), Some(java), Some(ancestor)) = (
        of(Contender::Tool),
        of(Contender::Java),
        of(Contender::Ancestor),
    ) {
        claims.extend(against(ours, java, ancestor));
    } else {
        claims.push(Claim::skipped(
            "transit beside Java's",
            "<= Java's",
            "Java or Maven is not there",
        ));
    }
    if let (Some(bare), Some(traced)) = (of(Contender::Scheduled), of(Contender::Traced)) {
        let ratio = traced.p99 as f64 / bare.p99.max(1) as f64;
        let what = "p99 of transit with kernel events, to without";
        claims.push(if allowed()?.len() > 2 {
            Claim::at_most(what, ratio, MOST_TRACED)
        } else {
            let why = "our own thread has none of the two CPUs for itself, which the run's headline says; with a third \
                       this is judged";
            Claim { measured: format!("{ratio:.1}"), ..Claim::skipped(what, format!("<= {MOST_TRACED}"), why) }
        });
    }
    Ok(claims)
}

fn against(ours: &Transit, java: &Transit, ancestor: &Transit) -> Vec<Claim> {
    let time = |what: &str, ours: u64, java: u64| {
        Claim::at_most(
            format!("{what} of transit, to Java's"),
            ours as f64 / java.max(1) as f64,
            1.0,
        )
    };
    let part = ancestor.peak_kib as f64 / ours.peak_kib.max(1) as f64;
    vec![
        time("p50", ours.p50, java.p50),
        time("p99", ours.p99, java.p99),
        Claim::at_least("perf-workshop's peak memory, to ours", part, MEMORY_PART),
    ]
}

fn print(medians: &[(Contender, Transit)]) {
    println!(
        "{MESSAGES} messages every {INTERVAL_NS} ns, ring of {RING}, medians of {ROUNDS} rounds\n"
    );
    let heads = ["p50 ns", "p99 ns", "p99.9 ns", "max ns", "peak KiB"];
    print!("{:<32}", "transit");
    heads.iter().for_each(|head| print!(" {head:>11}"));
    println!();
    for (contender, transit) in medians {
        print!("{:<32}", contender.name());
        transit
            .columns()
            .iter()
            .for_each(|value| print!(" {value:>11}"));
        println!();
    }
    println!();
}

/// The producer's and the accumulator's CPU: the first two, or those in JITTERSCOPE_BENCH_CPUS.
fn cpus() -> anyhow::Result<Result<(u32, u32), String>> {
    let wanted = std::env::var("JITTERSCOPE_BENCH_CPUS").unwrap_or_else(|_| "0,1".into());
    let cpus = output::pair(&wanted).with_context(|| {
        format!("JITTERSCOPE_BENCH_CPUS is '{wanted}', not two CPUs such as 0,1")
    })?;
    let allowed = allowed()?;
    if allowed.contains(&cpus.0) && allowed.contains(&cpus.1) {
        return Ok(Ok(cpus));
    }
    Ok(Err(format!(
        "CPUs {wanted} are not both there and allowed; set JITTERSCOPE_BENCH_CPUS"
    )))
}

/// The CPUs that this process may use.
fn allowed() -> anyhow::Result<Vec<u32>> {
    let status =
        fs::read_to_string("/proc/self/status").context("/proc/self/status cannot be read")?;
    output::allowed_cpus(&status).context("/proc/self/status has no Cpus_allowed_list")
}

/// Random records in a file used by all.
fn input(folder: &Path) -> anyhow::Result<PathBuf> {
    let path = folder.join("input");
    let mut bytes = vec![0; usize::try_from(RECORDS * RECORD_LENGTH)?];
    File::open("/dev/urandom")
        .and_then(|mut random| random.read_exact(&mut bytes))
        .context("/dev/urandom cannot be read")?;
    fs::write(&path, bytes).with_context(|| format!("{} cannot be written", path.display()))?;
    Ok(path)
}

/// Keeps other recordings away for a round, if they lock the same file: the live tests' file, or the one in
/// JITTERSCOPE_BENCH_LOCK.
fn alone() -> anyhow::Result<File> {
    let path = std::env::var_os("JITTERSCOPE_BENCH_LOCK").map_or_else(
        || std::env::temp_dir().join("jitterscope-live-tests.lock"),
        PathBuf::from,
    );
    let file = OpenOptions::new()
        .create(true)
        .truncate(false)
        .write(true)
        .open(&path);
    let file = file.with_context(|| format!("{} cannot be opened", path.display()))?;
    file.lock()
        .with_context(|| format!("{} cannot be locked", path.display()))?;
    Ok(file)
}

fn record(course: &Course, contender: Contender) -> anyhow::Result<Transit> {
    let program = program::shipped();
    let runs = course.folder.join("runs");
    let pacing = if contender == Contender::Scheduled {
        "schedule"
    } else {
        "ancestor"
    };
    let named = [
        ("--producer-cpu", course.cpus.0.to_string()),
        ("--accumulator-cpu", course.cpus.1.to_string()),
        ("--input", course.input.display().to_string()),
        ("--message-size", RECORD_LENGTH.to_string()),
        ("--ring", RING.to_string()),
        ("--period", format!("{INTERVAL_NS}ns")),
        ("--pacing", pacing.into()),
        ("--warmup", format!("{}ns", WARM_UP * INTERVAL_NS)),
        ("--pause", format!("{PAUSE_NS}ns")),
        ("--messages", MESSAGES.to_string()),
        ("--runs", runs.display().to_string()),
    ];
    let mut args = vec!["record", "pipeline", "--two-thread", "--quiet", "--json"];
    args.extend(
        named
            .iter()
            .flat_map(|(name, value)| [*name, value.as_str()]),
    );
    if contender != Contender::Traced {
        args.push("--no-trace");
    }
    let text = shell::output(&program.to_string_lossy(), &args)?;
    fs::remove_dir_all(&runs).context("the bench's runs cannot be removed")?;
    output::of_tool(&text)
}

fn ping(course: &Course) -> anyhow::Result<Transit> {
    let settings = [
        ("ring", RING),
        ("warm_up", WARM_UP),
        ("messages", MESSAGES),
        ("interval_ns", INTERVAL_NS),
        ("pause_ns", PAUSE_NS),
        ("producer_cpu", course.cpus.0.into()),
        ("accumulator_cpu", course.cpus.1.into()),
    ]
    .map(|(name, value)| format!("{name}={value}"));
    let mut args = vec![
        "bench",
        "--quiet",
        "--locked",
        "-p",
        "jitterscope-probe",
        "--bench",
        "pipeline",
        "--",
    ];
    args.extend(settings.iter().map(String::as_str));
    output::of_ping(&shell::output("cargo", &args)?)
}
