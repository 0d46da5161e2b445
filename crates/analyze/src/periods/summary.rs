//! Periods as they appear in a report.

use super::dictionary::TickOf;
use super::gather::Found;
use super::regularity::Regularity;
use jitterscope_model::{CpuId, CulpritKind, Name, Nanos, PutInOrder};
use schemars::JsonSchema;
use serde::{Deserialize, Deserializer, Serialize};

/// The significant periods of a run's stalls.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize, JsonSchema)]
pub struct PeriodSummary {
    /// The number of searched series: one for each culprit and CPU.
    pub searched: usize,
    /// The number of series, at least, that were not searched because the effort was used up; they stole less.
    pub left_out: usize,
    /// The probability of any row if nothing is periodic.
    pub false_alarm: f64,
    /// The most significant first.
    pub rows: Vec<PeriodRow>,
}

/// A name of the dictionary, as a type alias: serde would otherwise borrow the field from the input.
type KnownName = &'static str;

/// A period of one culprit's stalls on one CPU.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize, JsonSchema)]
pub struct PeriodRow {
    pub cpu: CpuId,
    /// The kind of the culprit; null for all stalls of a CPU without attribution.
    pub kind: Option<CulpritKind>,
    pub name: Option<Name>,
    pub period_ns: Nanos,
    /// The driver: `clocked`, `drifting`, or `undecided` if there are too few neighbouring stalls.
    pub regularity: Regularity,
    /// The known activity of a Linux machine with this period.
    #[serde(deserialize_with = "of_dictionary")]
    pub known: Option<KnownName>,
    /// The number of examined stalls, up to a limit; a burst within a quarter of a millisecond counts as one.
    pub stalls: u64,
    /// The number of them in the tenth of the period with most of them.
    pub in_pulse: u64,
    /// The share of the periods with such a stall.
    pub hit_fraction: f64,
    /// The decimal logarithm of the probability that stalls without a period show one this clear.
    pub log10_probability: f64,
}

fn of_dictionary<'de, D: Deserializer<'de>>(from: D) -> Result<Option<&'static str>, D::Error> {
    Ok(Option::<String>::deserialize(from)?.and_then(|name| super::dictionary::called(&name)))
}

impl PeriodSummary {
    /// The result of a search, for this machine.
    #[must_use]
    pub fn new(found: Found, of: TickOf) -> PeriodSummary {
        let mut rows: Vec<PeriodRow> = found
            .groups
            .into_iter()
            .flat_map(|of| {
                of.periods
                    .into_iter()
                    .map(move |period| (of.group.clone(), period))
            })
            .map(|(group, period)| {
                let (kind, name) = group.culprit.unzip();
                PeriodRow {
                    cpu: group.cpu,
                    kind,
                    name,
                    period_ns: period.period,
                    regularity: period.regularity,
                    known: period.known.and_then(|known| known.name(kind, of)),
                    stalls: period.events,
                    in_pulse: period.in_pulse,
                    hit_fraction: period.hit,
                    log10_probability: period.ln_probability / std::f64::consts::LN_10,
                }
            })
            .collect();
        rows.order_by(|a, b| a.log10_probability.total_cmp(&b.log10_probability));
        let (searched, left_out) = (found.searched, found.left_out);
        PeriodSummary {
            searched,
            left_out,
            false_alarm: super::FALSE_ALARM,
            rows,
        }
    }
}

impl From<Found> for PeriodSummary {
    /// The result for an unknown machine.
    fn from(found: Found) -> PeriodSummary {
        PeriodSummary::new(found, TickOf::default())
    }
}
