//! Packets from another CPU whose receive processing is steered to the victim's CPU (RPS): a function call interrupt,
//! followed by the NET_RX softirq. Uses a private loopback device.

use super::protocol::{DisturbSettings, Expectation, Injection};
use super::unavailable::needs_capability;
use super::{DisturbError, Injector, Unavailable, needs_helper, pace, private_net};
use jitterscope_model::{CpuSet, CulpritKind, Nanos, Ticks};
use jitterscope_platform::{Machine, clock};
use std::io::ErrorKind;
use std::net::UdpSocket;

const STEERING: &str = "/sys/class/net/lo/queues/rx-0/rps_cpus";

/// How long to wait for a packet: far longer than a host takes the victim's CPU away.
const PATIENCE: Nanos = Nanos(2_000_000_000);

/// The kernel's capability numbers (`include/uapi/linux/capability.h`).
const CAP_NET_ADMIN: (u32, &str) = (12, "CAP_NET_ADMIN");
const CAP_SYS_ADMIN: (u32, &str) = (21, "CAP_SYS_ADMIN");

pub(super) fn availability(
    machine: &Machine,
    settings: &DisturbSettings,
) -> Result<(), Unavailable> {
    needs_helper(settings)?;
    if !machine.exists("/proc/self/ns/net") {
        return Err(Unavailable::kernel(
            "has no network namespaces (CONFIG_NET_NS)",
        ));
    }
    if !machine.exists(STEERING) {
        return Err(Unavailable::kernel(
            "cannot steer packets to a CPU (CONFIG_RPS)",
        ));
    }
    [CAP_SYS_ADMIN, CAP_NET_ADMIN]
        .into_iter()
        .try_for_each(|capability| needs_capability(machine, capability, "a private network"))
}

pub(super) struct Softirq {
    settings: DisturbSettings,
    sender: UdpSocket,
    receiver: UdpSocket,
}

impl Softirq {
    /// Enters the private network; this process cannot leave it.
    pub(super) fn new(settings: &DisturbSettings) -> Result<Softirq, DisturbError> {
        private_net::enter()?;
        let victim: CpuSet = [settings.cpu].into_iter().collect();
        Machine::host().write(STEERING, &victim.to_mask())?;
        let bind = || UdpSocket::bind("127.0.0.1:0");
        let sender = bind().map_err(DisturbError::refused("opening the sending socket"))?;
        let receiver = bind().map_err(DisturbError::refused("opening the receiving socket"))?;
        receiver
            .set_nonblocking(true)
            .and_then(|()| sender.connect(receiver.local_addr()?))
            .map_err(DisturbError::refused("connecting the sockets"))?;
        Ok(Softirq {
            settings: settings.clone(),
            sender,
            receiver,
        })
    }

    /// Busy-waits until the packet arrives: sleeping would need a wake-up on the victim's CPU.
    fn receive(&self, sent: Ticks) -> Result<Ticks, DisturbError> {
        let patience = self.settings.rate.ticks(PATIENCE);
        loop {
            match self.receiver.recv(&mut [0; 8]) {
                Ok(_) => return Ok(clock::now(self.settings.clock)),
                Err(e) if matches!(e.kind(), ErrorKind::WouldBlock | ErrorKind::Interrupted) => {}
                Err(e) => return Err(DisturbError::refused("receiving a packet")(e)),
            }
            if clock::now(self.settings.clock).since(sent) > patience {
                return Err(DisturbError::PacketLost(PATIENCE.0 / 1_000_000));
            }
        }
    }
}

impl Injector for Softirq {
    fn expectation(&self, _comm: &str, _tid: i32) -> Expectation {
        Expectation {
            kind: CulpritKind::Softirq,
            name: "NET_RX".into(),
            sender: None,
        }
    }

    fn inject(&mut self, deadline: Nanos) -> Result<Option<Injection>, DisturbError> {
        if !pace::sleep_until(deadline)? {
            return Ok(None);
        }
        let start_ticks = clock::now(self.settings.clock);
        self.sender
            .send(&[0; 8])
            .map_err(DisturbError::refused("sending a packet"))?;
        let end_ticks = self.receive(start_ticks)?;
        Ok(Some(Injection {
            start_ticks,
            end_ticks,
            length_ticks: None,
        }))
    }
}
