//! What rows share: each value once, and which of them each row has.
//!
//! The same few culprits have a part in stall after stall. Texts of a batch are handed to the encoder as they are kept
//! here, as numbers into a list, so that no row copies any.

use arrow_array::types::Int32Type;
use arrow_array::{
    Array, ArrayRef, ArrowPrimitiveType, BooleanArray, DictionaryArray, Int32Array, PrimitiveArray,
    StringArray,
};
use arrow_schema::DataType;
use jitterscope_model::KeyedMap;
use std::cell::RefCell;
use std::hash::Hash;
use std::sync::Arc;

/// Values that are remembered from batch to batch.
const REMEMBERED: usize = 256;

/// Values by a key, in the order in which they were met, and the number of each row's.
pub(super) struct Shared<K, V> {
    values: Vec<V>,
    places: KeyedMap<K, i32>,
    rows: Vec<i32>,
}

impl<K, V> Default for Shared<K, V> {
    fn default() -> Self {
        Shared {
            values: Vec::new(),
            places: KeyedMap::default(),
            rows: Vec::new(),
        }
    }
}

impl<K: Hash + Eq + Clone, V> Shared<K, V> {
    /// One more row.
    pub(super) fn push(&mut self, key: &K, value: impl FnOnce(&K) -> V) {
        let place = self.place(key, value);
        self.push_place(place);
    }

    /// The number of a value, for [`Shared::push_place`]; it holds until [`Shared::begin_anew`] says otherwise.
    pub(super) fn place(&mut self, key: &K, value: impl FnOnce(&K) -> V) -> i32 {
        self.places.get(key).copied().unwrap_or_else(|| {
            self.values.push(value(key));
            let place = self.values.len() as i32 - 1;
            self.places.insert(key.clone(), place);
            place
        })
    }

    /// One more row, of a value by its number.
    pub(super) fn push_place(&mut self, place: i32) {
        self.rows.push(place);
    }

    /// The rows so far, to be handed over.
    pub(super) fn columns(&mut self) -> Columns<'_, V> {
        let next = Vec::with_capacity(self.rows.len());
        let rows = std::mem::replace(&mut self.rows, next).into();
        Columns {
            values: &self.values,
            rows,
            known: RefCell::default(),
        }
    }

    /// The rows were handed over. Whether the values were forgotten, and with them their numbers.
    pub(super) fn begin_anew(&mut self) -> bool {
        let forget = self.values.len() > REMEMBERED;
        if forget {
            self.values.clear();
            self.places.clear();
        }
        forget
    }
}

/// Columns of rows that share their values, and which of them each row has.
pub(super) struct Columns<'v, V> {
    values: &'v [V],
    rows: Int32Array,
    /// The rows as columns have them that lack the same values, by which those do not.
    known: RefCell<Vec<(Vec<bool>, DictionaryArray<Int32Type>)>>,
}

impl<'v, V> Columns<'v, V> {
    /// A column of texts; a row is null where its value has none.
    pub(super) fn texts<S: AsRef<str>>(&self, of: impl Fn(&'v V) -> Option<S>) -> ArrayRef {
        let values: Vec<Option<S>> = self.values.iter().map(of).collect();
        if values.iter().all(Option::is_none) {
            return arrow_array::new_null_array(&text(), self.rows.len());
        }
        let texts = values
            .iter()
            .map(|value| Some(value.as_ref().map_or("", S::as_ref)));
        Arc::new(
            self.known(&values)
                .with_values(Arc::new(texts.collect::<StringArray>())),
        )
    }

    /// A column of numbers; a row is null where its value has none.
    pub(super) fn numbers<T: ArrowPrimitiveType>(
        &self,
        of: impl Fn(&V) -> Option<T::Native>,
    ) -> ArrayRef {
        let values: Vec<Option<T::Native>> = self.values.iter().map(of).collect();
        if values.iter().all(Option::is_none) {
            return Arc::new(PrimitiveArray::<T>::new_null(self.rows.len()));
        }
        let plain: Vec<T::Native> = values
            .iter()
            .map(|value| value.unwrap_or_default())
            .collect();
        let rows: PrimitiveArray<T> = self.rows.unary(|place| plain[place as usize]);
        let nulls = self.known(&values).keys().nulls().cloned();
        Arc::new(PrimitiveArray::<T>::new(rows.values().clone(), nulls))
    }

    /// The rows, null where these have no value: made once for all columns that lack the same.
    fn known<T>(&self, values: &[Option<T>]) -> DictionaryArray<Int32Type> {
        let known: Vec<bool> = values.iter().map(Option::is_some).collect();
        let mut met = self.known.borrow_mut();
        if let Some((_, rows)) = met.iter().find(|(of, _)| *of == known) {
            return rows.clone();
        }
        let has_nulls = known.contains(&false);
        let nulls =
            has_nulls.then(|| BooleanArray::from_unary(&self.rows, |place| known[place as usize]));
        let nulls = nulls.map(|nulls| nulls.values().clone().into());
        let rows = Int32Array::new(self.rows.values().clone(), nulls);
        let rows = DictionaryArray::new(rows, Arc::new(StringArray::from(vec![""; values.len()])));
        met.push((known, rows.clone()));
        rows
    }
}

/// How a column of texts is handed to the encoder.
pub(super) fn text() -> DataType {
    let key = <Int32Type as ArrowPrimitiveType>::DATA_TYPE;
    DataType::Dictionary(Box::new(key), Box::new(DataType::Utf8))
}

#[cfg(test)]
mod tests {
    use super::*;
    use arrow_array::cast::AsArray;
    use arrow_array::types::UInt32Type;

    #[test]
    fn each_row_has_its_own_whatever_was_remembered_from_the_batch_before() {
        let mut shared: Shared<u32, (Option<u32>, Option<String>)> = Shared::default();
        let number = |key: u32| (!key.is_multiple_of(3)).then_some(key);
        for batch in 0..3u32 {
            // More of them than are remembered, each of them twice, and some several times in a row.
            let rows: Vec<u32> = (0..2 * REMEMBERED as u32)
                .chain(0..2 * REMEMBERED as u32)
                .collect();
            let rows: Vec<u32> = rows.into_iter().map(|row| (row + batch * 7) / 2).collect();
            for row in &rows {
                shared.push(row, |key| {
                    (number(*key), number(*key).map(|n| format!("n{n}")))
                });
            }
            let expected: PrimitiveArray<UInt32Type> =
                rows.iter().map(|key| number(*key)).collect();
            let columns = shared.columns();
            assert_eq!(
                &columns.numbers::<UInt32Type>(|value| value.0),
                &(Arc::new(expected) as ArrayRef)
            );
            let texts = columns.texts(|value| value.1.as_deref());
            let texts = texts
                .as_dictionary::<Int32Type>()
                .downcast_dict::<StringArray>()
                .unwrap();
            let texts: Vec<Option<String>> = texts
                .into_iter()
                .map(|text| text.map(str::to_owned))
                .collect();
            assert_eq!(
                texts,
                rows.iter()
                    .map(|key| number(*key).map(|n| format!("n{n}")))
                    .collect::<Vec<_>>()
            );
            shared.begin_anew();
            assert!(shared.rows.is_empty() && shared.values.len() <= REMEMBERED);
        }
    }

    #[test]
    fn values_are_forgotten_once_there_are_more_than_are_remembered() {
        let mut shared: Shared<usize, usize> = Shared::default();
        (0..REMEMBERED).for_each(|key| shared.push(&key, |key| *key));
        assert!(!shared.begin_anew());
        assert_eq!(shared.place(&3, |_| unreachable!()), 3);
        shared.push(&REMEMBERED, |key| *key);
        assert!(shared.begin_anew());
        assert_eq!(shared.place(&3, |key| *key), 0);
    }

    #[test]
    fn a_column_without_texts_is_null_throughout() {
        let mut shared: Shared<u32, ()> = Shared::default();
        (0..5).for_each(|row| shared.push(&row, |_| ()));
        let texts = shared.columns().texts::<&str>(|()| None);
        assert_eq!(
            (texts.len(), texts.logical_null_count(), texts.data_type()),
            (5, 5, &text())
        );
    }
}
