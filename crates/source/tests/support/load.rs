//! Disturbances of one CPU during a recording.

use rustix::thread::{CpuSet, sched_setaffinity};
use std::net::UdpSocket;
use std::sync::Arc;
use std::sync::atomic::{AtomicBool, Ordering::Relaxed};
use std::thread::{self, JoinHandle};
use std::time::{Duration, Instant};

/// Confines the calling thread to one CPU.
pub fn pin(cpu: usize) {
    let mut set = CpuSet::new();
    set.set(cpu);
    sched_setaffinity(None, &set).expect("the test needs this CPU");
}

fn worker(
    name: &str,
    cpu: usize,
    stop: &Arc<AtomicBool>,
    mut step: impl FnMut() + Send + 'static,
) -> JoinHandle<()> {
    let stop = stop.clone();
    let run = move || {
        pin(cpu);
        while !stop.load(Relaxed) {
            step();
        }
    };
    thread::Builder::new()
        .name(name.into())
        .spawn(run)
        .expect("a thread")
}

/// Loads `cpu` from itself and from `other` for `length`: a spinner, a sleeper, memory that is mapped and unmapped,
/// loopback packets.
pub fn run(cpu: usize, other: usize, length: Duration) {
    let stop = Arc::new(AtomicBool::new(false));
    let receiver = UdpSocket::bind("127.0.0.1:0").expect("a socket");
    receiver
        .set_read_timeout(Some(Duration::from_millis(20)))
        .expect("a timeout");
    let to = receiver.local_addr().expect("an address");
    let sender = UdpSocket::bind("127.0.0.1:0").expect("a socket");
    let mut packet = [0; 64];
    let mut spins = 0u64;
    let workers = [
        worker("js-spin", cpu, &stop, move || {
            spins = std::hint::black_box(spins + 1)
        }),
        worker("js-sleep", cpu, &stop, || {
            thread::sleep(Duration::from_millis(2))
        }),
        worker("js-receive", cpu, &stop, move || {
            let _ = receiver.recv(&mut packet);
        }),
        worker("js-send", other, &stop, move || {
            let _ = sender.send_to(&[1; 32], to);
            thread::sleep(Duration::from_millis(3));
        }),
        worker("js-map", other, &stop, || {
            let mut memory = vec![0u8; 1 << 20];
            memory.iter_mut().step_by(4096).for_each(|byte| *byte = 1);
            drop(std::hint::black_box(memory));
            thread::sleep(Duration::from_millis(5));
        }),
    ];
    let until = Instant::now() + length;
    while Instant::now() < until {
        thread::sleep(Duration::from_millis(5));
    }
    stop.store(true, Relaxed);
    for worker in workers {
        worker.join().expect("the load ends");
    }
}
