"""Results of camera-trap detectors: predictions with their boxes, never answers, and nothing of a failure."""

import json
import math
from collections.abc import Sequence
from pathlib import Path

import numpy as np
import pytest
from harness.projects import publish_run

from annotator.errors import AnnotatorError
from annotator.exchange.files import json_stream
from annotator.exchange.files.problems import Problems
from annotator.exchange.formats import match_formats
from annotator.exchange.imports import import_plan, label_files
from annotator.exchange.predictions import prediction_import
from annotator.exchange.predictions.prediction_import import PredictionOptions
from annotator.exchange.reading.reading_options import ReadingOptions
from annotator.queues import grid_queue, review_queue
from annotator.records import Decision, SuggestionFilter, WantedGrids, WantedImages
from annotator.store.classes import class_changes, classes
from annotator.store.labels import decisions
from annotator.store.runs import prediction_boxes, prediction_evidence, prediction_sources
from annotator.store.upkeep import array_health

ANIMAL = {"category": "1", "conf": 0.9, "bbox": [0.1, 0.2, 0.3, 0.4]}
MD = {"1": "animal", "2": "person", "3": "vehicle"}
FOX = "id-1;mammalia;carnivora;canidae;vulpes;vulpes;red fox"
BLANK = "id-2;;;;;;blank"


def write(path: Path, document: object) -> Path:
    path.write_text(document if isinstance(document, str) else json.dumps(document))
    return path


def megadetector(path: Path, images: Sequence[object], **more: object) -> Path:
    """Write results as the newest MegaDetector does: images come first."""
    document = {"images": images, "detection_categories": MD, "info": {"format_version": "1.6"}}
    return write(path, document | more)


def read(path: Path):
    """The format, the items by image, what is said, and the problems of a file of predictions."""
    [(format_, _)] = match_formats(path)
    problems = Problems()
    assert format_.read
    contents = format_.read(path, problems, ReadingOptions())
    items = {item.image: item for item in contents.items}
    return format_.name, items, " ".join(contents.sentences), problems.sentences


def boxes_of(item) -> list[tuple[object, ...]]:
    return [(box[0], *(round(number, 4) for number in box[1:])) for box in item.boxes]


@pytest.mark.parametrize("suffix", [".json", "", ".txt"])
def test_detector_score_is_the_best_box_per_class_and_several_species_are_kept(tmp_path, suffix):
    classified = ANIMAL | {"classifications": [["0", 0.8], ["1", 0.15]]}
    second = {"category": "1", "conf": 0.006, "bbox": [0.5, 0.5, 0.1, 0.1], "classifications": [["1", 0.7]]}
    path = megadetector(
        tmp_path / f"md{suffix}",
        [{"file": "a/1.jpg", "detections": [second, classified]}],
        classification_categories={"0": "fox", "1": "deer", "2": "wolf"},
    )
    name, items, _, problems = read(path)
    assert name == "megadetector" and not problems
    species = {"fox": 0.8, "deer": 0.7, "wolf": 0.0}
    assert items["a/1.jpg"].scores == {"animal": 0.9, "person": 0.0, "vehicle": 0.0} | species
    assert boxes_of(items["a/1.jpg"]) == [
        ("animal", 0.1, 0.2, 0.3, 0.4, 0.9),
        ("animal", 0.5, 0.5, 0.1, 0.1, 0.006),
        ("deer", 0.5, 0.5, 0.1, 0.1, 0.7),
        ("deer", 0.1, 0.2, 0.3, 0.4, 0.15),
        ("fox", 0.1, 0.2, 0.3, 0.4, 0.8),
    ]


def test_image_without_detections_scores_0_and_a_failed_image_gets_no_scores(tmp_path):
    images = [
        {"file": "empty.jpg", "detections": [], "max_detection_conf": 0.0},
        {"file": "no failure.jpg", "detections": [], "failure": None},
        {"file": "failed.jpg", "failure": "Failure image access", "detections": None},
        {"file": "failed too.jpg", "failure": "corrupt", "detections": []},
        {"file": "missing.jpg"},
    ]
    species = {"0": "fox", "1": "blank"}
    _, items, said, problems = read(megadetector(tmp_path / "md.json", images, classification_categories=species))
    assert not problems and list(items) == ["empty.jpg", "no failure.jpg"]
    assert items["empty.jpg"].scores == {"animal": 0, "person": 0, "vehicle": 0, "fox": 0}, "but not of 'blank'"
    assert "Nothing is said of 3 files" in said


def test_species_scores_are_unknown_for_boxes_without_classification(tmp_path):
    path = megadetector(
        tmp_path / "md.json",
        [{"file": "1.jpg", "detections": [ANIMAL]}],
        classification_categories={"0": "fox"},
    )
    assert "fox" not in read(path)[1]["1.jpg"].scores


def test_megadetector_list_without_categories_uses_the_default_categories(tmp_path):
    old = [[0.2, 0.1, 0.6, 0.4, 0.9, 2]]  # top, left, bottom, right
    images = [{"file": "1.jpg", "max_detection_conf": 0.9, "detections": old}, {"file": "2.jpg", "detections": []}]
    name, items, said, problems = read(write(tmp_path / "old", images))
    assert name == "megadetector" and not problems and "names no categories" in said
    assert items["1.jpg"].scores == {"animal": 0, "person": 0.9, "vehicle": 0}
    assert boxes_of(items["1.jpg"]) == [("person", 0.1, 0.2, 0.3, 0.4, 0.9)]


def test_video_results_become_scores_and_boxes_per_frame(tmp_path):
    detections = [ANIMAL | {"frame_number": 20}, ANIMAL | {"frame_number": 40, "category": "2"}]
    video = {"file": "a/v.mp4", "frame_rate": 20, "frames_processed": [0, 20, 40], "detections": detections}
    _, items, said, problems = read(megadetector(tmp_path / "md.json", [video]))
    assert not problems and "1 video: 2 frames" in said
    scores = {name: item.scores for name, item in items.items()}
    assert scores == {"a/v.mp4/frame000020.jpg": {"animal": 0.9}, "a/v.mp4/frame000040.jpg": {"person": 0.9}}


def test_box_is_clipped_to_the_image_and_one_outside_only_contributes_its_score(tmp_path):
    places = ([-0.1, 0.5, 0.3, 0.7], [1.2, 0.1, 0.1, 0.1], [0.1, 0.1, 0, 0.1], [0.1, 0.1, -0.2, 0.1], [0.1], [])
    detections = [ANIMAL | {"bbox": list(place), "conf": 0.1 + at / 100} for at, place in enumerate(places)]
    _, items, said, problems = read(megadetector(tmp_path / "md.json", [{"file": "1.jpg", "detections": detections}]))
    assert not problems and "5 detections without a box inside of the image" in said
    assert items["1.jpg"].scores["animal"] == pytest.approx(0.15)
    assert boxes_of(items["1.jpg"]) == [("animal", 0.0, 0.5, 0.2, 0.5, 0.1)]


def test_detector_reader_keeps_the_20_best_boxes_per_class(tmp_path):
    detections = [ANIMAL | {"conf": at / 100} for at in range(50)]
    item = read(megadetector(tmp_path / "md.json", [{"file": "1.jpg", "detections": detections}]))[1]["1.jpg"]
    assert [box.score for box in item.boxes] == [at / 100 for at in range(49, 29, -1)]


def test_invalid_detector_confidences_are_reported_with_their_json_position(db, tmp_path):
    text = '{"images": [%s], "detection_categories": {"1": "fox"}}'
    bad = [f'{{"file": "00.jpg", "detections": [{{"category": "1", "conf": {conf}}}]}}' for conf in ("NaN", "null")]
    path = write(tmp_path / "md.json", text % ", ".join(bad))
    with pytest.raises(AnnotatorError, match=r"images\[0\] .*\n.*images\[1\]"):
        store(db, path)
    wrong = [{"file": "00.jpg", "detections": [ANIMAL | {"conf": conf}]} for conf in (-0.1, 1.5)]
    path = megadetector(tmp_path / "md.json", wrong, detection_categories={"1": "fox"})
    with pytest.raises(AnnotatorError, match=r"images\[0\]: the confidence -0.1 (.|\n)*images\[1\]: .* 1.5 "):
        store(db, path)
    assert not prediction_sources.load_sources(db)


@pytest.mark.parametrize(
    ("document", "why"),
    [
        ({"images": [{"file": "1.jpg", "detections": []}]}, "no detection_categories"),
        ({"images": [], "detection_categories": {"1": ""}}, "no name for '1'"),
        ({"images": [], "detection_categories": {"1": 3}}, "must name each category"),
        ('{"images": [{"file": "1.jpg", "detections": [], "detection_categories"', "ends too early"),
    ],
)
def test_incomplete_detector_file_is_refused_with_the_reason(tmp_path, document, why):
    with pytest.raises(AnnotatorError, match=why):
        read(write(tmp_path / "md.json", document))


def speciesnet(path: Path, *predictions: object) -> Path:
    return write(path, {"predictions": list(predictions)})


def test_speciesnet_classes_use_the_common_name_or_the_last_taxon(tmp_path):
    given = [
        (FOX, 0.5),
        ("id;mammalia;carnivora;canidae;;;canidae family", 0.2),
        ("id;mammalia;carnivora;felidae;lynx;rufus;", 0.1),
        ("id;mammalia;carnivora;;;;", 0.05),
        ("id;;;;;;", 0.01),
    ]
    classified = {"classes": [name for name, _ in given], "scores": [score for _, score in given]}
    name, items, said, problems = read(
        speciesnet(tmp_path / "sn", {"filepath": "1.jpg", "classifications": classified})
    )
    assert name == "speciesnet" and not problems and "1 score of classes without any name" in said
    names = {"red fox": 0.5, "canidae family": 0.2, "lynx rufus": 0.1, "carnivora": 0.05}
    assert items["1.jpg"].scores == names


def test_speciesnet_reader_uses_detector_or_classifier_alone_when_the_other_failed(tmp_path):
    box = {"category": "1", "label": "animal", "conf": 0.95, "bbox": [0.1, 0.2, 0.3, 0.4]}
    human = box | {"category": "2", "label": ""}
    seen = {"classes": [FOX, BLANK], "scores": [0.6, 0.05]}
    rolled = "id;mammalia;carnivora;canidae;;;canidae family"
    _, items, said, problems = read(
        speciesnet(
            tmp_path / "sn.json",
            {"filepath": "whole.jpg", "classifications": seen, "detections": [box], "prediction": rolled}
            | {"prediction_score": 0.8, "model_version": "4.0.2a"},
            {
                "filepath": "detected.jpg",
                "failures": ["CLASSIFIER"],
                "detections": [human],
            },
            {"filepath": "empty.jpg", "detections": []},
            {"filepath": "failed.jpg", "failures": ["CLASSIFIER", "DETECTOR"]},
            {"filepath": "uncropped.jpg", "classifications": seen, "detections": [box], "model_version": "4.0.2b"},
        )
    )
    assert not problems and "Nothing is said of 1 file" in said and "failed.jpg" not in items
    scores = {"red fox": 0.6, "canidae family": 0.8, "animal": 0.95, "human": 0.0, "blank": 0.05}
    assert items["whole.jpg"].scores == scores
    assert items["detected.jpg"].scores == {"human": 0.95, "animal": 0.0}
    assert items["empty.jpg"].scores == {"red fox": 0, "canidae family": 0, "animal": 0, "human": 0}
    place = (0.1, 0.2, 0.3, 0.4)
    named = {"animal": 0.95, "red fox": 0.6, "canidae family": 0.8, "blank": 0.05}
    assert set(boxes_of(items["whole.jpg"])) == {(name, *place, score) for name, score in named.items()}
    assert [box.class_name for box in items["uncropped.jpg"].boxes] == ["animal"], "the whole image was classified"


def test_speciesnet_reader_reports_taxa_of_equal_name_and_classes_without_scores(tmp_path):
    classes_ = {"classes": [FOX, FOX.replace("vulpes;vulpes", "vulpes;fulva")], "scores": [0.6, 0.3]}
    wrong = {"filepath": "2.jpg", "classifications": {"classes": [FOX], "scores": []}}
    entries = [{"filepath": "1.jpg", "classifications": classes_}, wrong]
    _, items, said, problems = read(speciesnet(tmp_path / "sn.json", *entries))
    assert "'red fox' is the name of" in said and items["1.jpg"].scores == {"red fox": 0.6}
    assert problems == ["predictions[1]: 1 classes have 0 scores"]


def store(db, path, name="MD", **choices):
    with prediction_import.prepare_predictions(db, path, name, PredictionOptions(**choices), "Ann") as plan:
        return plan.apply()


def drawn(db, image: str, class_name: str):
    """Name of a source and its boxes of a cell, as pages get them."""
    image_id = db.value("SELECT id FROM image WHERE name = ?", [image])
    return prediction_evidence.load_cell_boxes(db, [image_id], [classes.load_classes_by_name(db)[class_name].id])[0]


def detected(path: Path, *places: list[float], file: str = "00.jpg") -> Path:
    detections = [ANIMAL | {"bbox": list(place), "conf": 0.9 - at / 10} for at, place in enumerate(places)]
    return megadetector(path, [{"file": file, "detections": detections}], detection_categories={"1": "fox"})


def test_prediction_boxes_are_replaced_by_new_results_and_removed_with_their_source(db, tmp_path):
    store(db, detected(tmp_path / "1.json", [0.1, 0.2, 0.3, 0.4], [0.5, 0.5, 0.25, 0.5]))
    assert drawn(db, "00.jpg", "fox") == (("MD", 0.9, 0.1, 0.2, 0.3, 0.4), ("MD", 0.8, 0.5, 0.5, 0.25, 0.5))
    assert drawn(db, "00.jpg", "heron") == () and drawn(db, "01.jpg", "fox") == ()
    store(db, detected(tmp_path / "2.json", [0, 0, 1, 1], file="01.jpg"))
    assert len(drawn(db, "00.jpg", "fox")) == 2 and len(drawn(db, "01.jpg", "fox")) == 1, "it was added"
    store(db, detected(tmp_path / "3.json", [0.25, 0.25, 0.5, 0.5]))
    assert drawn(db, "00.jpg", "fox") == (("MD", 0.9, 0.25, 0.25, 0.5, 0.5),), "its score was replaced"
    store(db, detected(tmp_path / "4.json", file="00.jpg"))
    assert drawn(db, "00.jpg", "fox") == (), "nothing was found there"
    assert len(drawn(db, "01.jpg", "fox")) == 1
    store(db, detected(tmp_path / "5.json", [0.25, 0.25, 0.5, 0.5]), name="SN")
    store(db, detected(tmp_path / "6.json", [0.5, 0.5, 0.5, 0.5]), replace=True)
    assert [box[0] for box in drawn(db, "00.jpg", "fox")] == ["MD", "SN"] and drawn(db, "01.jpg", "fox") == ()
    prediction_sources.remove_source(db, "MD")
    assert [box[0] for box in drawn(db, "00.jpg", "fox")] == ["SN"]


def test_stored_boxes_per_label_are_limited_and_uncertain_ones_are_not_drawn(db, tmp_path):
    detections = [ANIMAL | {"conf": 0.9 - at / 100} for at in range(60)]
    path = megadetector(
        tmp_path / "md.json",
        [
            *[{"file": "00.jpg", "detections": detections}] * 2,
            {"file": "01.jpg", "detections": [ANIMAL, ANIMAL | {"conf": 0.1}]},
        ],
        detection_categories={"1": "fox"},
    )
    source = store(db, path)
    stored = prediction_boxes.open_boxes(db.paths.predictions(source.id, source.version))
    assert len(stored) == prediction_boxes.MAX_BOXES_PER_CELL + 2 and math.isclose(
        stored["score"].max(), 0.9, rel_tol=1e-6
    )
    assert (
        len(drawn(db, "00.jpg", "fox")) == prediction_evidence.MAX_DRAWN_BOXES and len(drawn(db, "01.jpg", "fox")) == 1
    )
    folder = db.paths.predictions(source.id, source.version)
    (folder / prediction_boxes.BOXES_FILE).write_bytes(b"\x93NUMPY damaged")
    assert len(prediction_boxes.open_boxes(folder)) == 0, "a damaged file draws nothing"


def test_stored_boxes_keep_their_position_within_a_fraction_of_a_pixel():
    chance = np.random.default_rng(2)
    ids, class_ids, corner = chance.integers(1, 9, 200), chance.integers(1, 4, 200), chance.random((200, 2)) * 0.9
    places = np.concatenate([corner, chance.random((200, 2)) * (1 - corner)], 1)
    given = prediction_boxes.CellBoxes(ids, class_ids, places, chance.random(200))
    boxes = prediction_boxes.to_stored_boxes(ids, class_ids, given)
    assert np.abs(boxes["place"] / prediction_boxes.STEPS_PER_SIDE - places).max() < 1 / 40_000


def test_blank_and_never_detected_categories_need_no_project_class(db, tmp_path):
    seen = {"classes": [FOX.replace("red fox", "fox"), BLANK], "scores": [0.9, 0.05]}
    source = store(db, speciesnet(tmp_path / "sn.json", {"filepath": "00.jpg", "classifications": seen}), "SN")
    assert (source.images, source.cells) == (1, 1)
    path = megadetector(
        tmp_path / "md.json", [{"file": "00.jpg", "detections": [ANIMAL]}], detection_categories=MD | {"1": "fox"}
    )
    assert store(db, path).cells == 1, "person and vehicle are nowhere seen"


def test_unknown_predicted_classes_are_all_listed_with_the_options_to_resolve_them(db, tmp_path):
    detections = [ANIMAL | {"category": category} for category in "123"]
    path = megadetector(tmp_path / "md.json", [{"file": "00.jpg", "detections": detections}])
    with pytest.raises(
        AnnotatorError, match=r"lacks 3 classes of it: 'animal', 'person', 'vehicle'.*--only-known.*--class-map"
    ):
        store(db, path)
    assert store(db, path, class_map={"animal": "fox"}, only_known=True).cells == 1
    assert len(drawn(db, "00.jpg", "fox")) == 1, "boxes go by the class map, too"


@pytest.mark.parametrize("name", ["md.json", "sn.json"])
def test_import_refuses_a_predictions_file_and_names_the_predictions_command(db, project, tmp_path, name):
    entry = {"filepath": "00.jpg", "classifications": {"classes": [FOX], "scores": [0.9]}}
    path = speciesnet(tmp_path / name, entry) if name == "sn.json" else detected(tmp_path / name, [0, 0, 1, 1])
    assert label_files.find_predictor(path, None)
    for target in (project, tmp_path / "new"):
        with (
            pytest.raises(AnnotatorError, match=r"no answers of people(.|\n)*annotator predictions .* --name"),
            import_plan.prepare_import(target, path, import_plan.ImportOptions(), "Ann"),
        ):
            pass
    assert not (tmp_path / "new").exists() and db.value("SELECT count(*) FROM decision") == 0


def test_predictions_file_next_to_images_is_reported_and_not_imported_as_labels(photos, tmp_path):
    detected(photos / "md.json", [0, 0, 1, 1])
    with import_plan.prepare_import(tmp_path / "new", photos, import_plan.ImportOptions(), "Ann") as plan:
        assert plan.format.name == "images" and not plan.preview.scores
        assert any("md.json holds predictions of a detector" in sentence for sentence in plan.sentences)


def coco_results(folder: Path, results: list[object]) -> Path:
    """Write results beside an annotation file with one image of 200 x 100 pixels and one of unknown size."""
    images = [{"id": 7, "file_name": "00.jpg", "width": 200, "height": 100}, {"id": 8, "file_name": "01.jpg"}]
    categories = [{"id": 3, "name": "fox"}, {"id": 4, "name": "heron"}]
    write(folder / "annotations.json", {"images": images, "annotations": [], "categories": categories})
    return write(folder / "results.json", results)


def test_coco_results_keep_boxes_when_the_image_size_is_known(db, tmp_path, monkeypatch):
    box = {"image_id": 7, "category_id": 3, "score": 0.8, "bbox": [20, 10, 60, 40]}
    many = [box | {"score": 0.5 - at / 100} for at in range(30)]
    others = [
        box | {"category_id": 4, "score": 0.6, "bbox": [-10, 50, 110, 100]},
        box | {"image_id": 8, "score": 0.7},
        {"image_id": 7, "category_id": 4, "score": 0.1},
        box | {"bbox": [300, 0, 10, 10], "score": 0.9},
    ]
    monkeypatch.setattr("annotator.exchange.formats.coco_results.MAX_PENDING_RESULTS", 8)
    name, items, said, problems = read(coco_results(tmp_path, [*many, *others, box]))
    assert name == "coco-results" and not problems and "become no labels" in said
    assert items["00.jpg"].scores == pytest.approx({"fox": 0.9, "heron": 0.6})
    kept = boxes_of(items["00.jpg"])
    assert kept[0] == ("fox", 0.1, 0.1, 0.3, 0.4, 0.8) and kept[-1] == ("heron", 0.0, 0.5, 0.5, 0.5, 0.6)
    assert len(kept) == prediction_boxes.MAX_BOXES_PER_CELL + 1 and not items["01.jpg"].boxes
    store(db, tmp_path / "results.json")
    assert drawn(db, "00.jpg", "heron") == (("MD", 0.6, 0.0, 0.5, 0.5, 0.5),)


def test_merging_a_class_moves_its_prediction_boxes(db, tmp_path):
    store(db, detected(tmp_path / "md.json", [0.25, 0.25, 0.5, 0.5]))
    named = classes.load_classes_by_name(db)
    class_changes.merge(db, "Ann", [named["fox"].id], named["heron"].id, same=True)
    assert drawn(db, "00.jpg", "heron") == (("MD", 0.9, 0.25, 0.25, 0.5, 0.5),)


def test_doctor_reports_damaged_boxes_while_scores_stay_readable(db, tmp_path):
    source = store(db, detected(tmp_path / "md.json", [0.25, 0.25, 0.5, 0.5]))
    assert not list(array_health.find_damages(db))
    (db.paths.predictions(source.id, source.version) / prediction_boxes.BOXES_FILE).write_bytes(b"\x93NUMPY")
    [damage] = array_health.find_damages(db)
    assert "boxes of the predictions 'MD' cannot be drawn" in damage.what
    assert len(prediction_sources.open_scores(db)) == 1


def test_review_and_grid_show_prediction_boxes_except_in_blind_work(db, tmp_path):
    store(db, detected(tmp_path / "md.json", [0.25, 0.25, 0.5, 0.5]))
    image_id = db.value("SELECT id FROM image WHERE name = '00.jpg'")
    fox = classes.load_classes_by_name(db)["fox"].id
    count = db.value("SELECT count(*) FROM image")
    publish_run(db, np.full((count, 3), 0.9))
    box = ("MD", 0.9, 0.25, 0.25, 0.5, 0.5)
    chips = dict(review_queue.lease_next_images(db, WantedImages("review", "a", "Ann", (), count), 0.3))
    assert {chip.class_id: chip.boxes for chip in chips[image_id]}[fox] == (box,)
    assert sum(bool(chip.boxes) for of_image in chips.values() for chip in of_image) == 1
    (shown,) = grid_queue.lease_next_grids(db, WantedGrids("a", "Ann", fox, count, (), 1)).items
    assert {tile.image.id: tile.boxes for tile in shown.tiles}[image_id] == (box,)
    asked = WantedGrids("a", "Ann", fox, count, (), 1, hide_predictions=True)
    hidden = grid_queue.lease_tiles(db, asked, fox, [(image_id, None)])
    assert [tile.boxes for tile in hidden] == [()]
    no = Decision("says-no", "label", "Dora", "click", image_id=image_id, class_id=fox, state=-1)
    assert not decisions.save(db, [no]).refused
    publish_run(db, np.full((count, 3), 0.9))
    mistakes = WantedImages("review", "a", "Ann", (), count, only=SuggestionFilter(kind="likely_mistakes"))
    assert [chip.boxes for _, of_image in review_queue.lease_next_images(db, mistakes, 0.3) for chip in of_image] == [
        (box,)
    ]


def test_import_with_option_scores_as_stores_detector_scores_as_predictions(db, project, annotator, tmp_path):
    path = detected(tmp_path / "md.json", [0.25, 0.25, 0.5, 0.5])
    done = annotator("import", str(project), str(path), "--yes", "--scores-as", "MD", "--dry-run")
    assert "1 image would have scores" in done.stdout and not prediction_sources.load_sources(db)
    done = annotator("import", str(project), str(path), "--yes", "--scores-as", "MD")
    assert "Predictions MD: 1 image." in done.stdout and len(drawn(db, "00.jpg", "fox")) == 1
    assert db.value("SELECT count(*) FROM decision") == 0


def test_fiftyone_samples_with_predictions_are_not_recognized_as_speciesnet(tmp_path):
    sample = {"filepath": "1.jpg", "predictions": {"_cls": "Classifications", "classifications": [{"label": "fox"}]}}
    path = write(tmp_path / "samples.json", {"samples": [sample, sample]})
    assert "speciesnet" not in [format_.name for format_, _ in match_formats(path)]


def test_json_categories_are_read_completely_for_any_chunk_size(tmp_path, monkeypatch):
    named = {"0": "a]{ \\", "1": 'quo"te', "2": "käuzchen"}
    path = megadetector(tmp_path / "md.json", [{"file": "1.jpg", "detections": []}], classification_categories=named)
    for chunk in range(1, 40):
        monkeypatch.setattr(json_stream, "CHUNK_BYTES", chunk)
        texts = json_stream.read_objects(path, {"classification_categories", "detection_categories"}.__contains__)
        assert {key: json.loads(text) for key, text in texts.items()} == {
            "detection_categories": MD,
            "classification_categories": named,
        }


def test_predictions_file_of_unsupported_json_is_refused_with_the_reason(db, tmp_path):
    path = tmp_path / "md.json"
    path.write_text(json.dumps({"images": [{"file": "00.jpg", "detections": []}]}), encoding="utf-16")
    with pytest.raises(AnnotatorError, match=r"is not UTF-8 text\. Save it as UTF-8"):
        store(db, path)
    with pytest.raises(AnnotatorError, match="is of no format that holds scores"):
        store(db, write(path, {"something": {"else": 1}}))
