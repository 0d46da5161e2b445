//! A destination as text, taken apart: `SCHEME://PLACE?KEY=VALUE&...`.

use crate::error::DestinationError;
use std::path::PathBuf;

/// What a format reads its place and options from.
pub(crate) struct Address<'a> {
    whole: &'a str,
    /// What stands before `://`.
    pub(crate) scheme: &'a str,
    /// What stands between that and the options.
    pub(crate) place: &'a str,
    /// As given, in order; no key twice.
    pub(crate) options: Vec<(&'a str, &'a str)>,
}

impl<'a> Address<'a> {
    /// Takes it apart.
    ///
    /// # Errors
    /// It has no scheme, or an option twice.
    pub(crate) fn split(whole: &'a str) -> Result<Address<'a>, DestinationError> {
        let (scheme, rest) = whole
            .split_once("://")
            .ok_or_else(|| DestinationError::NoScheme(whole.to_owned()))?;
        let (place, query) = rest.split_once('?').unwrap_or((rest, ""));
        let options: Vec<_> = query
            .split('&')
            .filter(|pair| !pair.is_empty())
            .map(|pair| pair.split_once('=').unwrap_or((pair, "")))
            .collect();
        for (index, (key, _)) in options.iter().enumerate() {
            if options[..index].iter().any(|(earlier, _)| earlier == key) {
                return Err(DestinationError::OptionTwice {
                    target: whole.into(),
                    option: (*key).into(),
                });
            }
        }
        Ok(Address {
            whole,
            scheme,
            place,
            options,
        })
    }

    /// The place as a file or folder.
    pub(crate) fn path(&self) -> Result<PathBuf, DestinationError> {
        if self.place.is_empty() {
            return Err(self.incomplete("name a file behind ://, or - for standard output"));
        }
        Ok(PathBuf::from(self.place))
    }

    /// The place as a server's, without the slash that may end it.
    pub(crate) fn server(&self) -> &'a str {
        self.place.trim_end_matches('/')
    }

    /// Of a format that takes no options.
    pub(crate) fn without_options(&self) -> Result<(), DestinationError> {
        match self.options.first() {
            Some((key, _)) => Err(self.unknown(key, "none")),
            None => Ok(()),
        }
    }

    /// The error of what is missing; `missing` says what to write.
    pub(crate) fn incomplete(&self, missing: &'static str) -> DestinationError {
        DestinationError::Incomplete {
            target: self.whole.into(),
            missing,
        }
    }

    /// The error of an option that the format does not have; `known` are those that it has.
    pub(crate) fn unknown(&self, option: &str, known: &'static str) -> DestinationError {
        DestinationError::Option {
            target: self.whole.into(),
            option: option.into(),
            known,
        }
    }

    /// The error of an option's value.
    pub(crate) fn value(&self, option: &'static str, value: &str) -> DestinationError {
        DestinationError::Value {
            target: self.whole.into(),
            option,
            value: value.into(),
        }
    }
}
