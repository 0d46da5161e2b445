//! The only knob whose undoing takes time, on the machine that runs the tests: queued work keeps its delay, and the
//! results of apply and rollback say for how long.

use crate::support;

use jitterscope_model::Nanos;
use jitterscope_platform::Machine;
use jitterscope_source::Tracefs;
use jitterscope_testing::{is_root, turn};
use jitterscope_tune::{
    Goal, HostWriter, InForceBy, LONGEST_UNDOING, OnDrift, OnRefusal, Select, StateDir, apply,
    online_cpus, plan, rollback,
};
use std::collections::BTreeMap;
use std::fs;
use std::path::PathBuf;
use std::time::{Duration, Instant};
use support::{folder, who};

const INTERVAL: &str = "/proc/sys/vm/stat_interval";
const WORK: &str = "vmstat_update";

/// Counts the work item per CPU, in its own tracing instance.
struct Watch {
    instance: PathBuf,
}

impl Watch {
    fn start(tracefs: &Tracefs) -> Option<Watch> {
        let instance = PathBuf::from(tracefs.root())
            .join(format!("instances/js-test-vmstat-{}", std::process::id()));
        fs::create_dir(&instance).ok()?;
        let watch = Watch { instance };
        let symbols = fs::read_to_string("/proc/kallsyms").ok()?;
        let address = symbols
            .lines()
            .find(|line| line.ends_with(&format!(" {WORK}")))?
            .split(' ')
            .next()?;
        let event = watch
            .instance
            .join("events/workqueue/workqueue_execute_start");
        fs::write(event.join("filter"), format!("function == 0x{address}")).ok()?;
        fs::write(event.join("enable"), "1").ok()?;
        Some(watch)
    }

    /// The counts since the last call, per CPU.
    fn seen(&self) -> BTreeMap<u32, u64> {
        let trace = self.instance.join("trace");
        let text = fs::read_to_string(&trace).unwrap();
        fs::write(&trace, "").unwrap();
        let mut seen = BTreeMap::new();
        for line in text.lines().filter(|line| line.contains(WORK)) {
            let cpu = line
                .split_once('[')
                .and_then(|(_, rest)| rest.split_once(']'))
                .unwrap()
                .0;
            *seen.entry(cpu.parse().unwrap()).or_insert(0) += 1;
        }
        seen
    }

    fn seen_within(&self, time: Duration) -> BTreeMap<u32, u64> {
        self.seen();
        std::thread::sleep(time);
        self.seen()
    }
}

impl Drop for Watch {
    fn drop(&mut self) {
        let _ = fs::remove_dir(&self.instance);
    }
}

struct PutBack<'a>(&'a Machine, &'a StateDir);

impl Drop for PutBack<'_> {
    fn drop(&mut self) {
        let _ = rollback(&mut HostWriter::new(self.0), self.1, &mut |_| {
            OnDrift::Restore
        });
    }
}

/// The time that a result states, which must be shown by this work item.
fn within(by: Option<&InForceBy>) -> Duration {
    match by {
        Some(InForceBy::AtLatest {
            within_ns,
            shown_by,
            ..
        }) => {
            assert_eq!(shown_by, WORK);
            assert!(
                *within_ns > Nanos::ZERO && *within_ns <= LONGEST_UNDOING,
                "{within_ns}"
            );
            Duration::from_nanos(within_ns.0)
        }
        other => panic!("{other:?}"),
    }
}

#[test]
fn memory_statistics_come_back_within_the_time_that_the_rollback_says() {
    let _turn = turn();
    let machine = Machine::host();
    if !is_root() {
        jitterscope_testing::skip(&format!("only root sets {INTERVAL}"));
        return;
    }
    let tracefs = match Tracefs::open(&machine) {
        Ok(tracefs) => tracefs,
        Err(error) => {
            jitterscope_testing::skip(&format!("no kernel events here: {error}"));
            return;
        }
    };
    let original = machine.read_trimmed(INTERVAL).unwrap();
    let online = online_cpus(&machine).unwrap();
    if online.len() < 2 || original != "1" {
        jitterscope_testing::skip(&format!(
            "needs two CPUs, and {INTERVAL} as the kernel has it"
        ));
        return;
    }
    let Some(watch) = Watch::start(&tracefs) else {
        jitterscope_testing::skip(&format!(
            "no tracing instance is available, or the kernel does not show where {WORK} is"
        ));
        return;
    };
    let usual = watch.seen_within(Duration::from_secs(5));
    if usual.values().all(|count| *count < 3) {
        jitterscope_testing::skip(&format!(
            "the kernel has no statistics to fold here: {usual:?}"
        ));
        return;
    }
    let dir = folder();
    let state = StateDir::at(&dir.path().join("state"));
    let goal = Goal::to_apply(&machine, online.last().into_iter().collect()).unwrap();
    let plan = plan(
        &machine,
        &goal,
        &Select::Only(vec!["vmstat".into()]),
        &[],
        false,
    )
    .unwrap();
    let put_back = PutBack(&machine, &state);
    let applied = apply(
        &mut HostWriter::new(&machine),
        &state,
        &plan,
        who(),
        OnRefusal::GoOn,
    )
    .unwrap()
    .applied;
    let [applied] = applied.as_slice() else {
        panic!("{applied:?}")
    };
    std::thread::sleep(within(applied.in_force_by.as_ref()));
    let calm = watch.seen_within(Duration::from_secs(5));
    assert!(
        calm.values().all(|count| *count <= 1),
        "it is in force, and yet: {calm:?}; before: {usual:?}"
    );

    let rolled = rollback(&mut HostWriter::new(&machine), &state, &mut |_| {
        OnDrift::Later
    })
    .unwrap();
    let undone = Instant::now();
    assert_eq!(
        machine.read_trimmed(INTERVAL).unwrap(),
        original,
        "it reads back at once"
    );
    let longest = within(rolled.steps[0].in_force_by.as_ref());
    // A work item that was due anyway does not show the old pace: two in three seconds do.
    let mut missing: Vec<u32> = usual
        .iter()
        .filter(|(_, n)| **n >= 3)
        .map(|(cpu, _)| *cpu)
        .collect();
    let mut latest = Duration::ZERO;
    while !missing.is_empty() && undone.elapsed() < longest {
        let seen = watch.seen_within(Duration::from_secs(3));
        missing.retain(|cpu| seen.get(cpu).is_none_or(|count| *count < 2));
        latest = undone.elapsed();
    }
    drop(put_back);
    assert!(
        missing.is_empty(),
        "{WORK} did not come back to CPUs {missing:?} within {longest:?}"
    );
    eprintln!("the old pace was back {latest:?} after the rollback, which said {longest:?}");
}
