//! Moments as in a graph or a log: a time of day, a date and time, or an epoch.

use jiff::civil::{Date, DateTime, Time};
use jiff::tz::TimeZone;
use jiff::{Timestamp, ToSpan};

/// A moment in text form; its resolution is that of its digits.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Moment {
    written: String,
    kind: Kind,
    /// The nanoseconds of its last digit.
    resolution: u64,
}

#[derive(Clone, Debug, PartialEq, Eq)]
enum Kind {
    /// On a day of the run, in UTC or local time.
    OfDay(Time),
    /// In UTC or local time.
    Civil(DateTime),
    /// Nanoseconds since the epoch.
    Epoch(u64),
}

const SECOND: u64 = 1_000_000_000;

impl std::str::FromStr for Moment {
    type Err = String;

    fn from_str(text: &str) -> Result<Moment, String> {
        let written = text.to_owned();
        let fraction = text
            .trim_end_matches('Z')
            .rsplit_once('.')
            .map_or(0, |(_, digits)| digits.len());
        let resolution = SECOND / 10u64.pow(u32::try_from(fraction.min(9)).unwrap_or(9));
        if text.bytes().all(|byte| byte.is_ascii_digit()) {
            // Grafana has milliseconds; other tools seconds, microseconds or nanoseconds.
            let unit = match text.len() {
                10 => SECOND,
                13 => 1_000_000,
                16 => 1000,
                19 => 1,
                _ => return Err(wrong()),
            };
            let number: u64 = text.parse().map_err(|_| wrong())?;
            let epoch = number.checked_mul(unit).ok_or_else(wrong)?;
            return Ok(Moment {
                written,
                kind: Kind::Epoch(epoch),
                resolution: unit,
            });
        }
        if let Ok(time) = text.parse::<Timestamp>() {
            let epoch = u64::try_from(time.as_nanosecond()).map_err(|_| wrong())?;
            return Ok(Moment {
                written,
                kind: Kind::Epoch(epoch),
                resolution,
            });
        }
        // A time with a zone, `21:40:07Z`, is in that zone; a bare time may be either.
        if text.contains(['-', 'T']) || text.contains(' ') {
            let civil = text.parse().map_err(|_| wrong())?;
            return Ok(Moment {
                written,
                kind: Kind::Civil(civil),
                resolution,
            });
        }
        let time = text.parse().map_err(|_| wrong())?;
        Ok(Moment {
            written,
            kind: Kind::OfDay(time),
            resolution,
        })
    }
}

fn wrong() -> String {
    "a moment is a time of day (21:40:07.200), a date and time (2026-11-21T21:40:07Z), or seconds or \
     milliseconds since the epoch"
        .into()
}

impl Moment {
    /// The span of time in nanoseconds since the epoch, within or nearest to a run from `start` to `end`; a time
    /// without a zone is UTC if that lies within the run, else local. `None` if neither does.
    pub fn within(&self, start: u64, end: u64) -> Option<std::ops::Range<u64>> {
        let spans = self
            .candidates(start, end)
            .into_iter()
            .map(|from| from..from.saturating_add(self.resolution));
        spans
            .into_iter()
            .find(|span| span.start <= end && span.end > start)
    }

    /// The moments that it can mean near a run from `start` to `end`, nanoseconds since the epoch.
    pub(crate) fn candidates(&self, start: u64, end: u64) -> Vec<u64> {
        match &self.kind {
            Kind::Epoch(epoch) => vec![*epoch],
            Kind::Civil(civil) => epochs_near(Some(civil.date()), civil.time(), start, end),
            Kind::OfDay(time) => epochs_near(None, *time, start, end),
        }
    }

    /// The moment itself, nanoseconds since the epoch: if it is not between `start` and `end`, in UTC. `None` for a time
    /// of day that is not between them.
    pub fn since(&self, start: u64, end: u64) -> Option<u64> {
        if let Some(span) = self.within(start, end) {
            return Some(span.start);
        }
        match &self.kind {
            Kind::Epoch(epoch) => Some(*epoch),
            Kind::Civil(civil) => epoch(*civil, &TimeZone::UTC),
            Kind::OfDay(_) => None,
        }
    }

    /// The text as given.
    pub fn written(&self) -> &str {
        &self.written
    }
}

/// The moments that a time without a zone can mean, in UTC and in local time; without a date, on each day of a run.
pub(crate) fn epochs_near(date: Option<Date>, time: Time, start: u64, end: u64) -> Vec<u64> {
    let zones = [TimeZone::UTC, TimeZone::system()];
    let near = |zone: &TimeZone| match date {
        Some(date) => epoch(date.to_datetime(time), zone).into_iter().collect(),
        None => on_days(time, zone, start, end),
    };
    zones.iter().flat_map(near).collect()
}

fn epoch(civil: DateTime, zone: &TimeZone) -> Option<u64> {
    let time = civil.to_zoned(zone.clone()).ok()?.timestamp();
    u64::try_from(time.as_nanosecond()).ok()
}

/// The time on each day of a run.
fn on_days(time: Time, zone: &TimeZone, start: u64, end: u64) -> Vec<u64> {
    let day = |epoch: u64| {
        let time = Timestamp::from_nanosecond(i128::from(epoch)).ok()?;
        Some(time.to_zoned(zone.clone()).date())
    };
    let (Some(mut day), Some(last)) = (day(start), day(end)) else {
        return Vec::new();
    };
    let mut moments = Vec::new();
    while day <= last {
        moments.extend(epoch(day.to_datetime(time), zone));
        let Ok(next) = day.checked_add(1.day()) else {
            break;
        };
        day = next;
    }
    moments
}

#[cfg(test)]
mod tests {
    use super::*;

    /// 2026-11-21 21:40:00 UTC.
    const START: u64 = 1_795_297_200_000_000_000;

    #[test]
    fn what_graphs_and_logs_give_is_understood() {
        let seven = START + 7_200_000_000;
        for text in [
            "21:40:07.200",
            "2026-11-21T21:40:07.200",
            "2026-11-21 21:40:07.200",
            "2026-11-21T21:40:07.200Z",
            "1795297207200",
        ] {
            let moment: Moment = text.parse().unwrap();
            let span = moment.within(START, START + 60 * SECOND).unwrap();
            assert_eq!(span, seven..seven + 1_000_000, "{text}");
        }
        let second: Moment = "21:40:07".parse().unwrap();
        let span = second.within(START, START + 60 * SECOND).unwrap();
        assert_eq!(span.end - span.start, SECOND, "as fine as it was written");
    }

    #[test]
    fn a_time_of_day_is_found_on_the_day_that_the_run_reached() {
        let moment: Moment = "00:00:01".parse().unwrap();
        let midnight = START + 8400 * SECOND;
        let span = moment.within(START, START + 20_000 * SECOND).unwrap();
        assert_eq!(span.start, midnight + SECOND);
        assert_eq!(moment.within(START, START + SECOND), None);
    }

    #[test]
    fn what_is_no_moment_is_refused_with_examples() {
        for text in [
            "",
            "now",
            "25:00:00",
            "12345",
            "21.40",
            "2026-13-01T00:00:00Z",
        ] {
            let error = text.parse::<Moment>().unwrap_err();
            assert!(error.contains("21:40:07"), "{text}: {error}");
        }
    }
}
