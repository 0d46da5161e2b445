//! Which functions the kernel looks into: one list for all instances at once.

use super::Tracefs;
use jitterscope_model::TraceRole;

/// What the names of its instances end with.
pub(super) const ROLE: &str = TraceRole::Graph.as_str();
/// Which functions are looked into, for all instances at once.
pub(super) const FUNCTIONS: &str = "set_graph_function";

/// Looks into no functions any more.
pub(super) fn forget_functions(tracefs: &Tracefs) {
    // What cannot be emptied is found by whoever looks next, for it is no longer free.
    let _ = tracefs
        .writer()
        .empty(&format!("{}/{FUNCTIONS}", tracefs.root()));
}
