//! The one error type of the crate. Each message says what is wrong and what to do.

/// The result of anything in this crate that can be refused.
pub type Result<T> = std::result::Result<T, Error>;

/// Why something was refused.
#[derive(Debug, thiserror::Error)]
#[non_exhaustive]
pub enum Error {
    /// The engine refused.
    #[error(transparent)]
    Engine(#[from] boscage::Error),

    /// The settings of a method were refused.
    #[error("method {name:?}: {reason}")]
    Method {
        /// Name of the method.
        name: String,
        /// What is wrong with its settings.
        reason: String,
    },

    /// The description of a program does not make sense.
    #[error("the program: {reason}")]
    InvalidProgram {
        /// What is wrong and what would be right.
        reason: String,
    },

    /// A program could not evaluate a point.
    #[error("{reason}")]
    Evaluation {
        /// What happened, with the end of what the program wrote to its error output.
        reason: String,
    },

    /// A program was ended because it reached one of its limits.
    #[error("{reason}")]
    LimitReached {
        /// Which limit, with the end of what the program wrote to its error output.
        reason: String,
    },
}
