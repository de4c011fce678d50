"""The ways to serve a project: locally, by invitation, or by OIDC login."""

import ipaddress
import os
import re
import stat
import tomllib
from collections.abc import Sequence
from dataclasses import dataclass
from importlib.util import find_spec
from pathlib import Path
from typing import Any
from urllib.parse import urlsplit

from annotator.errors import AnnotatorError, combine_problems
from annotator.exchange.tagging.allowed_taggers import AllowedTaggers, Tagger, parse_taggers

LOCAL, INVITATION, OIDC = "local", "invitation", "oidc"
SERVING_MODES = (LOCAL, INVITATION, OIDC)
LOOPBACK_HOSTS = ("127.0.0.1", "localhost")  # how this computer calls itself
LOOPBACK_ADDRESS = "127.0.0.1"
REQUIRED_PROVIDER_KEYS = ("client_id", "client_secret", "server_metadata_url")
ALLOWED_PROVIDER_KEYS = (*REQUIRED_PROVIDER_KEYS, "client_kwargs")
BASE_PATH_PATTERN = re.compile(r"(/[A-Za-z0-9._~-]+)*")


@dataclass(frozen=True)
class Access:
    """How one server run is reached: address, proxies and sign-in."""

    # LOCAL (no members), INVITATION or OIDC
    mode: str
    host: str
    port: int
    # public scheme, name and port
    origin: str
    # "" or like "/annotator"
    base_path: str = ""
    # proxies whose X-Forwarded headers are trusted
    trusted_proxies: tuple[str, ...] = ()
    # streamlit's login configuration
    provider: dict[str, Any] | None = None
    # start page of several projects, or ""
    home_url: str = ""
    # tagger servers that the operator allows
    listed_taggers: tuple[Tagger, ...] = ()

    @property
    def is_team(self) -> bool:
        return self.mode != LOCAL

    @property
    def taggers(self) -> AllowedTaggers:
        """Return the tagger servers that pages may choose. Members do not own the machine."""
        return AllowedTaggers(self.listed_taggers, are_all_listed=self.is_team)

    @property
    def is_https(self) -> bool:
        return self.origin.startswith("https://")

    @property
    def netloc(self) -> str:
        """Return the Host header of browsers."""
        return urlsplit(self.origin).netloc

    @property
    def address(self) -> str:
        """Return the public URL without a trailing slash."""
        return self.origin + self.base_path

    @property
    def is_unencrypted(self) -> bool:
        return not self.is_https and urlsplit(self.origin).hostname not in LOOPBACK_HOSTS


def build_local_access(port: int) -> Access:
    return Access(LOCAL, LOOPBACK_ADDRESS, port, f"http://{LOOPBACK_ADDRESS}:{port}")


def parse_access(
    mode: str,
    port: int,
    host: str = LOOPBACK_ADDRESS,
    url: str = "",
    trusted_proxies: str = "",
    provider: Path | None = None,
    tagger_urls: Sequence[str] = (),
) -> Access:
    """Parse the access options, or raise AnnotatorError with all problems."""
    problems: list[str] = []
    if mode not in SERVING_MODES:
        raise AnnotatorError(f"--auth {mode!r} is not known. There is: {', '.join(SERVING_MODES)}.")
    if mode == LOCAL:
        given = {"--url": url, "--behind": trusted_proxies, "--oidc": provider}
        problems += [f"{option} needs --auth {INVITATION} or {OIDC}" for option, value in given.items() if value]
    is_loopback = _is_loopback(host, problems)
    if not is_loopback and mode == LOCAL:
        problems.append(
            f"--host {host} would let everybody in this network in, because --auth local asks nobody who they are; "
            f"use --auth {INVITATION} or --auth {OIDC}"
        )
    if not is_loopback and mode != LOCAL and not url:
        problems.append("--host needs --url, the address that people type: requests for other names are refused")
    origin, base = _parse_url(url or f"http://{LOOPBACK_ADDRESS}:{port}", problems)
    networks = _parse_networks(trusted_proxies, problems)
    about = _load_provider(provider, problems) if mode == OIDC else None
    if mode == OIDC and not origin.startswith("https://") and urlsplit(origin).hostname not in LOOPBACK_HOSTS:
        problems.append(f"--url {url} must begin with https://, because login providers send people back only there")
    taggers = parse_taggers(tagger_urls, os.environ, problems)
    if problems:
        raise combine_problems("The app cannot be served like this:", problems)
    return Access(mode, host, port, origin, base, networks, about, listed_taggers=taggers)


def _is_loopback(host: str, problems: list[str]) -> bool:
    try:
        return ipaddress.ip_address("127.0.0.1" if host == "localhost" else host).is_loopback
    except ValueError:
        problems.append(f"--host {host!r} is no address of this machine, such as 0.0.0.0 (all) or 192.168.1.5")
        return True


def _parse_url(url: str, problems: list[str]) -> tuple[str, str]:
    try:
        parts = urlsplit(url)
        port = parts.port
    except ValueError:
        parts, port = urlsplit(""), None
    base = parts.path.rstrip("/")
    is_plain = not (parts.query or parts.fragment or parts.username or parts.password)
    if (
        parts.scheme not in ("http", "https")
        or not parts.hostname
        or not is_plain
        or not BASE_PATH_PATTERN.fullmatch(base)
    ):
        problems.append(
            f"--url {url!r} is no address like https://labels.example.org or https://example.org/annotator/"
        )
        return "http://localhost", ""
    # As browsers write it: in small letters, without the usual port.
    usual = {"http": 80, "https": 443}[parts.scheme]
    name = f"[{parts.hostname}]" if ":" in parts.hostname else parts.hostname
    return f"{parts.scheme}://{name}" + (f":{port}" if port not in (None, usual) else ""), base


def _parse_networks(trusted_proxies: str, problems: list[str]) -> tuple[str, ...]:
    networks = tuple(filter(None, (part.strip() for part in trusted_proxies.split(","))))
    for network in networks:
        try:
            ipaddress.ip_network(network)
        except ValueError:
            problems.append(f"--behind {network!r} is no address or network, such as 10.0.0.2 or 172.18.0.0/16")
    return networks


def _load_provider(path: Path | None, problems: list[str]) -> dict[str, Any] | None:
    if find_spec("authlib") is None:
        problems.append("--auth oidc needs Authlib. Install it with: pip install 'multilabel-annotator[auth]'")
    if path is None:
        problems.append(f"--auth oidc needs --oidc FILE, a TOML file with {', '.join(REQUIRED_PROVIDER_KEYS)}")
        return None
    try:
        about = tomllib.loads(path.read_text(encoding="utf-8"))
        # Windows has no such permissions, and sets these bits for each file.
        is_open = os.name != "nt" and bool(path.stat().st_mode & (stat.S_IRGRP | stat.S_IROTH))
    except (OSError, ValueError) as error:
        problems.append(f"--oidc {path}: {error}")
        return None
    if is_open:
        problems.append(f"--oidc {path}: others on this machine can read the secret in it; run: chmod 600 {path}")
    missing = [key for key in REQUIRED_PROVIDER_KEYS if not (isinstance(about.get(key), str) and about[key])]
    unknown = [key for key in about if key not in ALLOWED_PROVIDER_KEYS]
    if missing:
        problems.append(f"--oidc {path}: it does not say {', '.join(missing)}")
    if unknown:
        problems.append(
            f"--oidc {path}: {', '.join(unknown)} is not known there; known are {', '.join(ALLOWED_PROVIDER_KEYS)}"
        )
    metadata = urlsplit(str(about.get("server_metadata_url", "")))
    if "server_metadata_url" not in missing and metadata.scheme != "https" and metadata.hostname not in LOOPBACK_HOSTS:
        problems.append(f"--oidc {path}: server_metadata_url must begin with https://, not {metadata.geturl()!r}")
    return about
