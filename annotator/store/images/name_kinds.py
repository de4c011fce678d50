"""Inexact kinds of name matching, for names that no image has exactly.

A kind matches only if it selects exactly one image:

    tail    the end of a path, or a longer path: "a/1.jpg" for "train/a/1.jpg" or the reverse
    stem    without extension: "1" or "1.png" for "1.jpg"
    case    case-insensitive
    url     decoded, without query and fragment: "https://host/a/1%202.jpg?v=3" for "a/1 2.jpg"
    file    the last part, in another folder: "img/1.jpg" for "images/1.jpg"

A name that is ambiguous in one kind is not tried in looser ones.
"""

from collections.abc import Sequence

import sqlite_utils

from annotator.errors import AnnotatorError, did_you_mean
from annotator.store.images import name_forms

MATCH_KINDS = ("name", "tail", "stem", "case", "url", "file")
"""The kinds in which a name may be found, the strictest first."""
KIND_DESCRIPTIONS = {
    "tail": "by a part of their path",
    "stem": "by their stem, without the ending",
    "case": "without regard to capitals",
    "url": "without query and encoding, as of an address",
    "file": "by their file name alone, in another folder",
}
MAX_TAIL_FOLDERS = 12  # largest number of folders with which the end of a name is tried as another name
NO_IMAGE_REASON = "no image of the project has this name"
SEVERAL_IMAGES_REASON = "several images have this name"
OTHER_FOLDER_REASON = "an image of this file name lies in another folder (--match file takes it): "

# The pairs of forms that are compared: of the name, and of what is known. Those of one line count together, because a
# name that differs by ending from one image and by capitals from another could be either.
_MATCH_PASSES: Sequence[tuple[str, Sequence[tuple[str, str]]]] = (
    ("tail", [("p", "p")]),
    ("stem", [("q", "q")]),
    ("stem", [("p", "s"), ("s", "s"), ("P", "P")]),
    ("case", [("P", "S"), ("S", "S")]),
    ("url", [("ap", "fp")]),
    ("url", [("aq", "fq")]),
    ("url", [("ap", "fs"), ("as", "fs"), ("aP", "fP")]),
    ("url", [("aP", "fS"), ("aS", "fS")]),
)
_FILE_NAME_PAIRS: Sequence[Sequence[tuple[str, str]]] = (
    [("p", "p"), ("p", "s")],
    [("P", "P"), ("P", "S")],
    [("ap", "fp"), ("ap", "fs")],
    [("aP", "fP"), ("aP", "fS")],
)
_CASELESS_FORMS = frozenset("PS")  # last letters of forms without regard to capitals


def check_match_kind(match: str | None) -> None:
    """Raise AnnotatorError for an unknown kind of matching, unless None."""
    if match is not None and match not in MATCH_KINDS:
        raise AnnotatorError(f"Names are not found by {match!r} (--match). {did_you_mean(match, MATCH_KINDS)}")


_CREATE_TABLES_SQL = (
    # names that are looked for, and their paths; image_id NULL: not found yet
    """CREATE TEMP TABLE sought (name TEXT PRIMARY KEY, path TEXT, image_id INTEGER, kind TEXT NOT NULL DEFAULT '',
    found TEXT, reason TEXT NOT NULL DEFAULT '') WITHOUT ROWID""",
    "CREATE TEMP TABLE loose (form TEXT PRIMARY KEY) WITHOUT ROWID",
    # known names that are like one of them in the loosest form
    "CREATE TEMP TABLE near (name TEXT NOT NULL, image_id INTEGER NOT NULL)",
    # in one pass: names that are looked for, and known ones, in the forms that are compared; pair: that of known ones
    "CREATE TEMP TABLE trial (pair TEXT, form TEXT, name TEXT, PRIMARY KEY (pair, form, name)) WITHOUT ROWID",
    """CREATE TEMP TABLE known (pair TEXT, form TEXT, low INTEGER, high INTEGER, found TEXT,
    PRIMARY KEY (pair, form)) WITHOUT ROWID""",
    "CREATE TEMP TABLE hit (name TEXT NOT NULL, low INTEGER, high INTEGER, found TEXT)",
    "CREATE INDEX temp.hit_by_name ON hit (name)",
)
_TABLE_NAMES = ("sought", "loose", "near", "trial", "known", "hit", "taken")
# Names for which the form of an address may differ from that of a path.
_IS_ADDRESS_LIKE_SQL = "(name GLOB '*[?#%:]*' OR name GLOB '/data/*' OR name GLOB '/tasks/*')"


def find_loosely(
    sql: sqlite_utils.Database,
    schema: str,
    open_: str,
    match: str | None,
    root_id: int | None,
    beside: Sequence[str],
) -> None:
    """Match names that are still unmatched to images, by inexact kinds of matching up to `match`.

    Args:
        open_: SQL condition that selects unmatched rows of `item`.
        match: Loosest kind allowed, or None for all.
        root_id: Folder of the table `original`, or None.
        beside: Paths ending in "/" next to the file that contains the names, tried first.
    """
    define_functions(sql)
    kinds = MATCH_KINDS[: MATCH_KINDS.index(match) + 1] if match else MATCH_KINDS
    open_ += " AND item.reason = ''"
    if len(kinds) == 1 or not sql.execute(f"SELECT 1 FROM {schema}.item WHERE {open_} LIMIT 1").fetchone():
        return
    try:
        for statement in _CREATE_TABLES_SQL:
            sql.execute(statement)
        sql.execute(f"INSERT OR IGNORE INTO temp.sought (name) SELECT name FROM {schema}.item WHERE {open_}")
        _collect_similar_names(sql, schema, root_id)
        may_be_address = sql.execute(
            f"""SELECT EXISTS (SELECT 1 FROM temp.sought WHERE {_IS_ADDRESS_LIKE_SQL})
                OR EXISTS (SELECT 1 FROM temp.near WHERE instr(name, '%'))"""
        ).fetchone()[0]
        passes = [
            (kind, [pair for pair in pairs if "case" in kinds or pair[0][-1] not in _CASELESS_FORMS])
            for kind, pairs in _MATCH_PASSES
            if kind in kinds and (kind != "url" or may_be_address)
        ]
        for path in beside:
            sql.execute("UPDATE temp.sought SET path = ? || name WHERE image_id IS NULL AND reason = ''", [path])
            for kind, pairs in passes:
                _run_pass(sql, kind, pairs, is_whole=True)
        sql.execute("UPDATE temp.sought SET path = name")
        for kind, pairs in passes:
            _run_pass(sql, kind, pairs)
        _find_by_file_name(sql, schema, match)
        sql.execute(
            f"""UPDATE {schema}.item SET (image_id, kind, found, reason) = (
                SELECT image_id, kind, found, reason FROM temp.sought s WHERE s.name = item.name) WHERE {open_}"""
        )
    finally:
        for name in _TABLE_NAMES:
            sql.execute(f"DROP TABLE IF EXISTS temp.{name}")


def _collect_similar_names(sql: sqlite_utils.Database, schema: str, root_id: int | None) -> None:
    for loose in ("loose(name)", "loose_whole(name)"):
        sql.execute(f"INSERT OR IGNORE INTO temp.loose SELECT {loose} FROM temp.sought")
        address = loose.replace("name", "form('ap', name)")
        sql.execute(f"INSERT OR IGNORE INTO temp.loose SELECT {address} FROM temp.sought WHERE {_IS_ADDRESS_LIKE_SQL}")
    sql.execute("DELETE FROM temp.loose WHERE form = ''")
    sql.execute(
        f"""INSERT INTO temp.near SELECT name, id FROM (
            SELECT name, id FROM image
            UNION ALL SELECT path, image_id FROM file f WHERE image_id NOT NULL
                AND NOT EXISTS (SELECT 1 FROM image i WHERE i.id = f.image_id AND i.name = f.path)
            UNION ALL SELECT path, number FROM {schema}.coming
            UNION ALL SELECT o.name, coalesce(f.image_id, n.number) FROM {schema}.original o
                LEFT JOIN file f ON f.folder_id = ? AND f.path = o.path LEFT JOIN {schema}.coming n ON n.path = o.path)
        WHERE id NOT NULL AND loose(name) IN (SELECT form FROM temp.loose)""",
        [root_id],
    )


def _run_pass(
    sql: sqlite_utils.Database, kind: str, pairs: Sequence[tuple[str, str]], *, is_whole: bool = False
) -> None:
    """Match names by one kind: equal normal forms first, then, unless `is_whole`, the longest common path end."""
    if not _fill_compared_forms(sql, pairs):
        return
    same = "JOIN temp.known k ON k.pair = t.pair AND k.form = "
    sql.execute(f"INSERT INTO temp.hit SELECT t.name, k.low, k.high, k.found FROM temp.trial t {same} t.form")
    _record_hits(sql, kind)
    if is_whole:
        return
    depths = [row[0] for row in sql.execute("SELECT DISTINCT depth(form) FROM temp.trial ORDER BY 1")]
    for folders in range(min(max(depths, default=0), MAX_TAIL_FOLDERS) - 1, -1, -1):
        sql.execute(
            f"""INSERT INTO temp.hit SELECT t.name, k.low, k.high, k.found
            FROM temp.trial t {same} tail(t.form, {folders})
            WHERE depth(t.form) > {folders} AND t.name NOT IN (SELECT name FROM temp.hit)"""
        )
    for folders in [number for number in depths if number <= MAX_TAIL_FOLDERS]:
        sql.execute(
            f"""INSERT INTO temp.hit SELECT t.name, e.low, e.high, e.found FROM (
                SELECT pair, tail(form, {folders}) AS part, min(low) AS low, max(high) AS high, min(found) AS found
                FROM temp.known WHERE depth(form) > {folders} GROUP BY 1, 2) e
            JOIN temp.trial t ON t.pair = e.pair AND t.form = e.part"""
        )
    _record_hits(sql, kind)


def _fill_compared_forms(sql: sqlite_utils.Database, pairs: Sequence[tuple[str, str]], part: str = "{}") -> bool:
    """Fill the temporary tables with the normal forms that one pass compares. Return False if one stays empty."""
    sql.execute("DELETE FROM temp.trial")
    sql.execute("DELETE FROM temp.known")
    for ours, theirs in pairs:
        sql.execute(
            f"""INSERT OR IGNORE INTO temp.trial SELECT '{theirs}', {part.format(f"form('{ours}', path)")} AS form, name
            FROM temp.sought WHERE image_id IS NULL AND reason = '' AND form != ''"""
        )
    if not sql.execute("SELECT 1 FROM temp.trial LIMIT 1").fetchone():
        return False
    for theirs in dict.fromkeys(theirs for _, theirs in pairs):
        sql.execute(
            f"""INSERT INTO temp.known SELECT '{theirs}', {part.format(f"form('{theirs}', name)")} AS form,
                min(image_id), max(image_id), min(name) FROM temp.near WHERE form != '' GROUP BY 2"""
        )
    return sql.execute("SELECT 1 FROM temp.known LIMIT 1").fetchone() is not None


def _record_hits(sql: sqlite_utils.Database, kind: str) -> None:
    said = "iif(differ_in_ending(sought.name, h.found), 'stem', 'case')" if kind == "stem" else f"'{kind}'"
    sql.execute(
        f"""UPDATE temp.sought SET image_id = iif(h.low = h.high, h.low, NULL), kind = iif(h.low = h.high, {said}, ''),
            found = iif(h.low = h.high, h.found, NULL), reason = iif(h.low = h.high, '', ?)
        FROM (SELECT name, min(low) AS low, max(high) AS high, min(found) AS found FROM temp.hit GROUP BY name) h
        WHERE h.name = sought.name""",
        [SEVERAL_IMAGES_REASON],
    )
    sql.execute("DELETE FROM temp.trial WHERE name IN (SELECT name FROM temp.hit)")
    sql.execute("DELETE FROM temp.hit")


def _find_by_file_name(sql: sqlite_utils.Database, schema: str, match: str | None) -> None:
    """Match names by a unique file name, unless the folders suggest another image."""
    sql.execute("UPDATE temp.sought SET path = iif(depth(form('ap', name)) = 0, '', name) WHERE image_id IS NULL")
    for pairs in _FILE_NAME_PAIRS:
        if not _fill_compared_forms(sql, pairs, "file_name({})"):
            continue
        sql.execute(
            """INSERT INTO temp.hit SELECT t.name, k.low, k.high, k.found FROM temp.trial t
            JOIN temp.known k ON k.pair = t.pair AND k.form = t.form"""
        )
        # Where several images have it, the name is simply unknown: no image lies where it says.
        sql.execute(
            """UPDATE temp.sought SET image_id = h.low, kind = 'file', found = h.found FROM (
                SELECT name, min(low) AS low, min(found) AS found FROM temp.hit GROUP BY name
                HAVING min(low) = max(high)) h WHERE h.name = sought.name"""
        )
        sql.execute("DELETE FROM temp.hit")
    if not sql.execute("SELECT 1 FROM temp.sought WHERE kind = 'file' LIMIT 1").fetchone():
        return
    of_others = f"""image_id IN (SELECT image_id FROM {schema}.item WHERE image_id NOT NULL)
        OR image_id IN (SELECT image_id FROM temp.sought WHERE kind NOT IN ('', 'file'))"""
    twice = "image_id IN (SELECT image_id FROM temp.sought WHERE kind = 'file' GROUP BY 1 HAVING count(*) > 1)"
    doubts = ["0" if match in (None, "file") else "1", of_others, twice]
    if match != "file":
        sql.execute("CREATE TEMP TABLE taken (folder TEXT PRIMARY KEY) WITHOUT ROWID")
        sql.execute(
            f"""INSERT OR IGNORE INTO temp.taken SELECT folder_of(coalesce(x.found, m.name, n.path))
            FROM {schema}.item x LEFT JOIN image m ON m.id = x.image_id
            LEFT JOIN {schema}.coming n ON n.number = x.image_id WHERE x.image_id NOT NULL
            UNION SELECT folder_of(found) FROM temp.sought WHERE kind NOT IN ('', 'file')"""
        )
        doubts += [
            "folder_of(found) IN (SELECT folder FROM temp.taken)",
            "NOT may_be_one_folder(name, found)",
        ]
    sql.execute(
        f"""UPDATE temp.sought SET image_id = NULL, kind = '', reason = ? || '''' || found || '''', found = NULL
        WHERE kind = 'file' AND ({" OR ".join(doubts)})""",
        [OTHER_FOLDER_REASON],
    )


def define_functions(sql: sqlite_utils.Database) -> None:
    """Make the functions of name_forms.py callable in SQL."""
    for name, function in _SQL_FUNCTIONS.items():
        sql.conn.create_function(name, function.__code__.co_argcount, function, deterministic=True)


_SQL_FUNCTIONS = {
    "tail": name_forms.get_tail,
    "depth": name_forms.count_folders,
    "normalized": name_forms.normalize_unicode,
    "form": name_forms.to_form,
    "loose": name_forms.to_loose_form,
    "loose_whole": name_forms.to_loose_whole_form,
    "joined": name_forms.join_path,
    "file_name": name_forms.get_file_name,
    "folder_of": name_forms.get_folder,
    "may_be_one_folder": name_forms.may_be_one_folder,
    "differ_in_ending": name_forms.differs_in_ending,
}
