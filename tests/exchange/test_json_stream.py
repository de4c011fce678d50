"""Entries of JSON arrays: cut anywhere, they are those that `json` reads; what is no JSON, or a bomb, is refused."""

import json
import os

import msgspec
import pytest
from harness.tables import over
from hypothesis import given, settings
from hypothesis import strategies as st

from annotator.errors import AnnotatorError
from annotator.exchange.files.json_stream import MAX_DEPTH, read_pieces
from annotator.exchange.files.problems import Problems

ANYTHING = msgspec.json.Decoder(list)
VALUES = st.recursive(
    st.none()
    | st.booleans()
    | st.integers(-(2**53), 2**53)
    | st.text(max_size=8)
    | st.sampled_from(['"]', "\\", '\\"', ","]),
    lambda inner: st.lists(inner, max_size=4) | st.dictionaries(st.text(max_size=4), inner, max_size=4),
    max_leaves=12,
)


def entries(path, chunk: int, wanted=lambda key: True) -> dict[str, list]:
    """Array -> its entries, by index."""
    problems, read = Problems(), {}
    for piece in read_pieces(path, wanted, chunk):
        array = read.setdefault(piece.key, [])
        for index, entry in piece.decode(ANYTHING, problems):
            assert index == len(array)
            array.append(entry)
    assert not problems.count, problems.sentences
    return read


@settings(deadline=None, max_examples=60)
@given(
    document=st.dictionaries(st.text(max_size=5), VALUES, max_size=5),
    chunk=st.integers(1, 40),
    indent=st.sampled_from([None, 1]),
)
def test_json_stream_reads_the_same_entries_as_json_for_any_chunk_size(tmp_path_factory, document, chunk, indent):
    path = tmp_path_factory.getbasetemp() / "document.json"
    for ascii_ in (False, True):
        path.write_text(json.dumps(document, indent=indent, ensure_ascii=ascii_), encoding="utf-8")
        assert entries(path, chunk) == {key: value for key, value in document.items() if isinstance(value, list)}
        path.write_text(json.dumps(list(document.values()), indent=indent, ensure_ascii=ascii_), encoding="utf-8")
        assert entries(path, chunk) == {"": list(document.values())}


@over(
    text__words=[
        ('{"a": [1, 2', "ends too early, in line 1"),
        ('{"a": [1,\n2]', "ends too early, in line 2"),
        ('{"a": ["\n', "ends too early"),
        ('{"a": [1]]}', "closing bracket too many in line 1"),
        ('{"a": [1]} 5', "Extra data"),
        ('{"a": [1]}\n{"a": [2]}', "Extra data"),
        ('{"a" [1]}', "not JSON"),
        ('{"a": [1}}', "not JSON"),
        ("[1,\n2,\n]", "nothing follows the comma in line 2|entry \\[2\\] .*malformed"),
        ("", "empty"),
        ("\n \n", "begins with"),
        ("name,class", "no JSON document of records"),
        ("\ufeffx", "begins with"),
        ("[" * (MAX_DEPTH + 1), "nested too deep in line 1"),
        ('{"a": [' + "[{" * 100_000, "nested too deep in line 1"),
    ],
    chunk=[1, 7, 1 << 20],
)
def test_json_stream_refuses_invalid_json_and_names_the_error(tmp_path, text, words, chunk):
    path = tmp_path / "document.json"
    path.write_text(text, encoding="utf-8")
    problems = Problems()
    with pytest.raises(AnnotatorError, match=words):
        for piece in read_pieces(path, chunk=chunk):
            piece.decode(ANYTHING, problems)
        raise problems.error("Problems:")


def test_json_stream_refuses_an_entry_over_the_size_limit(tmp_path):
    path = tmp_path / "document.json"
    with path.open("wb") as file:
        file.write(b'{"images": [{"file_name": "')
        for _ in range(65):
            file.write(b"x" * (1 << 20))
    with pytest.raises(AnnotatorError, match="entry of more than 64 MB, which begins in line 1"):
        list(read_pieces(path))
    path.write_bytes(b'{"images": [{"file_name": "')
    os.truncate(path, 10 << 30)  # sparse: 10 GB in one line, which take no room
    with pytest.raises(AnnotatorError, match="a zero byte in line 1"):
        list(read_pieces(path))


def test_json_stream_reports_an_entry_of_the_wrong_type_and_reads_the_others(tmp_path):
    path = tmp_path / "document.json"
    path.write_text('{"rows": [\n[1],\n\n["x"],\n[3]]}')
    problems = Problems()
    decoder = msgspec.json.Decoder(list[list[int]])
    (piece,) = read_pieces(path)
    assert piece.decode(decoder, problems) == [(0, [1]), (2, [3])]
    assert problems.sentences == ["rows[1] (line 4): Expected `int`, got `str` - at `$[0][0]`"]
