"""Text files in UTF-8, or UTF-16 with byte order mark."""

from pathlib import Path

from annotator.errors import AnnotatorError

MAX_TEXT_BYTES = 512 * 1024 * 1024


def read_text(path: Path, description: str) -> str:
    """Return a text file's content, or raise AnnotatorError."""
    if not path.exists():
        raise AnnotatorError(f"There is no file {path} ({description}). Is the path spelled right?")
    if not path.is_file():
        raise AnnotatorError(f"{path} is not a file, but {description} should be one.")
    try:
        size = path.stat().st_size
        if size > MAX_TEXT_BYTES:
            raise AnnotatorError(
                f"{path} has {size:,} bytes; {description} may have {MAX_TEXT_BYTES:,} at most. Is it the right file?"
            )
        data = path.read_bytes()
    except OSError as error:
        raise AnnotatorError(f"{path} ({description}) cannot be read: {error.strerror or error}.") from error
    encoding = "utf-16" if data[:2] in (b"\xff\xfe", b"\xfe\xff") else "utf-8-sig"
    try:
        text = data.decode(encoding)
    except UnicodeDecodeError as error:
        line = data[: error.start].count(b"\n") + 1
        raise AnnotatorError(
            f"{path} ({description}) is not UTF-8 text: byte {data[error.start]:#04x} in line {line}. Save it as UTF-8 "
            "and try again."
        ) from error
    if "\0" in text:
        raise AnnotatorError(f"{path} ({description}) is not a text file: it holds zero bytes.")
    return text
