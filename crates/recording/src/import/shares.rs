//! Which threads had which CPU, from a first reading of the file: for CPUs whose owner is not named, and to offer names.

use super::error::ImportError;
use super::opened::Opened;
use super::pages::FilePagesError;
use crate::feed::PageFeed;
use jitterscope_analyze::is_named_like_kernel_thread;
use jitterscope_attribute::Shares;
use jitterscope_model::{
    ChosenThread, Comm, CpuId, CpuSet, PutInOrder, Record, ThreadRef, TickRate, Ticks, TraceRole,
    visible,
};
use jitterscope_source::TraceContext;
use std::collections::BTreeMap;
use std::sync::atomic::{AtomicBool, Ordering};

/// Pages of each CPU that are read to offer names.
const OFFERED_PAGES: usize = 2048;
/// Names that are offered.
const OFFERED: usize = 6;

/// The shares of the threads on some CPUs.
pub(super) struct FileShares {
    shares: Shares,
    cpus: CpuSet,
    from: Ticks,
    until: Ticks,
    rate: TickRate,
}

impl FileShares {
    /// Reads the records of these CPUs.
    pub(super) fn read(
        opened: &Opened,
        context: &TraceContext,
        cpus: &CpuSet,
        most_pages: usize,
        stop: &AtomicBool,
    ) -> Result<FileShares, ImportError> {
        let own =
            |of: &&super::opened::Stream| of.role == TraceRole::Local && cpus.contains(of.cpu);
        let mut from: Option<Ticks> = None;
        for stream in opened.streams.iter().filter(own) {
            let first = opened.first(stream)?;
            from = first.into_iter().chain(from).min();
        }
        let from = from.unwrap_or_default();
        let mut shares = Shares::new(from);
        let mut until = from;
        let mut feed = PageFeed::new(context, cpus)
            .map_err(|error| described(opened, FilePagesError::from(error)))?;
        for stream in opened.streams.iter().filter(own) {
            let mut pages = opened.pages(stream);
            let mut left = most_pages;
            while let Some(bytes) = pages.peek()? {
                if stop.load(Ordering::Relaxed) {
                    return Err(ImportError::Interrupted);
                }
                let of = (stream.role, stream.cpu);
                let info = feed.page(of, bytes, Ticks(u64::MAX), |record| {
                    if let Record::Local(event) = record {
                        shares.event(event);
                    }
                });
                let last = info.and_then(|info| info.range).map(|(_, last)| last);
                until = until.max(last.unwrap_or_default());
                pages.pass();
                left -= 1;
                if left == 0 {
                    break;
                }
            }
        }
        Ok(FileShares {
            shares,
            cpus: cpus.clone(),
            from,
            until,
            rate: opened.clock.rate,
        })
    }

    /// The thread with the largest share of a CPU, except the kernel's own.
    pub(super) fn owner(&self, cpu: CpuId) -> Option<(ThreadRef, ChosenThread)> {
        let users = |(thread, _): &(ThreadRef, Ticks)| !is_kernels(thread.comm);
        let (thread, ran) = self
            .shares
            .largest(cpu, self.until)
            .into_iter()
            .find(users)?;
        let look_ns = self.rate.nanos(self.until.since(self.from));
        let share = self.rate.nanos(ran).0 as f64 / look_ns.0.max(1) as f64;
        let chosen = ChosenThread {
            tid: thread.tid,
            comm: thread.comm.to_string(),
            share: share.min(1.0),
            look_ns,
        };
        Some((thread, chosen))
    }

    /// The names with most time, in words.
    fn names(&self) -> Vec<String> {
        let mut by_name: BTreeMap<Comm, Ticks> = BTreeMap::new();
        for cpu in self.cpus.iter() {
            for (thread, ran) in self.shares.largest(cpu, self.until) {
                if !is_kernels(thread.comm) && !thread.comm.is_empty() {
                    let sum = by_name.entry(thread.comm).or_default();
                    *sum = *sum + ran;
                }
            }
        }
        let mut names: Vec<(Comm, Ticks)> = by_name.into_iter().collect();
        names.order_by_key(|(comm, ran)| (std::cmp::Reverse(*ran), *comm));
        names
            .into_iter()
            .take(OFFERED)
            .map(|(comm, _)| format!("'{}'", visible(&comm.to_string())))
            .collect()
    }
}

/// What the file offers as victims, in words.
pub(super) fn offers(
    opened: &Opened,
    context: &TraceContext,
    stop: &AtomicBool,
) -> Result<(CpuSet, String), ImportError> {
    let cpus = opened.cpus();
    let shares = FileShares::read(opened, context, &cpus, OFFERED_PAGES, stop)?;
    let names = shares.names();
    let names = match names.is_empty() {
        true => String::new(),
        false => format!("Most time had {}.", names.join(", ")),
    };
    Ok((cpus, names))
}

/// Whether a thread of this name is the kernel's, as far as its name tells: a file states no more.
fn is_kernels(comm: Comm) -> bool {
    is_named_like_kernel_thread(&comm.to_string())
}

pub(super) fn described(opened: &Opened, error: FilePagesError) -> ImportError {
    match error {
        FilePagesError::Read(source) => ImportError::Read(source),
        FilePagesError::Taken(source) => ImportError::Rows(source),
        FilePagesError::Context(source) => ImportError::Described {
            file: opened.recognised(),
            source,
        },
    }
}
