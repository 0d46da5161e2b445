//! Owned copies of rows on their way to another thread: a sink receives borrowed rows.

use hdrhistogram::Histogram;
use jitterscope_model::{
    AttributedStall, CpuId, DrainTurn, IdentityRead, IntervalRow, KernelAddr, MessageTimesRow,
    Name, NameRead, Part, RawPage, Row, Ticks, TraceRole,
};

/// Estimated size in bytes of an empty turn, and of each name in a turn.
const OF_TURN: usize = 512;
const OF_NAME: usize = 32;

/// Rows in order. Pages and stalls lie in lists that are reused, so a load that was filled before allocates no new
/// memory for them.
#[derive(Default)]
pub(super) struct Load {
    pieces: Vec<Piece>,
    stalls: Vec<AttributedStall>,
    pages: Vec<u8>,
    bytes: usize,
}

enum Piece {
    /// The next `n` stalls.
    Stalls(usize),
    /// The next bytes of the page list.
    Page {
        role: TraceRole,
        cpu: CpuId,
        first: Ticks,
        last: Ticks,
        length: usize,
    },
    Interval(IntervalRow, Box<Histogram<u64>>),
    Whole(String, (Ticks, Ticks), Box<Histogram<u64>>),
    Turn(Box<DrainTurn>),
    Context(Vec<u8>),
}

impl Load {
    pub(super) fn rows(&mut self, batch: &[Row<'_>]) {
        for row in batch {
            match *row {
                Row::Stall(stall, attribution) => {
                    let stall = (*stall, attribution.cloned());
                    self.count(std::slice::from_ref(&stall));
                    self.stalls.push(stall);
                }
                Row::Interval(row, lengths) => {
                    self.bytes += of_histogram(lengths);
                    self.pieces
                        .push(Piece::Interval(*row, Box::new(lengths.clone())));
                }
                Row::Whole(tag, time, lengths) => {
                    self.bytes += tag.len() + of_histogram(lengths);
                    self.pieces.push(Piece::Whole(
                        tag.to_owned(),
                        time,
                        Box::new(lengths.clone()),
                    ));
                }
                Row::Page(RawPage {
                    role,
                    cpu,
                    first,
                    last,
                    bytes,
                }) => {
                    self.bytes += size_of::<Piece>() + bytes.len();
                    self.pages.extend_from_slice(bytes);
                    self.pieces.push(Piece::Page {
                        role,
                        cpu,
                        first,
                        last,
                        length: bytes.len(),
                    });
                }
                Row::Turn(turn) => {
                    self.bytes += of_turn(turn);
                    self.pieces.push(Piece::Turn(Box::new(turn.clone())));
                }
                Row::Context(json) => {
                    self.bytes += size_of::<Piece>() + json.len();
                    self.pieces.push(Piece::Context(json.to_vec()));
                }
            }
        }
    }

    /// Moves all stalls out of the list and leaves it empty.
    pub(super) fn stalls(&mut self, stalls: &mut Vec<AttributedStall>) {
        self.count(stalls);
        self.stalls.append(stalls);
    }

    fn count(&mut self, stalls: &[AttributedStall]) {
        self.bytes += stalls.iter().map(of_stall).sum::<usize>();
        match self.pieces.last_mut() {
            Some(Piece::Stalls(count)) => *count += stalls.len(),
            _ => self.pieces.push(Piece::Stalls(stalls.len())),
        }
    }

    /// Estimated memory of the rows, bytes.
    pub(super) fn bytes(&self) -> usize {
        self.bytes
    }

    pub(super) fn lend(&self) -> Vec<Row<'_>> {
        let mut rows = Vec::with_capacity(self.pieces.len() + self.stalls.len());
        let (mut stalls, mut pages) = (self.stalls.iter(), &*self.pages);
        for piece in &self.pieces {
            match piece {
                Piece::Stalls(count) => {
                    let next = stalls.by_ref().take(*count);
                    rows.extend(next.map(|(stall, own)| Row::Stall(stall, own.as_ref())));
                }
                Piece::Page {
                    role,
                    cpu,
                    first,
                    last,
                    length,
                } => {
                    let (bytes, others) = pages.split_at(*length);
                    pages = others;
                    let (role, cpu, first, last) = (*role, *cpu, *first, *last);
                    rows.push(Row::Page(RawPage {
                        role,
                        cpu,
                        first,
                        last,
                        bytes,
                    }));
                }
                Piece::Interval(row, lengths) => rows.push(Row::Interval(row, lengths)),
                Piece::Whole(tag, time, lengths) => rows.push(Row::Whole(tag, *time, lengths)),
                Piece::Turn(turn) => rows.push(Row::Turn(turn)),
                Piece::Context(json) => rows.push(Row::Context(json)),
            }
        }
        rows
    }

    /// Clears the load; the lists keep their memory.
    pub(super) fn clear(&mut self) {
        self.pieces.clear();
        self.stalls.clear();
        self.pages.clear();
        self.bytes = 0;
    }
}

fn of_stall((_, attribution): &AttributedStall) -> usize {
    let parts = attribution
        .as_ref()
        .map_or(0, |attribution| attribution.parts.capacity());
    size_of::<AttributedStall>() + parts * size_of::<Part>()
}

fn of_histogram(lengths: &Histogram<u64>) -> usize {
    size_of::<Piece>() + lengths.distinct_values() * size_of::<u64>()
}

/// Estimated size of a turn, bytes; the counted parts dominate with many threads.
fn of_turn(turn: &DrainTurn) -> usize {
    let gaps: usize = turn.warm_up.iter().map(|cpu| cpu.gaps.len()).sum();
    OF_TURN
        + turn.names.len() * (size_of::<NameRead>() + OF_NAME)
        + turn.asked.len() * (size_of::<(i32, String)>() + OF_NAME)
        + turn.functions.len() * (size_of::<(KernelAddr, Name)>() + OF_NAME)
        + turn.identities.len() * (size_of::<IdentityRead>() + 3 * OF_NAME)
        + turn.messages.len() * size_of::<MessageTimesRow>()
        + gaps * size_of::<(Ticks, Ticks)>()
}

#[cfg(test)]
mod tests {
    use super::*;
    use jitterscope_model::{Attribution, Comm, Nanos, Stall, StallId, ThreadRef};

    fn stall(id: u64) -> Stall {
        let victim = ThreadRef {
            tid: 1,
            comm: Comm::new("x"),
        };
        Stall {
            id: StallId(id),
            cpu: CpuId(1),
            victim,
            start: Ticks(id),
            end: Ticks(id + 1),
        }
    }

    fn page(first: u64, bytes: &[u8]) -> Row<'_> {
        let (role, cpu, first) = (TraceRole::Local, CpuId(1), Ticks(first));
        Row::Page(RawPage {
            role,
            cpu,
            first,
            last: first,
            bytes,
        })
    }

    #[test]
    fn what_is_lent_on_is_what_was_lent_in_its_order() {
        let mut lengths = Histogram::new(3).unwrap();
        lengths.record(77).unwrap();
        let interval = IntervalRow {
            cpu: CpuId(1),
            start: Ticks(1),
            end: Ticks(2),
            count: 1,
            max: Nanos(77),
            stolen: Nanos(77),
        };
        let turn = DrainTurn {
            number: 7,
            asked: vec![(1, "name".into())],
            ..DrainTurn::default()
        };
        let own = Attribution {
            stall: StallId(2),
            parts: Vec::new(),
        };
        let (first, second, third) = (stall(1), stall(2), stall(3));
        let rows = [
            page(1, &[1; 4096]),
            page(2, b""),
            Row::Stall(&first, None),
            Row::Stall(&second, Some(&own)),
            page(3, &[3; 100]),
            Row::Stall(&third, None),
            Row::Interval(&interval, &lengths),
            Row::Turn(&turn),
            Row::Context(b"{}"),
            Row::Whole("whole", (Ticks(1), Ticks(9)), &lengths),
        ];
        let mut load = Load::default();
        for _ in 0..2 {
            load.rows(&rows);
            assert_eq!(format!("{:?}", load.lend()), format!("{rows:?}"));
            assert!(
                load.bytes() > 4096 + 100 + 2 * 8 * lengths.distinct_values(),
                "{}",
                load.bytes()
            );
            load.clear();
            assert!(load.lend().is_empty() && load.bytes() == 0);
        }
        let mut stalls = vec![(first, None), (second, Some(own.clone()))];
        load.stalls(&mut stalls);
        assert!(stalls.is_empty());
        let rows = [Row::Stall(&first, None), Row::Stall(&second, Some(&own))];
        assert_eq!(format!("{:?}", load.lend()), format!("{rows:?}"));
    }

    #[test]
    fn a_load_that_was_filled_before_takes_no_memory_for_pages_and_stalls() {
        let mut load = Load::default();
        let mut stalls = Vec::with_capacity(64);
        let mut fill = |load: &mut Load| {
            for n in 0..64 {
                load.rows(&[page(n, &[7; 4096])]);
                stalls.push((stall(n), None));
            }
            load.stalls(&mut stalls);
            load.clear();
        };
        fill(&mut load);
        let allocated = allocation_counter::measure(|| fill(&mut load));
        assert_eq!(allocated.count_total, 0);
    }
}
