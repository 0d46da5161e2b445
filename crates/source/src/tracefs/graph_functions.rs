//! The list of functions that the kernel traces, which all instances share.

use super::Tracefs;
use jitterscope_model::TraceRole;

/// The suffix of its instances' names.
pub(super) const ROLE: &str = TraceRole::Graph.as_str();
/// The list of functions, which all instances share.
pub(super) const FUNCTIONS: &str = "set_graph_function";

/// Empties the list of functions.
pub(super) fn forget_functions(tracefs: &Tracefs) {
    // If this fails, the next user sees that the list is not free.
    let _ = tracefs.empty(&format!("{}/{FUNCTIONS}", tracefs.root()));
}
