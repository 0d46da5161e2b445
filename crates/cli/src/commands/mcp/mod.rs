//! `mcp`: answers an assistant over standard input and output, in the Model Context Protocol.
//!
//! The protocol is JSON-RPC 2.0, one message on a line. The official library, `rmcp`, brings an asynchronous runtime and
//! some thirty further crates; this command needs four methods of it.

mod answers;
mod protocol;
mod tools;

use crate::exit::Exit;
use crate::output;
use crate::places::Places;
use crate::signals;
use answers::Answers;
use anyhow::Context;
use clap::{Args, ValueHint};
use std::io::{BufRead, Read};
use std::path::PathBuf;
use std::sync::atomic::Ordering;
use std::sync::mpsc::{self, RecvTimeoutError, SyncSender};
use std::time::Duration;

/// The longest message that is read, bytes.
const LONGEST: usize = 1 << 20;
/// How soon a signal ends the command.
const LOOK: Duration = Duration::from_millis(100);

/// Arguments of `mcp`.
#[derive(Args, Debug)]
#[command(after_help = "\
An assistant's program starts this command and asks through its standard input. It can list runs, read reports, \
single stalls, culprits and comparisons, and examine this machine (audit, doctor). It changes nothing, records nothing, \
and reads runs only from the folder of runs and from the run folders that you name here. For example, in the configuration of a client:

  {\"mcpServers\": {\"jitterscope\": {\"command\": \"jitterscope\", \"args\": [\"mcp\"]}}}

An answer is shorter than --tokens, counted as four bytes each; it states what is left out, and the cursor of the rest.")]
pub struct McpArgs {
    /// Run folders elsewhere that may be read, too; the client asks for each by the path given here
    #[arg(value_name = "RUN", value_hint = ValueHint::DirPath)]
    pub named: Vec<PathBuf>,
    /// The longest answer, in tokens of four bytes
    #[arg(long, value_name = "N", default_value_t = 10_000, value_parser = clap::value_parser!(u32).range(1000..=1_000_000))]
    pub tokens: u32,
}

/// What came from standard input.
enum Line {
    Message(Vec<u8>),
    TooLong,
}

/// Runs `mcp`, until standard input or the signal ends it.
///
/// # Errors
/// A named folder holds no run; stdin cannot be read; stdout is closed.
pub fn run(args: &McpArgs, places: &Places) -> anyhow::Result<Exit> {
    let answers = Answers::new(places, &args.named, args.tokens as usize * 4)?;
    // The examination of this machine may mount tracefs: a signal waits until it is unmounted again.
    let stop = signals::stop_flag(places).context("signal handlers cannot be set")?;
    let (lines, received) = mpsc::sync_channel(1);
    std::thread::Builder::new()
        .name("js-mcp".into())
        .spawn(move || read(&lines))
        .context("the thread that reads standard input cannot be started")?;
    while !stop.load(Ordering::Relaxed) {
        let line = match received.recv_timeout(LOOK) {
            Ok(line) => line.context("standard input cannot be read")?,
            Err(RecvTimeoutError::Timeout) => continue,
            Err(RecvTimeoutError::Disconnected) => break,
        };
        let answer = match line {
            Line::Message(text) => protocol::answer(&text, &answers),
            Line::TooLong => Some(protocol::too_long(LONGEST)),
        };
        if let Some(answer) = answer {
            output::json_text(&serde_json::to_string(&answer)?)?;
        }
    }
    Ok(Exit::Ok)
}

/// Reads lines until their end.
fn read(lines: &SyncSender<std::io::Result<Line>>) {
    let mut input = std::io::stdin().lock();
    loop {
        let line = next(&mut input);
        let ended = !matches!(line, Some(Ok(_)));
        if let Some(line) = line
            && lines.send(line).is_err()
        {
            return;
        }
        if ended {
            return;
        }
    }
}

/// The next line; `None` at the end.
fn next(input: &mut impl BufRead) -> Option<std::io::Result<Line>> {
    let mut text = Vec::new();
    let limit = LONGEST as u64 + 1;
    match input.by_ref().take(limit).read_until(b'\n', &mut text) {
        Err(error) => return Some(Err(error)),
        Ok(0) => return None,
        Ok(_) => {}
    }
    if text.len() <= LONGEST || text.ends_with(b"\n") {
        return Some(Ok(Line::Message(text)));
    }
    // The rest of it must not be taken for a message.
    loop {
        let (used, ended) = match input.fill_buf() {
            Err(error) => return Some(Err(error)),
            Ok([]) => return Some(Ok(Line::TooLong)),
            Ok(more) => match more.iter().position(|byte| *byte == b'\n') {
                Some(at) => (at + 1, true),
                None => (more.len(), false),
            },
        };
        input.consume(used);
        if ended {
            return Some(Ok(Line::TooLong));
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_line_without_end_is_passed_over_in_bounded_memory() {
        let long = vec![b'x'; 3 * LONGEST];
        let mut text = long.clone();
        text.extend(b"\n{}\n\nlast");
        let mut input = &text[..];
        let mut got = Vec::new();
        while let Some(line) = next(&mut input) {
            got.push(match line.unwrap() {
                Line::Message(text) => String::from_utf8(text).unwrap(),
                Line::TooLong => "too long".into(),
            });
        }
        assert_eq!(got, ["too long", "{}\n", "\n", "last"]);
        assert!(matches!(next(&mut &long[..]), Some(Ok(Line::TooLong))));
    }
}
