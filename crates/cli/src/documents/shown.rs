//! The commands in the documents: this program parses each, in blocks and in sentences.

use crate::args::Cli;
use crate::{parsing, profile};
use clap::CommandFactory;
use jitterscope_testing::shown::{blocks, documents, in_sentences, unknown};
use std::ffi::OsString;
use std::path::Path;

fn root() -> std::path::PathBuf {
    Path::new(env!("CARGO_MANIFEST_DIR")).join("../..")
}

/// The arguments of ours that a command of a document has, if it starts this program.
fn ours(words: &[String]) -> Option<&[String]> {
    let starts =
        |from: &[&str]| words.len() >= from.len() && words.iter().zip(from).all(|(a, b)| a == b);
    let after_dashes = || {
        let at = words.iter().position(|word| word == "--")?;
        Some(&words[at + 1..])
    };
    if starts(&["cargo", "run"]) {
        return after_dashes();
    }
    let words = match starts(&["cargo", "xtask", "lab"]) {
        true => after_dashes()?,
        false => words,
    };
    let (program, args) = words.split_first()?;
    (Path::new(program).file_name()? == "jitterscope").then_some(args)
}

/// What is wrong with the arguments.
fn objection(args: &[String]) -> Option<String> {
    let given: Vec<OsString> = ["jitterscope"]
        .into_iter()
        .map(OsString::from)
        .chain(args.iter().map(OsString::from))
        .collect();
    let given = match profile::expand(&given) {
        Ok(expanded) => expanded.unwrap_or(given),
        Err(error) => return Some(error.to_string()),
    };
    parsing::parse(&given).err().map(|error| error.to_string())
}

#[test]
fn every_command_in_a_block_parses() {
    let mut wrong = Vec::new();
    let mut parsed = 0;
    for (page, text) in documents(&root()) {
        for block in blocks(&page, &text) {
            let commands = block.commands.iter().flat_map(|shown| &shown.commands);
            for args in commands.filter_map(|words| ours(words)) {
                parsed += 1;
                if let Some(why) = objection(args) {
                    wrong.push(format!("{}: {}: {why}", block.place(), args.join(" ")));
                }
            }
        }
    }
    eprintln!("{parsed} commands in blocks of the documents parse");
    assert!(parsed > 50, "{parsed} commands were found");
    assert!(wrong.is_empty(), "{}", wrong.join("\n"));
}

#[test]
fn every_option_in_a_sentence_exists() {
    let mut cli = Cli::command();
    cli.build();
    let mut wrong = Vec::new();
    let mut checked = 0;
    for (page, text) in documents(&root()) {
        for (number, words) in in_sentences(&text) {
            let words: Vec<&str> = words.iter().map(String::as_str).collect();
            let (words, wants_command) = match &words[..] {
                // Its arguments are those of another program.
                ["fleet", ..] | ["jitterscope", "fleet", ..] => continue,
                ["sudo", "jitterscope", rest @ ..] | ["jitterscope", rest @ ..] => (rest, true),
                [first, _, ..] if cli.find_subcommand(first).is_some() => (&words[..], false),
                _ => continue,
            };
            checked += 1;
            if let Some(word) = unknown(&cli, words, wants_command) {
                let words = words.join(" ");
                wrong.push(format!("{}:{number}: `{words}`: {word}", page.display()));
            }
        }
    }
    eprintln!("{checked} commands in sentences of the documents exist");
    assert!(checked > 200, "{checked} commands were found");
    assert!(wrong.is_empty(), "{}", wrong.join("\n"));
}

#[test]
fn every_command_is_described_in_the_documents() {
    let cli = Cli::command();
    // What each does, and where its screen is explained.
    for page in ["docs/commands.md", "docs/reading.md"] {
        let text = std::fs::read_to_string(root().join(page)).unwrap();
        let visible = cli
            .get_subcommands()
            .filter(|command| !command.is_hide_set());
        let missing: Vec<&str> = visible
            .map(clap::Command::get_name)
            .filter(|name| !text.contains(&format!("`{name}")))
            .collect();
        assert!(missing.is_empty(), "{page} lacks {missing:?}");
    }
}
