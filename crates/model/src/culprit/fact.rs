//! One fact of a flat form: its name, what it means, and how it is taken out and put in as text or as a number.

use super::{Evidence, TimerSource};
use crate::{CpuId, Name};
use std::borrow::Cow;

/// Stands between names that are one text.
const SEPARATOR: char = ',';

/// One fact of `F`, as a column of a table has it.
#[derive(Debug)]
pub struct Fact<F: 'static> {
    /// Its column, and its field in JSON.
    pub name: &'static str,
    /// What it says.
    pub meaning: &'static str,
    /// Its type, and how it is taken from the fields and put there.
    pub form: FactForm<F>,
}

/// How a fact is taken from the fields and put there. There may be none.
#[derive(Debug)]
pub enum FactForm<F: 'static> {
    /// A text; of several names, with commas between.
    Text(fn(&F) -> Option<Cow<'_, str>>, fn(&mut F, Name)),
    /// A number.
    I32(fn(&F) -> Option<i32>, fn(&mut F, i32)),
    /// A number that is never negative.
    U32(fn(&F) -> Option<u32>, fn(&mut F, u32)),
    /// A large one.
    U64(fn(&F) -> Option<u64>, fn(&mut F, u64)),
}

/// A field that is written as a text.
pub(super) trait AsText {
    fn text(&self) -> Option<Cow<'_, str>>;
    fn put_text(&mut self, text: Name);
}

/// A field that is written as a number. One that does not fit is none.
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
