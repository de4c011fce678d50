"""Hugging Face hub access: cache and resumable, verified downloads, without torch.

A weights file's ETag is its SHA-256. Mismatching files are deleted.
"""

import contextlib
import hashlib
import inspect
import io
import os
import re
import socket
from collections.abc import Callable, Iterator
from pathlib import Path
from typing import Any
from urllib.parse import urlsplit

# Where no answer comes within this time, the weights are taken from the local cache or not at all. Left alone,
# huggingface_hub tries again and again for the better part of a minute before it admits that there is no network.
REACH_SECONDS = 3.0
ANSWER_SECONDS = 10.0  # for what the hub says of a repository
SHA256_PATTERN = re.compile(r"[0-9a-f]{64}")


USUAL_WEIGHT_FILES = (
    "model.safetensors",
    "open_clip_model.safetensors",
    "pytorch_model.bin",
    "open_clip_pytorch_model.bin",
)


def is_cached(repository: str, file: str) -> bool:
    """Return whether the weights of a hub repository are on this disk (an empty `file` tries usual names)."""
    return any(find_cached(repository, name) for name in ((file,) if file else USUAL_WEIGHT_FILES))


def find_cached(repository: str, file: str) -> Path | None:
    """Return a complete cached file's path, or None if it or the hub library is missing. Sends no request."""
    try:
        from huggingface_hub import constants, try_to_load_from_cache
    except ModuleNotFoundError:  # it comes with timm, which is not needed to label
        return None

    found = try_to_load_from_cache(repository, file, cache_dir=constants.HF_HUB_CACHE)
    return Path(found) if isinstance(found, str) else None


def fetch(repository: str, file: str, on_progress: Callable[[int, int], None]) -> Path:
    """Download, or resume, and verify a repository's file.

    Args:
        on_progress: Called with (bytes so far, bytes in all).

    Raises:
        ValueError: The file is unavailable or its content is wrong.
    """
    from huggingface_hub import constants, hf_hub_download

    # Older versions show no progress to others.
    bar = (
        {"tqdm_class": _make_progress_bar(on_progress)}
        if "tqdm_class" in inspect.signature(hf_hub_download).parameters
        else {}
    )
    try:
        with offline_if_unreachable():
            found = hf_hub_download(repository, file, cache_dir=constants.HF_HUB_CACHE, **bar)
    except Exception as error:  # what is raised depends on the hub, the cache and the kind of failure
        said = (str(error).strip() or type(error).__name__).splitlines()[0].rstrip(".")
        raise ValueError(
            f"{file} of {repository} cannot be downloaded ({said}). Is this machine offline? The same command goes on "
            "where the download was cut off."
        ) from error
    check_sha256(Path(found))
    return Path(found)


def fetch_license(repository: str) -> str:
    """Return the license of a repository's model card, "" if unavailable, its own name if "other"."""
    from huggingface_hub import HfApi, constants

    if constants.HF_HUB_OFFLINE or not is_reachable(constants.ENDPOINT):
        return ""
    try:
        card = HfApi(endpoint=constants.ENDPOINT).model_info(repository, timeout=ANSWER_SECONDS).card_data
    except Exception:  # what is raised depends on the hub and the kind of failure; a download says what is wrong
        return ""
    said = str(getattr(card, "license", None) or "").lower()
    return said if said != "other" else str(getattr(card, "license_name", None) or f"other ({repository})")


def check_sha256(path: Path) -> None:
    """Verify a cached file by the SHA-256 in its name, if any. Raises ValueError after deleting a wrong file."""
    blob = path.resolve()
    if not SHA256_PATTERN.fullmatch(blob.name):
        return
    with blob.open("rb") as file:
        digest = hashlib.file_digest(file, "sha256").hexdigest()
    if digest != blob.name:
        blob.unlink(missing_ok=True)
        path.unlink(missing_ok=True)
        raise ValueError(
            f"{path.name} is not the file that was published: its SHA-256 begins with {digest[:8]}, not "
            f"{blob.name[:8]}. It was deleted. Download it again."
        )


@contextlib.contextmanager
def offline_if_unreachable() -> Iterator[None]:
    """Restrict the hub library to its cache during the block if the hub is unreachable."""
    from huggingface_hub import constants

    before = constants.HF_HUB_OFFLINE
    constants.HF_HUB_OFFLINE = before or not is_reachable(constants.ENDPOINT)
    try:
        yield
    finally:
        constants.HF_HUB_OFFLINE = before


def is_reachable(address: str) -> bool:
    """Return whether a URL accepts connections. True with a proxy."""
    if any(os.environ.get(name) for name in ("HTTPS_PROXY", "https_proxy", "ALL_PROXY", "all_proxy")):
        return True  # only the proxy knows
    parts = urlsplit(address)
    try:
        with socket.create_connection(
            (parts.hostname, parts.port or (80 if parts.scheme == "http" else 443)), timeout=REACH_SECONDS
        ):
            return True
    except OSError:
        return False


def _make_progress_bar(on_progress: Callable[[int, int], None]) -> Any:
    """Return a tqdm progress bar class that calls `on_progress` with (bytes so far, bytes in all)."""
    from tqdm import tqdm

    class Told(tqdm):
        def __init__(self, *args: Any, **options: Any):
            options.pop("name", None)  # huggingface_hub's own
            super().__init__(*args, **(options | {"file": io.StringIO(), "disable": False}))

        def display(self, *_: Any, **__: Any) -> bool:
            on_progress(int(self.n), int(self.total or 0))
            return True

    return Told
