//! The pipeline probe: producer, accumulator and journaller over a ring buffer.
//!
//! The producer stamps records and publishes them on a schedule. Each consumer stamps what it receives and accounts for
//! every message: transit from the actual and from the intended publication, and the time since the previous message.
//! The first message's predecessor is assumed to have been due one interval earlier, so every account has exactly one
//! entry per message. Nothing is dropped: a full ring makes the producer wait, which is counted and shows in the
//! transit from the intended time.
//!
//! Messages may also travel through the kernel, as datagrams ([`Means::paths`]), and the journal may be written with system
//! calls ([`Means::journal`]). The kernel may lose a datagram; then its consumer has received less than was sent.
//!
//! After the warm-up the three threads allocate nothing, and make no other system calls.

mod account;
mod consumer;
mod control;
mod intervals;
mod journal;
mod message;
mod producer;
mod socket;
#[cfg(test)]
mod tests;
mod way;

pub use account::Times;
pub use control::PipelineControl;
pub use intervals::{SlowInterval, SlowIntervals};
pub use jitterscope_model::{PipelinePacing as Pacing, PipelineRole as Role};
pub use journal::{JournalAccount, JournalFeed};

use account::Scale;
use consumer::{Receiver, Telling};
use disruptor::{BusySpin, build_single_producer};
use intervals::IntervalAccount;
use jitterscope_clock::Clock;
use jitterscope_model::{CpuId, TickRate, Ticks};
use jitterscope_platform::{MessagePaths, PinError, ThreadUsage, thread_usage};
use journal::Journal;
use message::Message;
use producer::Publisher;
use rtrb::{Consumer, RingBuffer};
use std::fs::File;
use std::sync::Arc;
use way::{Inlet, Outlet, Ring};

/// The bytes of a datagram before the record.
pub const DATAGRAM_HEAD: usize = Message::HEAD;

#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Length {
    Messages(u64),
    /// Until the end given to [`PipelineControl::measure`].
    UntilEnd,
}

/// Where one thread runs.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct Place {
    /// The only CPU that it may run on; `None`: all CPUs that the process may use.
    pub cpu: Option<CpuId>,
    /// SCHED_FIFO priority; `None` for the fair class.
    pub fifo_priority: Option<u32>,
}

#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct PipelineSettings {
    pub record_length: usize,
    /// Number of warm-up messages, which do not count.
    pub warm_up_messages: u64,
    /// How much is measured.
    pub length: Length,
    /// Time between publications; zero sends as fast as the ring allows.
    pub interval: Ticks,
    /// How the interval is kept.
    pub pacing: Pacing,
    /// Slots of the ring, a power of two.
    pub ring: usize,
    /// Whether there is a journaller.
    pub journaller: bool,
    /// Messages later than this after their intended time are slow; `None` learns the limit from the warm-up.
    pub slow_above: Option<Ticks>,
    /// Capacity of a consumer's queue of slow messages.
    pub slow_queue: usize,
    /// Length of a reporting interval.
    pub reporting: Ticks,
    /// Complete intervals that may wait to be taken.
    pub reporting_queue: usize,
    /// Where the producer runs.
    pub producer: Place,
    /// Where the accumulator runs.
    pub accumulator: Place,
    /// Where the journaller runs.
    pub journaller_place: Place,
}

impl PipelineSettings {
    /// The threads that will run.
    #[must_use]
    pub fn roles(&self) -> Vec<Role> {
        let mut roles = vec![Role::Producer, Role::Accumulator];
        if self.journaller {
            roles.push(Role::Journaller);
        }
        roles
    }

    /// Where a thread runs.
    #[must_use]
    pub fn place(&self, role: Role) -> Place {
        match role {
            Role::Producer => self.producer,
            Role::Accumulator => self.accumulator,
            Role::Journaller => self.journaller_place,
        }
    }
}

/// A pipeline that cannot be set up.
#[derive(Debug, thiserror::Error)]
pub enum PipelineError {
    /// Pinning or the scheduling class was refused.
    #[error("the {role} cannot be placed: {source}")]
    Place { role: Role, source: PinError },
    /// The ring's size is not a power of two.
    #[error("a ring of {0} slots cannot be made: it must be a power of two, 2 at least")]
    Ring(usize),
    /// The input holds no record.
    #[error("the input of {input} bytes holds no record of {record} bytes")]
    Input { input: usize, record: usize },
    /// A histogram cannot be made.
    #[error("a histogram cannot be made: {0}")]
    Histogram(#[from] hdrhistogram::CreationError),
}

/// What the kernel does for a pipeline. By default nothing.
#[derive(Debug, Default)]
pub struct Means {
    /// Paths for the messages, one for each consumer, in place of the ring.
    pub paths: Option<MessagePaths>,
    /// The journal, open for writing: each record is written to it, in place of mapped memory.
    pub journal: Option<File>,
}

/// A slow message as its consumer saw it.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct SlowMessage {
    pub role: Role,
    /// The consumer's CPU at the reception.
    pub cpu: CpuId,
    /// Its number, from 0 for the first that counts.
    pub sequence: u64,
    pub intended: Ticks,
    pub published: Ticks,
    pub received: Ticks,
    /// Publication of the previous message.
    pub published_before: Ticks,
    /// Reception of the previous message.
    pub received_before: Ticks,
    /// How long the producer waited for a free slot, between intended and actual publication.
    pub waited: Ticks,
}

/// What is read from one consumer while it runs.
pub struct SlowOutput {
    /// Individual slow messages, up to the queue's capacity.
    pub messages: Consumer<SlowMessage>,
    /// All slow messages, per interval.
    pub intervals: SlowIntervals,
}

#[derive(Clone, Debug)]
pub struct ProducerResult {
    /// When the schedule began.
    pub start: Ticks,
    pub end: Ticks,
    /// Number of warm-up messages.
    pub warmed_up: u64,
    pub sent: u64,
    pub inter: Times,
    /// Lateness of the publications.
    pub lateness: Times,
    /// How often the ring was full.
    pub full_waits: u64,
    /// Total of those waits.
    pub full_waited: Ticks,
    /// The longest of those waits.
    pub full_longest: Ticks,
    /// Whether everything was sent; false if it was stopped.
    pub completed: bool,
}

#[derive(Clone, Debug)]
pub struct ConsumerResult {
    pub role: Role,
    pub received: u64,
    /// Messages, including the warm-up, that did not follow their predecessor: always 0.
    pub disordered: u64,
    pub end: Ticks,
    /// From the actual publication to the reception.
    pub transit: Times,
    /// From the intended publication to the reception.
    pub from_intended: Times,
    pub inter: Times,
    /// The threshold of slow messages, from the intended time.
    pub slow_above: Ticks,
    pub slow: u64,
    /// Slow messages without a record, because the queue was full.
    pub slow_dropped: u64,
    /// The journal, if it wrote one.
    pub journal: Option<JournalAccount>,
}

#[derive(Clone, Debug)]
pub enum ThreadResult {
    Producer(ProducerResult),
    Consumer(ConsumerResult),
}

/// The result of a thread, and the kernel's counters for it since the end of its set-up.
pub type Ended = Result<(ThreadResult, ThreadUsage), PipelineError>;
/// A thread's body, to be run on its own thread: places it, warms up, measures.
pub type Body = Box<dyn FnOnce(&Arc<PipelineControl>) -> Ended + Send>;

/// A pipeline with its memory allocated and its threads not yet started.
pub struct Pipeline<S> {
    /// The threads. All must run, or the others wait until [`PipelineControl::stop`].
    pub threads: Vec<(Role, Body)>,
    /// The consumers' slow messages.
    pub slow: Vec<(Role, SlowOutput)>,
    /// Supplies the journal's memory, if there is a journaller.
    pub journal: Option<JournalFeed<S>>,
}

impl<S: AsMut<[u8]> + Send + 'static> Pipeline<S> {
    /// Allocates everything, for messages over the ring and a journal in mapped memory. `input` holds complete records; `S` is a piece of the journal's memory.
    ///
    /// # Errors
    /// The settings are inconsistent.
    pub fn new<C: Clock, I: AsRef<[u8]> + Send + 'static>(
        clock: C,
        rate: TickRate,
        settings: PipelineSettings,
        input: I,
    ) -> Result<Pipeline<S>, PipelineError> {
        Pipeline::with(clock, rate, settings, input, Means::default())
    }

    /// The same, with the kernel in the way of messages or of the journal.
    ///
    /// # Errors
    /// The settings are inconsistent.
    pub fn with<C: Clock, I: AsRef<[u8]> + Send + 'static>(
        clock: C,
        rate: TickRate,
        settings: PipelineSettings,
        input: I,
        means: Means,
    ) -> Result<Pipeline<S>, PipelineError> {
        if !settings.ring.is_power_of_two() || settings.ring < 2 {
            return Err(PipelineError::Ring(settings.ring));
        }
        let (bytes, record) = (input.as_ref().len(), settings.record_length);
        if record == 0 || bytes < record {
            return Err(PipelineError::Input {
                input: bytes,
                record,
            });
        }
        let mut pipeline = Pipeline {
            threads: Vec::new(),
            slow: Vec::new(),
            journal: None,
        };
        if let Some(paths) = means.paths {
            let (outlet, inlets) = socket::ends(paths, record);
            let mut journal = means.journal;
            let roles = [Role::Accumulator, Role::Journaller];
            let mut bodies = Vec::new();
            for (role, inlet) in roles.into_iter().zip(inlets) {
                let journal = match role {
                    Role::Journaller => Some(pipeline.journal(journal.take())),
                    _ => None,
                };
                let slow = pipeline.telling(role, settings)?;
                let parts = (inlet, slow, journal);
                bodies.push((role, Receiver::new(role, (clock, rate), parts, settings)?));
            }
            pipeline.producer(clock, rate, outlet, input, settings)?;
            for (role, receiver) in bodies {
                pipeline.consumer(role, receiver, settings);
            }
            return Ok(pipeline);
        }
        let builder = build_single_producer(settings.ring, || Message::empty(record), BusySpin);
        let (accumulator, builder) = builder.new_event_poller();
        let slow = pipeline.telling(Role::Accumulator, settings)?;
        let parts = (accumulator, slow, None);
        let accumulator = Receiver::new(Role::Accumulator, (clock, rate), parts, settings)?;
        if settings.journaller {
            let (poller, builder) = builder.new_event_poller();
            let journal = pipeline.journal(means.journal);
            let slow = pipeline.telling(Role::Journaller, settings)?;
            let parts = (poller, slow, Some(journal));
            let journaller = Receiver::new(Role::Journaller, (clock, rate), parts, settings)?;
            pipeline.producer(clock, rate, Ring(builder.build()), input, settings)?;
            pipeline.consumer(Role::Accumulator, accumulator, settings);
            pipeline.consumer(Role::Journaller, journaller, settings);
        } else {
            pipeline.producer(clock, rate, Ring(builder.build()), input, settings)?;
            pipeline.consumer(Role::Accumulator, accumulator, settings);
        }
        Ok(pipeline)
    }

    /// The journaller's end of the journal.
    fn journal(&mut self, file: Option<File>) -> Journal<S> {
        match file {
            Some(file) => Journal::into(file),
            None => {
                let (journal, feed) = journal::journal();
                self.journal = Some(feed);
                journal
            }
        }
    }

    fn telling(
        &mut self,
        role: Role,
        settings: PipelineSettings,
    ) -> Result<Telling, PipelineError> {
        let (sender, messages) = RingBuffer::new(settings.slow_queue.max(16));
        let (account, intervals) =
            IntervalAccount::new(settings.reporting, settings.reporting_queue)?;
        self.slow.push((
            role,
            SlowOutput {
                messages,
                intervals,
            },
        ));
        Ok(Telling {
            messages: sender,
            intervals: account,
        })
    }

    fn producer<C: Clock, P: Outlet + Send + 'static, I: AsRef<[u8]> + Send + 'static>(
        &mut self,
        clock: C,
        rate: TickRate,
        ring: P,
        input: I,
        settings: PipelineSettings,
    ) -> Result<(), PipelineError> {
        let mut publisher = Publisher::new(clock, ring, input, settings, Scale::new(rate))?;
        let body = move |control: &Arc<PipelineControl>| {
            set_up(Role::Producer, settings, control, || publisher.prefault())?;
            let before = thread_usage();
            let result = publisher.run(control);
            Ok((ThreadResult::Producer(result), since(before)))
        };
        self.threads.push((Role::Producer, Box::new(body)));
        Ok(())
    }

    fn consumer<C: Clock, R: Inlet + Send + 'static>(
        &mut self,
        role: Role,
        mut receiver: Receiver<C, S, R>,
        settings: PipelineSettings,
    ) {
        let body = move |control: &Arc<PipelineControl>| {
            set_up(role, settings, control, || receiver.prefault())?;
            let before = thread_usage();
            let result = receiver.run(control);
            Ok((ThreadResult::Consumer(result), since(before)))
        };
        self.threads.push((role, Box::new(body)));
    }
}

fn set_up(
    role: Role,
    settings: PipelineSettings,
    control: &PipelineControl,
    prefault: impl FnOnce(),
) -> Result<(), PipelineError> {
    let placed = |source| PipelineError::Place { role, source };
    let place = settings.place(role);
    if let Some(cpu) = place.cpu {
        jitterscope_platform::pin_current_thread(cpu).map_err(placed)?;
    }
    if let Some(priority) = place.fifo_priority {
        jitterscope_platform::set_fifo(priority).map_err(placed)?;
    }
    prefault();
    control.report_ready();
    Ok(())
}

fn since(before: ThreadUsage) -> ThreadUsage {
    let now = thread_usage();
    ThreadUsage {
        page_faults: now.page_faults.saturating_sub(before.page_faults),
        involuntary_switches: now
            .involuntary_switches
            .saturating_sub(before.involuntary_switches),
        cpu_time: now.cpu_time.saturating_sub(before.cpu_time),
    }
}
