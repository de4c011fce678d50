"""Progress reports and cancellation of long SQL statements."""

import sqlite3
from collections.abc import Callable, Generator
from contextlib import contextmanager

import sqlite_utils

from annotator.errors import AnnotatorError

INSTRUCTIONS_PER_CALL = 500_000  # of SQLite between two calls: a few hundredths of a second


@contextmanager
def watch_statements(sql: sqlite_utils.Database, beat: Callable[[], None]) -> Generator[None]:
    """Call `beat` regularly while SQL statements of the block run. Its exceptions end the statement and the block."""
    raised: list[BaseException] = []

    def check_statement() -> int:
        if raised:  # the rollback goes on
            return 0
        try:
            beat()
        except BaseException as error:  # SQLite would swallow it
            raised.append(error)
        return bool(raised)

    sql.conn.set_progress_handler(check_statement, INSTRUCTIONS_PER_CALL)
    try:
        yield
    except (sqlite3.OperationalError, AnnotatorError) as error:
        if raised:
            raise raised[0] from None
        if "interrupted" in str(error):  # Ctrl+C came before the first line of `called`
            raise KeyboardInterrupt from None
        raise
    finally:
        sql.conn.set_progress_handler(None, 0)
