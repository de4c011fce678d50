"""Hugging Face's hub: what of it is on this disk, and how long to wait for it; without torch."""

import contextlib
import os
import socket
from collections.abc import Iterator
from urllib.parse import urlsplit

# Where no answer comes within this time, the weights are taken from the local cache or not at all. Left alone,
# huggingface_hub tries again and again for the better part of a minute before it admits that there is no network.
REACH_SECONDS = 3.0


@contextlib.contextmanager
def quick_to_give_up() -> Iterator[None]:
    """Within this block the hub is taken as offline (local cache only) if it cannot be reached."""
    from huggingface_hub import constants

    before = constants.HF_HUB_OFFLINE
    constants.HF_HUB_OFFLINE = before or not can_reach(constants.ENDPOINT)
    try:
        yield
    finally:
        constants.HF_HUB_OFFLINE = before


def can_reach(address: str) -> bool:
    """Whether somebody answers at an address within REACH_SECONDS."""
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
