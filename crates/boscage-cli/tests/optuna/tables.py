"""The tables of a store, and what is in them, as JSON.

    tables.py make URL      lets Optuna make its tables in an empty store
    tables.py schema URL    tables, columns, constraints, indexes, types, and the versions that the store names
    tables.py rows URL      all rows of all tables
"""

import json
import re
import sqlite3
import sys


def sqlite_connection(url):
    return sqlite3.connect(url.removeprefix("sqlite:///"), timeout=60)


def postgres_connection(url):
    import psycopg2

    return psycopg2.connect(url.replace("+psycopg2", ""))


def query(connection, sql, *values):
    cursor = connection.cursor()
    cursor.execute(sql, values)
    return [[str(cell) if cell is not None else None for cell in row] for row in cursor.fetchall()]


def without_spaces(sql):
    """SQL whose white space has no say."""
    return re.sub(r"\s*([(),])\s*", r"\1", re.sub(r"\s+", " ", sql.strip())) if sql else sql


def sqlite_schema(connection):
    schema = {}
    for kind, name, table, sql in query(connection, "SELECT type, name, tbl_name, sql FROM sqlite_master"):
        schema[f"{kind} {name}"] = [table, without_spaces(sql)]
        if kind == "table":
            schema[f"columns of {name}"] = query(connection, f"PRAGMA table_info({name})")
            schema[f"references of {name}"] = query(connection, f"PRAGMA foreign_key_list({name})")
            for _, index, *more in query(connection, f"PRAGMA index_list({name})"):
                schema[f"index {index} of {name}"] = [more, query(connection, f"PRAGMA index_info({index})")]
    return schema


def postgres_schema(connection):
    return {
        "columns": query(
            connection,
            """SELECT table_name, column_name, ordinal_position, column_default, is_nullable, data_type, udt_name,
                      character_maximum_length, numeric_precision, datetime_precision, collation_name, is_identity,
                      pg_get_serial_sequence(table_name, column_name)
               FROM information_schema.columns WHERE table_schema = 'public' ORDER BY 1, 3""",
        ),
        "constraints": query(
            connection,
            """SELECT conrelid::regclass, conname, contype, convalidated, pg_get_constraintdef(oid) FROM pg_constraint
               WHERE connamespace = 'public'::regnamespace ORDER BY 1, 2""",
        ),
        "indexes": query(
            connection,
            "SELECT tablename, indexname, indexdef FROM pg_indexes WHERE schemaname = 'public' ORDER BY 1, 2",
        ),
        "enumerations": query(
            connection,
            "SELECT enumtypid::regtype, enumlabel FROM pg_enum ORDER BY enumtypid::regtype::text, enumsortorder",
        ),
        "sequences": query(
            connection,
            """SELECT sequencename, data_type, start_value, increment_by, cycle FROM pg_sequences
               WHERE schemaname = 'public' ORDER BY 1""",
        ),
    }


def main():
    action, url = sys.argv[1:]
    if action == "make":
        import optuna

        optuna.storages.RDBStorage(url)
        return
    is_sqlite = url.startswith("sqlite")
    connection = (sqlite_connection if is_sqlite else postgres_connection)(url)
    if action == "schema":
        found = (sqlite_schema if is_sqlite else postgres_schema)(connection)
        for table in ("version_info", "alembic_version"):
            found[f"rows of {table}"] = query(connection, f"SELECT * FROM {table}")
    else:
        sql = (
            "SELECT name FROM sqlite_master WHERE type = 'table'"
            if is_sqlite
            else "SELECT tablename FROM pg_tables WHERE schemaname = 'public'"
        )
        found = {name: sorted(query(connection, f"SELECT * FROM {name}"), key=str) for (name,) in query(connection, sql)}
    json.dump(found, sys.stdout, sort_keys=True)


main()
