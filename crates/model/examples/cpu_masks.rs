//! Lists of CPUs in the kernel's two forms: `cargo run -p jitterscope-model --example cpu_masks 0-3,5 0-31:2`.

use jitterscope_model::{CpuSet, Nanos, TickRate, Ticks};
use std::error::Error;

fn main() -> Result<(), Box<dyn Error>> {
    for list in std::env::args().skip(1) {
        let cpus: CpuSet = list.parse()?;
        println!("{cpus}: {} CPUs, mask {}", cpus.len(), cpus.to_mask());
        // What the kernel prints in one form, it takes in the other.
        assert_eq!(CpuSet::from_mask(&cpus.to_mask()), Some(cpus));
    }
    // Times are whole numbers of a unit that the type names.
    let rate = TickRate::NANOSECONDS;
    assert_eq!(rate.nanos(Ticks(1_500)), Nanos(1_500));
    Ok(())
}
