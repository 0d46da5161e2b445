//! Why a store did not take or give something.

use jitterscope_model::UploadProblem;
use std::error::Error;

/// The kind of a problem, as metrics show it.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum ProblemKind {
    /// No answer, or a broken one.
    Unreachable,
    /// Credentials are missing or wrong.
    Credentials,
    /// The credentials are right and may not do this.
    Forbidden,
    /// The bucket or the folder does not exist.
    NoStore,
    /// The store has no room.
    Full,
    /// The store refuses the machine's clock.
    Clock,
    /// The store cannot do what this needs.
    Unsupported,
    /// Another machine uploads under the same name.
    TwoHosts,
    /// A file on this machine cannot be read.
    Local,
    Other,
}

/// A problem in words.
#[derive(Clone, Debug, PartialEq, Eq, thiserror::Error)]
#[error("{text}{}", self.advice())]
pub struct Problem {
    pub kind: ProblemKind,
    pub text: String,
}

impl Problem {
    pub(crate) fn new(kind: ProblemKind, text: impl Into<String>) -> Problem {
        Problem {
            kind,
            text: text.into(),
        }
    }

    /// Something on this machine failed.
    pub(crate) fn local(error: impl std::fmt::Display) -> Problem {
        Problem::new(ProblemKind::Local, error.to_string())
    }

    fn advice(&self) -> &'static str {
        match self.kind {
            ProblemKind::Unreachable => "; it is tried again",
            ProblemKind::Credentials => {
                "; give credentials in the environment: AWS_ACCESS_KEY_ID and AWS_SECRET_ACCESS_KEY, GOOGLE_APPLICATION_CREDENTIALS, or AZURE_STORAGE_ACCOUNT_KEY"
            }
            ProblemKind::Forbidden => "; give them the right to list, read, write and delete there",
            ProblemKind::NoStore => "; make it, or correct the URL",
            ProblemKind::Full => "; make room",
            ProblemKind::Clock => "; set this machine's clock",
            ProblemKind::TwoHosts => "; give one of them another host name or machine id",
            ProblemKind::Unsupported | ProblemKind::Local | ProblemKind::Other => "",
        }
    }
}

impl ProblemKind {
    fn word(self) -> &'static str {
        match self {
            ProblemKind::Unreachable => "unreachable",
            ProblemKind::Credentials => "credentials",
            ProblemKind::Forbidden => "forbidden",
            ProblemKind::NoStore => "no_store",
            ProblemKind::Full => "full",
            ProblemKind::Clock => "clock",
            ProblemKind::Unsupported => "unsupported",
            ProblemKind::TwoHosts => "two_hosts",
            ProblemKind::Local => "local",
            ProblemKind::Other => "other",
        }
    }
}

impl From<Problem> for UploadProblem {
    fn from(problem: Problem) -> UploadProblem {
        UploadProblem {
            kind: problem.kind.word().to_owned(),
            text: problem.to_string(),
        }
    }
}

/// Texts by which stores and systems name a cause; the first that fits decides.
const SIGNS: [(&str, ProblemKind); 21] = [
    ("RequestTimeTooSkewed", ProblemKind::Clock),
    ("RequestExpired", ProblemKind::Clock),
    ("SignatureDoesNotMatch", ProblemKind::Credentials),
    ("InvalidAccessKeyId", ProblemKind::Credentials),
    ("ExpiredToken", ProblemKind::Credentials),
    ("InvalidToken", ProblemKind::Credentials),
    ("NotSignedUp", ProblemKind::Credentials),
    ("AuthenticationFailed", ProblemKind::Credentials),
    ("AuthorizationFailure", ProblemKind::Credentials),
    ("Missing AccessKey", ProblemKind::Credentials),
    ("No space left", ProblemKind::Full),
    ("StorageFull", ProblemKind::Full),
    ("QuotaExceeded", ProblemKind::Full),
    ("Insufficient Storage", ProblemKind::Full),
    ("NoSuchBucket", ProblemKind::NoStore),
    ("ContainerNotFound", ProblemKind::NoStore),
    ("HTTP error", ProblemKind::Unreachable),
    ("error sending request", ProblemKind::Unreachable),
    ("Permission denied", ProblemKind::Forbidden),
    ("403 Forbidden", ProblemKind::Forbidden),
    ("Server returned non-2xx", ProblemKind::Unreachable),
];

impl From<object_store::Error> for Problem {
    fn from(error: object_store::Error) -> Problem {
        let mut text = error.to_string();
        let mut cause = error.source();
        while let Some(inner) = cause {
            let inner_text = inner.to_string();
            if !text.contains(&inner_text) {
                text.push_str(": ");
                text.push_str(&inner_text);
            }
            cause = inner.source();
        }
        let sign = SIGNS.iter().find(|(sign, _)| text.contains(sign));
        let kind = match (&error, sign) {
            (_, Some((_, kind))) if *kind != ProblemKind::Unreachable => *kind,
            (object_store::Error::Unauthenticated { .. }, _) => ProblemKind::Credentials,
            (object_store::Error::PermissionDenied { .. }, _) => ProblemKind::Forbidden,
            (object_store::Error::NotFound { .. }, _) => ProblemKind::NoStore,
            (
                object_store::Error::NotImplemented { .. }
                | object_store::Error::NotSupported { .. },
                _,
            ) => ProblemKind::Unsupported,
            (_, Some((_, kind))) => *kind,
            (_, None) => ProblemKind::Other,
        };
        // One line, without what a server could put on a terminal.
        let line: String = text
            .chars()
            .map(|letter| if letter.is_control() { ' ' } else { letter })
            .take(600)
            .collect();
        Problem { kind, text: line }
    }
}
