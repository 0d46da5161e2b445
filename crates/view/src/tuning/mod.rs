//! What audit and tune say: findings, plans, what became of them.

mod audit;
mod plan;

pub use audit::{NamedRun, advice, audit, explanation, first_step, won};
pub use plan::{applied, how_to_apply, interrupts, plan, refused, rolled_back, status};
