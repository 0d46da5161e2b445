//! Fleets of many machines: generated, and questioned by other engines.

mod evidence;
mod generate;
mod hosts;
mod hour;

use clap::Subcommand;

#[derive(Subcommand)]
pub enum FleetCommand {
    /// Write the rollups of a generated fleet with planted causes
    Generate(generate::GenerateArgs),
    /// Ask generated fleets the same questions in DuckDB, ClickHouse and Spark (needs python3, Java and pip's index)
    Evidence(evidence::EvidenceArgs),
}

pub fn run(command: &FleetCommand) -> anyhow::Result<()> {
    match command {
        FleetCommand::Generate(args) => generate::run(args),
        FleetCommand::Evidence(args) => evidence::run(args),
    }
}
