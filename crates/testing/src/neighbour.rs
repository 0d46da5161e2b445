use std::process::{Child, Command, Stdio};

/// A program that wakes up on a CPU about two hundred times a second until it is dropped: on an otherwise quiet
/// machine, a recording might find nothing.
pub struct Neighbour(Child);

impl Neighbour {
    /// Starts it on that CPU.
    ///
    /// # Panics
    /// Without `taskset` from util-linux.
    #[must_use]
    pub fn on(cpu: u32) -> Neighbour {
        let looped = "while sleep 0.005; do :; done";
        let mut command = Command::new("taskset");
        command
            .args(["-c", &cpu.to_string(), "sh", "-c", looped])
            .stdin(Stdio::null());
        Neighbour(command.spawn().expect("taskset of util-linux"))
    }
}

impl Drop for Neighbour {
    fn drop(&mut self) {
        let _ = self.0.kill();
        let _ = self.0.wait();
    }
}
