"""Tables of scores are read in all encodings and with all first lines with which tables of labels are."""

import io
from functools import partial

import numpy as np
import pytest
from harness.prediction_scores import said_of
from harness.tables import over

from annotator.errors import AnnotatorError
from annotator.exchange.files.problems import Problems
from annotator.exchange.files.text_lines import TableBytes
from annotator.exchange.predictions.prediction_import import PredictionOptions, prepare_predictions
from annotator.exchange.predictions.score_files import read_scores

WIDE = "image;fox;heron\n00.jpg;0.9;0.1\nälg.jpg;0.25;\n"
LONG = "image;class;score\n00.jpg;fox;0.9\n00.jpg;heron;0.1\nälg.jpg;fox;0.25\n"


def read_cells(path) -> dict[tuple[str, str], float]:
    """(image, class) -> score."""
    problems = Problems()
    found = {}
    for block in read_scores(path, problems).blocks:
        for image, row in zip(block.images, block.scores, strict=True):
            found |= {
                (image, name): score for name, score in zip(block.classes, row, strict=True) if not np.isnan(score)
            }
    assert not problems.count, problems.sentences
    return found


@over(
    text=[WIDE, LONG],
    encoding=["utf-8", "utf-8-sig", "utf-16"],
    first=["", "sep=;\n", '"sep=;"\r\n'],
    delimiter=[";", ",", "\t"],
)
def test_score_table_is_read_in_every_encoding_and_with_an_excel_separator_line(
    tmp_path_factory, text, encoding, first, delimiter
):
    path = tmp_path_factory.mktemp("table") / "scores.csv"
    path.write_text(first + text.replace(";", delimiter), encoding=encoding)
    assert read_cells(path) == {("00.jpg", "fox"): 0.9, ("00.jpg", "heron"): 0.1, ("älg.jpg", "fox"): 0.25}


def test_predictions_command_imports_a_utf_16_table_with_a_separator_line(db, tmp_path, annotator):
    path = tmp_path / "scores.csv"
    path.write_text("sep=;\n" + WIDE.replace("älg.jpg", "01.jpg"), encoding="utf-16")
    annotator("predictions", db.paths.project, path, "--name", "excel")
    assert said_of(db, "00.jpg", "fox") == {"excel": 0.9} and said_of(db, "01.jpg", "fox") == {"excel": 0.25}


@pytest.mark.parametrize(
    ("content", "said"),
    [
        (WIDE.encode("utf-16")[:-1], "no UTF-16"),
        (WIDE.encode("latin-1"), "Line 3 of .* is not UTF-8"),
        (WIDE.replace("0.25", "0\0").encode(), "zero byte"),
    ],
)
def test_score_table_that_is_no_text_is_refused_with_its_line(db, tmp_path, content, said):
    path = tmp_path / "scores.csv"
    path.write_bytes(content)
    with pytest.raises(AnnotatorError, match=said), prepare_predictions(db, path, "x", PredictionOptions(), "Ann"):
        pass


def test_table_bytes_are_the_lines_of_a_table_in_pieces_of_any_size(tmp_path):
    path = tmp_path / "table.csv"
    lines = [f"{number},{'ä' * (number % 7)}\n" for number in range(300)]
    path.write_text("sep=,\n\n" + "".join(lines), encoding="utf-16")
    for size in (1, 2, 3, 1000, 1 << 20):
        pieces = list(iter(partial(TableBytes(path).read, size), b""))
        assert max(map(len, pieces)) <= size and b"".join(pieces).decode() == "".join(lines)
    assert io.BufferedReader(TableBytes(path)).readline() == lines[0].encode()
