"""Classes keep their keys: they are given once, and move only when somebody moves them."""

import pytest

from annotator.errors import AnnotatorError
from annotator.store.classes import change_descriptions, class_changes, class_history, classes


def keys(db) -> dict[str, str]:
    return {one.name: one.key for one in classes.load_active_classes(db)}


def set_keys(db, given: dict[int, str]) -> None:
    class_changes.edit(db, "Ann", {class_id: {"key": key} for class_id, key in given.items()})


def test_new_classes_get_the_first_free_keys_and_none_when_all_are_taken(db):
    assert keys(db) == {"fox": "1", "heron": "2", "deer": "3"}
    set_keys(db, {2: "", 3: "q"})
    classes.add_classes(db, [(f"class {number}", "") for number in range(40)])
    given = keys(db)
    assert (given["fox"], given["heron"], given["deer"]) == ("1", "", "q"), "those that had theirs keep them"
    assert (given["class 0"], given["class 1"], given["class 2"]) == ("2", "3", "4")
    assert sorted(key for key in given.values() if key) == sorted(classes.DEFAULT_KEYS)
    assert given["class 39"] == ""


def test_two_classes_can_swap_keys_and_capital_keys_become_lowercase(db):
    set_keys(db, {1: "2", 2: "1", 3: "Q"})
    assert keys(db) == {"fox": "2", "heron": "1", "deer": "q"}


def test_class_keys_accept_letters_of_other_alphabets(db):
    set_keys(db, {1: "Ä", 2: "ж"})
    assert keys(db)["fox"] == "ä" and keys(db)["heron"] == "ж"


def test_invalid_class_keys_are_listed_together_and_change_nothing(db):
    before = keys(db)
    with pytest.raises(AnnotatorError) as told:
        set_keys(db, {1: "/", 2: "ab", 3: "x"})
    text = str(told.value)
    assert "'/' of 'fox'" in text and "punctuation belongs to commands" in text
    assert "'ab' of 'heron'" in text
    with pytest.raises(AnnotatorError, match="'x' is given to 'fox' and 'deer': a key belongs to one class"):
        set_keys(db, {1: "x", 3: "x"})
    assert keys(db) == before


@pytest.mark.slow
@pytest.mark.parametrize(
    "name", ["image", "a|b", "a\x07b", "a\nb", "a\x7fb", "a\x9b31mb", "a\u2028b", "x" * 201, "\ud800", " fox", ""]
)
def test_class_names_with_control_characters_or_invalid_length_are_refused(db, name):
    with pytest.raises(AnnotatorError):
        classes.add_classes(db, [("owl", ""), (name, "")])
    assert "owl" not in keys(db), "nothing is added when anything is refused"


def test_class_descriptions_over_the_limit_are_refused_when_adding_and_editing(db):
    for change in (
        lambda: classes.add_classes(db, [("owl", "x" * 2001), ("bat", "\ud800")]),
        lambda: class_changes.edit(db, "Ann", {1: {"description": "x" * 2001}, 2: {"description": "\ud800"}}),
    ):
        with pytest.raises(AnnotatorError) as told:
            change()
        assert "2,001 letters; at most 2,000" in str(told.value) and "half a letter" in str(told.value)
    assert set(keys(db)) == {"fox", "heron", "deer"}
    class_changes.edit(db, "Ann", {1: {"description": "x" * 2000}})


@pytest.mark.parametrize(
    ("new", "known", "told"),
    [
        (["Fox"], ["fox"], ["'Fox' looks like 'fox'. Is it the same class?"]),
        (["fo\u200bx"], ["fox"], ["'fo\\u200bx' looks like 'fox'. Is it the same class?"]),
        (["cafe\u0301"], ["caf\xe9"], ["'cafe\u0301' looks like 'caf\xe9'. Is it the same class?"]),
        (["red  fox"], ["red fox"], ["'red  fox' looks like 'red fox'. Is it the same class?"]),
        (["owl", "OWL"], [], ["'OWL' looks like 'owl'. Is it the same class?"]),
        (["\u2066owl"], [], ["'\\u2066owl' contains characters that cannot be seen. Were they copied by mistake?"]),
        (["fox"], ["fox", "Fox"], []),
        (["owl", "fog"], ["fox"], []),
    ],
)
def test_class_names_that_look_alike_cause_a_warning(new, known, told):
    assert classes.find_name_warnings(new, known) == told


def test_class_name_listed_twice_is_added_once_with_its_description(db):
    assert classes.add_classes(db, [("owl", ""), ("owl", "big eyes"), ("fox", "red"), ("owl", "")]) == ["owl"]
    told = {one.name: one.description for one in classes.load_active_classes(db)}
    assert told == {"fox": "red", "heron": "grey, with a long neck", "deer": "", "owl": "big eyes"}


def test_description_replaced_by_adding_is_in_the_history_and_restored_by_undo(db):
    classes.add_classes(db, [("heron", "white"), ("owl", "big eyes"), ("fox", "")], "Ann")
    newest, added = class_history.load_changes(db, 2)
    assert (newest.kind, newest.annotator, added.kind) == ("edit", "Ann", "add")
    assert change_descriptions.describe_change(newest, classes.load_class_names(db)) == "description of 'heron': white"
    class_history.undo_change(db, "Ann", newest.id)
    assert classes.find_class(db, "heron").description == "grey, with a long neck"
    assert classes.add_classes(db, [("heron", "grey, with a long neck")]) == []
    assert class_history.load_changes(db)[0].kind == "undo", "what changes nothing is not noted"


def test_ordered_classes_start_with_those_without_heading_and_are_grouped_by_heading(db):
    classes.add_classes(db, [("owl", ""), ("crow", "")])
    with db.writing() as sql:
        for name, heading, position in [
            ("owl", "birds", 2),
            ("heron", "birds", 4),
            ("fox", "beasts", 3),
            ("deer", "beasts", 5),
        ]:
            sql.execute("UPDATE class SET heading = ?, position = ? WHERE name = ?", [heading, position, name])
    assert [one.name for one in classes.load_ordered_classes(db)] == ["crow", "owl", "heron", "fox", "deer"]
    assert [one.name for one in classes.load_active_classes(db)] == ["fox", "heron", "deer", "owl", "crow"]


def test_find_class_accepts_a_synonym_and_refuses_an_archived_class(db):
    with db.writing() as sql:
        sql.execute("INSERT INTO synonym VALUES ('egret', 2)")
        sql.execute("UPDATE class SET archived = 1 WHERE name = 'deer'")
    assert classes.find_class(db, "egret").name == "heron"
    assert classes.add_classes(db, [("egret", "white")]) == []
    assert [(one.name, one.description, one.synonyms) for one in classes.load_active_classes(db)] == [
        ("fox", "", ()),
        ("heron", "white", ("egret",)),
    ]
    assert [one.name for one in classes.load_archived_classes(db)] == ["deer"]
    with pytest.raises(AnnotatorError, match="It is archived: annotator classes restore"):
        classes.find_class(db, "deer")
    with pytest.raises(AnnotatorError, match="'deer' is archived: restore it"):
        classes.add_classes(db, [("owl", ""), ("deer", "")])
