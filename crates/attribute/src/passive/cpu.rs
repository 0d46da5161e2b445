//! One watched CPU: its machine, its waits, and the current stall.

use super::account::Account;
use super::members::Wait;
use super::settings::PassiveSettings;
use super::stall::PassiveStall;
use crate::occupancy::{Machine, Mark};
use crate::windows::passive::{CpuState, Piece};
use jitterscope_model::{CpuId, Culprit, Phase, Subject, ThreadRef, TickRate, Ticks, Verdict};
use std::collections::BTreeMap;

#[derive(Debug)]
pub(super) struct Cpu {
    id: CpuId,
    pub(super) machine: Machine,
    pub(super) mark: Option<Mark>,
    /// The waiting threads, in order of their beginning, including waits of this window that have ended.
    pub(super) waits: Vec<Wait>,
    pub(super) pending: Option<PassiveStall>,
    /// A short time of the victim's own after it: part of the stall if the stall continues afterwards.
    pub(super) bridge: Option<(ThreadRef, Ticks, Ticks)>,
    pub(super) account: Account,
    /// The time of its last record.
    pub(super) last: Ticks,
    /// When it was found to be offline.
    pub(super) gone: Option<Ticks>,
}

impl Cpu {
    pub(super) fn new(id: CpuId, rate: TickRate) -> Cpu {
        let mut machine = Machine::new(rate);
        let mark = Some(machine.open_mark(Ticks(0)));
        Cpu {
            id,
            machine,
            mark,
            waits: Vec::new(),
            pending: None,
            bridge: None,
            account: Account::default(),
            last: Ticks(0),
            gone: None,
        }
    }

    /// Adds the pieces of a window, which directly follow the previous window.
    pub(super) fn take_in(
        &mut self,
        pieces: Vec<Piece>,
        settings: &PassiveSettings,
        finished: &mut Vec<PassiveStall>,
    ) {
        // The time of each turn, without its interruptions.
        let mut turns: BTreeMap<(bool, usize), (Subject, Ticks)> = BTreeMap::new();
        for Piece {
            start,
            end,
            fate,
            turn,
            sums,
        } in pieces
        {
            let length = end.since(start);
            let mut in_turn = |stolen: bool, culprit: &Culprit| {
                let sum = turns
                    .entry((stolen, turn))
                    .or_insert((culprit.subject.clone(), Ticks(0)));
                sum.1 = sum.1 + length;
            };
            let account = &mut self.account;
            match fate {
                CpuState::Stolen {
                    victim,
                    phase,
                    culprit,
                } => {
                    in_turn(true, &culprit);
                    let interrupted = phase == Phase::Interrupted;
                    let sum = if interrupted {
                        &mut account.interrupted
                    } else {
                        &mut account.waiting
                    };
                    *sum = *sum + length;
                    let stall = self.stall_from(start, victim, settings, finished);
                    stall.extend(end, &culprit, phase, sums, settings.rate);
                    continue;
                }
                CpuState::Own(thread) => {
                    let behind = self
                        .pending
                        .as_ref()
                        .is_some_and(|stall| stall.end == start);
                    if behind && length <= settings.join_within {
                        self.bridge = Some((thread, start, end));
                        continue;
                    }
                    account.ran(thread, length);
                }
                CpuState::Beside(culprit) => {
                    in_turn(false, &culprit);
                    account.beside = account.beside + length;
                }
                CpuState::Idle => account.idle = account.idle + length,
                CpuState::Unknown => account.unknown = account.unknown + length,
            }
            self.end_stall(settings.threshold, finished);
        }
        for ((stolen, _), (subject, length)) in turns {
            self.account.had(stolen, &subject, length);
        }
    }

    /// The current stall if it continues at `start`, or else a new one.
    fn stall_from(
        &mut self,
        start: Ticks,
        victim: ThreadRef,
        settings: &PassiveSettings,
        finished: &mut Vec<PassiveStall>,
    ) -> &mut PassiveStall {
        let bridged = self.bridge.is_some_and(|(_, _, until)| until == start);
        if let (Some(stall), Some((_, from, until)), true) =
            (&mut self.pending, self.bridge, bridged)
        {
            self.bridge = None;
            stall.bridge(until, settings.rate);
            let length = until.since(from);
            self.account.interrupted = self.account.interrupted + length;
            self.account
                .had(true, &Subject::verdict(Verdict::BetweenEvents), length);
        }
        if self
            .pending
            .as_ref()
            .is_some_and(|stall| stall.end != start)
        {
            self.end_stall(settings.threshold, finished);
        }
        let id = self.id;
        self.pending
            .get_or_insert_with(|| PassiveStall::new(id, victim, start))
    }

    /// Ends the current stall, if there is one.
    pub(super) fn end_stall(&mut self, threshold: Ticks, finished: &mut Vec<PassiveStall>) {
        if let Some((thread, from, until)) = self.bridge.take() {
            // The stall did not continue: it was the thread's own time.
            self.account.ran(thread, until.since(from));
        }
        let Some(stall) = self.pending.take() else {
            return;
        };
        let account = &mut self.account;
        account.stretches += 1;
        account.longest = account.longest.max(stall.length());
        if stall.length() >= threshold {
            account.stalls += 1;
            finished.push(stall);
        }
    }
}
