//! The longest stalls, each with its parts in a line.

use super::Page;
use crate::number::{count, moment};
use crate::style::{Tone, fit};
use jitterscope_analyze::{RunSummary, Simultaneous, WorstStall};
use jitterscope_model::{CpuSet, Nanos};
use unicode_width::UnicodeWidthStr;

/// Columns for the CPUs of simultaneous stalls; more CPUs are counted.
const LIST: usize = 9;

pub(super) fn render(page: &mut Page, summary: &RunSummary) {
    let Some(first) = summary.worst.first() else {
        return;
    };
    let named = !first.parts.is_empty() && summary.withheld().is_empty();
    let remark = if !named {
        String::new()
    } else {
        "report --stall STALL shows one as a timeline".to_owned()
    };
    let title = if summary.wakeup.is_some() {
        "WORST WAKE-UPS"
    } else {
        "WORST STALLS"
    };
    page.heading(title, &remark);
    let made_of = if named { "  made of" } else { "" };
    page.line(&page.style.paint(
        Tone::Dim,
        &format!("  #   length     after  cpu   stall{made_of}"),
    ));
    for stall in &summary.worst {
        row(page, stall, named);
    }
    if let Some(together) = &summary.simultaneous {
        let what = if summary.wakeup.is_some() {
            "Late wake-ups"
        } else {
            "Stalls"
        };
        simultaneous(page, what, together);
    }
}

fn row(page: &mut Page, stall: &WorstStall, named: bool) {
    let numbers = format!(
        "{:>3} {:>8} {:>9} {:>4} {:>7}  ",
        stall.rank.unwrap_or_default(),
        stall.duration_ns.to_string(),
        moment(stall.start_offset_ns),
        stall.cpu,
        stall.stall.0
    );
    let room = page.style.columns().saturating_sub(numbers.len());
    let cpus = stall.together.as_ref().map(|together| {
        let others: CpuSet = together
            .cpus
            .iter()
            .filter(|cpu| *cpu != stall.cpu)
            .collect();
        let list = others.to_string();
        let cpus = match others.len() {
            1 => format!("with CPU {list}"),
            _ if list.len() <= LIST => format!("with CPUs {list}"),
            n => format!("with {n} CPUs"),
        };
        if stall.parts.is_empty() || !named {
            cpus
        } else {
            format!("{cpus}: ")
        }
    });
    let cpus = cpus.unwrap_or_default();
    let parts = if named {
        made_of(stall, room.saturating_sub(cpus.len()))
    } else {
        String::new()
    };
    page.line(&format!(
        "{numbers}{}{parts}",
        page.style.paint(Tone::Strong, &cpus)
    ));
}

/// `late interrupt 88 %, tick_nohz_handler 9 %, +2 more`, within `room`.
fn made_of(stall: &WorstStall, room: usize) -> String {
    let share = |net: Nanos| {
        // Rounded down, so that only all of a stall is 100 %.
        match net.0.saturating_mul(100) / stall.duration_ns.0.max(1) {
            0 => "<1 %".to_owned(),
            percent => format!("{percent} %"),
        }
    };
    let mut text = String::new();
    let culprits = stall.by_culprit();
    for (at, (who, net)) in culprits.iter().enumerate() {
        let left = culprits.len() - at;
        let share = share(*net);
        let separator = if at == 0 { "" } else { ", " };
        // The first part always appears, cut if necessary; a later one only if `+n more` fits after it.
        let reserve = if left > 1 {
            format!(", +{} more", left - 1).len()
        } else {
            0
        };
        let space = room.saturating_sub(text.width() + separator.len() + share.len() + 1 + reserve);
        let name = who.name();
        let name = if at == 0 {
            fit(&name, space)
        } else {
            crate::style::tame(&name)
        };
        if name.width() > space {
            text += &format!(", +{left} more");
            break;
        }
        text += &format!("{separator}{name} {share}");
    }
    text
}

fn simultaneous(page: &mut Page, what: &str, together: &Simultaneous) {
    if together.groups == 0 {
        return;
    }
    let text = format!(
        "{what} began together (within {}) on several CPUs {}, on all of them {}; chance alone would give {}.",
        together.window_ns,
        times(together.groups),
        times(together.on_all_cpus),
        match together.groups_by_chance {
            n if n < 0.1 => "fewer than 0.1".to_owned(),
            n => format!("{n:.1}"),
        },
    );
    page.prose(None, 2, &text);
}

fn times(n: u64) -> String {
    match n {
        0 => "never".into(),
        1 => "once".into(),
        n => format!("{} times", count(n)),
    }
}
