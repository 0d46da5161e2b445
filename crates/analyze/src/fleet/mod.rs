//! Judges a fleet: hosts against their twins, new culprits, kernels and tunings against one another.
//!
//! The unit is the host. Each gives one number for each figure, however many hours it was measured, because the hours of
//! one host are alike. Hosts of one kind of hardware, kernel and tuning are twins.

mod changes;
mod outliers;
#[cfg(test)]
mod tests;

pub use changes::{ChangedFigure, FleetChange, Varied};
use outliers::outliers;

use schemars::JsonSchema;
use serde::{Deserialize, Serialize};
use std::collections::{BTreeMap, BTreeSet};

/// The probability that chance alone gives any of the worst hosts, and that of any of the changes.
pub const FLEET_ALPHA: f64 = 0.05;
/// A host is worse than its twins only if it loses at least this many times their median.
pub const LEAST_TIMES: f64 = 1.5;
/// The fewest hosts of a group of twins that are judged.
pub const FEWEST_TWINS: usize = 5;
/// Hosts that were measured for a smaller share of the usual time are left out: their shares scatter more.
const LEAST_MEASURED: f64 = 0.25;
/// An excess below this does not matter: a tenth of a microsecond a second.
const NOTHING: f64 = 1e-7;
/// A kind of culprit is compared if at least this share of the hosts has some: its logarithms need values.
const MOSTLY: f64 = 0.8;
/// Causes of a worse host that are named.
const MOST_CAUSES: usize = 3;

/// What makes hosts twins.
#[derive(
    Clone, Debug, Default, PartialEq, Eq, PartialOrd, Ord, Serialize, Deserialize, JsonSchema,
)]
pub struct Twins {
    pub cpu_model: String,
    pub machine: String,
    pub kernel: String,
    /// The fingerprint of its settings.
    pub tuning: String,
}

/// A host's sums over the time of a report.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize, JsonSchema)]
pub struct FleetHost {
    pub host_id: String,
    pub host: String,
    pub cluster: String,
    #[serde(flatten)]
    pub twins: Twins,
    pub hours: u64,
    /// Measured time, summed over CPUs, seconds; and what was stolen of it.
    pub measured_s: f64,
    pub stolen_s: f64,
    /// The longest stall, seconds.
    pub longest_s: f64,
    /// Lost kernel records.
    pub lost: u64,
}

impl FleetHost {
    /// The stolen share of the measured time.
    #[must_use]
    pub fn share(&self) -> f64 {
        self.stolen_s / self.measured_s
    }
}

/// What a culprit took from a host.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize, JsonSchema)]
pub struct HostCulprit {
    pub host_id: String,
    /// The host's kernel and tuning at that time: a host may have several.
    pub kernel: String,
    pub tuning: String,
    pub kind: String,
    pub name: String,
    pub stolen_s: f64,
}

/// A culprit that no host had before a day.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize, JsonSchema)]
pub struct NewCulprit {
    pub kind: String,
    pub name: String,
    #[serde(default)]
    pub owner: Option<String>,
    /// The first day with it, `2026-11-28`, and how many hosts have it since.
    pub first_day: String,
    pub hosts: u64,
    pub stolen_s: f64,
    /// Measured time of these hosts since that day, seconds.
    pub measured_s: f64,
}

/// What is wrong in a fleet.
#[derive(Clone, Debug, PartialEq, Serialize, JsonSchema)]
pub struct FleetFindings {
    /// Hosts, and their hours.
    pub hosts: u64,
    pub host_hours: u64,
    pub measured_s: f64,
    pub stolen_s: f64,
    pub longest_s: f64,
    /// Lost kernel records, and the hosts with any: their sums may lack something.
    pub lost: u64,
    pub hosts_with_losses: u64,
    /// Groups of twins that are large enough to judge their hosts, and hosts without so many twins.
    pub groups: u64,
    pub without_twins: u64,
    /// Hosts that were measured too shortly to be judged.
    pub short: u64,
    /// The worst first.
    pub worst: Vec<WorseHost>,
    /// The largest first.
    pub new: Vec<NewCulprit>,
    /// The largest first.
    pub changes: Vec<FleetChange>,
    /// The probability that chance alone gives any of `worst`, and that it gives any of `changes`.
    pub alpha: f64,
}

/// A host that loses more than its twins, in all or to one kind of culprit, and not by chance.
#[derive(Clone, Debug, PartialEq, Serialize, JsonSchema)]
pub struct WorseHost {
    #[serde(flatten)]
    pub host: FleetHost,
    /// The kind of culprit whose time is compared; null for all stolen time.
    pub kind: Option<String>,
    /// What was stolen of the host's measured time, a ratio.
    pub share: f64,
    /// The median of the same ratio over its twins.
    pub twins_share: f64,
    /// The number of its twins.
    pub twin_hosts: u64,
    /// What takes more time than on its twins, the largest difference first.
    pub causes: Vec<Cause>,
}

/// A culprit of a worse host.
#[derive(Clone, Debug, PartialEq, Serialize, JsonSchema)]
pub struct Cause {
    pub kind: String,
    pub name: String,
    /// What it took of the host's measured time, a ratio.
    pub share: f64,
    /// The median of the same ratio over the host's twins.
    pub twins_share: f64,
}

/// Shares of culprits by host.
pub(crate) struct Shares<'c>(BTreeMap<&'c str, BTreeMap<Twins, ByCulprit<'c>>>);

/// Shares by kind and name.
type ByCulprit<'c> = BTreeMap<(&'c str, &'c str), f64>;

impl<'c> Shares<'c> {
    fn of(hosts: &[FleetHost], culprits: &'c [HostCulprit]) -> Shares<'c> {
        let known: BTreeMap<(&str, &str, &str), &FleetHost> = hosts
            .iter()
            .map(|of| ((&*of.host_id, &*of.twins.kernel, &*of.twins.tuning), of))
            .collect();
        let mut shares: BTreeMap<&str, BTreeMap<Twins, ByCulprit<'_>>> = BTreeMap::new();
        for of in culprits {
            let place = (&*of.host_id, &*of.kernel, &*of.tuning);
            let Some(host) = known.get(&place) else {
                continue;
            };
            let of_host = shares.entry(&of.host_id).or_default();
            let rows = of_host.entry(host.twins.clone()).or_default();
            *rows.entry((&*of.kind, &*of.name)).or_default() += of.stolen_s / host.measured_s;
        }
        Shares(shares)
    }

    fn rows(&self, host: &FleetHost) -> Option<&ByCulprit<'c>> {
        self.0.get(&*host.host_id)?.get(&host.twins)
    }

    /// The share of all culprits of a kind.
    fn of_kind(&self, host: &FleetHost, kind: &str) -> f64 {
        let rows = self.rows(host).into_iter().flatten();
        let of_kind = rows.filter(|((of, _), _)| *of == kind);
        of_kind.map(|(_, share)| share).sum()
    }

    /// The share of a culprit; 0 if the host has not seen it.
    pub(crate) fn share(&self, host: &FleetHost, culprit: (&'c str, &'c str)) -> f64 {
        let rows = self.rows(host);
        rows.and_then(|rows| rows.get(&culprit))
            .copied()
            .unwrap_or(0.0)
    }
}

/// Judges a fleet. `hosts` has one row for each host, kernel and tuning; a host whose kernel changed has several.
#[must_use]
pub fn judge(
    hosts: Vec<FleetHost>,
    culprits: &[HostCulprit],
    new: Vec<NewCulprit>,
) -> FleetFindings {
    let ids: BTreeSet<&str> = hosts.iter().map(|of| &*of.host_id).collect();
    let with_losses: BTreeSet<&str> = hosts
        .iter()
        .filter(|of| of.lost > 0)
        .map(|of| &*of.host_id)
        .collect();
    let mut findings = FleetFindings {
        hosts: ids.len() as u64,
        host_hours: hosts.iter().map(|of| of.hours).sum(),
        measured_s: hosts.iter().map(|of| of.measured_s).sum(),
        stolen_s: hosts.iter().map(|of| of.stolen_s).sum(),
        longest_s: hosts.iter().map(|of| of.longest_s).fold(0.0, f64::max),
        lost: hosts.iter().map(|of| of.lost).sum(),
        hosts_with_losses: with_losses.len() as u64,
        groups: 0,
        without_twins: 0,
        short: 0,
        worst: Vec::new(),
        new,
        changes: Vec::new(),
        alpha: FLEET_ALPHA,
    };
    let usual = crate::machine::median(hosts.iter().map(|of| of.measured_s).collect());
    let least = usual.unwrap_or(0.0) * LEAST_MEASURED;
    let (judged, short): (Vec<FleetHost>, Vec<FleetHost>) = hosts
        .into_iter()
        .partition(|of| of.measured_s > 0.0 && of.measured_s >= least);
    findings.short = short.len() as u64;
    let shares = Shares::of(&judged, culprits);
    let mut groups: BTreeMap<&Twins, Vec<&FleetHost>> = BTreeMap::new();
    for host in &judged {
        groups.entry(&host.twins).or_default().push(host);
    }
    let (large, small): (Vec<_>, Vec<_>) = groups
        .values()
        .partition(|group| group.len() >= FEWEST_TWINS);
    findings.groups = large.len() as u64;
    findings.without_twins = small.iter().map(|group| group.len() as u64).sum();
    findings.worst = worse(&large, &shares);
    let times = |of: &WorseHost| of.share / of.twins_share.max(NOTHING);
    findings
        .worst
        .sort_by(|one, other| times(other).total_cmp(&times(one)));
    findings.changes = changes::changes(&groups, &shares);
    findings
        .new
        .sort_by(|one, other| other.stolen_s.total_cmp(&one.stolen_s));
    findings
}

/// The hosts that are worse than their twins, in all stolen time or in the time of one kind of culprit: the firmware of
/// one host may take little of all, and many times that of the others. Distances from the twins of all groups are tested
/// together, because a group alone is small.
fn worse(groups: &[&Vec<&FleetHost>], shares: &Shares<'_>) -> Vec<WorseHost> {
    let hosts: Vec<(&FleetHost, &[&FleetHost])> = groups
        .iter()
        .flat_map(|group| group.iter().map(|host| (*host, &group[..])))
        .collect();
    let mut figures = vec![None];
    figures.extend(kinds(&hosts, shares).into_iter().map(Some));
    #[allow(clippy::cast_precision_loss, reason = "far below 2^53 kinds")]
    let alpha = FLEET_ALPHA / figures.len() as f64;
    let mut found: Vec<WorseHost> = Vec::new();
    for kind in figures {
        for worse in worse_in(kind, &hosts, shares, alpha) {
            // What explains all of its time is said once.
            let is_known = found.iter().any(|of| {
                let mut causes = of.causes.iter();
                of.host.host_id == worse.host.host_id
                    && causes.any(|cause| Some(&cause.kind) == worse.kind.as_ref())
            });
            if !is_known {
                found.push(worse);
            }
        }
    }
    found
}

/// The kinds of culprits that most hosts have.
fn kinds<'c>(hosts: &[(&FleetHost, &[&FleetHost])], shares: &Shares<'c>) -> Vec<&'c str> {
    let mut seen: BTreeMap<&'c str, usize> = BTreeMap::new();
    for (host, _) in hosts {
        let rows = shares.rows(host).into_iter().flatten();
        let kinds: BTreeSet<&str> = rows.map(|((kind, _), _)| *kind).collect();
        for kind in kinds {
            *seen.entry(kind).or_default() += 1;
        }
    }
    #[allow(clippy::cast_precision_loss, reason = "far below 2^53 hosts")]
    let is_usual = |count: usize| count as f64 >= MOSTLY * hosts.len() as f64;
    let usual = seen.into_iter().filter(|(_, count)| is_usual(*count));
    usual.map(|(kind, _)| kind).collect()
}

fn worse_in(
    kind: Option<&str>,
    hosts: &[(&FleetHost, &[&FleetHost])],
    shares: &Shares<'_>,
    alpha: f64,
) -> Vec<WorseHost> {
    let share = |host: &FleetHost| match kind {
        None => host.share(),
        Some(kind) => shares.of_kind(host, kind),
    };
    // A host with none counts as the one with least: a floor above the others would narrow their spread.
    let shares_of_all = hosts.iter().map(|(host, _)| share(host));
    let least = shares_of_all.filter(|of| *of > 0.0).fold(1.0, f64::min);
    let position = |host: &FleetHost| share(host).max(least).ln();
    let distances: Vec<f64> = hosts
        .iter()
        .map(|(host, group)| {
            let twins = group.iter().filter(|of| of.host_id != host.host_id);
            distance(position(host), twins.map(|of| position(of)).collect())
        })
        .collect();
    let middle = |of: Vec<f64>| crate::machine::median(of).unwrap_or(0.0);
    let far = outliers(&distances, alpha).into_iter();
    let found = far.filter_map(|at| {
        let (host, group) = hosts[at];
        let twins = || group.iter().filter(|of| of.host_id != host.host_id);
        let twins_share = middle(twins().map(|of| share(of)).collect());
        if share(host) < (LEAST_TIMES * twins_share).max(twins_share + NOTHING) {
            return None;
        }
        let cause = |culprit: (&str, &str), share: f64| Cause {
            kind: culprit.0.to_owned(),
            name: culprit.1.to_owned(),
            share,
            twins_share: middle(twins().map(|of| shares.share(of, culprit)).collect()),
        };
        let rows = shares.rows(host).into_iter().flatten();
        let rows = rows.filter(|((of, _), _)| kind.is_none_or(|kind| *of == kind));
        let mut causes: Vec<Cause> = rows.map(|(of, share)| cause(*of, *share)).collect();
        causes.retain(|of| of.share > LEAST_TIMES * of.twins_share);
        let more = |of: &Cause| of.share - of.twins_share;
        causes.sort_by(|one, other| more(other).total_cmp(&more(one)));
        causes.truncate(MOST_CAUSES);
        Some(WorseHost {
            kind: kind.map(str::to_owned),
            share: share(host),
            twins_share,
            twin_hosts: group.len() as u64 - 1,
            causes,
            host: host.clone(),
        })
    });
    found.collect()
}

/// The distance of a figure from the median of the others, in a unit that does not depend on how many there are: the
/// variance of the median of `n` normal figures is about `pi / 2n` of theirs.
fn distance(figure: f64, others: Vec<f64>) -> f64 {
    #[allow(clippy::cast_precision_loss, reason = "far below 2^53 hosts")]
    let count = others.len() as f64;
    let median = crate::machine::median(others).unwrap_or(figure);
    (figure - median) / (1.0 + std::f64::consts::FRAC_PI_2 / count).sqrt()
}
