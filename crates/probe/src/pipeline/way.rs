//! The way of messages from the producer to its consumers: a ring in shared memory, or datagrams through the kernel.

use super::control::PipelineControl;
use super::message::Message;
use disruptor::{EventPoller, Polling, Producer, SingleProducerBarrier};

/// The producer's end.
pub(super) trait Outlet {
    /// Fills the next message and sends it; false if there is no room, without filling one.
    fn try_send(&mut self, control: &PipelineControl, fill: impl FnOnce(&mut Message)) -> bool;

    /// No message follows until [`Outlet::resume`]: consumers need not wait for lost ones.
    fn settle(&mut self) {}

    fn resume(&mut self) {}
}

/// What a consumer found.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum Polled {
    /// Messages, which it has taken.
    Some,
    None,
    /// The producer pauses, and the rest of its messages is lost.
    Settled,
    /// The producer has ended.
    End,
}

/// A consumer's end.
pub(super) trait Inlet {
    /// Takes the messages that have arrived.
    fn poll(&mut self, take: impl FnMut(&Message)) -> Polled;
}

/// Slots of shared memory: nothing is lost, and dropping the producer signals the end.
pub(super) struct Ring<P>(pub(super) P);

impl<P: Producer<Message>> Outlet for Ring<P> {
    #[inline]
    fn try_send(&mut self, _control: &PipelineControl, fill: impl FnOnce(&mut Message)) -> bool {
        self.0.try_publish(fill).is_ok()
    }
}

impl Inlet for EventPoller<Message, SingleProducerBarrier> {
    #[inline]
    fn poll(&mut self, mut take: impl FnMut(&Message)) -> Polled {
        match EventPoller::poll(self) {
            Ok(mut messages) => {
                for message in &mut messages {
                    take(message);
                }
                Polled::Some
            }
            Err(Polling::NoEvents) => Polled::None,
            Err(Polling::Shutdown) => Polled::End,
        }
    }
}
