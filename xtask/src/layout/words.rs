//! A Rust source as words and signs, as far as one must read it to see which modules it names.

/// A word or a sign of a source; `::` is one sign, comments and what stands in quotes are none.
pub(super) fn words(text: &str) -> Vec<&str> {
    let mut found = Vec::new();
    let mut at = 0;
    while let Some(first) = text[at..].chars().next() {
        let rest = &text[at..];
        let skipped = skipped(rest);
        if skipped > 0 {
            at += skipped;
            continue;
        }
        let long = match first {
            ':' if rest.starts_with("::") => 2,
            _ if is_of_a_word(first) => rest.find(|c| !is_of_a_word(c)).unwrap_or(rest.len()),
            _ => first.len_utf8(),
        };
        found.push(&rest[..long]);
        at += long;
    }
    found
}

fn is_of_a_word(c: char) -> bool {
    c.is_alphanumeric() || c == '_'
}

/// How many bytes from here on say nothing: white space, a comment, a text, a character, a lifetime.
fn skipped(rest: &str) -> usize {
    let to = |end: Option<usize>, of: usize| end.map_or(rest.len(), |end| end + of);
    let blank = rest.len() - rest.trim_start().len();
    if blank > 0 {
        return blank;
    }
    if rest.starts_with("//") {
        return to(rest.find('\n'), 1);
    }
    if rest.starts_with("/*") {
        return block_comment(rest);
    }
    // `r"`, `br#"`: nothing is escaped there, and as many `#` end it as began it.
    let raw = rest
        .strip_prefix("br")
        .or_else(|| rest.strip_prefix('r'))
        .unwrap_or("");
    let signs = raw.len() - raw.trim_start_matches('#').len();
    if raw[signs..].starts_with('"') {
        let begun = rest.len() - raw.len() + signs + 1;
        let end = format!("\"{}", "#".repeat(signs));
        return to(rest[begun..].find(&end), begun + end.len());
    }
    let text = rest.strip_prefix('b').unwrap_or(rest);
    let prefix = rest.len() - text.len();
    match text.chars().next() {
        Some('"') => prefix + quoted(text, '"'),
        Some('\'') if is_character(text) => prefix + quoted(text, '\''),
        // A lifetime's word is no module's.
        Some('\'') if prefix == 0 => {
            1 + text[1..]
                .find(|c| !is_of_a_word(c))
                .unwrap_or(text.len().saturating_sub(1))
        }
        _ => 0,
    }
}

/// `'a'` and `'\n'`, unlike `'a`.
fn is_character(text: &str) -> bool {
    let mut chars = text.chars().skip(1);
    match chars.next() {
        Some('\\') => true,
        Some(_) => chars.next() == Some('\''),
        None => false,
    }
}

/// Bytes of what stands between two of `quote`.
fn quoted(text: &str, quote: char) -> usize {
    let mut escaped = false;
    for (at, c) in text.char_indices().skip(1) {
        match c {
            _ if escaped => escaped = false,
            '\\' => escaped = true,
            _ if c == quote => return at + 1,
            _ => {}
        }
    }
    text.len()
}

/// Bytes of a comment that may hold others.
fn block_comment(text: &str) -> usize {
    let (mut depth, mut at) = (0usize, 0);
    while at < text.len() {
        match &text.as_bytes()[at..] {
            [b'/', b'*', ..] => (depth, at) = (depth + 1, at + 2),
            [b'*', b'/', ..] => (depth, at) = (depth - 1, at + 2),
            _ => at += 1,
        }
        if depth == 0 {
            break;
        }
    }
    at
}

/// Of `words`, those that are not under `#[cfg(test)]` or the like.
pub(super) fn without_tests(words: Vec<&str>) -> Vec<&str> {
    let mut kept = Vec::with_capacity(words.len());
    let mut at = 0;
    while at < words.len() {
        if words[at] == "#" && words.get(at + 1) == Some(&"[") {
            let end = at + 1 + closed(&words[at + 1..]);
            let of_tests = words[at + 2..end].first() == Some(&"cfg")
                && words[at + 2..end].contains(&"test")
                && !words[at + 2..end].contains(&"not");
            if of_tests {
                at = end + item(&words[end..]);
            } else {
                kept.extend(&words[at..end]);
                at = end;
            }
            continue;
        }
        kept.push(words[at]);
        at += 1;
    }
    kept
}

/// How many words from a bracket to the one that closes it, both included.
fn closed(words: &[&str]) -> usize {
    let mut depth = 0usize;
    for (at, word) in words.iter().enumerate() {
        match *word {
            "(" | "[" | "{" => depth += 1,
            ")" | "]" | "}" => depth = depth.saturating_sub(1),
            _ => {}
        }
        if depth == 0 {
            return at + 1;
        }
    }
    words.len()
}

/// How many words an item or a statement has: to its `;`, or to the end of its body.
fn item(words: &[&str]) -> usize {
    let is_import = words
        .iter()
        .take_while(|word| **word != "{")
        .any(|word| *word == "use");
    let mut at = 0;
    while at < words.len() {
        match words[at] {
            ";" | "," => return at + 1,
            "{" if !is_import => return at + closed(&words[at..]),
            "(" | "[" | "{" => at += closed(&words[at..]),
            _ => at += 1,
        }
    }
    words.len()
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn comments_texts_and_lifetimes_name_nothing() {
        let text = "use a::b; // crate::c\n/* x /* y */ z */ let s = \"crate::d \\\" e\"; 'f: r#\"g \" h\"# '{' b'}' '\\''";
        assert_eq!(
            words(text),
            ["use", "a", "::", "b", ";", "let", "s", "=", ";", ":"]
        );
        assert_eq!(
            words("fn f<'a>(rest: &'a str) { r }").join(" "),
            "fn f < > ( rest : & str ) { r }"
        );
        // What ends within something is read to its end.
        for cut in ["\"a", "/* a", "'", "r#\"a", "b", "'\\"] {
            assert!(words(cut).len() <= 1, "{cut}");
        }
    }

    #[test]
    fn what_only_tests_see_is_left_out() {
        let of = |text| without_tests(words(text)).join(" ");
        assert_eq!(
            of("a; #[cfg(test)] mod tests { use super::*; fn f() { } } b"),
            "a ; b"
        );
        assert_eq!(of("#[cfg(test)] mod tests; b"), "b");
        assert_eq!(of("#[cfg(test)] use a::{b, c}; d"), "d");
        assert_eq!(
            of("#[cfg(all(test, unix))] fn f(a: [u8; 3]) -> u8 { 1 } d"),
            "d"
        );
        assert_eq!(of("#[cfg(not(test))] x"), "# [ cfg ( not ( test ) ) ] x");
        assert_eq!(
            of("#[derive(Debug)] struct S;"),
            "# [ derive ( Debug ) ] struct S ;"
        );
    }
}
