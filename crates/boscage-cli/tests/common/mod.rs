//! Stores for tests: a SQLite file, or a database of a real PostgreSQL server, and the Python that has Optuna.
//!
//! `scripts/test` provides the server and the Python, and names them in `BOSCAGE_TEST_POSTGRES` and `BOSCAGE_TEST_PYTHON`. A
//! test that finds neither such a variable nor the wish to do without fails, so that none is left out by accident.

#![allow(dead_code, reason = "not every test needs all of it")]
#![allow(
    clippy::unwrap_used,
    clippy::expect_used,
    clippy::panic,
    clippy::print_stderr,
    reason = "a test fails by panicking"
)]

use std::path::{Path, PathBuf};
use std::process::{Child, ExitStatus};
use std::sync::atomic::{AtomicU32, Ordering};
use std::time::{Duration, Instant};

use postgres::{Client, NoTls};

/// How long anything may take before it counts as hanging.
pub(crate) const HANGS: Duration = Duration::from_secs(300);

/// What keeps a store.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum Keeper {
    Sqlite,
    Postgres,
}

/// An empty store in a folder of its own. Both are gone when the test ends.
pub(crate) struct TestStore {
    folder: tempfile::TempDir,
    /// As boscage is given it.
    pub(crate) address: String,
    /// As Optuna is given it.
    pub(crate) url: String,
    /// The server's address and the database's name.
    database: Option<(String, String)>,
}

impl TestStore {
    /// None if PostgreSQL is to be done without.
    pub(crate) fn new(keeper: Keeper) -> Option<Self> {
        let folder = tempfile::tempdir().unwrap();
        if keeper == Keeper::Sqlite {
            let address = folder.path().join("study.db").display().to_string();
            let url = format!("sqlite:///{address}");
            return Some(Self { folder, address, url, database: None });
        }
        static COUNT: AtomicU32 = AtomicU32::new(0);
        let server = provided("BOSCAGE_TEST_POSTGRES", "BOSCAGE_WITHOUT_POSTGRES")?;
        let name = format!("test_{}_{}", std::process::id(), COUNT.fetch_add(1, Ordering::SeqCst));
        let begin = server.rfind('/').expect("an address ends with the name of a database");
        let address = format!("{}/{name}", &server[..begin]);
        let mut client = Client::connect(&server, NoTls)
            .expect("BOSCAGE_TEST_POSTGRES is the address of a server");
        client.batch_execute(&format!("CREATE DATABASE {name}")).unwrap();
        // SQLAlchemy has changed its mind about which driver is meant if none is named.
        let url = address.replace("postgresql://", "postgresql+psycopg2://");
        Some(Self { folder, address, url, database: Some((server, name)) })
    }

    /// A folder for whatever the test needs.
    pub(crate) fn folder(&self) -> &Path {
        self.folder.path()
    }
}

impl Drop for TestStore {
    fn drop(&mut self) {
        if let Some((server, name)) = &self.database
            && let Ok(mut client) = Client::connect(server, NoTls)
        {
            drop(client.batch_execute(&format!("DROP DATABASE {name} WITH (FORCE)")));
        }
    }
}

/// The Python that has Optuna; none if it is to be done without.
pub(crate) fn python() -> Option<PathBuf> {
    provided("BOSCAGE_TEST_PYTHON", "BOSCAGE_WITHOUT_OPTUNA").map(PathBuf::from)
}

fn provided(variable: &str, without: &str) -> Option<String> {
    let value = std::env::var(variable).ok().filter(|value| !value.is_empty());
    if value.is_none() {
        assert!(
            std::env::var(without).is_ok_and(|value| value == "1"),
            "{variable} is not set: run scripts/test, which provides what this test needs, set the variable yourself as in \
             CONTRIBUTING.md, or leave such tests out with {without}=1"
        );
        eprintln!("left out, as {without}=1 says");
    }
    value
}

/// A process that does not outlive its test.
pub(crate) struct Running(pub(crate) Child);

impl Running {
    /// Waits for its end.
    pub(crate) fn ended(mut self, what: &str) -> ExitStatus {
        let mut status = None;
        wait_until(&format!("{what} has ended"), || {
            status = self.0.try_wait().unwrap();
            status.is_some()
        });
        status.unwrap()
    }
}

impl Drop for Running {
    fn drop(&mut self) {
        drop((self.0.kill(), self.0.wait()));
    }
}

/// Waits until this is so.
pub(crate) fn wait_until(what: &str, mut is_so: impl FnMut() -> bool) {
    let begin = Instant::now();
    while !is_so() {
        assert!(begin.elapsed() < HANGS, "after {HANGS:?} it is still not so that {what}");
        std::thread::sleep(Duration::from_millis(10));
    }
}
