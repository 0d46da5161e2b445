//! Adds the kernel functions within a stall, from records of `function_graph`, to the frames of its timeline.

use crate::name_resolver::NameResolver;
use crate::view::TimelineOf;
use jitterscope_model::{
    CallRecord, CpuId, EventKind, KernelAddr, KernelEvent, Nanos, PutInOrder, Stall, TickRate,
    Ticks, TimelineItem, TimelineRow,
};
use std::cmp::Reverse;
use std::collections::BTreeMap;

/// Deeper calls are skipped: the kernel's tracer follows some fifty levels, so it did not record them.
const DEEPEST: i32 = 256;

/// Adds the calls within a stall to its frames, nested by time. `events` and `calls` are those of the measured CPUs, in
/// order of time. They may begin before the stall, which shows the calls that were already running. Without calls the
/// rows stay unchanged.
#[must_use]
pub fn with_calls(
    rows: Vec<TimelineRow>,
    of: &TimelineOf<'_>,
    events: &[&KernelEvent],
    calls: &[CallRecord],
    rate: TickRate,
    resolver: &dyn NameResolver,
) -> Vec<TimelineRow> {
    let stall = of.stall;
    let by_cpu = by_cpu(rows, stall.cpu);
    let several = by_cpu.len() > 1;
    let mut all = Vec::new();
    for (cpu, rows) in by_cpu {
        let found = Stacks::walk(stall, cpu, events, calls);
        if found.is_empty() {
            all.extend(rows);
            continue;
        }
        let row = |call: &Call| TimelineRow {
            cpu: several.then_some(cpu),
            depth: 0,
            start: rate.nanos(call.from.since(stall.start)),
            end: Some(rate.nanos(call.until.since(stall.start))),
            item: TimelineItem::Call {
                function: resolver.function(call.function),
                self_ns: rate.nanos(call.own),
                began_before: call.began_before,
                ended: call.ended,
            },
        };
        let length = rate.nanos(stall.length());
        all.extend(nested(
            rows.into_iter().chain(found.iter().map(row)).collect(),
            length,
        ));
    }
    all
}

/// Adds records without a length to the rows of their CPU, if that is shown, with the frames around each as its depth.
/// Records outside of the stall are left out.
#[must_use]
pub fn with_instants(
    rows: Vec<TimelineRow>,
    stall: &Stall,
    instants: impl IntoIterator<Item = (CpuId, Ticks, TimelineItem)>,
    rate: TickRate,
) -> Vec<TimelineRow> {
    let mut by_cpu = by_cpu(rows, stall.cpu);
    let several = by_cpu.len() > 1;
    for (cpu, time, item) in instants {
        if let Some((_, rows)) = by_cpu.iter_mut().find(|(of, _)| *of == cpu)
            && (stall.start..=stall.end).contains(&time)
        {
            rows.push(TimelineRow {
                cpu: several.then_some(cpu),
                depth: 0,
                start: rate.nanos(time.since(stall.start)),
                end: None,
                item,
            });
        }
    }
    let length = rate.nanos(stall.length());
    let each = by_cpu.into_iter();
    each.flat_map(|(_, rows)| nested(rows, length)).collect()
}

/// The rows of each CPU, in their order; at least those of the stall's CPU.
fn by_cpu(rows: Vec<TimelineRow>, cpu: CpuId) -> Vec<(CpuId, Vec<TimelineRow>)> {
    let mut by_cpu: Vec<(CpuId, Vec<TimelineRow>)> = Vec::new();
    for row in rows {
        let cpu = row.cpu.unwrap_or(cpu);
        match by_cpu.iter_mut().find(|(of, _)| *of == cpu) {
            Some((_, rows)) => rows.push(row),
            None => by_cpu.push((cpu, vec![row])),
        }
    }
    if by_cpu.is_empty() {
        by_cpu.push((cpu, Vec::new()));
    }
    by_cpu
}

/// Sorts the rows, and sets the number of rows around each as its depth.
fn nested(mut rows: Vec<TimelineRow>, stall: Nanos) -> Vec<TimelineRow> {
    let end_of = |row: &TimelineRow| match (row.end, &row.item) {
        (Some(end), _) => end,
        (None, TimelineItem::Frame { .. }) => stall,
        (None, _) => row.start,
    };
    // If times are equal, the outer row stays outside.
    rows.order_by_key(|row| (row.start, Reverse(end_of(row)), row.depth));
    let mut around: Vec<Nanos> = Vec::new();
    for row in &mut rows {
        while around.last().is_some_and(|end| *end <= row.start) {
            around.pop();
        }
        row.depth = around.len();
        let end = end_of(row);
        if end > row.start {
            around.push(end);
        }
    }
    rows
}

/// The part of a function call within a stall.
struct Call {
    function: KernelAddr,
    /// Its depth in its thread's calls.
    depth: i32,
    /// Its first moment on the CPU within the stall.
    from: Ticks,
    /// Its last moment there.
    until: Ticks,
    own: Ticks,
    began_before: bool,
    ended: bool,
}

/// A function call in progress.
struct Open {
    function: KernelAddr,
    depth: i32,
    start: Ticks,
    /// Since when its thread has had the CPU; `None` if it does not have it.
    since: Option<Ticks>,
    /// Start and end of its time on the CPU within the stall.
    shown: Option<(Ticks, Ticks)>,
    /// The length of its time on the CPU.
    on: Ticks,
    /// The part of that time in functions that it called.
    inner: Ticks,
}

impl Open {
    /// Its thread loses the CPU, or the function ends.
    fn leave(&mut self, stall: &Stall, at: Ticks) {
        let Some(since) = self.since.take() else {
            return;
        };
        let (from, until) = (since.max(stall.start), at.min(stall.end));
        if from > until {
            return;
        }
        self.on = self.on + until.since(from);
        self.shown = Some((self.shown.map_or(from, |(first, _)| first), until));
    }
}

/// The calls in progress on one CPU, by thread: a sleeping thread keeps its own.
struct Stacks<'s> {
    stall: &'s Stall,
    stacks: BTreeMap<i32, Vec<Open>>,
    found: Vec<Call>,
}

impl Stacks<'_> {
    fn walk(stall: &Stall, cpu: CpuId, events: &[&KernelEvent], calls: &[CallRecord]) -> Vec<Call> {
        let mut stacks = Stacks {
            stall,
            stacks: BTreeMap::new(),
            found: Vec::new(),
        };
        let here = events
            .iter()
            .filter(|event| event.cpu == cpu && event.time <= stall.end);
        let mut switches = here.filter_map(|event| match &event.kind {
            EventKind::SchedSwitch { prev, next, .. } => Some((event.time, prev.tid, next.tid)),
            _ => None,
        });
        let mut switch = switches.next();
        let shallow = |call: &CallRecord| (0..DEEPEST).contains(&call.depth);
        for call in calls
            .iter()
            .filter(|call| call.cpu == cpu && call.time <= stall.end && shallow(call))
        {
            while let Some((at, prev, next)) = switch.filter(|(at, ..)| *at <= call.time) {
                stacks.switch(at, prev, next);
                switch = switches.next();
            }
            if call.ends {
                stacks.end(call)
            } else {
                stacks.begin(call)
            }
        }
        for (at, prev, next) in switch.into_iter().chain(switches) {
            stacks.switch(at, prev, next);
        }
        // Calls that continue after the stall.
        for tid in stacks.stacks.keys().copied().collect::<Vec<_>>() {
            stacks.close_to(tid, 0, stall.end);
        }
        // Calls that span the whole stall have equal times, and were found innermost first.
        stacks
            .found
            .order_by_key(|call| (call.from, Reverse(call.until), call.depth));
        stacks.found
    }

    fn switch(&mut self, at: Ticks, prev: i32, next: i32) {
        for open in self.stacks.entry(prev).or_default() {
            open.leave(self.stall, at);
        }
        for open in self.stacks.entry(next).or_default() {
            open.since = Some(at);
        }
    }

    fn begin(&mut self, call: &CallRecord) {
        // A call whose exit was lost ends when another begins at its depth.
        let kept = self
            .stacks
            .entry(call.tid)
            .or_default()
            .partition_point(|o| o.depth < call.depth);
        self.close_to(call.tid, kept, call.time);
        self.stacks.entry(call.tid).or_default().push(Open {
            function: call.function,
            depth: call.depth,
            start: call.time,
            since: Some(call.time),
            shown: None,
            on: Ticks(0),
            inner: Ticks(0),
        });
    }

    fn end(&mut self, call: &CallRecord) {
        let stack = self.stacks.entry(call.tid).or_default();
        let place = stack.partition_point(|open| open.depth < call.depth);
        let same = |open: &Open| open.depth == call.depth && open.function == call.function;
        // A call without a recorded entry ends nothing.
        if !stack.get(place).is_some_and(same) {
            return;
        }
        self.close_to(call.tid, place + 1, call.time);
        self.pop(call.tid, call.time, true);
    }

    /// Ends all calls above a depth, without a record.
    fn close_to(&mut self, tid: i32, kept: usize, at: Ticks) {
        while self
            .stacks
            .get(&tid)
            .is_some_and(|stack| stack.len() > kept)
        {
            self.pop(tid, at, false);
        }
    }

    fn pop(&mut self, tid: i32, at: Ticks, ended: bool) {
        let Some(stack) = self.stacks.get_mut(&tid) else {
            return;
        };
        let Some(mut open) = stack.pop() else { return };
        open.leave(self.stall, at);
        if let Some(outer) = stack.last_mut() {
            outer.inner = outer.inner + open.on;
        }
        // A thread without CPU time in the stall has no calls in it.
        let Some((from, until)) = open.shown else {
            return;
        };
        self.found.push(Call {
            function: open.function,
            depth: open.depth,
            from,
            until,
            own: Ticks(open.on.0.saturating_sub(open.inner.0)),
            began_before: open.start < self.stall.start,
            ended: ended && at <= self.stall.end,
        });
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::name_resolver::NoNames;
    use jitterscope_model::{Comm, ExecutionContext, StallId, Subject, TaskRef, ThreadRef};

    fn call(time: u64, tid: i32, function: u64, depth: i32, ends: bool) -> CallRecord {
        CallRecord {
            time: Ticks(time),
            cpu: CpuId(1),
            tid,
            function: KernelAddr(function),
            depth,
            ends,
        }
    }

    fn switch(time: u64, prev: i32, next: i32) -> KernelEvent {
        let task = |tid| TaskRef {
            tid,
            comm: Comm::new("x"),
            prio: 120,
        };
        let kind = EventKind::SchedSwitch {
            prev: task(prev),
            prev_state: 0,
            next: task(next),
        };
        KernelEvent {
            time: Ticks(time),
            cpu: CpuId(1),
            tid: prev,
            context: ExecutionContext::Thread,
            kind,
        }
    }

    /// Adds calls to the rows of a stall from 100 to 200 on CPU 1.
    fn among(
        rows: Vec<TimelineRow>,
        events: &[KernelEvent],
        calls: &[CallRecord],
    ) -> Vec<TimelineRow> {
        let victim = ThreadRef {
            tid: 7,
            comm: Comm::new("probe"),
        };
        let (start, end) = (Ticks(100), Ticks(200));
        let stall = Stall {
            id: StallId(0),
            cpu: CpuId(1),
            victim,
            start,
            end,
        };
        let of = TimelineOf {
            stall: &stall,
            spins: true,
            producer: None,
        };
        let events: Vec<&KernelEvent> = events.iter().collect();
        with_calls(rows, &of, &events, calls, TickRate::NANOSECONDS, &NoNames)
    }

    fn shown(events: &[KernelEvent], calls: &[CallRecord]) -> Vec<String> {
        let line = |row: &TimelineRow| match &row.item {
            TimelineItem::Call {
                function,
                self_ns,
                began_before,
                ended,
            } => {
                let (from, to) = (row.start.0, row.end.unwrap().0);
                let mut text = format!("{} {function} {from}-{to} self {}", row.depth, self_ns.0);
                text += if *began_before { " before" } else { "" };
                text + if *ended { "" } else { " open" }
            }
            other => panic!("{other:?}"),
        };
        among(Vec::new(), events, calls).iter().map(line).collect()
    }

    #[test]
    fn calls_are_nested_with_their_own_times() {
        let calls = [
            call(110, 9, 1, 0, false),
            call(120, 9, 2, 1, false),
            call(130, 9, 3, 2, false),
            call(135, 9, 3, 2, true),
            call(150, 9, 2, 1, true),
            call(160, 9, 4, 1, false),
            call(170, 9, 4, 1, true),
            call(180, 9, 1, 0, true),
        ];
        let expected = [
            "0 0x1 10-80 self 30",
            "1 0x2 20-50 self 25",
            "2 0x3 30-35 self 5",
            "1 0x4 60-70 self 10",
        ];
        assert_eq!(
            shown(&[switch(105, 7, 9), switch(190, 9, 7)], &calls),
            expected
        );
    }

    #[test]
    fn who_sleeps_within_a_call_is_not_charged_for_it() {
        // Thread 9 sleeps within f2 from 130 on, thread 8 runs, and 9 comes back at 160.
        let events = [
            switch(105, 7, 9),
            switch(130, 9, 8),
            switch(160, 8, 9),
            switch(195, 9, 7),
        ];
        let calls = [
            call(110, 9, 1, 0, false),
            call(120, 9, 2, 1, false),
            call(140, 8, 5, 0, false),
            call(150, 8, 5, 0, true),
            call(170, 9, 2, 1, true),
            call(180, 9, 1, 0, true),
        ];
        let found = shown(&events, &calls);
        assert_eq!(
            found,
            [
                "0 0x1 10-80 self 20",
                "1 0x2 20-70 self 20",
                "2 0x5 40-50 self 10"
            ]
        );
        // Off the CPU all the time: not in the stall.
        let parked = [call(50, 9, 1, 0, false)];
        assert_eq!(shown(&[switch(60, 9, 7)], &parked), [""; 0]);
    }

    #[test]
    fn what_lies_across_an_edge_is_cut_there_and_says_so() {
        let calls = [
            call(90, 9, 1, 0, false),
            call(120, 9, 1, 0, true),
            call(190, 9, 2, 0, false),
        ];
        assert_eq!(
            shown(&[], &calls),
            ["0 0x1 0-20 self 20 before", "0 0x2 90-100 self 10 open"]
        );
        // It ends after the stall.
        let late = [call(150, 9, 1, 0, false), call(250, 9, 1, 0, true)];
        assert_eq!(shown(&[], &late), ["0 0x1 50-100 self 50 open"]);
    }

    #[test]
    fn calls_lie_among_the_frames_of_their_own_cpu() {
        let (here, there) = (Some(CpuId(1)), Some(CpuId(2)));
        let row = |cpu, depth, start, end: Option<u64>, item| {
            let (start, end) = (Nanos(start), end.map(Nanos));
            TimelineRow {
                cpu,
                depth,
                start,
                end,
                item,
            }
        };
        let frame = |cpu, depth, start, end| {
            let culprit = Subject::Softirq(1).into();
            let item = TimelineItem::Frame {
                culprit,
                ended: true,
                named_inside: false,
            };
            row(cpu, depth, start, end, item)
        };
        let moment = |cpu, depth, start| row(cpu, depth, start, None, TimelineItem::TickStopped);
        let rows = vec![
            // It continues after the stall.
            frame(here, 0, 5, None),
            frame(here, 1, 20, Some(60)),
            moment(here, 2, 30),
            moment(here, 2, 50),
            frame(here, 1, 70, Some(80)),
            frame(there, 7, 20, Some(60)),
            moment(there, 9, 30),
        ];
        let calls = [
            call(125, 9, 5, 0, false),
            call(150, 9, 5, 0, true),
            call(170, 9, 6, 0, false),
            call(180, 9, 6, 0, true),
        ];
        let shape = |rows: &[TimelineRow]| -> Vec<(u32, usize, u64, bool)> {
            let is_call = |row: &TimelineRow| matches!(row.item, TimelineItem::Call { .. });
            rows.iter()
                .map(|row| (row.cpu.unwrap().0, row.depth, row.start.0, is_call(row)))
                .collect()
        };
        assert_eq!(
            shape(&among(rows.clone(), &[], &calls)),
            [
                (1, 0, 5, false),
                (1, 1, 20, false),
                (1, 2, 25, true),
                (1, 3, 30, false),
                // The call has just ended.
                (1, 2, 50, false),
                // With equal times the outer one stays outside.
                (1, 1, 70, true),
                (1, 2, 70, false),
                (2, 7, 20, false),
                (2, 9, 30, false),
            ]
        );
        assert_eq!(among(rows.clone(), &[], &[]), rows);
        // Rows of a single CPU do not name it; nor do the calls among them.
        let alone = among(vec![frame(None, 0, 20, Some(60))], &[], &calls);
        assert_eq!(
            alone
                .iter()
                .map(|row| (row.cpu, row.depth))
                .collect::<Vec<_>>(),
            [(None, 0), (None, 1), (None, 0)]
        );
    }

    #[test]
    fn what_another_cpu_recorded_neither_calls_nor_switches_here() {
        let elsewhere = |time| CallRecord {
            cpu: CpuId(2),
            ..call(time, 9, 7, 0, time > 130)
        };
        let calls = [
            call(110, 9, 1, 0, false),
            elsewhere(120),
            elsewhere(140),
            call(180, 9, 1, 0, true),
        ];
        let away = KernelEvent {
            cpu: CpuId(2),
            ..switch(150, 9, 7)
        };
        assert_eq!(shown(&[away], &calls), ["0 0x1 10-80 self 70"]);
    }

    #[test]
    fn at_the_very_moment_of_a_switch_or_of_the_end_what_was_recorded_counts() {
        // Thread 9 gets the CPU at 120, and calls at once; its callee ends with the stall.
        let calls = [
            call(90, 9, 1, 0, false),
            call(120, 9, 2, 1, false),
            call(200, 9, 2, 1, true),
        ];
        let events = [
            switch(95, 9, 7),
            switch(120, 7, 9),
            switch(200, 9, 7),
            switch(201, 7, 9),
        ];
        assert_eq!(
            shown(&events, &calls),
            ["0 0x1 20-100 self 0 before open", "1 0x2 20-100 self 80"]
        );
        // A call that ended exactly when the stall began has no length, and one that began exactly then did not begin
        // before.
        let calls = [
            call(80, 9, 1, 0, false),
            call(100, 9, 1, 0, true),
            call(100, 9, 2, 0, false),
        ];
        assert_eq!(
            shown(&[], &calls),
            ["0 0x2 0-100 self 100 open", "1 0x1 0-0 self 0 before"]
        );
    }

    #[test]
    fn calls_that_all_lie_across_a_stall_are_nested_as_they_were_called() {
        let calls = [
            call(70, 9, 1, 0, false),
            call(80, 9, 2, 1, false),
            call(90, 9, 3, 2, false),
        ];
        let ends = [
            call(210, 9, 3, 2, true),
            call(220, 9, 2, 1, true),
            call(230, 9, 1, 0, true),
        ];
        assert_eq!(
            shown(&[], &[calls, ends].concat()),
            [
                "0 0x1 0-100 self 0 before open",
                "1 0x2 0-100 self 0 before open",
                "2 0x3 0-100 self 100 before open",
            ]
        );
    }

    #[test]
    fn depths_that_no_kernel_records_are_passed_over() {
        let mut calls: Vec<CallRecord> = (0..100_000).map(|n| call(110, 9, 5, n, false)).collect();
        calls.extend([
            call(120, 9, 6, -1, false),
            call(130, 9, 6, i32::MAX, false),
            call(140, 9, 5, 255, true),
        ]);
        let found = shown(&[], &calls);
        assert_eq!(found.len(), 256);
        assert_eq!(found[255], "255 0x5 10-40 self 30");
    }

    #[test]
    fn lost_records_end_what_they_must_and_nothing_else() {
        // The end of f2 was lost; f3 begins at its depth. The beginning of f9 was lost.
        let calls = [
            call(110, 9, 1, 0, false),
            call(120, 9, 2, 1, false),
            call(140, 9, 3, 1, false),
            call(145, 9, 9, 2, true),
            call(147, 9, 9, 1, true),
            call(150, 9, 3, 1, true),
            call(160, 9, 1, 0, true),
        ];
        let expected = [
            "0 0x1 10-60 self 20",
            "1 0x2 20-40 self 20 open",
            "1 0x3 40-50 self 10",
        ];
        assert_eq!(shown(&[], &calls), expected);
    }
}
