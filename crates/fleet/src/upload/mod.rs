//! Sends the hours of a watch that are over, and its saved runs.
//!
//! The watch's own folder of hours is the spool: an hour that is in the store gets another name
//! ([`HourFile::is_sent`]). The name of its object follows from the hour alone, so an hour that is sent twice is one
//! object, and a machine that dies between the store's answer and the renaming loses and doubles nothing.

mod hosts;
mod runs;

use crate::location::Location;
use crate::problem::Problem;
use hosts::HostRecord;
use jitterscope_model::UploadStatus;
use jitterscope_platform::HeldDir;
use jitterscope_store::rollup::{
    HOURS, HostHour, HourFile, encode, hour_start_s, hours_in, object_name, raw_folder, read_hour,
};
use runs::SavedRuns;
use std::path::Path;
use std::time::{Duration, SystemTime, UNIX_EPOCH};

/// The watch may still write an hour for this long after its end.
const SETTLE: Duration = Duration::from_secs(120);
const HOUR_S: u64 = 3600;

/// Where the rows of an upload come from and go to.
#[derive(Debug)]
pub struct Uploader {
    location: Location,
    cluster: String,
    hours: HeldDir,
    /// The name of the watch: that of its folder.
    watch: String,
    runs: Option<SavedRuns>,
    hosts: HostRecord,
    status: UploadStatus,
}

impl Uploader {
    /// Opens the folder of a watch. `runs`: the folder of its saved runs, if they are sent, too.
    ///
    /// # Errors
    /// Another user could change the folder, or it cannot be made.
    pub fn new(
        location: Location,
        cluster: &str,
        watch: &Path,
        runs: Option<&Path>,
    ) -> Result<Uploader, Problem> {
        let name = watch
            .file_name()
            .map(|name| name.to_string_lossy().into_owned());
        Ok(Uploader {
            location,
            cluster: cluster.to_owned(),
            hours: HeldDir::trusted_or_made(&watch.join(HOURS)).map_err(Problem::local)?,
            watch: name.unwrap_or_default(),
            runs: runs.map(SavedRuns::new),
            hosts: HostRecord::default(),
            status: UploadStatus::default(),
        })
    }

    /// Sends what waits, the oldest hour first, until something fails.
    pub fn turn(&mut self, now: SystemTime) -> &UploadStatus {
        let ended = self.send_all(now);
        self.status.clock_ahead_s = self.location.clock_ahead_s();
        self.status.problem = match ended {
            Ok(()) => {
                self.status.complete_s = Some(seconds(now));
                None
            }
            Err(problem) => {
                self.status.problems += 1;
                Some(problem.into())
            }
        };
        &self.status
    }

    fn send_all(&mut self, now: SystemTime) -> Result<(), Problem> {
        let waiting = self.waiting(now)?;
        self.status.waiting_hours = waiting.len() as u64;
        self.status.unreadable_hours = 0;
        let mut two_hosts = None;
        for file in waiting {
            match self.send(&file) {
                Ok(Some(hour)) => two_hosts = self.claim(&hour, now)?.or(two_hosts),
                Ok(None) => {
                    self.status.unreadable_hours += 1;
                    self.status.waiting_hours = self.status.waiting_hours.saturating_sub(1);
                }
                Err(problem) => return Err(problem),
            }
        }
        if let Some(runs) = &mut self.runs {
            let sent = runs.send(&self.location, &self.cluster, &self.hosts)?;
            self.status.sent_runs += sent.runs;
            self.status.sent_bytes += sent.bytes;
        }
        two_hosts.map_or(Ok(()), Err)
    }

    /// Notes this host in the store. Returns a problem if another one has its name or its id: the rows of both stay.
    fn claim(&mut self, hour: &HostHour, now: SystemTime) -> Result<Option<Problem>, Problem> {
        self.hosts
            .claim(&self.location, &self.cluster, &hour.host, seconds(now))
    }

    /// The hours that are over and not sent, the oldest first.
    fn waiting(&self, now: SystemTime) -> Result<Vec<HourFile>, Problem> {
        let mut files = hours_in(&self.hours).map_err(Problem::local)?;
        let open = [now, now - SETTLE].map(|at| seconds(at) / HOUR_S);
        // The clock may have been wrong: an hour to come is over as well.
        files.retain(|file| !file.is_sent && !open.contains(&file.hour));
        Ok(files)
    }

    /// Sends one hour; `None` if its file is none.
    fn send(&mut self, file: &HourFile) -> Result<Option<HostHour>, Problem> {
        let Some(mut hour) = read_hour(&self.hours, file).map_err(Problem::local)? else {
            return Ok(None);
        };
        hour.clock_ahead_s = self.location.clock_ahead_s();
        let name = object_name(&hour.host, &self.watch, file);
        let bytes = encode(&hour, &name).map_err(Problem::local)?;
        let length = bytes.len() as u64;
        let folder = raw_folder(&self.cluster, &day(hour_start_s(file.hour)));
        self.location
            .put(&format!("{folder}/{name}.parquet"), bytes)?;
        self.hours
            .rename(file.name(), file.clone().sent().name())
            .map_err(Problem::local)?;
        self.status.sent_hours += 1;
        self.status.sent_bytes += length;
        self.status.waiting_hours = self.status.waiting_hours.saturating_sub(1);
        Ok(Some(hour))
    }
}

/// The day of a time, in UTC: `2026-11-28`.
#[must_use]
pub fn day(seconds: u64) -> String {
    let seconds = i64::try_from(seconds).unwrap_or(i64::MAX);
    let time = jiff::Timestamp::from_second(seconds).unwrap_or(jiff::Timestamp::MAX);
    time.strftime("%Y-%m-%d").to_string()
}

fn seconds(time: SystemTime) -> u64 {
    time.duration_since(UNIX_EPOCH)
        .map_or(0, |since| since.as_secs())
}

#[cfg(test)]
pub(crate) mod testing;
#[cfg(test)]
mod tests;
