//! Which of its arms a boot is of.

/// Which arm this boot is of.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub enum BootArm {
    /// Either: the change needs no reboot.
    #[default]
    Either,
    /// The change is not in force.
    Without,
    /// It is.
    With,
}
