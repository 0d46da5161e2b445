//! A result as data: blocks of a few kinds, each built once from facts. Renderers know only blocks.

mod html;
mod markdown;
mod screen;
mod table;
mod terminal;
mod terminal_table;

pub(crate) use html::Links;
pub(crate) use table::{Cell, Column, Link, Part, Row, Table};

use crate::style::Tone;

/// What a result says, in the order in which a reader needs it.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct Report {
    blocks: Vec<Block>,
}

/// A piece of a report.
#[derive(Clone, Debug, PartialEq, Eq)]
enum Block {
    Heading {
        text: String,
        /// Whether it is a name, whose letters stay as they are.
        name: bool,
        /// A remark at its right; empty for none.
        remark: String,
    },
    Sentence(Sentence),
    Facts(Facts),
    Warnings(Vec<String>),
    Table(Table),
    /// A line of a drawing that its builder laid out for a terminal.
    Line(String),
}

/// A paragraph, in most cases of one sentence.
#[derive(Clone, Debug, PartialEq, Eq)]
struct Sentence {
    tone: Option<Tone>,
    /// Blanks at the left margin of a terminal.
    indent: usize,
    /// Whether a screen without room leaves it out.
    optional: bool,
    /// The words that catch the eye; empty for none. A colon follows them.
    lead: &'static str,
    text: String,
}

/// Names and what is known about them.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub(crate) struct Facts {
    /// The facts of a reader who looks for the cause.
    pub shown: Vec<Fact>,
    /// Further facts, which a short view only counts.
    pub aside: Vec<Fact>,
    /// The text of a short view for one fact left aside, and for several: `thing that hardly matters`.
    pub aside_is: [&'static str; 2],
}

/// A name and what is known about it.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(crate) struct Fact {
    pub name: String,
    pub tone: Option<Tone>,
    pub text: String,
}

impl Report {
    pub(crate) fn heading(&mut self, text: impl Into<String>) {
        self.remarked(text, "");
    }

    /// A heading with a remark at the right margin.
    pub(crate) fn remarked(&mut self, text: impl Into<String>, remark: impl Into<String>) {
        self.blocks.push(Block::Heading {
            text: text.into(),
            name: false,
            remark: remark.into(),
        });
    }

    /// The name of what the blocks below are about, with a remark at the right margin.
    pub(crate) fn name(&mut self, name: impl Into<String>, remark: impl Into<String>) {
        self.blocks.push(Block::Heading {
            text: name.into(),
            name: true,
            remark: remark.into(),
        });
    }

    pub(crate) fn sentence(&mut self, tone: impl Into<Option<Tone>>, text: impl Into<String>) {
        self.lead(tone, "", text);
    }

    /// A sentence that a screen without room leaves out.
    pub(crate) fn optional(&mut self, tone: impl Into<Option<Tone>>, text: impl Into<String>) {
        self.sentence(tone, text);
        if let Some(Block::Sentence(last)) = self.blocks.last_mut() {
            last.optional = true;
        }
    }

    /// A sentence with blanks at the left margin of a terminal.
    pub(crate) fn indented(&mut self, tone: Option<Tone>, indent: usize, text: &str) {
        self.blocks.push(Block::Sentence(Sentence {
            tone,
            indent,
            optional: false,
            lead: "",
            text: text.into(),
        }));
    }

    /// A sentence behind words that catch the eye.
    pub(crate) fn lead(
        &mut self,
        tone: impl Into<Option<Tone>>,
        lead: &'static str,
        text: impl Into<String>,
    ) {
        self.blocks.push(Block::Sentence(Sentence {
            tone: tone.into(),
            indent: 0,
            optional: false,
            lead,
            text: text.into(),
        }));
    }

    pub(crate) fn facts(&mut self, facts: Facts) {
        if !(facts.shown.is_empty() && facts.aside.is_empty()) {
            self.blocks.push(Block::Facts(facts));
        }
    }

    /// Adds a name and what is known about it to the facts before.
    pub(crate) fn fact(&mut self, tone: Option<Tone>, name: &str, text: impl Into<String>) {
        let fact = Fact {
            name: name.into(),
            tone,
            text: text.into(),
        };
        if let Some(Block::Facts(facts)) = self.blocks.last_mut() {
            facts.shown.push(fact);
        } else {
            self.facts(Facts {
                shown: vec![fact],
                ..Facts::default()
            });
        }
    }

    /// What limits the statements above.
    pub fn warnings(&mut self, all: Vec<String>) {
        self.blocks.push(Block::Warnings(all));
    }

    /// Adds text that is laid out for a terminal.
    pub fn lines(&mut self, text: &str) {
        for line in text.lines() {
            self.line(line);
        }
    }

    /// Adds a line that is laid out for a terminal.
    pub fn line(&mut self, line: &str) {
        self.blocks.push(Block::Line(line.into()));
    }

    pub(crate) fn is_empty(&self) -> bool {
        self.blocks.is_empty()
    }

    pub(crate) fn table(&mut self, table: Table) {
        self.blocks.push(Block::Table(table));
    }

    /// The table, if it has rows.
    pub(crate) fn rows(&mut self, table: Table) {
        if !table.rows.is_empty() {
            self.table(table);
        }
    }

    /// Appends the blocks of another report.
    pub fn append(&mut self, other: Report) {
        self.blocks.extend(other.blocks);
    }
}
