//! Opening files and folders that another user can also write to.
//!
//! Root runs this tool in folders that other users can write to. A user who can change a folder can replace one of our
//! files by a link, a pipe or another file at any moment; the path then no longer means the file that was checked. So
//! this module holds a folder open ([`HeldDir`]) and opens its contents relative to it, without following links.
//!
//! | what | how its path is walked |
//! |---|---|
//! | the tool's own files: runs, state | [`HeldDir::trusted`]: every folder on the path belongs to root or to the effective user, and no other user can write to it, unless it is sticky like `/tmp`. Anything else is refused. So a user can record into her own home, but root, who could be misled there, cannot |
//! | what the user names for writing | [`OutputPlace`]: anywhere; but links, existing files, pipes and devices of another user are refused |
//! | what the user names for reading | [`HeldDir::open`], [`open_regular`], [`read_bounded`]: anywhere, links too; regular files only, up to a length |
//!
//! In a user namespace that does not map the machine's root, root's files look like those of every other user outside.
//! There only folders that are root's on every machine, such as `/` and `/tmp`, count as root's.
//!
//! New folders have mode 0700 and new files 0600; only outputs that the user names follow the umask.

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
