"""Predictions of other models: stored, found, logged with every answer, and believed as far as answers confirm them."""

import json
from dataclasses import replace

import numpy as np
import pyarrow as pa
import pyarrow.parquet as pq
import pytest
from harness.feature_shards import add_features
from harness.prediction_scores import ids, said_of

from annotator.errors import AnnotatorError, NothingToLearn
from annotator.exchange.predictions import prediction_import, score_files
from annotator.exchange.predictions.prediction_import import PredictionOptions
from annotator.queues import grid_queue, review_queue
from annotator.records import Batch, Decision, WantedGrids, WantedImages
from annotator.snapshot.run_predictions import read_predictions
from annotator.snapshot.suggestions import describe_first_run, find_missing_positives
from annotator.store.classes import class_changes
from annotator.store.database.database import Database
from annotator.store.features.feature_cache import open_features
from annotator.store.gallery.image_history import load_image_history
from annotator.store.labels import decisions
from annotator.store.networks import configuration
from annotator.store.runs import prediction_sources, runs
from annotator.worker.training.incremental_update import Updater
from annotator.worker.training.schedule import QUIET_SECONDS, Schedule
from annotator.worker.training.train import train

WIDE = "image,fox,heron\n00.jpg,0.9,0.1\n01.jpg,0.2,\ndeep/23.png,,0.75\n"


def add(db, tmp_path, text=WIDE, name="yolo", **choices):
    path = tmp_path / "scores.csv"
    path.write_text(text)
    with prediction_import.prepare_predictions(db, path, name, PredictionOptions(**choices), "Ann") as plan:
        return plan.apply()


def test_every_prediction_format_stores_the_same_scores(db, tmp_path, annotator):
    """A wide and a long CSV, Parquet, .npy, COCO results and Label Studio; names and hashes."""
    names = ["00.jpg", "01.jpg", "deep/23.png"]
    scores = np.array([[0.9, 0.1], [0.2, np.nan], [np.nan, 0.75]])
    (tmp_path / "wide.csv").write_text(WIDE)
    cells = [(image, name, scores[i, j]) for i, image in enumerate(names) for j, name in enumerate(("fox", "heron"))]
    cells = [cell for cell in cells if not np.isnan(cell[2])]
    hashes = dict(db.tuples("SELECT name, sha256 FROM image"))
    rows = "".join(f"{hashes[image]},{name},{score}\n" for image, name, score in cells[::-1])
    (tmp_path / "long.tsv").write_text(("sha256,class,score\n" + rows).replace(",", "\t"))
    columns = {"image": names, "fox": [0.9, 0.2, None], "heron": pa.array([0.1, None, 0.75], pa.float32())}
    pq.write_table(pa.table(columns), tmp_path / "wide.parquet")
    np.save(tmp_path / "scores.npy", scores)
    (tmp_path / "names.txt").write_text("\n".join(names))
    (tmp_path / "columns.txt").write_text("fox\nheron\n")
    (tmp_path / "coco").mkdir()
    kinds = [{"id": 3, "name": "fox"}, {"id": 5, "name": "heron"}]
    listed = [{"id": i, "file_name": name, "width": 9, "height": 9} for i, name in enumerate(names)]
    whole = {"images": listed, "annotations": [], "categories": kinds}
    (tmp_path / "coco/instances.json").write_text(json.dumps(whole))
    numbers = {"fox": 3, "heron": 5}
    found = [
        {"image_id": names.index(image), "category_id": numbers[name], "bbox": [0, 0, 1, 1], "score": score / box}
        for image, name, score in cells
        for box in (2, 1)  # a smaller box that is less sure does not count
    ]
    (tmp_path / "coco/results.json").write_text(json.dumps(found))
    tasks = [
        {
            "data": {"image": image},
            "annotations": [],
            "predictions": [
                {"result": [{"type": "choices", "from_name": "c", "value": {"choices": [name]}, "score": score}]}
                for of, name, score in cells
                if of == image
            ],
        }
        for image in names
    ]
    (tmp_path / "tasks.json").write_text(json.dumps(tasks))
    files = ["wide.csv", "long.tsv", "wide.parquet", "scores.npy", "coco/results.json", "tasks.json"]
    for number, file in enumerate(files):
        more = ("--images-file", "names.txt", "--classes-file", "columns.txt") if file == "scores.npy" else ()
        done = annotator("predictions", "project", file, "--name", f"model {number}", *more, "--json")
        assert json.loads(done.stdout)["stored"]["cells"] == 4, file
    everyone = [f"model {number}" for number in range(len(files))]
    for image, name, score in cells:
        assert said_of(db, image, name) == dict.fromkeys(everyone, round(score, 3)), (image, name)
    assert said_of(db, "01.jpg", "heron") == {}
    (listed, *_) = json.loads(annotator("predictions", "project", "--json").stdout)
    assert listed["covered"] == 3 / 24 and not listed["used"]


def test_prediction_errors_are_reported_together_and_store_nothing(db, tmp_path, annotator):
    text = "image,fox,hern\n00.jpg,1.5,0.1\n01.jpg,x,inf\nnobody.jpg,0.1,0.2\n"
    (tmp_path / "bad.csv").write_text(text)
    done = annotator("predictions", "project", "bad.csv", "--name", "bad", code=1)
    for words in ("row 1: 1.5", "row 2: the score 'x'", "row 2: the score inf", "'hern'", "Did you mean 'heron'"):
        assert words in done.stderr.replace("'inf'", "inf"), words
    assert prediction_sources.load_sources(db) == [] and not list(tmp_path.glob("project/import-*"))
    ragged = [
        (b"image,fox\n00.jpg,0.5,1\n", "Row #2"),
        (b"image,fox\n" + b"0" * 3_000_000, "cannot be read as a table"),
    ]
    for content, words in [
        *ragged,
        (b"image,fox\n\xff.jpg,1\n", "not UTF-8 text"),
        (b"fox,fox\n", "It needs image,class,score"),
    ]:
        (tmp_path / "ragged.csv").write_bytes(content)
        done = annotator("predictions", "project", "ragged.csv", "--format", "csv", "--name", "x", code=1)
        assert words in done.stderr or "several columns" in done.stderr, done.stderr
    (tmp_path / "strange.csv").write_text("image,fox\nelsewhere.jpg,0.5\n")
    assert "none of its 1 images" in annotator("predictions", "project", "strange.csv", "--name", "x", code=1).stderr
    np.save(tmp_path / "objects.npy", np.array([{}]), allow_pickle=True)
    (tmp_path / "n.txt").write_text("00.jpg\n")
    more = ("--images-file", "n.txt", "--classes-file", "n.txt")
    assert "Python objects" in annotator("predictions", "project", "objects.npy", "--name", "x", *more, code=1).stderr


def test_predictions_for_unknown_images_and_classes_are_left_out_and_counted(db, tmp_path, annotator):
    (tmp_path / "more.csv").write_text("image,fox,wolf,Heron \n00.jpg,3,4,-1\nnobody.jpg,1,1,1\n")
    words = ("predictions", "project", "more.csv", "--name", "more", "--scale", "score", "--only-known")
    tried = json.loads(annotator(*words, "--dry-run", "--json").stdout)
    assert tried["stored"] is None and prediction_sources.load_sources(db) == []
    done = json.loads(annotator(*words, "--json").stdout)
    assert (done["images"], done["unknown_images"], done["unknown_classes"]) == (1, 1, ["wolf"])
    assert said_of(db, "00.jpg", "fox") == {"more": 3.0} and said_of(db, "00.jpg", "heron") == {"more": -1.0}
    (tmp_path / "map.csv").write_text("source,class\nwolf,fox\nfox,\n")
    words = ("predictions", "project", "more.csv", "--name", "mapped", "--scale", "score", "--class-map", "map.csv")
    annotator(*words)
    assert said_of(db, "00.jpg", "fox") == {"more": 3.0, "mapped": 4.0}


@pytest.mark.parametrize("order", [1, -1])
def test_highest_of_repeated_scores_is_stored_and_repeats_are_counted(db, tmp_path, annotator, monkeypatch, order):
    """In one block of rows and in several, whatever the order."""
    monkeypatch.setattr(score_files, "CSV_BLOCK_BYTES", 64)
    rows = [
        "00.jpg,fox,0.25",
        "01.jpg,fox,0.5",
        "00.jpg,fox,0.75",
        "00.jpg,heron,0.5",
        "00.jpg,heron,",
        "01.jpg,fox,0.5",
    ]
    rows += [f"{number:02}.jpg,deer,0.5" for number in range(2, 12)] + ["00.jpg,fox,0.125"]
    (tmp_path / "again.csv").write_text("\n".join(["image,class,score", *rows[::order], ""]))
    tried = json.loads(annotator("predictions", "project", "again.csv", "--name", "a", "--dry-run", "--json").stdout)
    assert tried["scored_again"] == 3
    said = annotator("predictions", "project", "again.csv", "--name", "a").stdout
    assert "3 scores of cells that it scored before, of which the highest counts:\n  row " in said
    assert said_of(db, "00.jpg", "fox") == {"a": 0.75} and said_of(db, "01.jpg", "fox") == {"a": 0.5}


def test_later_prediction_file_adds_to_its_source_and_replaces_repeated_scores(db, tmp_path):
    add(db, tmp_path)
    before = prediction_sources.find(db, "yolo")
    source = add(db, tmp_path, "image,class,score\n00.jpg,fox,0.25\n05.jpg,deer,0.5\n00.jpg,fox,0.125\n")
    assert (source.version, source.images, source.cells) == (before.version + 1, 4, 5)
    assert said_of(db, "00.jpg", "fox") == {"yolo": 0.25}, "of several boxes the highest counts, not what was before"
    assert said_of(db, "00.jpg", "heron") == {"yolo": 0.1} and said_of(db, "05.jpg", "deer") == {"yolo": 0.5}
    with db.writing() as sql:
        sql.execute("INSERT INTO alias (name, image_id) SELECT '=1.jpg', id FROM image WHERE name = '07.jpg'")
    add(db, tmp_path, "image,fox\n'=1.jpg,0.5\n")  # as exports write a name that a spreadsheet takes for a formula
    assert said_of(db, "07.jpg", "fox") == {"yolo": 0.5}
    assert add(db, tmp_path, "image,fox\n00.jpg,0.5\n", replace=True).cells == 1
    with pytest.raises(AnnotatorError, match="hold a probability"):
        add(db, tmp_path, scale="score")


def test_removed_prediction_source_gives_no_scores_but_keeps_its_log(db, tmp_path, annotator):
    add(db, tmp_path)
    images, named = ids(db)
    decisions.save(
        db, [Decision("a" * 8, "label", "Ann", "click", image_id=images["00.jpg"], class_id=named["fox"], state=1)]
    )
    annotator("predictions", "project", "--remove", "yolo")
    assert said_of(db, "00.jpg", "fox") == {} and not list(db.paths.predictions(1).glob("*"))
    assert prediction_sources.load_logged_scores(db, images["00.jpg"]) == {1: [("yolo", 0.8999)]}
    add(db, tmp_path)
    assert said_of(db, "00.jpg", "fox") == {"yolo": 0.9}, "the name can be used again"


def test_every_decision_is_logged_with_the_scores_of_its_label(db, tmp_path):
    add(db, tmp_path)
    add(db, tmp_path, "image,fox\n00.jpg,-7\n", name="clip", scale="score")
    images, named = ids(db)
    cells = [(images[image], named["fox"], -1, None) for image in ("00.jpg", "01.jpg", "05.jpg")]
    decisions.save(db, [Batch("grid-one", "Ann", "grid", cells)])
    cleared = Decision("b" * 8, "clear", "Ann", "click", image_id=images["00.jpg"], class_id=named["fox"])
    decisions.save(db, [cleared, Batch("grid-one", "Ann", "grid", cells)])
    logged = db.tuples(
        """SELECT d.image_id, p.version, round(p.score, 2) FROM prediction_score p
        JOIN decision d ON d.id = p.decision_id ORDER BY 1, 3"""
    )
    assert logged == [(images["00.jpg"], 1, -7), (images["00.jpg"], 1, 0.9), (images["01.jpg"], 1, 0.2)]


def test_scores_of_a_merged_class_count_for_the_target_class(db, tmp_path):
    add(db, tmp_path, "image,fox,heron\n00.jpg,0.9,0.1\n01.jpg,0.25,\n02.jpg,,0.5\n")
    images, named = ids(db)
    class_changes.merge(db, "Ann", [named["fox"]], named["heron"], same=True)
    assert [said_of(db, image, "heron") for image in ("00.jpg", "01.jpg", "02.jpg")] == [
        {"yolo": 0.9},
        {"yolo": 0.25},
        {"yolo": 0.5},
    ]
    (scores,) = prediction_sources.open_scores(db)
    column = prediction_sources.load_aligned_scores(
        db, scores, [images["02.jpg"], images["01.jpg"], images["07.jpg"]], [named["heron"]]
    )
    assert np.array_equal(column[:, 0], np.array([0.5, 0.25, np.nan], np.float16), equal_nan=True)


def test_interrupted_prediction_import_keeps_the_previous_version(db, tmp_path):
    add(db, tmp_path)

    def dies():
        yield np.array([1]), np.array([1]), np.array([[0.5]])
        raise KeyboardInterrupt

    with pytest.raises(KeyboardInterrupt):
        prediction_sources.add(db, "yolo", "probability", "Ann", np.array([1]), [1], dies)
    reopened = Database(db.paths.project)
    assert said_of(reopened, "00.jpg", "fox") == {"yolo": 0.9}
    assert add(reopened, tmp_path).version == 2


@pytest.fixture
def cache(db):
    """Features of all images: noise, but for one direction a class of the first two thirds."""
    rng = np.random.default_rng(0)
    regions = np.maximum(rng.normal(size=(24, 9, 12)), 0).astype(np.float16)
    ids_ = np.array(sorted(ids(db)[0].values()))
    add_features(db, "x", ids_, regions.mean(1), regions)
    return open_features(db, "x")


def probability_of(db, image, class_name):
    predictions = read_predictions(db)
    images, named = ids(db)
    value = predictions.align(predictions.probabilities, [images[image]], [named[class_name]])[0, 0]
    return None if np.isnan(value) else round(float(value), 2)


@pytest.mark.training
def test_training_without_labels_uses_predictions_until_their_source_is_removed(db, cache, tmp_path):
    due = Schedule(None).is_due
    add(db, tmp_path, "image,fox\n00.jpg,5\n", name="clip", scale="score")
    assert not due(db, 24), "scores have an order and nothing to begin with"
    with pytest.raises(NothingToLearn):
        train(db, cache, "auto", {}, "x")
    assert describe_first_run(db) == "needs about 20 labeled images"
    add(db, tmp_path)
    assert describe_first_run(db) == "the first training starts soon, with the predictions of yolo"
    assert due(db, 24) and not Schedule(None).is_due(db, 0)
    run = train(db, cache, "auto", {}, "x")
    assert probability_of(db, "00.jpg", "fox") == 0.9 and probability_of(db, "05.jpg", "fox") == 0.2
    assert probability_of(db, "00.jpg", "deer") is None, "nobody says anything of deer"
    assert find_missing_positives(db, limit=1)[0].image_id == ids(db)[0]["00.jpg"]
    assert runs.load_source_versions(db, run.id) == prediction_sources.load_versions(db) and not due(db, 24)
    images, named = ids(db)
    cells = [(images[f"{number:02}.jpg"], named["fox"], -1, None) for number in range(6)]
    decisions.save(db, [Batch("six-cells", "Ann", "grid", cells)])
    updated = Updater().update(db, cache)
    assert updated.version == 1 and probability_of(db, "09.jpg", "fox") != 0.2, "updates go on from the guess"
    add(db, tmp_path, "image,fox\n09.jpg,0.75\n")
    assert due(db, 24), "they say something else now"
    prediction_sources.remove_source(db, "yolo")
    prediction_sources.remove_source(db, "clip")
    assert due(db, 24)
    train(db, cache, "auto", {}, "x")
    assert probability_of(db, "00.jpg", "fox") is None and not due(db, 24)


@pytest.mark.training
def test_retraining_after_prediction_imports_waits_for_a_quiet_period(db, cache, tmp_path):
    now = [100.0]
    schedule = Schedule(lambda: now[0])
    add(db, tmp_path)
    assert schedule.is_due(db, 24)
    train(db, cache, "auto", {}, configuration.get_backbone(db))
    for _ in range(3):
        add(db, tmp_path)
        assert not schedule.is_due(db, 24)
        now[0] += QUIET_SECONDS - 1
    now[0] += 2
    assert schedule.is_due(db, 24)


@pytest.mark.training
def test_model_reports_its_prediction_weights_and_published_methods_use_none(db, cache, tmp_path, annotator):
    rng = np.random.default_rng(1)
    images, named = ids(db)
    truth = rng.random((24, 3)) < 0.4
    rows = [
        f"{image},{','.join(str(round(0.1 + 0.8 * there, 2)) for there in truth[number])}"
        for number, image in enumerate(sorted(images))
    ]
    add(db, tmp_path, "\n".join(["image,fox,heron,deer", *rows]))
    cells = [
        (images[image], named[name], 1 if truth[number, column] else -1, None)
        for number, image in enumerate(sorted(images)[:16])
        for column, name in enumerate(("fox", "heron", "deer"))
    ]
    decisions.save(db, [Batch("all-cells", "Ann", "grid", cells)])
    train(db, cache, "auto", {}, "x")
    (listed,) = json.loads(annotator("predictions", "project", "--json").stdout)
    assert listed["used"] and min(listed["weights"].values()) > 0.5, listed
    assert "fox +" in annotator("predictions", "project").stdout
    chances = {there: [] for there in (True, False)}
    for number, image in enumerate(sorted(images)[16:], start=16):
        for column, name in enumerate(("fox", "heron", "deer")):
            chances[bool(truth[number, column])].append(probability_of(db, image, name))
    assert np.mean(chances[True]) > np.mean(chances[False]) + 0.2, "the images nobody has answered follow the source"
    run = train(db, cache, "an", {}, "x")
    assert runs.load_source_versions(db, run.id) == ()


@pytest.mark.training
def test_queues_return_prediction_scores_unless_predictions_are_hidden(db, cache, tmp_path):
    add(db, tmp_path)
    train(db, cache, "auto", {}, "x")
    images, named = ids(db)
    fox = named["fox"]
    chips = dict(review_queue.lease_next_images(db, WantedImages("review", "a", "Ann", (), 30), 0.3))[images["00.jpg"]]
    assert [chip.models for chip in chips if chip.class_id == fox] == [(("yolo", 0.8999),)]
    asked = WantedGrids("b", "Ben", fox, 24, (), 1)
    (shown,) = grid_queue.lease_next_grids(db, asked).items
    models = {tile.image.id: tile.models for tile in shown.tiles}
    assert models[images["01.jpg"]] == (("yolo", 0.2),) and models[images["05.jpg"]] == ()
    every = [(image_id, None) for image_id in images.values()]
    hidden = grid_queue.lease_tiles(db, replace(asked, holder="c", hide_predictions=True), named["heron"], every)
    assert hidden and {tile.models for tile in hidden} == {()}
    decisions.save(db, [Decision("c" * 8, "label", "Ann", "click", image_id=images["00.jpg"], class_id=fox, state=1)])
    assert [event.models for event in load_image_history(db, images["00.jpg"])] == [(("yolo", 0.8999),)]
