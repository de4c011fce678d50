"""Reading a script of SQL, for the steps."""

import sqlite3
from collections.abc import Iterator


def split_statements(script: str) -> Iterator[str]:
    """Yield the statements of a script one by one; executescript would commit first.

    A trigger, which has semicolons inside, is one statement.
    """
    statement = ""
    for line in script.splitlines():
        statement += f"{line}\n"
        if sqlite3.complete_statement(statement):
            yield statement
            statement = ""
