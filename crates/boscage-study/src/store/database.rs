//! A database, SQLite or PostgreSQL, as far as a store needs it: transactions of statements that both understand.
//!
//! Statements are written once, with `$1`, `$2`, … for values. All values go to PostgreSQL as text, so that the server
//! reads them as whatever their column is (an enumeration, a time); a column that is neither a number nor text is read with
//! `CAST(… AS TEXT)`.
//!
//! A transaction is tried again if the database was busy, out of space or out of reach for a while: so what is done in
//! it must be right the second time too, even if the first time was not in vain.

use std::collections::HashMap;
use std::error::Error as StdError;
use std::path::{Path, PathBuf};
use std::sync::Arc;
use std::time::{Duration, Instant};

use bytes::BytesMut;
use postgres::error::SqlState;
use postgres::types::{Format, FromSql, IsNull, ToSql, Type};
use postgres::{Client, NoTls, Statement};
use rusqlite::{ErrorCode, OpenFlags, TransactionBehavior};

use crate::error::{Error, Result};

/// How long a busy SQLite file is waited for at a time.
const BUSY: Duration = Duration::from_secs(20);
/// The most statements that a connection keeps ready.
const MOST_PREPARED: usize = 100;
/// How long is waited between two attempts: first, and at most.
const PAUSES: (Duration, Duration) = (Duration::from_millis(50), Duration::from_secs(2));
/// How long a connection to a server may take.
const CONNECT: Duration = Duration::from_secs(10);
/// A silent connection is asked whether it lives: after, how often, and how many times before it counts as lost.
const ALIVE: (Duration, Duration, u32) = (Duration::from_secs(30), Duration::from_secs(10), 3);

/// The bytes of the smallest page that SQLite knows.
const SMALLEST_PAGE: u64 = 512;
const NO_DATABASE: &str = "it is not a SQLite database; give another file";
const NOT_WRITABLE: &str = "it cannot be written; check the permissions of the file and its folder";

/// A file of the same name with another ending: what SQLite and we keep beside a store.
pub(crate) fn beside(path: &Path, ending: &str) -> PathBuf {
    let mut name = path.as_os_str().to_os_string();
    name.push(ending);
    PathBuf::from(name)
}

/// Where a store is.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum Location {
    /// A file.
    Sqlite(PathBuf),
    /// A server's address.
    Postgres(String),
}

impl Location {
    /// Reads a path, `sqlite:///path`, or an address that begins with `postgresql://` or `postgres://`. Names of Python
    /// drivers, as in `postgresql+psycopg2://`, are passed over.
    pub fn parse(text: &str) -> Result<Self> {
        let refused =
            |reason: String| Err(Error::Storage { place: masked(text), reason, passing: false });
        let Some((scheme, rest)) = text.split_once("://") else {
            return match text {
                "" => refused("a store needs a path or an address".to_string()),
                ":memory:" => refused("a store in memory would be lost; give a path".to_string()),
                path => Ok(Location::Sqlite(PathBuf::from(path))),
            };
        };
        let scheme = scheme.split('+').next().unwrap_or(scheme);
        match scheme {
            // Three slashes are followed by a relative path, four by an absolute one.
            "sqlite" => match rest
                .strip_prefix('/')
                .filter(|path| !path.is_empty() && *path != ":memory:")
            {
                Some(path) => Ok(Location::Sqlite(PathBuf::from(path))),
                None => refused(
                    "write sqlite:///file.db, or sqlite:////folder/file.db for an absolute path"
                        .to_string(),
                ),
            },
            "postgresql" | "postgres" => Ok(Location::Postgres(format!("postgresql://{rest}"))),
            other => refused(format!(
                "{other} is not supported; use a path (SQLite) or postgresql://user@host/database"
            )),
        }
    }

    /// The location, with paths from this folder.
    pub fn in_folder(self, folder: &Path) -> Self {
        match self {
            Location::Sqlite(path) => Location::Sqlite(folder.join(path)),
            other => other,
        }
    }
}

/// Without the password.
impl std::fmt::Display for Location {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        match self {
            Location::Sqlite(path) => write!(f, "{}", path.display()),
            Location::Postgres(address) => f.write_str(&masked(address)),
        }
    }
}

/// An address without its password.
fn masked(address: &str) -> String {
    let masked = (|| {
        let (scheme, rest) = address.split_once("://")?;
        let (login, place) = rest.rsplit_once('@')?;
        let (user, _) = login.split_once(':')?;
        Some(format!("{scheme}://{user}:…@{place}"))
    })();
    let masked = masked.unwrap_or_else(|| address.to_string());
    match masked.split_once("password=") {
        Some((before, after)) => {
            format!("{before}password=…{}", after.find('&').map_or("", |end| &after[end..]))
        }
        None => masked,
    }
}

/// How a store is opened.
#[derive(Clone)]
pub struct Access {
    /// Whether nothing is to be written, and nothing made.
    pub read_only: bool,
    /// How long a database that is busy, full or out of reach is waited for.
    pub patience: Duration,
    /// Told when waiting begins.
    pub notice: Arc<dyn Fn(&str) + Send + Sync>,
}

impl Default for Access {
    fn default() -> Self {
        Self { read_only: false, patience: Duration::from_secs(60), notice: Arc::new(|_| {}) }
    }
}

/// A value in a table.
#[derive(Debug, Clone, PartialEq)]
pub(crate) enum Sql {
    Null,
    Integer(i64),
    Real(f64),
    Text(String),
}

impl Sql {
    pub(crate) fn integer(&self) -> Option<i64> {
        match *self {
            Sql::Integer(number) => Some(number),
            _ => None,
        }
    }

    pub(crate) fn real(&self) -> Option<f64> {
        match *self {
            Sql::Integer(number) => Some(number as f64),
            Sql::Real(number) => Some(number),
            _ => None,
        }
    }

    pub(crate) fn text(&self) -> Option<&str> {
        match self {
            Sql::Text(text) => Some(text),
            _ => None,
        }
    }
}

impl From<i64> for Sql {
    fn from(number: i64) -> Self {
        Sql::Integer(number)
    }
}

impl From<f64> for Sql {
    fn from(number: f64) -> Self {
        Sql::Real(number)
    }
}

impl From<&str> for Sql {
    fn from(text: &str) -> Self {
        Sql::Text(text.to_string())
    }
}

impl From<String> for Sql {
    fn from(text: String) -> Self {
        Sql::Text(text)
    }
}

impl<T: Into<Sql>> From<Option<T>> for Sql {
    fn from(value: Option<T>) -> Self {
        value.map_or(Sql::Null, Into::into)
    }
}

impl rusqlite::ToSql for Sql {
    fn to_sql(&self) -> rusqlite::Result<rusqlite::types::ToSqlOutput<'_>> {
        match self {
            Sql::Null => Ok(rusqlite::types::Null.into()),
            Sql::Integer(number) => rusqlite::ToSql::to_sql(number),
            Sql::Real(number) => rusqlite::ToSql::to_sql(number),
            Sql::Text(text) => rusqlite::ToSql::to_sql(text),
        }
    }
}

impl ToSql for Sql {
    fn to_sql(
        &self,
        _: &Type,
        out: &mut BytesMut,
    ) -> std::result::Result<IsNull, Box<dyn StdError + Sync + Send>> {
        let text = match self {
            Sql::Null => return Ok(IsNull::Yes),
            Sql::Integer(number) => number.to_string(),
            Sql::Real(number) => format!("{number:?}"),
            Sql::Text(text) => text.clone(),
        };
        out.extend_from_slice(text.as_bytes());
        Ok(IsNull::No)
    }

    fn accepts(_: &Type) -> bool {
        true
    }

    fn encode_format(&self, _: &Type) -> Format {
        Format::Text
    }

    fn to_sql_checked(
        &self,
        kind: &Type,
        out: &mut BytesMut,
    ) -> std::result::Result<IsNull, Box<dyn StdError + Sync + Send>> {
        ToSql::to_sql(self, kind, out)
    }
}

impl<'a> FromSql<'a> for Sql {
    fn from_sql(
        kind: &Type,
        raw: &'a [u8],
    ) -> std::result::Result<Self, Box<dyn StdError + Sync + Send>> {
        Ok(match *kind {
            Type::INT2 => Sql::Integer(i16::from_sql(kind, raw)?.into()),
            Type::INT4 => Sql::Integer(i32::from_sql(kind, raw)?.into()),
            Type::INT8 => Sql::Integer(i64::from_sql(kind, raw)?),
            Type::BOOL => Sql::Integer(bool::from_sql(kind, raw)?.into()),
            Type::FLOAT4 => Sql::Real(f32::from_sql(kind, raw)?.into()),
            Type::FLOAT8 => Sql::Real(f64::from_sql(kind, raw)?),
            Type::TEXT | Type::VARCHAR | Type::NAME => Sql::Text(String::from_sql(kind, raw)?),
            _ => return Err(format!("a column of the type {kind} cannot be read").into()),
        })
    }

    fn from_sql_null(_: &Type) -> std::result::Result<Self, Box<dyn StdError + Sync + Send>> {
        Ok(Sql::Null)
    }

    fn accepts(_: &Type) -> bool {
        true
    }
}

/// What stopped a statement.
pub(crate) enum Stop {
    /// The database did.
    Sqlite(rusqlite::Error),
    /// The server, or the way to it, did.
    Postgres(postgres::Error),
    /// We did.
    Own(Error),
}

impl From<Error> for Stop {
    fn from(error: Error) -> Self {
        Stop::Own(error)
    }
}

impl From<rusqlite::Error> for Stop {
    fn from(error: rusqlite::Error) -> Self {
        Stop::Sqlite(error)
    }
}

impl From<postgres::Error> for Stop {
    fn from(error: postgres::Error) -> Self {
        Stop::Postgres(error)
    }
}

impl Stop {
    /// Whether the same may go well later.
    fn is_passing(&self) -> bool {
        match self {
            Stop::Sqlite(error) => matches!(
                error.sqlite_error_code(),
                Some(
                    ErrorCode::DatabaseBusy
                        | ErrorCode::DatabaseLocked
                        | ErrorCode::DiskFull
                        | ErrorCode::SystemIoFailure
                )
            ),
            Stop::Postgres(error) => {
                let code = error.code();
                is_lost(error)
                    || code.is_some_and(|code| {
                        [
                            SqlState::T_R_DEADLOCK_DETECTED,
                            SqlState::T_R_SERIALIZATION_FAILURE,
                            SqlState::LOCK_NOT_AVAILABLE,
                            SqlState::TOO_MANY_CONNECTIONS,
                            SqlState::DISK_FULL,
                            SqlState::OUT_OF_MEMORY,
                        ]
                        .contains(code)
                    })
            }
            Stop::Own(error) => matches!(error, Error::Storage { passing: true, .. }),
        }
    }

    fn into_error(self, location: &Location) -> Error {
        let passing = self.is_passing();
        let reason = match self {
            Stop::Own(error) => return error,
            Stop::Sqlite(error) => sqlite_reason(&error, location),
            Stop::Postgres(error) => postgres_reason(&error),
        };
        Error::Storage { place: location.to_string(), reason, passing }
    }
}

/// Whether the connection is gone.
fn is_lost(error: &postgres::Error) -> bool {
    let ends = [
        SqlState::ADMIN_SHUTDOWN,
        SqlState::CRASH_SHUTDOWN,
        SqlState::CANNOT_CONNECT_NOW,
        SqlState::CONNECTION_EXCEPTION,
        SqlState::CONNECTION_FAILURE,
        SqlState::CONNECTION_DOES_NOT_EXIST,
        SqlState::SQLCLIENT_UNABLE_TO_ESTABLISH_SQLCONNECTION,
        SqlState::IDLE_IN_TRANSACTION_SESSION_TIMEOUT,
    ];
    match error.code() {
        Some(code) => ends.contains(code),
        // No answer of the server at all.
        None => {
            error.is_closed() || error.source().is_some_and(|cause| cause.is::<std::io::Error>())
        }
    }
}

fn sqlite_reason(error: &rusqlite::Error, location: &Location) -> String {
    let advice = match error.sqlite_error_code() {
        Some(ErrorCode::DiskFull) => "the disk is full; make room and run the same command again",
        Some(ErrorCode::ReadOnly) => NOT_WRITABLE,
        Some(ErrorCode::CannotOpen) => match location {
            Location::Sqlite(path) if path.is_dir() => "it is a folder; give a file",
            Location::Sqlite(path)
                if !path
                    .parent()
                    .is_none_or(|folder| folder.as_os_str().is_empty() || folder.is_dir()) =>
            {
                "there is no such folder; make it first"
            }
            Location::Sqlite(path) if path.exists() => {
                "it cannot be opened; check the permissions of the file and its folder"
            }
            _ => "it cannot be made; check the permissions of the folder",
        },
        Some(ErrorCode::NotADatabase) => NO_DATABASE,
        Some(ErrorCode::DatabaseBusy | ErrorCode::DatabaseLocked) => {
            "another program keeps it locked; find out which one, or wait, and run the same command again"
        }
        Some(ErrorCode::DatabaseCorrupt) => {
            "it is damaged; `sqlite3 FILE .recover` may rescue what is in it"
        }
        Some(ErrorCode::SystemIoFailure) => {
            "the disk cannot be read or written; check it and run the same command again"
        }
        _ => return error.to_string(),
    };
    format!("{advice} ({error})")
}

fn postgres_reason(error: &postgres::Error) -> String {
    match error.as_db_error() {
        Some(answer) => {
            let more = answer.detail().map_or(String::new(), |detail| format!(" ({detail})"));
            format!("the server says: {}{more}", answer.message())
        }
        None => {
            let causes: Vec<String> =
                std::iter::successors(error.source(), |cause: &&(dyn StdError + 'static)| {
                    (*cause).source()
                })
                .map(ToString::to_string)
                .collect();
            let causes =
                if causes.is_empty() { String::new() } else { format!(": {}", causes.join(": ")) };
            format!("{error}{causes}; check the address and that the server runs")
        }
    }
}

enum Connection {
    Sqlite(rusqlite::Connection),
    Postgres(Box<Session>),
}

/// A session with a server, and the statements that it has prepared, by their text.
struct Session {
    client: Client,
    prepared: HashMap<String, Statement>,
}

impl Session {
    fn prepare(&mut self, sql: &str) -> std::result::Result<Statement, postgres::Error> {
        if let Some(statement) = self.prepared.get(sql) {
            return Ok(statement.clone());
        }
        let statement = self.client.prepare(sql)?;
        if self.prepared.len() < MOST_PREPARED {
            self.prepared.insert(sql.to_string(), statement.clone());
        }
        Ok(statement)
    }
}

/// A connection, made anew when it is lost.
pub(crate) struct Database {
    location: Location,
    access: Access,
    connection: Option<Connection>,
}

impl Database {
    pub(crate) fn open(location: &Location, access: &Access) -> Result<Self> {
        let mut database =
            Self { location: location.clone(), access: access.clone(), connection: None };
        if let Location::Sqlite(path) = location
            && access.read_only
            && !path.is_file()
        {
            return Err(Error::Storage {
                place: location.to_string(),
                reason: "there is no such file".to_string(),
                passing: false,
            });
        }
        database.patiently(|database| database.connected().map(drop))?;
        Ok(database)
    }

    pub(crate) fn location(&self) -> &Location {
        &self.location
    }

    pub(crate) fn access(&self) -> &Access {
        &self.access
    }

    /// Does the work in a transaction that nobody else's writes can come between.
    pub(crate) fn write<T>(
        &mut self,
        mut work: impl FnMut(&mut Transaction<'_>) -> std::result::Result<T, Stop>,
    ) -> Result<T> {
        self.patiently(|database| database.transact(TransactionBehavior::Immediate, &mut work))
    }

    /// Does the work on one state of the database.
    pub(crate) fn read<T>(
        &mut self,
        mut work: impl FnMut(&mut Transaction<'_>) -> std::result::Result<T, Stop>,
    ) -> Result<T> {
        self.patiently(|database| database.transact(TransactionBehavior::Deferred, &mut work))
    }

    /// Does a single statement outside of any transaction.
    pub(crate) fn statement(&mut self, sql: &str, values: &[Sql]) -> Result<Vec<Vec<Sql>>> {
        self.patiently(|database| {
            Transaction { connection: database.connected()? }.query(sql, values)
        })
    }

    fn transact<T>(
        &mut self,
        behavior: TransactionBehavior,
        work: &mut impl FnMut(&mut Transaction<'_>) -> std::result::Result<T, Stop>,
    ) -> std::result::Result<T, Stop> {
        let connection = self.connected()?;
        let (begin, is_postgres) = match (&*connection, behavior) {
            (Connection::Postgres(_), TransactionBehavior::Deferred) => {
                ("BEGIN ISOLATION LEVEL REPEATABLE READ READ ONLY", true)
            }
            (Connection::Postgres(_), _) => ("BEGIN", true),
            (Connection::Sqlite(_), TransactionBehavior::Deferred) => ("BEGIN DEFERRED", false),
            (Connection::Sqlite(_), _) => ("BEGIN IMMEDIATE", false),
        };
        let mut transaction = Transaction { connection };
        transaction.batch(begin)?;
        let done =
            work(&mut transaction).and_then(|done| transaction.batch("COMMIT").map(|()| done));
        if let Err(stop) = &done {
            // A transaction that the database has ended itself cannot be rolled back, which is as well.
            let rolled_back = transaction.batch("ROLLBACK");
            let lost = matches!(stop, Stop::Postgres(error) if is_lost(error));
            if lost || (is_postgres && rolled_back.is_err()) {
                self.connection = None;
            }
        }
        done
    }

    /// Tries until it goes well, or fails for good, or patience is at its end.
    fn patiently<T>(
        &mut self,
        mut work: impl FnMut(&mut Self) -> std::result::Result<T, Stop>,
    ) -> Result<T> {
        let begin = Instant::now();
        let mut pause = PAUSES.0;
        let mut told = false;
        loop {
            let stop = match work(self) {
                Ok(done) => return Ok(done),
                Err(stop) => stop,
            };
            if let Stop::Postgres(error) = &stop
                && is_lost(error)
            {
                self.connection = None;
            }
            let passing = stop.is_passing();
            let error = stop.into_error(&self.location);
            if !passing || begin.elapsed() >= self.access.patience {
                return Err(error);
            }
            if !told && pause > 4 * PAUSES.0 {
                (self.access.notice)(&format!(
                    "{error}; trying again for {} s",
                    self.access.patience.as_secs()
                ));
                told = true;
            }
            std::thread::sleep(pause);
            pause = (2 * pause).min(PAUSES.1);
        }
    }

    fn connected(&mut self) -> std::result::Result<&mut Connection, Stop> {
        let made = match self.connection.take() {
            Some(made) => made,
            None => self.connect()?,
        };
        Ok(self.connection.insert(made))
    }

    fn connect(&self) -> std::result::Result<Connection, Stop> {
        match &self.location {
            Location::Sqlite(path) => Ok(Connection::Sqlite(self.open_file(path)?)),
            Location::Postgres(address) => {
                let mut config: postgres::Config = address.parse()?;
                if config.get_password().is_none()
                    && let Ok(password) = std::env::var("PGPASSWORD")
                {
                    config.password(password);
                }
                config.connect_timeout(CONNECT).application_name("boscage");
                config
                    .keepalives_idle(ALIVE.0)
                    .keepalives_interval(ALIVE.1)
                    .keepalives_retries(ALIVE.2);
                let mut client = config.connect(NoTls)?;
                // The server too: who holds a lock on a machine that is gone would hold it for hours.
                client.batch_execute(&format!(
                    "SET tcp_keepalives_idle = {}; SET tcp_keepalives_interval = {}; SET tcp_keepalives_count = {}",
                    ALIVE.0.as_secs(),
                    ALIVE.1.as_secs(),
                    ALIVE.2
                ))?;
                Ok(Connection::Postgres(Box::new(Session { client, prepared: HashMap::new() })))
            }
        }
    }

    fn open_file(&self, path: &Path) -> std::result::Result<rusqlite::Connection, Stop> {
        // SQLite takes a file that is shorter than any page for an empty one, and would write over it.
        let details = path.metadata().ok().filter(std::fs::Metadata::is_file);
        if details.is_some_and(|details| (1..SMALLEST_PAGE).contains(&details.len())) {
            return Err(self.refused(NO_DATABASE.to_string()));
        }
        if self.access.read_only {
            // Whoever may write also clears away the files that SQLite keeps beside an open store.
            let writable = OpenFlags::SQLITE_OPEN_READ_WRITE;
            if let Ok(file) = rusqlite::Connection::open_with_flags(path, writable)
                && file.is_readonly(rusqlite::MAIN_DB) == Ok(false)
                && file.query_row("SELECT COUNT(*) FROM sqlite_master", [], |_| Ok(())).is_ok()
            {
                file.busy_timeout(BUSY)?;
                file.execute_batch("PRAGMA query_only = ON")?;
                return Ok(file);
            }
            let flags = OpenFlags::SQLITE_OPEN_READ_ONLY | OpenFlags::SQLITE_OPEN_URI;
            let file = rusqlite::Connection::open_with_flags(path, flags)?;
            file.busy_timeout(BUSY)?;
            // In a folder that cannot be written to, SQLite cannot make the files that it shares with other processes: then
            // nobody else can be writing either.
            let readable = file.query_row("SELECT COUNT(*) FROM sqlite_master", [], |_| Ok(()));
            return match readable {
                Err(error)
                    if matches!(
                        error.sqlite_error_code(),
                        Some(ErrorCode::CannotOpen | ErrorCode::ReadOnly)
                    ) =>
                {
                    let log = beside(path, "-wal");
                    if log.metadata().is_ok_and(|details| details.len() > 0) {
                        return Err(self.refused(format!(
                            "its last changes are in {}, which cannot be read in a folder that cannot be written to; copy both \
                             files to another folder",
                            log.display()
                        )));
                    }
                    let text = path
                        .to_string_lossy()
                        .replace('%', "%25")
                        .replace('?', "%3f")
                        .replace('#', "%23");
                    Ok(rusqlite::Connection::open_with_flags(
                        format!("file:{text}?immutable=1"),
                        flags,
                    )?)
                }
                readable => {
                    readable?;
                    Ok(file)
                }
            };
        }
        let flags = OpenFlags::SQLITE_OPEN_READ_WRITE | OpenFlags::SQLITE_OPEN_CREATE;
        let file = rusqlite::Connection::open_with_flags(path, flags)?;
        file.busy_timeout(BUSY)?;
        file.set_prepared_statement_cache_capacity(MOST_PREPARED);
        // Where nothing can be written, SQLite opens a file to be read only, without a word.
        if file.is_readonly(rusqlite::MAIN_DB)? {
            return Err(self.refused(format!(
                "{NOT_WRITABLE}; `boscage show` and `export` need only to read it"
            )));
        }
        // A commit is on the disk when it returns.
        file.execute_batch("PRAGMA synchronous = FULL")?;
        Ok(file)
    }

    /// Makes readers and a writer of a file work without waiting for each other. The file keeps it, so it has to be known to
    /// be a store.
    pub(crate) fn use_log(&mut self) -> Result<()> {
        if matches!(self.location, Location::Sqlite(_)) && !self.access.read_only {
            self.statement("PRAGMA journal_mode = WAL", &[])?;
        }
        Ok(())
    }

    fn refused(&self, reason: String) -> Stop {
        Stop::Own(Error::Storage { place: self.location.to_string(), reason, passing: false })
    }
}

/// Statements that belong together.
pub(crate) struct Transaction<'a> {
    connection: &'a mut Connection,
}

impl Transaction<'_> {
    pub(crate) fn is_postgres(&self) -> bool {
        matches!(self.connection, Connection::Postgres(_))
    }

    /// Statements without values and without answers.
    pub(crate) fn batch(&mut self, sql: &str) -> std::result::Result<(), Stop> {
        match self.connection {
            Connection::Sqlite(file) => Ok(file.execute_batch(sql)?),
            Connection::Postgres(session) => Ok(session.client.batch_execute(sql)?),
        }
    }

    /// The number of rows that were changed.
    pub(crate) fn execute(&mut self, sql: &str, values: &[Sql]) -> std::result::Result<u64, Stop> {
        match self.connection {
            Connection::Sqlite(file) => {
                let mut statement = file.prepare_cached(&sql.replace('$', "?"))?;
                Ok(statement.execute(rusqlite::params_from_iter(values))? as u64)
            }
            Connection::Postgres(session) => {
                let statement = session.prepare(sql)?;
                Ok(session.client.execute(&statement, &references(values))?)
            }
        }
    }

    /// Many rows of a table at once. Column names and the table are ours.
    pub(crate) fn insert(
        &mut self,
        table: &str,
        columns: &[&str],
        rows: &[Vec<Sql>],
    ) -> std::result::Result<(), Stop> {
        // Below the number of values that either database takes in one statement.
        const MOST_VALUES: usize = 10_000;
        for rows in rows.chunks((MOST_VALUES / columns.len().max(1)).max(1)) {
            let row = |first: usize| {
                let places: Vec<String> =
                    (0..columns.len()).map(|column| format!("${}", first + column + 1)).collect();
                format!("({})", places.join(", "))
            };
            let places: Vec<String> =
                (0..rows.len()).map(|number| row(number * columns.len())).collect();
            let sql = format!(
                "INSERT INTO {table} ({}) VALUES {}",
                columns.join(", "),
                places.join(", ")
            );
            let values: Vec<Sql> = rows.iter().flatten().cloned().collect();
            self.execute(&sql, &values)?;
        }
        Ok(())
    }

    /// All rows of the answer.
    pub(crate) fn query(
        &mut self,
        sql: &str,
        values: &[Sql],
    ) -> std::result::Result<Vec<Vec<Sql>>, Stop> {
        match self.connection {
            Connection::Sqlite(file) => {
                let mut statement = file.prepare_cached(&sql.replace('$', "?"))?;
                let columns = statement.column_count();
                let rows = statement.query_map(rusqlite::params_from_iter(values), |row| {
                    (0..columns).map(|column| Ok(from_sqlite(row.get_ref(column)?))).collect()
                })?;
                Ok(rows.collect::<rusqlite::Result<_>>()?)
            }
            Connection::Postgres(session) => {
                let statement = session.prepare(sql)?;
                let rows = session.client.query(&statement, &references(values))?;
                rows.iter()
                    .map(|row| (0..row.len()).map(|column| Ok(row.try_get(column)?)).collect())
                    .collect()
            }
        }
    }
}

fn references(values: &[Sql]) -> Vec<&(dyn ToSql + Sync)> {
    values.iter().map(|value| value as &(dyn ToSql + Sync)).collect()
}

fn from_sqlite(value: rusqlite::types::ValueRef<'_>) -> Sql {
    use rusqlite::types::ValueRef;
    match value {
        ValueRef::Null => Sql::Null,
        ValueRef::Integer(number) => Sql::Integer(number),
        ValueRef::Real(number) => Sql::Real(number),
        ValueRef::Text(text) | ValueRef::Blob(text) => {
            Sql::Text(String::from_utf8_lossy(text).into_owned())
        }
    }
}
