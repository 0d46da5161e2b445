//! Prints what this machine lets us see: `cargo run -p jitterscope-source --example survey`.

use jitterscope_model::ClockKind;
use jitterscope_platform::Machine;

fn main() {
    for report in jitterscope_source::survey(&Machine::host(), ClockKind::Tsc) {
        println!("{:<12} {:<10} {}", report.name, report.status.as_str(), report.reason);
        if !report.loses.is_empty() {
            println!("{:23} loses: {}", "", report.loses);
        }
        if !report.fix.is_empty() {
            println!("{:23} fix: {}", "", report.fix);
        }
    }
}
