"""Step 1: all tables of the first release. A comment before each table describes one of its rows.

Decisions are appended and never changed. `label` holds the newest state of each image-class cell and can be rebuilt
from them. `image` is a content, and `file` a place where it is stored. Decision ids define the order, because clocks
can jump.

Columns in many tables: `annotator` is a person's name, `..._at` are Unix seconds, and rows with the same
`batch` are undone in one step. A `uuid` comes with the request, so that a resent request is stored once. In
append-only tables, `undoes` names the row that this row undoes.
"""

from sqlite_utils import Database

from annotator.store.schema.class_tables import CLASS_TABLES_SQL
from annotator.store.schema.file_tables import FILE_TABLES_SQL
from annotator.store.schema.import_tables import IMPORT_TABLES_SQL
from annotator.store.schema.label_tables import LABEL_TABLES_SQL
from annotator.store.schema.people_tables import PEOPLE_TABLES_SQL
from annotator.store.schema.run_tables import RUN_TABLES_SQL
from annotator.store.schema.script import split_statements
from annotator.store.schema.triggers import TRIGGERS_SQL, build_implication_triggers


def step_001(db: Database) -> None:
    """Create all tables, indexes, views and triggers, and the rows of tables that always have one row."""
    scripts = (
        FILE_TABLES_SQL,
        CLASS_TABLES_SQL,
        LABEL_TABLES_SQL,
        PEOPLE_TABLES_SQL,
        IMPORT_TABLES_SQL,
        RUN_TABLES_SQL,
        TRIGGERS_SQL,
        *build_implication_triggers(),
    )
    for script in scripts:
        for statement in split_statements(script):
            db.execute(statement)
