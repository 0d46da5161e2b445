//! The pipeline probe: producer, accumulator and journaller over a ring buffer.
//!
//! The producer stamps records and publishes them on a schedule; each consumer stamps what it receives
//! and accounts for every message: transit from the actual and from the intended publication, and the
//! time since the message before. The first message's predecessor is taken to have been due one interval
//! before it, so that every account holds exactly one entry a message. Nothing is thrown away: a full
//! ring makes the producer wait, which is counted and shows in the transit from the intended time.
//!
//! After the warm-up the three threads allocate nothing and make no system call.

mod account;
mod consumer;
mod control;
mod intervals;
mod journal;
mod message;
mod producer;
#[cfg(test)]
mod tests;

pub use account::Times;
pub use control::PipelineControl;
pub use intervals::{SlowInterval, SlowIntervals};
pub use jitterscope_model::{PipelinePacing as Pacing, PipelineRole as Role};
pub use journal::{JournalAccount, JournalFeed};

use account::Scale;
use consumer::{Receiver, Telling};
use disruptor::{BusySpin, Producer, build_single_producer};
use intervals::IntervalAccount;
use jitterscope_clock::Clock;
use jitterscope_model::{CpuId, TickRate, Ticks};
use jitterscope_platform::{PinError, ThreadUsage, thread_usage};
use message::Message;
use producer::Publisher;
use rtrb::{Consumer, RingBuffer};
use std::sync::Arc;

/// How much is sent.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Length {
    /// This many messages.
    Messages(u64),
    /// Until the end given to [`PipelineControl::measure`].
    UntilEnd,
}

/// Where one thread runs.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct Place {
    /// The only CPU it may run on; `None` leaves it where the process may run.
    pub cpu: Option<CpuId>,
    /// SCHED_FIFO priority; `None` for the fair class.
    pub fifo_priority: Option<u32>,
}

/// How a pipeline is set.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct PipelineSettings {
    /// Bytes of a record.
    pub record_length: usize,
    /// Messages that do not count, before those that do.
    pub warm_up_messages: u64,
    /// How much is measured.
    pub length: Length,
    /// Time between publications; zero sends as fast as the ring takes it.
    pub interval: Ticks,
    /// How the interval is kept.
    pub pacing: Pacing,
    /// Slots of the ring, a power of two.
    pub ring: usize,
    /// Whether there is a journaller.
    pub journaller: bool,
    /// Messages this much after their intended time are slow; `None` learns it from the warm-up.
    pub slow_above: Option<Ticks>,
    /// Slow messages that fit in a consumer's queue.
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
    /// The threads that there will be.
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
    Place {
        /// Which thread.
        role: Role,
        /// Why.
        source: PinError,
    },
    /// The ring's size is no power of two.
    #[error("a ring of {0} slots cannot be made: it must be a power of two, 2 at least")]
    Ring(usize),
    /// The input holds no record.
    #[error("the input of {input} bytes holds no record of {record} bytes")]
    Input {
        /// Its length.
        input: usize,
        /// A record's length.
        record: usize,
    },
    /// A histogram cannot be made.
    #[error("a histogram cannot be made: {0}")]
    Histogram(#[from] hdrhistogram::CreationError),
}

/// A message that took long, as its consumer saw it.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct SlowMessage {
    /// Which consumer.
    pub role: Role,
    /// Where it ran when it received it.
    pub cpu: CpuId,
    /// Its number, from 0 for the first that counts.
    pub sequence: u64,
    /// When it should have been published.
    pub intended: Ticks,
    /// When it was.
    pub published: Ticks,
    /// When it was received.
    pub received: Ticks,
    /// When the message before it was published.
    pub published_before: Ticks,
    /// When the message before it was received.
    pub received_before: Ticks,
    /// How long the producer waited for a free slot, within intended to published.
    pub waited: Ticks,
}

/// What is taken of one consumer while it runs.
pub struct SlowOutput {
    /// Slow messages one by one, as long as there is room.
    pub messages: Consumer<SlowMessage>,
    /// All of them, by interval.
    pub intervals: SlowIntervals,
}

/// What the producer did.
#[derive(Clone, Debug)]
pub struct ProducerResult {
    /// When the schedule began.
    pub start: Ticks,
    /// The last publication.
    pub end: Ticks,
    /// Messages of the warm-up.
    pub warmed_up: u64,
    /// Messages that count.
    pub sent: u64,
    /// Time between publications.
    pub inter: Times,
    /// How late publications were.
    pub lateness: Times,
    /// How often it found the ring full.
    pub full_waits: u64,
    /// How long it waited then, in all.
    pub full_waited: Ticks,
    /// The longest of these waits.
    pub full_longest: Ticks,
    /// Whether everything was sent; false when it was stopped.
    pub completed: bool,
}

/// What a consumer did.
#[derive(Clone, Debug)]
pub struct ConsumerResult {
    /// Which one.
    pub role: Role,
    /// Messages that count.
    pub received: u64,
    /// Messages, warm-up included, that did not follow their predecessor: always 0.
    pub disordered: u64,
    /// The last reception.
    pub end: Ticks,
    /// From the actual publication to the reception.
    pub transit: Times,
    /// From the intended publication to the reception.
    pub from_intended: Times,
    /// Time between receptions.
    pub inter: Times,
    /// What counted as slow, from the intended time.
    pub slow_above: Ticks,
    /// Slow messages.
    pub slow: u64,
    /// Those without a record, for the queue was full.
    pub slow_dropped: u64,
    /// The journal, if it wrote one.
    pub journal: Option<JournalAccount>,
}

/// What one thread did.
#[derive(Clone, Debug)]
pub enum ThreadResult {
    /// The producer.
    Producer(ProducerResult),
    /// Accumulator or journaller.
    Consumer(ConsumerResult),
}

/// How a thread ended: what it did, and what the kernel counted for it from the end of its set-up on.
pub type Ended = Result<(ThreadResult, ThreadUsage), PipelineError>;
/// A thread's body, to be run on a thread of its own: places it, warms up, measures.
pub type Body = Box<dyn FnOnce(&Arc<PipelineControl>) -> Ended + Send>;

/// A pipeline, its memory allocated, its threads not yet started.
pub struct Pipeline<S> {
    /// The threads. All must run, or the others wait until [`PipelineControl::stop`].
    pub threads: Vec<(Role, Body)>,
    /// The consumers' slow messages.
    pub slow: Vec<(Role, SlowOutput)>,
    /// Takes the journal's memory, when there is a journaller.
    pub journal: Option<JournalFeed<S>>,
}

impl<S: AsMut<[u8]> + Send + 'static> Pipeline<S> {
    /// Allocates everything. `input` holds whole records; `S` is a piece of the journal's memory.
    ///
    /// # Errors
    /// The settings do not fit each other.
    pub fn new<C: Clock, I: AsRef<[u8]> + Send + 'static>(
        clock: C,
        rate: TickRate,
        settings: PipelineSettings,
        input: I,
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
        let builder = build_single_producer(settings.ring, || Message::empty(record), BusySpin);
        let (accumulator, builder) = builder.new_event_poller();
        let slow = pipeline.telling(Role::Accumulator, settings)?;
        let accumulator = Receiver::<C, S>::new(
            Role::Accumulator,
            (clock, rate),
            accumulator,
            slow,
            None,
            settings,
        )?;
        if settings.journaller {
            let (poller, builder) = builder.new_event_poller();
            let (journal, feed) = journal::journal();
            let slow = pipeline.telling(Role::Journaller, settings)?;
            let journaller = Receiver::new(
                Role::Journaller,
                (clock, rate),
                poller,
                slow,
                Some(journal),
                settings,
            )?;
            pipeline.journal = Some(feed);
            pipeline.producer(clock, rate, builder.build(), input, settings)?;
            pipeline.consumer(Role::Accumulator, accumulator, settings);
            pipeline.consumer(Role::Journaller, journaller, settings);
        } else {
            pipeline.producer(clock, rate, builder.build(), input, settings)?;
            pipeline.consumer(Role::Accumulator, accumulator, settings);
        }
        Ok(pipeline)
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

    fn producer<
        C: Clock,
        P: Producer<Message> + Send + 'static,
        I: AsRef<[u8]> + Send + 'static,
    >(
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

    fn consumer<C: Clock>(
        &mut self,
        role: Role,
        mut receiver: Receiver<C, S>,
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
