//! Parses the output of `cargo test`: how many tests passed, and which failed with which message.

use super::report::Failure;
use std::mem;

/// Lines of a message repeated in the summary.
const MESSAGE_LINES: usize = 6;
/// Characters of such a line.
const LINE_LENGTH: usize = 300;

/// The results so far.
#[derive(Debug, Default)]
pub struct Output {
    pub passed: usize,
    /// Failed tests. The arguments that run its binary alone precede a test's name.
    pub failures: Vec<Failure>,
    /// Failures of a binary whose arguments cargo has not printed yet.
    pending: Vec<Failure>,
    /// Names of failed tests, from the lines before the messages.
    named: Vec<String>,
    /// A panic of a binary without the standard harness.
    panic: Option<Vec<String>>,
    /// Whether the output of a failure is being read.
    open: bool,
}

impl Output {
    /// Takes a line. Returns whether a user who watches wants to see it.
    pub fn line(&mut self, line: &str) -> bool {
        if let Some(name) = line
            .strip_prefix("test ")
            .and_then(|rest| rest.strip_suffix(" ... FAILED"))
        {
            self.named.push(name.to_owned());
            return true;
        }
        if let Some(name) = line
            .strip_prefix("---- ")
            .and_then(|rest| rest.strip_suffix(" stdout ----"))
        {
            self.pending.push(Failure::of(name));
            self.open = true;
            return true;
        }
        if line == "failures:" {
            self.open = false;
            return !self.named.is_empty();
        }
        if let Some(counts) = line.strip_prefix("test result: ") {
            self.passed += count(counts, "passed");
            self.ended();
            return true;
        }
        // From a test, or from the examples in a crate's documentation.
        if let Some((_, rest)) = line.split_once("test failed, to rerun pass `")
            && line.starts_with("error: ")
        {
            self.failed(rest.trim_end_matches('`'));
            return true;
        }
        if line.starts_with("thread '") && line.contains(" panicked at ") {
            // The last one counts: earlier panics are from threads that a test started, or are expected.
            let place = line.split(" panicked at ").nth(1).unwrap_or_default();
            self.message(true, place.trim_end_matches(':'));
            return true;
        }
        if line.starts_with("stack backtrace:")
            || line.starts_with("note: run with `RUST_BACKTRACE")
        {
            self.close_message();
            return false;
        }
        self.message(false, line);
        let is_progress = line.starts_with("test ")
            && (line.ends_with(" ... ok") || line.contains(" ... ignored"));
        !(is_progress || line.is_empty() || line.starts_with("running "))
    }

    fn message(&mut self, begins: bool, line: &str) {
        let lines = match self.pending.last_mut().filter(|_| self.open) {
            Some(failure) => &mut failure.message,
            None if begins => self.panic.insert(Vec::new()),
            None => match &mut self.panic {
                Some(lines) => lines,
                None => return,
            },
        };
        if begins {
            lines.clear();
        } else if lines.is_empty() {
            // Printed by the test before it failed.
            return;
        }
        if lines.len() < MESSAGE_LINES && !line.trim().is_empty() {
            lines.push(cut(line));
        }
    }

    fn close_message(&mut self) {
        self.open = false;
    }

    /// The end of a binary with the standard harness: a test whose process died has no message.
    fn ended(&mut self) {
        let known = |name: &String| self.pending.iter().all(|failure| failure.name != *name);
        let silent: Vec<String> = self.named.drain(..).collect();
        let silent: Vec<String> = silent.into_iter().filter(known).collect();
        self.pending
            .extend(silent.iter().map(|name| Failure::of(name)));
        self.panic = None;
        self.open = false;
    }

    fn failed(&mut self, rerun: &str) {
        self.ended_without_result();
        for mut failure in mem::take(&mut self.pending) {
            failure.name = format!("{rerun} {}", failure.name).trim_end().to_owned();
            self.failures.push(failure);
        }
    }

    /// A binary without the standard harness, or one that died: its last output, and the failed tests.
    fn ended_without_result(&mut self) {
        let panic = self.panic.take();
        self.ended();
        if self.pending.is_empty() {
            self.pending.push(Failure {
                name: String::new(),
                message: panic.unwrap_or_default(),
            });
        }
    }
}

/// 45 from `ok. 45 passed; 0 failed; ...`.
fn count(counts: &str, what: &str) -> usize {
    let before = counts.split(what).next().unwrap_or_default();
    let word = before.split_whitespace().last().unwrap_or_default();
    word.parse().unwrap_or(0)
}

fn cut(line: &str) -> String {
    match line.char_indices().nth(LINE_LENGTH) {
        Some((at, _)) => format!("{}...", &line[..at]),
        None => line.to_owned(),
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn read(text: &str) -> Output {
        let mut output = Output::default();
        for line in text.lines() {
            output.line(line);
        }
        output
    }

    const HARNESS: &str = "\
     Running tests/it/main.rs (target/debug/deps/it-db6d47dbf7d41500)

running 3 tests
test a::passes ... ok
test b::panics ... FAILED
test c::prints ... FAILED

failures:

---- b::panics stdout ----
it said this before
thread 'helper' (7) panicked at src/lib.rs:1:1:
expected by the test
thread 'b::panics' (9) panicked at tests/it/b.rs:12:5:
assertion `left == right` failed: words
  left: 1
 right: 2
stack backtrace:
   0: __rustc::rust_begin_unwind
---- c::prints stdout ----
Error: \"of a test that returns one\"

failures:
    b::panics
    c::prints

test result: FAILED. 1 passed; 2 failed; 0 ignored; 0 measured; 0 filtered out; finished in 5.50s

error: test failed, to rerun pass `-p jitterscope --test it`
     Running unittests src/lib.rs (target/debug/deps/x-1)
test result: ok. 45 passed; 0 failed; 1 ignored; 0 measured; 0 filtered out; finished in 5.50s
";

    #[test]
    fn failed_tests_have_their_binary_and_message_without_a_backtrace() {
        let output = read(HARNESS);
        assert_eq!(output.passed, 46);
        let [panics, prints] = &output.failures[..] else {
            panic!("{output:?}");
        };
        assert_eq!(panics.name, "-p jitterscope --test it b::panics");
        assert_eq!(
            panics.message,
            [
                "tests/it/b.rs:12:5",
                "assertion `left == right` failed: words",
                "  left: 1",
                " right: 2"
            ]
        );
        assert_eq!(prints.name, "-p jitterscope --test it c::prints");
    }

    #[test]
    fn a_binary_that_dies_without_a_result_is_a_failure() {
        let own_harness = "\
disturb: fifo ok
thread 'main' (3) panicked at tests/disturb.rs:125:5:
assertion failed: trap
stack backtrace:
   0: begin
error: test failed, to rerun pass `-p jitterscope-inject --test disturb`
";
        let output = read(own_harness);
        assert_eq!(output.failures.len(), 1);
        assert_eq!(
            output.failures[0].name,
            "-p jitterscope-inject --test disturb"
        );
        assert_eq!(output.failures[0].message[1], "assertion failed: trap");
        let killed = read("running 2 tests\nerror: test failed, to rerun pass `-p x --lib`\n");
        assert_eq!(killed.failures[0].name, "-p x --lib");
        let example = read("error: doctest failed, to rerun pass `-p x --doc`\n");
        assert_eq!(example.failures[0].name, "-p x --doc");
    }

    #[test]
    fn who_watches_sees_binaries_and_failures_alone() {
        let mut output = Output::default();
        let mut seen = |line| output.line(line);
        assert!(!seen("test a ... ok") && !seen("") && !seen("running 45 tests"));
        assert!(seen(
            "     Running tests/it/main.rs (target/debug/deps/it-1)"
        ));
        assert!(seen("test b ... FAILED"));
        assert!(seen("test result: ok. 1 passed; 0 failed"));
    }
}
