//! Safe display of foreign text: thread names, labels, paths, texts from files and servers.
//!
//! A name can contain characters that move a terminal's cursor, rewrite lines above it, change the direction of text or
//! are invisible. [`visible`] is the one place that decides which characters are shown unchanged. It escapes all others
//! (`\n`, `\x1b`, `\u{202e}`), so nothing is hidden and nothing is lost. Screens of several lines are built from such
//! texts; [`visible_page`] is for a complete page.

use std::borrow::Cow;
use std::ffi::OsStr;
use std::fmt::Write;

/// The maximum of characters of one text; no screen has room for more.
const LONGEST: usize = 16 << 10;

/// `text` as one line of a screen. Escapes every character that is not plainly visible. Cuts a text of more than 16 Ki
/// characters, and notes how much is missing.
#[must_use]
pub fn visible(text: &str) -> Cow<'_, str> {
    if text.len() <= LONGEST && text.chars().all(is_visible) {
        return Cow::Borrowed(text);
    }
    let mut out = String::with_capacity(text.len().min(LONGEST) + 16);
    let mut chars = text.chars();
    for c in chars.by_ref().take(LONGEST) {
        push_visible(&mut out, c);
    }
    let left = chars.count();
    if left > 0 {
        out.push_str(&format!(".. ({left} characters more)"));
    }
    Cow::Owned(out)
}

/// The same for a name from the system: also escapes bytes that are not UTF-8 (`\xff`).
#[must_use]
pub fn visible_os(text: &OsStr) -> Cow<'_, str> {
    if let Some(text) = text.to_str() {
        return visible(text);
    }
    let mut out = String::new();
    for chunk in text.as_encoded_bytes().utf8_chunks() {
        out.push_str(chunk.valid());
        for byte in chunk.invalid() {
            let _ = write!(out, "\\x{byte:02x}");
        }
    }
    Cow::Owned(visible(&out).into_owned())
}

/// A page of lines: like [`visible`], but keeps line ends, and has no length limit.
#[must_use]
pub fn visible_page(text: &str) -> Cow<'_, str> {
    if text.chars().all(|c| c == '\n' || is_visible(c)) {
        return Cow::Borrowed(text);
    }
    let mut out = String::with_capacity(text.len() + 16);
    for c in text.chars() {
        match c {
            '\n' => out.push(c),
            c => push_visible(&mut out, c),
        }
    }
    Cow::Owned(out)
}

/// JSON that is safe for a terminal. A serializer only escapes characters below U+0020, but not DEL, the C1 controls
/// and direction marks. Such a character can only occur inside a string, where `\u009b` means the same; so the document
/// is the same for every reader.
#[must_use]
pub fn visible_json(json: &str) -> Cow<'_, str> {
    if json.chars().all(|c| c == '\n' || is_visible(c)) {
        return Cow::Borrowed(json);
    }
    let mut out = String::with_capacity(json.len() + 16);
    for c in json.chars() {
        if c == '\n' || is_visible(c) {
            out.push(c);
            continue;
        }
        for unit in c.encode_utf16(&mut [0; 2]) {
            let _ = write!(out, "\\u{unit:04x}");
        }
    }
    Cow::Owned(out)
}

/// Appends a character to `out`, escaped if necessary.
pub fn push_visible(out: &mut String, c: char) {
    if is_visible(c) {
        out.push(c);
        return;
    }
    let _ = match c {
        '\n' => out.write_str("\\n"),
        '\r' => out.write_str("\\r"),
        '\t' => out.write_str("\\t"),
        c if c.is_ascii() => write!(out, "\\x{:02x}", u32::from(c)),
        c => write!(out, "\\u{{{:x}}}", u32::from(c)),
    };
}

/// Whether a character only shows itself: no control character (C0, DEL, C1), no line or paragraph separator, none that
/// changes the direction of text, and none that Unicode makes invisible.
#[must_use]
pub fn is_visible(c: char) -> bool {
    if c.is_ascii() {
        return matches!(c, ' '..='~');
    }
    !c.is_control()
        && !matches!(c,
            // Soft hyphen, joiners and invisible fillers.
            '\u{ad}' | '\u{34f}' | '\u{115f}' | '\u{1160}' | '\u{17b4}' | '\u{17b5}' | '\u{180b}'..='\u{180f}'
            | '\u{3164}' | '\u{ffa0}'
            // Direction marks, embeddings, overrides and isolates.
            | '\u{61c}' | '\u{200b}'..='\u{200f}' | '\u{202a}'..='\u{202e}'
            // Line and paragraph separators; invisible operators, isolates, deprecated controls.
            | '\u{2028}' | '\u{2029}' | '\u{2060}'..='\u{206f}'
            // Variation selectors, byte-order mark, annotations, noncharacters.
            | '\u{fe00}'..='\u{fe0f}' | '\u{feff}' | '\u{fff0}'..='\u{fffb}' | '\u{fffe}' | '\u{ffff}'
            // Controls of shorthand and music, tags, variation selectors.
            | '\u{1bca0}'..='\u{1bca3}' | '\u{1d173}'..='\u{1d17a}' | '\u{e0000}'..='\u{e0fff}')
}

#[cfg(test)]
mod tests {
    use super::*;
    use proptest::prelude::*;
    use std::os::unix::ffi::OsStrExt;

    #[test]
    fn what_controls_a_terminal_is_spelt_out() {
        for (text, shown) in [
            (
                "plain \u{4e2d}\u{e9} e\u{301} C:\\x",
                "plain \u{4e2d}\u{e9} e\u{301} C:\\x",
            ),
            (
                "a\u{1b}[31mb\n\u{7f}\t\r\0",
                "a\\x1b[31mb\\n\\x7f\\t\\r\\x00",
            ),
            (
                "\u{9b}2J \u{202e}\u{2066}\u{200b}\u{feff}",
                "\\u{9b}2J \\u{202e}\\u{2066}\\u{200b}\\u{feff}",
            ),
            ("\u{e0041}\u{2028}\u{ad}", "\\u{e0041}\\u{2028}\\u{ad}"),
        ] {
            assert_eq!(visible(text), shown);
        }
        assert_eq!(visible_page("a\nb\u{1b}c"), "a\nb\\x1bc");
        assert_eq!(visible_os(OsStr::from_bytes(b"a\xff\x1b")), "a\\xff\\x1b");
    }

    #[test]
    fn a_text_of_any_length_is_bounded_and_says_so() {
        let shown = visible(&"x".repeat(LONGEST + 7)).into_owned();
        assert_eq!(shown.len(), LONGEST + ".. (7 characters more)".len());
        assert!(shown.ends_with(".. (7 characters more)"));
    }

    #[test]
    fn json_means_the_same_and_is_harmless() {
        let name = "a\u{9b}2J\u{202e}\u{7f}\u{e0041}\u{1b}";
        let json = serde_json::to_string_pretty(&serde_json::json!({ name: [name] })).unwrap();
        let shown = visible_json(&json);
        assert!(shown.chars().all(|c| c == '\n' || is_visible(c)), "{shown}");
        assert_eq!(
            serde_json::from_str::<serde_json::Value>(&shown).unwrap(),
            serde_json::from_str::<serde_json::Value>(&json).unwrap()
        );
    }

    proptest! {
        #[test]
        fn nothing_else_comes_out_and_a_second_time_changes_nothing(text in any::<String>()) {
            let once = visible(&text).into_owned();
            prop_assert!(once.chars().all(is_visible));
            prop_assert_eq!(&*visible(&once), once.as_str());
        }
    }
}
