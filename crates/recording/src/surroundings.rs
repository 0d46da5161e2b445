//! The machine around a recording: its state before and its load meanwhile.

use jitterscope_model::{CpuSet, HostFacts, MachineState, Reading, TuningState};
use jitterscope_platform::{CpuTimes, Machine, Topology, machine_state};

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
        let mut state = machine_state(machine, topology, host);
        state.tuning = tuning.cloned().into();
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
        self.state.load = std::mem::replace(&mut self.began, Reading::Absent).and_then(|before| {
            CpuTimes::read(machine).map(|after| before.shares_until(&after, measured))
        });
        self.state.clone()
    }
}
