//! Prints the available sources of evidence: `cargo run -p jitterscope-source --example survey`.

use jitterscope_model::ClockKind;
use jitterscope_platform::Machine;

fn main() {
    for report in jitterscope_source::survey(&Machine::host(), ClockKind::Tsc) {
        println!(
            "{:<12} {:<10} {:?} {:?}",
            report.name, report.status, report.problems, report.losses
        );
    }
}
