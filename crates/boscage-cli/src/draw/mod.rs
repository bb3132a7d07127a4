//! Drawing, for all reports: pictures as SVG of our own, and pages that need nothing beside them.

pub(crate) mod layout;
pub(crate) mod page;
pub(crate) mod svg;
