//! Where on the victim's way a part was spent.

use crate::words::open_words;

open_words! {
    /// What a part of a stall held up: a sleeper's way to its wake-up, a message's way to its reader, or a
    /// thread's way to a CPU. A spinning victim has none.
    Phase {
        /// Of a wake-up: the timer had not fired though the CPU was not idle.
        LateTimer = "late timer",
        /// Of a wake-up: the CPU was in an idle state: its exit, and the timer's own lateness, which cannot
        /// be told apart.
        IdleExit = "idle exit",
        /// Of a wake-up: an interrupt or a softirq ran.
        Interrupt = "interrupt",
        /// Of a wake-up: the victim was woken, and a more urgent thread ran.
        HigherPriority = "higher priority",
        /// Of a wake-up: the victim was woken, and a thread that is no more urgent still ran.
        RunQueue = "run-queue wait",
        /// Of a wake-up: the victim could have run, or was stopped, and was not let.
        Withheld = "not let run",
        /// Of a wake-up: the kernel was on its way to the victim.
        Dispatch = "dispatch",
        /// Of a message: the producer did not get on when it was due.
        ProducerStalled = "producer stalled",
        /// Of a message: the ring had no free slot, and no stall of the consumer explains it.
        RingFull = "ring full",
        /// Of a message: the consumer had no CPU.
        ConsumerNotRunning = "consumer not running",
        /// Of a message: the consumer had its CPU, and an interrupt ran on it.
        ConsumerInterrupted = "consumer interrupted",
        /// Of a message: both ran; earlier messages were dealt with first.
        Queueing = "queueing",
        /// Of a message: nothing that was recorded explains it.
        Unexplained = "unexplained",
        /// Of a thread: the CPU was taken from it while it was runnable.
        Preempted = "preempted",
        /// Of a thread: it was woken, and had to wait for a CPU.
        WaitAfterWakeUp = "wait after wake-up",
        /// Of a thread: it kept its CPU, and an interrupt ran on it.
        Interrupted = "interrupted",
        /// Of a thread: a stop signal or a tracer did not let it run.
        Stopped = "stopped",
        /// Not known: records were lost.
        LostRecords = "lost records",
        /// Not known: the stored run does not say.
        NoVerdict = "no verdict",
    }
}
