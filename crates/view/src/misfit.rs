//! Words for a pipeline's bad placement.

use crate::sources::record_error;
use jitterscope_model::{Misfit, PipelineRole};
use jitterscope_recording::pipeline::PipelineRecordError;

/// The effect on the measurement and the fix, without a full stop.
pub(crate) fn misfit(of: &Misfit) -> String {
    match of {
        Misfit::TooFewCpus {
            threads,
            cpus,
            cpuset,
            two_would_fit,
        } => {
            let plural = if cpus.len() == 1 { "" } else { "s" };
            let mut text = format!(
                "{threads} busy threads have {} CPU{plural} ({cpus}) to run on: they take turns, so a message \
                 waits for its thread's turn, and these milliseconds hide the machine's behaviour",
                cpus.len()
            );
            if let Some(cpuset) = cpuset {
                text += &format!(". The cpuset of this process has only {cpuset}");
            }
            if *two_would_fit {
                text += ". --two-thread omits the journaller and fits";
            }
            text
        }
        Misfit::Quota {
            threads,
            quota_millis,
        } => format!(
            "{threads} busy threads need {threads} CPUs, and the control group of this process grants {}.{:03} \
             (cpu.max): the kernel stops all of them for the rest of each period, and the run would \
             measure only that",
            quota_millis / 1000,
            quota_millis % 1000
        ),
        Misfit::SameCpu { roles, cpu } => format!(
            "{} share CPU {cpu}: they take turns there, and each waits milliseconds for the other. \
             Give each its own CPU",
            names(roles)
        ),
        Misfit::SameCore { roles, core } => format!(
            "{} are put on CPUs {core}, hardware threads of one physical core: while both spin, each has \
             about half of it, and messages pass through a cache that other cores never share. Take CPUs \
             of different cores",
            names(roles)
        ),
        Misfit::TooFewCores {
            threads,
            cpus,
            cores,
        } => format!(
            "{threads} busy threads have CPUs {cpus}, but these are {cores} physical core{}: two threads \
             will share one and slow each other down",
            if *cores == 1 { "" } else { "s" }
        ),
        Misfit::AcrossNodes { nodes } => {
            let at: Vec<String> = nodes
                .iter()
                .map(|of| format!("{} on node {}", of.role, of.node))
                .collect();
            format!(
                "the threads lie on different NUMA nodes ({}): every message crosses the link between them, \
                 which costs more than the queue itself. Take CPUs of one node",
                at.join(", ")
            )
        }
    }
}

fn names(roles: &[PipelineRole]) -> String {
    let names: Vec<&str> = roles.iter().map(|role| role.as_str()).collect();
    match names.split_last() {
        Some((last, rest)) if !rest.is_empty() => format!("{} and {last}", rest.join(", ")),
        _ => names.join(""),
    }
}

/// Why a recording of the pipeline failed, with advice.
#[must_use]
pub fn pipeline_error(error: &PipelineRecordError) -> String {
    match error {
        PipelineRecordError::Misfit(misfits) => {
            let reported: Vec<String> = misfits.iter().map(misfit).collect();
            format!("{}. --force measures it anyway", reported.join(". "))
        }
        PipelineRecordError::Record(error) => record_error(error),
        other => other.to_string(),
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use jitterscope_model::{CpuId, RoleNode};

    #[test]
    fn each_misfit_says_who_and_what_to_do() {
        let cpus = || "2-3".parse().unwrap();
        let (producer, accumulator) = (PipelineRole::Producer, PipelineRole::Accumulator);
        let nodes = vec![
            RoleNode {
                role: producer,
                node: 0,
            },
            RoleNode {
                role: accumulator,
                node: 1,
            },
        ];
        let few = |cpuset, two_would_fit| Misfit::TooFewCpus {
            threads: 3,
            cpus: cpus(),
            cpuset,
            two_would_fit,
        };
        for (of, words) in [
            (
                few(Some(cpus()), false),
                "cpuset of this process has only 2-3",
            ),
            (few(None, true), "--two-thread"),
            (
                Misfit::Quota {
                    threads: 3,
                    quota_millis: 2_500,
                },
                "grants 2.500",
            ),
            (
                Misfit::SameCpu {
                    roles: vec![producer, accumulator],
                    cpu: CpuId(4),
                },
                "producer and accumulator",
            ),
            (
                Misfit::SameCore {
                    roles: vec![producer, accumulator],
                    core: cpus(),
                },
                "different cores",
            ),
            (
                Misfit::TooFewCores {
                    threads: 3,
                    cpus: cpus(),
                    cores: 1,
                },
                "1 physical core:",
            ),
            (
                Misfit::AcrossNodes { nodes },
                "producer on node 0, accumulator on node 1",
            ),
        ] {
            let reported = misfit(&of);
            assert!(
                reported.contains(words) && !reported.ends_with('.'),
                "{reported}"
            );
            let refused = pipeline_error(&PipelineRecordError::Misfit(vec![of]));
            assert_eq!(refused, format!("{reported}. --force measures it anyway"));
        }
    }
}
