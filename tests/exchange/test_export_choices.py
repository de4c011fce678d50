"""What can be chosen of an export: which answers, which images, splits and columns; all of one moment."""

import json
from collections import Counter

import numpy as np
import pytest
from harness.answers import answer_cell
from harness.csv_rows import rows_of
from harness.published_runs import publish
from PIL import Image

from annotator.errors import AnnotatorError
from annotator.exchange.exports import data_card
from annotator.exchange.exports.choices import Choices, parse_columns
from annotator.exchange.exports.data_set import open_data_set
from annotator.exchange.exports.export_writer import export_data_set, prepare_export, write_export
from annotator.exchange.exports.splits import stratify
from annotator.exchange.formats.export_view import TableColumns
from annotator.exchange.project_setup import set_up_project
from annotator.records import ABSENT, PRESENT
from annotator.store.classes import classes
from annotator.store.database.database import Database
from annotator.store.labels import auto_accepted
from annotator.store.labels.auto_accepted import NewAcceptance


def values(db, choices: Choices) -> dict[tuple[int, str], int]:
    """(image id, class) -> 1 or 0, of all cells with a value."""
    with open_data_set(db, choices) as data:
        return {
            (block.images[row].id, data.view.classes[column].name): int(block.values[row, column])
            for block in data.view.blocks()
            for row, column in np.argwhere(block.values >= 0).tolist()
        }


@pytest.fixture
def answered(db):
    """Image 1: fox by Ann, heron absent by Bob; image 2: fox by Bob from a suggestion; image 3: complete by Ann."""
    answer_cell(db, 1, 1, PRESENT, annotator="Ann")
    answer_cell(db, 1, 2, ABSENT, annotator="Bob")
    answer_cell(db, 2, 1, PRESENT, annotator="Bob", source="suggestion")
    for class_id, state in ((1, ABSENT), (2, PRESENT), (3, ABSENT)):
        answer_cell(db, 3, class_id, state, annotator="Ann")
    return db


@pytest.mark.parametrize(
    ("choices", "expected"),
    [
        (Choices(annotators=("Ann",)), {(1, "fox"): 1, (3, "fox"): 0, (3, "heron"): 1, (3, "deer"): 0}),
        (Choices(sources=("suggestion",)), {(2, "fox"): 1}),
        (Choices(states=("absent",)), {(1, "heron"): 0, (3, "fox"): 0, (3, "deer"): 0}),
        (Choices(classes=("heron",)), {(1, "heron"): 0, (3, "heron"): 1}),
        (Choices(only_complete=True), {(3, "fox"): 0, (3, "heron"): 1, (3, "deer"): 0}),
        (Choices(only_complete=True, classes=("fox",)), {(1, "fox"): 1, (2, "fox"): 1, (3, "fox"): 0}),
        (Choices(only_complete=True, annotators=("Bob",)), {}),
        (Choices(only_labeled=True, states=("present",)), {(1, "fox"): 1, (2, "fox"): 1, (3, "heron"): 1}),
    ],
)
def test_answers_left_out_by_the_export_choices_are_exported_as_unanswered(answered, choices, expected):
    assert values(answered, choices) == expected
    wanted = len({image_id for image_id, _ in expected}) if choices.only_complete or choices.only_labeled else 24
    with open_data_set(answered, choices) as data:
        assert data.view.images == data.image_ids.size == wanted
        left_out = 0 if choices.only_complete or choices.classes else 6 - len(expected)
        assert any(f"{left_out} answer" in sentence for sentence in data.sentences) == bool(left_out)


def test_auto_accepted_labels_are_selected_by_their_guaranteed_precision(answered):
    accepted = NewAcceptance(3, PRESENT, 1, 0.9, 0.98, 0.95, 100, 0, np.array([5, 6]), np.array([0.95, 0.9]))
    assert auto_accepted.accept(answered, "batch", accepted)
    deer = {(5, "deer"): 1, (6, "deer"): 1}
    assert values(answered, Choices(accepted_precision=0.98)).items() >= deer.items()
    for choices in (
        Choices(accepted_precision=0.99),
        Choices(accepted_confidence=0.99),
        Choices(auto_accepted=False),
        Choices(annotators=("Ann",)),
        Choices(sources=("click",)),
    ):
        assert not values(answered, choices).keys() & deer.keys()


def test_invalid_export_choices_are_all_reported_together(answered, tmp_path):
    choices = Choices("maybe", states=("there",), splits="train=0.9", images="steal", accepted_precision=2)
    with pytest.raises(AnnotatorError) as told:
        export_data_set(answered, tmp_path / "nowhere" / "x.csv", "csv", choices)
    for expected in ("'maybe'", "'there'", "sum to 0.9", "'steal'", "--accepted-precision 2", "no folder"):
        assert expected in str(told.value), expected
    with pytest.raises(AnnotatorError) as told:
        export_data_set(
            answered, tmp_path / "x.csv", "csv", Choices(classes=("fxo",), annotators=("An",), splits="existing:x")
        )
    for expected in ("Did you mean 'fox'", "Did you mean 'Ann'", "attribute 'x'"):
        assert expected in str(told.value), expected
    with pytest.raises(AnnotatorError, match="is one file and has no room for images"):
        export_data_set(answered, tmp_path / "x.csv", "csv", Choices(images="copy"))
    assert not list(tmp_path.glob("x.*"))


def test_prepared_export_is_a_snapshot_unaffected_by_later_changes(answered, tmp_path):
    other = Database(answered.paths.project)
    with prepare_export(answered, tmp_path / "x.csv", "csv", Choices(splits="train=0.5,val=0.5")) as prepared:
        answer_cell(other, 9, 1, PRESENT)
        answer_cell(other, 1, 1, ABSENT)
        classes.add_classes(other, [("wolf", "")])
        written = write_export(prepared)
    table, provenance = (rows_of(path) for path in written[:2])
    assert list(table[0]) == ["image", "split", "fox", "heron", "deer"]
    assert sum(row["fox"] == "1" for row in table) == 2 and len(provenance) == 6
    card = json.loads((tmp_path / "x.card.json").read_text())
    assert [one["name"] for one in card["classes"]] == ["fox", "heron", "deer"]
    assert sum(cell["cells"] for one in card["classes"] for cell in one["cells"] if cell["source"]) == 6
    assert sum(split["present"]["fox"] for split in card["splits"]) == 2
    assert sum(row["cells"] for row in card["answers"]) == 6


def test_export_selects_orders_and_renames_columns_and_pseudonymizes_annotators(answered, tmp_path):
    columns = TableColumns(chosen=parse_columns('heron=grey heron,image=file,"fox"'))
    export_data_set(answered, tmp_path / "x.csv", "csv", Choices(columns=columns))
    first = rows_of(tmp_path / "x.csv")[0]
    assert list(first) == ["grey heron", "file", "fox"] and (first["grey heron"], first["fox"]) == ("0", "1")
    long = Choices(columns=TableColumns(long=True, seconds=True), pseudonyms=True)
    export_data_set(answered, tmp_path / "long.csv", "csv", long)
    rows = rows_of(tmp_path / "long.csv")
    assert len(rows) == 6 and {row["annotator"] for row in rows} == {"annotator 1", "annotator 2"}
    assert "seconds" in rows[0]
    texts = [path.read_text() for path in tmp_path.glob("long.*")]
    assert len(texts) == 5 and not any("Ann," in text or '"Ann"' in text or "| Ann |" in text for text in texts)
    with pytest.raises(AnnotatorError, match="no column 'wolf'"):
        export_data_set(
            answered, tmp_path / "y.csv", "csv", Choices(columns=TableColumns(chosen=parse_columns("image,wolf")))
        )
    assert not list(tmp_path.glob(".*")) and not (tmp_path / "y.csv").exists()


def test_markdown_data_card_repeats_the_json_card_and_escapes_names(answered, tmp_path):
    choices = Choices(license="CC-BY-4.0", cite="Ann | Bob 2026", splits="train=0.5,val=0.5", annotators=("Ann",))
    export_data_set(answered, tmp_path / "x.csv", "csv", choices, tag="v1")
    text, card = (tmp_path / "x.card.md").read_text(), json.loads((tmp_path / "x.card.json").read_text())
    assert card["license"] == "CC-BY-4.0" and card["tag"] == "v1" and card["choices"]["annotators"] == ["Ann"]
    for expected in ("CC-BY-4.0", "Ann \\| Bob 2026", "Version: v1", "2 answers not chosen", '`annotators`: ["Ann"]'):
        assert expected in text, expected
    for split in card["splits"]:
        assert split["name"] in text
    hostile = data_card.format_markdown(card | {"images_missing": [{"image": "<img src=x>|a\n# b", "reason": "gone"}]})
    assert "&lt;img src=x>\\|a # b" in hostile, "a name is neither HTML nor another line"
    [month] = {row["month"] for row in card["answers"]}
    assert f"| {month} | Ann | click | 4 |" in text


# ---- splits


def sparse(images: int, classes_: int, seed: int = 0) -> tuple[np.ndarray, np.ndarray]:
    """Positives of classes from frequent to rare: where those of each image begin, and the classes."""
    rng = np.random.default_rng(seed)
    present = rng.random((images, classes_)) < np.geomspace(0.5, 0.01, classes_)
    return np.concatenate([[0], np.cumsum(present.sum(1))]), np.nonzero(present)[1]


def test_stratified_split_keeps_class_proportions_and_depends_on_the_seed():
    starts, columns = sparse(3000, 12)
    wanted = [0.8, 0.1, 0.1]
    split = stratify(starts, columns, wanted, seed=3)
    assert (split == stratify(starts, columns, wanted, seed=3)).all()
    assert (split != stratify(starts, columns, wanted, seed=4)).any()
    of_cell = np.repeat(split, np.diff(starts))
    for column in range(12):
        counts = np.bincount(of_cell[columns == column], minlength=3)
        assert (abs(counts - np.array(wanted) * counts.sum()) <= 2 + 0.02 * counts.sum()).all(), (column, counts)
    assert (abs(np.bincount(split) / 3000 - wanted) < 0.02).all()


def test_stratified_split_keeps_grouped_images_together():
    starts, columns = sparse(2000, 8)
    groups = np.random.default_rng(1).integers(0, 300, 2000)
    split = stratify(starts, columns, [0.7, 0.3], 0, groups)
    assert all(len(set(split[groups == group].tolist())) == 1 for group in range(300) if (groups == group).any())
    assert abs((split == 0).mean() - 0.7) < 0.03


def test_stratified_split_is_as_even_as_the_iterstrat_package():
    iterstrat = pytest.importorskip("iterstrat.ml_stratifiers")
    starts, columns = sparse(1500, 10, seed=5)
    dense = np.zeros((1500, 10), int)
    dense[np.repeat(np.arange(1500), np.diff(starts)), columns] = 1
    splitter = iterstrat.MultilabelStratifiedShuffleSplit(1, test_size=0.25, random_state=0)
    _, theirs = next(splitter.split(dense, dense))
    ours = np.flatnonzero(stratify(starts, columns, [0.75, 0.25], 0) == 1)
    uneven = [abs(dense[rows].sum(0) - dense.sum(0) / 4).sum() for rows in (ours, theirs)]
    assert uneven[0] <= uneven[1] + 10


def test_export_keeps_existing_splits_of_the_images(answered, tmp_path):
    with answered.writing() as sql:
        rows = [(image_id, "split", "../up" if image_id < 5 else "val") for image_id in range(1, 20)]
        sql.conn.executemany("INSERT INTO attribute (image_id, name, value) VALUES (?, ?, ?)", rows)
    export_data_set(answered, tmp_path / "x.csv", "csv", Choices(splits="existing"))
    splits = Counter(row["split"] for row in rows_of(tmp_path / "x.csv"))
    assert splits == {"_up": 4, "val": 15, "": 5}
    with answered.writing() as sql:
        more = [(f"more/{number}.jpg", f"{number:064x}") for number in range(101)]
        sql.conn.executemany("INSERT INTO image (name, sha256, width, height) VALUES (?, ?, 9, 9)", more)
        sql.execute("INSERT INTO attribute (image_id, name, value) SELECT id, 'who', name FROM image")
    with pytest.raises(AnnotatorError, match=r"'who' has 12. different values.*--split-by who"):
        export_data_set(answered, tmp_path / "y.csv", "csv", Choices(splits="existing:who"))
    with pytest.raises(AnnotatorError, match="--split-by 'place'"):
        export_data_set(answered, tmp_path / "y.csv", "csv", Choices(splits="a=0.5,b=0.5", split_by="place"))


def test_export_with_split_by_similar_keeps_resized_copies_in_one_split(project, tmp_path):
    picture = Image.new("RGB", (200, 150))
    picture.paste(Image.linear_gradient("L").resize((200, 80)).convert("RGB"), (0, 30))
    picture.paste((200, 40, 10), (60, 20, 110, 100))
    (tmp_path / "more").mkdir()
    for number in range(12):
        picture.resize((200 - 9 * number, 150 - 7 * number)).save(tmp_path / "more" / f"near{number}.jpg", quality=80)
    set_up_project(project, images_folder=tmp_path / "more")
    db = Database(project)
    choices = Choices(splits="train=0.5,val=0.5", split_by="similar", seed=2)
    export_data_set(db, tmp_path / "x.csv", "csv", choices)
    splits = {name: Counter() for name in ("near", "other")}
    for row in rows_of(tmp_path / "x.csv"):
        splits["near" if row["image"].startswith("near") else "other"][row["split"]] += 1
    assert list(splits["near"].values()) == [12] and splits["near"] + splits["other"] == {"train": 18, "val": 18}


def test_reported_fill_counts_equal_the_numbers_of_exported_model_labels(answered):
    publish(answered, np.tile(np.linspace(0.0, 1.0, 24)[:, None], (1, 3)).astype(np.float16))
    with open_data_set(answered, Choices(unknown="model", classes=("deer", "fox"))) as data:
        filled = data.tallies.cells[:, :, data.view.sources.index("model")]
        assert filled.sum(0).tolist() == [0, data.fill.sum("present"), data.fill.sum("absent"), 0]
        assert data.tallies.unknown == data.fill.sum("unknown")
