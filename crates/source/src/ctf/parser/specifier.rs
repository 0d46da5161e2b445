//! Types: integers, texts, enumerations, structures, variants, arrays, and their names.

use super::{Block, Declared, Parser, Scope, Value};
use crate::ctf::error::CtfError;
use crate::ctf::lexer::Token;
use crate::ctf::types::{Field, Int, Label, Name, Type};
use std::rc::Rc;

const MOST_LABELS: usize = 1 << 16;
/// The most fields that reading one value may have to visit.
const LARGEST: u64 = 1 << 12;

impl Parser<'_> {
    /// A type, without the name of a field.
    pub(super) fn specifier(&mut self) -> Result<Declared, CtfError> {
        self.deeper()?;
        let declared = self.specified();
        self.depth -= 1;
        let declared = declared?;
        if declared.size > LARGEST {
            return Err(self.error("a type is too large"));
        }
        self.bounded()?;
        Ok(declared)
    }

    fn specified(&mut self) -> Result<Declared, CtfError> {
        let one = |of| Declared {
            of: Rc::new(of),
            size: 1,
        };
        while self.is_word("const") {
            self.advance()?;
        }
        let first = self.word()?;
        match first.as_str() {
            "integer" => Ok(one(Type::Int(self.integer()?))),
            "floating_point" => Ok(one(self.floating()?)),
            "string" => {
                if self.is_sign('{') {
                    self.inside_block()?;
                }
                Ok(one(Type::Text))
            }
            "struct" => self.named("struct", Parser::structure),
            "variant" => self.variant(),
            "enum" => self.named("enum", Parser::enumeration),
            _ => self.alias(first),
        }
    }

    /// A type by its name. A field's name follows the last word that is part of it.
    fn alias(&mut self, first: String) -> Result<Declared, CtfError> {
        let mut name = first;
        let mut found = self.find(&name);
        // The longest name that is declared.
        while let Token::Word(more) = &self.token {
            let longer = format!("{name} {more}");
            let known = self.find(&longer);
            if known.is_err() && found.is_ok() {
                break;
            }
            if longer.len() > 256 {
                break;
            }
            (name, found) = (longer, known);
            self.advance()?;
        }
        found
    }

    /// A structure or an enumeration: with its body, by its name, or both.
    fn named(
        &mut self,
        kind: &str,
        body: fn(&mut Self) -> Result<Declared, CtfError>,
    ) -> Result<Declared, CtfError> {
        let name = match self.token {
            Token::Word(_) => Some(self.word()?),
            _ => None,
        };
        let key = |name: String| format!("{kind} {name}");
        if self.is_sign('{') || self.is_sign(':') {
            let declared = body(self)?;
            if let Some(name) = name {
                self.declare(key(name), declared.clone());
            }
            return Ok(declared);
        }
        match name {
            Some(name) => self.find(&key(name)),
            None => Err(self.error("a type has no body")),
        }
    }

    fn integer(&mut self) -> Result<Int, CtfError> {
        let block = self.inside_block()?;
        let size = block.unsigned("size").unwrap_or(0);
        let size = u32::try_from(size)
            .ok()
            .filter(|size| (1..=64).contains(size));
        let size = size.ok_or_else(|| self.error("an integer has an impossible size"))?;
        let align = self.align(&block, if size.is_multiple_of(8) { 8 } else { 1 })?;
        let big_endian = match block.text("byte_order") {
            Some(order) => self.is_big(order)?,
            None => self.trace.big_endian,
        };
        let signed =
            block.number("signed").unwrap_or(0) != 0 || block.text("signed") == Some("true");
        let encoding = block.text("encoding").unwrap_or("none");
        Ok(Int {
            size,
            align,
            signed,
            big_endian,
            is_text: size == 8 && !encoding.eq_ignore_ascii_case("none"),
            is_time: block
                .text("map")
                .is_some_and(|map| map.starts_with("clock.")),
        })
    }

    fn align(&self, block: &Block, usual: u32) -> Result<u32, CtfError> {
        let Some(align) = block.unsigned("align") else {
            return Ok(usual);
        };
        self.alignment(align)
    }

    fn alignment(&self, align: u64) -> Result<u32, CtfError> {
        let known = u32::try_from(align).ok();
        let known = known.filter(|align| align.is_power_of_two() && *align <= 1 << 12);
        known.ok_or_else(|| self.error("an alignment is impossible"))
    }

    fn floating(&mut self) -> Result<Type, CtfError> {
        let block = self.inside_block()?;
        let bits = |key| block.unsigned(key).filter(|bits| *bits <= 64).unwrap_or(0);
        let size = (bits("exp_dig") + bits("mant_dig")) as u32;
        let align = self.align(&block, 8)?;
        Ok(Type::Bits { size, align })
    }

    fn structure(&mut self) -> Result<Declared, CtfError> {
        let (fields, size) = self.fields()?;
        let mut align = 1;
        if self.is_word("align") {
            self.advance()?;
            self.expect('(', "an alignment has no number")?;
            let Token::Number(number) = self.advance()? else {
                return Err(self.error("an alignment has no number"));
            };
            align = self.alignment(number)?;
            self.expect(')', "an alignment does not end")?;
        }
        let align = fields
            .iter()
            .fold(align, |most, field: &Field| most.max(field.of.align()));
        let of = Rc::new(Type::Struct { align, fields });
        Ok(Declared { of, size })
    }

    /// `{ TYPE NAME, NAME[N]; ... }`
    fn fields(&mut self) -> Result<(Vec<Field>, u64), CtfError> {
        self.expect('{', "a structure does not begin")?;
        self.scopes.push(Scope::new());
        let (mut fields, mut size) = (Vec::new(), 1_u64);
        while !self.sign('}')? {
            if self.is_word("typealias") || self.is_word("typedef") {
                self.declaration()?;
                continue;
            }
            let declared = self.specifier()?;
            while !self.sign(';')? {
                let name = self.word()?;
                let own = self.array_of(declared.clone())?;
                size = size.saturating_add(own.size);
                let name = self.name(&name);
                fields.push(Field { name, of: own.of });
                self.bounded()?;
                if !self.sign(',')? && !self.is_sign(';') {
                    return Err(self.error("a field does not end"));
                }
            }
        }
        self.scopes.pop();
        Ok((fields, size))
    }

    /// The type of a field whose name is followed by lengths.
    fn array_of(&mut self, declared: Declared) -> Result<Declared, CtfError> {
        let mut lengths = Vec::new();
        while self.sign('[')? {
            lengths.push(match self.advance()? {
                Token::Number(length) => Ok(length),
                Token::Word(word) => {
                    let mut last = word;
                    while self.sign('.')? {
                        last = self.word()?;
                    }
                    Err(self.name(&last))
                }
                _ => return Err(self.error("an array has no length")),
            });
            self.expect(']', "an array's length does not end")?;
            if lengths.len() > super::DEEPEST as usize {
                return Err(self.error("types are nested too deeply"));
            }
        }
        // The last length is the innermost one.
        Ok(lengths
            .into_iter()
            .rev()
            .fold(declared, |declared, length| {
                let Declared { of, size } = declared;
                let of = Rc::new(match length {
                    Ok(length) => Type::Array { of, length },
                    Err(length) => Type::Sequence { of, length },
                });
                Declared {
                    of,
                    size: size.saturating_add(1),
                }
            }))
    }

    /// `variant NAME <TAG> { ... }`: without a tag it is only declared.
    fn variant(&mut self) -> Result<Declared, CtfError> {
        let name = match self.token {
            Token::Word(_) => Some(self.word()?),
            _ => None,
        };
        let mut tag = None;
        if self.sign('<')? {
            let mut last = self.word()?;
            while self.sign('.')? {
                last = self.word()?;
            }
            tag = Some(self.name(&last));
            self.expect('>', "a variant's tag does not end")?;
        }
        let declared = match self.is_sign('{') {
            true => {
                let (options, size) = self.fields()?;
                // The tag is given where it is used.
                let tag = tag.unwrap_or(Name::MAX);
                let of = Rc::new(Type::Variant { tag, options });
                let declared = Declared { of, size };
                if let Some(name) = name {
                    self.declare(format!("variant {name}"), declared.clone());
                }
                declared
            }
            false => self.find(&format!("variant {}", name.unwrap_or_default()))?,
        };
        match (&*declared.of, tag) {
            (Type::Variant { options, .. }, Some(tag)) => {
                self.fields = self.fields.saturating_add(options.len() as u32);
                let options = options.clone();
                let of = Rc::new(Type::Variant { tag, options });
                Ok(Declared { of, ..declared })
            }
            _ => Ok(declared),
        }
    }

    /// `: TYPE { NAME, NAME = N, NAME = N ... M }`
    fn enumeration(&mut self) -> Result<Declared, CtfError> {
        let of = match self.sign(':')? {
            true => match &*self.specifier()?.of {
                Type::Int(of) => *of,
                _ => return Err(self.error("an enumeration is of no integer")),
            },
            false => match &*self.find("int")?.of {
                Type::Int(of) => *of,
                _ => return Err(self.error("an enumeration is of no integer")),
            },
        };
        self.expect('{', "an enumeration does not begin")?;
        let (mut labels, mut next) = (Vec::new(), 0_i128);
        while !self.sign('}')? {
            let name = match self.advance()? {
                Token::Word(name) | Token::Text(name) => name,
                _ => return Err(self.error("a label is missing")),
            };
            let (mut from, mut to) = (next, next);
            if self.sign('=')? {
                from = self.signed()?;
                to = from;
                if self.token == Token::Dots {
                    self.advance()?;
                    to = self.signed()?;
                }
            }
            next = to.saturating_add(1);
            let name = self.name(&name);
            labels.push(Label { name, from, to });
            self.labels += 1;
            if self.labels > MOST_LABELS {
                return Err(self.error("it declares too many labels"));
            }
            if !self.sign(',')? && !self.is_sign('}') {
                return Err(self.error("a label does not end"));
            }
        }
        let of = Rc::new(Type::Enum { of, labels });
        Ok(Declared { of, size: 1 })
    }

    fn signed(&mut self) -> Result<i128, CtfError> {
        match self.value()? {
            Value::Number(number) => Ok(number),
            Value::Text(_) => Err(self.error("a number is missing")),
        }
    }
}
