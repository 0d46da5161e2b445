//! The developer's commands in the documents: this program parses each.

use crate::{Cli, shell};
use clap::{CommandFactory, Parser};
use jitterscope_testing::shown::{blocks, documents, in_sentences, unknown};

#[test]
fn every_xtask_command_in_the_documents_exists() {
    let mut cli = Cli::command();
    cli.build();
    let mut wrong = Vec::new();
    let mut checked = 0;
    for (page, text) in documents(&shell::root()) {
        for block in blocks(&page, &text) {
            for words in block.commands.iter().flat_map(|shown| &shown.commands) {
                let Some(args) = words.strip_prefix(&["cargo", "xtask"].map(String::from)) else {
                    continue;
                };
                checked += 1;
                let args = ["xtask"].into_iter().chain(args.iter().map(String::as_str));
                if let Err(error) = Cli::try_parse_from(args) {
                    wrong.push(format!("{}: {}: {error}", block.place(), words.join(" ")));
                }
            }
        }
        for (number, words) in in_sentences(&text) {
            let words: Vec<&str> = words.iter().map(String::as_str).collect();
            let ["cargo", "xtask", args @ ..] = &words[..] else {
                continue;
            };
            checked += 1;
            if let Some(word) = unknown(&cli, args, true) {
                let args = args.join(" ");
                wrong.push(format!("{}:{number}: `{args}`: {word}", page.display()));
            }
        }
    }
    eprintln!("{checked} developer's commands in the documents exist");
    assert!(checked > 30, "{checked} commands were found");
    assert!(wrong.is_empty(), "{}", wrong.join("\n"));
}
