//! A batch of rows read back.

use arrow_array::{Array, RecordBatch};

/// A batch. Columns are found by name.
pub(crate) struct Batch(pub(crate) RecordBatch);

impl Batch {
    pub(crate) fn len(&self) -> usize {
        self.0.num_rows()
    }

    pub(crate) fn column<T: Array + 'static>(&self, name: &str) -> Result<&T, String> {
        self.column_if_any(name)?
            .ok_or_else(|| format!("it has no column '{name}'"))
    }

    /// A column that older versions did not write; `None` if it is missing.
    pub(crate) fn column_if_any<T: Array + 'static>(
        &self,
        name: &str,
    ) -> Result<Option<&T>, String> {
        let Some(column) = self.0.column_by_name(name) else {
            return Ok(None);
        };
        let typed = column.as_any().downcast_ref::<T>();
        typed
            .map(Some)
            .ok_or_else(|| format!("column '{name}' has another type"))
    }
}
