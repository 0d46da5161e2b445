//! JSON for programs: the summary as it is.

use jitterscope_analyze::RunSummary;

/// One run, indented, with a newline at its end.
///
/// # Errors
/// None in practice: the summary has no maps that JSON cannot hold.
pub fn render(summary: &RunSummary) -> Result<String, serde_json::Error> {
    let mut text = serde_json::to_string_pretty(summary)?;
    text.push('\n');
    Ok(text)
}
