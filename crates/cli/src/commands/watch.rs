//! `watch`: the black box.

use super::leftovers;
use super::machine_threshold;
use super::machine_tuning;
use super::outputs::told_by_target;
use super::passive;
use super::recording_args::kib;
use super::uploading::Uploads;
use super::watch_args::{WatchArgs, WatchAsk, WatchProbe};
use super::watch_ask;
use super::watch_metrics::{BoundMetrics, MetricsSlot};
use crate::exit::{Exit, UnavailableError, UsageError};
use crate::measured;
use crate::output;
use crate::places::Places;
use crate::signals;
use anyhow::Context;
use jitterscope_model::{CpuSet, Nanos, ProbeKind, SinkError};
use jitterscope_platform::{CpuChoice, Machine, Topology};
use jitterscope_recording::watch::{
    ENDLESS, NoWatch, NotDecidable, Published, Report, Watch, WatchSettings, decidable,
};
use jitterscope_recording::{
    Extra, Observer, Output, Owners, PassiveRecordSettings, RecordError, RecordSettings,
    RunSettings, WriterThread, record, watch_passive,
};
use jitterscope_store::{StoreError, check_label};
use jitterscope_view::{cpus_text, gate_outcome, record_error, watch_moment};
use std::sync::Arc;
use std::sync::atomic::AtomicBool;

/// The label of sections, which no list shows.
const SECTION: &str = "section";
const WARM_UP: Nanos = Nanos(50_000_000);
/// Length of a reporting interval.
const INTERVAL: Nanos = Nanos(1_000_000_000);
/// The largest raw trace of a section, bytes, and the share of the disk's limit that it may take.
const TRACE_LIMIT: u64 = 256 << 20;
const TRACE_SHARE: u64 = 16;

/// Runs `watch`.
///
/// # Errors
/// Nothing can be watched, or a running watch cannot be asked.
pub fn run(args: &WatchArgs, places: &Places) -> anyhow::Result<Exit> {
    match &args.ask {
        None => watch(args, places, None),
        Some(WatchAsk::Save(args)) => watch_ask::save(args),
        Some(WatchAsk::Status(args)) => watch_ask::status(args),
        Some(WatchAsk::Stop(args)) => watch_ask::stop(args),
    }
}

/// What a service adds to a watch.
pub trait Service {
    /// Outputs of the recording besides the watch's own.
    fn outputs<'a>(&self) -> Vec<Output<'a>> {
        Vec::new()
    }

    /// What takes the reports.
    fn report(&self, quiet: bool) -> Box<dyn FnMut(Report)> {
        Box::new(move |report| tell(&report, quiet))
    }

    /// A turn of the running watch, or its end.
    fn turn(&mut self, watch: &mut Watch, serving: &Serving, has_ended: bool);
}

/// What a service needs of the running watch.
pub struct Serving {
    pub chosen: Chosen,
    pub metrics: MetricsSlot,
}

/// The CPUs of a watch, and how it measures them.
#[derive(Clone)]
pub struct Chosen {
    pub cpus: CpuChoice,
    pub kind: ProbeKind,
}

/// What the arguments choose on this machine.
///
/// # Errors
/// A CPU does not exist, or arguments contradict one another.
pub fn chosen(args: &WatchArgs, machine: &Machine) -> anyhow::Result<Chosen> {
    let cpus = measured::choose(machine, args.cpus.as_ref(), "--cpus")?;
    let kind = kind(args, machine, &cpus.cpus)?;
    Ok(Chosen { cpus, kind })
}

/// Checks that every condition can be decided.
///
/// # Errors
/// One cannot.
pub fn decidable_all(
    settings: &WatchSettings,
    chosen: &Chosen,
    args: &WatchArgs,
) -> Result<(), UsageError> {
    for condition in &settings.conditions {
        decidable(&condition.condition, chosen.kind, args.reading.threshold)
            .map_err(|why: NotDecidable| UsageError(format!("--save-if {why}")))?;
    }
    Ok(())
}

/// Watches until it is ended. `service`: what a service adds, and the flag that ends it.
///
/// # Errors
/// Nothing can be watched.
pub fn watch(
    args: &WatchArgs,
    places: &Places,
    service: Option<(Box<dyn Service>, Arc<AtomicBool>)>,
) -> anyhow::Result<Exit> {
    let machine = Machine::host();
    let (service, stop) = match service {
        Some((service, stop)) => (Some(service), stop),
        None => {
            let stop = signals::stop_flag(places).context("signal handlers cannot be set")?;
            (None, stop)
        }
    };
    let serves = service.is_some();
    let user1 = signals::user1_flag().context("signal handlers cannot be set")?;
    let threshold = args.reading.threshold;
    let chosen = chosen(args, &machine)?;
    let settings = settings(args, places)?;
    decidable_all(&settings, &chosen, args)?;
    let Chosen { cpus, kind } = chosen.clone();
    let quiet = args.quiet;
    let report: Box<dyn FnMut(Report)> = match &service {
        Some(service) => service.report(quiet),
        None => Box::new(move |report| tell(&report, quiet)),
    };
    let mut watch =
        Watch::prepare(&machine, settings, &cpus.cpus, user1, report).map_err(usage_if_refused)?;
    let run = RunSettings {
        clock: args.reading.clock.kind(),
        trace_buffer_kib: kib(args.trace_buffer),
        trace_limit_bytes: TRACE_LIMIT.min(args.disk / TRACE_SHARE),
        asked: Vec::new(),
        tuning: machine_tuning::of(&machine, &cpus.cpus),
        writer: WriterThread::default(),
        label: SECTION.into(),
        runs_dir: watch.history().to_path_buf(),
        command_line: crate::given::given(),
        profile: None,
    };
    let uploads = Uploads::of(&args.upload, watch.history(), &places.runs()?)?;
    let mut outputs = watch.outputs(run.tuning.as_ref());
    outputs.extend(service.iter().flat_map(|service| service.outputs()));
    let metrics = MetricsSlot::new(BoundMetrics::bind(&args.metrics)?);
    if let Some(mut service) = service {
        let serving = Serving {
            chosen,
            metrics: metrics.clone(),
        };
        watch.attend(Box::new(move |watch, has_ended| {
            service.turn(watch, &serving, has_ended)
        }));
    }
    let mut observer = Announcer {
        kind,
        cpus: cpus.cpus.clone(),
        quiet,
        metrics: metrics.clone(),
        uploads,
        published: watch.published(),
    };
    let outcome = match kind {
        ProbeKind::Spin => {
            let known = || machine_threshold::of_machine(&places.runs().ok()?, &machine, run.clock);
            let shortest = match threshold {
                None => known().map(|of| of.threshold),
                Some(_) => None,
            };
            let settings = spinning(args, run.clone(), cpus);
            let extra = Extra {
                outputs,
                shortest,
                watch: Some(&mut watch),
                ..Extra::default()
            };
            record(&machine, &settings, extra, &stop, &mut observer)
        }
        _ => {
            let settings = passive_settings(args, run, cpus)?;
            let outputs = (outputs, Some(&mut watch));
            watch_passive(&machine, &settings, outputs, &stop, &mut observer)
        }
    };
    let outcome = outcome.map_err(|error| match error {
        // A service waits for an owner; a user names one.
        RecordError::NoOwner { .. } if serves => error.into(),
        error => usage_if_asked_wrongly(error),
    })?;
    leftovers::tell_left_behind(outcome.taken_down);
    Ok(Exit::Ok)
}

/// Whether a probe spins: an isolated CPU has no owner who would miss its time.
fn kind(args: &WatchArgs, machine: &Machine, cpus: &CpuSet) -> Result<ProbeKind, UsageError> {
    match args.probe {
        WatchProbe::Spin if args.owner.is_some() => {
            let text = "--for names the owner of CPUs that are watched without a probe: leave out --probe spin";
            Err(UsageError(text.into()))
        }
        WatchProbe::Spin => Ok(ProbeKind::Spin),
        WatchProbe::None => Ok(ProbeKind::Passive),
        WatchProbe::Auto => {
            let isolated = Topology::read(machine).isolated;
            let all = !cpus.is_empty() && cpus.difference(&isolated).is_empty();
            match all && args.owner.is_none() {
                true => Ok(ProbeKind::Spin),
                false => Ok(ProbeKind::Passive),
            }
        }
    }
}

/// The settings of a watch.
///
/// # Errors
/// There is no folder for runs, or the label is none.
pub fn settings(args: &WatchArgs, places: &Places) -> anyhow::Result<WatchSettings> {
    check_label(&args.label).map_err(|error| UsageError(error.to_string()))?;
    Ok(WatchSettings {
        runs_dir: places.runs()?,
        label: args.label.clone(),
        keep: args.keep,
        disk: args.disk,
        section: args
            .section
            .unwrap_or_else(|| WatchSettings::default_section(args.keep)),
        before: args.before,
        after: args.after,
        apart: args.apart,
        daily: args.daily,
        conditions: args
            .save_if
            .iter()
            .flat_map(|list| list.0.clone())
            .collect(),
        over: args.over,
        actions: args.on_trigger.0.clone(),
        socket: args.socket.clone(),
    })
}

fn spinning(args: &WatchArgs, run: RunSettings, cpus: CpuChoice) -> RecordSettings {
    RecordSettings {
        run,
        cpus,
        wakeup: None,
        duration: ENDLESS,
        warmup: WARM_UP,
        threshold: args.reading.threshold,
        interval: INTERVAL,
        fifo_priority: None,
        events: Some(args.events.grain()),
        graph: Vec::new(),
    }
}

fn passive_settings(
    args: &WatchArgs,
    run: RunSettings,
    cpus: CpuChoice,
) -> Result<PassiveRecordSettings, UsageError> {
    Ok(PassiveRecordSettings {
        run,
        cpus,
        owners: match &args.owner {
            Some(owner) => passive::named(owner)?,
            None => Owners::Largest,
        },
        duration: ENDLESS,
        look: passive::LOOK,
        threshold: args.reading.threshold.unwrap_or(passive::THRESHOLD),
        interval: INTERVAL,
        events: args.events.grain(),
    })
}

/// Says that the watch has begun.
struct Announcer {
    kind: ProbeKind,
    cpus: CpuSet,
    quiet: bool,
    metrics: MetricsSlot,
    uploads: Option<Uploads>,
    published: Published,
}

impl Observer for Announcer {
    fn measuring(&mut self, threshold: Nanos) {
        self.metrics.serve(&self.published);
        // It inherits the affinity of this thread, which has left the measured CPUs.
        if let Some(uploads) = &mut self.uploads {
            uploads.begin(&self.published);
        }
        if !self.quiet {
            let how = match self.kind {
                ProbeKind::Spin => "with a spinning probe",
                _ => "without a probe",
            };
            output::talk(format_args!(
                "watching {} {how}, stalls from {threshold}; Ctrl-C or 'watch stop' ends it",
                cpus_text(&self.cpus)
            ));
        }
    }

    fn output_failed(&mut self, output: &str, why: &SinkError) {
        output::talk(format_args!("{output}: {why}"));
    }
}

fn tell(report: &Report, quiet: bool) {
    match report {
        Report::Triggered(moment) if !quiet => output::talk(watch_moment(moment)),
        Report::Saved(run) if !quiet => output::talk(format_args!("saved {}", run.display())),
        Report::Triggered(_) | Report::Saved(_) => {}
        Report::Undecided(result) => output::talk(format_args!(
            "--save-if {}: {}",
            result.condition,
            gate_outcome(result)
        )),
        Report::Trouble(what) => output::talk(what),
    }
}

fn usage_if_refused(error: NoWatch) -> anyhow::Error {
    match error {
        NoWatch::Disk { .. } | NoWatch::Keep { .. } => UsageError(error.to_string()).into(),
        NoWatch::Socket(error) => UsageError(format!("--socket: {error}")).into(),
        NoWatch::Control(_) | NoWatch::Claimed(_) | NoWatch::Store(_) => error.into(),
    }
}

fn usage_if_asked_wrongly(error: RecordError) -> anyhow::Error {
    match error {
        RecordError::Threshold { .. }
        | RecordError::WouldHang
        | RecordError::Follow(_)
        | RecordError::NoOwner { .. }
        | RecordError::Store(StoreError::Label { .. }) => UsageError(error.to_string()).into(),
        RecordError::Output(error) => told_by_target(error),
        RecordError::NothingToWatch { .. } => UnavailableError(record_error(&error)).into(),
        error if error.is_unavailable_here() => UnavailableError(record_error(&error)).into(),
        other => other.into(),
    }
}
