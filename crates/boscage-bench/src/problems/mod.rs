//! The problems, one file for each family.

pub mod additive;
pub mod closed_form;
pub mod discrete;
pub mod graphs;
pub mod linear_ranges;
pub mod penalised;
pub mod presets;
pub mod program;
pub mod rotated;

pub use additive::AdditiveDraw;
pub use closed_form::ClosedForm;
pub use discrete::Discrete;
pub use graphs::GraphShape;
pub use linear_ranges::LinearRanges;
pub use penalised::Penalised;
pub use presets::{ProblemFacts, facts, preset, presets};
pub use program::ProgramProblem;
pub use rotated::Rotated;
