//! The words of TSDL, the language of CTF's metadata.

use super::error::CtfError;

/// The longest word or text, bytes.
const LONGEST: usize = 4096;

#[derive(Clone, Debug, PartialEq, Eq)]
pub(super) enum Token {
    /// A name or a keyword.
    Word(String),
    Number(u64),
    Text(String),
    /// A sign; `:=` and `...` are one each, which have no character of their own.
    Sign(char),
    Assign,
    Dots,
    End,
}

/// Reads words one after another.
pub(super) struct Lexer<'a> {
    rest: &'a [u8],
    pub(super) line: u32,
}

impl<'a> Lexer<'a> {
    pub(super) fn new(text: &'a str) -> Lexer<'a> {
        Lexer {
            rest: text.as_bytes(),
            line: 1,
        }
    }

    /// Another one from the same place.
    pub(super) fn ahead(&self) -> Lexer<'a> {
        Lexer {
            rest: self.rest,
            line: self.line,
        }
    }

    pub(super) fn error(&self, why: &'static str) -> CtfError {
        let line = self.line;
        CtfError::Metadata { line, why }
    }

    fn pass(&mut self, bytes: usize) {
        let (passed, rest) = self.rest.split_at(bytes.min(self.rest.len()));
        let lines = passed.iter().filter(|byte| **byte == b'\n').count();
        self.line = self
            .line
            .saturating_add(u32::try_from(lines).unwrap_or(u32::MAX));
        self.rest = rest;
    }

    /// Passes blanks and comments.
    fn blanks(&mut self) -> Result<(), CtfError> {
        loop {
            let blank = self
                .rest
                .iter()
                .take_while(|byte| byte.is_ascii_whitespace());
            let blank = blank.count();
            self.pass(blank);
            if self.rest.starts_with(b"/*") {
                let end = self.rest.windows(2).position(|two| two == b"*/");
                let end = end.ok_or_else(|| self.error("a comment has no end"))?;
                self.pass(end + 2);
            } else if self.rest.starts_with(b"//") {
                let end = self.rest.iter().position(|byte| *byte == b'\n');
                self.pass(end.unwrap_or(self.rest.len()));
            } else if blank == 0 {
                return Ok(());
            }
        }
    }

    pub(super) fn next(&mut self) -> Result<Token, CtfError> {
        self.blanks()?;
        let Some(first) = self.rest.first().copied() else {
            return Ok(Token::End);
        };
        let is_word = |byte: &u8| byte.is_ascii_alphanumeric() || *byte == b'_';
        if is_word(&first) {
            let length = self.rest.iter().take_while(|byte| is_word(byte)).count();
            if length > LONGEST {
                return Err(self.error("a word is too long"));
            }
            let word = String::from_utf8_lossy(&self.rest[..length]).into_owned();
            self.pass(length);
            return match first.is_ascii_digit() {
                true => Ok(Token::Number(
                    number(&word).ok_or_else(|| self.error("a number is none"))?,
                )),
                false => Ok(Token::Word(word)),
            };
        }
        if first == b'"' {
            return self.text();
        }
        for (sign, token) in [(&b":="[..], Token::Assign), (b"...", Token::Dots)] {
            if self.rest.starts_with(sign) {
                self.pass(sign.len());
                return Ok(token);
            }
        }
        self.pass(1);
        Ok(Token::Sign(char::from(first)))
    }

    fn text(&mut self) -> Result<Token, CtfError> {
        let (mut text, mut at) = (Vec::new(), 1);
        loop {
            match self.rest.get(at) {
                Some(b'"') => break,
                Some(b'\\') => {
                    let escaped = self.rest.get(at + 1).copied().unwrap_or(b' ');
                    text.push(match escaped {
                        b'n' => b'\n',
                        b't' => b'\t',
                        other => other,
                    });
                    at += 2;
                }
                Some(byte) => {
                    text.push(*byte);
                    at += 1;
                }
                None => return Err(self.error("a text has no end")),
            }
            if text.len() > LONGEST {
                return Err(self.error("a text is too long"));
            }
        }
        self.pass(at + 1);
        Ok(Token::Text(String::from_utf8_lossy(&text).into_owned()))
    }
}

/// A number as C writes it.
fn number(word: &str) -> Option<u64> {
    let word = word.trim_end_matches(['u', 'U', 'l', 'L']);
    let of = |digits: &str, base| u64::from_str_radix(digits, base).ok();
    match word.strip_prefix("0x").or_else(|| word.strip_prefix("0X")) {
        Some(hex) => of(hex, 16),
        None if word.len() > 1 && word.starts_with('0') => of(&word[1..], 8),
        None => of(word, 10),
    }
}
