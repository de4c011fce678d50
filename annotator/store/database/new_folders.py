"""Atomic replacement of folders, written under a temporary name, synced and renamed."""

import glob
import os
import shutil
from collections.abc import Generator
from contextlib import contextmanager, suppress
from pathlib import Path

from annotator.errors import DiskFull
from annotator.store.database.project_identity import make_folder_in_project
from annotator.store.disk.durable import sync_folder, sync_tree
from annotator.store.disk.processes import ABANDONED_SECONDS, build_temporary_path, is_abandoned
from annotator.store.disk.system_calls import exchange_names


@contextmanager
def replace_folder_atomically(target: Path) -> Generator[Path]:
    """Yield a temporary folder that replaces `target` when the block succeeds.

    If names cannot be exchanged in one step, `remove_unfinished_folders` restores the target after a kill.

    Raises:
        DiskFull: The old folder is unchanged.
    """
    temporary, old = build_temporary_path(target), build_temporary_path(target, "old")
    try:
        make_folder_in_project(target.parent)
        temporary.mkdir()
        yield temporary
        sync_tree(temporary)
        if not target.exists():
            temporary.rename(target)
        elif not exchange_names(temporary, target):
            target.rename(old)
            temporary.rename(target)
        sync_folder(target.parent)
    except OSError as error:
        _restore_target(temporary, old, target)
        raise DiskFull(
            f"{target} could not be written: {error.strerror or error}. Nothing of it was kept.\n"
            "    Is the disk full, or the folder write-protected? Free some space and try again."
        ) from error
    except BaseException:
        _restore_target(temporary, old, target)
        raise
    for replaced in (temporary, old):
        shutil.rmtree(replaced, ignore_errors=True)


def remove_unfinished_folders(folder: Path, name: str) -> None:
    """Remove temporary folders of killed processes, or restore an old folder being replaced."""
    for part in sorted(folder.glob(f".{glob.escape(name)}.*.part")) if folder.is_dir() else ():
        with suppress(OSError):
            is_old = part.name.endswith(".old.part")
            after = 0.0 if is_old else ABANDONED_SECONDS
            if part.is_symlink() or not part.is_dir() or not is_abandoned(part, after):
                continue
            if is_old and not os.path.lexists(folder / name):
                part.rename(folder / name)
            else:
                shutil.rmtree(part, ignore_errors=True)


def _restore_target(temporary: Path, old: Path, target: Path) -> None:
    with suppress(OSError):
        if old.exists() and not target.exists():
            old.rename(target)
    shutil.rmtree(temporary, ignore_errors=True)
