"""Reading a script of SQL, for the steps."""

import sqlite3
from collections.abc import Iterator


def statements(script: str) -> Iterator[str]:
    """The statements of a script one by one (a trigger has semicolons inside); executescript would commit first."""
    statement = ""
    for line in script.splitlines():
        statement += f"{line}\n"
        if sqlite3.complete_statement(statement):
            yield statement
            statement = ""
