//! The knob catalogue, audit, plan, apply and rollback.
//!
//! A [`Knob`] is data: where it is read, which value is wanted, which culprits it answers. [`audit()`] only reads.
//! [`plan()`] lists changes. [`apply()`] makes them after it wrote every original into a journal, [`rollback()`] restores
//! them from the journal alone, and [`status()`] compares the journal with the machine. All changes go through [`MachineWriter`],
//! all reads through [`Machine`](jitterscope_platform::Machine).
#![forbid(unsafe_code)]

mod access;
mod answer;
mod apply;
mod audit;
pub mod catalogue;
mod cmdline;
mod examine;
#[cfg(test)]
mod fake_machine;
mod finding;
mod forbidden;
pub mod glob;
mod goal;
mod gone;
mod in_force;
mod interrupts;
mod journal;
mod knob;
mod knob_reason;
mod left;
mod machine_writer;
mod negligible;
mod notice;
mod op;
mod partition;
mod permit;
mod persist;
mod plan;
mod plan_reason;
mod refusal;
mod remedy;
mod rollback;
mod run_culprits;
mod settings;
mod settles;
mod state_dir;
mod status;
mod threads;
mod tuning_state;
mod value;
mod wanted;

pub use access::Access;
pub use answer::{Answer, Confined, CulpritPattern, Effect, Workers};
pub use apply::{Applied, ApplyError, ApplyReport, OnRefusal, apply, called};
pub use audit::{Audit, AuditEntry, Competes, Competitor, audit, audit_of, competitors};
pub use cmdline::{BootParam, BootValue, Cmdline};
pub use examine::{Examination, Inspection, KnobState};
pub use finding::{FileValue, Finding, Program, Queues};
pub use forbidden::{Forbidden, ValueFlaw};
pub use goal::{DefaultCpus, Goal, GoalError, online_cpus};
pub use gone::GoneBecause;
pub use in_force::{InForceBy, LONGEST_UNDOING, NoTime, realtime_ns};
pub use interrupts::{Counted, InterruptDiff, Interrupts, Rose};
pub use journal::{JournalError, Who};
pub use knob::{
    Conflict, Fact, Group, How, Knob, Mechanism, Place, Profile, Risk, Scope, Setting, Shown,
    ThreadFamily, Want, Weight,
};
pub use knob_reason::KnobReason;
pub use left::{Left, LeftFamily, LeftTogether, Stays};
pub use machine_writer::{HostWriter, MachineWriter};
pub use negligible::{OF_MEASURED, OF_STOLEN, REBOOT_FROM};
pub use notice::{KnobNotice, Notice};
pub use op::{Op, OpFamily, Outcome, Standing};
pub use persist::{BootByHand, BootLine};
pub use plan::{Change, Plan, PlanError, Select, Skipped, plan, plan_of};
pub use plan_reason::{ChangeReason, Measured, SkipReason};
pub use refusal::{Meaning, Refusal};
pub use remedy::{Helps, PinnedProgram, Remedy};
pub use rollback::{
    Drift, Lasts, LastsBecause, OnDrift, RollbackError, RollbackReport, RolledBack, Undoing,
    is_clean, rollback, rollback_only,
};
pub use run_culprits::{Beginning, MeasuredCulprit, RunCulprits, Win};
pub use settles::{InForce, Settles, Sign};
pub use state_dir::{DEFAULT_STATE_DIR, StateDir, StateError};
pub use status::{NowIs, Settling, Status, StatusApply, StatusEntry, status};
pub use tuning_state::{FindingWords, tuning_state};
pub use value::ValueKind;
pub use wanted::{Wanted, WantedValue};
