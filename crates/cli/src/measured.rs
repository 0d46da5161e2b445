//! The CPUs that a recording measures: the named ones, those that `tune` keeps undisturbed, the isolated ones, or the
//! highest; and whether the last run measured the same.

use crate::commands::machine_tuning::state_dir;
use crate::exit::UsageError;
use crate::output;
use crate::places::Places;
use anyhow::Context;
use jitterscope_analyze::RunSummary;
use jitterscope_model::{CpuList, CpuSet, CpusBecause, Nanos, ProbeKind};
use jitterscope_platform::{
    CpuChoice, Machine, SelectionError, Topology, current_affinity, select_cpus,
};
use jitterscope_recording::Observer;
use jitterscope_store::RunEntry;
use jitterscope_tune::{NowIs, Status, status};
use jitterscope_view::{cpus_because, cpus_text};
use std::path::Path;

/// The CPUs to measure. `option` is the option that names them.
///
/// # Errors
/// They cannot be measured, or the usable CPUs cannot be read.
pub fn choose(
    machine: &Machine,
    wanted: Option<&CpuList>,
    option: &str,
) -> anyhow::Result<CpuChoice> {
    let allowed = current_affinity().context("the affinity mask of this process cannot be read")?;
    let tuned = match status(machine, &state_dir()) {
        Ok(status) => in_force(&status),
        Err(error) => {
            if wanted.is_none() {
                output::talk(format_args!(
                    "which CPUs tune keeps undisturbed cannot be read ({error}); choosing without"
                ));
            }
            CpuSet::new()
        }
    };
    Ok(among(wanted, &Topology::read(machine), &allowed, &tuned)
        .map_err(|error| UsageError(format!("{option}: {error}")))?)
}

/// The CPUs of applied changes that are still active: a reboot undoes most of them.
fn in_force(status: &Status) -> CpuSet {
    let stands = |now: &NowIs| {
        matches!(
            now,
            NowIs::InForce | NowIs::Pending { .. } | NowIs::ChangedAgain | NowIs::Drifted { .. }
        )
    };
    if !status.changes.iter().any(|change| stands(&change.standing)) {
        return CpuSet::new();
    }
    status
        .applies
        .iter()
        .flat_map(|apply| apply.isolated.iter().collect::<Vec<_>>())
        .collect()
}

fn among(
    wanted: Option<&CpuList>,
    topology: &Topology,
    allowed: &CpuSet,
    tuned: &CpuSet,
) -> Result<CpuChoice, String> {
    let to_text = |error: SelectionError| error.to_string();
    let tuned = tuned.intersection(&topology.online);
    if wanted.is_some() || tuned.is_empty() {
        return select_cpus(wanted, topology, allowed).map_err(to_text);
    }
    // Another CPU would not show the effect of the tuning, but would be taken for it.
    let chosen = select_cpus(Some(&CpuList::Set(tuned.clone())), topology, allowed).map_err(|error| {
        format!("tune keeps CPU {tuned} undisturbed (tune status), so that it is measured, but {error}; or name others")
    })?;
    Ok(CpuChoice {
        because: Some(CpusBecause::KeptByTune { cpus: tuned }),
        ..chosen
    })
}

/// Reports the automatically chosen CPUs with the reason, and whether the last run of the kind measured others.
///
/// # Errors
/// There is no folder of runs.
pub fn tell(
    choice: &CpuChoice,
    kind: ProbeKind,
    places: &Places,
    quiet: bool,
) -> anyhow::Result<()> {
    if !quiet {
        // On a terminal, the progress line shows the CPU and the report shows the reason: a further line would push its
        // head off a screen of 24 lines.
        let told_elsewhere = usize::from(output::someone_watches());
        remarks(choice, kind, places)?
            .iter()
            .skip(told_elsewhere)
            .for_each(output::talk);
    }
    Ok(())
}

/// The remarks of [`tell`]: the choice first.
///
/// # Errors
/// There is no folder of runs.
pub fn remarks(
    choice: &CpuChoice,
    kind: ProbeKind,
    places: &Places,
) -> anyhow::Result<Vec<String>> {
    let Some(because) = &choice.because else {
        return Ok(Vec::new());
    };
    let mut remarks = vec![format!(
        "measuring CPU {}: {}",
        choice.cpus,
        cpus_because(because)
    )];
    // An unreadable folder is reported when the run is stored.
    let runs = jitterscope_store::list_own(&places.runs()?).unwrap_or_default();
    remarks.extend(unlike_the_last(&choice.cpus, kind, &runs));
    Ok(remarks)
}

/// Prints remarks when the measurement begins: a front with wrong arguments prints nothing else.
pub struct Remarks(pub Vec<String>);

impl Observer for Remarks {
    fn measuring(&mut self, _threshold: Nanos) {
        self.0.drain(..).for_each(output::talk);
    }
}

/// The remark if the newest run of the kind measured other CPUs: they may cause a difference.
fn unlike_the_last(cpus: &CpuSet, kind: ProbeKind, runs: &[RunEntry]) -> Option<String> {
    let last = newest(cpus, kind, runs)?;
    let before = &last.head.figures.cpus;
    Some(format!(
        "warning: the last run ({}) measured {}, this one measures {}: what differs between them may be the \
         CPUs'. The same again: --cpus {before}",
        last.head.id,
        cpus_text(before),
        cpus_text(cpus)
    ))
}

/// The newest run of the kind, if it measured other CPUs.
fn newest<'r>(cpus: &CpuSet, kind: ProbeKind, runs: &'r [RunEntry]) -> Option<&'r RunEntry> {
    let last = runs
        .iter()
        .rev()
        .find(|run| run.head.probe.kind() == Some(kind))?;
    let before = &last.head.figures.cpus;
    (before != cpus && !before.is_empty()).then_some(last)
}

/// The remark for the report of a stored run with automatically chosen CPUs: the one at the beginning has scrolled off
/// the screen.
pub fn unlike_the_run_before(path: &Path, summary: &RunSummary) -> Option<String> {
    let kind = ProbeKind::from_word(&summary.probe.kind);
    let (Some(kind), Some(_)) = (kind, &summary.probe.cpus_chosen_because) else {
        return None;
    };
    let mut runs = jitterscope_store::list_own(path.parent()?).unwrap_or_default();
    let this = runs.iter().position(|run| run.head.id == summary.run.id);
    let cpus = this.map(|at| runs[at].head.figures.cpus.clone())?;
    runs.retain(|run| run.head.started_realtime_ns < summary.run.started_realtime_ns);
    newest(&cpus, kind, &runs).map(|before| {
        let theirs = &before.head.figures.cpus;
        format!(
            "The run before, {}, measured {}, this one {}: what differs may be the CPUs' (--cpus {theirs})",
            before.head.id,
            cpus_text(theirs),
            cpus_text(&cpus)
        )
    })
}

#[cfg(test)]
mod tests {
    use super::*;

    fn set(list: &str) -> CpuSet {
        list.parse().unwrap()
    }

    fn topology(cpuset: Option<&str>) -> Topology {
        Topology {
            present: set("0-3"),
            online: set("0-3"),
            isolated: set("3"),
            nohz_full: set(""),
            cpuset: cpuset.map(set),
        }
    }

    #[test]
    fn tuned_cpus_come_before_isolated_ones() {
        // The shell was moved to CPU 0.
        let choice = among(None, &topology(None), &set("0"), &set("1-2")).unwrap();
        assert_eq!(choice.cpus, set("1-2"));
        assert_eq!(
            choice.because,
            Some(CpusBecause::KeptByTune { cpus: set("1-2") })
        );
        let isolated = among(None, &topology(None), &set("0"), &set("")).unwrap();
        assert_eq!(isolated.cpus, set("3"));
        let gone = among(None, &topology(None), &set("0"), &set("7")).unwrap();
        assert_eq!(gone.cpus, set("3"));
        let named = among(
            Some(&"0".parse().unwrap()),
            &topology(None),
            &set("0"),
            &set("1"),
        )
        .unwrap();
        assert_eq!((named.cpus, named.because), (set("0"), None));
    }

    #[test]
    fn a_tuned_cpu_that_is_out_of_reach_is_not_replaced_by_another() {
        let refused = among(None, &topology(Some("0,3")), &set("0"), &set("1")).unwrap_err();
        assert!(
            refused.contains("tune keeps CPU 1 undisturbed") && refused.contains("cpuset"),
            "{refused}"
        );
    }

    fn run(id: &str, kind: &str, cpus: &str) -> RunEntry {
        let head = serde_json::json!({
            "schema_version": 2, "tool_version": "0.1.0", "id": id, "label": "x", "hostname": "h",
            "started_realtime_ns": 1, "attributed": true, "interrupted": false,
            "probe": {
                "kind": kind, "cpus": cpus, "cpus_chosen_because": null, "duration_ns": 1, "warmup_ns": 1,
                "threshold_ns": 1, "interval_ns": 1, "fifo_priority": null,
            },
            "figures": {"cpus": cpus, "duration_ns": 1},
        });
        RunEntry {
            path: id.into(),
            head: serde_json::from_value(head).unwrap(),
            owner: 0,
            linked: false,
        }
    }

    #[test]
    fn other_cpus_than_the_last_run_of_the_kind_are_reported() {
        let runs = [run("aaaaaa", "spin", "1"), run("bbbbbb", "wakeup", "0")];
        let warning_of = |cpus: &str| unlike_the_last(&set(cpus), ProbeKind::Spin, &runs);
        assert_eq!(warning_of("1"), None);
        let warning = warning_of("0").unwrap();
        assert!(
            warning.contains("aaaaaa") && warning.contains("--cpus 1"),
            "{warning}"
        );
        assert_eq!(unlike_the_last(&set("0"), ProbeKind::Wakeup, &runs), None);
        assert_eq!(unlike_the_last(&set("0"), ProbeKind::Spin, &[]), None);
    }
}
