//! Words of audit and tune: findings, plans and their outcomes.

mod audit;
mod competitors;
mod default_cpus;
mod findings;
mod journal_json;
mod json;
mod page;
mod plan;
mod plan_reasons;
mod reasons;
mod refusals;
mod remedies;

pub use audit::{audit, explanation, won};
pub use default_cpus::default_cpus;
pub use findings::{finding, wanted};
pub use journal_json::{StatusWithWords, apply_json, rollback_json, status_json};
pub use json::{audit_json, plan_json};
pub use page::chapter;
pub(crate) use page::settles;
pub use plan::{applied, how_to_apply, interrupts, plan, refused, rolled_back, status};
pub use plan_reasons::{boot_by_hand, skip_reason};
pub use reasons::knob_reason;
pub(crate) use refusals::forbidden;
pub use refusals::{not_undone, refusal};
pub use remedies::{NamedRun, advice, first_step};
