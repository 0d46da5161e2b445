//! The `stat` file of a process or a thread.

use crate::machine::Machine;

/// The text of `/proc/PID/stat`, or of a thread's `stat`. Fields that cannot be parsed are `None`.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct TaskStat {
    text: String,
    /// Positions of the parentheses around its name.
    name: (usize, usize),
}

impl TaskStat {
    /// Reads a process, or any thread by its id; `None` if it does not exist.
    #[must_use]
    pub fn of(machine: &Machine, id: impl std::fmt::Display) -> Option<TaskStat> {
        TaskStat::parse(machine.read(format!("/proc/{id}/stat")).ok()?)
    }

    /// Reads a thread of a process; `None` if it does not exist.
    #[must_use]
    pub fn of_thread(machine: &Machine, pid: i32, tid: i32) -> Option<TaskStat> {
        TaskStat::parse(machine.read(format!("/proc/{pid}/task/{tid}/stat")).ok()?)
    }

    /// The name may itself contain blanks and parentheses: it goes from the first opening to the last closing one.
    fn parse(text: String) -> Option<TaskStat> {
        let name = (text.find('(')?, text.rfind(')')?);
        (name.0 < name.1).then_some(TaskStat { text, name })
    }

    #[must_use]
    pub fn name(&self) -> &str {
        self.text
            .get(self.name.0 + 1..self.name.1)
            .unwrap_or_default()
    }

    /// A field after the name, by its number in proc(5).
    fn field(&self, number: usize) -> Option<&str> {
        self.text
            .get(self.name.1 + 1..)?
            .split_whitespace()
            .nth(number.checked_sub(3)?)
    }

    /// Whether it has ended, and its parent has not yet waited for it.
    #[must_use]
    pub fn has_ended(&self) -> Option<bool> {
        self.field(3).map(|state| matches!(state, "Z" | "X"))
    }

    /// The process that created it, or that adopted it.
    #[must_use]
    pub fn parent(&self) -> Option<i32> {
        self.field(4)?.parse().ok()
    }

    #[must_use]
    pub fn group(&self) -> Option<i32> {
        self.field(5)?.parse().ok()
    }

    /// The kernel's flags: `PF_...` in `include/linux/sched.h`.
    #[must_use]
    pub fn flags(&self) -> Option<u64> {
        self.field(9)?.parse().ok()
    }

    /// Whether it is a kernel thread (`PF_KTHREAD`).
    #[must_use]
    pub fn is_kernel_thread(&self) -> Option<bool> {
        const PF_KTHREAD: u64 = 0x0020_0000;
        Some(self.flags()? & PF_KTHREAD != 0)
    }

    /// Its real-time priority; 0 without one.
    #[must_use]
    pub fn real_time_priority(&self) -> Option<u32> {
        self.field(40)?.parse().ok()
    }

    /// When it started, in the kernel's clock ticks since boot: this distinguishes it from a later one with the same
    /// id.
    #[must_use]
    pub fn start_time(&self) -> Option<u64> {
        self.field(22)?.parse().ok()
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use jitterscope_testing::SplitMix64;

    fn parsed(text: &str) -> Option<TaskStat> {
        TaskStat::parse(text.to_owned())
    }

    #[test]
    fn a_name_may_look_like_the_rest_of_the_line() {
        let line = "7 (a) S (b) S 2 3 0 0 -1 69238880 0 0 0 0 0 0 0 0 20 0 1 0 55 0 0 18446744073709551615";
        let stat = parsed(line).unwrap();
        assert_eq!((stat.name(), stat.has_ended()), ("a) S (b", Some(false)));
        assert_eq!((stat.parent(), stat.group()), (Some(2), Some(3)));
        assert_eq!(
            (stat.flags(), stat.start_time()),
            (Some(69_238_880), Some(55))
        );
        assert_eq!(stat.is_kernel_thread(), Some(true));
        assert_eq!(
            parsed(&line.replace("69238880", "4194304"))
                .unwrap()
                .is_kernel_thread(),
            Some(false)
        );
        assert_eq!(parsed("7 (a) Z 2").unwrap().has_ended(), Some(true));
    }

    #[test]
    fn what_is_no_such_line_says_nothing_and_never_panics() {
        for text in ["", "7", ")(", "7 )a(", "7 (a", "7 a)"] {
            assert_eq!(parsed(text), None, "{text:?}");
        }
        for text in [
            "()",
            "7 (x)",
            "7 (x) S 1",
            "7 (\u{fffd}) S x y",
            "7 (x) S -1 -1 -1 -1 -1 -1",
        ] {
            let stat = parsed(text).unwrap();
            assert_eq!((stat.flags(), stat.start_time()), (None, None), "{text:?}");
        }
        assert_eq!(parsed("7 (x)").unwrap().has_ended(), None);
    }

    #[test]
    fn hostile_lines_never_panic() {
        let mut random = SplitMix64(1);
        let letters: Vec<char> = "0159az() -\u{fffd}".chars().collect();
        for length in (0..80).cycle().take(20_000) {
            let letter = |_| letters[(random.uniform() * letters.len() as f64) as usize];
            let Some(stat) = TaskStat::parse((0..length).map(letter).collect()) else {
                continue;
            };
            let _ = (
                stat.name(),
                stat.has_ended(),
                stat.parent(),
                stat.group(),
                stat.start_time(),
            );
        }
    }

    #[test]
    fn we_are_there_and_have_not_ended() {
        let machine = Machine::host();
        let me = std::process::id();
        let stat = TaskStat::of(&machine, me).unwrap();
        assert_eq!(stat.has_ended(), Some(false));
        assert_eq!(
            TaskStat::of(&machine, "self").unwrap().start_time(),
            stat.start_time()
        );
        let thread = TaskStat::of_thread(&machine, me.cast_signed(), me.cast_signed()).unwrap();
        assert_eq!(thread.start_time(), stat.start_time());
        assert_eq!(TaskStat::of(&machine, i32::MAX), None);
    }
}
