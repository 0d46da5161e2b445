//! The machine around a recording: its state before and its load meanwhile.

use jitterscope_model::{CpuSet, HostFacts, MachineState, Reading, TuningState};
use jitterscope_platform::{CpuTimes, Machine, Topology, machine_settings};

pub(crate) struct Surroundings {
    state: MachineState,
    began: Reading<CpuTimes>,
}

impl Surroundings {
    /// Reads the machine's state before anything is measured: it opens a file for each interrupt and CPU.
    pub(crate) fn take(
        machine: &Machine,
        topology: &Topology,
        host: &HostFacts,
        tuning: Option<&TuningState>,
    ) -> Surroundings {
        let state = MachineState {
            settings: machine_settings(machine, topology, host),
            tuning: tuning.cloned().into(),
        };
        Surroundings {
            state,
            began: Reading::Absent,
        }
    }

    pub(crate) fn begin(&mut self, machine: &Machine) {
        self.began = CpuTimes::read(machine);
    }

    /// The state after the measurement, with the load of all CPUs except those that a probe kept busy.
    pub(crate) fn end(&mut self, machine: &Machine, measured: &CpuSet) -> MachineState {
        let settings = &mut self.state.settings;
        match (&self.began, &CpuTimes::read(machine)) {
            (Reading::Value(before), Reading::Value(after)) => {
                before.put_shares_until(after, measured, settings);
            }
            (Reading::Value(_), why) | (why, _) => {
                let why = why.clone().and_then(|_| Reading::Absent);
                settings.put("load.busy", [why.into()]);
            }
        }
        self.state.clone()
    }
}
