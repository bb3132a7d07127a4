//! Placeholder until the page is there.
use boscage_study::{Explanation, StudyView};
pub(crate) fn html(_: &StudyView, _: Option<&Explanation>) -> anyhow::Result<String> {
    Ok(String::new())
}
