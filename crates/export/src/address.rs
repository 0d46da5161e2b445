//! Parses a destination: `SCHEME://PLACE?KEY=VALUE&...`.

use crate::error::DestinationError;
use std::path::PathBuf;

pub(crate) struct Address<'a> {
    whole: &'a str,
    /// The text before `://`.
    pub(crate) scheme: &'a str,
    /// The text between `://` and the options.
    pub(crate) place: &'a str,
    /// Options in the given order; no key appears twice.
    pub(crate) options: Vec<(&'a str, &'a str)>,
}

impl<'a> Address<'a> {
    /// Parses a destination.
    ///
    /// # Errors
    /// The destination has no scheme, or an option twice.
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

    /// The place as a path.
    pub(crate) fn path(&self) -> Result<PathBuf, DestinationError> {
        if self.place.is_empty() {
            return Err(self.incomplete("name a file behind ://, or - for standard output"));
        }
        Ok(PathBuf::from(self.place))
    }

    /// The place as a server, without a final slash.
    pub(crate) fn server(&self) -> &'a str {
        self.place.trim_end_matches('/')
    }

    /// Rejects options, for a format that takes none.
    pub(crate) fn without_options(&self) -> Result<(), DestinationError> {
        match self.options.first() {
            Some((key, _)) => Err(self.unknown(key, "none")),
            None => Ok(()),
        }
    }

    /// The error of a missing part; `missing` tells the user what to write.
    pub(crate) fn incomplete(&self, missing: &'static str) -> DestinationError {
        DestinationError::Incomplete {
            target: self.whole.into(),
            missing,
        }
    }

    /// The error of an unknown option; `known` lists the format's options.
    pub(crate) fn unknown(&self, option: &str, known: &'static str) -> DestinationError {
        DestinationError::Option {
            target: self.whole.into(),
            option: option.into(),
            known,
        }
    }

    pub(crate) fn value(&self, option: &'static str, value: &str) -> DestinationError {
        DestinationError::Value {
            target: self.whole.into(),
            option,
            value: value.into(),
        }
    }
}
