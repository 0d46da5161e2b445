//! What the library that parses formats must not be given.
//!
//! It expects the kernel's own text and panics on some that only a damaged or hostile run can hold
//! (each case here was found by fuzzing): numbers beyond 32 bits, offsets and sizes whose sum leaves 16
//! bits, cuts inside a character, a second list of fields, structures by value.

/// Field ends beyond this cannot be in a page's event, and the library adds them as 16 bits.
const FURTHEST_FIELD: u32 = 0x3fff;
/// The longest `format` text accepted; real ones have a few kilobytes.
const LONGEST_TEXT: usize = 1 << 18;

/// What is wrong with a text.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(super) enum Flaw {
    /// It is not shaped like a format.
    Form,
    /// It holds a number that cannot be.
    Number(String),
}

/// The part of an event's format that the library can be given.
pub(super) fn event(text: &str) -> Result<String, Flaw> {
    if text.len() > LONGEST_TEXT {
        return Err(Flaw::Form);
    }
    // How an event would be printed is of no use here, and is where long numbers may stand.
    let text = text.find("\nprint fmt:").map_or(text, |end| &text[..=end]);
    if !text.is_ascii() || text.matches("format:").count() != 1 {
        return Err(Flaw::Form);
    }
    if let Some(number) = long_number(text) {
        return Err(Flaw::Number(number.chars().take(40).collect()));
    }
    for property in text.split(['\n', '\r', ';']) {
        if let Some(("offset" | "size", value)) = property.trim().split_once(':') {
            match value.trim().parse::<u32>() {
                Ok(n) if n <= FURTHEST_FIELD => {}
                _ => return Err(Flaw::Number(property.trim().chars().take(40).collect())),
            }
        }
    }
    // No field that is read here is a structure by value.
    let mut tame = String::with_capacity(text.len());
    for line in text
        .split_inclusive(['\n', '\r'])
        .filter(|line| !is_structure(line))
    {
        tame.push_str(line);
    }
    Ok(tame)
}

/// Whether the library can be given this line of `events/header_page`.
pub(crate) fn is_tame_line(line: &str) -> bool {
    line.is_ascii() && long_number(line).is_none() && !is_structure(line)
}

fn is_structure(line: &str) -> bool {
    line.contains("struct") && !line.contains('*')
}

/// The first number that arithmetic on 32 bits may not hold: none in a real format has ten digits.
fn long_number(text: &str) -> Option<&str> {
    text.split(|c: char| !c.is_ascii_alphanumeric())
        .find(|word| {
            word.len() > 9 && word.bytes().any(|b| b.is_ascii_digit()) && !is_plain_name(word)
        })
}

/// Whether digits in `word` stand only behind its letters, as in a field's name, and are few.
fn is_plain_name(word: &str) -> bool {
    let digits = word.bytes().skip_while(|b| !b.is_ascii_digit()).count();
    word.starts_with(|c: char| c.is_ascii_alphabetic()) && digits <= 9
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn what_the_library_cannot_take_is_kept_from_it() {
        let number = |text: &str| matches!(event(text), Err(Flaw::Number(_)));
        assert!(number("format:\n\tfield:int a;\tsigned:42949672960;\n"));
        assert!(number("format:\n\tfield:int a;\toffset:65535;\n"));
        assert!(number("format:\n\tfield:int a;\rsize:0x9;\n"));
        assert_eq!(event("format:\n\tfield:\u{5ea} a;\n"), Err(Flaw::Form));
        assert_eq!(event("format:\nformat:\n"), Err(Flaw::Form));
        assert_eq!(event(&"x".repeat(LONGEST_TEXT + 1)), Err(Flaw::Form));
        let text = "format:\n\tfield:struct a b;\n\tfield:struct c * d;\n\nprint fmt: \"0x1234567890ab\"\n";
        assert_eq!(
            event(text).as_deref(),
            Ok("format:\n\tfield:struct c * d;\n\n")
        );
        assert!(is_tame_line("field: u64 timestamp;") && !is_tame_line("size:12345678901;"));
    }
}
