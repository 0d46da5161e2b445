//! The phase of the victim's wait in which a part was spent.

use crate::words::open_words;

open_words! {
    /// The phase in which a part of a stall was spent: on a sleeper's way to its wake-up, a message's way to its
    /// reader, or a thread's way to a CPU. A spinning victim has none.
    Phase {
        /// Wake-up: the timer had not fired although the CPU was not idle.
        LateTimer = "late timer",
        /// Wake-up: the CPU was in an idle state. This is the exit from it plus the timer's own lateness, which cannot
        /// be separated.
        IdleExit = "idle exit",
        /// Wake-up: an interrupt or a softirq ran.
        Interrupt = "interrupt",
        /// Wake-up: the victim was runnable, and a thread of higher priority ran.
        HigherPriority = "higher priority",
        /// Wake-up: the victim was runnable, and a thread of no higher priority still ran.
        RunQueue = "run-queue wait",
        /// Wake-up: the victim was runnable but throttled, or it was stopped.
        Withheld = "not let run",
        /// Wake-up: the kernel was switching to the victim.
        Dispatch = "dispatch",
        /// Message: the producer stalled when the message was due.
        ProducerStalled = "producer stalled",
        /// Message: the ring had no free slot, and no stall of the consumer explains it.
        RingFull = "ring full",
        /// Message: the consumer had no CPU.
        ConsumerNotRunning = "consumer not running",
        /// Message: the consumer had its CPU, and an interrupt ran on it.
        ConsumerInterrupted = "consumer interrupted",
        /// Message: it was on its way through the kernel, and what held up the producer's system call held it up.
        Delivery = "delivery",
        /// Message: both threads ran; earlier messages were processed first.
        Queueing = "queueing",
        /// Message: no record explains it.
        Unexplained = "unexplained",
        /// Thread: it was preempted while runnable.
        Preempted = "preempted",
        /// Thread: it was woken, and had to wait for a CPU.
        WaitAfterWakeUp = "wait after wake-up",
        /// Thread: it kept its CPU, and an interrupt ran on it.
        Interrupted = "interrupted",
        /// Thread: a stop signal or a tracer stopped it.
        Stopped = "stopped",
        /// Unknown: records were lost.
        LostRecords = "lost records",
        /// Unknown: the stored run does not tell.
        NoVerdict = "no verdict",
    }
}
