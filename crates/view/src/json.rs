//! JSON for programs: the summary as it is, and what it says in words beside it.

use crate::warnings::warning;
use jitterscope_analyze::RunSummary;

/// One run, indented, with a newline at its end. Each warning has its sentences as `text` beside its fields.
///
/// # Errors
/// None in practice: the summary has no maps that JSON cannot hold.
pub fn render(summary: &RunSummary) -> Result<String, serde_json::Error> {
    let mut summary = summary.clone();
    for said in &mut summary.warnings {
        said.text = warning(&said.warning);
    }
    let mut text = serde_json::to_string_pretty(&summary)?;
    text.push('\n');
    Ok(text)
}
