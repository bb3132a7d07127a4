//! What surrounds an optimizer in use.
//!
//! - [`method`]: a method chosen by name, with some of its settings changed.
//! - [`program`]: an external program that evaluates points.

pub mod error;
pub mod method;
pub mod program;

pub use error::{Error, Result};
pub use method::MethodChoice;
pub use program::Program;
