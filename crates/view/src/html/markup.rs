//! Writes HTML piece by piece. Tags come only from this program's source; everything else is escaped here.

use crate::chart::escaped;

/// A page under construction, or a piece of one.
#[derive(Default)]
pub(crate) struct Markup(String);

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
        page.section("x", evil).note(evil);
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
