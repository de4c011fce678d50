"""What follows from decisions: a difference is found and named."""

import pytest
from harness.answers import answer_cell

from annotator.store.upkeep import consistency


@pytest.mark.parametrize(
    ("statement", "told"),
    [
        ("DELETE FROM label WHERE image_id = 1", "label: (1, 1, 1, 1) is missing"),
        ("UPDATE label SET state = -1 WHERE image_id = 1", "label: (1, 1, -1, 1) follows from nothing"),
        ("UPDATE image SET stage = 3 WHERE id = 2", "stage: (2, 3) follows from nothing"),
        ("UPDATE tally SET n = n + 1 WHERE kind = 'source'", "tally: ('source', 'click', '', 2) is missing"),
        ("INSERT INTO contradiction VALUES (1, 1, 1)", "contradiction: (1, 1) follows from nothing"),
    ],
)
def test_consistency_check_reports_tables_that_differ_from_the_decisions(db, statement, told):
    answer_cell(db, 1, 1)
    answer_cell(db, 2, 2, -1)
    assert consistency.find_problems(db) == []
    with db.writing() as sql:
        sql.execute(statement)
    assert told in consistency.find_problems(db)
