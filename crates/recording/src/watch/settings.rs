//! Resolved settings of a watch.

use super::NoWatch;
use jitterscope_analyze::gate::Watched;
use jitterscope_model::Nanos;
use std::fmt;
use std::path::PathBuf;
use std::str::FromStr;

/// Room that is reserved on the disk for the end of the section that is being written, bytes.
pub(super) const RESERVED: u64 = 24 << 20;
/// The longest command of `shell=`, bytes.
const LONGEST_COMMAND: usize = 4096;

/// A step that follows a trigger.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum Action {
    /// Saves a run of the seconds before and after.
    Save,
    /// Runs a command with a shell; the facts are in its environment.
    Shell(String),
    /// Sends SIGUSR1 to a process.
    Signal(i32),
    /// Writes a line into the machine's `trace_marker`, for other tracers.
    Mark,
    /// Ends the watch.
    Stop,
    /// Goes on, as without it.
    Continue,
}

/// An action that cannot be read.
#[derive(Debug, thiserror::Error, PartialEq, Eq)]
pub enum ActionError {
    #[error("'{0}' is no action: write save, shell=COMMAND, signal=PID, mark, stop or continue")]
    Unknown(String),
    #[error("signal={0}: write the id of a process")]
    Signal(String),
    #[error("shell= needs a command of at most {LONGEST_COMMAND} bytes")]
    Command,
    #[error("there is no action in the list")]
    None,
    #[error("'{0}' comes after '{1}', which is always the last action")]
    After(Action, Action),
}

impl FromStr for Action {
    type Err = ActionError;

    fn from_str(text: &str) -> Result<Action, ActionError> {
        match text.split_once('=') {
            None => match text {
                "save" => Ok(Action::Save),
                "mark" => Ok(Action::Mark),
                "stop" => Ok(Action::Stop),
                "continue" => Ok(Action::Continue),
                other => Err(ActionError::Unknown(other.into())),
            },
            Some(("shell", command)) => {
                let fits = !command.trim().is_empty() && command.len() <= LONGEST_COMMAND;
                match fits && !command.contains('\0') {
                    true => Ok(Action::Shell(command.into())),
                    false => Err(ActionError::Command),
                }
            }
            Some(("signal", pid)) => match pid.parse() {
                // Others mean groups, or every process.
                Ok(pid) if pid > 1 => Ok(Action::Signal(pid)),
                _ => Err(ActionError::Signal(pid.into())),
            },
            Some(_) => Err(ActionError::Unknown(text.into())),
        }
    }
}

impl fmt::Display for Action {
    fn fmt(&self, to: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Action::Save => to.write_str("save"),
            Action::Shell(command) => write!(to, "shell={command}"),
            Action::Signal(pid) => write!(to, "signal={pid}"),
            Action::Mark => to.write_str("mark"),
            Action::Stop => to.write_str("stop"),
            Action::Continue => to.write_str("continue"),
        }
    }
}

/// The actions of a list such as `save,shell=logger x,stop`. A comma within a command is `\,`.
///
/// # Errors
/// One of them cannot be read, or follows one that ends the list.
pub fn actions(list: &str) -> Result<Vec<Action>, ActionError> {
    let mut texts = vec![String::new()];
    let mut letters = list.chars().peekable();
    while let Some(letter) = letters.next() {
        match (letter, letters.peek()) {
            ('\\', Some(',')) => {
                letters.next();
                texts.last_mut().into_iter().for_each(|text| text.push(','));
            }
            (',', _) => texts.push(String::new()),
            (other, _) => texts
                .last_mut()
                .into_iter()
                .for_each(|text| text.push(other)),
        }
    }
    let actions: Vec<Action> = texts
        .iter()
        .map(|text| text.trim().parse())
        .collect::<Result<_, _>>()?;
    for pair in actions.windows(2) {
        if let [last @ (Action::Stop | Action::Continue), next] = pair {
            return Err(ActionError::After(next.clone(), last.clone()));
        }
    }
    match actions.is_empty() {
        true => Err(ActionError::None),
        false => Ok(actions),
    }
}

/// What a watch keeps, and when it saves.
#[derive(Clone, Debug)]
pub struct WatchSettings {
    /// The folder of saved runs; the history is in a hidden folder below it.
    pub runs_dir: PathBuf,
    /// The label of saved runs.
    pub label: String,
    /// How long history is kept, and how many bytes of it.
    pub keep: Nanos,
    pub disk: u64,
    /// The length of a section of the history.
    pub section: Nanos,
    /// How much is saved before and after a trigger.
    pub before: Nanos,
    pub after: Nanos,
    /// The shortest time from one saved moment to the next, unless a person asks; and how many may be saved a day.
    pub apart: Nanos,
    pub daily: u32,
    /// A moment is saved when one of these is met; those without a time of their own are judged over `over`.
    pub conditions: Vec<Watched>,
    pub over: Nanos,
    pub actions: Vec<Action>,
    /// The socket for the application.
    pub socket: Option<PathBuf>,
}

impl WatchSettings {
    /// The default length of a section: twenty make up what is kept, each between 10 s and a minute.
    #[must_use]
    pub fn default_section(keep: Nanos) -> Nanos {
        Nanos((keep.0 / 20).clamp(10_000_000_000, 60_000_000_000))
    }

    /// Checks that the limits have room for a saved run of so many CPUs.
    ///
    /// # Errors
    /// They have not.
    pub fn check(&self, cpus: usize) -> Result<(), NoWatch> {
        let least = self.least_disk(cpus);
        if self.disk < least {
            return Err(NoWatch::Disk {
                given: self.disk,
                least,
            });
        }
        let least = self.before + self.after + self.section;
        match self.keep < least {
            true => Err(NoWatch::Keep {
                given: self.keep,
                least,
            }),
            false => Ok(()),
        }
    }

    /// The least that the history must have room for, bytes: the sections that one saved moment touches, at the rate of
    /// a loaded CPU, and the section that is being written with the room that is reserved for its end.
    #[must_use]
    pub fn least_disk(&self, cpus: usize) -> u64 {
        /// Bytes a second of one CPU under load: rows and raw trace.
        const RATE: u64 = 256 << 10;
        let seconds = (self.before.0 + self.after.0 + 2 * self.section.0).div_ceil(1_000_000_000);
        RESERVED.saturating_add(
            seconds
                .saturating_mul(RATE)
                .saturating_mul(cpus.max(1) as u64),
        )
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_list_is_read_in_order_and_a_command_may_have_commas() {
        let list = actions(r"mark, signal=77,shell=echo a\,b; x=1,save,stop").unwrap();
        let expected = [
            Action::Mark,
            Action::Signal(77),
            Action::Shell("echo a,b; x=1".into()),
            Action::Save,
            Action::Stop,
        ];
        assert_eq!(list, expected);
    }

    #[test]
    fn what_is_no_action_is_refused() {
        for (text, part) in [
            ("", "'' is no action"),
            ("save,,stop", "'' is no action"),
            ("fly", "'fly' is no action"),
            ("fly=1", "'fly=1' is no action"),
            ("shell=", "needs a command"),
            ("shell=  ", "needs a command"),
            ("signal=0", "id of a process"),
            ("signal=-1", "id of a process"),
            ("signal=1", "id of a process"),
            ("signal=x", "id of a process"),
            ("stop,save", "'save' comes after 'stop'"),
            ("continue,mark", "'mark' comes after 'continue'"),
        ] {
            let error = actions(text).unwrap_err().to_string();
            assert!(error.contains(part), "{text}: {error}");
        }
    }

    #[test]
    fn sections_have_a_useful_length() {
        for (keep, section) in [(60, 10), (600, 30), (3600, 60), (86_400, 60)] {
            let of = WatchSettings::default_section(Nanos(keep * 1_000_000_000));
            assert_eq!(of, Nanos(section * 1_000_000_000), "{keep}");
        }
    }
}
