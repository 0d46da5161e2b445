//! Periods as a report shows them.

use super::dictionary::TickOf;
use super::gather::Found;
use super::regularity::Regularity;
use jitterscope_model::{CpuId, CulpritKind, Name, Nanos};
use serde::{Deserialize, Deserializer, Serialize};

/// The significant periods of a run's stalls.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
pub struct PeriodSummary {
    /// Series of stalls that were searched: one a culprit and CPU.
    pub searched: usize,
    /// Series that were not, at least: what stole less came after what a report spends on this.
    pub left_out: usize,
    /// Probability of any row where nothing is periodic.
    pub false_alarm: f64,
    /// The most significant first.
    pub rows: Vec<PeriodRow>,
}

/// A name of the dictionary. Spelt out, a reader of the field would have to borrow it from what it reads.
type KnownName = &'static str;

/// A period of one culprit's stalls on one CPU.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
pub struct PeriodRow {
    /// Where.
    pub cpu: CpuId,
    /// What kind of culprit; null for all stalls of a CPU without attribution.
    pub kind: Option<CulpritKind>,
    /// Its name.
    pub name: Option<Name>,
    /// How long.
    pub period_ns: Nanos,
    /// Whether a clock keeps it: `clocked`, `drifting`, or `undecided` where too few follow one another.
    pub regularity: Regularity,
    /// What a Linux machine is known to do at this period.
    #[serde(deserialize_with = "of_dictionary")]
    pub known: Option<KnownName>,
    /// Stalls looked at: the first so many, a burst within a quarter of a millisecond as one.
    pub stalls: u64,
    /// Of them, those in the tenth of the period in which most fall.
    pub in_pulse: u64,
    /// Share of the periods that have such a stall.
    pub hit_fraction: f64,
    /// Decimal logarithm of the probability that stalls without a period show one as clear.
    pub log10_probability: f64,
}

fn of_dictionary<'de, D: Deserializer<'de>>(from: D) -> Result<Option<&'static str>, D::Error> {
    Ok(Option::<String>::deserialize(from)?.and_then(|name| super::dictionary::called(&name)))
}

impl PeriodSummary {
    /// What was found, on such a machine.
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
        rows.sort_by(|a, b| a.log10_probability.total_cmp(&b.log10_probability));
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
    /// On a machine of which nothing is known.
    fn from(found: Found) -> PeriodSummary {
        PeriodSummary::new(found, TickOf::default())
    }
}
