//! The stored state of an experiment, so that it can be resumed: a line per pair, or per run if arms are not
//! interleaved.

use crate::{Arm, ExperimentError, NotTried, Surroundings, VoidReason};
use jitterscope_model::AnyVersion;
use jitterscope_platform::HeldDir;
use serde::{Deserialize, Serialize};
use std::fs::File;
use std::io::{self, Write};
use std::path::{Path, PathBuf};

/// Version of the file.
pub const SESSION_VERSION: u32 = 1;
/// Its name in the session's folder.
const FILE: &str = "experiment.jsonl";
/// Maximum size in bytes: a line has about 300, and there are a few dozen.
const LARGEST: u64 = 1 << 20;

#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub struct Header {
    /// [`SESSION_VERSION`].
    pub version: u32,
    /// Everything that must be equal for runs to belong together, in words.
    pub asked: String,
    /// The seed of the random order.
    pub seed: u64,
    /// Start time, nanoseconds since the epoch.
    pub started_realtime_ns: u64,
    /// The kernel's boot id at that time.
    pub boot_id: String,
}

/// A pair that was measured.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub struct Pair {
    /// Its number from 0, including void ones.
    pub pair: usize,
    pub order: [Arm; 2],
    /// The folder of the run of A; none if the pair is void and nothing of it was measured.
    pub a: Option<PathBuf>,
    /// The folder of the run of B; none under the same condition.
    pub b: Option<PathBuf>,
    /// Why it does not count, if it does not.
    pub void: Option<AnyVersion<VoidReason>>,
}

/// A run without interleaving.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub struct BlockRun {
    pub arm: Arm,
    pub run: PathBuf,
    /// The kernel's boot id when it was made: a reboot loses the state of the previous boot.
    pub boot_id: String,
    /// Why it does not count, if it does not.
    pub void: Option<AnyVersion<VoidReason>>,
}

/// The chosen candidates, tried all at once.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub struct Chosen {
    /// Ids of the candidate knobs, the most promising first.
    pub candidates: Vec<String>,
    /// Knobs that only a reboot can try.
    pub needs_reboot: Vec<String>,
    /// Knobs that are not tried, and why.
    pub not_tried: Vec<(String, AnyVersion<NotTried>)>,
}

/// A line after the header.
#[derive(Serialize, Deserialize)]
#[serde(untagged)]
enum Line {
    Pair(Pair),
    Run(BlockRun),
    Chosen(Chosen),
    Surroundings(Surroundings),
}

/// A session open for appending.
#[derive(Debug)]
pub struct Session {
    path: PathBuf,
    file: Option<File>,
    pub header: Header,
    pub pairs: Vec<Pair>,
    /// The runs without interleaving, in order.
    pub block: Vec<BlockRun>,
    /// The chosen candidates, if the program chose them.
    pub chosen: Option<Chosen>,
    /// Properties of the boot without the change, if a reboot lies between the arms.
    pub surroundings: Option<Surroundings>,
    /// The kernel's id of this boot.
    pub boot_id: String,
}

impl Session {
    /// Begins a session in a folder of its own, which it creates.
    ///
    /// # Errors
    /// The folder cannot be created, exists already, or another user may change its contents.
    pub fn begin(folder: &Path, header: Header) -> Result<Session, ExperimentError> {
        let path = folder.join(FILE);
        let failed = |source: io::Error| ExperimentError::Session {
            path: path.clone(),
            source,
        };
        let held = HeldDir::trusted_or_made(folder).map_err(|error| failed(error.into_io()))?;
        let file = held
            .create_new(FILE)
            .map_err(|error| failed(error.into_io()))?;
        let mut session = Session {
            path: path.clone(),
            file: Some(file),
            ..Session::in_memory(header)
        };
        let line = serde_json::to_string(&session.header).map_err(|error| failed(error.into()))?;
        session.line(&line)?;
        Ok(session)
    }

    /// A session that is not stored.
    #[must_use]
    pub fn in_memory(header: Header) -> Session {
        let boot_id = header.boot_id.clone();
        Session {
            path: PathBuf::new(),
            file: None,
            header,
            pairs: Vec::new(),
            block: Vec::new(),
            chosen: None,
            surroundings: None,
            boot_id,
        }
    }

    /// Resumes the session in a folder, in the boot with this id. An incomplete last line is dropped, and its pair or
    /// run is made again.
    ///
    /// # Errors
    /// It cannot be read, is invalid, or another user may change it.
    pub fn resume(folder: &Path, boot_id: &str) -> Result<Session, ExperimentError> {
        let path = folder.join(FILE);
        let failed = |source: io::Error| ExperimentError::Session {
            path: path.clone(),
            source,
        };
        let held = HeldDir::trusted(folder).map_err(|error| failed(error.into_io()))?;
        let text = held
            .read(FILE, LARGEST)
            .map_err(|error| failed(error.into_io()))?;
        let whole = text
            .iter()
            .rposition(|byte| *byte == b'\n')
            .map_or(0, |at| at + 1);
        let damaged = |line: usize, why: String| ExperimentError::Damaged {
            path: path.clone(),
            line,
            why,
        };
        let mut lines = text[..whole]
            .split(|byte| *byte == b'\n')
            .filter(|line| !line.is_empty())
            .enumerate();
        let (_, first) = lines
            .next()
            .ok_or_else(|| damaged(1, "it is empty".into()))?;
        let header: Header =
            serde_json::from_slice(first).map_err(|error| damaged(1, error.to_string()))?;
        if header.version != SESSION_VERSION {
            return Err(damaged(1, format!("it is of version {}", header.version)));
        }
        let (mut pairs, mut block, mut chosen): (Vec<Pair>, Vec<BlockRun>, _) =
            (Vec::new(), Vec::new(), None);
        let mut surroundings = None;
        for (at, line) in lines {
            match serde_json::from_slice(line)
                .map_err(|error| damaged(at + 1, error.to_string()))?
            {
                Line::Pair(pair) if pair.pair != pairs.len() => {
                    return Err(damaged(
                        at + 1,
                        format!("pair {} does not follow", pair.pair),
                    ));
                }
                Line::Pair(Pair {
                    pair,
                    a,
                    b,
                    void: None,
                    ..
                }) if a.is_none() || b.is_none() => {
                    return Err(damaged(
                        at + 1,
                        format!("pair {pair} counts, and was not measured"),
                    ));
                }
                Line::Pair(pair) => pairs.push(pair),
                Line::Run(run) => block.push(run),
                // Until something of it was measured, another time limit may allow more candidates.
                Line::Chosen(_) if chosen.is_some() && has_tried(&block) => {
                    return Err(damaged(at + 1, "what is tried was chosen before".into()));
                }
                Line::Chosen(all) => chosen = Some(all),
                Line::Surroundings(of) => surroundings = Some(of),
            }
        }
        let file = held
            .open_own(FILE)
            .map_err(|error| failed(error.into_io()))?;
        // A torn line must not become part of the next one.
        file.set_len(whole as u64).map_err(failed)?;
        let boot_id = boot_id.to_owned();
        let path = path.clone();
        Ok(Session {
            path,
            file: Some(file),
            header,
            pairs,
            block,
            chosen,
            surroundings,
            boot_id,
        })
    }

    /// Adds a pair; on disk when this returns.
    ///
    /// # Errors
    /// The disk is full or gone.
    pub fn add(&mut self, pair: Pair) -> Result<(), ExperimentError> {
        let failed = |source: io::Error| ExperimentError::Session {
            path: self.path.clone(),
            source,
        };
        let line = serde_json::to_string(&pair).map_err(|error| failed(error.into()))?;
        self.line(&line)?;
        self.pairs.push(pair);
        Ok(())
    }

    /// Adds a run without interleaving; on disk when this returns.
    ///
    /// # Errors
    /// The disk is full or gone.
    pub fn add_run(
        &mut self,
        arm: Arm,
        run: PathBuf,
        void: Option<VoidReason>,
    ) -> Result<(), ExperimentError> {
        let failed = |source: io::Error| ExperimentError::Session {
            path: self.path.clone(),
            source,
        };
        let void = void.map(AnyVersion::from);
        let made = BlockRun {
            arm,
            run,
            boot_id: self.boot_id.clone(),
            void,
        };
        let line = serde_json::to_string(&made).map_err(|error| failed(error.into()))?;
        self.line(&line)?;
        self.block.push(made);
        Ok(())
    }

    /// Adds the chosen candidates; on disk when this returns. The last choice counts; none is possible after a run with
    /// it.
    ///
    /// # Errors
    /// The disk is full or gone.
    pub fn choose(&mut self, chosen: Chosen) -> Result<(), ExperimentError> {
        let failed = |source: io::Error| ExperimentError::Session {
            path: self.path.clone(),
            source,
        };
        let line = serde_json::to_string(&chosen).map_err(|error| failed(error.into()))?;
        self.line(&line)?;
        self.chosen = Some(chosen);
        Ok(())
    }

    /// Adds the properties of this boot; on disk when this returns. The last ones count.
    ///
    /// # Errors
    /// The disk is full or gone.
    pub fn surround(&mut self, surroundings: Surroundings) -> Result<(), ExperimentError> {
        let failed = |source: io::Error| ExperimentError::Session {
            path: self.path.clone(),
            source,
        };
        let line = serde_json::to_string(&surroundings).map_err(|error| failed(error.into()))?;
        self.line(&line)?;
        self.surroundings = Some(surroundings);
        Ok(())
    }

    fn line(&mut self, line: &str) -> Result<(), ExperimentError> {
        let failed = |source: io::Error| ExperimentError::Session {
            path: self.path.clone(),
            source,
        };
        match &mut self.file {
            Some(file) => file
                .write_all(format!("{line}\n").as_bytes())
                .and_then(|()| file.sync_data())
                .map_err(failed),
            None => Ok(()),
        }
    }
}

/// Whether a run was made with the chosen candidates.
fn has_tried(block: &[BlockRun]) -> bool {
    block.iter().any(|run| run.arm == Arm::B)
}

impl Session {
    /// The chosen candidates, if runs were made with them: then the choice is final.
    #[must_use]
    pub fn tried(&self) -> Option<&Chosen> {
        self.chosen.as_ref().filter(|_| has_tried(&self.block))
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn header() -> Header {
        Header {
            version: SESSION_VERSION,
            asked: "vmstat, spin, 8 s".into(),
            seed: 7,
            started_realtime_ns: 1,
            boot_id: "boot".into(),
        }
    }

    fn pair(number: usize) -> Pair {
        let order = crate::order(7, number);
        let run = |name: &str| Some(PathBuf::from(name));
        Pair {
            pair: number,
            order,
            a: run("a"),
            b: run("b"),
            void: (number == 1).then_some(VoidReason::NotMeasured.into()),
        }
    }

    #[test]
    fn what_was_measured_is_there_after_a_kill_and_what_was_torn_is_not() {
        let dir = tempfile::tempdir().unwrap();
        let folder = dir.path().join("session");
        let mut session = Session::begin(&folder, header()).unwrap();
        session.add(pair(0)).unwrap();
        session.add(pair(1)).unwrap();
        drop(session);
        let mut file = std::fs::OpenOptions::new()
            .append(true)
            .open(folder.join(FILE))
            .unwrap();
        file.write_all(br#"{"pair":2,"or"#).unwrap();
        let mut session = Session::resume(&folder, "boot").unwrap();
        assert_eq!(session.pairs, [pair(0), pair(1)]);
        session.add(pair(2)).unwrap();
        assert_eq!(Session::resume(&folder, "boot").unwrap().pairs.len(), 3);
        assert!(
            Session::begin(&folder, header()).is_err(),
            "it is there already"
        );
    }

    #[test]
    fn a_pair_without_runs_is_void() {
        let dir = tempfile::tempdir().unwrap();
        let folder = dir.path().join("session");
        let mut session = Session::begin(&folder, header()).unwrap();
        let unseen = Pair {
            pair: 0,
            order: crate::order(7, 0),
            a: None,
            b: None,
            void: Some(VoidReason::NotMeasured.into()),
        };
        session.add(unseen.clone()).unwrap();
        assert_eq!(Session::resume(&folder, "boot").unwrap().pairs, [unseen]);
        let file = folder.join(FILE);
        let whole = std::fs::read_to_string(&file).unwrap();
        for runs in [r#""a":null,"b":"b""#, r#""a":"a""#] {
            let line = format!("{{\"pair\":1,\"order\":[\"A\",\"B\"],{runs},\"void\":null}}\n");
            std::fs::write(&file, whole.clone() + &line).unwrap();
            let error = Session::resume(&folder, "boot").unwrap_err().to_string();
            assert!(error.contains("was not measured"), "{error}");
        }
    }

    #[test]
    fn runs_of_arms_that_do_not_take_turns_are_there_after_a_kill_too() {
        let dir = tempfile::tempdir().unwrap();
        let folder = dir.path().join("session");
        let mut session = Session::begin(&folder, header()).unwrap();
        session.add_run(Arm::A, "a".into(), None).unwrap();
        drop(session);
        let mut session = Session::resume(&folder, "the next boot").unwrap();
        let why = VoidReason::CommandFailed {
            arm: Arm::B,
            status: "1".into(),
        };
        session
            .add_run(Arm::B, "b".into(), Some(why.clone()))
            .unwrap();
        let [a, b] = &Session::resume(&folder, "boot").unwrap().block[..] else {
            panic!("two")
        };
        assert_eq!((a.arm, &*a.boot_id, &a.void), (Arm::A, "boot", &None));
        assert_eq!(
            (b.arm, &*b.boot_id, &b.void),
            (Arm::B, "the next boot", &Some(why.into()))
        );
    }

    #[test]
    fn what_was_chosen_is_chosen_once_and_stays_so() {
        let dir = tempfile::tempdir().unwrap();
        let folder = dir.path().join("session");
        let mut session = Session::begin(&folder, header()).unwrap();
        session.add_run(Arm::A, "a".into(), None).unwrap();
        let chosen = Chosen {
            candidates: vec!["vmstat".into()],
            needs_reboot: vec!["nohz-full".into()],
            not_tried: vec![
                ("hugepages".into(), NotTried::NoTimeLeft.into()),
                ("newer".into(), AnyVersion::left_out()),
            ],
        };
        let fewer = Chosen {
            candidates: Vec::new(),
            ..chosen.clone()
        };
        session.choose(fewer).unwrap();
        assert_eq!(Session::resume(&folder, "boot").unwrap().tried(), None);
        // Until one was tried, a larger time limit allows more candidates.
        session.choose(chosen.clone()).unwrap();
        session.add_run(Arm::B, "b".into(), None).unwrap();
        let found = Session::resume(&folder, "boot").unwrap();
        assert_eq!((found.tried(), found.block.len()), (Some(&chosen), 2));
        session.choose(chosen).unwrap();
        let error = Session::resume(&folder, "boot").unwrap_err().to_string();
        assert!(error.contains("chosen before"), "{error}");
    }

    #[test]
    fn another_file_is_refused() {
        let dir = tempfile::tempdir().unwrap();
        for text in [
            "",
            "{}\n",
            "x\n",
            "{\"version\":9,\"asked\":\"\",\"seed\":1,\"started_realtime_ns\":1,\"boot_id\":\"\"}\n",
        ] {
            std::fs::write(dir.path().join(FILE), text).unwrap();
            assert!(Session::resume(dir.path(), "boot").is_err(), "{text}");
        }
    }
}
