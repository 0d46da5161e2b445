//! Kernels and tunings against one another, within hosts that are equal otherwise.

use super::{FLEET_ALPHA, FleetHost, Shares, Twins};
use crate::compare::{
    Comparison, Design, Grain, Hypothesis, Margin, Scale, Verdict, family, middle,
};
use schemars::JsonSchema;
use serde::Serialize;
use std::collections::{BTreeMap, BTreeSet};

/// The fewest hosts on each side of one group of equal hosts.
const FEWEST: usize = 5;
/// With so many groups, each is one pair: hosts of different groups are never compared.
const FEWEST_GROUPS: usize = 6;
/// The fewest hosts on each side of such a group.
const FEWEST_OF_GROUP: usize = 3;
/// The most hosts on each side of one group: more cost time and decide nothing more. Taken evenly.
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
    /// The kernels or the tunings of both sides, and their hosts.
    pub first: String,
    pub second: String,
    pub hosts: [usize; 2],
    /// Groups of hosts that are equal otherwise. With several, each is one pair of the comparison.
    pub groups: usize,
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
/// Hosts of both sides that are equal otherwise.
type Sides<'h> = [Vec<&'h FleetHost>; 2];

/// A comparison to make.
struct Pair<'h> {
    varied: Varied,
    values: [&'h str; 2],
    groups: Vec<Sides<'h>>,
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

fn pairs<'h>(groups: &Groups<'h>, varied: Varied) -> Vec<Pair<'h>> {
    let mut strata: BTreeMap<[&str; 3], BTreeMap<&str, &[&'h FleetHost]>> = BTreeMap::new();
    let mut hosts: BTreeMap<&'h str, usize> = BTreeMap::new();
    for (twins, of) in groups {
        let [value, other] = match varied {
            Varied::Kernel => [&*twins.kernel, &*twins.tuning],
            Varied::Tuning => [&*twins.tuning, &*twins.kernel],
        };
        let stratum = strata.entry([&twins.cpu_model, &twins.machine, other]);
        stratum.or_default().insert(value, of);
        *hosts.entry(value).or_default() += of.len();
    }
    let Some((usual, _)) = hosts.iter().max_by_key(|(_, hosts)| **hosts) else {
        return Vec::new();
    };
    let pair = |value: &'h str| {
        let both = |least: usize| -> Vec<Sides<'h>> {
            let sides = strata.values().filter_map(|of| {
                let sides = [of.get(usual)?, of.get(value)?];
                let is_large = sides.iter().all(|side| side.len() >= least);
                is_large.then(|| sides.map(|side| evenly(side, MOST_HOSTS)))
            });
            sides.collect()
        };
        let mut groups = both(FEWEST_OF_GROUP);
        if groups.len() < FEWEST_GROUPS {
            // Too few for a test that rearranges groups: the largest alone, whose hosts are rearranged.
            let smaller = |of: &Sides<'_>| of.iter().map(Vec::len).min();
            groups = both(FEWEST)
                .into_iter()
                .max_by_key(smaller)
                .into_iter()
                .collect();
        }
        let values = [*usual, value];
        (!groups.is_empty()).then_some(Pair {
            varied,
            values,
            groups,
        })
    };
    let others = hosts.keys().filter(|value| *value != usual);
    others.filter_map(|value| pair(value)).collect()
}

fn compare(pair: &Pair<'_>, shares: &Shares<'_>, alpha: f64) -> FleetChange {
    let all: Sides<'_> = [0, 1].map(|side| {
        let hosts = pair.groups.iter().flat_map(|of| of[side].iter().copied());
        hosts.collect()
    });
    let culprits = largest(&all, shares);
    let design = match pair.groups.len() {
        1 => Design::Unpaired,
        _ => Design::Paired,
    };
    let of = |share: &dyn Fn(&FleetHost) -> f64| {
        let figures = |side: usize| -> Vec<Option<f64>> {
            match design {
                Design::Paired => {
                    let groups = pair.groups.iter();
                    groups
                        .map(|of| Some(usual_share(&of[side], share)))
                        .collect()
                }
                _ => all[side].iter().map(|host| Some(share(host))).collect(),
            }
        };
        Hypothesis {
            first: figures(0),
            second: figures(1),
            margin: Margin::default(),
            seconds: all
                .each_ref()
                .map(|hosts| hosts.iter().map(|host| host.measured_s).sum()),
            grain: Grain::Fine,
        }
    };
    let mut hypotheses = vec![of(&FleetHost::share)];
    for culprit in &culprits {
        hypotheses.push(of(&|host: &FleetHost| shares.share(host, *culprit)));
    }
    let names = std::iter::once(None).chain(culprits.iter().map(Some));
    let figures = names
        .zip(family(design, alpha, &hypotheses))
        .filter(|(_, of)| matches!(of.verdict, Verdict::Better | Verdict::Worse))
        .map(|(culprit, comparison)| ChangedFigure {
            culprit: culprit.map(|(kind, name)| ((*kind).to_owned(), (*name).to_owned())),
            comparison,
        });
    FleetChange {
        varied: pair.varied,
        first: pair.values[0].to_owned(),
        second: pair.values[1].to_owned(),
        hosts: all.each_ref().map(Vec::len),
        groups: pair.groups.len(),
        figures: figures.collect(),
    }
}

/// The share of a group: the geometric mean of its hosts, or the mean if some have none.
fn usual_share(hosts: &[&FleetHost], share: &dyn Fn(&FleetHost) -> f64) -> f64 {
    let shares: Vec<f64> = hosts.iter().map(|host| share(host)).collect();
    middle(Scale::of(shares.iter().copied()), &shares)
}

/// The culprits that take most on either side, and that at least half of its hosts have: a program that runs on one
/// host says nothing about a kernel.
fn largest<'c>(sides: &Sides<'_>, shares: &Shares<'c>) -> Vec<(&'c str, &'c str)> {
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
