//! What a check skips, and why: printed at once, and again at the end of the command.

#[derive(Debug, Default)]
pub struct Skipped(Vec<String>);

impl Skipped {
    /// Prints what is skipped, with the reason.
    pub fn note(&mut self, what: impl Into<String>) {
        let what = what.into();
        eprintln!("SKIPPED: {what}");
        self.0.push(what);
    }

    /// Adds what a test has already printed.
    pub fn add(&mut self, what: String) {
        self.0.push(what);
    }

    pub fn all(&self) -> &[String] {
        &self.0
    }

    /// Repeats the reasons below all other output of a command.
    pub fn repeat(&self) {
        for what in &self.0 {
            eprintln!("SKIPPED: {what}");
        }
    }
}
