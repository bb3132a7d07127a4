//! What surrounds an optimizer in use.
//!
//! - [`method`]: a method chosen by name, with some of its settings changed; what each setting means.
//! - [`program`]: an external program that evaluates points.

pub mod error;
pub mod method;
mod process;
pub mod program;

pub use error::{Error, Result};
pub use method::{MethodChoice, SettingDescription, describe};
pub use process::kill_running_programs;
pub use program::{Context, FileFormat, Program, ResultRule};
