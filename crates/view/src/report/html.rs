//! Reports in a page.

use super::{Block, Cell, Column, Fact, Facts, Link, Report, Row, Sentence, Table};
use crate::drawn::Drawn;
use crate::html::markup::Markup;
use crate::style::Tone;
use crate::words;
use jitterscope_model::Subject;
use std::collections::HashMap;

/// The culprits that a page's script knows, with their numbers: a click shows only the stalls of one.
#[derive(Default)]
pub(crate) struct Links<'d> {
    culprits: HashMap<&'d Subject, usize>,
    named: HashMap<String, usize>,
}

impl<'d> Links<'d> {
    pub(crate) fn of(run: &'d Drawn) -> Links<'d> {
        let mut links = Links::default();
        for (of, number) in run.picture.culprits.iter().zip(0..) {
            links.culprits.insert(&of.subject, number);
            // Of several with one name, the first has the most time.
            let named = links.named.entry(words::kind_and_name(&of.subject));
            named.or_insert(number);
        }
        links
    }

    /// The attribute of a cell that a click on it needs, and its value.
    fn attribute(&self, link: &Link) -> Option<(&'static str, String)> {
        let number = match link {
            Link::Stall(id) => return Some((" data-stall=\"", id.0.to_string())),
            Link::Culprit(subject) => self.culprits.get(subject.as_ref()),
            Link::Named(name) => self.named.get(name),
        };
        number.map(|number| (" class=\"culprit\" data-culprit=\"", number.to_string()))
    }
}

impl Report {
    /// Adds the blocks to a page.
    pub(crate) fn html(&self, body: &mut Markup, links: &Links<'_>) {
        for block in &self.blocks {
            match block {
                Block::Heading { text, remark, .. } => {
                    body.element("<h3>", text, "</h3>\n");
                    if !remark.is_empty() {
                        body.note(remark);
                    }
                }
                Block::Sentence(of) => sentence(body, of),
                Block::Facts(of) => facts(body, of),
                Block::Table(of) => of.html(body, links),
                Block::Warnings(all) => {
                    for warning in all {
                        body.element("<p class=\"warning\">", warning, "</p>\n");
                    }
                }
                // A drawing for a terminal: the page has a chart in its place.
                Block::Line(_) => {}
            }
        }
    }
}

fn sentence(body: &mut Markup, of: &Sentence) {
    let Sentence {
        tone, lead, text, ..
    } = of;
    body.raw(match tone {
        Some(Tone::Strong | Tone::Heading) => "<p class=\"lead\">",
        Some(Tone::Good) => "<p class=\"lead good\">",
        Some(Tone::Bad) if lead.is_empty() => "<p class=\"lead bad\">",
        Some(Tone::Bad | Tone::Warning) => "<p class=\"warning\">",
        Some(Tone::Dim) => "<p class=\"note\">",
        None => "<p>",
    });
    if !lead.is_empty() {
        body.raw("<strong>").raw(lead).raw(":</strong> ");
    }
    body.text(text).raw("</p>\n");
}

fn facts(body: &mut Markup, facts: &Facts) {
    let list = |body: &mut Markup, all: &[Fact]| {
        body.facts(all.iter().map(|of| (of.name.as_str(), of.text.clone())));
    };
    if !facts.shown.is_empty() {
        list(body, &facts.shown);
    }
    let [one, several] = facts.aside_is;
    let summary = match facts.aside.len() {
        0 => return,
        1 => format!("1 {one}"),
        n => format!("{n} {several}"),
    };
    body.details(&summary, |body| list(body, &facts.aside));
}

impl Table {
    /// Adds the table to a page; rows left aside open on a click.
    pub(crate) fn html(&self, body: &mut Markup, links: &Links<'_>) {
        let rows = self.rows.iter().filter(|row| !row.is_rest);
        let (aside, shown): (Vec<&Row>, Vec<&Row>) = rows.partition(|row| row.aside);
        if !shown.is_empty() {
            self.rows_html(body, &self.title, &shown, links);
        }
        if !aside.is_empty() {
            let comma = if self.aside.is_empty() { "" } else { ", " };
            let summary = format!("{} more{comma}{}", aside.len(), self.aside);
            body.details(&summary, |body| {
                self.rows_html(body, &summary, &aside, links);
            });
        }
    }

    /// The rows, in an element that scrolls on its own if they are too wide.
    fn rows_html(&self, body: &mut Markup, caption: &str, rows: &[&Row], links: &Links<'_>) {
        body.raw("<div class=\"wide\" tabindex=\"0\" role=\"region\" aria-label=\"")
            .text(caption)
            .raw("\"><table><caption><span>")
            .text(caption)
            .raw("</span></caption>\n<thead><tr>");
        for Column { head, number, .. } in &self.columns {
            let open = match number {
                true => "<th scope=\"col\" class=\"n\">",
                false => "<th scope=\"col\">",
            };
            body.element(open, head, "</th>");
        }
        if !self.remarks.is_empty() {
            body.element("<th scope=\"col\">", self.remarks, "</th>");
        }
        body.raw("</tr></thead>\n<tbody>\n");
        for row in rows {
            self.row_html(body, row, links);
        }
        body.raw("</tbody></table></div>\n");
    }

    fn row_html(&self, body: &mut Markup, row: &Row, links: &Links<'_>) {
        if let Some(group) = &row.group {
            let columns = self.columns.len() + usize::from(!self.remarks.is_empty());
            body.raw("<tr><th scope=\"rowgroup\" colspan=\"")
                .text(&columns.to_string())
                .raw("\">")
                .text(&group.text)
                .raw("</th></tr>\n");
        }
        body.raw("<tr>");
        let naming = Some(self.naming()).filter(|_| self.remarks.is_empty());
        for (at, (cell, column)) in row.cells.iter().zip(&self.columns).enumerate() {
            let below = (Some(at) == naming)
                .then(|| row.remarks_and_details())
                .into_iter()
                .flatten();
            cell_html(body, column, cell, below, links);
        }
        if !self.remarks.is_empty() {
            body.raw("<td>");
            lines(body, row.remarks_and_details());
            body.raw("</td>");
        }
        body.raw("</tr>\n");
    }
}

/// A cell with further lines below its text.
fn cell_html<'c>(
    body: &mut Markup,
    column: &Column,
    cell: &'c Cell,
    below: impl Iterator<Item = &'c String>,
    links: &Links<'_>,
) {
    let link = cell.link.as_ref().and_then(|link| links.attribute(link));
    body.raw("<td").raw(match cell.tone {
        _ if column.number => " class=\"n\"",
        // A culprit has a class of its own.
        _ if link.is_some() => "",
        Some(Tone::Good) => " class=\"good\"",
        Some(Tone::Bad) => " class=\"bad\"",
        _ => "",
    });
    if let Some((attribute, value)) = link {
        body.raw(attribute).text(&value).raw("\"");
    }
    body.raw(">");
    let text = Some(cell.text.clone()).filter(|text| !text.is_empty());
    lines(
        body,
        text.into_iter()
            .chain(below.cloned())
            .chain(cell.few_parts()),
    );
    body.raw("</td>");
}

fn lines(body: &mut Markup, all: impl IntoIterator<Item = impl AsRef<str>>) {
    for (at, line) in all.into_iter().enumerate() {
        body.raw(if at > 0 { "<br>" } else { "" })
            .text(line.as_ref());
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::report::Part;

    #[test]
    fn what_strangers_wrote_is_text_wherever_it_is() {
        let evil = "</td></script><img src=x onerror=\"alert(1)\">";
        let subject = Subject::Ipi(evil.into());
        let cell = Cell {
            detail: evil.into(),
            parts: vec![Part {
                text: evil.into(),
                short: evil.into(),
            }],
            ..Cell::toned(evil, Tone::Bad).with_link(Link::Culprit(subject.clone().into()))
        };
        let mut report = Report::default();
        report.remarked(evil, evil);
        report.table(Table {
            title: evil.into(),
            columns: vec![Column::text(evil), Column::number(evil)],
            rows: vec![Row {
                group: Some(evil.into()),
                remarks: vec![evil.into()],
                ..Row::from([cell, evil.into()])
            }],
            remarks: "what it is",
            aside: "",
        });
        let mut page = Markup::default();
        let links = Links {
            culprits: [(&subject, 7)].into(),
            ..Links::default()
        };
        report.html(&mut page, &links);
        let page = page.into_string();
        assert!(
            !page.contains("<img") && !page.contains("<script") && !page.contains("onerror=\""),
            "{page}"
        );
        assert!(
            page.contains("<td class=\"culprit\" data-culprit=\"7\">"),
            "{page}"
        );
    }
}
