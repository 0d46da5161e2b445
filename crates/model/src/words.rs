//! Enumerations whose variants have a word in files, in JSON and on screen.

/// An enumeration with one table of words. A word of a newer version is kept in `Other`.
macro_rules! open_words {
    ($(#[$meta:meta])* $name:ident { $($(#[$of:meta])* $variant:ident = $word:literal,)* }) => {
        $(#[$meta])*
        #[derive(Clone, Debug, PartialEq, Eq, PartialOrd, Ord, Hash, schemars::JsonSchema)]
        pub enum $name {
            $($(#[$of])* #[schemars(rename = $word)] $variant,)*
            /// A word of a newer version.
            #[schemars(untagged)]
            Other(crate::Name),
        }

        impl $name {
            /// All variants that this version knows, in order.
            pub const KNOWN: &[$name] = &[$($name::$variant,)*];

            #[must_use]
            pub fn as_str(&self) -> &str {
                match self {
                    $($name::$variant => $word,)*
                    $name::Other(word) => word,
                }
            }

            /// The inverse of `as_str`.
            #[must_use]
            pub fn from_word(word: &str) -> $name {
                match word {
                    $($word => $name::$variant,)*
                    other => $name::Other(other.into()),
                }
            }
        }

        impl std::fmt::Display for $name {
            fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
                f.pad(self.as_str())
            }
        }

        impl serde::Serialize for $name {
            fn serialize<S: serde::Serializer>(&self, serializer: S) -> Result<S::Ok, S::Error> {
                serializer.serialize_str(self.as_str())
            }
        }

        impl<'de> serde::Deserialize<'de> for $name {
            fn deserialize<D: serde::Deserializer<'de>>(deserializer: D) -> Result<$name, D::Error> {
                Ok($name::from_word(&String::deserialize(deserializer)?))
            }
        }
    };
}

/// An enumeration with one table of words that newer versions may extend: an unknown word has no variant, or a special
/// one.
macro_rules! closed_words {
    ($(#[$meta:meta])* $name:ident { $($(#[$of:meta])* $variant:ident = $word:literal,)* }) => {
        $(#[$meta])*
        #[derive(schemars::JsonSchema)]
        pub enum $name {
            $($(#[$of])* #[schemars(rename = $word)] $variant,)*
        }

        impl $name {
            /// All variants, in order.
            pub const ALL: [$name; [$($word),*].len()] = [$($name::$variant,)*];

            /// Its word in files and in JSON.
            #[must_use]
            pub fn as_str(self) -> &'static str {
                match self {
                    $($name::$variant => $word,)*
                }
            }

            /// The inverse of `as_str`; `None` if the word is not in the table.
            #[must_use]
            pub fn from_word(word: &str) -> Option<$name> {
                match word {
                    $($word => Some($name::$variant),)*
                    _ => None,
                }
            }
        }

        impl std::fmt::Display for $name {
            fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
                f.pad(self.as_str())
            }
        }

        impl serde::Serialize for $name {
            fn serialize<S: serde::Serializer>(&self, serializer: S) -> Result<S::Ok, S::Error> {
                serializer.serialize_str(self.as_str())
            }
        }

        impl<'de> serde::Deserialize<'de> for $name {
            fn deserialize<D: serde::Deserializer<'de>>(deserializer: D) -> Result<$name, D::Error> {
                let word = String::deserialize(deserializer)?;
                $name::from_word(&word)
                    .ok_or_else(|| serde::de::Error::unknown_variant(&word, &[$($word),*]))
            }
        }
    };
}

pub(crate) use {closed_words, open_words};
