//! What a run states of a file, whatever the file was imported for.

use super::opened::{Added, Opened, program_of};
use super::pages::FilePages;
use jitterscope_model::{
    CpuSet, Imported, SourceLoss, SourceProblem, SourceReport, SourceStatus, Warning,
};
use jitterscope_source::tracedat::missing;
use jitterscope_source::{Symbols, SymbolsError};

/// What is known of a file before its records.
pub(super) struct FileFacts {
    imported: Imported,
    /// Events whose formats cannot be read, each as `system:event`.
    unreadable: Vec<String>,
    /// CPUs with other records, but without switches.
    unswitched: CpuSet,
    symbols: SourceReport,
}

impl FileFacts {
    pub(super) fn of(
        opened: &Opened,
        (unreadable, unswitched): (Vec<String>, CpuSet),
        symbols: &Result<Symbols, SymbolsError>,
    ) -> FileFacts {
        let options = &opened.dat.options;
        FileFacts {
            imported: Imported {
                file: opened.name.clone(),
                format: opened.dat.format.into(),
                format_version: opened.dat.version,
                program: options.program.as_deref().map(program_of),
                clock: opened.clock.name.clone(),
                states_date: options.date_us.is_some(),
                unread_records: 0,
            },
            unreadable,
            unswitched,
            symbols: match symbols {
                Ok(_) => SourceReport::available("symbols"),
                Err(error) => error.report(),
            },
        }
    }

    /// The file, once everything was read.
    pub(super) fn imported(
        &self,
        opened: &Opened,
        source: &FilePages<'_>,
        added: Added,
    ) -> Imported {
        let unread = source.unread().saturating_sub(added.records);
        Imported {
            unread_records: unread.saturating_add(opened.unread),
            ..self.imported.clone()
        }
    }

    /// What a reader of the run must know of the file.
    pub(super) fn warnings(
        &self,
        opened: &Opened,
        source: &FilePages<'_>,
        (sources, added): (&[SourceReport], Added),
    ) -> Vec<Warning> {
        let mut warnings: Vec<Warning> = crate::after::of_sources(sources).into_iter().collect();
        let mut cut = source.incomplete();
        for cpu in opened.cut.iter() {
            cut.insert(cpu);
        }
        if !cut.is_empty() {
            warnings.push(Warning::ImportCut { cpus: cut });
        }
        if opened.moved > 0 {
            warnings.push(Warning::ImportMoved {
                records: opened.moved,
            });
        }
        let disordered = source.disordered.saturating_add(added.disordered);
        if disordered > 0 {
            warnings.push(Warning::ImportDisordered { pages: disordered });
        }
        if self.imported.clock == Imported::LOCAL_CLOCK && opened.cpus().len() > 1 {
            warnings.push(Warning::ImportLocalClock);
        }
        warnings
    }

    /// What the file shows and what not, as of any other source.
    pub(super) fn sources(
        &self,
        opened: &Opened,
        source: &FilePages<'_>,
        added: Added,
    ) -> Vec<SourceReport> {
        let seen = source.seen();
        let vectors = seen
            .iter()
            .any(|(event, count)| event.starts_with("irq_vectors:") && *count > 0);
        let mut reports = missing(|event| match event {
            "irq_vectors:*" => vectors,
            event => seen.get(event).is_some_and(|count| *count > 0),
        });
        let [local, senders] = source.counts().map(|of| {
            // Where the number is not known, at least one was lost.
            of.lost.saturating_add(of.lost_unknown)
        });
        let local = local.saturating_sub(added.losses);
        // The kernel's own count covers a buffer that was overwritten before it was read.
        let local = local.max(opened.dat.options.overrun.saturating_sub(senders));
        for (report, lost) in reports.iter_mut().zip([local, senders]) {
            if lost > 0 {
                report.lost = lost;
                report.status = SourceStatus::Degraded;
                report.problems.push(SourceProblem::EventsLost { lost });
                report.losses.push(SourceLoss::NearLostEvents);
            }
        }
        if !self.unswitched.is_empty() {
            reports[0].status = SourceStatus::Degraded;
            reports[0]
                .problems
                .push(SourceProblem::CpusWithoutSwitches {
                    cpus: self.unswitched.clone(),
                });
            reports[0].losses.push(SourceLoss::Switches);
        }
        if !self.unreadable.is_empty() {
            reports[0].status = SourceStatus::Degraded;
            reports[0].problems.push(SourceProblem::FormatUnreadable {
                parser: format!(
                    "the formats of {} cannot be read",
                    self.unreadable.join(", ")
                ),
            });
        }
        reports.into_iter().chain([self.symbols.clone()]).collect()
    }
}
