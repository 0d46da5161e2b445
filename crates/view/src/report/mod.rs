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
    Heading(String),
    Sentence(Sentence),
    Facts(Facts),
    Table(Table),
}

/// A paragraph, in most cases of one sentence.
#[derive(Clone, Debug, PartialEq, Eq)]
struct Sentence {
    tone: Option<Tone>,
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
        self.blocks.push(Block::Heading(text.into()));
    }

    pub(crate) fn sentence(&mut self, tone: impl Into<Option<Tone>>, text: impl Into<String>) {
        self.lead(tone, "", text);
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
            lead,
            text: text.into(),
        }));
    }

    pub(crate) fn facts(&mut self, facts: Facts) {
        if !(facts.shown.is_empty() && facts.aside.is_empty()) {
            self.blocks.push(Block::Facts(facts));
        }
    }

    pub(crate) fn table(&mut self, table: Table) {
        self.blocks.push(Block::Table(table));
    }

    /// Appends the blocks of another report.
    pub fn append(&mut self, other: Report) {
        self.blocks.extend(other.blocks);
    }
}
