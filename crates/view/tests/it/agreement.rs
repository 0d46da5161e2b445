//! A report and a page of one run agree.

use crate::full_text;
use jitterscope_analyze::periods::Effort;
use jitterscope_store::RunReader;
use jitterscope_view::html::{self, Page};
use jitterscope_view::{Style, Wanted, load_drawn};
use std::path::Path;

/// The text of a piece of a page.
fn plain(html: &str) -> String {
    let mut text = String::new();
    for (at, piece) in html.split('<').enumerate() {
        text += match piece.split_once('>') {
            Some((_, rest)) if at > 0 => rest,
            _ => piece,
        };
    }
    let text = [
        ("&lt;", "<"),
        ("&gt;", ">"),
        ("&quot;", "\""),
        ("&#39;", "'"),
        ("&amp;", "&"),
    ]
    .iter()
    .fold(text, |text, (markup, plain)| text.replace(markup, plain));
    words(&text)
}

fn words(text: &str) -> String {
    text.split_whitespace().collect::<Vec<_>>().join(" ")
}

fn between<'t>(text: &'t str, from: &str, to: &str) -> &'t str {
    let rest = text.split_once(from).map_or("", |(_, rest)| rest);
    rest.split_once(to).map_or(rest, |(part, _)| part)
}

#[test]
fn the_page_begins_as_the_report_does_and_names_the_same_culprits() {
    let (mut sentences, mut culprits) = (0, 0);
    for kind in ["spin", "wakeup", "pipeline", "attach", "passive"] {
        let fixtures = Path::new(env!("CARGO_MANIFEST_DIR")).join("../recording/tests/fixtures");
        let reader = RunReader::open(&fixtures.join(kind)).unwrap();
        let wanted = Wanted {
            worst: 10,
            effort: Effort::BRIEF,
            stalls: 1_000,
            redact: false,
        };
        let run = load_drawn(&reader, wanted).unwrap();
        let full = full_text(&run.summary, Style::default());
        let report = words(&full);
        let html = html::render(&Page {
            run: &run,
            frames: &[],
            settings: &[],
            list: None,
        })
        .html;
        let verdict = between(&html, "<section id=\"verdict\"", "</section>");
        for paragraph in verdict.split("<p").skip(1) {
            let said = plain(&format!("<p{paragraph}"));
            if said.contains("explained by what the kernel") || said.starts_with("Warning:") {
                continue;
            }
            assert!(report.contains(&said), "{kind}: {said}\n{report}");
            sentences += 1;
        }
        // Share, name and longest part of each culprit that both name.
        let table = between(&html, "Culprits, by their time", "</table>");
        let rows = table.split("<tr").filter(|row| row.contains("<td"));
        for row in rows.take(3) {
            let cells: Vec<String> = row
                .split("<td")
                .skip(1)
                .map(|cell| plain(&format!("<td{cell}")))
                .collect();
            let [name, share, .., longest, _] = &cells[..] else {
                panic!("{kind}: {cells:?}")
            };
            if kind != "pipeline" {
                let reported = full.lines().any(|line| {
                    let has = |of: &String| line.contains(of.as_str());
                    line.starts_with(name.as_str()) && has(share) && has(longest)
                });
                assert!(reported, "{kind}: {cells:?}\n{report}");
                culprits += 1;
            }
        }
    }
    assert!(sentences >= 9 && culprits >= 8, "{sentences} {culprits}");
}
