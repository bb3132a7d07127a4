//! The methods, one file each.

pub mod random_search;
pub mod tree_gp_ucb;

pub use random_search::RandomSearch;
pub use tree_gp_ucb::{TreeGpUcb, TreeGpUcbSettings};
