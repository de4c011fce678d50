"""Derivation of labels for many images at once, with the results of a replay of each image.

SQL finds labels that are simply the newest answer. Votes and opinions do not replace another annotator's label,
so cells with such answers are left to derivation.rebuild_image.
"""

from collections.abc import Iterable, Mapping

import sqlite_utils

from annotator.store.database.database import get_newest_decision_id
from annotator.store.database.decision_sql import NOT_UNDONE_SQL
from annotator.store.labels.derivation import rebuild_image
from annotator.store.labels.sources import format_source_list


def build_replayed_sql(decision: str) -> str:
    """Return the SQL condition that a decision (its alias) is a vote or an opinion, which needs a replay."""
    return f"""({decision}.source IN {format_source_list(is_vote=True)}
        OR EXISTS (SELECT 1 FROM opinion WHERE decision_id = {decision}.id))"""


def insert_newest_answers(sql: sqlite_utils.Database, decisions: str, values: Mapping[str, object]) -> None:
    """Insert the labels of unlabeled cells from the newest active answer to each.

    Args:
        decisions: SQL from FROM on, with a WHERE, that selects decisions `d` about active classes.
        values: Its parameters.
    """
    sql.execute(
        f"""INSERT INTO label (image_id, class_id, state, decision_id)
        SELECT image_id, class_id, state, id FROM (
            SELECT d.image_id, d.class_id, d.state, d.action, max(d.id) AS id {decisions}
            AND d.action IN ('label', 'clear') AND {NOT_UNDONE_SQL} GROUP BY d.image_id, d.class_id
        ) WHERE action = 'label' ON CONFLICT DO NOTHING""",
        dict(values),
    )


def rebuild_images(sql: sqlite_utils.Database, image_ids: Iterable[int]) -> None:
    """Rebuild all data derived from decisions about these images."""
    newest = get_newest_decision_id(sql)
    for image_id in image_ids:
        rebuild_image(sql, image_id, newest)
