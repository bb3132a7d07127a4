//! The one error type of the crate. Each variant carries the offending value, and each message says what to do.

/// The result of anything in this crate that can be refused.
pub type Result<T> = std::result::Result<T, Error>;

/// Why something was refused.
#[derive(Debug, Clone, PartialEq, thiserror::Error)]
#[non_exhaustive]
pub enum Error {
    /// A space needs at least one parameter.
    #[error("the space has no parameters; give it at least one")]
    EmptySpace,

    /// A parameter was given an empty name.
    #[error("parameter number {position} has an empty name; every parameter needs a name")]
    EmptyName {
        /// Position in the list of parameters, from 0.
        position: usize,
    },

    /// Two parameters share a name.
    #[error("two parameters are called {name:?}; names must differ")]
    DuplicateName {
        /// The shared name.
        name: String,
    },

    /// The domain of a parameter does not make sense.
    #[error("parameter {name:?}: {reason}")]
    InvalidDomain {
        /// The parameter.
        name: String,
        /// What is wrong with it and what would be right.
        reason: String,
    },

    /// A value does not belong to its parameter's domain.
    #[error("parameter {name:?}: {reason}")]
    InvalidValue {
        /// The parameter.
        name: String,
        /// What is wrong with the value and what would be right.
        reason: String,
    },

    /// Something has the wrong number of coordinates.
    #[error("{what} has {found} coordinates, but the space has {expected}")]
    WrongDimension {
        /// What was given.
        what: &'static str,
        /// How many coordinates the space has.
        expected: usize,
        /// How many were given.
        found: usize,
    },

    /// A point does not lie in the space.
    #[error("coordinate {coordinate} of the point is {value}: {reason}")]
    InvalidPoint {
        /// Which coordinate, from 0.
        coordinate: usize,
        /// Its value.
        value: f64,
        /// What is wrong with it.
        reason: String,
    },

    /// An outcome is NaN or infinite.
    #[error(
        "the outcome is {value}; only finite outcomes can be told (report a failed evaluation as failed instead)"
    )]
    InvalidOutcome {
        /// The outcome.
        value: f64,
    },

    /// A setting is out of its range.
    #[error("setting `{setting}` is {value}: {reason}")]
    InvalidSetting {
        /// Which setting.
        setting: &'static str,
        /// Its value.
        value: String,
        /// What would be right.
        reason: &'static str,
    },

    /// There is no method of this name.
    #[error("there is no method {name:?}; the methods are {}", method_names())]
    UnknownMethod {
        /// The name.
        name: String,
    },

    /// An edge or component is not a set of different variables of the space, or would close a cycle in a forest.
    #[error("{reason}")]
    InvalidStructure {
        /// What is wrong.
        reason: String,
    },

    /// A covariance matrix could not be factored, even with the largest jitter.
    #[error(
        "the covariance matrix is not positive definite: pivot {pivot} failed even with the largest jitter"
    )]
    NotPositiveDefinite {
        /// The first pivot that was not positive.
        pivot: usize,
    },

    /// Message passing would need a larger table than allowed.
    #[error("message passing needs a table of {entries} entries, more than the limit of {limit}")]
    TableTooLarge {
        /// Entries needed.
        entries: u128,
        /// The limit.
        limit: usize,
    },

    /// Every point of a finite space has been evaluated.
    #[error("all {points} points of the space have been evaluated; there is nothing left to ask")]
    SpaceExhausted {
        /// The number of points in the space.
        points: u128,
    },

    /// The objective function given to `minimize` or `maximize` failed.
    #[error("the objective failed at trial {trial}: {reason}")]
    Objective {
        /// The trial, from 0.
        trial: u64,
        /// What the objective said.
        reason: String,
    },
}

fn method_names() -> String {
    crate::Method::NAMES.map(|known| known.name).join(", ")
}
