//! The commands that the documents show: blocks of `sh` and `console`, with what is known about each.
//!
//! A comment above a block, which no reader of the book sees, says what a test makes of it:
//!
//! - none: the commands run on this machine;
//! - `<!-- run: ID -->`: they read the stored run of that id, and the output is compared;
//! - `<!-- differs: REASON -->`, or `; differs: REASON` after an id: they run, but their output is not compared;
//! - `<!-- example: REASON -->`: they need another machine, so only their options are checked.

use clap::{Arg, Command};
use std::fs;
use std::path::{Path, PathBuf};

/// Documents outside `docs/`.
const BESIDE: [&str; 4] = [
    "README.md",
    "CONTRIBUTING.md",
    "CHANGELOG.md",
    "SECURITY.md",
];

/// What a test does with a block.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum Mark {
    /// Runs it on this machine.
    Live,
    /// Runs it on the stored run of this id.
    Run(String),
    /// Checks its options, for this reason.
    Example(String),
}

/// A block of commands in a document.
#[derive(Clone, Debug)]
pub struct Block {
    /// The document, from the root of the repository.
    pub page: PathBuf,
    /// The line of its fence, from 1.
    pub line: usize,
    pub mark: Mark,
    /// Why its output is not compared.
    pub differs: Option<String>,
    pub commands: Vec<Shown>,
}

/// A line that a user types, and what the document shows below it.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Shown {
    /// As it is typed, without prompt and comment.
    pub typed: String,
    /// The simple commands in it, as words: without `sudo`, variables before a command, and redirections.
    pub commands: Vec<Vec<String>>,
    /// The variables that it sets for its commands.
    pub variables: Vec<(String, String)>,
    /// The lines of output, none where the document shows none.
    pub output: Vec<String>,
}

impl Block {
    /// Where it is, for messages.
    pub fn place(&self) -> String {
        format!("{}:{}", self.page.display(), self.line)
    }
}

/// The documents: those beside `docs/`, then its pages, by path from the root.
///
/// # Panics
/// If they cannot be read.
pub fn documents(root: &Path) -> Vec<(PathBuf, String)> {
    let mut pages: Vec<PathBuf> = BESIDE.iter().map(|page| root.join(page)).collect();
    let mut folders = vec![root.join("docs")];
    while let Some(folder) = folders.pop() {
        for entry in fs::read_dir(&folder).unwrap_or_else(|e| panic!("{}: {e}", folder.display())) {
            let path = entry.expect("an entry of docs").path();
            match path.is_dir() {
                true => folders.push(path),
                false if path.extension().is_some_and(|end| end == "md") => pages.push(path),
                false => {}
            }
        }
    }
    pages.sort();
    let read = |path: PathBuf| {
        let text = fs::read_to_string(&path).unwrap_or_else(|e| panic!("{}: {e}", path.display()));
        let from_root = path.strip_prefix(root).expect("below the root").to_owned();
        (from_root, text)
    };
    pages.into_iter().map(read).collect()
}

/// All blocks of commands in a document.
///
/// # Panics
/// With the place, if a comment or a command in it cannot be read.
pub fn blocks(page: &Path, text: &str) -> Vec<Block> {
    let mut found = Vec::new();
    let mut mark = (Mark::Live, None);
    let mut lines = text.lines().enumerate();
    while let Some((number, line)) = lines.next() {
        let start = line.trim_start();
        let Some(language) = start.strip_prefix("```") else {
            // A mark stands directly above its block.
            if !start.is_empty() {
                mark = marked(start);
            }
            continue;
        };
        let indent = line.len() - start.len();
        let within = |line: &str| line.get(indent..).unwrap_or_default().to_owned();
        let body: Vec<String> = lines
            .by_ref()
            .map(|(_, line)| line)
            .take_while(|line| !line.trim_start().starts_with("```"))
            .map(within)
            .collect();
        let (mark, differs) = std::mem::replace(&mut mark, (Mark::Live, None));
        if !["sh", "console"].contains(&language) {
            continue;
        }
        let line = number + 1;
        let commands = match language {
            "console" => session(&body),
            _ => script(&body),
        };
        let commands = commands.unwrap_or_else(|why| panic!("{}:{line}: {why}", page.display()));
        found.push(Block {
            page: page.to_owned(),
            line,
            mark,
            differs,
            commands,
        });
    }
    found
}

/// What a line above a block says of it: what runs it, and why its output differs.
fn marked(line: &str) -> (Mark, Option<String>) {
    let comment = line
        .strip_prefix("<!--")
        .and_then(|rest| rest.strip_suffix("-->"));
    let (mut mark, mut differs) = (Mark::Live, None);
    for part in comment.into_iter().flat_map(|text| text.split(';')) {
        let part = part.split_once(':');
        match part.map(|(key, value)| (key.trim(), value.trim())) {
            Some(("run", id)) => mark = Mark::Run(id.to_owned()),
            Some((_, "")) => {}
            Some(("example", reason)) => mark = Mark::Example(reason.to_owned()),
            Some(("differs", reason)) => differs = Some(reason.to_owned()),
            _ => {}
        }
    }
    (mark, differs)
}

/// The lines of a session: a prompt, `#` of root or `$` of any user, and the output below each.
fn session(lines: &[String]) -> Result<Vec<Shown>, String> {
    let mut shown: Vec<Shown> = Vec::new();
    let mut lines = lines.iter();
    while let Some(line) = lines.next() {
        let typed = line.strip_prefix("# ").or_else(|| line.strip_prefix("$ "));
        match (typed, shown.last_mut()) {
            (Some(typed), _) => shown.push(whole(typed.to_owned(), &mut lines)?),
            (None, Some(last)) => last.output.push(line.trim_end().to_owned()),
            (None, None) => return Err(format!("'{line}' comes before any command")),
        }
    }
    Ok(shown)
}

/// The lines of a script.
fn script(lines: &[String]) -> Result<Vec<Shown>, String> {
    let mut shown = Vec::new();
    let mut lines = lines.iter();
    while let Some(line) = lines.next() {
        let command = whole(line.clone(), &mut lines)?;
        if !command.typed.is_empty() {
            shown.push(command);
        }
    }
    Ok(shown)
}

/// A command with the lines that continue it.
fn whole<'a>(
    mut typed: String,
    more: &mut impl Iterator<Item = &'a String>,
) -> Result<Shown, String> {
    loop {
        let continued = typed.ends_with('\\');
        if !continued && let Some(words) = shlex::split(&computed(&typed)) {
            return Ok(understood(typed, words));
        }
        let next = more
            .next()
            .ok_or_else(|| format!("'{typed}' does not end"))?;
        match continued {
            true => {
                typed.pop();
            }
            false => typed.push('\n'),
        }
        typed.push_str(next);
    }
}

/// The text with a number in the place of each `$(COMMAND)`: what it prints is a number in these documents.
fn computed(text: &str) -> String {
    let mut rest = text;
    let mut made = String::new();
    while let Some((before, after)) = rest.split_once("$(") {
        let Some((_, tail)) = after.split_once(')') else {
            break;
        };
        made.push_str(before);
        made.push_str("1234");
        rest = tail;
    }
    made + rest
}

fn understood(typed: String, words: Vec<String>) -> Shown {
    let typed = match words.is_empty() {
        true => String::new(),
        false => typed,
    };
    let mut commands: Vec<Vec<String>> = Vec::new();
    let mut variables = Vec::new();
    let words: Vec<String> = words.iter().flat_map(|word| parted(word)).collect();
    for part in words.split(|word| ["&&", "||", "|", ";", "&"].contains(&word.as_str())) {
        let mut words = part.iter().peekable();
        while let Some((name, value)) = words.peek().and_then(|word| assigned(word)) {
            variables.push((name.to_owned(), value.to_owned()));
            words.next();
        }
        words.next_if(|word| *word == "sudo");
        let command: Vec<String> = words
            .filter(|word| {
                !word
                    .trim_start_matches(|c: char| c.is_ascii_digit())
                    .starts_with('>')
            })
            .cloned()
            .collect();
        commands.extend((!command.is_empty()).then_some(command));
    }
    Shown {
        typed,
        commands,
        variables,
        output: Vec::new(),
    }
}

/// A semicolon ends the command whose last word it touches.
fn parted(word: &str) -> Vec<String> {
    match word.strip_suffix(';') {
        Some(last) if !last.is_empty() => vec![last.to_owned(), ";".to_owned()],
        _ => vec![word.to_owned()],
    }
}

fn assigned(word: &str) -> Option<(&str, &str)> {
    let is_name = |name: &&(&str, &str)| {
        !name.0.is_empty() && name.0.chars().all(|c| c.is_ascii_uppercase() || c == '_')
    };
    word.split_once('=').as_ref().filter(is_name).copied()
}

/// The code in the sentences of a document, as words, with its line from 1: what is neither in a block nor plain text.
#[must_use]
pub fn in_sentences(text: &str) -> Vec<(usize, Vec<String>)> {
    let mut in_block = false;
    let mut found = Vec::new();
    for (number, line) in text.lines().enumerate() {
        let fence = line.trim_start().starts_with("```");
        in_block ^= fence;
        if in_block || fence {
            continue;
        }
        for span in line.split('`').skip(1).step_by(2) {
            let words = span.split_whitespace().map(str::to_owned).collect();
            found.push((number + 1, words));
        }
    }
    found
}

/// What a command in a sentence has that a program does not know: a command, or an option. Its values may be
/// placeholders. `wants_command`: the first word must be a command.
#[must_use]
pub fn unknown<'a>(cli: &Command, words: &[&'a str], wants_command: bool) -> Option<&'a str> {
    let mut here = cli;
    let mut known: Vec<&Arg> = cli.get_arguments().collect();
    let mut words = words.iter().peekable();
    while let Some(next) = words.peek().and_then(|word| here.find_subcommand(word)) {
        here = next;
        known.retain(|arg| arg.is_global_set());
        known.extend(here.get_arguments());
        words.next();
    }
    let is_word = |word: &&&&'a str| word.starts_with(|c: char| c.is_ascii_lowercase());
    let first = words.peek().filter(is_word);
    if std::ptr::eq(here, cli)
        && wants_command
        && let Some(word) = first
    {
        return Some(word);
    }
    words
        .take_while(|word| **word != "--")
        .map(|word| word.trim_matches(['[', ']', ',', '\'']))
        .find(|word| !is_known(&known, word))
}

/// Whether a word is no option, or one of these.
fn is_known(known: &[&Arg], word: &str) -> bool {
    let name = word.split_once('=').map_or(word, |(name, _)| name);
    let begins = |name: &str| name.starts_with(|c: char| c.is_ascii_alphabetic());
    if let Some(long) = name.strip_prefix("--").filter(|long| begins(long)) {
        let is_it = |arg: &&Arg| {
            let aliases = arg.get_all_aliases().unwrap_or_default();
            arg.get_long() == Some(long) || aliases.contains(&long)
        };
        return ["help", "version"].contains(&long) || known.iter().any(is_it);
    }
    if let Some(letters) = name.strip_prefix('-').filter(|letters| begins(letters)) {
        let letter = letters.chars().next();
        return letter == Some('h') || known.iter().any(|arg| arg.get_short() == letter);
    }
    true
}

#[cfg(test)]
mod tests {
    use super::*;

    fn of(text: &str) -> Vec<Block> {
        blocks(Path::new("page.md"), text)
    }

    #[test]
    fn a_comment_marks_the_block_below_it_alone() {
        let text = "<!-- example: no card -->\n```sh\na\n```\n```sh\nb\n```\n\n<!-- run: x1 -->\n\n\
                    ```console\n# c\nout\n```\n<!-- run: y -->\nwords\n```sh\nd\n```\n";
        let marks: Vec<Mark> = of(text).into_iter().map(|block| block.mark).collect();
        let example = Mark::Example("no card".into());
        assert_eq!(
            marks,
            [example, Mark::Live, Mark::Run("x1".into()), Mark::Live]
        );
    }

    #[test]
    fn a_mark_may_say_that_the_output_differs() {
        let text = "<!-- run: x1, y2; differs: another machine -->\n```sh\na\n```\n\
                    <!-- differs: it counts -->\n```sh\nb\n```\n```sh\nc\n```\n";
        let marks: Vec<_> = of(text)
            .into_iter()
            .map(|block| (block.mark, block.differs))
            .collect();
        let why = |text: &str| Some(text.to_owned());
        assert_eq!(
            marks,
            [
                (Mark::Run("x1, y2".into()), why("another machine")),
                (Mark::Live, why("it counts")),
                (Mark::Live, None)
            ]
        );
    }

    #[test]
    fn a_session_has_prompts_and_output() {
        let blocks =
            of("```console\n# js record -d 1s   # one second\nline 1\n\nline 2\n$ js list\n```\n");
        let [block] = &blocks[..] else {
            panic!("{blocks:?}")
        };
        assert_eq!((block.line, block.commands.len()), (1, 2));
        let first = &block.commands[0];
        assert_eq!(first.commands, [["js", "record", "-d", "1s"]]);
        assert_eq!(first.output, ["line 1", "", "line 2"]);
        assert!(block.commands[1].output.is_empty());
    }

    #[test]
    fn an_option_that_a_program_lacks_is_noticed() {
        let run = Command::new("run").arg(Arg::new("for").long("for").short('f'));
        let mut cli = Command::new("js").subcommand(run);
        cli.build();
        let unknown = |text: &str| {
            let words: Vec<&str> = text.split(' ').collect();
            unknown(&cli, &words, true).map(str::to_owned)
        };
        for known in [
            "run --for PID",
            "run -f 3 -- --other",
            "run --for=x --help",
            "PAGE",
        ] {
            assert_eq!(unknown(known), None, "{known}");
        }
        assert_eq!(unknown("run --four PID").as_deref(), Some("--four"));
        assert_eq!(unknown("run -x").as_deref(), Some("-x"));
        assert_eq!(unknown("walk --for PID").as_deref(), Some("walk"));
    }

    #[test]
    fn code_in_sentences_is_found_outside_of_blocks() {
        let found = in_sentences("a `b c` d `e`\n```sh\nx `y`\n```\n`f`\n");
        let words =
            |number, words: &[&str]| (number, words.iter().map(|w| (*w).to_owned()).collect());
        assert_eq!(
            found,
            [words(1, &["b", "c"]), words(1, &["e"]), words(5, &["f"])]
        );
    }

    #[test]
    fn commands_are_read_as_a_shell_reads_them() {
        let blocks = of(
            "1. item\n\n   ```sh\n   A=1 sudo js run \\\n     --x 'a b' && js two >file 2>&1; js more &\n   js \"three\n   lines\" \"$(pidof x)\"\n   # words\n   ```\n",
        );
        let commands: Vec<_> = blocks[0]
            .commands
            .iter()
            .flat_map(|shown| shown.commands.clone())
            .collect();
        assert_eq!(
            commands,
            [
                vec!["js", "run", "--x", "a b"],
                vec!["js", "two"],
                vec!["js", "more"],
                vec!["js", "three\nlines", "1234"]
            ]
        );
        assert_eq!(
            blocks[0].commands[0].variables,
            [("A".into(), "1".to_owned())]
        );
    }
}
