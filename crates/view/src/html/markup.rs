//! Writes HTML piece by piece. Tags come only from this program's source; everything else is escaped here.

use crate::chart::escaped;

/// A page under construction, or a piece of one.
#[derive(Default)]
pub(crate) struct Markup(String);

/// A cell of a table.
pub(crate) enum Cell {
    Text(String),
    /// Aligned to the right, with digits of equal width.
    Number(String),
    /// A stall, by its id. The script turns the text into a link to the timeline, which only it can draw.
    Stall {
        id: u64,
        text: String,
    },
    /// A culprit, by its number: a click shows only its stalls.
    Culprit {
        number: usize,
        text: String,
    },
    Lines(Vec<String>),
    /// Text in the colour of a gain.
    Good(String),
    /// Text in the colour of a loss.
    Bad(String),
}

/// The alignment of a column's head.
#[derive(Clone, Copy)]
pub(crate) enum Head<'h> {
    Text(&'h str),
    Number(&'h str),
}

impl Markup {
    pub(crate) fn into_string(self) -> String {
        self.0
    }

    pub(crate) fn raw(&mut self, markup: &'static str) -> &mut Markup {
        self.0.push_str(markup);
        self
    }

    /// Adds markup that this program escaped already.
    pub(crate) fn piece(&mut self, piece: &str) -> &mut Markup {
        self.0.push_str(piece);
        self
    }

    pub(crate) fn text(&mut self, text: &str) -> &mut Markup {
        self.0.push_str(&escaped(text));
        self
    }

    /// Adds an element with text in it: the tag in `open` may have attributes.
    pub(crate) fn element(
        &mut self,
        open: &'static str,
        text: &str,
        close: &'static str,
    ) -> &mut Markup {
        self.raw(open).text(text).raw(close)
    }

    /// Begins a section with a linkable heading; [`Markup::end`] ends it.
    pub(crate) fn section(&mut self, id: &'static str, heading: &str) -> &mut Markup {
        self.raw("<section id=\"")
            .raw(id)
            .raw("\">\n<h2>")
            .text(heading)
            .raw("</h2>\n")
    }

    pub(crate) fn end(&mut self) -> &mut Markup {
        self.raw("</section>\n")
    }

    /// Adds an explanatory paragraph.
    pub(crate) fn note(&mut self, text: &str) -> &mut Markup {
        self.element("<p class=\"note\">", text, "</p>\n")
    }

    /// Adds a chart, by the name that the page's script uses. In a narrow window it is small, and larger while it has
    /// the focus (`page.css`).
    pub(crate) fn chart(&mut self, name: Option<&'static str>, svg: &str) -> &mut Markup {
        self.raw("<figure class=\"wide\" tabindex=\"0\"");
        if let Some(name) = name {
            self.raw(" data-chart=\"").raw(name).raw("\"");
        }
        self.raw(">\n").piece(svg);
        let hint = "Tap the chart, or go to it with the Tab key, to see it larger.";
        self.element(
            "<figcaption class=\"note enlarge\">",
            hint,
            "</figcaption>\n",
        )
        .raw("</figure>\n")
    }

    /// Adds a table that scrolls on its own if it is too wide.
    pub(crate) fn table(
        &mut self,
        caption: &str,
        heads: &[Head<'_>],
        rows: Vec<Vec<Cell>>,
    ) -> &mut Markup {
        self.raw("<div class=\"wide\" tabindex=\"0\" role=\"region\" aria-label=\"")
            .text(caption)
            .raw("\">");
        self.raw("<table><caption><span>")
            .text(caption)
            .raw("</span></caption>\n<thead><tr>");
        for head in heads {
            match head {
                Head::Text(text) => self.element("<th scope=\"col\">", text, "</th>"),
                Head::Number(text) => self.element("<th scope=\"col\" class=\"n\">", text, "</th>"),
            };
        }
        self.raw("</tr></thead>\n<tbody>\n");
        for row in rows {
            self.raw("<tr>");
            for cell in row {
                self.cell(cell);
            }
            self.raw("</tr>\n");
        }
        self.raw("</tbody></table></div>\n")
    }

    fn cell(&mut self, cell: Cell) {
        match cell {
            Cell::Text(text) => self.element("<td>", &text, "</td>"),
            Cell::Number(text) => self.element("<td class=\"n\">", &text, "</td>"),
            Cell::Good(text) => self.element("<td class=\"good\">", &text, "</td>"),
            Cell::Bad(text) => self.element("<td class=\"bad\">", &text, "</td>"),
            Cell::Stall { id, text } => self
                .raw("<td data-stall=\"")
                .text(&id.to_string())
                .raw("\">")
                .text(&text)
                .raw("</td>"),
            Cell::Culprit { number, text } => self
                .raw("<td class=\"culprit\" data-culprit=\"")
                .text(&number.to_string())
                .raw("\">")
                .text(&text)
                .raw("</td>"),
            Cell::Lines(lines) => {
                self.raw("<td>");
                for (at, line) in lines.iter().enumerate() {
                    self.raw(if at > 0 { "<br>" } else { "" }).text(line);
                }
                self.raw("</td>")
            }
        };
    }

    /// Adds a closed block that opens on a click, or for printing.
    pub(crate) fn details(
        &mut self,
        summary: &str,
        inside: impl FnOnce(&mut Markup),
    ) -> &mut Markup {
        self.element("<details><summary>", summary, "</summary>\n");
        inside(self);
        self.raw("</details>\n")
    }

    /// Adds names and their texts.
    pub(crate) fn facts<'f>(
        &mut self,
        facts: impl IntoIterator<Item = (&'f str, String)>,
    ) -> &mut Markup {
        self.raw("<dl>\n");
        for (name, text) in facts {
            self.element("<dt>", name, "</dt>")
                .element("<dd>", &text, "</dd>\n");
        }
        self.raw("</dl>\n")
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn what_strangers_wrote_is_text_wherever_it_stands() {
        let evil = "</td></script><img src=x onerror=\"alert(1)\">";
        let mut page = Markup::default();
        let cells = vec![
            Cell::Text(evil.into()),
            Cell::Number(evil.into()),
            Cell::Stall {
                id: 1,
                text: evil.into(),
            },
            Cell::Culprit {
                number: 1,
                text: evil.into(),
            },
            Cell::Lines(vec![evil.into(), evil.into()]),
            Cell::Good(evil.into()),
            Cell::Bad(evil.into()),
        ];
        page.section("x", evil)
            .note(evil)
            .table(evil, &[Head::Text("a")], vec![cells]);
        page.details(evil, |page| {
            page.facts([(evil, evil.to_owned())]);
        });
        let page = page.end().0.clone();
        assert!(
            !page.contains("<img") && !page.contains("<script") && !page.contains("onerror=\""),
            "{page}"
        );
    }
}
