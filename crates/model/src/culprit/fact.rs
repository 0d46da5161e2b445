//! One fact of a flat form: its name, its meaning, and how to read and write it as text or as a number.

use super::{Evidence, TimerSource};
use crate::{CpuId, Name};
use std::borrow::Cow;

/// Separates names that are stored as one text.
const SEPARATOR: char = ',';

/// One fact of `F`: a column of a table.
#[derive(Debug)]
pub struct Fact<F: 'static> {
    /// The name of its column and of its JSON field.
    pub name: &'static str,
    pub meaning: &'static str,
    /// Its type and accessors.
    pub form: FactForm<F>,
}

/// How to get a fact from the fields and how to set it. A fact may be absent.
#[derive(Debug)]
pub enum FactForm<F: 'static> {
    /// A text; several names are joined by commas.
    Text(fn(&F) -> Option<Cow<'_, str>>, fn(&mut F, Name)),
    I32(fn(&F) -> Option<i32>, fn(&mut F, i32)),
    /// A number that is never negative.
    U32(fn(&F) -> Option<u32>, fn(&mut F, u32)),
    U64(fn(&F) -> Option<u64>, fn(&mut F, u64)),
}

/// A field that is stored as text.
pub(super) trait AsText {
    fn text(&self) -> Option<Cow<'_, str>>;
    fn put_text(&mut self, text: Name);
}

/// A field that is stored as a number. A number that does not fit counts as absent.
pub(super) trait AsNumber<N> {
    fn number(&self) -> Option<N>;
    fn put_number(&mut self, number: N);
}

impl AsText for Option<Name> {
    fn text(&self) -> Option<Cow<'_, str>> {
        self.as_deref().map(Cow::Borrowed)
    }

    fn put_text(&mut self, text: Name) {
        *self = Some(text);
    }
}

impl AsText for Option<TimerSource> {
    fn text(&self) -> Option<Cow<'_, str>> {
        self.as_ref().map(|source| Cow::Borrowed(source.as_str()))
    }

    fn put_text(&mut self, text: Name) {
        *self = Some(TimerSource::from_word(&text));
    }
}

impl AsText for Option<Evidence> {
    fn text(&self) -> Option<Cow<'_, str>> {
        self.as_ref().map(|records| Cow::Borrowed(records.as_str()))
    }

    fn put_text(&mut self, text: Name) {
        *self = Some(Evidence::from_word(&text));
    }
}

impl AsText for Vec<Name> {
    fn text(&self) -> Option<Cow<'_, str>> {
        (!self.is_empty()).then(|| self.join(SEPARATOR.encode_utf8(&mut [0; 4])).into())
    }

    fn put_text(&mut self, text: Name) {
        *self = text.split(SEPARATOR).map(Name::from).collect();
    }
}

macro_rules! numbers {
    ($($field:ty as $number:ty,)*) => {
        $(impl AsNumber<$number> for Option<$field> {
            fn number(&self) -> Option<$number> {
                self.map(<$number>::from)
            }

            fn put_number(&mut self, number: $number) {
                *self = <$field>::try_from(number).ok();
            }
        })*
    };
}

numbers! {
    i8 as i32,
    i32 as i32,
    u8 as u32,
    u32 as u32,
    u64 as u64,
}

impl AsNumber<u32> for Option<CpuId> {
    fn number(&self) -> Option<u32> {
        self.map(|cpu| cpu.0)
    }

    fn put_number(&mut self, number: u32) {
        *self = Some(CpuId(number));
    }
}
