//! Errors as Python's exceptions, with the same text.

use std::any::Any;

use pyo3::create_exception;
use pyo3::exceptions::{PyException, PyValueError};
use pyo3::prelude::*;

create_exception!(boscage, BoscageError, PyException, "Something that boscage cannot do.");
create_exception!(
    boscage,
    SpaceExhausted,
    BoscageError,
    "Every point of the space has been tried."
);
create_exception!(
    boscage,
    StorageError,
    BoscageError,
    "The store of a study cannot be read or written."
);
create_exception!(
    boscage,
    StudyChanged,
    BoscageError,
    "The study is not as it was when it was begun."
);

/// What went wrong.
pub(crate) enum Failure {
    /// The study layer or the engine refused.
    Refused(boscage_study::Error),
    /// The caller gave something that makes no sense.
    Value(String),
    /// Every point has been tried.
    Exhausted(String),
    /// We have a bug.
    Bug(String),
}

impl From<boscage_study::Error> for Failure {
    fn from(error: boscage_study::Error) -> Self {
        Failure::Refused(error)
    }
}

impl From<boscage::Error> for Failure {
    fn from(error: boscage::Error) -> Self {
        Failure::Refused(error.into())
    }
}

impl From<serde_json::Error> for Failure {
    fn from(error: serde_json::Error) -> Self {
        Failure::Value(error.to_string())
    }
}

/// A panic as an error.
pub(crate) fn panicked(panic: &Box<dyn Any + Send>) -> Failure {
    let words = panic.downcast_ref::<&str>().map(ToString::to_string);
    let words = words.or_else(|| panic.downcast_ref::<String>().cloned()).unwrap_or_default();
    Failure::Bug(format!("boscage has made a mistake, please report it: {words}"))
}

impl From<Failure> for PyErr {
    fn from(failure: Failure) -> Self {
        use boscage_study::Error;
        let error = match failure {
            Failure::Value(text) => return PyValueError::new_err(text),
            Failure::Exhausted(text) => return SpaceExhausted::new_err(text),
            Failure::Bug(text) => return BoscageError::new_err(text),
            Failure::Refused(error) => error,
        };
        let text = error.to_string();
        match error {
            Error::Engine(boscage::Error::SpaceExhausted { .. }) => SpaceExhausted::new_err(text),
            Error::Engine(boscage::Error::NotPositiveDefinite { .. }) => {
                BoscageError::new_err(text)
            }
            Error::Storage { .. } => StorageError::new_err(text),
            Error::Changed { .. } => StudyChanged::new_err(text),
            Error::Study { .. } | Error::Evaluation { .. } | Error::LimitReached { .. } => {
                BoscageError::new_err(text)
            }
            _ => PyValueError::new_err(text),
        }
    }
}
