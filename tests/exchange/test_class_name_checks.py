"""Names that look like something else are asked about in every row, and columns without a clear meaning as well."""

import pytest
from conftest import draw
from harness.tables import over

from annotator.exchange.files.problems import Problems
from annotator.exchange.formats import match_formats
from annotator.exchange.formats.csv_table import CSV
from annotator.exchange.formats.vector_list import VECTOR_LIST
from annotator.exchange.imports.import_plan import ImportOptions, prepare_import
from annotator.exchange.reading.class_name_checks import describe_odd_name
from annotator.exchange.reading.field_roles import shorten_roles
from annotator.exchange.reading.reading_options import ReadingOptions
from annotator.exchange.reading.table_sample import NUMBERS_AS_IDS
from annotator.records import ABSENT, PRESENT


def list_questions(path, **options):
    """Return the fields that are asked about, and the present classes by image."""
    contents = CSV.read(path, Problems(), ReadingOptions(**options))
    present = {item.image: [one.class_name for one in item.labels if one.state == PRESENT] for item in contents.items}
    return [one.field for one in contents.interpretations if not one.is_sure], present


@over(
    name__kind=[
        ("12", "a number"),
        ("<b>fox</b>", "markup"),
        ("not fox", "a denial"),
        ("notebook", ""),
        ("pred_fox", "a prediction"),
        ("Unlabeled", "a word for no label"),
        ("-1.5e3", "a number"),
        ("1 0 1", "a list of numbers"),
        ("[1 0 1]", "a list of numbers"),
        ("12%", "a percentage"),
        ("2024-05-01", "a date"),
        ("01.05.2024 12:00", "a date"),
        ("7c2b7f0e-1a2b-4c3d-8e9f-001122334455", "a UUID"),
        ('{"id": "fox"}', "a list or JSON"),
        ("https://x.org/fox", "a path or an address"),
        ("C:\\media\\a", "a path or an address"),
        ("fox.jpg", "a path or an address"),
        ("Rejected", "the word of a decision"),
        ("un-confirmed", "the word of a decision"),
        ("fox", ""),
        ("red deer", ""),
        ("5_o_Clock_Shadow", ""),
        ("2024 model", ""),
        ("Canis lupus (grey)", ""),
        ("13-99-2024", ""),
    ]
)
def test_odd_class_name_is_told_from_a_name(name, kind):
    assert describe_odd_name(name) == kind


def test_odd_name_in_the_last_row_is_asked_about_and_accepted_when_declared(tmp_path):
    path = tmp_path / "labels.csv"
    rows = [f"{number}.jpg,{('fox', 'deer')[number % 2]}\n" for number in range(1_200)]
    path.write_text("image,label\n" + "".join(rows) + "last.jpg,2024-05-01\n")
    assert list_questions(path)[0] == ["accepted_names"]
    questions, present = list_questions(path, accepted_names=("2024-05-01",))
    assert (questions, present["last.jpg"]) == ([], ["2024-05-01"])
    assert list_questions(path, accepted_names=("all",))[0] == []


@over(
    late__fields=[
        ("image,label,confidence", ["score_column"]),
        ("image,label,night", ["label_columns"]),
        ("image,label,site", []),
    ]
)
def test_column_that_is_filled_after_a_thousand_empty_rows_is_asked_about(tmp_path, late, fields):
    path = tmp_path / "labels.csv"
    path.write_text(late + "\n" + "".join(f"{number}.jpg,fox,\n" for number in range(1_100)) + "last.jpg,fox,1\n")
    assert list_questions(path)[0] == fields


@over(
    text__fields=[
        ('image,labels\na.jpg,"[1, 0]"\nb.jpg,"[0, 1]"\n', ["numbers"]),
        ("image,label,confidence\na.jpg,fox,98%\n", ["score_column"]),
        ("image,label,confidence\na.jpg,fox,high\n", ["score_column"]),
        ("image,fox,deer,Patient Gender\na.jpg,1,0,F\nb.jpg,0,1,F\n", ["class_columns"]),
        ("image,choice,howmany\na.jpg,deer,1\nb.jpg,fox,1\n", ["class_columns"]),
        ("image,label,status\na.jpg,fox,validated\nb.jpg,deer,predicted\n", ["kept_rows"]),
        ("image,label,by\na.jpg,fox,u1\nb.jpg,deer,robot\n", ["kept_rows"]),
        ("image,label,method\na.jpg,fox,Physician\nb.jpg,deer,RNN_model\n", ["kept_rows"]),
        ("image,label,Task status\na.jpg,fox,done\nb.jpg,deer,in progress\n", ["kept_rows"]),
        ("image,label,status\na.jpg,fox,done\nb.jpg,deer,done\n", []),
        ("image,label,annotator\na.jpg,fox,ann\nb.jpg,deer,yolov8n\n", ["kept_rows"]),
        ("image,label,verified\na.jpg,fox,true\nb.jpg,deer,false\n", ["kept_rows"]),
        ("image,label,verified\na.jpg,fox,true\nb.jpg,deer,true\n", []),
        ("image,label,count\na.jpg,fox,0\na.jpg,deer,2\n", ["kept_rows"]),
        ("image,label,count\na.jpg,fox,1\na.jpg,deer,2\n", []),
        ("image,label,corrected_label\na.jpg,fox,\nb.jpg,deer,owl\n", ["label_columns"]),
        ("image,label\na.jpg,fox_deer\nb.jpg,fox\nc.jpg,deer\n", ["separator"]),
        ("image,label\na.jpg,red_fox\nb.jpg,fox\n", []),
        ("image,label\na.jpg,'fox'\nb.jpg,deer\n", ["accepted_names"]),
        ("image,label,p_fox,p_deer\na.jpg,fox,0.9,0.1\nb.jpg,deer,0.2,0.8\n", ["score_column"]),
        ("image,label,humidity\na.jpg,fox,0.9\nb.jpg,deer,0.2\n", []),
        ("ID,filename,fox\n0,a.jpg,1\n1,b.jpg,0\n", []),
        ("image,start,end,event\na.jpg,1,2,fox\nb.jpg,1,2,deer\n", ["class_columns"]),
        ("image,label,votes\na.jpg,fox,3\na.jpg,deer,1\n", ["score_column"]),
        ("image,label,label_confidence\na.jpg,fox,0.4\nb.jpg,deer,1.0\n", ["score_column"]),
        ('image,labels,confidence\na.jpg,"[""fox""]","[0.4]"\nb.jpg,"[""deer""]","[1.0]"\n', ["score_column"]),
        ("image,fox,Unlabeled\na.jpg,1,0\nb.jpg,0,1\n", ["accepted_names"]),
        ("image,genus,species\na.jpg,Thymus,vulgaris\nb.jpg,Syringa,vulgaris\n", ["label_columns"]),
        ("image,kingdom,class\na.jpg,Animalia,Aves\n", ["label_columns"]),
        ("image,ClassId\na.jpg,3\nb.jpg,4\n", ["numbers"]),
        ("image,label\na.jpg,fox / deer\nb.jpg,owl\n", ["separator"]),
        ("image,fox,deer\na.jpg,1,0\nb.jpg,0,1\n", []),
        ("image,label,site\na.jpg,fox,north\n", []),
    ]
)
def test_column_that_may_mean_something_else_is_asked_about(tmp_path, text, fields):
    path = tmp_path / "labels.csv"
    path.write_text(text)
    assert list_questions(path)[0] == fields


@over(
    cells__expected=[
        (['"[1, 0, 1]"', '"[0, 0, 0]"'], {"0.jpg": ["fox", "owl"], "1.jpg": []}),
        (["[1 0 1]", "[0 1 0]"], {"0.jpg": ["fox", "owl"], "1.jpg": ["deer"]}),
        (['"[2, 0]"', '"[1]"'], {"0.jpg": ["owl", "fox"], "1.jpg": ["deer"]}),
    ]
)
def test_list_of_classes_beside_a_table_names_its_vectors_and_ids(tmp_path, cells, expected):
    path = tmp_path / "labels.csv"
    path.write_text("image,labels\n" + "".join(f"{number}.jpg,{cell}\n" for number, cell in enumerate(cells)))
    (tmp_path / "classes.txt").write_text("fox\ndeer\nowl\n")
    assert list_questions(path) == ([], expected)


def test_vector_says_that_all_other_classes_are_absent_and_one_of_another_length_is_refused(tmp_path):
    path = tmp_path / "labels.csv"
    path.write_text('image,labels\na.jpg,"[1, 0, 1]"\n')
    (tmp_path / "classes.txt").write_text("fox\ndeer\nowl\n")
    contents = CSV.read(path, Problems(), ReadingOptions())
    assert [name for name, _ in contents.classes] == ["fox", "deer", "owl"]
    assert [item.exhaustive for item in contents.items] == [True]
    rows = "".join(f'{number}.jpg,"[1, 0, 1]"\n' for number in range(1_100))
    path.write_text(f'image,labels\n{rows}last.jpg,"[1, 0]"\n')
    problems = Problems()
    list(CSV.read(path, problems, ReadingOptions()).items)
    assert problems.count == 1 and "is no list of 3 times 0 or 1" in next(iter(problems.sentences))


def test_full_width_comma_separates_labels(tmp_path):
    path = tmp_path / "labels.csv"
    path.write_text("image,labels\na.jpg,fox，deer\nb.jpg,deer\nc.jpg,fox，owl\nd.jpg,owl\n", encoding="utf-8")
    assert list_questions(path) == (
        [],
        {"a.jpg": ["fox", "deer"], "b.jpg": ["deer"], "c.jpg": ["fox", "owl"], "d.jpg": ["owl"]},
    )


def test_rows_are_left_out_by_the_declared_column_and_counted(tmp_path):
    path = tmp_path / "labels.csv"
    path.write_text("image,label,status\na.jpg,fox,Validated\nb.jpg,deer,predicted\nc.jpg,owl,\n")
    contents = CSV.read(path, Problems(), ReadingOptions(kept_rows="status=validated"))
    assert [item.image for item in contents.items] == ["a.jpg"]
    assert "2 rows left out, which `status` does not mark as answers: line 3, ..." in contents.sentences


def test_each_column_has_a_role_with_examples_and_a_reason(tmp_path):
    path = tmp_path / "labels.csv"
    path.write_text("image,fox,deer,xmin,site,sha256,\na.jpg,1,0,4,north,,\nb.jpg,0,1,5,south,,\n")
    roles = CSV.read(path, Problems(), ReadingOptions()).roles
    assert [(one.field, one.role, list(one.examples)) for one in roles] == [
        ("image", "image", ["a.jpg", "b.jpg"]),
        ("fox", "class", ["1", "0"]),
        ("deer", "class", ["0", "1"]),
        ("xmin", "ignored", ["4", "5"]),
        ("site", "field", ["north", "south"]),
        ("sha256", "checksum", []),
        ("", "ignored", []),
    ]
    assert [one.why for one in roles if one.role == "ignored"] == [
        "boxes are not read: a class with a box is present",
        "the column has no name",
    ]


def test_a_thousand_columns_of_classes_are_one_row_of_the_preview(tmp_path):
    path = tmp_path / "labels.csv"
    names = [f"class {number}" for number in range(1_000)]
    path.write_text(f"image,{','.join(names)}\na.jpg{',1' * 1_000}\n")
    roles = shorten_roles(CSV.read(path, Problems(), ReadingOptions()).roles)
    assert [one.field for one in roles] == ["image", "class 0, class 1, class 2, ... (1,000 fields)"]


def test_declared_ids_are_class_names(tmp_path):
    path = tmp_path / "labels.csv"
    path.write_text("image,label\na.jpg,3\nb.jpg,7\n")
    assert list_questions(path, numbers=NUMBERS_AS_IDS) == ([], {"a.jpg": ["3"], "b.jpg": ["7"]})


def test_class_map_declares_what_odd_names_mean(tmp_path):
    draw(tmp_path / "photos" / "a.jpg")
    (tmp_path / "labels.csv").write_text("image,label\na.jpg,robot\n")
    for class_map, asked in ((None, ["accepted_names"]), ({"robot": "machine"}, [])):
        choices = ImportOptions(images=tmp_path / "photos", class_map=class_map)
        with prepare_import(tmp_path / "project", tmp_path / "labels.csv", choices, "Ann") as plan:
            assert [one.field for one in plan.open_questions] == asked


@pytest.mark.parametrize(
    "folders",
    [
        ["fox", "deer", "fox+deer"],
        ["train/fox", "train/deer", "test/test"],
        ["fox", "deer", "fox and deer"],
        ["train/fox", "train/deer", "test/unknown"],
        ["fox", "deer", "empty"],
        ["fox", "deer", "rejected"],
        ["positive", "negative"],
        ["fox", "no fox"],
        ["predicted_fox", "predicted_deer"],
        ["box_train", "box_test"],
        ["wrapper/fox", "wrapper/deer"],
        ["fold1/fox", "fold1/deer", "fold2/fox", "fold2/deer"],
    ],
)
def test_folders_that_are_combinations_or_splits_are_asked_about(tmp_path, folders):
    for number, folder in enumerate(folders):
        draw(tmp_path / "set" / folder / f"{number}.jpg", seed=number)
    with prepare_import(tmp_path / "project", tmp_path / "set", ImportOptions(), "Ann") as plan:
        assert [one.field for one in plan.open_questions] == ["labels"]


@pytest.mark.parametrize(
    "name",
    ["labels.npz", "imagelabels.mat", "labels.pkl", "data.h5", "labels.rds", "list.txt", "flickr.token", "a.mat"],
)
def test_file_that_may_hold_labels_and_is_not_read_is_reported(tmp_path, name):
    draw(tmp_path / "set" / "a.jpg")
    (tmp_path / "set" / name).write_text("a.jpg fox\n")
    with prepare_import(tmp_path / "project", tmp_path / "set", ImportOptions(), "Ann") as plan:
        assert [name in one.why or ".mat file" in one.why for one in plan.open_questions] == [True]


CELEBA = "2\nBald Smiling\n1.jpg -1  1\n2.jpg  1 -1\n"


@over(
    text__expected=[
        (CELEBA, {"1.jpg": {"Bald": ABSENT, "Smiling": PRESENT}, "2.jpg": {"Bald": PRESENT, "Smiling": ABSENT}}),
        ("1\nBald Smiling\n1.jpg 0 1\n", {"1.jpg": {"Smiling": PRESENT}}),
        ("1.jpg\t0,1\n2.jpg\t1,1\n", {"1.jpg": {"a": ABSENT, "b": PRESENT}, "2.jpg": {"a": PRESENT, "b": PRESENT}}),
        ("1.jpg 0 1\n", {"1.jpg": {"a": ABSENT, "b": PRESENT}}),
    ]
)
def test_list_of_vectors_is_read_by_its_form(tmp_path, text, expected):
    path = tmp_path / "list.txt"
    path.write_text(text)
    (tmp_path / "classes.txt").write_text("a\nb\n")
    assert [format_ for format_, _ in match_formats(path)] == [VECTOR_LIST]
    problems = Problems()
    items = VECTOR_LIST.read(path, problems, ReadingOptions()).items
    assert {item.image: {one.class_name: one.state for one in item.labels} for item in items} == expected
    assert not problems.count


@over(
    text__words=[
        ("3\nBald Smiling\n1.jpg -1 1\n2.jpg 1 -1\n", "says 3 images, and 2 follow"),
        ("1\nBald Smiling\n1.jpg -1 1\n2.jpg 1\n", "line 4: 1 values, and 2 attributes"),
        ("1.jpg\t0,1\n2.jpg\t1,1,1\n", "line 2: '2.jpg"),
    ]
)
def test_damaged_list_of_vectors_is_refused(tmp_path, text, words):
    path = tmp_path / "list.txt"
    path.write_text(text)
    (tmp_path / "classes.txt").write_text("a\nb\n")
    problems = Problems()
    list(VECTOR_LIST.read(path, problems, ReadingOptions()).items)
    assert any(words in sentence for sentence in problems.sentences)


def test_rows_with_a_count_of_zero_are_left_out_by_the_proposed_rule(tmp_path):
    path = tmp_path / "labels.csv"
    path.write_text("image,label,count\na.jpg,fox,0\na.jpg,deer,2\n")
    assert list_questions(path, kept_rows="count!=0") == ([], {"a.jpg": ["deer"]})


@pytest.mark.parametrize(("name", "asked"), [("predictions.csv", ["score_column"]), ("predators.csv", [])])
def test_table_that_is_called_predictions_is_a_question(tmp_path, name, asked):
    (tmp_path / name).write_text("image,label\na.jpg,fox\nb.jpg,deer\n")
    assert list_questions(tmp_path / name)[0] == asked
    assert list_questions(tmp_path / name, score_column="none")[0] == []


def test_label_files_in_deep_folders_are_reported(tmp_path):
    draw(tmp_path / "set/leftImg8bit/train/a.jpg")
    (tmp_path / "set/gtFine/train").mkdir(parents=True)
    (tmp_path / "set/gtFine/train/a_polygons.json").write_text("{}")
    with prepare_import(tmp_path / "project", tmp_path / "set", ImportOptions(), "Ann") as plan:
        assert ["1 .json file in deeper folders" in one.why for one in plan.open_questions] == [True]
