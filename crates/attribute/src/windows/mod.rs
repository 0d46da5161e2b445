//! Windows on a CPU's time: each a pure function of one window's slices, which adds what only it knows, as the
//! edges of a spinning probe's gap, the phases of a late wake-up, the stalls of a message's two threads, or what was
//! theft on a CPU that is only watched.

pub(crate) mod gap;
mod holder;
pub(crate) mod late_wakeup;
mod message;
mod named;
mod numbered;
pub(crate) mod passive;
mod shared_culprit;
pub(crate) mod wait;

pub use message::{MessageWindow, split_message};
pub(crate) use named::{Named, Scratch};
pub(crate) use shared_culprit::CulpritCache;
pub use shared_culprit::SharedCulprit;
pub use wait::Slice;
