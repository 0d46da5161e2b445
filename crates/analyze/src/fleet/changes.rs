//! Kernels and tunings against one another, within hosts that are equal otherwise.

use super::{FLEET_ALPHA, FleetHost, Shares, Twins};
use crate::compare::{Comparison, Design, Grain, Hypothesis, Margin, Verdict, family};
use schemars::JsonSchema;
use serde::Serialize;
use std::collections::{BTreeMap, BTreeSet};

/// The fewest hosts on each side.
const FEWEST: usize = 5;
/// The most hosts on each side: more cost time and decide nothing more. Taken evenly.
const MOST_HOSTS: usize = 100;
/// The largest culprits that are compared besides the total.
const MOST_CULPRITS: usize = 20;

/// What differs between two groups of hosts.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, JsonSchema)]
#[serde(rename_all = "snake_case")]
pub enum Varied {
    Kernel,
    Tuning,
}

/// What another kernel or tuning changes.
#[derive(Clone, Debug, PartialEq, Serialize, JsonSchema)]
pub struct FleetChange {
    pub varied: Varied,
    /// The hosts that are compared: `kernel` and `tuning` are those of the first side.
    pub first: Twins,
    /// The kernel or the tuning of the second side.
    pub second: String,
    /// Hosts of both sides.
    pub hosts: [usize; 2],
    /// Figures that are better or worse, the total first.
    pub figures: Vec<ChangedFigure>,
}

/// A figure that changes.
#[derive(Clone, Debug, PartialEq, Serialize, JsonSchema)]
pub struct ChangedFigure {
    /// Kind and name of the culprit; `None` for all stolen time.
    pub culprit: Option<(String, String)>,
    /// Of the shares of measured time.
    pub comparison: Comparison,
}

type Groups<'h> = BTreeMap<&'h Twins, Vec<&'h FleetHost>>;

/// A comparison to make.
struct Pair<'h, 'g> {
    varied: Varied,
    twins: [&'h Twins; 2],
    hosts: [&'g [&'h FleetHost]; 2],
}

/// Compares the kernel of most hosts with each other kernel, and the same for tunings. Their errors add up to
/// [`FLEET_ALPHA`] at most.
pub(super) fn changes(groups: &Groups<'_>, shares: &Shares<'_>) -> Vec<FleetChange> {
    let mut pairs = pairs(groups, Varied::Kernel);
    pairs.extend(self::pairs(groups, Varied::Tuning));
    #[allow(clippy::cast_precision_loss, reason = "far below 2^53 pairs")]
    let alpha = FLEET_ALPHA / pairs.len().max(1) as f64;
    let compared = pairs.iter().map(|pair| compare(pair, shares, alpha));
    let mut changes: Vec<FleetChange> = compared
        .filter(|change| !change.figures.is_empty())
        .collect();
    let size = |of: &FleetChange| {
        let figures = of.figures.iter();
        let sizes = figures.map(|of| of.comparison.change.unwrap_or(0.0).abs());
        sizes.fold(0.0, f64::max)
    };
    changes.sort_by(|one, other| size(other).total_cmp(&size(one)));
    changes
}

fn pairs<'h, 'g>(groups: &'g Groups<'h>, varied: Varied) -> Vec<Pair<'h, 'g>> {
    let mut equal: BTreeMap<(&str, &str, &str), Vec<(&'h Twins, &'g [&'h FleetHost])>> =
        BTreeMap::new();
    for (twins, hosts) in groups.iter().filter(|(_, hosts)| hosts.len() >= FEWEST) {
        let other = match varied {
            Varied::Kernel => &twins.tuning,
            Varied::Tuning => &twins.kernel,
        };
        let key = (&*twins.cpu_model, &*twins.machine, &**other);
        equal.entry(key).or_default().push((*twins, hosts));
    }
    let mut pairs = Vec::new();
    for mut sides in equal.into_values() {
        sides.sort_by_key(|(_, hosts)| std::cmp::Reverse(hosts.len()));
        let (first, others) = match sides.split_first() {
            Some(split) => split,
            None => continue,
        };
        pairs.extend(others.iter().map(|other| Pair {
            varied,
            twins: [first.0, other.0],
            hosts: [first.1, other.1],
        }));
    }
    pairs
}

fn compare(pair: &Pair<'_, '_>, shares: &Shares<'_>, alpha: f64) -> FleetChange {
    let sides = pair.hosts.map(|hosts| evenly(hosts, MOST_HOSTS));
    let culprits = largest(&sides, shares);
    let of = |share: &dyn Fn(&FleetHost) -> f64, margin: Margin| {
        let [first, second] = sides
            .each_ref()
            .map(|hosts| hosts.iter().map(|host| Some(share(host))).collect());
        let seconds = sides
            .each_ref()
            .map(|hosts| hosts.iter().map(|host| host.measured_s).sum());
        Hypothesis {
            first,
            second,
            margin,
            seconds,
            grain: Grain::Fine,
        }
    };
    let mut hypotheses = vec![of(&FleetHost::share, Margin::default())];
    for culprit in &culprits {
        let share = |host: &FleetHost| shares.share(host, *culprit);
        hypotheses.push(of(&share, Margin::default()));
    }
    let names = std::iter::once(None).chain(culprits.iter().map(Some));
    let figures = names
        .zip(family(Design::Unpaired, alpha, &hypotheses))
        .filter(|(_, of)| matches!(of.verdict, Verdict::Better | Verdict::Worse))
        .map(|(culprit, comparison)| ChangedFigure {
            culprit: culprit.map(|(kind, name)| ((*kind).to_owned(), (*name).to_owned())),
            comparison,
        });
    FleetChange {
        varied: pair.varied,
        first: pair.twins[0].clone(),
        second: match pair.varied {
            Varied::Kernel => pair.twins[1].kernel.clone(),
            Varied::Tuning => pair.twins[1].tuning.clone(),
        },
        hosts: pair.hosts.map(<[_]>::len),
        figures: figures.collect(),
    }
}

/// The culprits that take most on either side, and that at least half of its hosts have: a program that runs on one
/// host says nothing about a kernel.
fn largest<'c>(sides: &[Vec<&FleetHost>; 2], shares: &Shares<'c>) -> Vec<(&'c str, &'c str)> {
    let mut sums: BTreeMap<(&str, &str), f64> = BTreeMap::new();
    for hosts in sides {
        let mut seen: BTreeMap<(&str, &str), (usize, f64)> = BTreeMap::new();
        for (culprit, share) in hosts.iter().filter_map(|host| shares.rows(host)).flatten() {
            let sum = seen.entry(*culprit).or_default();
            (sum.0, sum.1) = (sum.0 + 1, sum.1 + share);
        }
        for (culprit, (count, sum)) in seen {
            if 2 * count >= hosts.len() && culprit.1 != "(others)" {
                let of = sums.entry(culprit).or_default();
                #[allow(clippy::cast_precision_loss, reason = "far below 2^53 hosts")]
                let mean = sum / hosts.len() as f64;
                *of = of.max(mean);
            }
        }
    }
    let mut by_size: Vec<_> = sums.into_iter().collect();
    by_size.sort_by(|one, other| other.1.total_cmp(&one.1));
    let largest: BTreeSet<_> = by_size
        .into_iter()
        .take(MOST_CULPRITS)
        .map(|of| of.0)
        .collect();
    largest.into_iter().collect()
}

/// At most so many of them, at equal distances.
fn evenly<'h>(hosts: &[&'h FleetHost], most: usize) -> Vec<&'h FleetHost> {
    let count = hosts.len().min(most);
    (0..count).map(|n| hosts[n * hosts.len() / count]).collect()
}
