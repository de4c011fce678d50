"""NUS-WIDE: label files that belong to an image list line by line."""

from pathlib import Path

import pytest

from annotator.errors import AnnotatorError
from annotator.exchange.files.problems import Problems
from annotator.exchange.formats.contents import Contents
from annotator.exchange.formats.nus_wide import NUS_WIDE
from annotator.exchange.imports.label_files import match_formats
from annotator.exchange.reading.reading_options import ReadingOptions

IMAGES = "actor\\1.jpg\nactor\\2.jpg\nzoo\\3.jpg\n"


def write_files(folder: Path, files: dict[str, str]) -> Path:
    for name, text in files.items():
        (folder / name).parent.mkdir(parents=True, exist_ok=True)
        (folder / name).write_text(text)
    return folder


def read_folder(folder: Path) -> Contents:
    assert NUS_WIDE.read and [one.name for one, _ in match_formats(folder)] == ["nus-wide"]
    return NUS_WIDE.read(folder, Problems(), ReadingOptions())


def list_states(contents: Contents) -> dict[str, tuple[dict[str, int], str]]:
    """Return image -> (class -> state, split)."""
    return {
        item.image: ({given.class_name: given.state for given in item.labels}, item.attributes.get("split", ""))
        for item in contents.items
    }


def test_label_files_belong_to_the_image_list_line_by_line(tmp_path: Path) -> None:
    folder = write_files(
        tmp_path,
        {
            "ImageList/Imagelist.txt": IMAGES,
            "ImageList/TestImagelist.txt": "zoo\\3.jpg\n",
            "Groundtruth/AllLabels/Labels_sky.txt": "0\n1\n1\n",
            "Groundtruth/AllLabels/Labels_fox.txt": "1 \r\n0\r\n0\r\n",
            "Groundtruth/TrainTestLabels/Labels_sky_Test.txt": "1\n",
        },
    )
    contents = read_folder(folder)
    assert [name for name, _ in contents.classes] == ["fox", "sky"]
    assert list_states(contents) == {
        "actor/1.jpg": ({"sky": -1, "fox": 1}, ""),
        "actor/2.jpg": ({"sky": 1, "fox": -1}, ""),
        "zoo/3.jpg": ({"sky": 1, "fox": -1}, "test"),
    }


def test_label_files_of_splits_belong_to_their_lists(tmp_path: Path) -> None:
    files = {"TrainImagelist.txt": "a\\1.jpg\n", "TestImagelist.txt": "b\\2.jpg\n"}
    files |= {"Labels_sky_Train.txt": "1\n", "Labels_sky_Test.txt": "0\n"}
    states = list_states(read_folder(write_files(tmp_path, files)))
    assert states == {"a/1.jpg": ({"sky": 1}, "train"), "b/2.jpg": ({"sky": -1}, "test")}


@pytest.mark.parametrize(
    ("text", "reason"), [("0\n1\n", "2 answers for 3 images"), ("0\n1\n?\n", "is neither 0 nor 1")]
)
def test_label_file_that_does_not_fit_its_list_is_refused(text: str, reason: str, tmp_path: Path) -> None:
    files = {"Imagelist.txt": IMAGES, "Labels_sky.txt": text, "Labels_fox.txt": "0\n1\n1\n"}
    with pytest.raises(AnnotatorError, match=reason):
        read_folder(write_files(tmp_path, files))


def test_folder_without_an_image_list_or_label_files_is_of_another_format(tmp_path: Path) -> None:
    write_files(tmp_path / "lists", {"Imagelist.txt": IMAGES, "Concepts81.txt": "sky\n"})
    write_files(tmp_path / "labels", {"Labels_sky.txt": "0\n1\n"})
    assert not NUS_WIDE.recognize(tmp_path / "lists") and not NUS_WIDE.recognize(tmp_path / "labels")  # type: ignore[misc]
