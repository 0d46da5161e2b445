//! Opening files and folders that somebody else may have had a hand in.
//!
//! Root runs this tool in folders that other users can write to. Whoever may change a folder can put a
//! link, a pipe or another file where one of ours was a moment ago; a path is then no longer the thing
//! that was looked at. So a folder is held open ([`HeldDir`]) and what is in it is opened relative to it,
//! without following links.
//!
//! | what | how its path is walked |
//! |---|---|
//! | what the tool keeps for itself: runs, state | [`HeldDir::trusted`]: every folder on the way belongs to root or to the effective user, and nobody else may write to it, unless it is sticky like `/tmp`. Anything else is refused. So a user records into her own home, and root, who could be led astray there, does not |
//! | what the user names to be written | [`OutputPlace`]: anywhere, but no link is followed, no file written to and no pipe or device used that belongs to another user |
//! | what the user names to be read | [`HeldDir::open`], [`open_regular`], [`read_bounded`]: anywhere, links too; regular files only, up to a length |
//!
//! Folders are made with mode 0700 and files with 0600; only what the user names as an output follows
//! the umask.

mod dir;
mod error;
mod output;
mod regular;
mod tree;
mod walk;

pub use dir::{DirEntry, HeldDir};
pub use error::AccessError;
pub use output::{OpenedOutput, OutputPlace};
pub use regular::{open_regular, read_bounded, read_bounded_from};
