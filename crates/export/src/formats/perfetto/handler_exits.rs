//! Whether a device's handler took its interrupt, which no attribution needs: read from the records themselves.

use jitterscope_model::Ticks;
use jitterscope_source::format::NumberField;
use jitterscope_source::{ContextError, Page, TraceContext};
use std::collections::VecDeque;

/// The returned values of the handlers of a page.
pub(super) struct HandlerExits {
    /// The event's id; `None` if the kernel does not record it, or not this value.
    event: Option<(u16, NumberField, NumberField)>,
    returned: VecDeque<(Ticks, i32)>,
}

impl HandlerExits {
    pub(super) fn of(context: &TraceContext) -> Result<HandlerExits, ContextError> {
        let formats = context.formats()?;
        let exit = formats
            .iter()
            .find(|format| format.system() == "irq" && format.name() == "irq_handler_exit");
        let event = exit.map(|f| (f.id(), f.number("common_type"), f.number("ret")));
        Ok(HandlerExits {
            event: event.filter(|(_, _, ret)| ret.is_present()),
            returned: VecDeque::new(),
        })
    }

    /// Begins a page.
    pub(super) fn begin(&mut self, page: &Page<'_>) {
        self.returned.clear();
        let Some((id, id_field, ret)) = self.event else {
            return;
        };
        let exits = page
            .records()
            .filter(|record| id_field.u32(record.data) == u32::from(id));
        self.returned
            .extend(exits.map(|record| (record.time, ret.i32(record.data))));
    }

    /// What the handler returned that ended at this time.
    pub(super) fn returned(&mut self, at: Ticks) -> Option<i32> {
        while let Some((time, value)) = self.returned.front().copied() {
            if time > at {
                return None;
            }
            self.returned.pop_front();
            if time == at {
                return Some(value);
            }
        }
        None
    }
}
