"""Splitting of SQL scripts into statements, for schema steps."""

import sqlite3
from collections.abc import Iterator


def split_statements(script: str) -> Iterator[str]:
    """Yield the statements of a script (a trigger is one statement), because executescript would commit first."""
    statement = ""
    for line in script.splitlines():
        statement += f"{line}\n"
        if sqlite3.complete_statement(statement):
            yield statement
            statement = ""
