//! Writes a fleet as objects of a store: what its hosts would have sent, and a compactor packed.

use super::hosts::{AHEAD, AHEAD_HOURS, CLUSTERS, DAY, FIRST_HOUR, Host, Planted};
use super::hour::hour;
use anyhow::{Context, ensure};
use jitterscope_store::rollup::{HourFile, days_folder, encode, merge, object_name, raw_folder};
use std::fs::{self, File};
use std::path::PathBuf;
use std::sync::atomic::{AtomicU64, AtomicUsize, Ordering};

/// Host-hours of a compacted file.
const PACKED: usize = 512;
/// The last hours of the last day that are not packed yet, and those that are packed and still there.
const FRESH: u64 = 2;
const STILL_THERE: u64 = 1;

#[derive(clap::Args, Clone)]
pub struct GenerateArgs {
    /// How many hosts
    #[arg(long, default_value_t = 200)]
    pub hosts: u64,
    /// How many days, from 2 November 2026
    #[arg(long, default_value_t = 3, value_parser = clap::value_parser!(u64).range(1..=28))]
    pub days: u64,
    /// Fleets of one seed are equal
    #[arg(long, default_value_t = 1)]
    pub seed: u64,
    /// Where: takes the place of an object store
    pub dir: PathBuf,
}

/// The name of the folder of a day, counted from the fleet's first.
pub fn day_name(day: u64) -> String {
    format!("2026-11-{:02}", 2 + day)
}

/// Writes the fleet, and beside it `planted.json`.
pub fn run(args: &GenerateArgs) -> anyhow::Result<()> {
    ensure!(args.hosts >= 100, "planted causes need at least 100 hosts");
    ensure!(
        !args.dir.join("v1").exists(),
        "{} has a fleet already",
        args.dir.display()
    );
    fs::create_dir_all(&args.dir)?;
    let planted = Planted::new(args.hosts);
    let tasks: Vec<(&str, u64)> = (0..args.days)
        .flat_map(|day| CLUSTERS.map(|cluster| (cluster, day)))
        .collect();
    let (next, batches) = (AtomicUsize::new(0), AtomicU64::new(0));
    let work = || -> anyhow::Result<()> {
        while let Some((cluster, day)) = tasks.get(next.fetch_add(1, Ordering::Relaxed)) {
            batches.fetch_add(write_day(args, &planted, cluster, *day)?, Ordering::Relaxed);
        }
        Ok(())
    };
    std::thread::scope(|scope| {
        let threads: Vec<_> = (0..2).map(|_| scope.spawn(work)).collect();
        let mut joined = threads.into_iter().map(|thread| thread.join());
        joined.try_for_each(|done| done.expect("no thread panics"))
    })?;
    let described = planted.to_json(args.hosts, args.days, batches.into_inner());
    fs::write(args.dir.join("planted.json"), format!("{described:#}\n"))?;
    Ok(())
}

/// All host-hours that a cluster has in the folder of one day. Returns how many.
fn write_day(
    args: &GenerateArgs,
    planted: &Planted,
    cluster: &str,
    day: u64,
) -> anyhow::Result<u64> {
    let hosts: Vec<Host> = (0..args.hosts)
        .map(|number| Host::new(number, args.seed))
        .filter(|host| host.cluster == cluster)
        .collect();
    let name = day_name(day);
    let raw = args.dir.join(raw_folder(cluster, &name));
    let days = args.dir.join(days_folder(cluster, &name));
    let waiting = tempfile::tempdir_in(&args.dir)?;
    fs::create_dir_all(&days)?;
    let end = args.days * DAY;
    let (mut batches, mut packed, mut numbers) = (0, Vec::new(), 0);
    let mut pack = |files: &mut Vec<PathBuf>| -> anyhow::Result<()> {
        let sources = files
            .iter()
            .map(|path| Ok((File::open(path)?, path.as_path())));
        let merged = merge(sources.collect::<std::io::Result<_>>()?, &|_| false)?;
        ensure!(merged.batches.len() == files.len(), "a batch is lost");
        fs::write(days.join(format!("{numbers:04}.parquet")), merged.file)?;
        numbers += 1;
        files
            .drain(..)
            .try_for_each(fs::remove_file)
            .context("a file of an hour")
    };
    // A clock that is ahead puts an hour into the next day.
    for of in (day * DAY).saturating_sub(DAY)..end.min((day + 1) * DAY) {
        for host in &hosts {
            if (host.clock_hour(of, planted) - FIRST_HOUR) / DAY != day {
                continue;
            }
            let rows = hour(host, of, args.seed, planted);
            let mut file = HourFile::new(rows.hour, &rows.host.boot);
            // The clock went back: the hour comes a second time.
            let is_again = host.number == planted.ahead
                && (AHEAD_HOURS.end..AHEAD_HOURS.end + AHEAD).contains(&of);
            file.number = 1 + u32::from(is_again);
            let name = object_name(&rows.host, "spin", &file);
            let bytes = encode(&rows, &name)?;
            batches += 1;
            let is_packed = of + FRESH < end;
            if of + FRESH + STILL_THERE >= end {
                fs::create_dir_all(&raw)?;
                fs::write(raw.join(format!("{name}.parquet")), &bytes)?;
            }
            if is_packed {
                let path = waiting.path().join(format!("{name}.parquet"));
                fs::write(&path, &bytes)?;
                packed.push(path);
            }
            if packed.len() == PACKED {
                pack(&mut packed)?;
            }
        }
    }
    if !packed.is_empty() {
        pack(&mut packed)?;
    }
    Ok(batches)
}
