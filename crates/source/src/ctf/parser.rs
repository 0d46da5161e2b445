//! Reads the metadata: a recursive descent over what LTTng, babeltrace and jitterscope write of TSDL.
//!
//! The text is foreign: nesting, the number of types and the size of a type are limited, so that neither the stack nor
//! the memory depends on it.

mod specifier;

use super::error::CtfError;
use super::lexer::{Lexer, Token};
use super::types::{Clock, EventClass, Name, StreamClass, Trace, Type};
use std::collections::{BTreeMap, HashMap};
use std::rc::Rc;

/// Types in types.
const DEEPEST: u32 = 32;
/// A kernel's trace has some thousands of events, each with some fields.
const MOST_FIELDS: u32 = 1 << 20;

/// Names of types, from the outermost scope to the innermost.
type Scope = HashMap<String, Declared>;

/// A type, and how many fields reading it visits.
#[derive(Clone)]
struct Declared {
    of: Rc<Type>,
    size: u64,
}

/// What stands between `{` and `}` of a block of settings.
#[derive(Default)]
struct Block {
    values: BTreeMap<String, Value>,
    types: BTreeMap<String, Rc<Type>>,
}

#[derive(Clone)]
enum Value {
    Number(i128),
    Text(String),
}

impl Block {
    fn number(&self, key: &str) -> Option<i128> {
        match self.values.get(key)? {
            Value::Number(number) => Some(*number),
            Value::Text(text) => text.trim().parse().ok(),
        }
    }

    fn unsigned(&self, key: &str) -> Option<u64> {
        self.number(key)
            .and_then(|number| u64::try_from(number).ok())
    }

    fn text(&self, key: &str) -> Option<&str> {
        match self.values.get(key)? {
            Value::Text(text) => Some(text),
            Value::Number(_) => None,
        }
    }
}

pub(super) struct Parser<'a> {
    lexer: Lexer<'a>,
    /// The next word.
    token: Token,
    scopes: Vec<Scope>,
    depth: u32,
    fields: u32,
    labels: usize,
    trace: Trace,
    names: HashMap<String, Name>,
}

/// Reads the text of the metadata.
///
/// # Errors
/// It is not TSDL as it is known here, or beyond a limit.
pub(super) fn parse(text: &str) -> Result<Trace, CtfError> {
    let mut parser = Parser {
        lexer: Lexer::new(text),
        token: Token::End,
        scopes: vec![Scope::new()],
        depth: 0,
        fields: 0,
        labels: 0,
        trace: Trace {
            big_endian: cfg!(target_endian = "big"),
            ..Trace::default()
        },
        names: HashMap::new(),
    };
    parser.byte_order_first()?;
    parser.advance()?;
    while parser.token != Token::End {
        parser.top()?;
    }
    Ok(parser.trace)
}

impl Parser<'_> {
    fn advance(&mut self) -> Result<Token, CtfError> {
        let next = self.lexer.next()?;
        Ok(std::mem::replace(&mut self.token, next))
    }

    fn error(&self, why: &'static str) -> CtfError {
        self.lexer.error(why)
    }

    fn is_word(&self, word: &str) -> bool {
        matches!(&self.token, Token::Word(own) if own == word)
    }

    fn is_sign(&self, sign: char) -> bool {
        self.token == Token::Sign(sign)
    }

    /// Passes over a sign, if it is next.
    fn sign(&mut self, sign: char) -> Result<bool, CtfError> {
        let found = self.is_sign(sign);
        if found {
            self.advance()?;
        }
        Ok(found)
    }

    fn expect(&mut self, sign: char, why: &'static str) -> Result<(), CtfError> {
        match self.sign(sign)? {
            true => Ok(()),
            false => Err(self.error(why)),
        }
    }

    fn word(&mut self) -> Result<String, CtfError> {
        match self.advance()? {
            Token::Word(word) => Ok(word),
            _ => Err(self.error("a name is missing")),
        }
    }

    fn deeper(&mut self) -> Result<(), CtfError> {
        self.depth += 1;
        if self.depth > DEEPEST {
            return Err(self.error("types are nested too deeply"));
        }
        Ok(())
    }

    /// The number of a field's name, without the underscore that generators put before it.
    fn name(&mut self, name: &str) -> Name {
        let name = name.strip_prefix('_').unwrap_or(name);
        if let Some(known) = self.names.get(name) {
            return *known;
        }
        let number = self.trace.names.len() as Name;
        self.trace.names.push(name.to_owned());
        self.names.insert(name.to_owned(), number);
        number
    }

    fn top(&mut self) -> Result<(), CtfError> {
        if self.sign(';')? {
            return Ok(());
        }
        let Token::Word(word) = &self.token else {
            return Err(self.error("a declaration is missing"));
        };
        match word.as_str() {
            "trace" => {
                self.advance()?;
                let block = self.block()?;
                self.take_trace(&block)?;
            }
            "env" => {
                self.advance()?;
                let block = self.block()?;
                let text = |value| match value {
                    Value::Number(number) => i128::to_string(&number),
                    Value::Text(text) => text,
                };
                let all = block.values.into_iter();
                self.trace.env = all.map(|(key, value)| (key, text(value))).collect();
            }
            "clock" => {
                self.advance()?;
                let block = self.block()?;
                self.take_clock(&block);
            }
            "stream" => {
                self.advance()?;
                let block = self.block()?;
                self.take_stream(&block)?;
            }
            "event" => {
                self.advance()?;
                let block = self.block()?;
                self.take_event(&block)?;
            }
            "callsite" => {
                self.advance()?;
                self.block()?;
            }
            _ => self.declaration()?,
        }
        Ok(())
    }

    /// Types before the block of the trace depend on the byte order in it.
    fn byte_order_first(&mut self) -> Result<(), CtfError> {
        let mut ahead = self.lexer.ahead();
        let (mut depth, mut is_trace) = (0_u32, false);
        loop {
            match ahead.next()? {
                Token::End => return Ok(()),
                Token::Sign('{') => depth = depth.saturating_add(1),
                Token::Sign('}') => depth = depth.saturating_sub(1),
                Token::Word(word) if depth == 0 => is_trace = word == "trace",
                Token::Word(word) if depth == 1 && is_trace && word == "byte_order" => {
                    let (_, order) = (ahead.next()?, ahead.next()?);
                    if let Token::Word(order) = order {
                        self.trace.big_endian = self.is_big(&order)?;
                    }
                    return Ok(());
                }
                _ => {}
            }
        }
    }

    fn is_big(&self, order: &str) -> Result<bool, CtfError> {
        match order {
            "be" | "network" => Ok(true),
            "le" => Ok(false),
            "native" => Ok(self.trace.big_endian),
            _ => Err(self.error("a byte order is none")),
        }
    }

    fn take_trace(&mut self, block: &Block) -> Result<(), CtfError> {
        let (major, minor) = (block.unsigned("major"), block.unsigned("minor"));
        if let (Some(major), Some(minor)) = (major, minor)
            && (major, minor) != (1, 8)
        {
            return Err(CtfError::Version { major, minor });
        }
        self.trace.uuid = block.text("uuid").and_then(uuid);
        self.trace.packet_header = block.types.get("packet.header").cloned();
        Ok(())
    }

    fn take_clock(&mut self, block: &Block) {
        let signed = |key| {
            block
                .number(key)
                .and_then(|number| i64::try_from(number).ok())
        };
        self.trace.clocks.push(Clock {
            name: block.text("name").unwrap_or_default().to_owned(),
            hz: block.unsigned("freq").unwrap_or(1_000_000_000),
            offset_s: signed("offset_s").unwrap_or(0),
            offset: signed("offset").unwrap_or(0),
        });
    }

    fn take_stream(&mut self, block: &Block) -> Result<(), CtfError> {
        let id = block.unsigned("id").unwrap_or(0);
        let own = self.trace.streams.entry(id).or_default();
        let of = |key: &str| block.types.get(key).cloned();
        *own = StreamClass {
            packet_context: of("packet.context"),
            event_header: of("event.header"),
            event_context: of("event.context"),
            events: std::mem::take(&mut own.events),
        };
        self.bounded()
    }

    fn take_event(&mut self, block: &Block) -> Result<(), CtfError> {
        let stream = block.unsigned("stream_id").unwrap_or(0);
        let id = block.unsigned("id").unwrap_or(0);
        let of = |key: &str| block.types.get(key).cloned();
        let class = EventClass {
            name: block.text("name").unwrap_or_default().to_owned(),
            context: of("context"),
            fields: of("fields"),
        };
        let stream = self.trace.streams.entry(stream).or_default();
        stream.events.insert(id, class);
        self.bounded()
    }

    /// Counts a declaration, so that their number is limited.
    fn bounded(&mut self) -> Result<(), CtfError> {
        self.fields += 1;
        if self.fields > MOST_FIELDS {
            return Err(self.error("it declares too much"));
        }
        Ok(())
    }

    /// `{ key = value; key := type; ... };`
    fn block(&mut self) -> Result<Block, CtfError> {
        self.deeper()?;
        self.scopes.push(Scope::new());
        let block = self.inside_block();
        self.scopes.pop();
        self.depth -= 1;
        let block = block?;
        self.sign(';')?;
        Ok(block)
    }

    fn inside_block(&mut self) -> Result<Block, CtfError> {
        self.expect('{', "a block does not begin")?;
        let mut block = Block::default();
        while !self.sign('}')? {
            if self.sign(';')? {
                continue;
            }
            if self.declares() {
                self.declaration()?;
                continue;
            }
            let mut key = self.word()?;
            while self.sign('.')? {
                key = format!("{key}.{}", self.word()?);
            }
            self.bounded()?;
            if self.sign('=')? {
                let value = self.value()?;
                block.values.insert(key, value);
            } else if self.token == Token::Assign {
                self.advance()?;
                let declared = self.specifier()?;
                block.types.insert(key, declared.of);
            } else {
                return Err(self.error("a setting has no value"));
            }
            self.expect(';', "a setting does not end")?;
        }
        Ok(block)
    }

    /// Whether a declaration of a type follows, and not a setting.
    fn declares(&self) -> bool {
        ["typealias", "typedef", "struct", "enum", "variant"]
            .iter()
            .any(|word| self.is_word(word))
    }

    /// A value of a setting. The path of a clock is a text.
    fn value(&mut self) -> Result<Value, CtfError> {
        let negative = self.sign('-')?;
        match self.advance()? {
            Token::Number(number) => {
                let number = i128::from(number);
                Ok(Value::Number(if negative { -number } else { number }))
            }
            Token::Text(text) => Ok(Value::Text(text)),
            Token::Word(mut text) => {
                while self.sign('.')? {
                    let part = match self.advance()? {
                        Token::Word(part) => part,
                        _ => return Err(self.error("a path has no end")),
                    };
                    text = format!("{text}.{part}");
                    if text.len() > 1 << 12 {
                        return Err(self.error("a path is too long"));
                    }
                }
                Ok(Value::Text(text))
            }
            _ => Err(self.error("a value is missing")),
        }
    }

    /// `typealias TYPE := NAME;`, `typedef TYPE NAME;`, or a type with a name.
    fn declaration(&mut self) -> Result<(), CtfError> {
        if self.is_word("typealias") {
            self.advance()?;
            let declared = self.specifier()?;
            if self.advance()? != Token::Assign {
                return Err(self.error("an alias has no name"));
            }
            let name = self.type_name()?;
            self.declare(name, declared);
        } else if self.is_word("typedef") {
            self.advance()?;
            let declared = self.specifier()?;
            let name = self.type_name()?;
            self.declare(name, declared);
        } else {
            self.specifier()?;
        }
        self.bounded()?;
        self.expect(';', "a declaration does not end")
    }

    fn declare(&mut self, name: String, declared: Declared) {
        if let Some(scope) = self.scopes.last_mut() {
            scope.insert(name, declared);
        }
    }

    fn find(&self, name: &str) -> Result<Declared, CtfError> {
        let mut inner = self.scopes.iter().rev();
        let found = inner.find_map(|scope| scope.get(name));
        found
            .cloned()
            .ok_or_else(|| self.error("a type is not declared"))
    }

    /// The words of a type's name: `unsigned long`.
    fn type_name(&mut self) -> Result<String, CtfError> {
        let mut name = self.word()?;
        while matches!(self.token, Token::Word(_)) || self.is_sign('*') {
            let more = match self.advance()? {
                Token::Word(more) => more,
                _ => "*".into(),
            };
            name = format!("{name} {more}");
            if name.len() > 1 << 12 {
                return Err(self.error("a name is too long"));
            }
        }
        Ok(name)
    }
}

/// A UUID as it is written.
fn uuid(text: &str) -> Option<[u8; 16]> {
    let digits: Vec<u8> = text.bytes().filter(|byte| *byte != b'-').collect();
    let mut uuid = [0; 16];
    if digits.len() != 32 || !digits.is_ascii() {
        return None;
    }
    for (byte, digits) in uuid.iter_mut().zip(digits.chunks(2)) {
        *byte = u8::from_str_radix(std::str::from_utf8(digits).ok()?, 16).ok()?;
    }
    Some(uuid)
}
