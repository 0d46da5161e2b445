//! Protects the library that parses formats from invalid input.
//!
//! The library expects the kernel's own text. It panics on some texts that only occur in damaged or hostile runs.
//! Fuzzing found each case here: numbers beyond 32 bits, offsets and sizes whose sum exceeds 16 bits, cuts inside a
//! character, a second list of fields, structures by value.

/// No event of a page has fields beyond this, and the library adds their positions as 16-bit numbers.
const FURTHEST_FIELD: u32 = 0x3fff;
/// The longest accepted `format` text; real ones have a few kilobytes.
const LONGEST_TEXT: usize = 1 << 18;

#[derive(Clone, Debug, PartialEq, Eq)]
pub(super) enum Flaw {
    /// It does not have the form of a format.
    Form,
    /// It has an impossible number.
    Number(String),
}

/// The part of an event's format that is safe for the library.
pub(super) fn event(text: &str) -> Result<String, Flaw> {
    if text.len() > LONGEST_TEXT {
        return Err(Flaw::Form);
    }
    // The print format is not needed here, and may contain long numbers.
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
    // No field that we read is a structure by value.
    let mut tame = String::with_capacity(text.len());
    for line in text
        .split_inclusive(['\n', '\r'])
        .filter(|line| !is_structure(line))
    {
        tame.push_str(line);
    }
    Ok(tame)
}

/// Whether this line of `events/header_page` is safe for the library.
pub(crate) fn is_tame_line(line: &str) -> bool {
    line.is_ascii() && long_number(line).is_none() && !is_structure(line)
}

fn is_structure(line: &str) -> bool {
    line.contains("struct") && !line.contains('*')
}

/// The first number that may exceed 32 bits: no number in a real format has ten digits.
fn long_number(text: &str) -> Option<&str> {
    text.split(|c: char| !c.is_ascii_alphanumeric())
        .find(|word| {
            word.len() > 9 && word.bytes().any(|b| b.is_ascii_digit()) && !is_plain_name(word)
        })
}

/// Whether `word` has letters first and then at most a few digits, like a field's name.
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
