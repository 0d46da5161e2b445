//! The lateness of wake-ups.

use super::markup::Markup;
use crate::report::Links;
use crate::text::wakeup;
use jitterscope_analyze::{RunSummary, WakeupSummary};

pub(super) fn render(body: &mut Markup, summary: &RunSummary, of: &WakeupSummary) {
    body.section("lateness", "Lateness");
    for report in [
        wakeup::both(of),
        wakeup::cpus(summary, of, usize::MAX),
        wakeup::where_it_went(summary, of),
    ] {
        report.html(body, &Links::default());
    }
    body.end();
}
