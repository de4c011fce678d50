"""What a table or a folder means: read right or asked, never wrong in silence; and every question has an answer."""

import json
import re

import pandas as pd
import pytest
from conftest import draw
from harness.tables import over

from annotator.exchange.files.problems import Problems
from annotator.exchange.formats import match_formats
from annotator.exchange.imports.label_files import read_label_file
from annotator.exchange.reading.reading_options import ReadingOptions
from annotator.records import ABSENT, PRESENT, UNSURE
from annotator.store.database.database import Database
from annotator.store.labels import decisions

WORDS = {PRESENT: "+", ABSENT: "-", UNSURE: "?"}


def meaning(path, reading=None):
    """Of each image its answers ("+fox -deer", scores as "fox=0.5"), and the fields that are asked about."""
    ((format_, _),) = match_formats(path)
    problems = Problems()
    contents = read_label_file(format_, path, problems, reading or ReadingOptions())
    said: dict[str, set[str]] = {}
    for item in contents.items:
        answers = {f"{WORDS[given.state]}{given.class_name}" for given in item.labels}
        if item.exhaustive:
            rest = {f"-{name}" for name, _ in contents.classes if f"+{name}" not in answers}
            answers |= rest if contents.classes else {"-"}
        answers |= {f"{name}={score:g}" for name, score in item.scores.items()}
        said.setdefault(item.image, set()).update(answers)
    assert not problems.count, problems.sentences
    return {name: " ".join(sorted(answers)) for name, answers in said.items()}, [
        one.field for one in contents.interpretations if not one.is_sure
    ]


@over(
    text__expected=[
        ("image,labels\na.jpg,fox|deer\nb.jpg,fox\n", {"a.jpg": "+deer +fox", "b.jpg": "+fox"}),
        ('image,labels\na.jpg,"fox, deer"\nb.jpg,"deer, hare"\nc.jpg,fox\n', {"a.jpg": "+deer +fox"}),
        ("image;tags\na.jpg;fox,deer\nb.jpg;deer,hare\nc.jpg;fox\n", {"a.jpg": "+deer +fox"}),
        ("sep=;\nimage;labels\na.jpg;fox\n", {"a.jpg": "+fox"}),
        ("image,labels\na.jpg,\"['fox', 'deer']\"\nb.jpg,[]\n", {"a.jpg": "+deer +fox", "b.jpg": ""}),
        ('image,labels\na.jpg,"c(""fox"", ""deer"")"\n', {"a.jpg": "+deer +fox"}),
        ("image,label1,label2,label3\na.jpg,fox,deer,\nb.jpg,hare,,NA\n", {"a.jpg": "+deer +fox", "b.jpg": "+hare"}),
        ("image,label\na.jpg,fox\nb.jpg,\nc.jpg,NA\n", {"a.jpg": "+fox", "b.jpg": "", "c.jpg": ""}),
        ("image,label\na.jpg,red fox\nb.jpg,deer\n", {"a.jpg": "+red fox", "b.jpg": "+deer"}),
        ("Image Index,Finding Labels\na.png,Mass|Nodule\nb.png,Mass\n", {"a.png": "+Mass +Nodule"}),
        ("image,fox,deer\na.jpg,1,NA\nb.jpg,0,0\n", {"a.jpg": "+fox", "b.jpg": "-deer -fox"}),
        ("image,fox,deer\na.jpg,yes,no\nb.jpg,unsure,\n", {"a.jpg": "+fox -deer", "b.jpg": "?fox"}),
        ("image,fox,deer\na.jpg,x,\nb.jpg,,x\n", {"a.jpg": "+fox", "b.jpg": "+deer"}),
        ("image,fox,deer\na.jpg,TRUE,FALSE\n", {"a.jpg": "+fox -deer"}),
        ("image,fox,deer\na.jpg,1.0,0.0\n", {"a.jpg": "+fox -deer"}),
        ("image,fox,deer\na.jpg,1,-1\nb.jpg,-1,-1\n", {"a.jpg": "+fox -deer", "b.jpg": "-deer -fox"}),
        ("image,🦊\na.jpg,1\nb.jpg,\n", {"a.jpg": "+🦊", "b.jpg": ""}),
        ("File,RelativePath,DeleteFlag,Species\nR1.JPG,S1,false,fox\nR1.JPG,S2,false,deer\n", {"S1/R1.JPG": "+fox"}),
        ("filename,split,label\na.jpg,train,fox\na.jpg,test,deer\n", {"train/a.jpg": "+fox", "test/a.jpg": "+deer"}),
        (
            "filename,width,class,xmin,ymin,xmax,ymax\na.jpg,9,fox,1,2,3,4\na.jpg,9,deer,1,2,3,4\n",
            {"a.jpg": "+deer +fox"},
        ),
        ("isic_id,MEL,NV\nISIC_01,1.0,0.0\nISIC_02,0.0,1.0\n", {"ISIC_01": "+MEL -NV", "ISIC_02": "+NV -MEL"}),
        ("image,label,fox,deer\na.jpg,fox,1,0\n", {"a.jpg": "+fox -deer"}),
        ("image,fox\na.jpg,1\nb.jpg,0\n", {"a.jpg": "+fox", "b.jpg": "-fox"}),
        ("photo,pic,label\n1,a.jpg,fox\n2,b.jpg,deer\n", {"a.jpg": "+fox"}),
    ]
)
def test_unambiguous_table_is_read_without_a_question(tmp_path_factory, text, expected):
    path = tmp_path_factory.mktemp("table") / "labels.csv"
    path.write_text(text, encoding="utf-8")
    said, asked = meaning(path)
    assert expected.items() <= said.items() and not asked, (said, asked)


@over(
    text__field__options__expected=[
        ("image,labels\na.jpg,clear primary\nb.jpg,clear\n", "separator", {"separator": " "}, "+clear +primary"),
        ("image,labels\na.jpg,red fox\nb.jpg,grey fox\n", "separator", {"separator": "none"}, "+red fox"),
        ('image,label\na.jpg,"tench, Tinca"\nb.jpg,fox\n', "separator", {"separator": "none"}, "+tench, Tinca"),
        ("image,tags\na.jpg,clear primary\nb.jpg,haze\n", "separator", {"separator": " "}, "+clear +primary"),
        ("image,label\na.jpg,animal;dog;pug\nb.jpg,animal;cat;tom\n", "separator", {"separator": "none"},
         "+animal;dog;pug"),
        ("filename,label,confidence\na.jpg,fox,0.98\na.jpg,deer,0.03\n", "score_column", {"score_column": "confidence"},
         "deer=0.03 fox=0.98"),
        ("filename,label,score\na.jpg,fox,1\na.jpg,deer,1\n", "score_column", {"score_column": "none"}, "+deer +fox"),
        ("image,fox,deer\na.jpg,0.9,0.1\n", "score_column", {"score_column": "fox"}, "deer=0.1 fox=0.9"),
        ("image,fox,deer\na.jpg,2,0\nb.jpg,0,1\n", "numbers", {"numbers": "counts"}, "+fox -deer"),
        ("image,fox,deer\na.jpg,2,0\nb.jpg,0,1\n", "numbers", {"numbers": "present-counts"}, "+fox"),
        ("image,label\na.jpg,0\nb.jpg,1\n", "numbers", {"numbers": "ids"}, "+0"),
        ("image,label,fox\na.jpg,7,1\nb.jpg,3,0\n", "numbers", {"numbers": "facts"}, "+fox"),
        ("image,label\na.jpg,empty\nb.jpg,fox\n", "empty_label", {"empty_label": ("empty",)}, "-"),
        ("image,label\na.jpg,No Finding\nb.jpg,fox\n", "empty_label", {"empty_label": ("none",)}, "+No Finding"),
        ("image,fox,deer\na.jpg,1,-1\nb.jpg,0,\n", "unsure", {"unsure": ("-1",)}, "+fox ?deer"),
        ("image,fox,deer\na.jpg,1,-1\nb.jpg,0,\n", "unsure", {"absent": ("-1",)}, "+fox -deer"),
        ("image,fox\na.jpg,perhaps\n" + "b.jpg,1\n" * 30, "unknown", {"unsure": ("perhaps",)}, "?fox"),
        ("image,fox,train\na.jpg,1,0\n", "class_columns", {"class_columns": ("fox",)}, "+fox"),
        ("image,label,species\na.jpg,animal,fox\n", "label_columns", {"label_columns": ("species",)}, "+fox"),
        ("image,what\na.jpg,fox\nb.jpg,deer\n", "label_columns", {"label_columns": ("what",)}, "+fox"),
        ("image,file,label\na.jpg,z.jpg,fox\n", "image_column", {"image_column": "image"}, "+fox"),
        ("a.jpg,fox\nb.jpg,deer\n", "label_columns", {"label_columns": ("column 2",)}, "+fox"),
        ("image,fox,deer\na.jpg,1,-9\nb.jpg,0,0\n", "unknown", {"unknown": ("-9",)}, "+fox"),
        ("image,fox\na.jpg,yes\nb.jpg,no\nc.jpg,seen twice\n", "unknown", {"present": ("seen twice",)}, "+fox"),
        ("image,labels\na.jpg,fox:0.9|deer:0.1\n", "score_column", {"score_column": "none"}, "+deer:0.1 +fox:0.9"),
        ("image,label\na.jpg,true\n", "class_columns", {"class_columns": ("label",)}, "+label"),
    ]
)  # fmt: skip
def test_ambiguous_label_table_asks_for_an_option_and_is_read_as_the_option_states(
    tmp_path_factory, text, field, options, expected
):
    path = tmp_path_factory.mktemp("table") / "labels.csv"
    path.write_text(text, encoding="utf-8")
    assert field in meaning(path)[1]
    said, asked = meaning(path, ReadingOptions(**options))
    assert not asked and said["a.jpg"] == expected, (said, asked)


def test_same_table_gives_the_same_labels_in_every_file_format(tmp_path):
    table = pd.DataFrame({"file_name": ["a.jpg", "b.jpg"], "tags": [["fox", "deer"], ["deer"]], "site": ["S1", None]})
    table.to_parquet(tmp_path / "labels.parquet")
    table.to_json(tmp_path / "labels.json", orient="records")
    table.to_json(tmp_path / "labels.jsonl", orient="records", lines=True)
    (tmp_path / "set").mkdir()
    table.to_json(tmp_path / "set/metadata.jsonl", orient="records", lines=True)
    text = table.assign(tags=table["tags"].map("|".join))
    text.to_csv(tmp_path / "labels.csv", index=False)
    text.to_csv(tmp_path / "labels.tsv", index=False, sep="\t")
    text.to_excel(tmp_path / "labels.xlsx", index=False)
    table.to_json(tmp_path / "no_ending", orient="records", lines=True)
    for name in ("csv", "tsv", "parquet", "json", "jsonl", "xlsx"):
        assert meaning(tmp_path / f"labels.{name}") == ({"a.jpg": "+deer +fox", "b.jpg": "+deer"}, []), name
    for name in ("set", "no_ending"):
        assert meaning(tmp_path / name) == ({"a.jpg": "+deer +fox", "b.jpg": "+deer"}, []), name


@over(
    content__expected=[
        ({"a.jpg": ["fox", "deer"], "b.jpg": []}, {"a.jpg": "+deer +fox", "b.jpg": ""}),
        ({"a.jpg": "fox", "b.jpg": "deer"}, {"a.jpg": "+fox", "b.jpg": "+deer"}),
        ({"a.jpg": {"fox": 1, "deer": 0}}, {"a.jpg": "+fox -deer"}),
        ([{"file_name": "a.jpg", "labels": {"fox": True, "deer": False}}], {"a.jpg": "+fox -deer"}),
    ]
)
def test_json_labels_are_read_from_every_supported_structure(tmp_path_factory, content, expected):
    path = tmp_path_factory.mktemp("json") / "labels.json"
    path.write_text(json.dumps(content))
    assert meaning(path) == (expected, [])


def test_spreadsheet_reader_skips_a_title_above_the_header(tmp_path):
    rows = [["Survey of May", None], [None, None], ["file", "fox"], ["a.jpg", "x"]]
    pd.DataFrame(rows).to_excel(tmp_path / "labels.xlsx", index=False, header=False)
    assert meaning(tmp_path / "labels.xlsx") == ({"a.jpg": "+fox"}, [])


def test_table_reader_refuses_an_object_as_a_label(tmp_path):
    (tmp_path / "labels.csv").write_text("image,label\na.jpg,\"{'fox': 1}\"\n")
    problems = Problems()
    list(
        read_label_file(
            match_formats(tmp_path / "labels.csv")[0][0], tmp_path / "labels.csv", problems, ReadingOptions()
        ).items
    )
    assert "neither a name nor a list" in problems.sentences[0]


def test_import_refuses_repeated_nested_folder_names_as_classes_without_a_choice(tmp_path, annotator):
    for number, name in enumerate(("north/fox/a.jpg", "north/deer/b.jpg", "south/fox/c.jpg", "south/d.jpg")):
        draw(tmp_path / "study" / name, ("fox",), seed=number)
    assert "which repeat" in annotator("import", "new", "study", "--yes", code=1).stderr
    (tmp_path / "study/south/d.jpg").rename(tmp_path / "study/e.jpg")
    assert "north, south say where images lie" in annotator("import", "new", "study", "--yes").stdout
    assert answers(tmp_path / "new") == set()


def test_class_numbers_get_the_names_of_the_class_list_next_to_the_table(tmp_path):
    (tmp_path / "labels.csv").write_text("image,label\na.jpg,1\nb.jpg,0\n")
    (tmp_path / "classes.txt").write_text("cat\ndog\n")
    assert meaning(tmp_path / "labels.csv") == ({"a.jpg": "+dog", "b.jpg": "+cat"}, [])


@pytest.fixture
def folder(tmp_path):
    for number, name in enumerate(("CAM01/a.jpg", "CAM01/b.jpg", "CAM02/c.jpg")):
        draw(tmp_path / "study" / name, ("fox",), seed=number)
    return tmp_path / "study"


def answers(project) -> set[tuple[str, str, int]]:
    db = Database(project)
    names = {row[0]: row[1] for row in db.tuples("SELECT id, name FROM image")}
    classes = {row[0]: row[1] for row in db.tuples("SELECT id, name FROM class")}
    return {(names[one.image_id], classes[one.class_id], one.state) for one in decisions.load_all_labels(db)}


def test_import_of_an_ambiguous_table_is_refused_with_yes_and_names_the_needed_options(tmp_path, folder, annotator):
    (tmp_path / "labels.csv").write_text("image,labels\na.jpg,clear primary\nb.jpg,clear\n")
    words = ("import", "new", "labels.csv", "--images", folder)
    refused = annotator(*words, "--yes", code=1)
    assert "can be read in more than one way, and nothing was stored" in refused.stderr
    assert not (tmp_path / "new").exists()
    (options,) = re.findall(r"Answer it with: (--separator blank) or --separator none", refused.stderr)
    again = annotator(*words, *options.split(), "--save-reading", "card.json", "--yes")
    assert "CAM01/a.jpg" not in again.stderr
    expected = {("CAM01/a.jpg", "clear", 1), ("CAM01/a.jpg", "primary", 1), ("CAM01/b.jpg", "clear", 1)}
    assert answers(tmp_path / "new") == expected
    (tmp_path / "next.csv").write_text("image,labels\nc.jpg,haze primary\n")
    annotator("import", "new", "next.csv", "--reading", "card.json", "--yes")
    assert ("CAM02/c.jpg", "haze", 1) in answers(tmp_path / "new")
    repeated = re.search(r"The same reading again: (.*)", again.stdout)
    assert repeated and "--separator ' '" in repeated[1]
    (tmp_path / "card.json").write_text('{"separator": 1}')
    assert (
        "cannot be read as a reading" in annotator("import", "new", "next.csv", "--reading", "card.json", code=1).stderr
    )


def test_data_card_names_the_options_and_the_role_of_each_imported_field(tmp_path, folder, annotator):
    (folder / "labels.csv").write_text("file,tags,status\nCAM01/a.jpg,fox,ok\nCAM01/b.jpg,deer,bad\n")
    annotator("import", "new", folder / "labels.csv", "--images", folder, "--rows", "status=ok", "--yes")
    annotator("export", "new", "out.csv")
    [one] = json.loads((tmp_path / "out.card.json").read_text())["imports"]
    assert (one["source"], one["answers"]) == ("labels.csv", 1) and "status=ok" in one["options"]
    assert {row["field"]: row["role"] for row in one["fields"]} == {
        "file": "image",
        "tags": "class names",
        "status": "kept rows",
    }
    assert "| status | kept rows | rows with ok are read |" in (tmp_path / "out.card.md").read_text()
    annotator("imports", "undo", "new", "1", "--yes")
    annotator("export", "new", "out.csv")
    assert json.loads((tmp_path / "out.card.json").read_text())["imports"] == []


def test_import_counts_the_answers_of_images_that_cannot_be_read(tmp_path, folder, annotator):
    (folder / "CAM01" / "b.jpg").write_text("no picture")
    (tmp_path / "labels.csv").write_text("image,labels\nCAM01/a.jpg,fox\nCAM01/b.jpg,fox;deer\n")
    said = annotator("import", "new", "labels.csv", "--images", folder, "--separator", ";", "--yes").stdout
    assert "1 answer, 2 classes added.\n2 answers not stored, because the images cannot be read.\n" in said


def test_init_refuses_an_ambiguous_table_and_accepts_saved_reading_options(tmp_path, folder, annotator):
    (tmp_path / "labels.csv").write_text("image,labels\na.jpg,clear primary\nb.jpg,clear\n")
    words = ("init", "new", "--images", folder, "--labels", "labels.csv")
    assert "--separator blank" in annotator(*words, code=1).stderr
    assert not (tmp_path / "new").exists()
    (tmp_path / "card.json").write_text(json.dumps({"separator": " "}))
    annotator(*words, "--reading", "card.json")
    assert ("CAM01/a.jpg", "primary", 1) in answers(tmp_path / "new")


def test_import_of_a_table_that_yields_no_answers_is_refused_with_the_reason(tmp_path, folder, annotator):
    (tmp_path / "labels.csv").write_text("image,label\nz.jpg,fox\n")
    words = ("import", "new", "labels.csv", "--images", folder, "--yes")
    refused = annotator(*words, code=1).stderr
    assert "not one answer would be stored" in refused and "'z.jpg'" in refused and not (tmp_path / "new").exists()
    (tmp_path / "labels.csv").write_text("image,weather\na.jpg,sun\n")
    assert "--label-column" in annotator(*words, code=1).stderr
    annotator(*words, "--class-columns", "none")
    assert answers(tmp_path / "new") == set()


def test_import_adds_scores_as_predictions_and_never_as_answers(tmp_path, folder, annotator):
    (tmp_path / "labels.csv").write_text("image,label,confidence\na.jpg,fox,0.98\na.jpg,deer,0.03\nb.jpg,fox,0.4\n")
    (tmp_path / "classes.txt").write_text("fox\ndeer\n")
    annotator("init", "new", "--images", folder, "--classes", "classes.txt")
    refused = annotator("import", "new", "labels.csv", "--yes", code=1).stderr
    assert "annotator predictions PROJECT FILE --name MODEL adds them" in refused
    annotator("import", "new", "labels.csv", "--score-column", "confidence", "--scores-as", "md", "--yes")
    assert answers(tmp_path / "new") == set()
    listed = json.loads(annotator("predictions", "new", "--json").stdout)
    assert [one["name"] for one in listed] == ["md"]


@pytest.mark.slow
@over(
    files__option__expected=[
        ({"labels.csv": "image,labels\nCAM01/a.jpg,fox\nCAM01/b.jpg,deer\n"}, "",
         {("CAM01/a.jpg", "fox", 1), ("CAM01/b.jpg", "deer", 1)}),
        ({}, "asked", set()),
        ({}, "folders", {("CAM01/a.jpg", "CAM01", 1), ("CAM01/b.jpg", "CAM01", 1), ("CAM02/c.jpg", "CAM02", 1)}),
        ({}, "none", set()),
        ({"labels.csv": "image,labels\nx.jpg,fox\n"}, "asked", set()),
        ({"notes.json": '{"a": 1}'}, "asked", set()),
        ({"labels.csv": "image,labels\na.jpg,CAM01\n"}, "asked", set()),
        ({"one.csv": "image,label\na.jpg,fox\n", "two.csv": "image,label\na.jpg,deer\n"}, "asked", set()),
        ({"one.csv": "image,label\na.jpg,fox\n", "two.csv": "image,label\nb.jpg,deer\n"}, "one.csv,two.csv",
         {("CAM01/a.jpg", "fox", 1), ("CAM01/b.jpg", "deer", 1)}),
    ]
)  # fmt: skip
def test_folder_import_reads_certain_labels_and_asks_about_ambiguous_ones(
    tmp_path_factory, annotator, files, option, expected
):
    place = tmp_path_factory.mktemp("case")
    for number, name in enumerate(("CAM01/a.jpg", "CAM01/b.jpg", "CAM02/c.jpg")):
        draw(place / "study" / name, ("fox",), seed=number)
    for name, text in files.items():
        (place / "study" / name).write_text(text)
    if option == "asked":
        said = annotator("import", place / "new", place / "study", "--yes", code=1).stderr
        assert "--labels none" in said and not (place / "new").exists()
        return
    annotator("import", place / "new", place / "study", *(["--labels", option] if option else []), "--yes")
    assert answers(place / "new") == expected


def test_split_tables_are_imported_together_and_each_names_images_of_its_folder(tmp_path, annotator):
    for number, split in enumerate(("train", "valid")):
        for name in ("a.jpg", "b.jpg"):
            draw(tmp_path / "set" / split / name, ("fox",), seed=10 * number + ord(name[0]))
        (tmp_path / f"set/{split}/_classes.csv").write_text(f"filename, fox, deer\na.jpg, {1 - number}, {number}\n")
    annotator("import", "new", "set", "--yes")
    assert answers(tmp_path / "new") == {
        ("train/a.jpg", "fox", 1), ("train/a.jpg", "deer", -1), ("valid/a.jpg", "fox", -1), ("valid/a.jpg", "deer", 1)
    }  # fmt: skip


@pytest.mark.slow
def test_import_refuses_a_damaged_workbook_and_a_zip_bomb(tmp_path, folder, annotator):
    import zipfile

    (tmp_path / "broken.xlsx").write_bytes(b"PK\3\4 no workbook")
    with zipfile.ZipFile(tmp_path / "bomb.xlsx", "w", zipfile.ZIP_DEFLATED) as archive:
        archive.writestr("xl/workbook.xml", "<workbook/>")
        with archive.open("xl/worksheets/sheet1.xml", "w", force_zip64=True) as sheet:
            for _ in range(300):
                sheet.write(b" " * (1 << 20))
    for name, words in (("broken.xlsx", "broken.xlsx"), ("bomb.xlsx", "more than 200 times its size")):
        assert words in annotator("import", "new", name, "--images", folder, "--yes", code=1).stderr


@over(
    late__words=[
        ("empty", "line 1302: 'empty' may say that no class is there"),
        ('"fox, deer"', "line 1302: 'fox, deer' may be several labels"),
        ("fox|deer", "line 1302: 'fox|deer' may be several labels"),
    ]
)
def test_ambiguous_label_in_a_late_row_is_reported(tmp_path_factory, late, words):
    path = tmp_path_factory.mktemp("late") / "labels.csv"
    path.write_text("image,label\n" + "a.jpg,fox\n" * 1300 + f"b.jpg,{late}\n")
    problems = Problems()
    list(read_label_file(match_formats(path)[0][0], path, problems, ReadingOptions()).items)
    assert len(problems.sentences) == 1 and words in problems.sentences[0]


def test_rows_with_an_event_become_event_labels_and_not_image_labels(tmp_path, folder, annotator):
    (tmp_path / "labels.csv").write_text("image,burst,label\na.jpg,b1,fox\nb.jpg,b1,fox\nc.jpg,,deer\n")
    said = annotator("import", "new", "labels.csv", "--images", folder, "--event-column", "burst", "--yes").stdout
    assert answers(tmp_path / "new") == {("CAM02/c.jpg", "deer", 1)}
    labels = Database(tmp_path / "new").tuples("SELECT event, state FROM event_label")
    assert [tuple(row) for row in labels] == [("b1", 1)] and "event" in said
