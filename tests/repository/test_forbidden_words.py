"""The words of docs/words.md: what is gone from the pages stays gone."""

import re
from pathlib import Path

from harness import literals

ROOT = Path(__file__).resolve().parents[2]
WORDS = ROOT / "docs" / "words.md"
PLACES = ("ui", "queues", "snapshot", "quality")
SOURCES = sorted(
    path for place in PLACES for end in ("py", "js") for path in (ROOT / "annotator" / place).rglob(f"*.{end}")
)


def gone() -> list[str]:
    table = WORDS.read_text(encoding="utf-8").partition("| gone | instead |")[2]
    return re.findall(r"^\| ([^|]*[^|\s-][^|]*?) \|", table, re.MULTILINE)


def says(text: str, word: str) -> bool:
    return re.search(rf"(?<!\w){re.escape(word)}(?!\w)", " ".join(text.split()), re.IGNORECASE) is not None


def test_page_texts_contain_no_retired_word():
    words = gone()
    assert "Fix this image".lower() in words and len(words) > 20
    found = [
        f"{path.relative_to(ROOT)}:{line}: {word!r} in {text[:80]!r}"
        for path in SOURCES
        for line, text in literals.of_file(path)
        for word in words
        if says(text, word)
    ]
    assert not found, "\n".join(found)


def test_forbidden_word_check_reads_string_literals_but_no_comments_or_docstrings():
    script = '// it\'s grey\nconst a = /["\']/, b = `a ${c(`grey ${d}`)} fox`; /* "grey" */ say(\'it is "red"\');'
    assert [text for _, text in literals.of_script(script)] == ["a ${c(`grey ${d}`)} fox", 'it is "red"']
    module = '"""Grey."""\nname = f"a {x} fox"  # grey\ndef f():\n    """Grey."""\n    return "red"\n'
    assert sorted(text for _, text in literals.of_module(module)) == [" fox", "a ", "red"]
