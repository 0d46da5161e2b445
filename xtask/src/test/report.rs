//! The results of stages, and the closing lines of the command.

use crate::skipped::Skipped;
use std::time::Duration;

#[derive(Debug, PartialEq, Eq)]
pub struct Failure {
    pub name: String,
    /// Its output by line.
    pub message: Vec<String>,
}

impl Failure {
    /// A failure without a message.
    pub fn of(name: &str) -> Failure {
        Failure {
            name: name.to_owned(),
            message: Vec::new(),
        }
    }
}

#[derive(Debug, Default)]
pub struct Found {
    /// Number of passed checks, if the stage counts them.
    pub passed: usize,
    pub skipped: Skipped,
    pub failures: Vec<Failure>,
}

impl Found {
    /// Adds the results of other checks of the stage.
    pub fn add(&mut self, others: Found) {
        self.passed += others.passed;
        self.failures.extend(others.failures);
        for what in others.skipped.all() {
            self.skipped.add(what.clone());
        }
    }
}

#[derive(Debug)]
pub struct Ended {
    pub stage: String,
    /// Its position in the closing lines.
    pub at: usize,
    /// Its duration; `None` if an earlier failure prevented it from running.
    pub took: Option<Duration>,
    pub found: Found,
}

impl Ended {
    /// A stage that lacks something that was not built.
    pub fn not_run(stage: String, at: usize) -> Ended {
        Ended {
            stage,
            at,
            took: None,
            found: Found::default(),
        }
    }

    fn verdict(&self) -> &'static str {
        match (&self.took, self.found.failures.is_empty()) {
            (None, _) => "NOT RUN",
            (_, false) => "FAILED",
            // Something was skipped and nothing was checked.
            _ if self.found.passed == 0 && !self.found.skipped.all().is_empty() => "skipped",
            _ => "passed",
        }
    }

    fn line(&self) -> String {
        let took = self.took.map_or_else(
            || "-".to_owned(),
            |took| format!("{:.1}", took.as_secs_f64() / 60.0),
        );
        let counts = [
            (self.found.passed, "passed"),
            (self.found.failures.len(), "failed"),
            (self.found.skipped.all().len(), "skipped"),
        ];
        let counts: Vec<String> = counts
            .iter()
            .filter(|(count, _)| *count > 0)
            .map(|(count, what)| format!("{count} {what}"))
            .collect();
        format!(
            "{:<12} {:<8} {took:>5} min  {}",
            self.stage,
            self.verdict(),
            counts.join(", ")
        )
        .trim_end()
        .to_owned()
    }
}

/// The closing lines: skipped checks, failures with messages, a line per stage, and the sums.
pub fn closing(stages: &[Ended]) -> Vec<String> {
    let mut lines = Vec::new();
    for ended in stages {
        for what in ended.found.skipped.all() {
            lines.push(format!("SKIPPED {}: {what}", ended.stage));
        }
    }
    for ended in stages {
        for failure in &ended.found.failures {
            lines.push(format!("FAILED {}: {}", ended.stage, failure.name));
            lines.extend(failure.message.iter().map(|line| format!("    {line}")));
        }
    }
    lines.extend(stages.iter().map(Ended::line));
    let sum = |count: fn(&Ended) -> usize| stages.iter().map(count).sum::<usize>();
    lines.push(format!(
        "{} passed, {} failed, {} skipped",
        sum(|ended| ended.found.passed),
        sum(|ended| ended.found.failures.len()),
        sum(|ended| ended.found.skipped.all().len()),
    ));
    lines
}

#[cfg(test)]
mod tests {
    use super::*;

    fn ended(stage: &str, passed: usize, skipped: &[&str], failed: &[&str]) -> Ended {
        let mut found = Found {
            passed,
            ..Found::default()
        };
        for what in skipped {
            found.skipped.add((*what).to_owned());
        }
        found.failures = failed
            .iter()
            .map(|name| Failure {
                name: (*name).to_owned(),
                message: vec!["assertion failed".to_owned()],
            })
            .collect();
        Ended {
            stage: stage.to_owned(),
            at: 0,
            took: Some(Duration::from_secs(90)),
            found,
        }
    }

    #[test]
    fn the_last_lines_list_skips_failures_and_times() {
        let stages = [
            ended("lint", 3, &["advisories: no database"], &[]),
            ended("web", 0, &["no npm"], &[]),
            ended("rust", 7, &[], &["a::b"]),
            Ended {
                took: None,
                ..ended("lab", 0, &[], &[])
            },
        ];
        assert_eq!(
            closing(&stages),
            [
                "SKIPPED lint: advisories: no database",
                "SKIPPED web: no npm",
                "FAILED rust: a::b",
                "    assertion failed",
                "lint         passed     1.5 min  3 passed, 1 skipped",
                "web          skipped    1.5 min  1 skipped",
                "rust         FAILED     1.5 min  7 passed, 1 failed",
                "lab          NOT RUN      - min",
                "10 passed, 1 failed, 2 skipped",
            ]
        );
    }
}
