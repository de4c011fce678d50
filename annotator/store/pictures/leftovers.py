"""Files left by servers and systems, such as thumbnails and deleted files."""

from collections.abc import Mapping, Sequence

from annotator.humanize import format_count

LEFTOVER_FOLDERS = frozenset(
    {
        # Synology, QNAP and NetApp: thumbnails, deleted files, earlier states
        "@eadir", "@tmp", "#recycle", "#snapshot", "@recycle", "@recently-snapshot", ".@__thumb", "~snapshot",
        ".snapshot",
        # Windows
        "$recycle.bin", "recycler", "system volume information", "found.000",
        # macOS, and servers for it
        "__macosx", ".appledouble", ".trashes", ".spotlight-v100", ".fseventsd", ".temporaryitems",
        "network trash folder", "temporary items",
        # Linux and Android
        "lost+found", ".thumbnails", ".thumbs", ".trash", ".trashed", ".xvpics",
    }
)  # fmt: skip
LEFTOVER_FOLDER_PREFIXES = (".trash-",)  # of each user, by number
LEFTOVER_FILES = frozenset(
    {"thumbs.db", "ehthumbs.db", "ehthumbs_vista.db", "desktop.ini", ".ds_store", ".apdisk", "icon\r"}
)
LEFTOVER_FILE_PREFIXES = ("._", ".trashed-")  # the other half of a Mac's file; a deleted file of Android


def is_leftover_folder(name: str) -> bool:
    folded = name.casefold()
    return folded in LEFTOVER_FOLDERS or folded.startswith(LEFTOVER_FOLDER_PREFIXES)


def find_leftover_part(path: str) -> str:
    r"""Return the part of a path that makes a file a leftover, such as a thumbnail folder, or "".

    Args:
        path: With "/" or "\". For prefixes ("._a.jpg") only the prefix is returned.
    """
    *folders, name = path.replace("\\", "/").split("/")
    for folder in folders:
        if is_leftover_folder(folder):
            return folder
    folded = name.casefold()
    if folded in LEFTOVER_FILES:
        return name.strip()
    return next((start + "*" for start in LEFTOVER_FILE_PREFIXES if folded.startswith(start)), "")


def describe_leftovers(counts: Mapping[str, int]) -> Sequence[str]:
    """Return a sentence about skipped leftovers, if any (counts: `find_leftover_part` -> number of files)."""
    if not counts:
        return []
    names = ", ".join(sorted(counts, key=str.casefold))
    return [f"{format_count(sum(counts.values()), 'file')} in {names} left out: leftovers of a server or a system."]
