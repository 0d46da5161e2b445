//! Records the kernel stacks of threads that go to sleep, in an instance of its own.
//!
//! The instance has `sched_switch` only, of the followed threads only (`set_event_pid`), and only where the thread that
//! leaves the CPU goes to sleep (a filter). The option `stacktrace` adds that thread's stack to each record. With
//! `event-fork` the kernel itself adds the threads and processes that a followed thread makes.

use super::instance::Instance;
use super::pipe::{CpuLoss, Drained};
use super::side::Side;
use super::{Role, TraceError, Tracefs};
use crate::context::{FormatText, TraceContext};
use crate::stacks::{RECORD, SYSTEM};
use jitterscope_model::{
    ClockKind, CpuId, CpuSet, SourceLoss, SourceProblem, SourceReport, SourceStatus, TracefsFlaw,
};

/// The source's name in reports.
const NAME: &str = "stacks";
/// The event.
const SWITCH: &str = "events/sched/sched_switch";
/// The event that shows what a record costs.
const PRICED: &str = "events/task/task_rename/enable";
/// The option that adds stacks.
const OPTION: &str = "options/stacktrace";
/// Sleep states of `prev_state`: interruptible, uninterruptible, parked and idle. Threads that stop or end do not sleep,
/// and a preempted thread has another bit.
const ASLEEP: u64 = 0x01 | 0x02 | 0x40 | 0x80;
/// The longest list of threads that is written at once, bytes.
const LONGEST_LIST: usize = 2048;

/// Whose stacks to record.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct StackSettings {
    /// CPUs whose switches are recorded.
    pub cpus: CpuSet,
    /// The clock of the other instances.
    pub clock: ClockKind,
    /// Buffer of each CPU, KiB. A sleep takes about 250 bytes.
    pub buffer_kb_per_cpu: u64,
    /// Whether threads and processes that a followed thread makes are followed, too.
    pub children: bool,
}

/// Whether an instance can record stacks, without making one.
///
/// # Errors
/// The kernel was built without stacks of kernel code, or tracefs is unusable.
pub fn stack_support(tracefs: &Tracefs) -> Result<(), TraceError> {
    let (root, machine) = (tracefs.root(), tracefs.machine());
    let format = format();
    if !machine.exists(format!("{root}/{format}")) {
        return Err(missing(&format));
    }
    // Only some users may list the options.
    let options = machine.list(format!("{root}/options"));
    if !options.is_empty() && !machine.exists(format!("{root}/{OPTION}")) {
        return Err(missing(OPTION));
    }
    Ok(())
}

/// The description of a stack, below the root and below an instance.
fn format() -> String {
    format!("events/{SYSTEM}/{RECORD}/format")
}

fn missing(file: &str) -> TraceError {
    TraceError::NotSupported {
        flaw: TracefsFlaw::Missing { file: file.into() },
    }
}

/// A recording of stacks. Dropping it ends it and removes the instance.
#[derive(Debug)]
pub struct SleepStacks {
    side: Side,
    cpus: CpuSet,
    buffer: Vec<u8>,
    /// Whether a thread is followed: without any, the kernel would record all threads.
    begun: bool,
}

impl SleepStacks {
    /// Makes the instance. It records nothing before [`SleepStacks::follow`].
    ///
    /// # Errors
    /// The kernel cannot record stacks in an instance, or refuses a setting. Then nothing is left behind.
    pub fn start(tracefs: &Tracefs, settings: &StackSettings) -> Result<SleepStacks, TraceError> {
        stack_support(tracefs)?;
        let instance = Instance::create(tracefs, Role::Stacks.as_str())?;
        let (clock, kb) = (settings.clock, settings.buffer_kb_per_cpu);
        let mut side = Side::without_events(instance, clock, &settings.cpus, kb)?;
        let text = side.instance().read(&format())?;
        side.formats.push(FormatText {
            system: SYSTEM.into(),
            event: RECORD.into(),
            text,
        });
        let instance = side.instance();
        if !instance.exists(OPTION) {
            return Err(missing(OPTION));
        }
        instance.write(OPTION, "1")?;
        if settings.children {
            instance.write("options/event-fork", "1")?;
        }
        instance.write(
            &format!("{SWITCH}/filter"),
            &format!("prev_state & {ASLEEP}"),
        )?;
        instance.write(&format!("{SWITCH}/enable"), "1")?;
        side.open_pipes(&settings.cpus)?;
        let buffer = vec![0; side.layout.page_size()];
        Ok(SleepStacks {
            side,
            cpus: settings.cpus.clone(),
            buffer,
            begun: false,
        })
    }

    /// Records a thread's renames of itself with their stacks, or ends that and forgets them, so that the cost of a stack
    /// can be measured before any thread is followed. Sleeps are recorded meanwhile, too.
    ///
    /// # Errors
    /// The kernel refuses.
    pub fn price(&mut self, thread: Option<i32>) -> Result<(), TraceError> {
        let Some(thread) = thread else {
            self.side.set_tracing(false)?;
            let instance = self.side.instance();
            instance.write(PRICED, "0")?;
            instance.empty("set_event_pid")?;
            return self.side.forget(&mut self.buffer);
        };
        let instance = self.side.instance();
        instance.write("set_event_pid", &thread.to_string())?;
        instance.write(PRICED, "1")?;
        self.side.set_tracing(true)
    }

    /// Adds the format that decoding its pages needs.
    pub fn describe(&self, context: &mut TraceContext) {
        context.formats.extend(self.side.formats.iter().cloned());
    }

    /// From now on records the stacks of these threads, too.
    ///
    /// # Errors
    /// The kernel refuses.
    pub fn follow(&mut self, threads: &[i32]) -> Result<(), TraceError> {
        let mut list = String::new();
        for tid in threads.iter().filter(|tid| **tid > 0) {
            list += &format!("{tid} ");
            if list.len() > LONGEST_LIST {
                self.add(&std::mem::take(&mut list))?;
            }
        }
        if list.is_empty() {
            Ok(())
        } else {
            self.add(&list)
        }
    }

    fn add(&mut self, list: &str) -> Result<(), TraceError> {
        // A write adds to the list.
        self.side.instance().write("set_event_pid", list)?;
        if !std::mem::replace(&mut self.begun, true) {
            self.side.set_tracing(true)?;
        }
        Ok(())
    }

    /// The CPUs whose switches are recorded.
    #[must_use]
    pub fn cpus(&self) -> &CpuSet {
        &self.cpus
    }

    /// As [`Recorder::drain`](super::Recorder::drain).
    ///
    /// # Errors
    /// [`TraceError::NoCpu`]: the CPU has gone offline.
    pub fn drain(
        &mut self,
        cpu: CpuId,
        sink: &mut impl FnMut(&[u8]),
    ) -> Result<Drained, TraceError> {
        let limit = self.side.buffer_pages * 2 + 2;
        let Some(pipe) = self.side.pipes.iter_mut().find(|pipe| pipe.cpu == cpu) else {
            return Ok(Drained::default());
        };
        pipe.drain(&self.side.layout, &mut self.buffer, limit, sink)
    }

    /// Ends recording; the buffers can still be drained.
    ///
    /// # Errors
    /// The kernel refuses (it does not, in practice).
    pub fn stop(&mut self) -> Result<(), TraceError> {
        self.side.set_tracing(false)
    }

    /// The state of this source. Call it after the last drain.
    #[must_use]
    pub fn report(&self) -> SourceReport {
        let of = |pipe: &super::pipe::Pipe| {
            CpuLoss {
                stats: self.side.stats(pipe.cpu),
                ..pipe.loss
            }
            .total()
        };
        let lost = self.side.pipes.iter().map(of).fold(0, u64::saturating_add);
        if lost == 0 {
            return SourceReport::available(NAME);
        }
        SourceReport {
            lost,
            ..SourceReport::limited(
                NAME,
                SourceStatus::Degraded,
                SourceProblem::StacksLost { lost },
                SourceLoss::SomeBlockReasons,
            )
        }
    }

    /// The same where nobody asked for stacks.
    #[must_use]
    pub fn not_asked() -> SourceReport {
        let problem = SourceProblem::StacksNotAsked;
        SourceReport::limited(
            NAME,
            SourceStatus::Absent,
            problem,
            SourceLoss::BlockReasons,
        )
    }

    /// The same for stacks that can be recorded: without names of functions they show no reasons.
    #[must_use]
    pub fn named(symbols: &SourceReport) -> SourceReport {
        if symbols.status == SourceStatus::Available {
            return SourceReport::available(NAME);
        }
        SourceReport {
            problems: symbols.problems.clone(),
            losses: vec![SourceLoss::BlockReasons],
            ..SourceReport::of_status(NAME, symbols.status.clone())
        }
    }

    /// The same where stacks cannot be recorded.
    #[must_use]
    pub fn refused(error: &TraceError) -> SourceReport {
        super::refused(NAME, SourceLoss::BlockReasons, error)
    }
}
