"""URLs: which are allowed, and how to show and store them without secrets."""

import ipaddress
import re
import socket
from dataclasses import dataclass, field
from pathlib import Path
from urllib.parse import parse_qsl, quote, unquote, urlsplit, urlunsplit

from annotator.errors import AnnotatorError

PACKAGE_BY_SCHEME = {
    "http": "aiohttp",
    "https": "aiohttp",
    "s3": "s3fs",
    "s3a": "s3fs",
    "gs": "gcsfs",
    "gcs": "gcsfs",
    "az": "adlfs",
    "abfs": "adlfs",
    "abfss": "adlfs",
    "hf": "huggingface_hub",
}
"""Scheme -> the package beside fsspec that reads it. Schemes by which an address leads to files of this machine or into
another address (file, local, memory, github, simplecache::...) are not among them."""
IPAddress = ipaddress.IPv4Address | ipaddress.IPv6Address
REDACTION_MARK = "***"
MAX_SHOWN_CHARACTERS = 12  # letters of a value in a query that is shown
_SCHEME_PATTERN = re.compile(r"^([A-Za-z][A-Za-z0-9+.-]*)(?:://|::)")
_USER_PATTERN = re.compile(r"//[^/@]*@")
_SECRET_PATTERN = re.compile(r"sig|token|key|secret|pass|cred|auth|expires|session|policy|^s[a-z]$", re.IGNORECASE)


@dataclass(frozen=True, repr=False)
class Address:
    """An allowed URL that needs no further check. As text it is `redacted`."""

    # full URL with secrets, only for connecting
    plain: str
    # lowercase, one of PACKAGE_BY_SCHEME
    scheme: str = field(init=False, compare=False)
    redacted: str = field(init=False, compare=False)

    def __post_init__(self) -> None:
        object.__setattr__(self, "redacted", redact_address(self.plain))
        object.__setattr__(self, "scheme", _parse_scheme(self.plain))

    @classmethod
    def parse(cls, text: str) -> "Address":
        """Parse a URL. Raises AnnotatorError unless allowed."""
        return cls(text)

    @property
    def is_web(self) -> bool:
        return self.scheme in ("http", "https")

    @property
    def is_s3(self) -> bool:
        return self.scheme in ("s3", "s3a")

    @property
    def host(self) -> str:
        return urlsplit(self.plain).hostname or ""

    def __str__(self) -> str:
        return self.redacted

    def __repr__(self) -> str:
        return f"Address({self.redacted!r})"


def parse_location(text: str) -> Address | Path:
    """Parse a URL or path. Raises AnnotatorError unless allowed."""
    return Address.parse(text) if is_address(text) else Path(text)


def is_address(named: str) -> bool:
    match = _SCHEME_PATTERN.match(named)
    return bool(match) and len(match[1]) > 1  # C:\ is a disk


def _parse_scheme(named: str) -> str:
    shown = redact_address(named)
    if "::" in named:
        shown = _USER_PATTERN.sub(f"//{REDACTION_MARK}@", shown)  # each address of a chain may have one
        raise AnnotatorError(f"{shown} chains addresses with '::', which may lead to files of this machine. Name one.")
    scheme = named.split("://", 1)[0].lower()
    if scheme not in PACKAGE_BY_SCHEME:
        raise AnnotatorError(
            f"Addresses of {scheme}:// are not read ({shown}). Read are: {', '.join(PACKAGE_BY_SCHEME)}."
        )
    try:
        parts = urlsplit(named)
        port_is_good = parts.port is None or parts.port > 0
    except ValueError:
        raise AnnotatorError(f"{shown} is no address.") from None
    if not parts.hostname or not port_is_good or re.search(r"[\x00-\x20\x7f]", named):
        raise AnnotatorError(f"{shown} is no address: it names no host or bucket, or has blanks in it.")
    return scheme


def redact_address(address: str) -> str:
    """Return the URL without credentials and query secrets."""
    try:
        parts = urlsplit(address)
        query = parse_qsl(parts.query, keep_blank_values=True)
    except ValueError:
        return _USER_PATTERN.sub(f"//{REDACTION_MARK}@", address.split("?")[0])
    place = f"{REDACTION_MARK}@{parts.netloc.rpartition('@')[2]}" if "@" in parts.netloc else parts.netloc
    shown = "&".join(f"{quote(name)}={_format_parameter(name, value)}" for name, value in query)
    return urlunsplit((parts.scheme, place, parts.path, shown, ""))


def _format_parameter(name: str, value: str) -> str:
    is_secret = _SECRET_PATTERN.search(name) or len(value) > MAX_SHOWN_CHARACTERS
    return REDACTION_MARK if is_secret else quote(value)


def remove_secrets(text: str, address: Address) -> str:
    text = text.replace(address.plain, address.redacted)
    parts = urlsplit(address.plain)
    secrets = {parts.query, *(value for _, value in parse_qsl(parts.query) if len(value) > 3)}
    for value in (parts.username, parts.password):
        secrets |= {value, unquote(value)} if value else set()
    for secret in sorted((secret for secret in secrets if secret), key=len, reverse=True):
        text = text.replace(secret, REDACTION_MARK)
    return text


def check_host(host: str, may_be_own: bool) -> None:
    """Raise AnnotatorError if a host is cloud-internal or, unless `may_be_own`, local. Unresolvable hosts pass."""
    try:
        found = {info[4][0] for info in socket.getaddrinfo(host, None, type=socket.SOCK_STREAM)}
    except (OSError, UnicodeError):
        return  # it cannot be reached either
    for text in found:
        check_ip_address(host, str(text), may_be_own)


def check_ip_address(host: str, text: str, may_be_own: bool) -> None:
    """Raise AnnotatorError for a forbidden IP address of a host."""
    try:
        address = _unwrap_ipv4(ipaddress.ip_address(text.partition("%")[0]))
    except ValueError:  # 127.1, 0x7f000001: whoever connects may read it in another way
        raise AnnotatorError(f"{host} leads to {text}, which is no address in full.") from None
    # Not global are also shared addresses, 100.64.0.0/10, as private networks use them.
    is_own = not address.is_global or address.is_multicast or any(address in network for network in SITE_NETWORKS)
    if address.is_link_local or str(address) in METADATA_ADDRESSES or (is_own and not may_be_own):
        raise AnnotatorError(f"{host} is {address}, an address inside of this machine, its network or its cloud.")


def _unwrap_ipv4(address: IPAddress) -> IPAddress:
    """Return the IPv4 address embedded in an IPv6 one (RFC 4291, 2765, 3056, 6052)."""
    if address.version == 4:
        return address
    inner = address.ipv4_mapped or address.sixtofour
    is_ending = int(address) > 1 and any(address in network for network in IPV4_SUFFIX_NETWORKS)
    return inner or (ipaddress.IPv4Address(int(address) & 0xFFFFFFFF) if is_ending else address)


METADATA_ADDRESSES = ("169.254.169.254", "fd00:ec2::254", "100.100.100.200", "168.63.129.16", "192.0.0.192")
"""Where clouds answer their machines about themselves: of Amazon, Google, Alibaba, Azure and Oracle."""
IPV4_SUFFIX_NETWORKS = tuple(map(ipaddress.IPv6Network, ("64:ff9b::/96", "::/96", "::ffff:0:0:0/96")))
SITE_NETWORKS = tuple(map(ipaddress.IPv6Network, ("fec0::/10", "64:ff9b:1::/48")))
"""Which Python takes for global ones: of sites, as they once were, and translated ones of a network's own."""
