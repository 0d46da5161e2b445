//! The arm of a boot.

/// Which arm can be measured in this boot.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub enum BootArm {
    /// Both: the change needs no reboot.
    #[default]
    Either,
    /// The change is not in force.
    Without,
    With,
}
