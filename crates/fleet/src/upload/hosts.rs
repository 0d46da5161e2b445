//! Which machine has a name: one small object per host name.

use crate::location::Location;
use crate::problem::{Problem, ProblemKind};
use jitterscope_store::rollup::{RollupHost, host_object};
use serde::{Deserialize, Serialize};

/// A machine that has written within this time is alive, seconds.
const ALIVE_S: u64 = 2 * 3600;

/// What the store knows of a name.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
struct Known {
    id: String,
    boot: String,
    /// Seconds since the epoch, by the machine's clock.
    at_s: u64,
}

/// What this process has written under its name.
#[derive(Debug, Default)]
pub(super) struct HostRecord {
    ours: Option<(String, Known)>,
}

impl HostRecord {
    /// The id of this host, once an hour was sent.
    pub(super) fn id(&self) -> Option<&str> {
        self.ours.as_ref().map(|(_, known)| &*known.id)
    }

    /// Writes this host's record. Returns a problem if another machine has its name, or another machine its id: a clone.
    ///
    /// # Errors
    /// The store fails.
    pub(super) fn claim(
        &mut self,
        location: &Location,
        cluster: &str,
        host: &RollupHost,
        now_s: u64,
    ) -> Result<Option<Problem>, Problem> {
        let path = host_object(cluster, &host.name);
        let found = location.get(&path)?;
        let found: Option<Known> = found.and_then(|text| serde_json::from_slice(&text).ok());
        let wrote = self.ours.as_ref().filter(|(of, _)| *of == path);
        let is_other = |of: &Known| of.id != host.id || of.boot != host.boot;
        let other = found.filter(is_other).filter(|of| match wrote {
            // This process wrote it and lives: whoever wrote since is another machine.
            Some(_) => true,
            // A machine that was replaced has the name of the old one; a reboot has another id of the boot.
            None => of.id != host.id && now_s.saturating_sub(of.at_s) < ALIVE_S,
        });
        let ours = Known {
            id: host.id.clone(),
            boot: host.boot.clone(),
            at_s: now_s,
        };
        let text = serde_json::to_vec(&ours).map_err(Problem::local)?;
        location.put(&path, text)?;
        self.ours = Some((path, ours));
        Ok(other.map(|other| {
            let what = match other.id == host.id {
                true => format!(
                    "another machine has the machine id of this one ({})",
                    host.id
                ),
                false => format!("machine {} has the name of this one, {}", other.id, host.id),
            };
            Problem::new(
                ProblemKind::TwoHosts,
                format!("two machines upload as '{}': {what}", host.name),
            )
        }))
    }
}
