//! The tables: those that Optuna 5 makes, so that its own programs and its dashboard read and write them.
//!
//! A test compares them with what Optuna makes itself.

use super::database::{Sql, Stop, Transaction};
use crate::error::Error;

/// The version of the schema, as Optuna counts in `version_info`.
pub const SCHEMA_VERSION: i64 = 12;
/// The last step of Optuna's own migrations.
const MIGRATION: &str = "v3.2.0.a";
/// The release of Optuna whose tables these are.
const LIBRARY_VERSION: &str = "5.0.0";

/// A table: its name, its columns and constraints. `{…}` is what the two databases call differently.
const TABLES: [(&str, &str); 13] = [
    ("studies", "study_id {serial}, study_name VARCHAR(512) NOT NULL, PRIMARY KEY (study_id)"),
    (
        "version_info",
        "version_info_id INTEGER NOT NULL, schema_version INTEGER, library_version VARCHAR(256), \
         PRIMARY KEY (version_info_id), CHECK (version_info_id=1)",
    ),
    (
        "study_directions",
        "study_direction_id {serial}, direction {direction} NOT NULL, study_id INTEGER NOT NULL, objective INTEGER NOT NULL, \
         PRIMARY KEY (study_direction_id), UNIQUE (study_id, objective), FOREIGN KEY(study_id) REFERENCES studies (study_id)",
    ),
    (
        "study_user_attributes",
        "study_user_attribute_id {serial}, study_id INTEGER, \"key\" VARCHAR(512), value_json TEXT, \
         PRIMARY KEY (study_user_attribute_id), UNIQUE (study_id, \"key\"), \
         FOREIGN KEY(study_id) REFERENCES studies (study_id)",
    ),
    (
        "study_system_attributes",
        "study_system_attribute_id {serial}, study_id INTEGER, \"key\" VARCHAR(512), value_json TEXT, \
         PRIMARY KEY (study_system_attribute_id), UNIQUE (study_id, \"key\"), \
         FOREIGN KEY(study_id) REFERENCES studies (study_id)",
    ),
    (
        "trials",
        "trial_id {serial}, number INTEGER, study_id INTEGER, state {state} NOT NULL, datetime_start {time}, \
         datetime_complete {time}, PRIMARY KEY (trial_id), FOREIGN KEY(study_id) REFERENCES studies (study_id)",
    ),
    (
        "trial_user_attributes",
        "trial_user_attribute_id {serial}, trial_id INTEGER, \"key\" VARCHAR(512), value_json TEXT, \
         PRIMARY KEY (trial_user_attribute_id), UNIQUE (trial_id, \"key\"), \
         FOREIGN KEY(trial_id) REFERENCES trials (trial_id)",
    ),
    (
        "trial_system_attributes",
        "trial_system_attribute_id {serial}, trial_id INTEGER, \"key\" VARCHAR(512), value_json TEXT, \
         PRIMARY KEY (trial_system_attribute_id), UNIQUE (trial_id, \"key\"), \
         FOREIGN KEY(trial_id) REFERENCES trials (trial_id)",
    ),
    (
        "trial_params",
        "param_id {serial}, trial_id INTEGER, param_name VARCHAR(512), param_value {float}, distribution_json TEXT, \
         PRIMARY KEY (param_id), UNIQUE (trial_id, param_name), FOREIGN KEY(trial_id) REFERENCES trials (trial_id)",
    ),
    (
        "trial_values",
        "trial_value_id {serial}, trial_id INTEGER NOT NULL, objective INTEGER NOT NULL, value {float}, \
         value_type {value_type} NOT NULL, PRIMARY KEY (trial_value_id), UNIQUE (trial_id, objective), \
         FOREIGN KEY(trial_id) REFERENCES trials (trial_id)",
    ),
    (
        "trial_intermediate_values",
        "trial_intermediate_value_id {serial}, trial_id INTEGER NOT NULL, step INTEGER NOT NULL, \
         intermediate_value {float}, intermediate_value_type {intermediate_value_type} NOT NULL, \
         PRIMARY KEY (trial_intermediate_value_id), UNIQUE (trial_id, step), \
         FOREIGN KEY(trial_id) REFERENCES trials (trial_id)",
    ),
    (
        "trial_heartbeats",
        "trial_heartbeat_id {serial}, trial_id INTEGER NOT NULL, heartbeat {time} NOT NULL, \
         PRIMARY KEY (trial_heartbeat_id), UNIQUE (trial_id), FOREIGN KEY(trial_id) REFERENCES trials (trial_id)",
    ),
    (
        "alembic_version",
        "version_num VARCHAR(32) NOT NULL, CONSTRAINT alembic_version_pkc PRIMARY KEY (version_num)",
    ),
];

const INDEXES: &str = "CREATE UNIQUE INDEX ix_studies_study_name ON studies (study_name);
CREATE INDEX ix_trials_study_id ON trials (study_id);";

/// What stands for `{…}` in SQLite, and in PostgreSQL.
const WORDS: [(&str, &str, &str); 7] = [
    ("{serial}", "INTEGER NOT NULL", "SERIAL NOT NULL"),
    ("{float}", "FLOAT", "DOUBLE PRECISION"),
    ("{time}", "DATETIME", "TIMESTAMP WITHOUT TIME ZONE"),
    ("{direction}", "VARCHAR(8)", "studydirection"),
    ("{state}", "VARCHAR(8)", "trialstate"),
    ("{value_type}", "VARCHAR(7)", "trialvaluetype"),
    ("{intermediate_value_type}", "VARCHAR(7)", "trialintermediatevaluetype"),
];

/// The types that PostgreSQL needs before the tables.
const TYPES: &str = "CREATE TYPE studydirection AS ENUM ('NOT_SET', 'MINIMIZE', 'MAXIMIZE');
CREATE TYPE trialintermediatevaluetype AS ENUM ('FINITE', 'INF_POS', 'INF_NEG', 'NAN');
CREATE TYPE trialstate AS ENUM ('RUNNING', 'COMPLETE', 'PRUNED', 'FAIL', 'WAITING');
CREATE TYPE trialvaluetype AS ENUM ('FINITE', 'INF_POS', 'INF_NEG');";

/// A number of our own, under which those who make the tables at the same time wait for each other.
const LOCK: i64 = 0x626f_7363_6167_6501;

/// Whether there are any tables of a store.
pub(crate) fn exists(transaction: &mut Transaction<'_>) -> Result<bool, Stop> {
    let sql = match transaction.is_postgres() {
        true => {
            "SELECT 1 FROM pg_tables WHERE tablename = 'version_info' AND schemaname = current_schema()"
        }
        false => "SELECT 1 FROM sqlite_master WHERE type = 'table' AND name = 'version_info'",
    };
    Ok(!transaction.query(sql, &[])?.is_empty())
}

/// Refuses a file that another program keeps its own tables in. A server's database may have many users.
fn check_owner(transaction: &mut Transaction<'_>, place: &str) -> Result<(), Stop> {
    const MOST: usize = 5;
    if transaction.is_postgres() {
        return Ok(());
    }
    let sql = "SELECT name FROM sqlite_master WHERE type = 'table' AND name NOT LIKE 'sqlite%' ORDER BY name";
    let rows = transaction.query(sql, &[])?;
    let mut names: Vec<&str> = rows.iter().flatten().filter_map(Sql::text).collect();
    if names.is_empty() {
        return Ok(());
    }
    if names.len() > MOST {
        names.truncate(MOST);
        names.push("…");
    }
    let reason = format!(
        "it is a database of something else (its tables are {}); give another file",
        names.join(", ")
    );
    Err(Stop::Own(Error::Storage { place: place.to_string(), reason, passing: false }))
}

/// Makes the tables, unless they are there.
pub(crate) fn make(transaction: &mut Transaction<'_>, place: &str) -> Result<(), Stop> {
    let is_postgres = transaction.is_postgres();
    if is_postgres {
        transaction.batch(&format!("SELECT pg_advisory_xact_lock({LOCK})"))?;
    }
    if exists(transaction)? {
        return Ok(());
    }
    check_owner(transaction, place)?;
    if is_postgres {
        transaction.batch(TYPES)?;
    }
    for (name, columns) in TABLES {
        let mut sql = format!("CREATE TABLE {name} ({columns})");
        for (word, in_sqlite, in_postgres) in WORDS {
            sql = sql.replace(word, if is_postgres { in_postgres } else { in_sqlite });
        }
        transaction.batch(&sql)?;
    }
    transaction.batch(INDEXES)?;
    transaction
        .execute("INSERT INTO alembic_version (version_num) VALUES ($1)", &[MIGRATION.into()])?;
    transaction.execute(
        "INSERT INTO version_info (version_info_id, schema_version, library_version) VALUES (1, $1, $2)",
        &[SCHEMA_VERSION.into(), LIBRARY_VERSION.into()],
    )?;
    Ok(())
}

/// Refuses tables of another version.
pub(crate) fn check(transaction: &mut Transaction<'_>, place: &str) -> Result<(), Stop> {
    let refused = |reason: String| {
        Stop::Own(Error::Storage { place: place.to_string(), reason, passing: false })
    };
    if !exists(transaction)? {
        check_owner(transaction, place)?;
        return Err(refused("there are no studies in it".to_string()));
    }
    let rows =
        transaction.query("SELECT schema_version, library_version FROM version_info", &[])?;
    let (version, library) = match rows.first().map(Vec::as_slice) {
        Some([version, library]) => (version.integer(), library.text().unwrap_or("?").to_string()),
        _ => (None, "?".to_string()),
    };
    let migration = transaction.query("SELECT version_num FROM alembic_version", &[])?;
    let migration = migration
        .first()
        .and_then(|row| row.first())
        .and_then(Sql::text)
        .unwrap_or("?")
        .to_string();
    match version {
        Some(SCHEMA_VERSION) if migration == MIGRATION => Ok(()),
        _ => {
            let advice = match version {
                Some(version) if version > SCHEMA_VERSION => "they are newer; use a newer boscage",
                Some(version) if version < SCHEMA_VERSION => {
                    "they are older; `optuna storage upgrade --storage ADDRESS` brings them up to date"
                }
                _ => {
                    "if they are older, `optuna storage upgrade --storage ADDRESS` brings them up to date"
                }
            };
            Err(refused(format!(
                "its tables are those of Optuna {library} (schema {}, {migration}), and this version of boscage knows schema \
                 {SCHEMA_VERSION}, {MIGRATION}; {advice}",
                version.map_or("unknown".to_string(), |version| version.to_string()),
            )))
        }
    }
}
