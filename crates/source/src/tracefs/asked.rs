//! Events that the user asked for: whether this kernel records them, and with that filter.

use super::events::is_recorded;
use super::instance::Instance;
use super::side::Side;
use super::{TraceError, Tracefs};
use crate::context::FormatText;
use crate::format::EventFormat;
use jitterscope_model::AskedEvent;

/// The role of the instance in which filters are tried.
const TRIED: &str = "filters";
/// The kernel's line with the reason for refusing a filter.
const REASON: &str = "parse_error:";

/// Why an event that the user asked for is not recorded.
#[derive(Debug, thiserror::Error)]
pub enum AskedError {
    /// The kernel has no such event.
    #[error("this kernel has no event {name}")]
    Unknown {
        /// As `SYSTEM:EVENT`.
        name: String,
        /// All events of the kernel, as `SYSTEM:EVENT`; empty if this user cannot list them.
        known: Vec<String>,
    },
    /// It is an event of the recording's own, with the recording's own filter.
    #[error(
        "recordings have {name} already (with --events all), and it cannot have another filter"
    )]
    Own { name: String },
    /// The user asked for it twice.
    #[error("{name} stands there twice: an event has one filter")]
    Twice { name: String },
    /// The kernel refused the filter.
    #[error("the kernel refuses the filter '{filter}' of {name}: {reason}")]
    Filter {
        name: String,
        filter: String,
        /// The kernel's words.
        reason: String,
        /// The fields that a filter of this event may name.
        fields: Vec<String>,
    },
    /// Tracing is unavailable.
    #[error(transparent)]
    Trace(#[from] TraceError),
}

impl Tracefs {
    /// Checks that each event can be recorded, before anything is measured. Filters are tried in an instance of their
    /// own, which is removed again.
    ///
    /// # Errors
    /// The first event that cannot be recorded, with what would help.
    pub fn check_asked(&self, asked: &[AskedEvent]) -> Result<(), AskedError> {
        self.may_use_instances()?;
        let mut instance = None;
        for (at, event) in asked.iter().enumerate() {
            let name = event.name();
            if is_recorded(&event.system, &event.event) {
                return Err(AskedError::Own { name });
            }
            if asked[..at].iter().any(|earlier| earlier.name() == name) {
                return Err(AskedError::Twice { name });
            }
            if !self.has_event(&format!("{}/{}", event.system, event.event)) {
                return Err(AskedError::Unknown {
                    name,
                    known: self.known_events(),
                });
            }
            if event.filter.is_none() {
                continue;
            }
            let instance = match &instance {
                Some(instance) => instance,
                None => instance.insert(Instance::create(self, TRIED)?),
            };
            try_filter(instance, event)?;
        }
        Ok(())
    }

    /// All events of the kernel, as `SYSTEM:EVENT`.
    fn known_events(&self) -> Vec<String> {
        let file = format!("{}/available_events", self.root());
        let text = self.machine().read(file).unwrap_or_default();
        text.lines().map(str::to_owned).collect()
    }
}

/// The folder of an event within an instance.
fn folder(event: &AskedEvent) -> String {
    format!("events/{}/{}", event.system, event.event)
}

fn try_filter(instance: &Instance, event: &AskedEvent) -> Result<(), AskedError> {
    let Some(filter) = &event.filter else {
        return Ok(());
    };
    let file = format!("{}/filter", folder(event));
    let Err(refused) = instance.write(&file, filter) else {
        return Ok(());
    };
    let said = instance.read(&file).unwrap_or_default();
    let reason = said
        .lines()
        .find_map(|line| Some(line.trim().strip_prefix(REASON)?.trim().to_owned()));
    let format = instance.read(&format!("{}/format", folder(event)))?;
    let format =
        EventFormat::parse(&event.system, &event.event, &format).map_err(TraceError::from)?;
    Err(AskedError::Filter {
        name: event.name(),
        filter: filter.clone(),
        reason: reason.unwrap_or_else(|| refused.to_string()),
        fields: format
            .own_fields()
            .map(|field| field.name().to_owned())
            .collect(),
    })
}

impl Side {
    /// Filters and enables an event that the user asked for, and keeps its format.
    pub(super) fn enable_asked(&mut self, asked: &AskedEvent) -> Result<(), TraceError> {
        let folder = folder(asked);
        let instance = self.instance();
        let text = instance.read(&format!("{folder}/format"))?;
        EventFormat::parse(&asked.system, &asked.event, &text)?;
        if let Some(filter) = &asked.filter {
            instance.write(&format!("{folder}/filter"), filter)?;
        }
        instance.write(&format!("{folder}/enable"), "1")?;
        self.formats.push(FormatText {
            system: asked.system.to_string(),
            event: asked.event.to_string(),
            text,
        });
        Ok(())
    }
}
