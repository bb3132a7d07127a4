//! The problems, one file for each family.

pub mod additive;
pub mod closed_form;
pub mod graphs;
pub mod program;

pub use additive::AdditiveDraw;
pub use closed_form::ClosedForm;
pub use graphs::GraphShape;
pub use program::ProgramProblem;
