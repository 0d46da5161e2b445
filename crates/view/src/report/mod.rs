//! A result as data: blocks of a few kinds, each built once from facts. Renderers know only blocks.

mod html;
mod markdown;
mod table;
mod terminal;

pub(crate) use markdown::cell;
pub(crate) use table::{Cell, Column, Row, Table};

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
    /// A line of a table or drawing that its builder laid out for a terminal.
    Line(String),
}

/// A paragraph, in most cases of one sentence.
#[derive(Clone, Debug, PartialEq, Eq)]
struct Sentence {
    tone: Option<Tone>,
    /// Blanks at the left margin of a terminal.
    indent: usize,
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

    /// A sentence with blanks at the left margin of a terminal.
    pub(crate) fn indented(&mut self, tone: Option<Tone>, indent: usize, text: &str) {
        self.blocks.push(Block::Sentence(Sentence {
            tone,
            indent,
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
            lead,
            text: text.into(),
        }));
    }

    pub(crate) fn facts(&mut self, facts: Facts) {
        if !(facts.shown.is_empty() && facts.aside.is_empty()) {
            self.blocks.push(Block::Facts(facts));
        }
    }

    /// Adds a fact to those before it.
    pub(crate) fn fact(&mut self, fact: Fact) {
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

    /// Its sentences, as facts without names, and its facts, in order.
    pub(crate) fn statements(self) -> Vec<Fact> {
        let of = |block| match block {
            Block::Sentence(Sentence { tone, text, .. }) => vec![Fact {
                name: String::new(),
                tone,
                text,
            }],
            Block::Facts(facts) => facts.shown,
            Block::Heading { .. } | Block::Warnings(_) | Block::Table(_) | Block::Line(_) => {
                Vec::new()
            }
        };
        self.blocks.into_iter().flat_map(of).collect()
    }

    pub(crate) fn table(&mut self, table: Table) {
        self.blocks.push(Block::Table(table));
    }

    /// Appends the blocks of another report.
    pub fn append(&mut self, other: Report) {
        self.blocks.extend(other.blocks);
    }
}
