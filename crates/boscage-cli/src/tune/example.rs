//! The study that comes with boscage: a small program, in a language that every Unix has.

use std::path::{Path, PathBuf};

use anyhow::Context;

/// What it is called on the command line.
pub(super) const NAME: &str = "example";
/// The folder that it is written to.
const FOLDER: &str = "boscage-example";

const FILES: [(&str, &str); 2] = [
    ("study.toml", include_str!("../../example/study.toml")),
    ("bakery.awk", include_str!("../../example/bakery.awk")),
];

/// Writes the example into a folder of its own; what is there stays. Gives the study file.
pub(super) fn write() -> anyhow::Result<PathBuf> {
    let folder = Path::new(FOLDER);
    std::fs::create_dir_all(folder)
        .with_context(|| format!("the folder {FOLDER} cannot be made"))?;
    for (name, text) in FILES {
        let path = folder.join(name);
        if !path.exists() {
            std::fs::write(&path, text)
                .with_context(|| format!("{} cannot be written", path.display()))?;
        }
    }
    Ok(folder.join(FILES[0].0))
}
