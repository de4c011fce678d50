"""What a staged source becomes: equal to deciding row by row, previewed exactly, taken back without a trace."""

import random
import uuid

import pytest
from harness.tables import over
from hypothesis import HealthCheck, Phase, given, settings
from hypothesis import strategies as st

from annotator.errors import AnnotatorError
from annotator.exchange.files.problems import Problems
from annotator.exchange.formats.contents import ImportedLabel, Item, Remark
from annotator.records import Decision
from annotator.store.classes import class_changes, classes
from annotator.store.database.database import Database
from annotator.store.gallery.image_history import load_image_history
from annotator.store.images.images import load_missing_reasons
from annotator.store.imports import import_changes, past_imports, staged_cells, staging
from annotator.store.imports.commit import ImportResult, ImportSource, commit_import
from annotator.store.imports.staged_cells import ImportPreview
from annotator.store.imports.staged_names import NameRules, resolve_names
from annotator.store.imports.staging import Staging
from annotator.store.labels import decisions, export_reads, project_counts
from annotator.store.labels.comments import load_comments
from annotator.store.upkeep import consistency

CLASSES = ("fox", "heron", "deer")
COMPARED = {
    "label": "SELECT image_id, class_id, state, decision_id FROM label",
    "stage": "SELECT id, stage, stage_decision FROM image",
    "tally": "SELECT kind, one, two, n FROM tally WHERE n != 0 AND kind != 'hour'",
    "contradiction": "SELECT image_id, class_id, decision_id FROM contradiction",
    "accepted": "SELECT image_id, class_id, state FROM accepted",
    "decision": "SELECT id, action, image_id, class_id, state, note, source, annotator FROM decision",
}


def small(folder, images: int = 6) -> Database:
    """A project of images that nobody has to read."""
    db = Database(folder, create=True)
    with db.writing() as sql:
        sql.execute("INSERT INTO folder (path) VALUES ('/photos')")
        sql.conn.executemany(
            "INSERT INTO image (name, sha256, width, height) VALUES (?, ?, 9, 9)",
            [(f"{number % 2}/{number}.jpg", f"{number:064x}") for number in range(1, images + 1)],
        )
        sql.execute(
            "INSERT INTO file (folder_id, path, bytes, modified_ns, image_id) SELECT 1, name, 1, 1, id FROM image"
        )
    classes.add_classes(db, [(name, "") for name in CLASSES])
    return db


def bring(
    db: Database, items, listed=CLASSES, rules: NameRules | None = None, **how
) -> tuple[ImportPreview, ImportResult]:
    """Stage items and store them."""
    problems = Problems()
    with Staging(db.paths.project, problems.add) as staged:
        staged.add_classes([(name, "") for name in listed])
        staged.add(items)
        resolve_names(staged, db, rules or NameRules({}), problems.add)
        staged_cells.build(staged, db, problems.add)
        preview = staged_cells.compute_preview(staged, db)
        assert not problems.count, problems.sentences
        return preview, commit_import(staged, db, ImportSource("source", "test", "Ann"), **how)


def wrong(db: Database, items, **rules) -> list[str]:
    """What is wrong with items."""
    problems = Problems()
    with Staging(db.paths.project, problems.add) as staged:
        staged.add(items)
        resolve_names(staged, db, NameRules({}, **rules), problems.add)
        staged_cells.build(staged, db, problems.add)
    return problems.sentences


def tables(db: Database) -> dict[str, list[tuple]]:
    return {name: sorted(db.tuples(query), key=repr) for name, query in COMPARED.items()}


def lived_in(db: Database, play: random.Random) -> None:
    """Answers of two people, some taken back or cleared, some auto-accepted cells."""
    with db.writing() as sql:
        sql.execute(
            """INSERT INTO acceptance (id, batch, class_id, state, run_id, threshold, precision, confidence, audited,
            wrong, made_at) VALUES (1, 'a', 1, 1, 1, .5, .9, .9, 1, 0, 1)"""
        )
        for image_id in range(1, 7):
            sql.execute("INSERT INTO accepted VALUES (?, 1, 1, 1, .9, NULL)", [image_id])
    decide_at_random(db, play)


def decide_at_random(db: Database, play: random.Random) -> None:
    for _ in range(play.randrange(12)):
        action = play.choice(["label"] * 6 + ["done", "skip", "clear", "undo"])
        by, image_id = play.choice(["Ann", "Bob"]), play.randint(1, 6)
        class_id = play.randint(1, 3) if action in ("label", "clear") else None
        state = play.choice([1, -1, 0]) if action == "label" else None
        one = Decision(str(uuid.UUID(int=play.getrandbits(128))), action, by, "click", image_id, class_id, state)
        if action == "undo":
            one = Decision(one.uuid, "undo", by, "click")
        decisions.save(db, [one])


def source_of(play: random.Random) -> list[Item]:
    """Items that contradict neither themselves nor each other."""
    items = []
    for number in play.sample(range(1, 7), play.randint(1, 6)):
        given = [ImportedLabel(name, play.choice([1, -1, 0])) for name in CLASSES if play.random() < 0.5]
        items.append(Item(f"{number % 2}/{number}.jpg", number, given, exhaustive=play.random() < 0.5))
    return items


def one_by_one(db: Database, items: list[Item], listed: list[str], replace: bool) -> None:
    """The same through decisions.decide."""
    ids = {class_.name: class_.id for class_ in classes.load_active_classes(db)}
    held = {(image_id, class_id): state for image_id, class_id, state in decisions.load_label_cells(db)[0]}
    sources = {(row[0], row[1]): row[2] for row in db.tuples(
        "SELECT l.image_id, l.class_id, d.source FROM label l JOIN decision d ON d.id = l.decision_id")}  # fmt: skip
    assert "import" not in sources.values()
    covers = set(listed) == ids.keys()
    explicit, rest, done = [], [], []
    for item in sorted(items, key=lambda item: int(item.place)):
        image_id = int(item.place)
        said = {ids[given.class_name]: given.state for given in item.labels}
        implied = {ids[name]: -1 for name in listed if ids[name] not in said} if item.exhaustive else {}
        for class_id, state in said.items() if covers else sorted((said | implied).items()):
            before = held.get((image_id, class_id))
            if before is None or (replace and before != state):
                explicit.append(("label", image_id, class_id, state))
        if item.exhaustive and covers:
            rest += [("label", image_id, class_id, -1) for class_id in sorted(implied)
                     if replace and held.get((image_id, class_id), -1) != -1]  # fmt: skip
            if any((image_id, class_id) not in held for class_id in implied):
                done.append(("done", image_id, None, None))
    for action, image_id, class_id, state in [*sorted(explicit, key=lambda one: one[:3]), *rest, *done]:
        decisions.save(db, [Decision(str(uuid.uuid4()), action, "import", "import", image_id, class_id, state)])
    with db.writing() as sql:  # decide() calls every "nothing else here" a person's
        sql.execute("UPDATE decision SET source = 'import' WHERE action = 'done' AND annotator = 'import'")
        for source, sign in (("done", -1), ("import", 1)):
            sql.execute(
                """INSERT INTO tally VALUES ('source', ?, '', ?)
                ON CONFLICT (kind, one, two) DO UPDATE SET n = n + excluded.n""",
                [source, sign * len(done)],
            )


@over(seed=range(20))
def test_prepared_import_updated_after_new_decisions_equals_one_prepared_after_them(tmp_path_factory, seed):
    play = random.Random(seed)
    db = small(tmp_path_factory.mktemp("seed"))
    lived_in(db, play)
    over_ = play.choice(["0", staged_cells.IS_BY_PERSON_SQL])
    problems = Problems()
    with Staging(db.paths.project, problems.add) as staged:
        staged.add_classes([(name, "") for name in (CLASSES if seed % 3 else CLASSES[:2])])
        staged.add(source_of(play))
        resolve_names(staged, db, NameRules({}), problems.add)
        staged_cells.build(staged, db, problems.add)
        seen = []
        with staged.attach(db) as sql:
            for again in (False, True):
                changes = import_changes.prepare(sql, db, over_)
                if not again:
                    decide_at_random(db, play)
                    import_changes.recompute_touched(sql, changes)
                rows = sql.execute("SELECT image_id, target, state, held, given FROM staged.change").fetchall()
                sums = {name: value for name, value in vars(changes).items() if name != "labels"}
                seen.append((sorted(rows, key=repr), sums, +changes.labels, -changes.labels))
    assert seen[0] == seen[1]


@over(seed=range(20))
def test_import_equals_row_by_row_decisions_and_undo_restores_the_labels(tmp_path_factory, seed):
    play = random.Random(seed)
    folder = tmp_path_factory.mktemp("seed")
    db, other = small(folder / "one"), small(folder / "two")
    for each in (db, other):
        lived_in(each, random.Random(seed))
    before = tables(db)
    items, replace = source_of(play), play.random() < 0.5
    listed = list(CLASSES) if seed % 3 else [name for name in CLASSES if any(name in dict.fromkeys(
        given.class_name for given in item.labels) for item in items)]  # fmt: skip
    preview, done = bring(db, items, listed, replace=replace)
    one_by_one(other, items, listed, replace)
    assert tables(db) == tables(other)
    answers = preview.answers_new + (preview.conflicts_with_people.count if replace else 0)
    changed = set(tables(db)["label"]) - set(before["label"])
    assert answers == len(changed) and done.replaced == (preview.conflicts_with_people.count if replace else 0)
    again, nothing = bring(db, items, listed, replace=replace)
    assert (again.answers_new, nothing.answers, nothing.completed) == (0, 0, 0), "importing it again changes nothing"
    if replace:
        assert not again.has_changes
    past_imports.undo(db, done.id, "Ann")
    assert not consistency.find_problems(db)
    after = tables(db)
    for name in ("label", "contradiction"):
        assert after[name] == before[name], name
    assert {row[:2] for row in after["stage"]} == {row[:2] for row in before["stage"]}


STATE_OF_ALL = {
    "label": "SELECT i.name, c.name, l.state FROM label l JOIN image i ON i.id = l.image_id "
             "JOIN class c ON c.id = l.class_id",
    "stage": "SELECT name, stage FROM image WHERE problem = ''",
    "class": "SELECT name FROM class WHERE archived = 0",
    "tally": "SELECT kind, one, two, n FROM tally WHERE n != 0 AND kind IN ('label', 'stage', 'annotator')",
    "attribute": "SELECT image_id, name, value FROM attribute",
    "rest": "SELECT count(*) FROM attribute_before",
}  # fmt: skip


def lived(db: Database, steps: list[tuple], rests: list[int]) -> tuple:
    """What a project is like after these steps, and after all imports of them are taken back. None of them is "nothing
    else here": it answers the classes that are open when it is said, which an import changes.

    rests    whose turn it is to be taken back, of those that are left
    """
    at_work: list[int] = []
    for number, (kind, image_id, class_id, state, replace) in enumerate(steps):
        name, uuid_ = f"{image_id % 2}/{image_id}.jpg", f"decision-{number}"
        if kind == "import":
            facts = {"split": f"part {number % 3}"}
            remarks = [Remark("flag", f"flag {number}", "Eve", 5.0)]
            item = Item(name, 1, [ImportedLabel([*CLASSES, "owl"][class_id - 1], state)], state == 1, attributes=facts,
                        remarks=remarks)  # fmt: skip
            _, done = bring(db, [item], CLASSES if replace else (), replace=replace, new_images=[6] * (image_id == 6))
            at_work.append(done.id)
        elif kind == "take back":
            if at_work:
                past_imports.undo(db, at_work.pop(rests[number] % len(at_work)), "Ann")
        elif kind == "undo":
            decisions.save(db, [Decision(uuid_, "undo", "Ann", "click")])
        elif kind == "flag":
            decisions.save(db, [Decision(uuid_, "flag", "Ann", "click", image_id, note=f"Ann's {number}")])
        else:
            decisions.save(db, [Decision(uuid_, "label", "Ann", "click", image_id, min(class_id, 3), state)])
    for number in rests:
        if at_work:
            past_imports.undo(db, at_work.pop(number % len(at_work)), "Ann")
    assert not at_work and not consistency.find_problems(db)
    state = {name: sorted(db.tuples(query), key=repr) for name, query in STATE_OF_ALL.items()}
    return state, project_counts.load_flag_notes(db, list(range(1, 7)))


KINDS = ["import"] * 4 + ["take back", "label", "label", "undo", "flag"]
STEP = st.tuples(
    st.sampled_from(KINDS), st.sampled_from([1, 2, 6]), st.integers(1, 4), st.sampled_from([1, -1, 0]), st.booleans()
)


@settings(max_examples=15, deadline=None, derandomize=True, phases=[Phase.generate],
          suppress_health_check=[HealthCheck.function_scoped_fixture])  # fmt: skip
@given(st.lists(STEP, max_size=8), st.lists(st.integers(0, 7), min_size=8, max_size=8))
def test_undoing_all_imports_in_any_order_equals_never_importing(tmp_path_factory, steps, rests):
    folder = tmp_path_factory.mktemp("lives")
    with_imports, notes = lived(small(folder / "one"), steps, rests)
    people = [step if step[0] not in ("import", "take back") else ("take back", *step[1:]) for step in steps]
    without, without_notes = lived(small(folder / "two"), people, rests)
    if any(
        step[:2] == ("import", 6) for step in steps
    ):  # the image is asked about while somebody has decided something
        without["stage"] = [row for row in without["stage"] if row[0] != "0/6.jpg" or row in with_imports["stage"]]
    assert (with_imports, notes) == (without, without_notes)


def test_import_stores_provenance_fields_and_comments_and_undo_removes_them(tmp_path):
    db = small(tmp_path)
    decisions.save(db, [Decision("flag-one", "flag", "Ann", "click", 1, note="look")])
    items = [
        Item("1/1.jpg", 1, [ImportedLabel("fox", 1, "Bob", 12.5, "click"), ImportedLabel("owl", 0)],
             attributes={"split": "train"},
             remarks=[Remark("comment", "dark", "Bob", 3.0), Remark("flag", "blurred"), Remark("comment", "dark")]),
        Item("2.jpg", 2, [ImportedLabel("owl", -1)]),
    ]  # fmt: skip
    preview, done = bring(db, items, ())
    assert [(one.name, one.how) for one in preview.classes] == [("fox", "known"), ("owl", "new")]
    assert (done.answers, done.classes, done.attributes, done.remarks) == (3, ["owl"], 1, 1), "Ann's flag stays"
    origins = (
        "SELECT d.class_id, o.source, o.annotator, o.decided_at FROM origin o JOIN decision d ON d.id = o.decision_id"
    )
    assert db.tuples(f"{origins} ORDER BY d.id") == [(1, "click", "Bob", 12.5), (None, "", "Bob", 3.0)]
    assert export_reads.load_attributes(db, [1]) == [(1, "split", "train")]
    assert [(row["note"], row["annotator"], row["at"]) for row in load_comments(db)] == [("dark", "Bob", 3.0)]
    assert [event.origin for event in load_image_history(db, 1)] == [
        None, ("Bob", "click", 12.5), None, ("Bob", "", 3.0)
    ]  # fmt: skip
    undone = past_imports.undo(db, done.id, "Ann")
    assert (undone.archived, undone.attributes, load_comments(db)) == (["owl"], 1, [])
    assert [one.name for one in classes.load_active_classes(db)] == list(CLASSES)
    with pytest.raises(AnnotatorError, match="taken back already, by Ann"):
        past_imports.undo(db, done.id, "Ann")
    again, redone = bring(db, items, ())
    assert [one.how for one in again.classes] == ["known", "restored"] and redone.answers == 3
    assert [one.name for one in classes.load_active_classes(db)] == [*CLASSES, "owl"]
    decisions.save(db, [Decision("later-one", "label", "Ann", "click", 3, 4, 1)])
    assert past_imports.undo(db, redone.id, "Ann").kept == ["owl"], "somebody else uses it"
    assert not consistency.find_problems(db)


def test_undo_of_an_import_is_refused_after_a_merge_of_its_class(tmp_path):
    db = small(tmp_path)
    _, done = bring(db, [Item("1.jpg", 1, [ImportedLabel("fox", 1)])])
    class_changes.merge(db, "Ann", [1], 2, same=True)
    with pytest.raises(AnnotatorError, match="'fox' was merged"):
        past_imports.undo(db, done.id, "Ann")


NAMES = {  # name in the source -> image id, None where it names none
    "1/1.jpg": 1, "./1/1.jpg": 1, " 1/1.jpg ": 1, "1\\1.jpg": 1, "/photos/1/1.jpg": 1, "1.jpg": 1, "x/1/1.jpg": 1,
    "cafe\u0301.jpg": 2, "\u00f6.jpg": 2, "n\u00e4h.jpg": 4,  # the other form
    "2/1.jpg": None, "11.jpg": None, "/elsewhere/1.jpeg": None, "former.jpg": 2, "1/": None, "..": None,
}  # fmt: skip


@over(name=list(NAMES))
def test_image_name_resolves_to_the_only_image_it_can_mean(tmp_path_factory, name):
    db = small(tmp_path_factory.mktemp("names"))
    with db.writing() as sql:
        for alias in ("former.jpg", "caf\u00e9.jpg", "o\u0308.jpg"):
            sql.execute("INSERT INTO alias (name, image_id) VALUES (?, 2)", [alias])
        sql.execute("UPDATE file SET path = 'far/na\u0308h.jpg' WHERE image_id = 4")
    preview, _ = bring(db, [Item(name, 1, [ImportedLabel("fox", 1)])])
    assert db.tuples("SELECT image_id FROM label") == ([(NAMES[name],)] if NAMES[name] else [])
    assert preview.images_unknown.count == (NAMES[name] is None)


def test_import_matches_no_image_for_an_ambiguous_name_or_a_different_content_hash(tmp_path):
    db = small(tmp_path)
    with db.writing() as sql:
        sql.execute("UPDATE image SET name = 'a/same.jpg' WHERE id = 3")
        sql.execute("UPDATE image SET name = 'b/same.jpg' WHERE id = 4")
        sql.execute("DELETE FROM file")
    assert "several images have this name" in wrong(db, [Item("same.jpg", 7, [ImportedLabel("fox", 1)])])[0]
    both = wrong(db, [Item("x/1/1.jpg", 1, [ImportedLabel("fox", 1)]), Item("y/1/1.jpg", 2, [ImportedLabel("fox", 1)])])
    assert both == ["line 2: 'y/1/1.jpg' and 'x/1/1.jpg' (line 1) could both be the image '1/1.jpg'; give names that "
                    "tell them apart, or only exact ones (--match name)"]  # fmt: skip
    other = [
        Item("1/1.jpg", 1, [ImportedLabel("fox", 1)], sha256="f" * 64),
        Item("no.jpg", 2, [ImportedLabel("fox", 1)], sha256=f"{2:064X}"),
    ]
    preview, _ = bring(db, other)
    assert "another content" in preview.images_unknown.examples[0]
    assert db.tuples("SELECT image_id FROM label") == [(2,)], "a content is an image, whatever it is called"


def test_import_resolves_class_names_by_map_synonym_and_case_and_reports_how(tmp_path):
    db = small(tmp_path)
    class_changes.edit(db, "Ann", {2: {"synonyms": ["egret"]}})
    class_changes.archive(db, "Ann", [3])
    items = [Item("1.jpg", 1, [ImportedLabel(name, 1) for name in ("FOX ", "egret", "Reh", "noise")])]
    preview, _ = bring(db, items, (), NameRules({"Reh": "roe deer", "noise": ""}))
    assert [(one.target, one.how) for one in preview.classes] == [
        ("fox", "alike"), ("heron", "synonym"), ("roe deer", "mapped"), ("", "left out"),
    ]  # fmt: skip
    assert preview.left_out == 1 and len(db.tuples("SELECT * FROM label")) == 3
    unclear = [Item("1.jpg", 5, [ImportedLabel("deer", 1), ImportedLabel("a|b", 1), ImportedLabel("fox", -1)])]
    assert wrong(db, unclear, strict=True, listed=["a|b"])[0].startswith("the class 'deer' is archived")
    preview, _ = bring(db, unclear)
    assert preview.unclear.keys() == {"deer", "a|b"} and preview.left_out == 2, (
        "no answer until it is said what they are"
    )
    assert preview.unclear["a|b"].startswith("line 5: not usable as a class: 'a|b' contains")
    mapped = NameRules({"a": "fox", "b": "fox"})
    bring(db, [Item("3.jpg", 1, [ImportedLabel("a", -1), ImportedLabel("b", 1)])], (), mapped)
    assert (3, 1, 1) in decisions.load_label_cells(db)[0], "of several classes mapped to one, present holds"


def test_import_refuses_contradictory_answers_of_one_image_unless_times_show_the_newer(tmp_path):
    db = small(tmp_path)
    twice = [Item("1.jpg", 3, [ImportedLabel("fox", 1)]), Item("1/1.jpg", 9, [ImportedLabel("fox", -1)])]
    told = "line 9: 'fox' is absent on '1/1.jpg', but present on '1.jpg' (line 3), which is the same picture"
    assert told in wrong(db, twice)
    timed = [
        Item("2.jpg", 1, [ImportedLabel("fox", 1, "Ann", 9.0)]),
        Item("2.jpg", 2, [ImportedLabel("fox", -1, "Bob", 8.0)]),
    ]
    bring(db, timed)
    assert decisions.load_label_cells(db)[0] == [(2, 1, 1)]


def test_model_or_assumed_labels_are_not_imported_as_answers_even_when_exhaustive(tmp_path):
    db = small(tmp_path)
    items = [
        Item("1.jpg", 1, [ImportedLabel("fox", 1)], exhaustive=True),
        Item("1.jpg", 2, [ImportedLabel("heron", -1, source="assumed"), ImportedLabel("fox", 1, "Bob", 1.0, "click")]),
    ]
    preview, _ = bring(db, items)
    assert preview.filled == 1
    assert sorted(decisions.load_label_cells(db)[0]) == [(1, 1, 1), (1, 3, -1)]


BAD = {
    "lone surrogate": Item("\udce9.jpg", 1),
    "no name": Item("", 1),
    "outside": Item("a.jpg", 1, file="../../etc/passwd"),
    "absolute": Item("a.jpg", 1, file="/etc/passwd"),
    "drive": Item("a.jpg", 1, file="C:\\a.jpg"),
    "state": Item("1.jpg", 1, [ImportedLabel("fox", 7)]),
    "time": Item("1.jpg", 1, [ImportedLabel("fox", 1, "Ann", float("nan"))]),
    "milliseconds": Item(
        "1.jpg", 1, [ImportedLabel("fox", 1, "Ann", 1.7e12)]
    ),  # of the year 55840, which no file can hold
    "score": Item("1.jpg", 1, scores={"fox": float("inf")}),
    "attribute": Item("1.jpg", 1, attributes={"x" * 300: "y"}),
    "comment": Item("1.jpg", 1, remarks=[Remark("comment", "x" * 3000)]),
    "written in milliseconds": Item("1.jpg", 1, remarks=[Remark("comment", "x", "Ann", 1.7e12)]),
    "kind": Item("1.jpg", 1, remarks=[Remark("shout", "x")]),
}


@over(kind=list(BAD))
def test_import_reports_the_line_of_an_entry_that_cannot_be_stored(tmp_path_factory, kind):
    db = small(tmp_path_factory.mktemp("bad"))
    sentences = wrong(db, [BAD[kind], Item("1.jpg", 2, [ImportedLabel("fox", 1)])])
    assert len(sentences) == 1 and sentences[0].startswith("line 1: "), sentences


def test_staging_file_is_private_deleted_after_use_and_swept_after_a_kill(tmp_path):
    left = tmp_path / "import-1-abc.staging"
    left.touch()
    with Staging(tmp_path, print) as staged:
        assert not left.exists() and staged.path.stat().st_mode & 0o777 == 0o600
        staging.remove_stale_files(tmp_path)
        assert staged.path.exists(), "one that is in use stays"
    assert not list(tmp_path.iterdir())


def test_undo_of_an_import_hides_its_images_without_later_answers(tmp_path):
    db = small(tmp_path)
    _, done = bring(db, [Item("1.jpg", 1, [ImportedLabel("fox", 1)])], new_images=[1, 2, 3])
    decisions.save(db, [Decision("answer-two", "label", "Ann", "click", 2, 1, 1)])
    undone = past_imports.undo(db, done.id, "Ann")
    assert (undone.images, undone.images_kept) == (2, 1)
    assert load_missing_reasons(db) == {1: "taken back with import 1", 3: "taken back with import 1"}
