"""Files that servers and systems leave beside people's files: thumbnails, deleted files, notes of a file manager.

They are left out of every source (folders, archives, addresses) and counted, because a thumbnail is another content
than its photo, and a deleted photo was deleted on purpose. Their names are in this one table.
"""

from collections.abc import Mapping, Sequence

from annotator.shares import counted

FOLDERS = frozenset(
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
FOLDER_STARTS = (".trash-",)  # of each user, by number
FILES = frozenset({"thumbs.db", "ehthumbs.db", "ehthumbs_vista.db", "desktop.ini", ".ds_store", ".apdisk", "icon\r"})
FILE_STARTS = ("._", ".trashed-")  # the other half of a Mac's file; a deleted file of Android


def leftover_folder(name: str) -> bool:
    """Return whether a folder of this name holds leftovers only."""
    folded = name.casefold()
    return folded in FOLDERS or folded.startswith(FOLDER_STARTS)


def leftover_of(path: str) -> str:
    r"""Return the part of a path that makes it a leftover, as it is written; "" for a path that is none.

    Args:
        path: With "/" or "\", as in archives of Windows. All files of a folder that holds leftovers are leftovers; of
            files that begin like one ("._a.jpg") the beginning is returned, so that they are counted together.
    """
    *folders, name = path.replace("\\", "/").split("/")
    for folder in folders:
        if leftover_folder(folder):
            return folder
    folded = name.casefold()
    if folded in FILES:
        return name.strip()
    return next((start + "*" for start in FILE_STARTS if folded.startswith(start)), "")


def leftovers_in_words(counts: Mapping[str, int]) -> Sequence[str]:
    """Return a sentence about leftovers that were left out; none where there are none.

    Args:
        counts: Part of the path, as `leftover_of` returns it -> the number of files.
    """
    if not counts:
        return []
    names = ", ".join(sorted(counts, key=str.casefold))
    return [f"{counted(sum(counts.values()), 'file')} in {names} left out: leftovers of a server or a system."]
