"""Tests of the profiles of tables: each known tool is recognized by its columns, and only by these."""

import random
from pathlib import Path

import pytest

from annotator.errors import AnnotatorError
from annotator.exchange.files.problems import Problems
from annotator.exchange.formats.shared.label_table import read_table, recognize_table
from annotator.exchange.imports.joined_contents import join_contents
from annotator.exchange.reading.known_tables import TABLE_PROFILES, find_table_profile
from annotator.exchange.reading.reading_options import ReadingOptions
from annotator.exchange.reading.table_profile import TableProfile

PROFILE_IDS = [f"{one.name} {place}" for place, one in enumerate(TABLE_PROFILES)]


def list_fixture_columns(profile: TableProfile) -> list[str]:
    return [name.replace("*", "one") for name in profile.required] + ["remarks"]


def read_labels(path: Path, text: str, **options: object) -> tuple[list[tuple[str, list[str]]], list[str], list[str]]:
    """Return (image, classes) per item, the sentences, and the open questions of a table."""
    path.write_text(text, encoding="utf-8")
    problems = Problems()
    contents = read_table(path, problems, ReadingOptions(**options))  # type: ignore[arg-type]
    rows = [(item.image, [label.class_name for label in item.labels]) for item in contents.items]
    assert not problems.count
    return rows, list(contents.sentences), [one.value for one in contents.interpretations if not one.is_sure]


@pytest.mark.parametrize("profile", TABLE_PROFILES, ids=PROFILE_IDS)
def test_profile_fits_its_own_columns_in_any_order(profile: TableProfile) -> None:
    names = list_fixture_columns(profile)
    random.Random(0).shuffle(names)
    assert find_table_profile(names) is profile


@pytest.mark.parametrize("profile", TABLE_PROFILES, ids=PROFILE_IDS)
def test_profile_without_one_of_its_columns_does_not_fit(profile: TableProfile) -> None:
    names = list_fixture_columns(profile)
    for place in range(len(profile.required)):
        changed = [f"x{name}" if number == place else name for number, name in enumerate(names)]
        assert not profile.fits(changed)


def format_profile_row(profile: TableProfile) -> str:
    """Return the line of docs/formats.md."""
    columns = ", ".join(f"`{name}`" for name in profile.required)
    if profile.refusal:
        reading = "refused, with what to do"
    else:
        labels = [" ".join(profile.joined_columns)] if profile.joined_columns else profile.label_columns
        reading = f"{'asked: ' if profile.is_question else ''}{' or '.join(f'`{name}`' for name in labels)}"
    left_out = ", ".join(rule.reason for rule in profile.left_out)
    return f"| {profile.name} | {columns} | {reading} | {left_out} |"


def test_formats_page_lists_every_table_profile() -> None:
    text = (Path(__file__).resolve().parents[2] / "docs" / "formats.md").read_text(encoding="utf-8")
    rows = [format_profile_row(profile) for profile in TABLE_PROFILES]
    assert "\n".join(rows) in text, "\n".join(["docs/formats.md lacks these lines, in this order:", *rows])


def test_no_two_profiles_have_the_same_signature() -> None:
    assert len({frozenset(map(str.lower, one.required)) for one in TABLE_PROFILES}) == len(TABLE_PROFILES)


def test_ecotaxa_reads_no_types_and_no_predicted_rows(tmp_path: Path) -> None:
    text = (
        "img_file_name\tobject_id\tobject_annotation_category\tobject_annotation_status\n[t]\t[t]\t[t]\t[t]\n"
        "a.png\t1\tCopepoda\tvalidated\nb.png\t2\tdetritus\tpredicted\n"
    )
    rows, said, _ = read_labels(tmp_path / "e.tsv", text)
    assert rows == [("a.png", ["Copepoda"])]
    assert any("not validated: 1, the first for 'b.png'" in one for one in said)
    assert recognize_table(tmp_path / "e.tsv", "\t")


@pytest.mark.parametrize("label", ["Label code", "Label"])
def test_coralnet_labels_of_the_robot_are_left_out_and_counted(tmp_path: Path, label: str) -> None:
    head = f"Date annotated,Annotator,{label},Label ID,Column,Row,Name,Machine suggestion 1,Machine confidence 1\n"
    text = head + "2024-01-01,u1,Porit,7,1,2,a.png,CCA,60\n2024-01-01,robot,CCA,8,3,1,a.png,CCA,90\n"
    rows, said, asked = read_labels(tmp_path / "c.csv", text)
    assert (rows, asked) == ([("a.png", ["Porit"])], [])
    assert any("Annotator is a model: 1, the first for 'a.png'" in one for one in said)


def test_coralnet_table_without_annotators_is_a_question(tmp_path: Path) -> None:
    assert read_labels(tmp_path / "c.csv", "Name,Row,Column,Label code\na.png,1,2,Porit\n")[2] == ["Label code"]


def test_rejected_assignments_are_left_out_with_a_declared_label_column(tmp_path: Path) -> None:
    head = "HITId,AssignmentId,WorkerId,AssignmentStatus,Input.url,Answer.labels\n"
    text = head + '1,1,w,Approved,a.jpg,"[""fox"",""deer""]"\n1,2,w,Rejected,a.jpg,"[""owl""]"\n'
    rows, said, _ = read_labels(tmp_path / "m.csv", text, label_columns=("Answer.labels",))
    assert rows == [("a.jpg", ["fox", "deer"])]
    assert any("AssignmentStatus is Rejected: 1" in one for one in said)


def test_hierarchical_keywords_become_the_names_of_their_last_level(tmp_path: Path) -> None:
    text = 'SourceFile,Subject,HierarchicalSubject\na.jpg,"fox, deer","Species|fox, Species|deer"\n'
    rows, _, _ = read_labels(tmp_path / "x.csv", text, label_columns=("HierarchicalSubject",))
    assert rows == [("a.jpg", ["fox", "deer"])]
    assert read_labels(tmp_path / "x.csv", text)[2] == ["HierarchicalSubject"]


def test_two_keyword_paths_with_one_last_level_are_reported(tmp_path: Path) -> None:
    text = "SourceFile,Subject\na.jpg,Species|fox\nb.jpg,Toys|fox\n"
    said = read_labels(tmp_path / "x.csv", text)[1]
    assert "'Species|fox' and 'Toys|fox' are one class, 'fox'" in said


def test_scientific_names_keep_genus_and_author(tmp_path: Path) -> None:
    text = 'occurrenceID,file,scientificName\n1,a.jpg,"Vulpes vulpes (Linnaeus, 1758)"\n'
    assert read_labels(tmp_path / "d.csv", text)[0] == [("a.jpg", ["Vulpes vulpes (Linnaeus, 1758)"])]
    text = "file,genus,specificEpithet\na.jpg,Thymus,vulgaris\nb.jpg,Syringa,vulgaris\n"
    rows, _, asked = read_labels(tmp_path / "g.csv", text)
    assert (rows, asked) == ([("a.jpg", ["Thymus vulgaris"]), ("b.jpg", ["Syringa vulgaris"])], [])


@pytest.mark.parametrize(
    ("text", "asked"),
    [
        ("file,genus,species\na.jpg,Thymus,vulgaris\n", "genus + species"),
        ("subject_id,user_name,created_at,image,choice,young\n1,u,2024-05-01,a.jpg,fox,1\n", "choice"),
    ],
)
def test_columns_that_two_kinds_of_tables_share_are_a_question(tmp_path: Path, text: str, asked: str) -> None:
    assert read_labels(tmp_path / "q.csv", text)[2] == [asked]


@pytest.mark.parametrize(
    ("text", "classes"),
    [
        (
            "Media Filename,Species Scientific Name,Species Common Name,Sighting Quantity\na.jpg,Vulpes vulpes,Fox,1\n",
            ["Vulpes vulpes"],
        ),
        ("patch_id,labels,split,country,cloud\na.jpg,\"['Pastures']\",train,Austria,true\n", ["Pastures"]),
    ],
)
def test_counts_and_booleans_beside_the_labels_are_fields(tmp_path: Path, text: str, classes: list[str]) -> None:
    assert read_labels(tmp_path / "t.csv", text)[::2] == ([("a.jpg", classes)], [])


def test_raw_zooniverse_classifications_are_refused_with_the_way_to_flatten_them(tmp_path: Path) -> None:
    text = "classification_id,workflow_id,annotations,subject_data\n1,1,[],{}\n"
    with pytest.raises(AnnotatorError, match="Flatten it first"):
        read_labels(tmp_path / "z.csv", text)


def test_rows_left_out_of_one_of_several_tables_are_reported(tmp_path: Path) -> None:
    files = [tmp_path / "train.csv", tmp_path / "test.csv"]
    for file, who in zip(files, ("u1", "robot"), strict=True):
        file.write_text(f"Name,Row,Column,Label,Annotator\na.png,1,2,Porit,{who}\n", encoding="utf-8")
    joined = join_contents(files, [read_table(file, Problems(), ReadingOptions()) for file in files], None)
    assert len(list(joined.items)) == 1
    assert any("Annotator is a model: 1" in one for one in joined.sentences)
