//! Stores for tests: a SQLite file, and a database of its own on the PostgreSQL server that `scripts/test` starts.

#![allow(
    dead_code,
    clippy::unwrap_used,
    clippy::panic,
    clippy::print_stdout,
    reason = "a test fails by panicking; not every test uses all"
)]

use std::sync::atomic::{AtomicU64, Ordering};

use boscage_study::{Access, Location, Store};
use tempfile::TempDir;

/// A place for a store that goes away with it.
pub(crate) struct Place {
    pub(crate) location: Location,
    _folder: Option<TempDir>,
}

impl Place {
    pub(crate) fn sqlite() -> Self {
        let folder = TempDir::new().unwrap();
        Self { location: Location::Sqlite(folder.path().join("store.db")), _folder: Some(folder) }
    }

    /// A new database, or nothing if the tests are to do without PostgreSQL.
    pub(crate) fn postgres() -> Option<Self> {
        static COUNT: AtomicU64 = AtomicU64::new(0);
        if std::env::var_os("BOSCAGE_WITHOUT_POSTGRES").is_some_and(|value| value == "1") {
            println!("left out on PostgreSQL: BOSCAGE_WITHOUT_POSTGRES=1");
            return None;
        }
        let Ok(address) = std::env::var("BOSCAGE_TEST_POSTGRES") else {
            panic!(
                "this test needs a PostgreSQL server: run `scripts/test`, or set BOSCAGE_TEST_POSTGRES to the address that \
                 `scripts/postgres start FOLDER` prints, or BOSCAGE_WITHOUT_POSTGRES=1 to do without"
            );
        };
        let name = format!("test_{}_{}", std::process::id(), COUNT.fetch_add(1, Ordering::Relaxed));
        let mut client = postgres::Client::connect(&address, postgres::NoTls).unwrap();
        client.batch_execute(&format!("CREATE DATABASE {name}")).unwrap();
        let (server, _) = address.rsplit_once('/').unwrap();
        Some(Self {
            location: Location::parse(&format!("{server}/{name}")).unwrap(),
            _folder: None,
        })
    }

    /// One of each kind.
    pub(crate) fn all() -> Vec<Self> {
        std::iter::once(Self::sqlite()).chain(Self::postgres()).collect()
    }

    pub(crate) fn store(&self) -> Store {
        Store::open(&self.location, &Access::default()).unwrap()
    }
}
