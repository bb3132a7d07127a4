//! What surrounds an optimizer in use.
//!
//! - [`method`]: a method chosen by name, with some of its settings changed; what each setting means.
//! - [`program`]: an external program that evaluates points.
//! - [`parameters`]: the parameters of a study, with defaults and [`condition`]s.
//! - [`import`]: spaces from the files of other tools.

pub mod condition;
pub mod error;
pub mod goal;
pub mod import;
pub mod method;
pub mod parameters;
mod process;
pub mod program;
pub mod trial;
pub mod view;

pub use condition::Condition;
pub use error::{Error, Result};
pub use goal::Goal;
pub use method::{MethodChoice, SettingDescription, describe};
pub use parameters::{Kind, StudyParameter, StudySpace, Values};
pub use process::kill_running_programs;
pub use program::{Context, FileFormat, Program, ResultRule};
pub use trial::{State, Trial};
pub use view::StudyView;
