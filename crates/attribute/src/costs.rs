//! The entry and exit costs of the kernel that records do not show, measured in the run itself.
//!
//! A tracepoint fires some instructions after the kernel entry and before the kernel exit, so the records of a stall
//! never fill it completely. The smallest edge of each class so far is an upper bound of that cost: no edge is granted
//! more than this.

use crate::occupancy::Beside;
use jitterscope_model::{EdgeCostRow, Ticks};

/// The classes of edge: its position, and the record beside it.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
pub enum Edge {
    /// Before a first event that is an interrupt's entry.
    LeadInterrupt,
    /// Before a first event that is `sched_switch`.
    LeadSwitch,
    /// Before any other first event.
    LeadOther,
    /// Before a `sched_switch` in the middle.
    HoleSwitch,
    /// Before a softirq in the middle.
    HoleSoftirq,
    /// Before another event in the middle.
    HoleOther,
    /// After a last event that is an interrupt's exit.
    TrailInterrupt,
    /// After a last event that is `sched_switch`.
    TrailSwitch,
    /// After any other last event.
    TrailOther,
}

impl Edge {
    const ALL: [Edge; Edge::TrailOther as usize + 1] = [
        Edge::LeadInterrupt,
        Edge::LeadSwitch,
        Edge::LeadOther,
        Edge::HoleSwitch,
        Edge::HoleSoftirq,
        Edge::HoleOther,
        Edge::TrailInterrupt,
        Edge::TrailSwitch,
        Edge::TrailOther,
    ];

    /// Its name in stored runs.
    #[must_use]
    pub fn as_str(self) -> &'static str {
        match self {
            Edge::LeadInterrupt => "lead_interrupt",
            Edge::LeadSwitch => "lead_switch",
            Edge::LeadOther => "lead_other",
            Edge::HoleSwitch => "hole_switch",
            Edge::HoleSoftirq => "hole_softirq",
            Edge::HoleOther => "hole_other",
            Edge::TrailInterrupt => "trail_interrupt",
            Edge::TrailSwitch => "trail_switch",
            Edge::TrailOther => "trail_other",
        }
    }

    pub(crate) fn lead(first: Beside) -> Edge {
        match first {
            Beside::InterruptEntry => Edge::LeadInterrupt,
            Beside::Switch => Edge::LeadSwitch,
            _ => Edge::LeadOther,
        }
    }

    pub(crate) fn hole(next: Beside) -> Edge {
        match next {
            Beside::Switch => Edge::HoleSwitch,
            Beside::SoftirqEntry => Edge::HoleSoftirq,
            _ => Edge::HoleOther,
        }
    }

    pub(crate) fn trail(last: Beside) -> Edge {
        match last {
            Beside::InterruptExit => Edge::TrailInterrupt,
            Beside::Switch => Edge::TrailSwitch,
            _ => Edge::TrailOther,
        }
    }
}

/// The cost of one class of edge.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct EdgeCost {
    /// The smallest edge; granted once there are [`EdgeCosts::ENOUGH`] samples.
    pub smallest: Ticks,
    /// The number of edges.
    pub samples: u64,
}

/// Costs of all classes, updated with each stall.
#[derive(Clone, Debug, Default)]
pub struct EdgeCosts {
    costs: [EdgeCost; Edge::TrailOther as usize + 1],
}

impl EdgeCosts {
    /// Required samples of a class before its edges are granted anything: a single long edge must not set the cost.
    pub const ENOUGH: u64 = 8;

    pub fn learn(&mut self, edge: Edge, length: Ticks) {
        let cost = &mut self.costs[edge as usize];
        cost.smallest = if cost.samples == 0 {
            length
        } else {
            cost.smallest.min(length)
        };
        cost.samples += 1;
    }

    /// The cost of a class.
    #[must_use]
    pub fn get(&self, edge: Edge) -> EdgeCost {
        self.costs[edge as usize]
    }

    /// All classes with samples, by name, for storing with a run.
    #[must_use]
    pub fn to_rows(&self) -> Vec<EdgeCostRow> {
        let seen = |edge: &Edge| self.get(*edge).samples > 0;
        let row = |edge: Edge| {
            let EdgeCost { smallest, samples } = self.get(edge);
            EdgeCostRow {
                edge: edge.as_str().into(),
                smallest_ticks: smallest,
                samples,
            }
        };
        Edge::ALL.into_iter().filter(seen).map(row).collect()
    }

    /// The stored costs of a run. Skips classes that this version does not know.
    #[must_use]
    pub fn from_rows(rows: &[EdgeCostRow]) -> EdgeCosts {
        let mut costs = EdgeCosts::default();
        for row in rows {
            if let Some(edge) = Edge::ALL.into_iter().find(|edge| edge.as_str() == row.edge) {
                costs.costs[edge as usize] = EdgeCost {
                    smallest: row.smallest_ticks,
                    samples: row.samples,
                };
            }
        }
        costs
    }

    /// How much of an edge of this class and length counts as its neighbour's cost.
    #[must_use]
    pub fn grant(&self, edge: Edge, length: Ticks) -> Ticks {
        let cost = self.get(edge);
        if cost.samples >= Self::ENOUGH {
            length.min(cost.smallest)
        } else {
            Ticks(0)
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn edge_costs_need_enough_samples_and_grant_the_smallest() {
        let mut costs = EdgeCosts::default();
        for length in [900, 700, 5000, 800, 950, 1000, 880] {
            costs.learn(Edge::LeadInterrupt, Ticks(length));
            assert_eq!(costs.grant(Edge::LeadInterrupt, Ticks(10_000)), Ticks(0));
        }
        costs.learn(Edge::LeadInterrupt, Ticks(2000));
        assert_eq!(costs.grant(Edge::LeadInterrupt, Ticks(10_000)), Ticks(700));
        assert_eq!(costs.grant(Edge::LeadInterrupt, Ticks(30)), Ticks(30));
        assert_eq!(costs.grant(Edge::LeadSwitch, Ticks(30)), Ticks(0));
        let kept = EdgeCosts::from_rows(&costs.to_rows());
        assert_eq!(
            kept.get(Edge::LeadInterrupt),
            costs.get(Edge::LeadInterrupt)
        );
        assert_eq!(kept.to_rows().len(), 1);
    }

    /// Stored runs use these names.
    #[test]
    fn each_class_has_its_name_and_is_read_again_under_it() {
        let names = [
            (Edge::LeadInterrupt, "lead_interrupt"),
            (Edge::LeadSwitch, "lead_switch"),
            (Edge::LeadOther, "lead_other"),
            (Edge::HoleSwitch, "hole_switch"),
            (Edge::HoleSoftirq, "hole_softirq"),
            (Edge::HoleOther, "hole_other"),
            (Edge::TrailInterrupt, "trail_interrupt"),
            (Edge::TrailSwitch, "trail_switch"),
            (Edge::TrailOther, "trail_other"),
        ];
        let mut costs = EdgeCosts::default();
        assert_eq!(costs.to_rows(), []);
        for (n, (edge, _)) in (1..).zip(names) {
            (0..n).for_each(|_| costs.learn(edge, Ticks(100 * n)));
        }
        let mut rows = costs.to_rows();
        let wanted = (1..).zip(names).map(|(n, (_, name))| EdgeCostRow {
            edge: name.into(),
            smallest_ticks: Ticks(100 * n),
            samples: n,
        });
        assert_eq!(rows, wanted.collect::<Vec<_>>());
        // A class of another version.
        rows.push(EdgeCostRow {
            edge: "lead_unheard_of".into(),
            smallest_ticks: Ticks(1),
            samples: 9,
        });
        let kept = EdgeCosts::from_rows(&rows);
        names
            .iter()
            .for_each(|(edge, _)| assert_eq!(kept.get(*edge), costs.get(*edge)));
    }

    #[test]
    fn an_edge_is_of_the_class_of_the_record_beside_it() {
        for (beside, lead, hole, trail) in [
            (
                Beside::Switch,
                Edge::LeadSwitch,
                Edge::HoleSwitch,
                Edge::TrailSwitch,
            ),
            (
                Beside::InterruptEntry,
                Edge::LeadInterrupt,
                Edge::HoleOther,
                Edge::TrailOther,
            ),
            (
                Beside::SoftirqEntry,
                Edge::LeadOther,
                Edge::HoleSoftirq,
                Edge::TrailOther,
            ),
            (
                Beside::InterruptExit,
                Edge::LeadOther,
                Edge::HoleOther,
                Edge::TrailInterrupt,
            ),
            (
                Beside::Other,
                Edge::LeadOther,
                Edge::HoleOther,
                Edge::TrailOther,
            ),
        ] {
            assert_eq!(
                (Edge::lead(beside), Edge::hole(beside), Edge::trail(beside)),
                (lead, hole, trail)
            );
        }
    }
}
