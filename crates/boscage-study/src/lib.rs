//! What surrounds an optimizer in use.
//!
//! - [`method`]: a method chosen by name, with some of its settings changed; what each setting means.
//! - [`program`]: an external program that evaluates points.
//! - [`parameters`]: the parameters of a study, with defaults and [`condition`]s.
//! - [`definition`]: what a study is; study files.
//! - [`store`]: where studies are kept: Optuna's schema in SQLite or PostgreSQL.
//! - [`study`]: ask for trials, tell what came out, go on after any interruption.
//! - [`optimization`]: the same in memory, for programs that keep their own records.
//! - [`tune`]: workers that run a program until the budget is spent.
//! - [`view`]: a study at one moment, as plain data.
//! - [`export`]: all trials as a table for other programs; [`past_results`]: tables of other programs as trials.
//! - [`explain`]: what a study has learned: recommended point, importances, effects, and how far to trust them.
//! - [`import`]: spaces from the files of other tools.

pub mod condition;
pub mod definition;
mod effects;
pub mod error;
pub mod explain;
pub mod export;
pub mod goal;
pub mod import;
pub mod method;
pub mod optimization;
pub mod parameters;
pub mod past_results;
mod process;
pub mod program;
mod propose;
pub mod store;
pub mod study;
pub mod table;
pub mod trial;
pub mod tune;
pub mod view;
pub mod worker;

pub use condition::Condition;
pub use definition::{
    Aggregate, Budget, Definition, Evaluation, Failure, Score, StudyFile, Workers,
};
pub use error::{Error, Result};
pub use explain::Explanation;
pub use export::ExportFormat;
pub use goal::Goal;
pub use method::{MethodChoice, SettingDescription, describe};
pub use optimization::Optimization;
pub use parameters::{Kind, StudyParameter, StudySpace, Values};
pub use past_results::{PastFormat, PastOptions, PastOutcome, PastResult, PastResults};
pub use process::kill_running_programs;
pub use program::{Argument, Context, FileFormat, Program, ResultRule};
pub use store::{Access, Location, Outcome, Store, StudyRow, Told};
pub use study::{Asked, AskedTrial, Opening, Study};
pub use trial::{State, Trial};
pub use tune::{Event, Finish, Plan, StopReason};
pub use view::StudyView;
pub use worker::Worker;
