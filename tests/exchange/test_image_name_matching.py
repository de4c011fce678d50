"""Names of images: found in whatever form a source writes them, only where one image is meant, and said how."""

import zipfile
from pathlib import Path

import pytest
from conftest import draw
from harness.named_images import SEVERAL, UNKNOWN, bring, found, of_names
from harness.tables import over

from annotator.errors import AnnotatorError
from annotator.exchange.files.problems import Problems
from annotator.exchange.formats.contents import ImportedLabel, Item
from annotator.exchange.imports.import_plan import ImportOptions, prepare_import
from annotator.exchange.predictions import prediction_import
from annotator.exchange.project_setup import set_up_project
from annotator.exchange.reading.reading_options import ReadingOptions
from annotator.store.database.database import Database
from annotator.store.images import image_lists, name_matching
from annotator.store.images.images import find_image
from annotator.store.images.name_kinds import MATCH_KINDS
from annotator.store.imports import staged_cells
from annotator.store.imports.staged_names import NameRules, resolve_names
from annotator.store.imports.staging import Staging

FOUND = {  # images, name in the source: image and kind, or why it stands for none
    "exactly": (["a.jpg", "A.JPG", "a.png"], "a.jpg", "a.jpg", "name"),
    "absolute path of another machine": (["IMG_1.JPG"], "/data/photos/IMG_1.JPG", "IMG_1.JPG", "tail"),
    "path of Windows": (["IMG_1.JPG"], "C:\\data\\photos\\IMG_1.JPG", "IMG_1.JPG", "tail"),
    "Windows, relative": (["S1/IMG_1.JPG", "S2/IMG_1.JPG"], "x\\S2\\IMG_1.JPG", "S2/IMG_1.JPG", "tail"),
    "share of a network": (["IMG_1.JPG"], "\\\\nas\\card\\IMG_1.JPG", "IMG_1.JPG", "tail"),
    "last part of a longer path": (["train/S1/a.jpg", "b.jpg"], "S1/a.jpg", "train/S1/a.jpg", "tail"),
    "longest part counts": (["a.jpg", "S1/a.jpg"], "x/S1/a.jpg", "S1/a.jpg", "tail"),
    "an end, or the end of another": (["a.jpg", "y/x/a.jpg"], "x/a.jpg", SEVERAL, ""),
    "bare name of two": (["x/a.jpg", "y/a.jpg"], "a.jpg", SEVERAL, ""),
    "id": (["IMG_1.JPG", "IMG_10.JPG"], "IMG_1", "IMG_1.JPG", "stem"),
    "id in a folder": (["S1/1.jpg", "S2/1.jpg"], "S2/1", "S2/1.jpg", "stem"),
    "number": (["7.png", "77.png"], "7", "7.png", "stem"),
    "id with dots": (["scan.v2.jpg", "scan.jpg"], "scan.v2", "scan.v2.jpg", "stem"),
    "id with dots of no image": (["scan.jpg"], "scan.v2", UNKNOWN, ""),
    "another ending": (["a.jpg", "b.jpg"], "a.png", "a.jpg", "stem"),
    "the ending of a camera": (["a.jpg"], "a.CR2", "a.jpg", "stem"),
    "capitals of the ending": (["a.jpg", "a.png"], "a.JPG", "a.jpg", "stem"),
    "stem of two": (["a.jpg", "a.png"], "a", SEVERAL, ""),
    "another ending of two": (["a.jpg", "a.png"], "a.gif", SEVERAL, ""),
    "ending before an ending": (["a.png.jpg", "a.jpg"], "a.png", SEVERAL, ""),
    "a table of labels is no image": (["a.jpg"], "a.txt", UNKNOWN, ""),
    "part of a stem": (["IMG_1.JPG"], "IMG", UNKNOWN, ""),
    "hidden": ([".jpg", "a.jpg"], ".png", UNKNOWN, ""),
    "only an ending": (["a.jpg"], ".jpg", UNKNOWN, ""),
    "written on Windows": (["IMG_1.JPG"], "img_1.jpg", "IMG_1.JPG", "case"),
    "folder and stem in capitals": (["Card/img_1.jpg"], "CARD\\IMG_1", "Card/img_1.jpg", "case"),
    "a stem, and another in capitals": (["a.jpg", "A.jpg"], "a.png", "a.jpg", "stem"),
    "capitals of neither": (["ab.jpg", "AB.jpg"], "Ab.jpg", SEVERAL, ""),
    "by ending or by capitals": (["img_1.png", "IMG_1.jpg"], "img_1.jpg", SEVERAL, ""),
    "sharp s": (["STRASSE.jpg"], "straße.jpg", "STRASSE.jpg", "case"),
    "greek sigma": (["ΟΔΟΣ.jpg"], "οδος.jpg", "ΟΔΟΣ.jpg", "case"),
    "address": (["a b.jpg"], "https://host/set/a%20b.jpg?sig=x%2Fy&se=1#top", "a b.jpg", "url"),
    "address of a bucket": (["set/a.jpg"], "s3://bucket/set/a.jpg?versionId=3", "set/a.jpg", "url"),
    "plain address": (["set/a.jpg"], "gs://bucket/set/a.jpg", "set/a.jpg", "tail"),
    "upload": (["cat 1.jpg"], "/data/upload/3/1a2b3c4d-cat%201.jpg", "cat 1.jpg", "url"),
    "local files": (["pets/ä 1.jpg"], "/data/local-files/?d=srv/pets/%C3%A4%201.jpg", "pets/ä 1.jpg", "url"),
    "plus of local files": (["pets/a+b.jpg"], "/data/local-files/?d=pets/a+b.jpg", "pets/a+b.jpg", "url"),
    "signed address": (["a.jpg"], "/tasks/1/presign/?fileuri=czM6Ly9iL2EuanBn", "a.jpg", "url"),
    "encoded name": (["a/grün.jpg"], "a/gr%C3%BCn.jpg", "a/grün.jpg", "url"),
    "encoded, in the other form": (["a/grün.jpg"], "a/gru%CC%88n.jpg", "a/grün.jpg", "url"),
    "encoded twice": (["a b.jpg"], "a%2520b.jpg", "a b.jpg", "url"),
    "a file with an encoded name": (["a%20b.jpg"], "a b.jpg", "a%20b.jpg", "url"),
    "encoded and in capitals": (["A B.JPG"], "a%20b.png?x", "A B.JPG", "url"),
    "query on a path": (["a/b.jpg"], "a/b.jpg?size=200", "a/b.jpg", "url"),
    "a question mark of its own": (["why?.jpg", "why.jpg"], "why?.jpg", "why?.jpg", "name"),
    "a name that only looks like a query": (["a.jpg", "a.jpg?b.jpg"], "a.jpg?b.jpg", "a.jpg?b.jpg", "name"),
    "a missing file with a question mark": (["why.jpg"], "why?.jpg", UNKNOWN, ""),
    "a missing file with a hash": (["photo.jpg"], "photo #1.jpg", UNKNOWN, ""),
    "per cent without meaning": (["100%.jpg"], "x/100%.jpg", "100%.jpg", "tail"),
    "bytes that are no text": (["a.jpg"], "a%FF.jpg", UNKNOWN, ""),
    "a backslash in a file's name": (["a\\b.jpg", "a/b.jpg"], "a\\b.jpg", "a\\b.jpg", "name"),
    "its end with a backslash": (["x/a\\b.jpg", "b.jpg"], "a\\b.jpg", SEVERAL, ""),
    "general folder": (["images/a.jpg", "images/b.jpg"], "img/a.jpg", "images/a.jpg", "file"),
    "server and a general folder": (["photos/a.jpg"], "/srv/birds/2020/a.jpg", "photos/a.jpg", "file"),
    "general folder, in capitals": (["images/IMG_1.JPG"], "img/img_1.JPG", "images/IMG_1.JPG", "file"),
    "another station": (["S1/IMG_1.JPG", "S1/IMG_2.JPG"], "S2/IMG_1.JPG", UNKNOWN, ""),
    "a station within general folders": (["S1/images/a.jpg"], "C:\\card\\S1\\img\\a.jpg", "S1/images/a.jpg", "file"),
    "another station in general folders": (["S1/images/a.jpg"], "S2/images/a.jpg", UNKNOWN, ""),
    "a split in a general folder": (["valid/images/a.jpg"], "train/a.jpg", UNKNOWN, ""),
    "another split": (["valid/a.jpg"], "train/a.jpg", UNKNOWN, ""),
    "general folder of two": (["images/x/a.jpg", "images/y/a.jpg"], "img/a.jpg", UNKNOWN, ""),
    "another folder and another ending": (["images/a.jpg"], "masks/a.png", UNKNOWN, ""),
    "nothing": (["a.jpg"], "..", UNKNOWN, ""),
    "a folder": (["a/b.jpg"], "a/", UNKNOWN, ""),
    "root": (["a.jpg"], "/", UNKNOWN, ""),
    "inline data": (["a.jpg"], "data:image/png;base64,aaaa", UNKNOWN, ""),
    "a broken address": (["a.jpg"], "http://[::1/a.jpg", "a.jpg", "tail"),
    "very deep": (["a.jpg"], "x/" * 900 + "a.jpg", "a.jpg", "tail"),
}  # fmt: skip


@over(kind=list(FOUND))
def test_image_name_is_matched_by_the_strictest_rule_that_finds_one_image(tmp_path_factory, kind):
    names, wanted, image, how = FOUND[kind]
    db = of_names(tmp_path_factory.mktemp("names"), *names)
    results, problems = found(db, wanted)
    assert results[wanted] == (image, how)
    assert bool(problems) == (image == SEVERAL), "an ambiguous name is refused, an unknown one counted"
    assert not problems or "several images have this name; give more of its path" in problems[0]


LOOSEST = {  # name -> the strictest --match with which it is found
    "a/1.jpg": "name", "x/a/1.jpg": "tail", "a/1": "stem", "a/1.JPG": "stem", "A/1.jpg": "case", "A/1": "case",
    "a/1.jpg?x": "url", "b/1.jpg": "file",
}  # fmt: skip


@pytest.mark.slow
@over(name=list(LOOSEST), match=MATCH_KINDS)
def test_match_option_limits_how_loosely_an_image_name_is_matched(tmp_path_factory, name, match):
    db = of_names(tmp_path_factory.mktemp("names"), "a/1.jpg")
    results, problems = found(db, name, rules=NameRules({}, match=match))
    is_found = MATCH_KINDS.index(match) >= MATCH_KINDS.index(LOOSEST[name])
    assert results[name] == (("a/1.jpg", LOOSEST[name]) if is_found else (UNKNOWN, "")) and not problems


def test_unknown_match_rule_is_refused_and_the_known_ones_are_listed(tmp_path):
    with pytest.raises(AnnotatorError, match=r"Names are not found by 'stm'.*stem"):
        found(of_names(tmp_path, "a.jpg"), "a", rules=NameRules({}, match="stm"))


RIVALS = {  # images, names of one source that cannot all be right: the name that is said to be wrong
    "name and stem": (["a.jpg"], ["a.jpg", "a.png"], "a.png"),
    "name and capitals": (["a.jpg"], ["a.jpg", "A.jpg"], "A.jpg"),
    "two stems": (["a.jpg"], ["a.png", "a.gif"], "a.gif"),
    "two tails": (["a.jpg"], ["x/a.jpg", "y/a.jpg"], "y/a.jpg"),
    "two servers": (["a.jpg"], ["http://h/x/a.jpg", "http://h/y/a.jpg"], "http://h/y/a.jpg"),
}


@over(kind=list(RIVALS))
def test_two_names_that_match_one_image_are_reported_together(tmp_path_factory, kind):
    images, names, wrong = RIVALS[kind]
    _, problems = found(of_names(tmp_path_factory.mktemp("names"), *images), *names)
    assert len(problems) == 1 and f"{wrong!r} and {names[0]!r} (line 2) could both be the image 'a.jpg'" in problems[0]


def test_urls_that_differ_only_by_signature_match_the_same_image(tmp_path):
    results, problems = found(of_names(tmp_path, "a.jpg"), "http://h/a.jpg?sig=1", "http://h/a.jpg?sig=2")
    assert {image for image, _ in results.values()} == {"a.jpg"} and not problems


def test_image_with_two_files_is_matched_by_either_name(tmp_path):
    db = of_names(tmp_path, "S1/a.jpg", "S2/c.jpg")
    with db.writing() as sql:
        sql.execute("INSERT INTO file (folder_id, path, bytes, modified_ns, image_id) VALUES (1, 'S2/b.jpg', 1, 1, 1)")
    results, problems = found(db, "S1/a.jpg", "b.JPG")
    assert results["b.JPG"] == ("S1/a.jpg", "stem") and not problems


def test_image_names_in_other_folders_are_not_matched_to_images_of_one_folder(tmp_path):
    db = of_names(tmp_path, *(f"images/IMG_{number}.JPG" for number in range(4)))
    names = [f"{station}/IMG_{number}.JPG" for station in ("images", "S2") for number in range(4)]
    results, problems = found(db, *names)
    assert [results[name] for name in names] == [(name, "name") for name in names[:4]] + [(UNKNOWN, "")] * 4
    assert not problems
    results, problems = found(db, "S1/IMG_1.JPG", "S2/IMG_1.JPG", "S2/IMG_2.JPG")
    assert results["S1/IMG_1.JPG"] == results["S2/IMG_1.JPG"] == (UNKNOWN, ""), "it is one of them, and not both"


def test_import_refuses_labels_of_another_folder_unless_match_is_file(tmp_path):
    draw(tmp_path / "cards" / "S1" / "IMG_1.JPG", seed=1)
    table = tmp_path / "labels.csv"
    table.write_text("file,label\nS2/IMG_1.JPG,fox\n")
    with pytest.raises(AnnotatorError, match="not one answer would be stored"):
        bring(tmp_path / "project", table, images=tmp_path / "cards")
    bring(tmp_path / "project", table, images=tmp_path / "cards", reading=ReadingOptions(match="file"))
    assert labels(Database(tmp_path / "project")) == {"S1/IMG_1.JPG": {"fox"}}


def test_preview_names_an_unmatched_image_of_the_same_file_name_in_another_folder(tmp_path):
    db = of_names(tmp_path, "S1/a.jpg")
    problems = Problems()
    with Staging(db.paths.project, problems.add) as staged:
        staged.add([Item("S2/a.jpg", 2, [ImportedLabel("fox", 1)])])
        resolve_names(staged, db, NameRules({}), problems.add)
        staged_cells.build(staged, db, problems.add)
        unknown = staged_cells.compute_preview(staged, db).images_unknown
    (example,) = unknown.examples
    assert (
        "'S2/a.jpg': an image of this file name lies in another folder (--match file takes it): 'S1/a.jpg'" in example
    )


def labels(db: Database) -> dict[str, set[str]]:
    rows = db.tuples(
        """SELECT i.name, c.name FROM label l JOIN image i ON i.id = l.image_id JOIN class c ON c.id = l.class_id
        WHERE l.state = 1"""
    )
    return {image: {name for other, name in rows if other == image} for image, _ in rows}


def packed(path: Path, folder: Path, members: dict[str, str], table: str, where: str = "labels.csv") -> Path:
    """A zip of pictures under these names, and of a table."""
    with zipfile.ZipFile(path, "w") as archive:
        for number, (name, file) in enumerate(members.items()):
            draw(folder / file, seed=number)
            archive.write(folder / file, name)
        archive.writestr(where, table)
    return path


RENAMED = {  # members of a zip, and a table in it: name in the project -> class
    "capitals": (
        ["A.jpg", "a.jpg", "CON.jpg"], "image,labels\nA.jpg,fox\na.jpg,deer\nCON.jpg,hare\n", "labels.csv",
        {"A.jpg": {"fox"}, "a~2.jpg": {"deer"}, "_CON.jpg": {"hare"}},
    ),
    "a member has the new name": (
        ["A.jpg", "a.jpg", "a~2.jpg"], "image,labels\nA.jpg,fox\na.jpg,deer\na~2.jpg,hare\n", "labels.csv",
        {"A.jpg": {"fox"}, "a~2.jpg": {"deer"}, "a~2~2.jpg": {"hare"}},
    ),
    "in a folder, beside the table": (
        ["set/A.jpg", "set/a.jpg", "x.jpg"], "image,labels\nA.jpg,fox\na.jpg,deer\n", "set/labels.csv",
        {"set/A.jpg": {"fox"}, "set/a~2.jpg": {"deer"}},
    ),
    "in the only folder": (
        ["set/A.jpg", "set/a.jpg"], "image,labels\nset/A.jpg,fox\nset\\a.jpg,deer\n", "set/labels.csv",
        {"A.jpg": {"fox"}, "a~2.jpg": {"deer"}},
    ),
    "made on Windows": (
        ["photos\\a.jpg", "photos\\b.jpg"], "image,labels\r\nphotos\\a.jpg,fox\r\nphotos\\b.jpg,deer\r\n",
        "photos\\labels.csv", {"a.jpg": {"fox"}, "b.jpg": {"deer"}},
    ),
    "by stem": (
        ["A.jpg", "a.jpg"], "image,labels\nA,fox\na,deer\n", "labels.csv", {"A.jpg": {"fox"}, "a~2.jpg": {"deer"}},
    ),
}  # fmt: skip


@over(kind=list(RENAMED))
def test_archive_labels_match_renamed_images_by_their_original_names(tmp_path_factory, kind):
    folder = tmp_path_factory.mktemp("zip")
    names, table, where, expected = RENAMED[kind]
    members = {name: f"{number}.jpg" for number, name in enumerate(names)}
    source = packed(folder / "photos.zip", folder / "drawn", members, table, where)
    bring(folder / "project", source)
    assert labels(Database(folder / "project")) == expected
    with prepare_import(folder / "project", source, ImportOptions(), "Ann") as again:
        assert not again.preview.answers_new and not again.preview.images_unknown.count


def splits(folder: Path, names: tuple[str, ...] = ("a.jpg", "b.jpg")) -> Path:
    for number, split in enumerate(("train", "valid")):
        for place, name in enumerate(names):
            draw(folder / split / name, seed=10 * number + place)
    return folder


@over(written=["a.jpg", "a", "A.JPG", "./a.jpg", "a.png?x=1"])
def test_table_name_matches_the_image_next_to_the_table_first(tmp_path_factory, written):
    folder = tmp_path_factory.mktemp("splits")
    data = splits(folder / "set")
    draw(folder / "other" / "a.jpg", seed=99)
    for name in ("other", "set"):
        set_up_project(folder / "project", images_folder=folder / name)
    table = data / "valid" / "labels.csv"
    table.write_text(f"image,class\n{written},fox\n")
    bring(folder / "project", table)
    assert labels(Database(folder / "project")) == {"valid/a.jpg": {"fox"}}


@over(written=["a.jpg", "a", "A.JPG"])
def test_split_tables_label_only_the_images_of_their_folders(tmp_path_factory, written):
    folder = tmp_path_factory.mktemp("splits")
    data = splits(folder / "set")
    (data / "train" / "_classes.csv").write_text(f"filename, fox, deer\n{written}, 1, 0\nb.jpg, 0, 1\n")
    (data / "valid" / "_classes.csv").write_text(f"filename, fox\n{written}, 0\nb.jpg, 1\n")
    bring(folder / "project", data)
    db = Database(folder / "project")
    assert labels(db) == {"train/a.jpg": {"fox"}, "train/b.jpg": {"deer"}, "valid/b.jpg": {"fox"}}
    unknown = """SELECT i.name FROM image i, class c WHERE c.name = 'deer' AND NOT EXISTS (SELECT 1 FROM label l
        WHERE l.image_id = i.id AND l.class_id = c.id)"""
    assert {name for (name,) in db.tuples(unknown)} == {"valid/a.jpg", "valid/b.jpg"}, "its table does not ask for deer"


def test_table_in_a_new_image_folder_labels_the_new_images_and_not_those_of_the_project(tmp_path):
    draw(tmp_path / "old" / "a.jpg", seed=1)
    draw(tmp_path / "new" / "a.jpg", seed=2)
    set_up_project(tmp_path / "project", images_folder=tmp_path / "old")
    (tmp_path / "new" / "labels.csv").write_text("image,class\na.jpg,fox\n")
    bring(tmp_path / "project", tmp_path / "new")
    db = Database(tmp_path / "project")
    ((name, found_labels),) = labels(db).items()
    assert name != "a.jpg" and name.endswith("a.jpg") and found_labels == {"fox"}


def test_relative_image_paths_with_parent_folders_in_a_table_are_followed(tmp_path):
    data = splits(tmp_path / "set")
    set_up_project(tmp_path / "project", images_folder=data)
    (data / "lists").mkdir()
    (data / "lists" / "labels.csv").write_text("image,class\n../train/a.jpg,fox\n..\\valid\\b.jpg,deer\n")
    bring(tmp_path / "project", data / "lists" / "labels.csv")
    assert labels(Database(tmp_path / "project")) == {"train/a.jpg": {"fox"}, "valid/b.jpg": {"deer"}}


def test_import_init_and_predictions_match_image_names_by_the_same_rules(tmp_path):
    photos = tmp_path / "photos"
    for number, name in enumerate(("IMG_0001.JPG", "IMG_0002.JPG", "IMG_0003.jpg")):
        draw(photos / name, seed=number)
    table = tmp_path / "labels.csv"
    table.write_text("image,fox,deer\nIMG_0001,1,0\nC:\\card\\IMG_0002.JPG,0,1\nimg_0003.JPG,0,0\n")
    expected = {"IMG_0001.JPG": {"fox"}, "IMG_0002.JPG": {"deer"}}
    preview = bring(tmp_path / "imported", table, images=photos).preview
    assert {kind: tally.count for kind, tally in preview.found_by.items()} == {"tail": 1, "stem": 1, "case": 1}
    assert preview.found_by["stem"].examples == ["line 2: 'IMG_0001' is 'IMG_0001.JPG'"]
    set_up_project(tmp_path / "made", images_folder=photos, label_file=table, class_file=None)
    for project in ("imported", "made"):
        assert labels(Database(tmp_path / project)) == expected
    scores = tmp_path / "scores.csv"
    scores.write_text("image,fox\nIMG_0001,0.5\nC:\\card\\IMG_0002.JPG,0.25\n")
    db = Database(tmp_path / "imported")
    with prediction_import.prepare_predictions(
        db, scores, "model", prediction_import.PredictionOptions(), "Ann"
    ) as plan:
        assert plan.found.images == 2 and {*plan.found.found_by} == {"tail", "stem"}
    assert image_lists.resolve_image_names(db, ["photos/IMG_0001.JPG"]) == [find_image(db, "C:\\x\\IMG_0001.JPG").id]
    with pytest.raises(AnnotatorError, match=r"Did you mean.* 'IMG_0001\.JPG'"):
        find_image(db, "IMG_0001.jpeg")  # nobody would see that it was taken for another


def test_match_by_name_accepts_only_exact_names(tmp_path):
    draw(tmp_path / "photos" / "a.jpg", seed=1)
    draw(tmp_path / "photos" / "b.jpg", seed=2)
    table = tmp_path / "labels.csv"
    table.write_text("image,class\na.jpg,fox\nb,fox\n")
    plan = bring(tmp_path / "project", table, images=tmp_path / "photos", reading=ReadingOptions(match="name"))
    assert plan.preview.images_unknown.count == 1 and not plan.preview.found_by


def test_find_images_by_name_matches_only_the_first_of_two_names_for_one_image(tmp_path):
    db = of_names(tmp_path, "a.jpg", "x/b.jpg")
    results = name_matching.find_images_by_name(db, ["y/a.jpg", "z/a.jpg", "b.jpg"], "tail")
    assert results["b.jpg"].image_id == 2 and results["y/a.jpg"].image_id == 1
    assert results["z/a.jpg"] == (None, "", "it could be the image that is named as 'y/a.jpg'")
