//! Hours and stores for tests.

use super::day;
use crate::Location;
use jitterscope_store::rollup::{
    GroupHour, HostHour, HourFile, RollupCulprit, RollupHost, encode, hour_start_s, object_name,
    raw_folder,
};
use std::path::Path;

pub(crate) fn fleet_at(folder: &Path) -> Location {
    Location::open(&format!("file://{}", folder.display())).unwrap()
}

/// An hour of a host with one culprit.
pub(crate) fn host_hour(host: &str, hour: u64) -> HostHour {
    let culprit = RollupCulprit {
        kind: "thread".into(),
        name: "tar".into(),
        owner: None,
        count: 1,
        time_ns: 10,
        longest_ns: 10,
    };
    HostHour {
        host: RollupHost {
            id: host.into(),
            name: host.into(),
            boot: "abcdef01".into(),
            ..RollupHost::default()
        },
        hour,
        clock_ahead_s: None,
        groups: vec![GroupHour {
            cpus: "1".parse().unwrap(),
            stalls: 1,
            stalled_ns: 10,
            longest_ns: 10,
            measured_ns: 3_600_000_000_000,
            culprits: vec![culprit],
            ..GroupHour::default()
        }],
    }
}

/// Puts an hour into the store, as an uploader does.
pub(crate) fn put(location: &Location, hour: &HostHour) {
    let file = HourFile::new(hour.hour, &hour.host.boot);
    let name = object_name(&hour.host, "cpus-1", &file);
    let folder = raw_folder("c", &day(hour_start_s(hour.hour)));
    let bytes = encode(hour, &name).unwrap();
    location
        .put(&format!("{folder}/{name}.parquet"), bytes)
        .unwrap();
}
