//! The study that a command is about: a study file, or a store.

use std::io::Read;
use std::path::Path;
use std::sync::Arc;
use std::time::Duration;

use anyhow::{Context, bail};
use boscage_study::{Access, Location, Store, Study, StudyFile};
use clap::Args;

/// The study that a command is about.
#[derive(Debug, Args)]
pub(crate) struct StudyArgument {
    /// A study file, or a store: a file such as study.db, or an address such as postgresql://user@host/database.
    #[arg(value_name = "STUDY")]
    study: String,
    /// The study's name, if the store holds several.
    #[arg(long, value_name = "NAME")]
    name: Option<String>,
    /// The store, instead of the study file's; the variable keeps passwords out of sight.
    #[arg(long, value_name = "STORE", env = "BOSCAGE_STORAGE", hide_env_values = true)]
    storage: Option<String>,
}

/// Where a study is.
pub(crate) struct Found {
    /// Its store.
    pub(crate) location: Location,
    /// Its name, if it is known.
    pub(crate) name: Option<String>,
    /// Its file, if one was given.
    pub(crate) file: Option<StudyFile>,
}

impl StudyArgument {
    /// What was given, as it was written.
    pub(crate) fn text(&self) -> &str {
        &self.study
    }

    /// The same for a study file of ours.
    pub(crate) fn at(&self, path: &Path) -> Self {
        Self {
            study: path.display().to_string(),
            name: self.name.clone(),
            storage: self.storage.clone(),
        }
    }

    /// Finds the study. A file is read and checked.
    pub(crate) fn find(&self) -> anyhow::Result<Found> {
        let path = Path::new(&self.study);
        let storage = self.storage.as_deref().filter(|storage| !storage.is_empty());
        let storage = storage.map(Location::parse).transpose()?;
        if path.extension().is_some_and(|ending| ending.eq_ignore_ascii_case("toml")) {
            let file = StudyFile::read(path)?;
            let location = storage.unwrap_or_else(|| file.storage.clone());
            let name = self.name.clone().unwrap_or_else(|| file.name.clone());
            return Ok(Found { location, name: Some(name), file: Some(file) });
        }
        let location = Location::parse(&self.study)?;
        if let Location::Sqlite(path) = &location {
            if path.is_dir() {
                bail!("{} is a folder; name a study file or a store in it", self.study);
            }
            if !path.exists() {
                bail!(
                    "there is no file {}; give a study file (NAME.toml) or a store (NAME.db), or begin one with `boscage init`",
                    self.study
                );
            }
            if !is_store(path) {
                bail!(
                    "{} is no store; give a study file (its name must end in .toml) or a store (NAME.db)",
                    self.study
                );
            }
        }
        Ok(Found { location, name: self.name.clone(), file: None })
    }

    /// Opens the study to be read.
    pub(crate) fn view(&self) -> anyhow::Result<boscage_study::StudyView> {
        let found = self.find()?;
        let mut store =
            Store::open(&found.location, &reading()).with_context(|| self.hint(&found))?;
        Ok(boscage_study::study::view(&mut store, found.name.as_deref())?)
    }

    fn hint(&self, found: &Found) -> String {
        match (&found.file, &found.location) {
            (Some(_), Location::Sqlite(path)) if !path.exists() => {
                format!("the study of {} has not begun; `boscage tune {0}` begins it", self.study)
            }
            _ => "the store cannot be read".to_string(),
        }
    }

    /// Opens the study to be changed; makes it if a study file says what it is.
    pub(crate) fn open(&self) -> anyhow::Result<Study> {
        let found = self.find()?;
        let store = Store::open(&found.location, &access())?;
        Ok(match (found.file, found.name) {
            (Some(file), Some(name)) => Study::open(store, &name, file.definition, false)?.0,
            (_, name) => Study::load(store, name.as_deref())?,
        })
    }
}

/// Whether a file may be a SQLite database, by how it begins. One that cannot be read may be.
fn is_store(path: &Path) -> bool {
    const BEGINNING: &[u8] = b"SQLite format 3\0";
    let mut found = Vec::new();
    let read = std::fs::File::open(path)
        .and_then(|file| file.take(BEGINNING.len() as u64).read_to_end(&mut found));
    read.is_err() || found.is_empty() || found == BEGINNING
}

/// How long a store that is busy or out of reach is waited for.
const PATIENCE: &str = "BOSCAGE_PATIENCE";

/// Access that says on the error output what it waits for.
pub(crate) fn access() -> Access {
    let seconds = std::env::var(PATIENCE).ok().and_then(|seconds| seconds.parse().ok());
    let patience = seconds.and_then(|seconds| Duration::try_from_secs_f64(seconds).ok());
    let usual = Access::default();
    Access {
        notice: Arc::new(crate::bench::progress::line),
        patience: patience.unwrap_or(usual.patience),
        ..usual
    }
}

/// The same for those who only read.
pub(crate) fn reading() -> Access {
    Access { read_only: true, ..access() }
}

/// `name=value` pairs as values of a study.
pub(crate) fn assignments(
    space: &boscage_study::StudySpace,
    pairs: &[String],
) -> anyhow::Result<boscage_study::Values> {
    let mut values = vec![None; space.dimension()];
    for pair in pairs {
        let Some((name, text)) = pair.split_once('=') else {
            bail!("{pair:?} is not NAME=VALUE");
        };
        let Some(d) = space.index_of(name) else {
            bail!("there is no parameter {name:?}{}", space.meant(name));
        };
        let Some((parameter, value)) = space.parameters().get(d).zip(values.get_mut(d)) else {
            continue;
        };
        if value.is_some() {
            bail!("{name} is given twice");
        }
        *value = Some(parameter.value_from_text(text)?);
    }
    Ok(values)
}
