//! Windows on a CPU's time. Each is a pure function of one window's slices, and adds what is specific to its kind: the
//! edges of a spinning probe's gap, the phases of a late wake-up, the stalls of a message's two threads, or theft on a
//! CPU that is only watched.

pub(crate) mod gap;
mod holder;
pub(crate) mod late_wakeup;
mod message;
mod named;
mod numbered;
pub(crate) mod passive;
mod shared_culprit;
pub(crate) mod throttled;
pub(crate) mod wait;

pub use message::{MessageWindow, split_message};
pub(crate) use named::{Named, Scratch};
pub(crate) use shared_culprit::CulpritCache;
pub use shared_culprit::SharedCulprit;
pub use wait::Slice;
