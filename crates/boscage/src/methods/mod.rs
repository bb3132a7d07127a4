//! The methods, one file each.
//!
//! Those that are GP-UCB with an additive GP share one loop, [`crate::additive_gp_ucb`]: their files hold what they are and
//! their settings.

pub mod boscage;
pub mod gp_ucb;
pub mod line_bo;
pub mod no_overlap;
pub mod oracle;
pub mod overlap;
pub mod plain_gp;
pub mod random_search;
pub mod random_trees;
pub mod rembo;
pub mod tree_gp_ucb;

pub use line_bo::LineBo;
pub use random_search::RandomSearch;
pub use rembo::Rembo;
