//! `record pipeline`: inter-thread latency, in the terms of perf-workshop and of jitterscope.

use super::advice::{step, with_advice};
use super::leftovers;
use super::machine_tuning;
use super::outputs::{beside_a_report, of_recording, tell, told_by_target};
use super::pipeline_args::{PacingArg, ReportArg, Switch, ViaArg};
pub use super::pipeline_args::{PipelineArgs, WorkshopArgs};
use super::pipeline_properties::load_or_make;
use super::recording_args::kib;
use crate::exit::{Exit, UnavailableError, UsageError};
use crate::output;
use crate::places::{Places, program};
use crate::progress::ProgressLine;
use crate::signals;
use anyhow::Context;
use jitterscope_export::write_message_times;
use jitterscope_model::{
    CpuId, JournalWriting, Nanos, PipelinePacing, PipelineProperties, PipelineResult, PipelineRole,
    PipelineVia, ProbeKind, RunManifest,
};
use jitterscope_platform::{AccessError, HeldDir, Machine, MessagePathError};
use jitterscope_recording::pipeline::{
    InputChoice, PipelineError, PipelineRecordError, PipelineRecordSettings,
    Places as ThreadPlaces, Schedule, record_pipeline,
};
use jitterscope_recording::{RecordError, RunSettings, WriterThread};
use jitterscope_store::{RunReader, check_label};
use jitterscope_view::pipeline::progress::file_stem;
use jitterscope_view::pipeline::{Format, inter_title, transit_title};
use jitterscope_view::text::{self, Next, brief};
use jitterscope_view::{journal_fault, json, load, pipeline, pipeline_error};
use std::path::Path;

/// Runs `record pipeline`.
///
/// # Errors
/// The arguments contradict each other, nothing could be recorded, or the report cannot be printed.
pub fn run(args: &PipelineArgs, places: &Places) -> anyhow::Result<Exit> {
    measure(args, formats(&args.report), places)
}

/// Runs as `workshop`: with perf-workshop's report by default.
///
/// # Errors
/// As [`run`].
pub fn run_front(args: &WorkshopArgs, places: &Places) -> anyhow::Result<Exit> {
    let asked = formats(&args.all.report);
    measure(
        &args.all,
        if asked.is_empty() {
            vec![Format::Long]
        } else {
            asked
        },
        places,
    )
}

/// `asked`: perf-workshop's reports to print; empty for the brief report.
fn measure(args: &PipelineArgs, asked: Vec<Format>, places: &Places) -> anyhow::Result<Exit> {
    args.gates.of_one_run()?;
    if args.spinners {
        return Err(UsageError(
            "perf-workshop's -s disturbed its threads with others that spin; here nothing does: start a load \
             of your own beside it, or let 'jitterscope selftest' inject disturbances that are known"
                .into(),
        )
        .into());
    }
    beside_a_report(&args.output, args.quiet)?;
    let machine = Machine::host();
    check_label(&args.label).map_err(|error| UsageError(error.to_string()))?;
    let settings = settings(args, places, &machine)?;
    if args.report.contains(&ReportArg::Detailed) {
        writable(&args.files)?;
    }
    let stop = signals::stop_flag(places).context("signal handlers cannot be set")?;
    let mut line = ProgressLine::new(args.quiet, ProbeKind::Pipeline);
    let outcome = record_pipeline(
        &machine,
        &settings,
        of_recording(&args.output),
        &stop,
        &mut line,
    );
    line.clear();
    let outcome = outcome.map_err(usage_if_asked_wrongly)?;
    let delivered = tell(&args.output, &outcome.outputs, args.quiet);
    let printed = print(args, asked, &outcome.path)?;
    leftovers::tell_left_behind(outcome.taken_down);
    match printed {
        Exit::Ok => Ok(delivered),
        other => Ok(other),
    }
}

/// Combines the flags, the properties file and the defaults.
fn settings(
    args: &PipelineArgs,
    places: &Places,
    machine: &Machine,
) -> anyhow::Result<PipelineRecordSettings> {
    let properties = match &args.properties {
        Some(path) => {
            let (properties, made) = load_or_make(path)?;
            if made && !args.quiet {
                output::talk(format_args!(
                    "{} was not there and has been made",
                    path.display()
                ));
            }
            properties
        }
        None => PipelineProperties::default(),
    };
    let journaller = match args.journaller {
        _ if args.two_thread => false,
        Some(switch) => switch == Switch::On,
        None => properties.journaller.unwrap_or(true),
    };
    if !journaller && args.journal.is_some() {
        return Err(
            UsageError("--journal goes with a journaller: add --journaller on".into()).into(),
        );
    }
    let interval = args
        .rate
        .map_or(args.period, |rate| Nanos(1_000_000_000 / rate));
    let Schedule {
        length,
        warm_up_messages,
        records,
    } = args
        .schedule()
        .plan(interval)
        .map_err(usage_if_asked_wrongly)?;
    let place =
        |role, cpu: Option<u32>, priority: Option<u32>| jitterscope_recording::pipeline::Place {
            cpu: cpu.map(CpuId).or_else(|| properties.cpu(role)),
            fifo_priority: priority.or(args.priority),
        };
    let thread_places = ThreadPlaces {
        producer: place(
            PipelineRole::Producer,
            args.producer_cpu,
            args.producer_priority,
        ),
        accumulator: place(
            PipelineRole::Accumulator,
            args.accumulator_cpu,
            args.accumulator_priority,
        ),
        journaller: place(
            PipelineRole::Journaller,
            args.journaller_cpu,
            args.journaller_priority,
        ),
    };
    let mut settings = PipelineRecordSettings {
        run: RunSettings {
            clock: args.clock.kind(),
            trace_buffer_kib: kib(args.trace_buffer),
            trace_limit_bytes: args.trace_limit,
            asked: Vec::new(),
            tuning: None,
            writer: WriterThread::default(),
            label: args.label.clone(),
            runs_dir: places.runs()?,
            command_line: crate::given::given(),
            profile: None,
        },
        record_length: args.message_size as usize,
        input: match &args.input {
            Some(path) => InputChoice::Own(path.clone()),
            None => InputChoice::Made {
                folder: places.cache()?,
                records,
            },
        },
        ring: usize::try_from(args.ring)?,
        interval,
        pacing: match args.pacing {
            PacingArg::Schedule => PipelinePacing::Schedule,
            PacingArg::Ancestor => PipelinePacing::AfterPublication,
        },
        length,
        warm_up_messages,
        pause: args.pause,
        journaller,
        journal: args.journal.as_ref().and_then(|of| of.file.clone()),
        writing: args
            .journal
            .as_ref()
            .map_or(JournalWriting::Mapped, |of| of.writing),
        via: match args.via {
            ViaArg::Ring => PipelineVia::Ring,
            ViaArg::Loopback => PipelineVia::Loopback,
            ViaArg::Unix => PipelineVia::Unix,
            ViaArg::Veth => PipelineVia::Veth,
        },
        places: thread_places,
        slow_above: args.threshold,
        reporting: args.interval,
        trace: !args.no_trace,
        force: args.force,
    };
    settings.run.tuning = machine_tuning::of(machine, &settings.pinned());
    Ok(settings)
}

/// Makes the folder and checks that it is writable, before any measurement.
fn writable(folder: &Path) -> anyhow::Result<()> {
    let trial = format!(".jitterscope-{}", std::process::id());
    HeldDir::named_or_made(folder)
        .and_then(|folder| {
            folder
                .create_new(&trial)
                .and_then(|_| folder.remove_file(&trial))
        })
        .map_err(AccessError::into_io)
        .with_context(|| {
            format!(
                "{} cannot be written; name another folder",
                folder.display()
            )
        })
}

fn usage_if_asked_wrongly(error: PipelineRecordError) -> anyhow::Error {
    match error {
        PipelineRecordError::Misfit(_)
        | PipelineRecordError::Cpu(_)
        | PipelineRecordError::InputSize { .. }
        | PipelineRecordError::NotAJournal(_)
        | PipelineRecordError::NothingLeft { .. }
        | PipelineRecordError::Memory { .. }
        | PipelineRecordError::Pipeline(PipelineError::Ring(_) | PipelineError::Input { .. })
        | PipelineRecordError::Path(MessagePathError::TooLong { .. })
        | PipelineRecordError::WouldHang => UsageError(pipeline_error(&error)).into(),
        PipelineRecordError::Record(RecordError::Output(error)) => told_by_target(error),
        error if error.is_unavailable_here() => UnavailableError(pipeline_error(&error)).into(),
        other => other.into(),
    }
}

/// Prints the report of the stored run, writes the requested files, and returns the exit code.
fn print(args: &PipelineArgs, formats: Vec<Format>, path: &Path) -> anyhow::Result<Exit> {
    let (manifest, summary) = load(path)?;
    let run = RunReader::with_manifest(path, manifest)?;
    let manifest = run.manifest();
    let (Some(result), Some(of_pipeline)) = (&manifest.pipeline, &summary.pipeline) else {
        anyhow::bail!("{} holds no pipeline", path.display())
    };
    if args.json {
        output::json_text(&json::render(&summary)?)?;
    } else {
        if formats.is_empty() && !args.full {
            let next = Next {
                program: program(path),
                advice: step(&run, &summary)?,
                unlike_the_last: None,
            };
            output::result(&brief(&summary, &next, output::style()))?;
        } else if formats.is_empty() {
            // As `report --full` prints it.
            let report = text::render(&summary, output::style());
            let report = with_advice(report, &run, &summary)?;
            output::result(&report.terminal(output::style()))?;
        } else {
            let report = pipeline::render(&summary, of_pipeline, &formats, output::style());
            let report = with_advice(report, &run, &summary)?;
            output::result(&report.terminal(output::style()))?;
        }
    }
    if args.report.contains(&ReportArg::Detailed) {
        detailed(args, manifest, result)?;
    }
    if let Some(end) = result
        .journal
        .as_ref()
        .and_then(|journal| journal.ended.as_ref())
    {
        anyhow::bail!(
            "the journal ended before the measurement: {}",
            journal_fault(&end.why)
        );
    }
    args.gates.hold(args.fail_above, &summary, Exit::Ok)
}

fn formats(asked: &[ReportArg]) -> Vec<Format> {
    let text = |report: &ReportArg| match report {
        ReportArg::Long => Some(Format::Long),
        ReportArg::Short => Some(Format::Short),
        ReportArg::Detailed => None,
    };
    asked.iter().filter_map(text).collect()
}

/// Writes each whole histogram as files.
fn detailed(
    args: &PipelineArgs,
    manifest: &RunManifest,
    result: &PipelineResult,
) -> anyhow::Result<()> {
    let started = manifest.realtime_ns(result.start);
    let length = manifest.rate.nanos(result.end.since(result.start));
    let mut titled = vec![(inter_title(PipelineRole::Producer), &result.producer.inter)];
    for consumer in &result.consumers {
        let name = pipeline::name(consumer.role);
        titled.push((inter_title(consumer.role), &consumer.inter));
        titled.push((transit_title(consumer.role), &consumer.transit));
        titled.push((
            format!("{name} Message Latency From Intended (ns)"),
            &consumer.from_intended,
        ));
    }
    for (title, times) in titled {
        let stem = file_stem(&title, started, &args.label);
        for path in write_message_times(&args.files, &stem, times, (started, length))? {
            if !args.quiet {
                output::talk(format_args!(
                    "Writing full encoded histogram to {}",
                    path.display()
                ));
            }
        }
    }
    Ok(())
}
