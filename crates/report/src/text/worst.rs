//! The longest stalls, each decomposed in a line.

use super::Page;
use crate::number::{count, moment};
use crate::style::{Tone, fit};
use jitterscope_analyze::{RunSummary, Simultaneous, WorstStall};
use unicode_width::UnicodeWidthStr;

pub(super) fn render(page: &mut Page, summary: &RunSummary) {
    let Some(first) = summary.worst.first() else { return };
    let remark = if first.parts.is_empty() {
        String::new()
    } else {
        "report --stall N shows one as a timeline".to_owned()
    };
    page.heading("WORST STALLS", &remark);
    page.line(&page.style.paint(Tone::Dim, "   length         after  cpu    stall  made of"));
    for stall in &summary.worst {
        row(page, stall);
    }
    if let Some(together) = &summary.simultaneous {
        simultaneous(page, together);
    }
}

fn row(page: &mut Page, stall: &WorstStall) {
    let numbers = format!(
        "{:>9} {:>13} {:>4} {:>8}  ",
        stall.duration_ns.to_string(),
        moment(stall.start_offset_ns),
        stall.cpu,
        stall.stall.0
    );
    let room = page.style.columns().saturating_sub(numbers.len());
    page.line(&format!("{numbers}{}", made_of(stall, room)));
}

/// `late interrupt 88 %, tick_nohz_handler 9 %, +2 more`, within `room`.
fn made_of(stall: &WorstStall, room: usize) -> String {
    let share = |part: &jitterscope_analyze::WorstPart| {
        let percent = part.net_ns.0 as f64 * 100.0 / stall.duration_ns.0.max(1) as f64;
        if percent < 1.0 { "<1 %".to_owned() } else { format!("{percent:.0} %") }
    };
    let mut text = String::new();
    for (at, part) in stall.parts.iter().enumerate() {
        let left = stall.parts.len() - at;
        let share = share(part);
        let separator = if at == 0 { "" } else { ", " };
        // The first part is always told, if need be cut; a later one only when `+n more` fits behind it.
        let reserve = if left > 1 { format!(", +{} more", left - 1).len() } else { 0 };
        let space = room.saturating_sub(text.width() + separator.len() + share.len() + 1 + reserve);
        let name = if at == 0 { fit(&part.name, space) } else { crate::style::tame(&part.name) };
        if name.width() > space {
            text += &format!(", +{left} more");
            break;
        }
        text += &format!("{separator}{name} {share}");
    }
    text
}

fn simultaneous(page: &mut Page, together: &Simultaneous) {
    if together.groups == 0 {
        return;
    }
    let text = format!(
        "{} times stalls began together (within {}) on several CPUs, {} times on all of them; chance alone \
         would give {}.",
        count(together.groups),
        together.window_ns,
        count(together.on_all_cpus),
        match together.groups_by_chance {
            n if n < 0.1 => "fewer than 0.1".to_owned(),
            n => format!("{n:.1}"),
        },
    );
    page.prose(None, 2, &text);
}
