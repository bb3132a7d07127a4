//! The one error type of the crate. Each message says what is wrong, where, and what to do.

use std::path::PathBuf;

/// The result of anything in this crate that can be refused.
pub type Result<T> = std::result::Result<T, Error>;

/// Why something was refused.
#[derive(Debug, thiserror::Error)]
#[non_exhaustive]
pub enum Error {
    /// The engine refused.
    #[error(transparent)]
    Engine(#[from] boscage::Error),

    /// A method, program or study setting was refused.
    #[error(transparent)]
    Study(#[from] boscage_study::Error),

    /// A recipe does not make sense.
    #[error("{origin}: {reason}")]
    Recipe {
        /// The file or the name of the recipe.
        origin: String,
        /// What is wrong, where in the recipe, and what would be right.
        reason: String,
    },

    /// The description of a problem does not make sense.
    #[error("{reason}")]
    InvalidProblem {
        /// What is wrong and what would be right.
        reason: String,
    },

    /// A problem could not be evaluated at a point: a failed trial, not the end of a run.
    #[error("{reason}")]
    Evaluation {
        /// What happened.
        reason: String,
    },

    /// A file could not be read or written.
    #[error("{path}: {action} failed: {source}")]
    File {
        /// The file.
        path: PathBuf,
        /// What was tried.
        action: &'static str,
        /// What the system said.
        source: std::io::Error,
    },

    /// Stored results are not what they should be.
    #[error("{path}: {reason}")]
    Results {
        /// The file or folder.
        path: PathBuf,
        /// What is wrong and what to do.
        reason: String,
    },

    /// A run ended by a panic, which is a bug in the method or problem. Other runs go on.
    #[error("a bug ended the run: {reason}")]
    Panicked {
        /// What the panic said.
        reason: String,
    },
}

impl Error {
    /// Turns an input or output error into one that names the file.
    pub(crate) fn file(
        path: impl Into<PathBuf>,
        action: &'static str,
    ) -> impl FnOnce(std::io::Error) -> Self {
        let path = path.into();
        move |source| Self::File { path, action, source }
    }

    pub(crate) fn results(path: impl Into<PathBuf>, reason: impl Into<String>) -> Self {
        Self::Results { path: path.into(), reason: reason.into() }
    }

    pub(crate) fn problem(reason: impl Into<String>) -> Self {
        Self::InvalidProblem { reason: reason.into() }
    }
}
