//! What surrounds an optimizer in use.
//!
//! - [`method`]: a method chosen by name, with some of its settings changed; what each setting means.
//! - [`program`]: an external program that evaluates points.
//! - [`parameters`]: the parameters of a study, with defaults and [`condition`]s.
//! - [`export`]: all trials as a table for other programs; [`past_results`]: tables of other programs as trials.

pub mod condition;
pub mod error;
pub mod export;
pub mod goal;
pub mod method;
pub mod parameters;
pub mod past_results;
mod process;
pub mod program;
pub mod table;
pub mod trial;
pub mod view;

pub use condition::Condition;
pub use error::{Error, Result};
pub use export::ExportFormat;
pub use goal::Goal;
pub use method::{MethodChoice, SettingDescription, describe};
pub use parameters::{Kind, StudyParameter, StudySpace, Values};
pub use past_results::{PastFormat, PastOptions, PastOutcome, PastResult, PastResults};
pub use process::kill_running_programs;
pub use program::{Context, FileFormat, Program, ResultRule};
pub use trial::{State, Trial};
pub use view::StudyView;
