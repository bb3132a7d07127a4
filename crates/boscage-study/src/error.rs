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

    /// A program cannot be run here at all: it is not there, or may not be executed.
    #[error("{reason}")]
    NotStarted {
        /// Why, and what to do.
        reason: String,
    },

    /// A program was ended because it reached one of its limits.
    #[error("{reason}")]
    LimitReached {
        /// Which limit, with the end of what the program wrote to its error output.
        reason: String,
    },

    /// A parameter of a study does not make sense.
    #[error("parameter {name:?}: {reason}")]
    Parameter {
        /// Its name.
        name: String,
        /// What is wrong and what would be right.
        reason: String,
    },

    /// A condition between parameters does not make sense.
    #[error("the condition `{text}`: {reason}")]
    Condition {
        /// The condition, as it was written.
        text: String,
        /// What is wrong and what would be right.
        reason: String,
    },

    /// Values that are no point of the space.
    #[error("{reason}")]
    Values {
        /// What is wrong.
        reason: String,
    },

    /// A file that was to be read cannot be.
    #[error("{place}: {reason}")]
    Input {
        /// The file, with a line if it is known.
        place: String,
        /// What is wrong and what would be right.
        reason: String,
    },

    /// A file could not be written.
    #[error("{place}: writing failed: {source}")]
    Output {
        /// The file.
        place: String,
        /// What the system said.
        source: std::io::Error,
    },

    /// The store refused, or could not be reached.
    #[error("{place}: {reason}")]
    Storage {
        /// The file, or the address without its password.
        place: String,
        /// What is wrong and what to do.
        reason: String,
        /// Whether trying again later may help.
        passing: bool,
    },

    /// The study, or one of its trials, is not in a state that allows this.
    #[error("{reason}")]
    Study {
        /// What is wrong and what to do.
        reason: String,
    },

    /// The study is not as it was when it was begun.
    #[error("study {name:?} has changed:\n{differences}\n{advice}")]
    Changed {
        /// The study.
        name: String,
        /// A line for each difference.
        differences: String,
        /// What can be done.
        advice: String,
    },
}
