"""Escapes that make foreign text literal in Streamlit's Markdown."""

import re

WORD_JOINER = "\u2060"
_MARKDOWN_PATTERN = re.compile(r"[\\`*_{}\[\]<>()#+\-.!|$~:&=^]")
_PUNCTUATION_PATTERN = re.compile(r"[^\w\s]|_")
_REPLACEMENT_PATTERN = re.compile(
    r"(?<=[:@])(?=\S)|(?<=www)(?=\.)|(?<!\S)(?=(?:<->|<-|->|--|[<>~]=)(?:\s|$))", re.IGNORECASE
)


def escape_markdown(text: object) -> str:
    """Escape foreign text, so that Streamlit's Markdown shows it literally.

    Word joiners break shortcodes, arrows and URLs, which Streamlit replaces after unescaping. Line breaks stay.
    """
    lines = str(text).strip("\r\n").splitlines()
    return "\\\n".join(
        _MARKDOWN_PATTERN.sub(r"\\\g<0>", _REPLACEMENT_PATTERN.sub(WORD_JOINER, _keep_indent(line))) for line in lines
    )


def escape_for_screen_reader(text: str) -> str:
    """Escape text of a label for screen readers, without backslashes.

    Word joiners around punctuation keep browsers from fetching Markdown images.
    """
    return _PUNCTUATION_PATTERN.sub(f"{WORD_JOINER}\\g<0>{WORD_JOINER}", text)


def _keep_indent(line: str) -> str:
    # Markdown would read blanks at the start of a line as code, or drop them.
    line = line.expandtabs(4)
    return "\u00a0" * (len(line) - len(line.lstrip(" "))) + line.lstrip(" ")
