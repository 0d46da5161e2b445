//! What is asked of a running watch: by conditions, the application, a signal, marks in the trace and persons.

use super::Report;
use super::control::{Line, Request};
use super::hours::newest;
use super::judge::Judged;
use super::running::Watch;
use super::status::{HistoryStatus, Reply, WatchStatus, own_cpu_time};
use super::triggers::{Answer, Asked, DAY, TriggerCounts, tidy};
use super::worker::Follow;
use jitterscope_model::{AskedBy, Nanos, Ticks};
use jitterscope_platform as platform;
use jitterscope_source::Mark;
use std::path::Path;
use std::sync::atomic::Ordering;
use std::time::{Duration, Instant};

/// Hours that the status shows.
const SHOWN_HOURS: usize = 24;
/// The interval in which the state is published to other threads.
const EVERY: Duration = Duration::from_secs(1);

impl Watch {
    /// The socket for [`super::ask`].
    #[must_use]
    pub fn control(&self) -> &Path {
        self.control.path()
    }

    /// Takes a request. `client` waits for the run.
    fn ask(&mut self, now: Ticks, asked: Asked, client: Option<u64>) {
        let Some(begun) = &mut self.begun else {
            return;
        };
        let is_new = match begun.triggers.ask(now, asked) {
            Answer::Begins => true,
            Answer::Joins => false,
            Answer::TooSoon | Answer::OverCap => return,
        };
        if let Some(client) = client {
            self.control.let_wait(client);
            self.waiting.push(client);
        }
        let Some(pending) = begun.triggers.pending().filter(|_| is_new).cloned() else {
            return;
        };
        let follow = Follow {
            actions: self.settings.actions.clone(),
            label: self.settings.label.clone(),
        };
        begun.worker.begin(pending.moment.clone(), follow);
        (self.report)(Report::Triggered(pending.moment.clone()));
        if let Err(error) = self.history.note(&pending, &self.settings.label) {
            self.trouble(format!("what is to be saved cannot be noted: {error}"));
        }
        if pending.moment.by != AskedBy::Person {
            let now = realtime_ns();
            self.daily.retain(|at| now.saturating_sub(*at) < DAY.0);
            self.daily.push(now);
            if let Err(error) = self.history.note_daily(&self.daily) {
                self.trouble(format!("the daily cap cannot be noted: {error}"));
            }
        }
    }

    /// Gathers what has been asked for.
    pub(super) fn gather(&mut self, now: Ticks, marks: &[Mark]) {
        let here = |by, text: String| Asked {
            by,
            text,
            from: now,
            to: now,
            realtime_ns: realtime_ns(),
        };
        if self.signal.swap(false, Ordering::Relaxed) {
            self.ask(now, here(AskedBy::Signal, String::new()), None);
        }
        for mark in marks {
            let asked = Asked {
                from: mark.time,
                to: mark.time,
                ..here(AskedBy::Marker, mark.text.clone())
            };
            self.ask(now, asked, None);
        }
        while let Ok(judged) = self.judged.1.try_recv() {
            match judged {
                Judged::Met(asked) => self.ask(now, asked, None),
                Judged::Undecided(result) => {
                    self.undecided.push(result.condition.clone());
                    (self.report)(Report::Undecided(result));
                }
            }
        }
        if let Some(application) = &mut self.application {
            let lines = application.lines(&mut self.next_client);
            for line in lines {
                let text = tidy(&line.text);
                self.ask(now, here(AskedBy::Application, text), None);
            }
        }
        for line in self.control.lines(&mut self.next_client) {
            self.request(now, &line);
        }
    }

    fn request(&mut self, now: Ticks, line: &Line) {
        let client = line.client;
        let refuse = |watch: &mut Watch, why: String| {
            watch.control.answer(client, &Reply::Refused(why));
        };
        match serde_json::from_str::<Request>(&line.text) {
            Err(error) => refuse(self, format!("this is no request: {error}")),
            Ok(Request::Status) => {
                let status = self.status(now);
                self.control
                    .answer(client, &Reply::Status(Box::new(status)));
            }
            Ok(Request::Stop) => {
                if let Some(begun) = &mut self.begun {
                    begun.stop = true;
                }
                self.control.answer(client, &Reply::Stopping);
            }
            Ok(Request::Save { at_ns }) => match self.moment(now, at_ns) {
                Ok(asked) => self.ask(now, asked, Some(client)),
                Err(why) => refuse(self, why),
            },
        }
    }

    /// The moment that a person means.
    fn moment(&self, now: Ticks, at_ns: Option<u64>) -> Result<Asked, String> {
        let here = realtime_ns();
        let (at_ns, at) = match (at_ns, &self.begun) {
            (Some(at_ns), Some(begun)) => {
                if at_ns > here {
                    return Err("that time is still to come".into());
                }
                let ago = Nanos(here - at_ns);
                let at = now - begun.rate.ticks(ago);
                let oldest = self
                    .history
                    .chain
                    .first()
                    .map_or(begun.section, |of| of.from);
                if at < oldest {
                    let reach = begun.rate.nanos(now.since(oldest));
                    return Err(format!(
                        "the history reaches back {reach}, not to that time"
                    ));
                }
                (at_ns, at)
            }
            _ => (here, now),
        };
        Ok(Asked {
            by: AskedBy::Person,
            text: String::new(),
            from: at,
            to: at,
            realtime_ns: at_ns,
        })
    }

    /// Publishes the state to other threads, at most once a second.
    pub(super) fn publish(&mut self, now: Ticks) {
        if self.published_at.is_some_and(|at| at.elapsed() < EVERY) {
            return;
        }
        self.published_at = Some(Instant::now());
        // Two readings at different moments: the difference must not fall.
        self.cpu_time_ns = self.cpu_time_ns.max(own_cpu_time(&self.machine));
        let status = self.state(now);
        self.published.tell(status);
    }

    fn status(&mut self, now: Ticks) -> WatchStatus {
        self.cpu_time_ns = self.cpu_time_ns.max(own_cpu_time(&self.machine));
        WatchStatus {
            hours: newest(self.history.path(), SHOWN_HOURS),
            ..self.state(now)
        }
    }

    /// The state without its hours.
    fn state(&self, now: Ticks) -> WatchStatus {
        let begun = self.begun.as_ref();
        let manifest = self.manifest.get();
        let oldest = self.history.chain.first().map(|of| of.from);
        let oldest = oldest.or(begun.map(|of| of.section)).unwrap_or(now);
        WatchStatus {
            pid: std::process::id(),
            cpus: self.cpus.clone(),
            probe: manifest.map_or_else(String::new, |of| of.probe.kind.clone()),
            level: "attributed".into(),
            since_ns: manifest.map_or(0, |of| of.clock_start.realtime_ns),
            runs: self.settings.runs_dir.clone(),
            socket: self.application.as_ref().map(|of| of.path().to_path_buf()),
            history: HistoryStatus {
                sections: self.history.chain.len() as u64,
                reaches_ns: begun.map_or(0, |of| of.rate.nanos(now.since(oldest)).0),
                bytes: self.history.chain.bytes() + begun.map_or(0, |of| of.open_bytes),
                limit_bytes: self.settings.disk,
                dropped_for_room: self.dropped_for_room,
            },
            triggers: begun.map_or_else(TriggerCounts::default, |of| of.triggers.counts()),
            saved_runs: self.saved_runs,
            lost: self.lost.clone(),
            undecided: self.undecided.clone(),
            saved: self.saved.clone(),
            cpu_time_ns: self.cpu_time_ns,
            rss_bytes: platform::resident_bytes(),
            trouble: self.trouble.clone(),
            upload: self.published.upload(),
            hours: Vec::new(),
        }
    }
}

fn realtime_ns() -> u64 {
    let since = std::time::SystemTime::now().duration_since(std::time::UNIX_EPOCH);
    since.map_or(0, |since| {
        u64::try_from(since.as_nanos()).unwrap_or(u64::MAX)
    })
}
